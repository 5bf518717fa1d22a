import json
import os

import numpy as np
import pytest

from seqstruct.cli import main
from seqstruct.data.cfl.chart import log_probabilities
from seqstruct.data.cfl.folder import StringsRequest, read_meta, read_split, write_folder
from seqstruct.data.cfl.languages import LANGUAGES, get_language
from seqstruct.data.files import sha256

SMALL = {"train": 23, "valid": 13, "test_per_length": 3, "batch": 5, "lengths": (4, 15), "test_lengths": (4, 19)}


@pytest.fixture()
def folder(tmp_path):
    write_folder(StringsRequest("dyck", **SMALL), tmp_path / "dyck")
    return tmp_path / "dyck"


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_folder_read_back(name, tmp_path):
    request = StringsRequest(name, **{**SMALL, "lengths": (6, 15), "test_lengths": (6, 19)})
    made = write_folder(request, tmp_path / "out")
    meta, language = read_meta(tmp_path / "out"), get_language(name)
    assert meta == json.loads(json.dumps(made))
    lengths = language.valid_lengths(6, 15)
    for split, count in (("train", 23), ("valid", 13)):
        strings, log_probability = read_split(tmp_path / "out", split, meta)
        assert len(strings) == count
        assert {len(s) for s in strings} <= set(lengths)
        assert all(len({len(s) for s in strings[i : i + 5]}) == 1 for i in range(0, count, 5))
        assert meta["valid_length_counts"][split] == len(lengths)
    strings, log_probability = read_split(tmp_path / "out", "test", meta)
    assert [len(s) for s in strings] == [n for n in language.valid_lengths(6, 19) for _ in range(3)]
    np.testing.assert_allclose(log_probability, log_probabilities(language, strings), rtol=1e-15)
    assert not list(tmp_path.glob(".*"))


def test_seeds(tmp_path):
    """The test set has a seed of its own; the grammar changes what is drawn."""
    requests = {
        "one": StringsRequest("dyck", **SMALL),
        "again": StringsRequest("dyck", **SMALL),
        "two": StringsRequest("dyck", **SMALL, seed=2),
        "other": StringsRequest("dyck", **SMALL, test_seed=5),
        "written": StringsRequest("dyck", **SMALL, grammar="as-written"),
    }
    sums = {name: write_folder(request, tmp_path / name)["sha256"] for name, request in requests.items()}
    assert sums["one"] == sums["again"]
    assert sums["one"]["test.txt"] == sums["two"]["test.txt"]
    assert sums["one"]["train.txt"] == sums["other"]["train.txt"]
    for other, name in (("two", "train.txt"), ("two", "valid.txt"), ("other", "test.txt"), ("written", "test.txt")):
        assert sums["one"][name] != sums[other][name]


def test_training_and_validation_sets_differ(tmp_path):
    request = StringsRequest("marked-reversal", train=10, valid=10, test_per_length=1, lengths=(41, 41))
    write_folder(request, tmp_path / "out")
    assert (tmp_path / "out/train.txt").read_text() != (tmp_path / "out/valid.txt").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grammar": "mine"}, "published or as-written, not 'mine'"),
        ({"test_lengths": (9, 8)}, "the smaller first; got 9:8"),
        ({"train": 0}, "train is at least 1, not 0"),
        ({"test_per_length": 0}, "test-per-length is at least 1"),
        ({"seed": -1}, "seed is at least 0"),
    ],
)
def test_a_request_that_cannot_be_met_leaves_nothing(change, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write_folder(StringsRequest(**{"language": "dyck", **SMALL, **change}), tmp_path / "out")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["train.txt", "valid.txt", "valid.log_probability", "dict.txt"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "altered"])
def test_damaged_files_are_noticed(name, damage, folder):
    path = folder / name
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(data[:-7] if damage == "truncated" else data.replace(data[:1], b"]"))
    with pytest.raises(ValueError, match=f"{name}.*(is missing|truncated or altered)"):
        read_split(folder, name.split(".")[0].replace("dict", "train"), read_meta(folder))


def test_a_damaged_description(folder):
    path = folder / "meta.json"
    text = path.read_text()
    path.write_text(text[:40])
    with pytest.raises(ValueError, match="meta.json: truncated or altered"):
        read_meta(folder)
    for key in ("grammar", "batch", "lengths", "test_lengths", "valid_length_counts"):
        path.write_text(text.replace(f'"{key}"', '"other"'))
        with pytest.raises(ValueError, match=rf"meta.json is truncated or altered: KeyError\('{key}'\)"):
            read_meta(folder)
    path.unlink()
    with pytest.raises(ValueError, match="seqstruct prepare cfl"):
        read_meta(folder)


@pytest.mark.parametrize(
    ("text", "message"), [("( )\n\n[ ]\n", "line 2: an empty line"), ("( )\n[ x\n", "line 2: symbol 2, 'x'")]
)
def test_lines_that_are_no_strings(text, message, folder):
    """Also where the checksum was brought up to date by hand."""
    (folder / "train.txt").write_text(text)
    meta = read_meta(folder)
    meta["sha256"]["train.txt"] = sha256(folder / "train.txt")
    with pytest.raises(ValueError, match=message):
        read_split(folder, "train", meta)


def test_other_mismatches(folder):
    meta = read_meta(folder)
    with pytest.raises(ValueError, match="no split 'dev'; there are: train, valid, test"):
        read_split(folder, "dev", meta)
    (folder / "test.log_probability").write_text("-1.5\n")
    meta["sha256"]["test.log_probability"] = sha256(folder / "test.log_probability")
    with pytest.raises(ValueError, match="1 log-probabilities for"):
        read_split(folder, "test", meta)
    (folder / "test.log_probability").write_text("-1.5\nmany\n")
    meta["sha256"]["test.log_probability"] = sha256(folder / "test.log_probability")
    with pytest.raises(ValueError, match="test.log_probability, line 2: 'many' is no log-probability"):
        read_split(folder, "test", meta)


def test_the_command(tmp_path, capsys, refused):
    out = tmp_path / "made"
    options = "--train 10 --valid 5 --test-per-length 1 --lengths 4:8 --test-lengths 4:9 --batch 5 --seed 3".split()
    assert main(["prepare", "cfl", "dyck", "--out", str(out), *options]) == 0
    assert "10 training and 5 validation strings of 3 lengths (4 to 8), 3 test strings" in capsys.readouterr().out
    assert read_meta(out)["seed"] == 3
    for arguments, message in (
        (["dyck", "--out", str(tmp_path / "x"), "--lengths", "7:7"], "no string of length 7"),
        (["dyck", "--out", str(out), "--lengths", "7"], "expected LOW:HIGH"),
    ):
        assert message in refused("prepare", "cfl", *arguments)
    assert not (tmp_path / "x").exists()
