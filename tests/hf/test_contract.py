"""The laws of generation, of every registered mechanism at a decoder's sites."""

from seqstruct.testing.test_laws_generation import *  # noqa: F403
