"""The refusals of every registered mechanism."""

from seqstruct.testing.test_laws_refusals import *  # noqa: F403
