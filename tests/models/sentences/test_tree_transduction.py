"""`tree_transduction`: its formulas, decoding step by step, through fairseq's commands, and hydra beside argparse."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor

import seqstruct
from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.bridge.passes import collect_readings
from seqstruct.data.tree_transduction.folder import FormulasRequest, read_meta, read_split, write_folder
from seqstruct.data.tree_transduction.formula import INFIX_SYMBOLS, PREFIX_SYMBOLS
from seqstruct.models.sentences import tree_transduction
from seqstruct.models.sentences.tree_transduction import TreeTransductionModel, TreeTransductionModelConfig
from seqstruct.plots.attention import attention
from seqstruct.plots.views import layer_views
from seqstruct.scoring.hypotheses import read_generate
from tests.models.building import assert_same_by_steps
from tests.models.front_door import PLUGIN, fairseq, nearly_equal

ROOT = Path(PLUGIN).parent
PLANS = ["none", "simple(hidden_size=3, score_size=4)", "dependency(hidden_size=3, score_size=4, root_token=True)"]
OPTIONS = (
    "--task", "tree_transduction", "--criterion", "cross_entropy", "--sentence-avg", "--optimizer", "sgd", "--lr", 1,
    "--lr-scheduler", "decay_from_plateau", "--decay-after-epoch", 9, "--clip-norm", 1, "--batch-size", 20,
    "--required-batch-size-multiple", 1, "--update-epoch-batch-itr", "True", "--no-epoch-checkpoints", "--seed", 1,
)


class Symbols:
    """The two dictionaries that a model asks its task for."""

    def __init__(self) -> None:
        self.source_dictionary, self.target_dictionary = Dictionary(), Dictionary()
        for dictionary, symbols in ((self.source_dictionary, PREFIX_SYMBOLS), (self.target_dictionary, INFIX_SYMBOLS)):
            for symbol in symbols:
                dictionary.add_symbol(symbol)


def build(plan: str, **options: Any) -> TreeTransductionModel:
    config = TreeTransductionModelConfig(encoder_self_attention=plan, initialization_bound=0.8, **options)
    return TreeTransductionModel.build_model(config, Symbols()).double().eval()


def draw(generator: torch.Generator, batch: int, length: int, symbols: int) -> Tensor:
    return torch.randint(4, 4 + symbols, (batch, length), generator=generator)


def sources(generator: torch.Generator) -> Tensor:
    tokens = draw(generator, 3, 7, len(PREFIX_SYMBOLS))
    tokens[1, 4:] = tokens[2, 1:] = 1
    return tokens


def test_the_formulas_of_the_source(generator: torch.Generator) -> None:
    """Appendix A.2 written out, with the decoder's LSTM as torch has it."""
    model = build(PLANS[2], hidden_size=5)
    tokens, previous = sources(generator), draw(generator, 3, 6, len(INFIX_SYMBOLS))
    encoder, decoder = model.encoder, model.decoder
    lstm = torch.nn.LSTM(5, 5, batch_first=True).double()
    with torch.no_grad():
        for name, value in (
            ("weight_ih", decoder.layers[0].weight_ih), ("weight_hh", decoder.layers[0].weight_hh),
            ("bias_ih", decoder.layers[0].bias), ("bias_hh", torch.zeros(20)),
        ):
            getattr(lstm, f"{name}_l0").copy_(value)
    found, _ = model(tokens, None, previous)
    hidden = lstm(decoder.embed_tokens(previous))[0]
    for row, length in enumerate((7, 4, 1)):
        x = encoder.embed_tokens(tokens[row : row + 1, :length])
        parents = encoder.attention(x, x, x)[0].output
        memory = torch.cat([x, parents], 2)[0]
        weights = (hidden[row] @ decoder.attention.key_layer(memory).t()).softmax(1)
        features = torch.tanh(decoder.output.combination(torch.cat([weights @ memory, hidden[row]], 1)))
        torch.testing.assert_close(found[row], decoder.output_projection(features), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("plan", PLANS)
def test_step_by_step_with_reordering(plan: str, generator: torch.Generator) -> None:
    tokens, previous = sources(generator), draw(generator, 3, 6, len(INFIX_SYMBOLS))
    orders = {3: [2, 0, 0, 1]}
    assert_same_by_steps(build(plan, hidden_size=5), previous, tokens, orders=orders, rtol=1e-9, atol=1e-11)


def test_readings_are_collected(generator: torch.Generator) -> None:
    model = build(PLANS[2], hidden_size=5)
    tokens = sources(generator)
    with collect_readings() as readings:
        model(tokens, None, draw(generator, 3, 6, len(INFIX_SYMBOLS)))
    (own, cross) = readings
    assert own.site.value == "encoder_self" and cross.site.value == "cross"
    assert own.reading.extra["marginals"].shape == own.reading.extra["heads"].shape + (7,) == (3, 7, 7)
    assert cross.reading.weights.shape == (3, 1, 6, 7)
    torch.testing.assert_close(cross.reading.weights.sum(3), torch.ones(3, 1, 6, dtype=torch.float64))


def test_options_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="nondeterministic_stack|no attention is called 'trees'"):
        build("trees")
    with pytest.raises(ValueError, match="segmentation does not work at encoder_self"):
        build("segmentation")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tree_transduction") / "formulas"
    write_folder(FormulasRequest(train=60, valid=8, test=4, depths=(1, 2), test_depths=(1, 3)), path)
    return path


