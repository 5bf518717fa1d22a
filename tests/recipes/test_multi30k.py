"""The recipe of Multi30k, its data script and its YAML files."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from seqstruct.attention import Site
from seqstruct.attention.plan import parse_choices
from seqstruct.data.aligned import check_content, find_text
from seqstruct.data.made_up.translation import made_up_pairs
from seqstruct.data.multi30k import LANGUAGES, NAMES, SHA256
from seqstruct.harness.launch import load_recipe

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "data-prep" / "multi30k.sh"
recipe = load_recipe(ROOT / "recipes" / "multi30k" / "multi30k.py")
module = sys.modules[type(recipe).__module__]


@pytest.mark.parametrize("scale", ["smoke", "small", "paper"])
def test_the_stack_is_in_the_third_layer_of_both_sides(scale):
    setting = module.SETTINGS[scale]
    for row, mechanism in (("Tf+Sup", "superposition_stack"), ("Tf+Nd", "nondeterministic_stack")):
        for site in (Site.ENCODER_SELF, Site.DECODER_SELF):
            choices = parse_choices(module.plan(row, setting), setting.layers, site)
            names = [choice.name for choice in choices]
            assert names == ["softmax"] * 2 + [mechanism] + ["softmax"] * (setting.layers - 3)
    options = module.train_options("Tf+Sup", setting)
    for side in ("encoder", "decoder"):
        assert options[options.index(f"--{side}-self-attention") + 1] == module.plan("Tf+Sup", setting)
        assert options[options.index(f"--{side}-layers") + 1] == str(setting.layers)


def test_rows_differ_in_their_configuration():
    hashes = {recipe.configuration_hash(cell) for s in ("smoke", "small", "paper") for cell in
              [type(recipe.cells(s)[0])(row, 1, s) for row in recipe.rows]}
    assert len(hashes) == 9


def test_made_up_pairs_are_aligned_and_repeat():
    pairs = made_up_pairs(13, random.Random(5))
    assert pairs == made_up_pairs(13, random.Random(5))
    assert pairs != made_up_pairs(13, random.Random(6))
    words = {"Hund": "dog", "Vogel": "bird", "Ball": "ball", "Baum": "tree", "Tisch": "table"}
    for german, english in pairs:
        subject, seen = german.split()[1], german.split()[5]
        assert english.split()[1] == words[subject]
        assert english.split()[-1] == f"{words[seen]}."


@pytest.mark.parametrize(("name", "row"), [("tf", "Tf"), ("sup", "Tf+Sup"), ("nd", "Tf+Nd")])
def test_yaml_says_what_the_recipe_does(name, row):
    folder = ROOT / "configs" / "multi30k"
    base = yaml.safe_load((folder / "multi30k.yaml").read_text())
    chosen = yaml.safe_load((folder / "row" / f"{name}.yaml").read_text())["model"]
    setting = module.SETTINGS["small"]
    assert base["hydra"]["job"]["chdir"] is False
    for side in ("encoder", "decoder"):
        assert chosen[f"{side}_self_attention"] == module.plan(row, setting)
    options = dict(zip(setting.options[::2], setting.options[1::2], strict=True))
    model = {f"--{key.replace('_', '-')}": str(value) for key, value in base["model"].items()}
    for flag in ("--encoder-embed-dim", "--decoder-embed-dim", "--encoder-ffn-embed-dim", "--dropout"):
        assert model[flag] == options[flag]
    assert base["optimization"]["lr"] == [float(options["--lr"])]
    assert base["optimization"]["max_epoch"] == setting.epochs
    assert base["dataset"]["max_tokens"] == setting.max_tokens
    assert str(base["lr_scheduler"]["total_num_update"]) == options["--total-num-update"]
    assert str(base["lr_scheduler"]["warmup_updates"]) == options["--warmup-updates"]


def prepare(*arguments):
    environment = {**os.environ, "PYTHON": sys.executable, "OMP_NUM_THREADS": "1"}
    return subprocess.run(["bash", SCRIPT, *arguments], capture_output=True, text=True, env=environment)


def test_the_script_binarises_and_leaves_raw_references(tmp_path):
    module.write_made_up(tmp_path / "raw")
    done = prepare("--from", tmp_path / "raw", "--unchecked", "--vocabulary", "90", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "out" / "bin").iterdir()}
    assert {"dict.de.txt", "dict.en.txt", "train.de-en.de.bin", "valid.de-en.en.idx", "test.de-en.en.bin"} <= names
    joined = (tmp_path / "out" / "bin" / "dict.de.txt").read_bytes()
    assert joined == (tmp_path / "out" / "bin" / "dict.en.txt").read_bytes()
    raw = (tmp_path / "raw" / "test_2016_flickr.en").read_bytes()
    assert (tmp_path / "out" / "raw" / "test.en").read_bytes() == raw
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "raw"]
    again = prepare("--from", tmp_path / "raw", "--unchecked", "--out", tmp_path / "out")
    assert again.returncode == 1
    assert "exists and is not empty" in again.stderr


@pytest.mark.parametrize(("arguments", "message"), [
    (["--from", "{raw}"], "truncated or altered"),
    (["--from", "{raw}", "--unchecked", "--src", "fr"], "train.fr: no such file"),
    (["--from", "absent"], "absent is not a folder"),
    (["--src", "cs"], "argument --src: invalid choice: 'cs'"),
    (["--unchecked"], "--unchecked needs --from"),
    (["--form", "x"], "unrecognized arguments: --form x"),
    (["--from"], "argument --from: expected one argument"),
])
def test_the_script_refuses_in_one_sentence_and_leaves_nothing(tmp_path, arguments, message):
    module.write_made_up(tmp_path / "raw")
    words = [word.format(raw=tmp_path / "raw") for word in arguments]
    done = prepare("--out", tmp_path / "out", *words)
    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]


def test_the_script_explains_itself():
    done = prepare("--help")
    assert done.returncode == 0
    for option in ("--from", "--src", "--trg", "--subwords", "--vocabulary", "--lowercase", "--out"):
        assert option in done.stdout


def test_the_corpus_on_disk_has_the_official_checksums(reference):
    folder = reference / "data" / "multi30k"
    assert len(SHA256) == 9
    check_content([find_text(folder / name, side) for name in NAMES.values() for side in LANGUAGES], SHA256)
