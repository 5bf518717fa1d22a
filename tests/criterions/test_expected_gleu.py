"""Mixed training: draws against enumerated distributions, gradients against those of the exact expectation."""

from __future__ import annotations

import itertools
import math
import re
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.models.lstm import LSTMModel, base_architecture
from torch import Tensor

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.criterions import expected_gleu
from seqstruct.criterions.expected_gleu import ExpectedGleu, draw
from seqstruct.models.rnn_translation.model import RecurrentTranslationModel
from seqstruct.scoring.gleu import sentence_gleu
from tests.models.building import (
    dictionary_of,
    small_language_model,
    small_recurrent_model,
    small_translation_model,
    task_of,
)
from tests.models.front_door import binarize, fairseq, fairseq_apart

EOS, PAD = 2, 1
DICTIONARY = dictionary_of("abc")
SYMBOLS = [s for s in range(len(DICTIONARY)) if s != PAD]


def recurrent(dropout: float = 0.0) -> RecurrentTranslationModel:
    sizes = {"embed_dim": 5, "hidden_size": 6, "initialization_bound": 0.9}
    model = small_recurrent_model(DICTIONARY, 4, **sizes, dropout=dropout).double().train()
    with torch.no_grad():
        model.decoder.output_projection.bias[PAD] = -40  # it is never drawn, whatever its probability
    return model


def batch(pairs: dict[int, tuple[list[int], list[int]]]) -> dict[str, Any]:
    """By sentence number; sources padded on the left, targets on the right."""
    widths = [max(len(pair[side]) for pair in pairs.values()) for side in (0, 1)]
    source = torch.tensor([[PAD] * (widths[0] - len(s)) + s for s, _ in pairs.values()])
    target = torch.tensor([t + [PAD] * (widths[1] - len(t)) for _, t in pairs.values()])
    return {
        "id": torch.tensor(list(pairs)),
        "target": target,
        "ntokens": int((target != PAD).sum()),
        "net_input": {"src_tokens": source, "src_lengths": (source != PAD).sum(1), "prev_output_tokens": None},
    }


def log_probability(model: Any, source: list[int], target: list[int]) -> Tensor:
    before = torch.tensor([[EOS, *target[:-1]]])
    logits = model(torch.tensor([source]), torch.tensor([len(source)]), before)[0][0]
    return logits.log_softmax(1)[torch.arange(len(target)), torch.tensor(target)].sum()


def everything(limit: int) -> list[list[int]]:
    """All that can be drawn within a limit."""
    words = [s for s in SYMBOLS if s != EOS]
    ended = [[*y, EOS] for n in range(limit) for y in itertools.product(words, repeat=n)]
    return ended + [list(y) for y in itertools.product(words, repeat=limit)]


def test_draws_have_the_models_probabilities() -> None:
    model, source = recurrent(), [4, 6, 5, EOS]
    uniforms = np.random.default_rng(1).random((40000, 2))
    (found,) = draw(model, batch({0: (source, [4, EOS])})["net_input"], [uniforms], EOS, PAD)
    counts: dict[tuple, int] = {}
    for y in found:
        counts[tuple(y.tolist())] = counts.get(tuple(y.tolist()), 0) + 1
    with torch.no_grad():
        exact = {tuple(y): float(log_probability(model, source, y).exp()) for y in everything(2)}
    assert set(counts) <= set(exact)
    for y, p in exact.items():
        deviation = (p * (1 - p) / 40000) ** 0.5
        assert abs(counts.get(y, 0) / 40000 - p) < 5 * deviation
    assert model.training


