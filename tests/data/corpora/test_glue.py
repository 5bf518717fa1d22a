"""GLUE from stand-ins of its archives: what fairseq's sentence_prediction reads, and what is refused."""

from __future__ import annotations

import json

import pytest
from fairseq.data.encoders.gpt2_bpe_utils import bytes_to_unicode
from fairseq.tasks.sentence_prediction import SentencePredictionConfig, SentencePredictionTask

from seqstruct.data.corpora.glue import TASKS, load_encoding, read_table
from tests.data.scripts import pack_zip, run

HEADERS = {
    "mnli": "index\tsentence1\tx\tsentence2\tgold_label", "qnli": "index\tquestion\tsentence\tlabel",
    "qqp": "id\tqid1\tquestion1\tquestion2\tis_duplicate", "sst-2": "sentence\tlabel",
}
ROWS = {
    "mnli": "{i}\tThe cat\tx\tA cat’s {i}\t{label}", "qnli": "{i}\tThe cat ?\tA \"cat {i}\t{label}",
    "qqp": "{i}\t1\tWho {i}?\t\t{label}", "sst-2": "the cat {i} \t{label}",
}


def table(name, split, count):
    """A .tsv of the task; test sets have no label."""
    task = TASKS[name]
    rows = [HEADERS[name]] + [
        ROWS[name].format(i=i, label=task.labels[i % len(task.labels)]) for i in range(count)]
    if split.startswith("test"):
        rows = [row.rpartition("\t")[0] for row in rows]
    return "".join(row + "\n" for row in rows)


def write_encoding(folder):
    """Bytes, and two merges."""
    folder.mkdir(parents=True, exist_ok=True)
    symbols = [*bytes_to_unicode().values(), "th", "the"]
    (folder / "encoder.json").write_text(json.dumps({symbol: i for i, symbol in enumerate(symbols)}))
    (folder / "vocab.bpe").write_text("#version: 0.2\nt h\nth e\n")
    (folder / "dict.txt").write_text("".join(f"{i} {1000 - i}\n" for i in reversed(range(len(symbols)))))


def write_raw(folder, name):
    write_encoding(folder)
    task = TASKS[name]
    sizes = {split: 7 if split == "train" else 5 for split in task.splits}
    members = {f"{task.folder}/{file}.tsv": table(name, split, sizes[split]) for split, file in task.splits.items()}
    members |= {"elsewhere/train.tsv": "not this\n", "OTHER/dev.tsv": "nor this\n"}
    pack_zip(folder / task.remote.file, members)


def load(folder, name, split):
    """The split's samples as the task reads them."""
    config = SentencePredictionConfig(
        data=str(folder), num_classes=len(TASKS[name].labels), init_token=0, separator_token=2, max_positions=512,
        no_shuffle=True, seed=1, regression_target=False, shorten_data_split_list="",
    )
    task = SentencePredictionTask.setup_task(config)
    return task, task.load_dataset(split)


@pytest.mark.parametrize("name", ["mnli", "sst-2"])
def test_the_task_reads_the_folder(tmp_path, name):
    write_raw(tmp_path / "raw", name)
    done = run("glue", "--task", name, "--from", tmp_path / "raw", "--out", tmp_path / "out", "--unchecked")
    assert done.returncode == 0, done.stderr
    assert f"for --num-classes {len(TASKS[name].labels)}" in done.stdout
    task, data = load(tmp_path / "out", name, "valid")
    assert len(data) == 5
    encode = load_encoding(tmp_path / "raw" / "encoder.json", tmp_path / "raw" / "vocab.bpe")
    sample = data.collater([data[i] for i in range(5)])
    labels = [task.label_dictionary[int(i) + task.label_dictionary.nspecial] for i in sample["target"].view(-1)]
    assert labels == [TASKS[name].labels[i % len(TASKS[name].labels)] for i in range(5)]
    for i, row in enumerate(sample["net_input"]["src_tokens"]):
        texts = {"mnli": ["The cat", f"A cat’s {i}"], "sst-2": [f"the cat {i}"]}[name]
        expected = " </s> </s> ".join(encode(text) for text in texts)
        assert task.dictionary.string(row[row != task.dictionary.pad()], include_eos=True) == f"{expected} </s>"
        assert row[0] == task.dictionary.bos()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "raw"]
    if name == "mnli":
        assert len(load(tmp_path / "out", name, "valid1")[1]) == 5
        assert (tmp_path / "out" / "input1" / "test1.bin").is_file()
        assert not list((tmp_path / "out" / "label").glob("test*"))


@pytest.mark.parametrize("name", TASKS)
def test_tables(tmp_path, name):
    task = TASKS[name]
    path = tmp_path / "x.tsv"
    path.write_text(table(name, "train", 4))
    rows = list(read_table(path, task, "train"))
    assert [label for _, label in rows] == [task.labels[i % len(task.labels)] for i in range(4)]
    assert all(len(inputs) == len(task.inputs) for inputs, _ in rows)
    path.write_text(table(name, "test", 4))
    assert [inputs for inputs, _ in read_table(path, task, "test")] == [inputs for inputs, _ in rows]
    with pytest.raises(ValueError, match=f"line 1: expected the columns .*found no {task.label}"):
        list(read_table(path, task, "valid"))
    path.write_text(table(name, "train", 2) + "one field\n")
    if name == "qqp":
        assert len(list(read_table(path, task, "train"))) == 2
    else:
        with pytest.raises(ValueError, match="x.tsv, line 4: 1 fields, expected"):
            list(read_table(path, task, "train"))
    path.write_text(table(name, "train", 1).replace(f"\t{task.labels[0]}\n", "\t-\n"))
    with pytest.raises(ValueError, match="line 2: label '-', expected one of"):
        list(read_table(path, task, "train"))
    path.write_bytes(table(name, "train", 2).encode() + b"\xff\n")
    with pytest.raises(ValueError, match="not UTF-8 after line"):
        list(read_table(path, task, "train"))


def test_what_is_missing_or_wrong(tmp_path, refused):
    raw, out = tmp_path / "raw", tmp_path / "out"
    write_raw(raw, "qnli")
    words = ["glue", "--task", "qnli", "--from", str(raw), "--out", str(out)]
    assert "QNLIv2.zip: SHA-256" in refused("prepare", *words)
    (raw / "QNLIv2.zip").rename(raw / "other.zip")
    for name in ("encoder.json", "vocab.bpe"):
        (raw / "deep").mkdir(exist_ok=True)
        (raw / name).rename(raw / "deep" / name)
    assert "qnli: the train set has 7 lines, expected 104743" in refused("prepare", *words)
    (raw / "dict.txt").unlink()
    assert "missing, as files or in archives: dict.txt; the archives are linked from" in refused("prepare", *words)
    (raw / "dict.txt").write_bytes(b"0 1\n\xff 1\n")
    assert "raw/dict.txt: truncated or altered: 'utf-8' codec" in refused("prepare", *words, "--unchecked")
    (raw / "dict.txt").write_text("0 1\n")
    (raw / "deep" / "encoder.json").write_text("{")
    assert "encoder.json, " in refused("prepare", *words, "--unchecked")
    assert [path.name for path in tmp_path.iterdir()] == ["raw"]
