"""Decomposable attention: against a plain loop over words, padding, trees, and through fairseq's commands."""

from __future__ import annotations

import json
import re
import types

import pytest
import torch

from seqstruct.data.nli.parser_pretraining import main as pretrain_main
from seqstruct.models.sentences.decomposable_attention import DecomposableAttentionConfig, DecomposableAttentionModel
from tests.models.front_door import fairseq

PLANS = ["none", "simple(hidden_size=3)", "dependency(hidden_size=3)", "hard_parents"]


def task(vectors=None):
    return types.SimpleNamespace(vocabulary={f"w{i}": i for i in range(1, 12)}, labels=["a", "b", "c"],
                                 word_vectors=vectors)


def model_of(plan="none", vectors=None, **options):
    torch.manual_seed(7)
    cfg = DecomposableAttentionConfig(
        intra_attention=plan, word_dim=6, hidden_size=5, initialization_deviation=0.4, **options
    )
    return DecomposableAttentionModel.build_model(cfg, task(vectors)).double().eval()


def batch(generator):
    premise = torch.randint(1, 12, (3, 7), generator=generator)
    hypothesis = torch.randint(1, 12, (3, 5), generator=generator)
    premise[1, 4:] = 0
    hypothesis[0, 1:] = 0
    chains = [torch.arange(side.size(1)).expand_as(side) for side in (premise, hypothesis)]
    return premise, hypothesis, (chains[0].masked_fill(premise == 0, 0), chains[1].masked_fill(hypothesis == 0, 0))


def plain(model, premise, hypothesis):
    """Logits of one pair without padding, word by word, without attention inside the sentences."""
    x, y = (model.project(model.words(side)) for side in (premise, hypothesis))
    e = torch.stack([torch.stack([model.attend(a) @ model.attend(b) for b in y]) for a in x])
    sums = []
    for own, other, scores in ((x, y, e), (y, x, e.T)):
        total = 0
        for word, row in zip(own, scores, strict=True):
            aligned = sum(w * o for w, o in zip(row.softmax(0), other, strict=True))
            total = total + model.compare(torch.cat([word, aligned]))
        sums.append(total)
    return model.output(model.aggregate(torch.cat(sums)))


def test_the_equations_word_by_word(generator):
    model = model_of()
    premise, hypothesis, _ = batch(generator)
    with torch.no_grad():
        found = model(premise, hypothesis)
        for b in range(3):
            expected = plain(model, premise[b][premise[b] > 0], hypothesis[b][hypothesis[b] > 0])
            torch.testing.assert_close(found[b], expected)


@pytest.mark.parametrize("plan", PLANS)
def test_padding_and_the_batch_are_invisible(plan, generator):
    model = model_of(plan)
    premise, hypothesis, heads = batch(generator)
    found = model(premise, hypothesis, heads)
    for b in range(3):
        T, S = int((premise[b] > 0).sum()), int((hypothesis[b] > 0).sum())
        row = slice(b, b + 1)
        alone = model(premise[row, :T], hypothesis[row, :S], (heads[0][row, :T], heads[1][row, :S]))
        torch.testing.assert_close(found[row], alone)
    found.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_hard_parents_stand_beside_their_words(generator):
    model = model_of("hard_parents")
    tokens = torch.tensor([[3, 5, 7]])
    with torch.no_grad():
        x = model.project(model.words(tokens))
        read = model._encode(tokens, torch.tensor([[2, 3, 2]]))
    torch.testing.assert_close(read[..., :5], x)
    torch.testing.assert_close(read[0, :, 5:], x[0, [1, 2, 1]])
    with pytest.raises(ValueError, match="needs the heads of an external parser"):
        model(tokens, tokens)


def test_vectors_are_fixed_and_the_parser_starts_from_them():
    vectors = torch.randn(11, 4, generator=torch.Generator().manual_seed(1))
    model = model_of("dependency(hidden_size=3)", vectors)
    torch.testing.assert_close(model.words.weight[1:-1], vectors.double())
    torch.testing.assert_close(model.intra.words.weight[1:-1], vectors.double())
    assert not model.words.weight.requires_grad and model.intra.words.weight.requires_grad
    assert model_of().words.weight.requires_grad


