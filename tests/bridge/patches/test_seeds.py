"""Seeds of updates: the same draws as PyTorch's own seeding, without stack traces of devices that are not there."""

from __future__ import annotations

import traceback

import pytest
import torch
from fairseq import utils

from seqstruct.bridge.patches.compat import prepare_fairseq


@pytest.fixture(autouse=True)
def own_state():
    prepare_fairseq()
    with torch.random.fork_rng(devices=[]):
        yield


@pytest.mark.parametrize("seed", [0, 1, 13, 2**40])
def test_draws_are_those_of_pytorch(seed):
    torch.manual_seed(seed)
    expected = torch.rand(5)
    utils.set_torch_seed(seed)
    assert torch.equal(torch.rand(5), expected)


def test_the_state_before_comes_back():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    with utils.set_torch_seed(1):
        torch.rand(9)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is a device to seed")
def test_no_stack_is_formatted(monkeypatch):
    def formatted(*args, **named):
        raise AssertionError("a stack was formatted")

    monkeypatch.setattr(traceback, "format_stack", formatted)
    utils.set_torch_seed(3)
    with pytest.raises(AssertionError, match="formatted"):
        torch.manual_seed(3)
