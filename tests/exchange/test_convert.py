"""`seqstruct convert`: models of transformers with other attention, fitted to a text."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

import seqstruct.hf.exchanged  # noqa: F401  before transformers' models
from seqstruct.cli import main
from seqstruct.exchange import small_gpt2
from seqstruct.exchange.convert import recovered
from seqstruct.exchange.text_blocks import batches, blocks, perplexity
from seqstruct.hf import SeqstructTokenizer
from seqstruct.scoring.measurement import Measurement

pytestmark = pytest.mark.training  # a small model is trained, to be converted

WORDS = tuple("abcdefg")
SIZES = "--layers 2 --embed-dim 12 --heads 2 --positions 21 --length 7 --batch-size 5 --updates 4".split()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared text of letters in turn."""
    folder = tmp_path_factory.mktemp("prepared")
    for name in ("bin", "text"):
        (folder / name).mkdir()
    (folder / "bin" / "dict.txt").write_text("".join(f"{word} 9\n" for word in WORDS))
    lines = [" ".join(WORDS[i % 7 : i % 7 + 1 + i % 4]) for i in range(60)]
    (folder / "text" / "train.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def gpt2(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("models") / "gpt2"
    assert small_gpt2.main([str(data), "--out", str(out), *SIZES]) == 0
    return out


@pytest.mark.parametrize("option, found", [
    ("--updates", "updates is at least 1, not 0"), ("--batch-size", "batch-size is at least 1, not 0"),
    ("--length", "length is at least 2, not 0"), ("--heads", "heads is at least 1, not 0"),
    ("--positions", "positions are at least the length of a block, 7, not 0"),
])
def test_a_small_model_that_cannot_be_trained_is_refused_before_it_is_written(data, tmp_path, capsys, option, found):
    assert small_gpt2.main([str(data), "--out", str(tmp_path / "gpt2"), *SIZES, option, "0"]) == 1
    assert found in capsys.readouterr().err and not (tmp_path / "gpt2").exists()


def test_a_model_is_converted_fitted_and_loaded(gpt2: Path, data: Path, tmp_path: Path, capsys) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    out, text, record = tmp_path / "converted", str(data / "text" / "train.txt"), tmp_path / "found.json"
    command = ["convert", str(gpt2), "--plan", "softmax + t2r(features=8)", "--out", str(out), "--text", text,
               "--valid", text, "--transfer", "2", "--tune", "3", "--length", "7", "--decode", "5", "--texts", "2",
               "--record", str(record)]
    assert main(command) == 0
    assert f"{out}: softmax + t2r(features=8)" in capsys.readouterr().out
    found = {entry["metric"]: entry["value"] for entry in json.loads(record.read_text())}
    shares = {"recovered_by_transfer", "recovered"}  # where the swap of this tiny model lost anything
    assert [name for name in found if name not in shares] == [
        "validation_perplexity_softmax", "validation_perplexity_at_swap", "validation_perplexity_transferred",
        "validation_perplexity", "step_softmax", "step", "speed_up",
    ]
    model, tokenizer = AutoModelForCausalLM.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    blocked = blocks(tokenizer, text, 7)
    assert perplexity(model, blocked, 3) == pytest.approx(found["validation_perplexity"])
    assert found["validation_perplexity_softmax"] == pytest.approx(
        perplexity(AutoModelForCausalLM.from_pretrained(gpt2), blocked, 5)
    )
    assert main(command) == 1 and "converted" in capsys.readouterr().err  # the name is taken


def test_a_plan_alone_needs_no_text_and_no_tokenizer(gpt2: Path, tmp_path: Path, capsys) -> None:
    for path in gpt2.iterdir():
        if "token" not in path.name and "vocab" not in path.name:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    assert main(["convert", str(tmp_path), "--plan", "gated_delta", "--out", str(tmp_path / "out")]) == 0
    assert "gated_delta has no biases" in capsys.readouterr().out
    assert (tmp_path / "out" / "model.safetensors").is_file()


def test_what_does_not_fit_is_one_sentence_and_leaves_nothing(gpt2: Path, data: Path, tmp_path: Path, capsys) -> None:
    from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2Model

    bert, bare, out, text = tmp_path / "bert", tmp_path / "bare", tmp_path / "out", str(data / "text" / "train.txt")
    BertForMaskedLM(BertConfig(vocab_size=11, hidden_size=4, num_attention_heads=2, num_hidden_layers=1,
                               intermediate_size=5)).save_pretrained(bert)
    GPT2Model(GPT2Config(vocab_size=11, n_embd=4, n_layer=1, n_head=2)).save_pretrained(bare)
    capsys.readouterr()
    for model, plan, options, message in (
        (tmp_path / "none", "t2r", [], "no model of transformers"),
        (bare, "t2r", [], "expected one of GPT2LMHeadModel"),
        (gpt2, "t2r*3", [], "3 layers described, the model has 2"),
        (gpt2, "additive", [], "does not work at decoder_self"),
        (gpt2, "t2r", ["--tune", "1"], "need a text"),
        (gpt2, "t2r", ["--text", text, "--tune", "1", "--length", "1"], "blocks of 2 tokens or more"),
        (gpt2, "t2r", ["--text", text, "--length", "22"], "expected at most 21 tokens"),
        (gpt2, "t2r", ["--decode", "6"], "expected at most 21 tokens"),
        (gpt2, "t2r", ["--decode", "-5"], "after 0 tokens or more, and 1 text or more, got -5 and 16"),
        (gpt2, "t2r", ["--decode", "3", "--texts", "0"], "after 0 tokens or more, and 1 text or more, got 3 and 0"),
        (gpt2, "softmax", ["--text", text, "--transfer", "1", "--length", "7"], "other attention than softmax"),
        (bert, "t2r", ["--text", text, "--tune", "1"], "expected a tokenizer|expected a language model"),
        (bert, "t2r", ["--decode", "5"], "expected a language model"),
    ):
        assert main(["convert", str(model), "--plan", plan, "--out", str(out), *options]) == 1
        said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("seqstruct")]
        assert any(part in said[-1] for part in message.split("|")), said
        assert not out.exists()


