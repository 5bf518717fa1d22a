from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from fairseq import utils

from seqstruct.bridge.patches.replace_unknown import replaced
from tests.models.building import dictionary_of
from tests.models.front_door import PLUGIN, fairseq, write_copy_corpus

TRAINING = ["--optimizer", "adam", "--lr", 0.02, "--criterion", "cross_entropy", "--batch-size", 20, "--max-update", 4,
            "--no-epoch-checkpoints", "--disable-validation", "--cpu", "--num-workers", 0, "--user-dir", PLUGIN]
SMALL = ["--arch", "rnn_translation", "--embed-dim", 8, "--hidden-size", 8, "--encoder-layers", 1,
         "--decoder-layers", 1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Text whose test sources have words that no dictionary knows, raw data, and models with and without attention."""
    folder = tmp_path_factory.mktemp("unknown")
    write_copy_corpus(folder)
    lines = (folder / "test.de").read_text().splitlines()
    lines = [" ".join(f"{word}{i}" if i % 3 == 0 else word for word in line.split()) for i, line in enumerate(lines)]
    (folder / "test.de").write_text("\n".join(lines) + "\n")
    texts = [x for split in ("train", "valid", "test") for x in (f"--{split}pref", folder / split)]
    fairseq("preprocess", "-s", "de", "-t", "en", "--joined-dictionary", "--dataset-impl", "raw", "--destdir",
            folder / "raw", "--workers", 1, *texts)
    for name, options in (("model", []), ("plain", ["--cross-attention", "none", "--output", "plain"])):
        fairseq("train", folder / "raw", "--dataset-impl", "raw", *TRAINING, *SMALL, *options,
                "--save-dir", folder / name)
    return folder


def generate(folder: Path, model: str, *options: object) -> str:
    return fairseq(
        "generate", folder / "raw", "--dataset-impl", "raw", "--user-dir", PLUGIN, "--cpu", "--num-workers", 0,
        "--path", folder / model / "checkpoint_last.pt", "--beam", 3, "--max-len-b", 6, "--batch-size", 7,
        "--unkpen", -2, *options,
    )  # fmt: skip


def lines(printed: str, kind: str) -> dict[int, list[str]]:
    """The last field's words by sentence."""
    return {int(i): text.split() for i, text in re.findall(rf"^{kind}-(\d+)\t(?:.*\t)?(.*)$", printed, re.MULTILINE)}


@pytest.mark.training
@pytest.mark.parametrize("task", [[], ["--task", "translation_gnmt"]], ids=["translation", "translation_gnmt"])
def test_the_attended_word_stands_for_the_unknown_one(folder: Path, tmp_path: Path, task: list[str]) -> None:
    before = lines(generate(folder, "model", "--print-alignment", "hard", *task), "H")
    printed = generate(folder, "model", "--replace-unk", *task)
    assert "\nA-0" not in printed
    with_alignment = generate(folder, "model", "--replace-unk", "--print-alignment", "hard", *task)
    after, alignments = lines(printed, "H"), lines(with_alignment, "A")
    assert lines(with_alignment, "H") == after
    sources = (folder / "test.de").read_text().splitlines()
    count = 0
    for i, words in before.items():
        pairs = dict(pair.split("-")[::-1] for pair in alignments[i])
        expected = [
            sources[i].split()[int(pairs[str(t)])] if word == "<unk>" else word for t, word in enumerate(words)
        ]
        assert after[i] == expected
        count += words.count("<unk>")
    assert count > 20
    assert any(re.search(r"\d", word) for words in after.values() for word in words)
    (tmp_path / "pairs").write_text("ein one\nhaus house\n")
    mapped = lines(generate(folder, "model", "--replace-unk", tmp_path / "pairs", *task), "H")
    meaning = {"ein": "one", "haus": "house"}
    for i, words in before.items():
        expected = [meaning.get(a, a) if word == "<unk>" else word for word, a in zip(words, after[i], strict=True)]
        assert mapped[i] == expected


@pytest.mark.training
@pytest.mark.parametrize("option", [["--replace-unk"], ["--print-alignment", "hard"], ["--print-alignment", "soft"]])
def test_without_attention_there_is_no_alignment(folder: Path, option: list[str]) -> None:
    with pytest.raises(ValueError, match="an alignment needs a model with attention"):
        generate(folder, "plain", *option)


def test_subwords_are_joined_after_words_were_replaced() -> None:
    dictionary = dictionary_of("")
    for symbol in ("ha@@", "us", "am"):
        dictionary.add_symbol(symbol)
    tokens = torch.tensor([4, 5, 3, 6, 2])
    alignment = [(0, 0), (0, 1), (2, 2), (1, 3)]
    text = utils.post_process_prediction(tokens, "x y z", alignment, {}, dictionary, "@@ ", {2})[1]
    assert text == "haus z am"
    assert utils.post_process_prediction(tokens, "x", alignment, None, dictionary, None, {2})[1] == "ha@@ us <unk> am"


def test_words_without_an_alignment_stay() -> None:
    assert replaced(["<unk>", "a", "<unk>"], ["x"], [(0, 0), (1, 2)], {}, "<unk>") == ["x", "a", "<unk>"]
    assert replaced(["<unk>"], [], [], {"x": "y"}, "<unk>") == ["<unk>"]


def test_dictionaries_of_pairs(tmp_path: Path) -> None:
    assert utils.load_align_dict(None) is None
    assert utils.load_align_dict("@@ ") == {}
    path = tmp_path / "pairs"
    path.write_text("haus house\nam\n")
    with pytest.raises(ValueError, match=r"pairs: line 2: expected a source and a target word, got 'am\\n'"):
        utils.load_align_dict(str(path))
    path.write_bytes(b"haus house\nh\xff x\n")
    with pytest.raises(ValueError, match="pairs: not UTF-8 after line"):
        utils.load_align_dict(str(path))
