"""The laws of every registered mechanism in slots with all that a decoder of today asks for."""

from seqstruct.testing.test_laws_slot import *  # noqa: F403