def test_a_damaged_model_is_one_sentence(gpt2: Path, tmp_path: Path, capfd) -> None:
    weights, config = (gpt2 / "model.safetensors").read_bytes(), json.loads((gpt2 / "config.json").read_text("utf-8"))
    for number, (name, content, message) in enumerate((
        ("model.safetensors", weights[:1000], "truncated or altered"),
        ("model.safetensors", b"", "truncated or altered"),
        ("config.json", b"[1]", "expected an object in JSON, got list"),
        ("config.json", b"", "truncated or altered"),
        ("config.json", json.dumps(config | {"n_inner": 5}).encode(), "mlp.c_fc"),
        ("config.json", json.dumps(config | {"n_layer": 3}).encode(), "transformer.h.2.attn.c_attn.bias and 11 others"),
        ("config.json", json.dumps(config | {"n_layer": "two"}).encode(), "Field 'n_layer' expected int, got str"),
    )):
        folder, out = tmp_path / str(number), tmp_path / "out"
        shutil.copytree(gpt2, folder)
        (folder / name).write_bytes(content)
        assert main(["convert", str(folder), "--plan", "t2r", "--out", str(out)]) == 1
        said = [line for line in capfd.readouterr().err.splitlines() if line]
        at = folder / ("model.safetensors" if "mlp" in message else name)
        at = folder if "others" in message else at
        assert said[-1].startswith(f"seqstruct convert: {at}: ") and message in said[-1]
        assert (len(said) == 1 or "others" in message) and not out.exists()  # of these transformers reports, too


def test_blocks_and_batches_take_each_token_in_turn(data: Path, gpt2: Path) -> None:
    tokenizer = SeqstructTokenizer(str(gpt2 / "vocab.source.txt"))
    text = blocks(tokenizer, data / "text" / "train.txt", 7)
    assert text[0].tolist()[:5] == [4, 2, 5, 6, 2] and text.shape[1] == 7
    chosen = torch.cat([batch["input_ids"] for batch in batches(text, 3, 2 * len(text) // 3, 1, "read")])
    first = {tuple(row) for row in chosen[: len(text)].tolist()}
    assert first == {tuple(row) for row in text.tolist()}


def test_nothing_but_newlines_ends_a_line_of_text(gpt2: Path, tmp_path: Path) -> None:
    tokenizer, text = SeqstructTokenizer(str(gpt2 / "vocab.source.txt")), tmp_path / "text"
    text.write_text("a\u2028b\x0cc\x85d e\n", encoding="utf-8")
    assert blocks(tokenizer, text, 6).tolist() == [[*tokenizer("a b c d e")["input_ids"]]]
    text.write_bytes(b"a\n\xff\n")
    with pytest.raises(ValueError, match=f"{text}: not UTF-8"):
        blocks(tokenizer, text, 1)


def test_the_shares_that_are_recovered() -> None:
    values = {"_softmax": 10.0, "_at_swap": 30.0, "_transferred": 20.0, "": 12.0}
    measured = [Measurement(f"validation_perplexity{name}", value, "perplexity") for name, value in values.items()]
    assert [(each.metric, each.value) for each in recovered(measured)] == [
        ("recovered_by_transfer", 0.5), ("recovered", 0.9)
    ]
    assert recovered(measured[:2]) == recovered([measured[0], measured[0]._replace(metric="x")]) == []
