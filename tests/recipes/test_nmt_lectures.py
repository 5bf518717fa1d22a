"""The recipes of the lectures: their rows, settings and published figures belong together."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fairseq import options

import seqstruct.models
import seqstruct.tasks  # noqa: F401
from seqstruct.harness.launch import load_recipe
from seqstruct.harness.paper import read_tables
from seqstruct.harness.progress import Progress
from seqstruct.harness.recipe import Cell
from seqstruct.harness.run import Run, write_json

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "recipes" / "nmt_lectures"
PUBLISHED = ("sutskever", "luong", "convs2s", "transformer", "sentencepiece_pairings", "subword_regularization")
recipes = {name: load_recipe(FOLDER / f"{name}.py") for name in
           ("multi30k", "transformer_long", "bpe_statistics", "cho", *PUBLISHED)}  # fmt: skip
systems = sys.modules["systems"]
TRANSLATION = [name for name in recipes if name not in ("bpe_statistics", "cho")]


def cells(recipe, scales=("smoke", "small", "paper")):
    left_out = ("small",) if recipe.family in ("published translation tables", "phrase scores") else ()
    return [Cell(row, 1, scale) for scale in scales if scale not in left_out for row in recipe.rows]


@pytest.mark.parametrize("name", recipes)
def test_every_cell_has_a_configuration_of_its_own(name):
    recipe = recipes[name]
    found = cells(recipe)
    assert len({recipe.configuration_hash(cell) for cell in found}) == len(found)
    for cell in found:
        assert recipe.estimate(cell).minutes > 0
        assert recipe.dataset(cell)
        json.dumps(recipe.settings(cell), allow_nan=False)
    assert set(recipe.smoke_rows) <= set(recipe.rows)


@pytest.mark.parametrize("name", recipes)
def test_rows_are_those_of_the_published_table(name):
    tables = {table.name: table for table in read_tables(FOLDER)}
    table = tables[recipes[name].table]
    assert set(recipes[name].rows) <= {entry.row for entry in table.published}


def test_figures_are_the_sources():
    tables = {table.name: {(p.row, p.metric): p.value for p in table.published} for table in read_tables(FOLDER)}
    assert tables["subword-regularization"]["Unigram w/ SR (l = 64, alpha = 0.1)", "test_tokenized_bleu"] == 25.04
    assert tables["sentencepiece"]["en-ja SentencePiece/Word", "test_tokenized_bleu"] == 19.94
    assert tables["luong"]["local-p (general)", "test_tokenized_bleu_unknown_words_replaced"] == 20.9
    assert tables["transformer"]["EN-FR Transformer (big)", "test_tokenized_bleu"] == 41.0
    assert tables["bpe-statistics"]["BPE (joint)", "unknown"] == 32


@pytest.mark.parametrize("name", TRANSLATION)
def test_fairseq_takes_the_options(name):
    recipe = recipes[name]
    for cell in cells(recipe):
        system = recipe.system(cell)
        decode = ["data", "--path", "model", "--gen-subset", "test", *system.decode]
        options.parse_args_and_arch(options.get_generation_parser(), decode)
        if system.members:
            assert not system.options
            for row, seed in system.members:
                assert recipe.system(Cell(row, seed, cell.scale)).options
            continue
        task = "translation_subword_regularization" if system.sampled else "translation"
        words = ["data", "--task", task, *system.options, *system.sampled]
        args = options.parse_args_and_arch(options.get_training_parser(), words)
        assert args.task == task
        assert system.epochs > 0


def test_small_models_are_small_versions_of_one_setting():
    lineage = recipes["multi30k"]
    for row in lineage.rows:
        system = lineage.system(Cell(row, 1, "small"))
        if not system.members:
            found = options.parse_args_and_arch(options.get_training_parser(), ["data", *system.options])
            assert (found.batch_size, found.label_smoothing) == (64, 0.1)
            sizes = {getattr(found, n) for n in ("hidden_size", "embed_dim", "decoder_embed_dim") if hasattr(found, n)}
            assert 128 in sizes


def test_there_is_no_small_scale_of_a_published_table():
    for name in PUBLISHED:
        with pytest.raises(ValueError, match="the scales smoke and paper; at scale small multi30k.py"):
            recipes[name].cells("small")


def test_a_phrase_table_is_asked_for(tmp_path):
    with pytest.raises(ValueError, match="no phrase table is free"):
        recipes["cho"].cells("small")
    with Progress() as progress:
        run = Run(recipes["cho"], Cell("RNN", 1, "paper"), tmp_path, progress=progress, source=tmp_path)
        with pytest.raises(ValueError, match="phrase-table or phrase-table.gz of Moses"):
            recipes["cho"].prepare(run)


def test_a_corpus_that_data_prep_makes_is_asked_for(tmp_path):
    with Progress() as progress:
        cell = Cell("EN-DE Transformer (base model)", 1, "paper")
        run = Run(recipes["transformer"], cell, tmp_path, progress=progress)
        with pytest.raises(ValueError, match=r"--from DIR is the folder that data-prep/wmt14.sh made"):
            recipes["transformer"].prepare(run)
        made = tmp_path / "made"
        (made / "bin").mkdir(parents=True)
        (made / "bin" / "dict.en.txt").touch()
        run = Run(recipes["transformer"], cell, tmp_path, progress=progress, source=made)
        with pytest.raises(ValueError, match=r"raw/test.de: no such file"):
            recipes["transformer"].prepare(run)
        (made / "raw").mkdir()
        (made / "raw" / "test.de").touch()
        assert recipes["transformer"].prepare(run) == made


def test_an_ensemble_decodes_its_members(tmp_path, monkeypatch):
    """Members train in their own folders, and what they took is this run's."""
    trained = []

    def fake(self, data, options, *, epochs):
        trained.append((self.cell.row, self.cell.seed))
        write_json(self.folder / "trained.json", {"seconds": 60.0, "peak_memory": 5, "parameters": 7})
        return self.folder / "checkpoints" / "checkpoint_best.pt"

    monkeypatch.setattr(Run, "fairseq_train", fake)
    lineage = recipes["multi30k"]
    monkeypatch.setattr(type(lineage), "prepare", lambda self, run: tmp_path)
    with Progress() as progress:
        for row, members in (("Transformer, ensemble of 2", [("Transformer", 1), ("Transformer", 2)]),
                             ("GNMT, coverage", [("GNMT", 3)])):  # fmt: skip
            trained.clear()
            run = Run(lineage, Cell(row, 3, "small"), tmp_path, progress=progress)
            run.folder.mkdir(parents=True)
            checkpoint = lineage.train(run, tmp_path)
            assert trained == members
            assert len(str(checkpoint).split(":")) == len(members)
            assert (run.parameters, run.peak_memory) == (7 * len(members), 5)