def test_the_gradient_is_that_of_the_mixed_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many draws."""
    monkeypatch.setattr(expected_gleu, "LONGEST", (1, 0))
    model, pairs = recurrent(), {3: ([4, 6, 5, EOS], [4, EOS]), 8: ([5, EOS], [6, EOS])}
    criterion = ExpectedGleu(task_of(DICTIONARY), 0.25, 30000, 7)
    loss, size, log = criterion(model, batch(pairs))
    loss.backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    objective = torch.zeros((), dtype=torch.float64)
    gleu = 0.0
    for source, target in pairs.values():
        objective = objective + 0.25 * log_probability(model, source, target)
        for y in everything(2):
            reward = sentence_gleu([s for s in y if s != EOS], target[:-1])
            expected = log_probability(model, source, y).exp() * reward
            objective, gleu = objective + expected, gleu + float(expected.detach())
    objective.backward()
    assert size == log["sample_size"] == 2
    assert float(loss.detach()) == pytest.approx(-float(objective.detach()), abs=0.02)
    assert float(log["gleu"]) == pytest.approx(gleu, abs=0.02)
    largest = max(float(p.grad.abs().max()) for p in model.parameters())
    for name, p in model.named_parameters():
        assert float((found[name] + p.grad).abs().max()) < 0.03 * largest, name


@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
def test_draws_depend_on_seed_update_and_sentence_alone(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = recurrent() if kind == "recurrent" else small_translation_model(DICTIONARY).double().train()
    pairs = {3: ([4, 6, 5, EOS], [4, 4, EOS]), 8: ([5, EOS], [6, EOS]), 5: ([6, 6, EOS], [5, 5, 4, 4, EOS])}
    seen: list[list[list[list[int]]]] = []
    original = expected_gleu.draw

    def spy(*arguments: Any) -> Any:
        found = original(*arguments)
        seen.append([[y.tolist() for y in ys] for ys in found])
        return found

    monkeypatch.setattr(expected_gleu, "draw", spy)

    def drawn(pairs: dict, seed: int = 7, update: int = 0) -> list:
        criterion = ExpectedGleu(task_of(DICTIONARY), 0.017, 6, seed)
        criterion.set_num_updates(update)
        with torch.no_grad():
            criterion(model, batch(pairs))
        return seen[-1]

    all_three = drawn(pairs)
    with torch.random.fork_rng():
        torch.manual_seed(99)
        assert drawn(pairs) == all_three
    for place, identity in enumerate(pairs):
        assert drawn({identity: pairs[identity]}) == [all_three[place]]
    assert drawn(pairs, seed=8) != all_three
    assert drawn(pairs, update=1) != all_three
    assert drawn({4: pairs[3]}) != [all_three[0]]
    for (_, target), ys in zip(pairs.values(), all_three, strict=True):
        assert len(ys) == 6
        for y in ys:
            assert EOS not in y[:-1]
            assert y[-1] == EOS or len(y) == 2 * len(target) + 10


def fairseqs_lstm() -> Any:
    options = Namespace(criterion="expected_gleu", encoder_embed_dim=5, decoder_embed_dim=5, dropout=0.0)
    base_architecture(options)
    return LSTMModel.build_model(options, task_of(DICTIONARY)).double()


@pytest.mark.parametrize(
    "build", [recurrent, lambda: small_translation_model(DICTIONARY).double(), fairseqs_lstm],
    ids=["recurrent", "transformer", "lstm"],
)
def test_a_shared_pass_is_one_of_each_pair(build: Callable[[], Any]) -> None:
    """Values and gradients; fairseq's LSTM wants its sources sorted by length."""
    model, pairs = build().eval(), {3: ([4, 6, 5, EOS], [4, EOS]), 8: ([5, EOS], [6, 5, EOS])}
    drawn = [[[5, 5, EOS], [EOS]], [[4, 6, 6, 4], [6, EOS]]]
    sample, criterion = batch(pairs), ExpectedGleu(task_of(DICTIONARY), 1.0, 2, 7)
    times = 0

    def count(*_: Any) -> None:
        nonlocal times
        times += 1

    counter = model.encoder.register_forward_hook(lambda _, inputs, __: count())
    weights = torch.tensor([[0.3, -1.0, 0.7], [1.1, 0.4, -0.6]], dtype=torch.float64)
    found = criterion._log_probabilities(
        model, sample, criterion._symbols(sample["target"]), [list(map(torch.tensor, ys)) for ys in drawn]
    )
    counter.remove()
    assert times == 1
    (found * weights).sum().backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    exact = torch.stack([
        torch.stack([log_probability(model, source, y) for y in (target, *ys)])
        for (source, target), ys in zip(pairs.values(), drawn, strict=True)
    ])
    (exact * weights).sum().backward()
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-5)
    for name, p in model.named_parameters():
        if p.grad is not None:
            torch.testing.assert_close(gradients[name], p.grad, rtol=1e-5, atol=1e-6)


