"""What every recipe shares: its cells as plain commands, runs that go on where they were, records and reports.

A recipe is a shell script (`script`), whose cells are listed, printed or run (`cells`); fairseq runs in processes of
its own (`process`), never in this one.
"""
