"""The laws of numbers of every registered mechanism."""

from seqstruct.testing.test_laws_range import *  # noqa: F403