def test_a_language_model_is_refused() -> None:
    criterion = ExpectedGleu(task_of(DICTIONARY), likelihood_weight=0.017, samples=3, seed=1)
    with pytest.raises(ValueError, match="expected_gleu needs a translation model that decodes step by step"):
        criterion(small_language_model(DICTIONARY), batch({3: ([4, 5, EOS], [4, EOS])}))


@pytest.mark.parametrize("options", [
    {"likelihood_weight": -1.0}, {"likelihood_weight": math.nan}, {"likelihood_weight": math.inf}, {"samples": 1},
    {"seed": -1},
])
def test_numbers_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected (finite numbers, 0|2) or more"):
        ExpectedGleu(task_of(DICTIONARY), **{"likelihood_weight": 0.017, "samples": 15, "seed": 1, **options})


def train(corpus: Path, save: Path, *options: object, run: Callable[..., str] = fairseq) -> str:
    return run(
        "train", corpus, "--arch", "rnn_translation", "--embed-dim", 16, "--hidden-size", 16, "--encoder-layers", 1,
        "--decoder-layers", 1, "--dropout", 0.0, "--optimizer", "adam", "--batch-size", 10, "--no-epoch-checkpoints",
        "--update-epoch-batch-itr", "True", "--save-dir", save, *options,
    )


MIXED = ["--criterion", "expected_gleu", "--samples", 8, "--lr", 0.02]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All pairs of four words, to be copied."""
    folder = tmp_path_factory.mktemp("pairs")
    text = "".join(f"{a} {b}\n" for a in ("ein", "haus", "am", "see") for b in ("ein", "haus", "am", "see")) * 2
    for name in itertools.product(("train", "valid", "test"), ("de", "en")):
        (folder / ".".join(name)).write_text(text)
    return binarize(folder, folder / "bin")


def train_by_likelihood(corpus: Path, save: Path, epochs: int, *options: object) -> list[object]:
    """Train; the options to go on from there."""
    train(corpus, save, "--criterion", "cross_entropy", "--lr", 0.03, "--max-epoch", epochs, *options)
    return ["--finetune-from-model", save / "checkpoint_last.pt"]


@pytest.mark.slow
@pytest.mark.training
def test_it_rises(corpus: Path, tmp_path: Path) -> None:
    """With two of three seeds: of some models, likelihood has made one that gives the same words for every source."""
    risen = 0
    for seed in (1, 2, 3):
        start = train_by_likelihood(corpus, tmp_path / f"ml{seed}", 16, "--seed", seed)
        log = train(corpus, tmp_path / str(seed), *MIXED, *start, "--max-epoch", 8, "--samples", 16, "--lr", 0.01,
                    "--seed", seed)
        gleu = [float(x) for x in re.findall(r"valid on 'valid' subset.*?\| gleu ([\d.]+)", log)]
        assert len(gleu) == 8
        risen += gleu[-1] > gleu[0] + 0.04
    assert risen >= 2


@pytest.mark.slow
@pytest.mark.training
def test_resumed_and_independent_of_workers(corpus: Path, tmp_path: Path) -> None:
    start = [*train_by_likelihood(corpus, tmp_path / "ml", 8), "--best-checkpoint-metric", "gleu",
             "--maximize-best-checkpoint-metric"]
    train(corpus, tmp_path / "whole", *MIXED, *start, "--max-epoch", 4)
    for epochs in (2, 4):
        train(corpus, tmp_path / "cut", *MIXED, *start, "--max-epoch", epochs)
    train(corpus, tmp_path / "workers", *MIXED, *start, "--max-epoch", 4, "--num-workers", 2, run=fairseq_apart)
    states = [load_checkpoint(tmp_path / name / "checkpoint_last.pt")["model"] for name in ("whole", "cut", "workers")]
    for state in states[1:]:
        torch.testing.assert_close(state, states[0], rtol=0, atol=0)