def test_speeds_are_read_from_the_logs(tmp_path):
    log = tmp_path / "decode.log"
    speeds = "Translated 1,000 sentences (9 tokens) in 2.0s (50.5 sentences/s, 4 tokens/s)"
    log.write_text(f"INFO:fairseq_cli.generate:{speeds}\n")
    assert systems.sentences_per_second(log) == 50.5
    log.write_text("nothing\n")
    with pytest.raises(ValueError, match="expected the line of fairseq-generate"):
        systems.sentences_per_second(log)


def test_parallel_text_is_prepared_by_one_command(tmp_path):
    """data-prep/parallel.sh: another kind for each side, and its refusals."""
    systems.write_made_up(tmp_path)
    names = {"--train": "train", "--valid": "val", "--test": "test_2016_flickr"}
    common = ["--src", "en", "--trg", "de", "--out", str(tmp_path / "out")]

    def call(*words):
        return subprocess.run(
            ["env", f"PYTHON={sys.executable}", "bash", ROOT / "data-prep" / "parallel.sh", *words],
            capture_output=True, text=True,
        )  # fmt: skip

    prefixes = [word for option, name in names.items() for word in (option, str(tmp_path / name))]
    done = call(*prefixes, *common, "--subwords", "words,bpe", "--vocabulary", "20,90")
    assert done.returncode == 0, done.stderr
    made = tmp_path / "out"
    assert {p.name for p in made.iterdir()} == {
        "bin", "raw", "text", "words.en.txt", "codes.de.bpe", "corpus.json", "meta.json",
    }
    assert (made / "bin" / "dict.en.txt").read_text() != (made / "bin" / "dict.de.txt").read_text()
    for words, sentence in (
        ([*prefixes, *common], "exists and is not empty"),
        (["--train", "x"], "the following arguments are required: --out, --src, --trg"),
        ([*prefixes, *common[:-1], "x", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["--train"], "argument --train: expected one argument"),
    ):
        done = call(*words)
        assert done.returncode in (1, 2)
        assert sentence in done.stderr
    with open(tmp_path / "train.en", "a", encoding="utf-8") as stream:
        stream.write("one more\n")
    done = call(*prefixes, "--src", "en", "--trg", "de", "--out", str(tmp_path / "again"))
    assert done.returncode == 1
    assert "line 401 has no counterpart" in done.stderr
    assert not list(tmp_path.glob("again*"))
