"""Timings of our operators beside what they are held against, in one process.

`inference`, `rational` and `stack` are benchmarks: `run(lengths, repeats, ...) -> str` gives what
`seqstruct bench NAME` prints.
"""
