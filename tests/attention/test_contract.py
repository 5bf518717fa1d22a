"""The laws of every registered mechanism."""

from seqstruct.testing.test_laws import *  # noqa: F403
