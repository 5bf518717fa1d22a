"""Timings of our operators beside what they are held against, in one process.

Each module here but `timing` is one benchmark: `run(lengths, repeats) -> str` gives the table that
`seqstruct bench NAME` prints.
"""
