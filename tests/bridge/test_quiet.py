"""Loggers of others: quiet inside, as they were outside, whatever ends it."""

from __future__ import annotations

import logging

import pytest

from seqstruct.bridge.quiet import TALKATIVE, quiet


def test_levels_come_back():
    loggers = [logging.getLogger(name) for name in TALKATIVE]
    before = [logger.level for logger in loggers]
    with pytest.raises(ValueError, match="over"), quiet():
        assert {logger.level for logger in loggers} == {logging.WARNING}
        raise ValueError("over")
    assert [logger.level for logger in loggers] == before


def test_a_logger_by_name():
    logger = logging.getLogger("seqstruct.test_quiet")
    logger.setLevel(logging.DEBUG)
    with quiet("seqstruct.test_quiet"):
        assert not logger.isEnabledFor(logging.INFO)
    assert logger.level == logging.DEBUG
