"""What every recipe shares: a command line, runs that resume, records, reports and plots.

A recipe is a script with one `Recipe` (`recipe`), which says how to prepare data, train and evaluate one cell of a
table; `main` (`command`) gives it its options.  fairseq runs in processes of its own (`process`), never in this one.
"""