def test_trees(generator):
    premise, _, heads = batch(generator)
    found = model_of("dependency(hidden_size=3)").tree(premise)
    assert ((found == -1) == (premise == 0)).all() and (found[premise > 0] >= 0).all()
    assert (model_of("hard_parents").tree(premise, heads[0])[premise > 0] == heads[0][premise > 0]).all()
    for plan in ("none", "simple(hidden_size=3)"):
        with pytest.raises(ValueError, match="no trees"):
            model_of(plan).tree(premise)


@pytest.mark.parametrize(("options", "message"), [
    ({"dropout": 1.0}, "dropout: expected"),
    ({"intra_attention": "nonsense"}, "nonsense"),
    ({"hidden_size": 0}, "hidden_size: expected 1 or more"),
    ({"pretrained_parser": "absent.pt"}, "no parser to pretrain"),
    ({"pretrained_parser": "absent.pt", "intra_attention": "dependency"}, "absent.pt: not a parser of this model"),
])
def test_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        DecomposableAttentionModel.build_model(DecomposableAttentionConfig(**options), task())


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    chooser = torch.Generator().manual_seed(3)
    names = [f"n{i}" for i in range(4)]
    for split in ("train", "valid", "test"):
        lines = []
        for _ in range(120 if split == "train" else 40):
            i, j = torch.randperm(4, generator=chooser)[:2].tolist()
            same = bool(torch.rand((), generator=chooser) < 0.5)
            hypothesis = [names[i if same else j], "ran"]
            lines.append({"premise": [names[i], "has", "run"], "hypothesis": hypothesis, "label": "yn"[not same]})
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "vocabulary.txt").write_text("\n".join([*names, "has", "ran", "run"]) + "\n")
    (folder / "nli.json").write_text(json.dumps({"labels": ["y", "n"], "lowercase": False}))
    trees = "1\tn1\t_\t_\t_\t_\t3\t_\t_\t_\n2\thas\t_\t_\t_\t_\t3\t_\t_\t_\n3\trun\t_\t_\t_\t_\t0\t_\t_\t_\n\n"
    (folder / "treebank.conllu").write_text(trees * 200)
    return folder


@pytest.mark.training
def test_pretrains_trains_saves_and_validates(data, tmp_path, capsys):
    sizes = ["--intra-attention", "dependency(hidden_size=6)", "--hidden-size", "24", "--word-dim", "12"]
    parser = str(tmp_path / "parser.pt")
    command = [str(data), "--treebank", str(data / "treebank.conllu"), "--out", parser, "--batch-size", "8"]
    assert pretrain_main([*command, *sizes]) == 0
    said = re.search(r"([\d.]+) nats a word at first, ([\d.]+) at last", capsys.readouterr().out)
    first, last = map(float, said.groups())
    assert last < 0.5 * first
    saved = torch.load(parser, weights_only=True)
    common = ["--task", "nli", "--criterion", "classification_cross_entropy", "--batch-size", "8"]
    fairseq(
        "train", data, *common, "--arch", "decomposable_attention", *sizes, "--pretrained-parser", parser,
        "--initialization-deviation", "0.3", "--dropout", "0", "--optimizer", "adagrad", "--lr", "0.1",
        "--initial-accumulator", "0.1", "--max-epoch", "40", "--no-epoch-checkpoints", "--save-dir", tmp_path,
        "--update-epoch-batch-itr", "True",
    )
    trained = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["model"]
    assert saved.keys() < {name.removeprefix("intra.") for name in trained}
    printed = fairseq("validate", data, *common, "--path", tmp_path / "checkpoint_best.pt", "--valid-subset", "test",
                      "--log-format", "json")
    assert float(re.search(r'"test_accuracy": "([\d.]+)"', printed)[1]) > 80, "chance has 50; ten seeds reach 100"


def test_pretraining_says_one_sentence(data, tmp_path, capsys):
    out = str(tmp_path / "parser.pt")
    assert pretrain_main([str(data), "--treebank", str(data / "absent"), "--out", out]) == 1
    treebank = str(data / "treebank.conllu")
    assert pretrain_main([str(data), "--treebank", treebank, "--out", out, "--intra-attention", "simple"]) == 1
    assert pretrain_main([str(data), "--treebank", treebank, "--out", out, "--batch-size", "-1"]) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len([line for line in lines if "parser_pretraining:" in line]) == 3
    assert "batch-size is at least 1, not -1" in lines[-1]
    assert not (tmp_path / "parser.pt").exists()
