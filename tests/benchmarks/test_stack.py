"""`seqstruct bench stack` runs; how long things take is not tested."""

from __future__ import annotations

import sys
import types

import pytest
import torch
from torch import nn

from seqstruct.benchmarks import stack
from seqstruct.benchmarks.stack import (
    GROWING,
    LAYERS,
    PACKAGES,
    PLANS,
    STACKS,
    UNITS,
    layer,
    peer_layers,
    run,
    training_steps,
)
from seqstruct.benchmarks.timing import Contestant, Place, audit, kept, measure
from seqstruct.cli import main
from seqstruct.command import text_table

HEADINGS = {"layers": "Layers", "steps": "Training steps", "decoding": "Decoding", "growth": "Growth"}


@pytest.mark.training
def test_every_section_has_its_rows(capsys, threads):
    assert main(["bench", "stack", "--lengths", "3", "6", "--repeats", "1", "--threads", "1"]) == 0
    title, *tables = capsys.readouterr().out.strip().split("\n\n")
    assert "1 threads" in title and "float32, on cpu" in title and "authors" in title
    assert [text.split("\n")[0].startswith(HEADINGS[name]) for name, text in zip(HEADINGS, tables, strict=True)] == [
        True
    ] * 4
    for name, text in zip(HEADINGS, tables, strict=True):
        for label in {"steps": [*PLANS, *STACKS], "growth": GROWING}.get(name, LAYERS):
            assert sum(line.startswith(f"{label}  ") for line in text.splitlines()) == 2


def test_nothing_that_is_timed_beside_the_unit_has_dropout(monkeypatch):
    built = []
    monkeypatch.setattr(stack, "_step", lambda model, *_: built.append(model))
    training_steps(4, Place.of("cpu", "float32"))
    modules = [module for model in built for module in model.modules()]
    rates = [module.p for module in modules if hasattr(module, "p")]
    rates += [module.mechanism.shape.dropout for module in modules if hasattr(module, "mechanism")]
    assert len(built) == len(PLANS) + len(STACKS) and len(rates) > 20 and set(rates) == {0.0}
    assert list(UNITS.values()) == [0.1, 0.0]


def test_a_length_twice_counts_once(monkeypatch):
    monkeypatch.setattr(stack, "GROWING", ["softmax"])
    table = stack.growth_table([4, 2, 4], 1, Place.of("cpu", "float32"))
    assert [text.split()[1] for text in table.splitlines()[2:]] == ["2", "4"]


def test_sections_can_be_chosen():
    text = run([2], 1, ["decoding"])
    assert HEADINGS["decoding"] in text
    assert not any(HEADINGS[name] in text for name in HEADINGS if name != "decoding")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lengths", "0"], "1 or more"),
        (["--repeats", "0"], "1 or more"),
        (["--sections", "layers", "speed"], "no section speed; sections: layers, steps, decoding, growth"),
        (["--dtype", "int8"], "float32 or bfloat16, got int8"),
    ],
)
def test_what_cannot_be_is_refused(refused, options, message):
    assert message in refused("bench", "stack", *options)


@pytest.mark.parametrize("threads", [0, 2**31, 10**30])
def test_threads_that_torch_does_not_take_are_refused(capsys, threads):
    with pytest.raises(SystemExit):
        main(["bench", "stack", "--threads", str(threads)])
    assert f"expected a whole number, 1 to 2147483647, got '{threads}'" in capsys.readouterr().err


def test_other_benchmarks_have_no_sections(refused):
    assert "bench rational has no option --sections" in refused("bench", "rational", "--sections", "layers")


@pytest.mark.training
def test_bfloat16_by_autocast():
    assert "bfloat16, on cpu" in run([3], 1, ["layers", "steps", "decoding"], dtype="bfloat16")


@pytest.mark.training
def test_the_authors_layers_take_part_where_importable(monkeypatch):
    class Peer(nn.Linear):
        def __init__(self, embed_dim, *sizes):
            super().__init__(embed_dim, embed_dim)

        def forward(self, inputs, include_first, block_size=None):
            assert not include_first
            return super().forward(inputs)

    with monkeypatch.context() as absent:
        absent.setattr(stack, "PACKAGES", ("no.such.package",))
        found, note = peer_layers()
        assert not found and "neither no.such.package can be imported: --peer FOLDER says where" in note
    modules = {PACKAGES[0]: {}, f"{PACKAGES[0]}.superposition": {"SuperpositionStackAttention": Peer},
               f"{PACKAGES[0]}.nondeterministic": {"NondeterministicStackAttention": Peer},
               "torch_semiring_einsum": {"AutomaticBlockSize": lambda: 10}}
    for parent in ("rau", "rau.models", "rau.models.stack_nn"):
        modules[parent] = {}
    for name, values in modules.items():
        module = types.ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
    peers, note = peer_layers()
    assert len(peers) == 3 and PACKAGES[0] in note
    assert run([3], 1, ["layers"]).count(PACKAGES[0]) == 4


@pytest.mark.training
def test_operators_do_not_grow_with_batch_or_states(monkeypatch):
    counts = {label: audit(layer(*choice, length=20)).operators for label, choice in LAYERS.items()}
    assert counts["nondeterministic Q=2 S=3 m=5"] == counts["nondeterministic Q=3 S=3 m=5"]
    place = Place.of("cpu", "float32")
    steps = []
    for batch in (2, 5):
        monkeypatch.setattr(stack, "BATCH", batch)
        steps.append({name: audit(step).operators for name, step in training_steps(20, place).items()})
    assert steps[0] == steps[1]
    assert steps[0]["LSTM+Nd Q=2"] == steps[0]["LSTM+Nd Q=3"]


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


def test_peak_counts_what_lives_at_the_same_time():
    x = torch.randn(1000)

    def forward():
        for _ in range(5):
            y = (x * 2).exp()
        return y

    found = audit(Contestant(forward, lambda output: None))
    assert found.operators == 10
    assert found.peak == pytest.approx(0.012)  # the last y, its factor and the y before


def test_layers_give_gradients_of_all_parameters():
    for choice in LAYERS.values():
        contestant = layer(*choice, length=5)
        output = contestant.forward()
        contestant.backward(output)
        assert output.shape == (10, 5, 32)


def test_table_aligns():
    assert text_table(["a", "bb"], [["long", "1"]]) == "a     bb\nlong   1"
