"""`seqstruct bench stack` runs; how long things take is not tested."""

from __future__ import annotations

import pytest
import torch

from seqstruct.benchmarks.stack import LAYERS, layer
from seqstruct.benchmarks.timing import Contestant, kept, measure, table
from seqstruct.cli import main


def test_the_table_has_a_row_for_each_layer(capsys):
    threads = torch.get_num_threads()
    try:
        assert main(["bench", "stack", "--lengths", "3", "--repeats", "1", "--threads", "1"]) == 0
    finally:
        torch.set_num_threads(threads)
    lines = capsys.readouterr().out.splitlines()
    assert all(any(line.startswith(label) for line in lines) for label in LAYERS)
    assert "1 threads" in lines[1]


@pytest.mark.parametrize("option", [["--lengths", "0"], ["--repeats", "0"], ["--threads", "0"]])
def test_numbers_below_one_are_refused(capsys, option):
    assert main(["bench", "stack", *option]) == 1
    assert "1 or more" in capsys.readouterr().err


def test_contestants_take_turns():
    calls = []
    contestants = {
        name: Contestant(lambda name=name: calls.append(name) or torch.zeros(()), lambda output: None) for name in "ab"
    }
    timings = measure(contestants, repeats=3, warm_up=1)
    assert calls[:8] == list("abababab")
    assert all(0 <= timing.forward <= timing.both for timing in timings.values())


def test_kept_counts_each_storage_once():
    x = torch.randn(1000, requires_grad=True)
    assert kept(lambda: (x * x).sum()) == pytest.approx(0.004)


def test_layers_give_gradients_of_all_parameters():
    for choice in LAYERS.values():
        contestant = layer(*choice, length=5)
        output = contestant.forward()
        contestant.backward(output)
        assert output.shape == (10, 5, 32)


def test_table_aligns():
    assert table(["a", "bb"], [["long", "1"]]) == "a     bb\nlong   1"