@pytest.mark.training
@pytest.mark.parametrize("kind", ["none", "simple", "structured"])
def test_trained_and_decoded_through_fairseq(kind: str, folder: Path, tmp_path: Path) -> None:
    printed = fairseq(
        "train", folder, *OPTIONS, "--arch", f"tree_transduction_{kind}", "--optimizer", "adam", "--lr", 0.02,
        "--batch-size", 10, "--max-epoch", 4, "--save-dir", tmp_path,
    )
    losses = [float(loss) for loss in re.findall(r"valid on 'valid' subset \| loss (\S+)", printed)]
    assert len(losses) == 4 and min(losses) < 0.95 * losses[0]
    generate = (
        folder, "--task", "tree_transduction", "--path", tmp_path / "checkpoint_best.pt", "--beam", 5, "--max-len-a", 0,
        "--max-len-b", 30,
    )
    output = fairseq("generate", *generate, "--batch-size", 5)
    hypotheses = read_generate(output.splitlines(), "generate", 12)
    assert all(set(hypothesis.split()) <= set(INFIX_SYMBOLS) for hypothesis in hypotheses)
    alone = read_generate(fairseq("generate", *generate, "--batch-size", 1).splitlines(), "generate", 12)
    assert nearly_equal(hypotheses, alone)
    sources_shown = dict(re.findall(r"^S-(\d+)\t(.*)$", output, re.M))
    split = read_split(folder, "test", read_meta(folder))
    assert [sources_shown[str(i)].split() for i in range(12)] == split.prefix
    of_best = re.findall(r"^H-(\d+)\t(\S+)\t(.*)$", output, re.M)
    loaded = seqstruct.load(tmp_path / "checkpoint_best.pt")
    for number, score, text in of_best[:5]:  # the search's own, in bits and over the length: sources have no end
        nats = float(score) * math.log(2) * (len(text.split()) + 1)
        assert loaded.score(sources_shown[number], text) == pytest.approx(nats, rel=1e-4)
    views = layer_views(tmp_path / "checkpoint_best.pt", "$ ( + 3 5 )", target="3 + 5")
    assert [view.title for view in views] == ["encoder self, layer 1", "cross, layer 1"][kind == "none" :]
    assert views[-1].rows == ["</s>", "3", "+", "5"] and views[-1].columns == "$ ( + 3 5 )".split()
    if kind == "structured":
        assert views[0].weights.shape == (1, 6, 6) and views[0].best.sum(1).tolist() == [0, 1, 1, 1, 1, 1]
        figure = attention(views)
        assert len(figure.axes[0].collections[0].get_offsets()) == 5


def test_errors_of_the_front_door(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="seqstruct prepare tree_transduction"):
        fairseq("train", tmp_path, *OPTIONS, "--arch", "tree_transduction_none", "--save-dir", tmp_path)
    with pytest.raises(ValueError, match="encoder_self attention: cannot read"):
        fairseq(
            "train", folder, *OPTIONS, "--arch", "tree_transduction", "--encoder-self-attention", "simple(",
            "--save-dir", tmp_path,
        )


@pytest.mark.training
def test_hydra_equals_argparse(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fairseq(
        "hydra-train", "--config-dir", ROOT / "configs" / "structured_attention" / "tree_transduction",
        "--config-name", "train", "row=simple", f"task.data={folder}", f"checkpoint.save_dir={tmp_path / 'hydra'}",
        "optimization.max_update=3",
    )
    fairseq(
        "train", folder, *OPTIONS, "--arch", "tree_transduction_simple", "--max-update", 3, "--save-dir",
        tmp_path / "argparse",
    )
    states = [load_checkpoint(tmp_path / name / "checkpoint_last.pt")["model"] for name in ("hydra", "argparse")]
    torch.testing.assert_close(*states, rtol=0, atol=0)


@pytest.mark.parametrize("kind, plan", [("none", "none"), ("simple", "SIMPLE"), ("structured", "STRUCTURED")])
def test_presets(kind: str, plan: str) -> None:
    class Options:
        pass

    options = Options()
    ARCH_CONFIG_REGISTRY[f"tree_transduction_{kind}"](options)
    assert options.hidden_size == 50 and options.dropout == 0.0 and options.initialization_bound == 0.1
    assert options.encoder_self_attention == getattr(tree_transduction, plan, plan)
