"""The recipes of recurrent translation models and their YAML files."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from seqstruct.attention import Shape, Site
from seqstruct.data.made_up.translation import multi30k
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.progress import Progress
from seqstruct.harness.recipe import Cell
from seqstruct.harness.run import Run
from seqstruct.models import rnn_presets
from seqstruct.models.rnn_translation import RecurrentTranslationConfig, RecurrentTranslationModel, parse_attention
from tests.models.building import dictionary_of, task_of
from tests.models.front_door import PLUGIN

ROOT = Path(PLUGIN).parent
structured = load_recipe(ROOT / "recipes" / "structured_attention" / "translation.py")
SCALES = ("smoke", "small", "paper")
BOTH = pytest.mark.parametrize("recipe", [structured], ids=lambda recipe: recipe.paper)


def module(recipe):
    return sys.modules[type(recipe).__module__]


def all_cells(recipe):
    return [Cell(row, 1, scale) for scale in SCALES for row in recipe.rows]


@BOTH
def test_every_cell_has_a_configuration_of_its_own(recipe):
    cells = all_cells(recipe)
    assert len({recipe.configuration_hash(cell) for cell in cells}) == len(cells)
    for cell in cells:
        assert recipe.estimate(cell).minutes > 0
        assert "words" in recipe.dataset(cell)


@BOTH
@pytest.mark.parametrize("scale", ["smoke", "small"])
def test_the_options_build_a_model(recipe, scale):
    dictionary = dictionary_of("abc")
    models = getattr(module(recipe), "MODELS", {})
    for row in recipe.rows:
        if row in models and not models[row].preset.startswith("rnn"):
            continue
        words = module(recipe).train_options(Cell(row, 1, scale))
        given = {
            word[2:].replace("-", "_"): value
            for word, value in zip(words, words[1:], strict=False)
            if word.startswith("--")
        }
        cfg = argparse.Namespace()
        getattr(rnn_presets, given["arch"], lambda cfg: None)(cfg)
        for name, value in given.items():
            default = getattr(RecurrentTranslationConfig(), name, None)
            if default is not None:
                setattr(cfg, name, type(default)(value) if isinstance(default, (int, float)) else value)
        model = RecurrentTranslationModel.build_model(RecurrentTranslationConfig(**vars(cfg)), task_of(dictionary))
        assert (model.decoder.attention is None) == (parse_attention(cfg.cross_attention) is None)


def test_footnote_6_starts_where_it_says(tmp_path, monkeypatch):
    """The model that starts from a trained sigmoid model trains that one first, in its own folder."""
    trained = []

    def fake(self, data, options, *, epochs):
        trained.append((self.cell.row, [w for w in options if w == "--finetune-from-model"]))
        return self.folder / "checkpoints" / "checkpoint_best.pt"

    monkeypatch.setattr(Run, "fairseq_train", fake)
    with Progress() as progress:
        run = Run(structured, Cell("words, from sigmoid", 1, "small"), tmp_path, progress=progress)
        structured.train(run, tmp_path)
        other = Run(structured, Cell("words, sigmoid", 1, "small"), tmp_path, progress=progress)
    assert trained == [("words, sigmoid", []), ("words, from sigmoid", ["--finetune-from-model"])]
    assert other.folder.is_dir()


def test_the_published_schedule_is_appendix_a_3s():
    """Halved after every epoch from the first one without improvement on."""
    for row in structured.rows:
        words = module(structured).train_options(Cell(row, 1, "paper"))
        given = {w: v for w, v in zip(words, words[1:], strict=False) if w.startswith("--")}
        assert given["--lr-scheduler"] == "decay_from_plateau" and "--decay-after-epoch" not in given
        assert (given["--lr"], given["--lr-shrink"], given["--batch-size"]) == ("1.0", "0.5", "128")


def test_all_rows_score_by_the_same_bilinear_map():
    """Appendix A.3; so that a row differs from another by its weights alone."""
    for name, plan in module(structured).ATTENTIONS.items():
        attention = parse_attention(plan).build(Shape.of(Site.CROSS, 6))
        assert [n for n, _ in attention.named_parameters() if n != "pairwise"] == ["score.key_proj.weight"], name


def test_the_licensed_corpus_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.delenv("SEQSTRUCT_REFERENCE", raising=False)
    with Progress() as progress:
        run = Run(structured, Cell("characters, structured", 1, "paper"), tmp_path, progress=progress)
        with pytest.raises(ValueError, match="ASPEC comes by application alone"):
            structured.prepare(run)


@pytest.mark.parametrize("row", ["simple", "sigmoid", "structured"])
def test_yaml_says_what_the_recipe_of_kim_does(row):
    folder = ROOT / "configs" / "structured_attention"
    base = yaml.safe_load((folder / "translation.yaml").read_text())
    chosen = yaml.safe_load((folder / "translation_row" / f"{row}.yaml").read_text())["model"]
    words = module(structured).train_options(Cell(f"words, {row}", 1, "small"))
    options = {w: v for w, v in zip(words, words[1:], strict=False) if w.startswith("--")}
    assert base["hydra"]["job"]["chdir"] is False
    assert chosen["cross_attention"] == options["--cross-attention"]
    for flag, found in (
        ("--embed-dim", base["model"]["embed_dim"]), ("--hidden-size", base["model"]["hidden_size"]),
        ("--dropout", base["model"]["dropout"]), ("--batch-size", base["dataset"]["batch_size"]),
        ("--lr", base["optimization"]["lr"][0]), ("--warmup-updates", base["lr_scheduler"]["warmup_updates"]),
        ("--total-num-update", base["lr_scheduler"]["total_num_update"]),
        ("--label-smoothing", base["criterion"]["label_smoothing"]), ("--criterion", base["criterion"]["_name"]),
    ):
        assert str(found) == options[flag], flag
    assert base["optimization"]["max_epoch"] == module(structured).SETTINGS["small"].epochs["words"]


@pytest.mark.slow
def test_yaml_trains(tmp_path):
    """fairseq-hydra-train with a row's YAML and overrides of the sizes."""
    multi30k(tmp_path / "raw")
    done = subprocess.run(
        [
            sys.executable, "-m", "seqstruct", "prepare", "word-pairs", "--train", tmp_path / "raw" / "train",
            "--valid", tmp_path / "raw" / "val", "--test", tmp_path / "raw" / "test_2016_flickr", "--src", "de",
            "--trg", "en", "--out", tmp_path / "out",
        ],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [
            sys.executable, "-m", "fairseq_cli.hydra_train", "--config-dir", ROOT / "configs" / "structured_attention",
            "--config-name", "translation", "translation_row=sigmoid", f"task.data={tmp_path / 'out' / 'bin'}",
            f"common.user_dir={PLUGIN}", "common.cpu=true", f"checkpoint.save_dir={tmp_path / 'save'}",
            "optimization.max_update=4", "dataset.num_workers=0", "model.hidden_size=16", "model.embed_dim=16",
        ],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "save" / "checkpoint_last.pt").exists()
