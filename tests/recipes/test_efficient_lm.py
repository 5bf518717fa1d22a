"""Language models of the thesis: rows, published sizes, presets and configs; perplexity of a word."""

from __future__ import annotations

import argparse
import math
from types import SimpleNamespace

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY

from seqstruct.attention import Site, parse_choices
from seqstruct.harness import measurements, word_perplexity
from seqstruct.harness.script import Script
from seqstruct.models.transformer import lm as models
from tests.models.building import dictionary_of, language_model_config, small_language_model, task_of
from tests.models.front_door import binarize, fairseq, sizes
from tests.recipes.composed import ROOT, composed

FAMILY = "peng_thesis/efficient_lm"
SCRIPT = Script(ROOT / "recipes" / "peng_thesis" / "table-4.3.sh")
SIZES = ("small", "big", "layers_16", "layers_32")


@pytest.mark.parametrize("size", SIZES)
def test_presets_are_the_models_of_the_configs(size: str) -> None:
    preset = argparse.Namespace(decoder_self_attention="softmax")
    name = f"{size[7:]}_layers" if size.startswith("layers") else size
    ARCH_CONFIG_REGISTRY[f"structured_transformer_lm_wikitext103_{name}"](preset)
    config = composed(FAMILY, "row=base", "scale=paper", f"size={size}")
    assert config["model"] == {"_name": "structured_transformer_lm", **vars(preset)}
    published = (286000, 0.1, [1.0], 16000) if size.startswith("layers") else (150000, 0.25, [0.00025], 6000)
    found = config["optimization"]
    assert (found["max_update"], found["clip_norm"], found["lr"], config["lr_scheduler"]["warmup_updates"]) == published


@pytest.mark.parametrize("row", sorted(path.stem for path in (ROOT / "configs" / FAMILY / "row").glob("*.yaml")))
def test_plans_are_read(row: str) -> None:
    config = composed(FAMILY, f"row={row}", "scale=small")
    assert len(parse_choices(config["model"]["decoder_self_attention"], 4, Site.DECODER_SELF)) == 4
    assert config["task"]["_name"] == ("stream_language_modeling" if "stateful" in row else "language_modeling")


@pytest.mark.parametrize(("name", "stated", "found"), [
    ("small", 38, 41_350_144),
    ("big", 242, 247_263_232),
    ("16_layers", 242, 246_933_504),  # what Baevski & Auli's model has in fairseq
    ("32_layers", 484, 448_473_088),  # the thesis may have exchanged two digits
])
def test_presets_have_the_parameters_of_the_thesis_or_nearly(name: str, stated: int, found: int) -> None:
    """stated: millions.  267,744 entries: the words of WikiText-103 and fairseq's special symbols."""
    dictionary = Dictionary()
    for number in range(267_744 - len(dictionary)):
        dictionary.add_symbol(str(number))
    preset = argparse.Namespace(decoder_self_attention="softmax")
    ARCH_CONFIG_REGISTRY[f"structured_transformer_lm_wikitext103_{name}"](preset)
    with torch.device("meta"):
        config = language_model_config(**vars(preset))
        model = models.StructuredTransformerLanguageModel.build_model(config, task_of(dictionary))
    assert sum(parameter.numel() for parameter in model.parameters()) == found
    assert found / 1e6 == pytest.approx(stated, rel=0.1)
    assert len(model.decoder.layers) == preset.decoder_layers
    assert model.decoder.decoder_layerdrop == (0.2 if name == "32_layers" else 0.0)


def test_a_trained_layer_is_left_out_now_and_then(generator: torch.Generator) -> None:
    words = dictionary_of("abcdefg")
    model = small_language_model(words, decoder_layerdrop=0.5, dropout=0.0).train()
    tokens = torch.randint(4, len(words), (2, 5), generator=generator)
    outputs = {round(float(model(tokens)[0].sum().detach()), 4) for _ in range(40)}
    assert len(outputs) == 4, "each of two layers is there or not"
    model.eval()
    assert torch.equal(model(tokens)[0], model(tokens)[0])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A run of two updates on made-up lines."""
    folder = tmp_path_factory.mktemp("efficient")
    pieces = ["wo@@ rd one", "a wo@@ rd and two", "b"]
    for split, lines in {"train": pieces * 20, "valid": pieces, "test": [*pieces * 3, "", "two one"]}.items():
        (folder / f"{split}.txt").write_text("".join(f"{line}\n" for line in lines))
    fairseq(
        "train", binarize(folder, folder / "bin", only=".txt"), "--task", "language_modeling", "--sample-break-mode",
        "none", "--tokens-per-sample", "8", "--arch", "structured_transformer_lm", "--decoder-self-attention",
        "rfa(features=8)", *sizes("decoder", heads=2), "--optimizer", "adam", "--lr", "0.01", "--batch-size", "4",
        "--max-update", "2", "--save-dir", folder, "--no-epoch-checkpoints",
    )
    return SimpleNamespace(folder=folder, checkpoint=folder / "checkpoint_last.pt")


@pytest.mark.training
@pytest.mark.parametrize("context", [0, 3])
def test_perplexity_with_context_is_that_of_a_loop(trained: SimpleNamespace, context: int, capsys) -> None:
    """Blocks of 8 tokens, of which the first `context` are read alone; words are counted, not subwords."""
    folder, log, text = trained.folder, trained.folder / "eval.log", trained.folder / "test.txt"
    log.write_text(fairseq(
        "eval-lm", folder / "bin", "--path", trained.checkpoint, "--gen-subset", "test", "--tokens-per-sample", "8",
        "--task", "language_modeling", "--sample-break-mode", "none", "--batch-size", "8", "--context-window", context,
    ))
    assert word_perplexity.main([f"test_perplexity={log}:{text}", "--out", str(folder / "found.json")]) == 0
    (found,) = measurements.read(folder, ["found.json"])
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(trained.checkpoint)])
    model.eval()
    lines = text.read_text().splitlines()
    tokens = torch.cat([task.dictionary.encode_line(line, add_if_not_exist=False).long() for line in lines])
    source = torch.cat([tokens.new_tensor([task.dictionary.eos()]), tokens[:-1]])
    bits = 0.0
    for start in range(0, len(tokens), 8 - context):
        end, first = min(start + 8 - context, len(tokens)), max(0, start - context)
        with torch.no_grad():
            logits = model(source[None, first:end])[0][0, start - first :]
        bits += float(torch.nn.functional.cross_entropy(logits, tokens[start:end], reduction="sum")) / math.log(2)
    words = sum(not piece.endswith("@@") for line in lines for piece in line.split()) + len(lines)
    assert (found.metric, found.unit) == ("test_perplexity", "perplexity") and words < len(tokens)
    assert found.value == pytest.approx(2 ** (bits / words), rel=1e-3)
    for request, told in ((f"x={log}:{folder / 'train.txt'}", "tokens were evaluated"), (f"x={text}:{text}", "no loss"),
                          (str(log), "expected METRIC=LOG:TEXT")):
        assert word_perplexity.main([request, "--out", str(folder / "none.json")]) == 1
        assert told in capsys.readouterr().err and not (folder / "none.json").exists()
