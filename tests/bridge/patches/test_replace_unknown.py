from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from fairseq import utils

from seqstruct.bridge.patches.replace_unknown import replaced
from tests.models.building import dictionary_of
from tests.models.front_door import fairseq
from tests.models.reversals import train


@pytest.fixture
def generate(unknown_words: Path) -> Callable[..., str]:
    """Has a model translate sources with words that it does not know."""
    return partial(
        fairseq, "generate", unknown_words / "raw", "--dataset-impl", "raw", "--beam", 3, "--max-len-b", 6,
        "--batch-size", 7, "--unkpen", -2, "--path",
    )


@pytest.fixture(scope="module")
def plain(reversals: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model without attention."""
    options = ["--cross-attention", "none", "--output", "plain"]
    return train(reversals / "bin", tmp_path_factory.mktemp("plain"), "rnn", *options)


def lines(printed: str, kind: str) -> dict[int, list[str]]:
    """The last field's words by sentence."""
    return {int(i): text.split() for i, text in re.findall(rf"^{kind}-(\d+)\t(?:.*\t)?(.*)$", printed, re.MULTILINE)}


@pytest.mark.training
@pytest.mark.parametrize("task", [[], ["--task", "translation_gnmt"]], ids=["translation", "translation_gnmt"])
def test_the_attended_word_stands_for_the_unknown_one(
    generate: Callable[..., str], recurrent: Path, unknown_words: Path, tmp_path: Path, task: list[str]
) -> None:
    before = lines(generate(recurrent, "--print-alignment", "hard", *task), "H")
    printed = generate(recurrent, "--replace-unk", *task)
    assert "\nA-0" not in printed
    with_alignment = generate(recurrent, "--replace-unk", "--print-alignment", "hard", *task)
    after, alignments = lines(printed, "H"), lines(with_alignment, "A")
    assert lines(with_alignment, "H") == after
    sources = (unknown_words / "text" / "test.de").read_text().splitlines()
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
    mapped = lines(generate(recurrent, "--replace-unk", tmp_path / "pairs", *task), "H")
    meaning = {"ein": "one", "haus": "house"}
    for i, words in before.items():
        expected = [meaning.get(a, a) if word == "<unk>" else word for word, a in zip(words, after[i], strict=True)]
        assert mapped[i] == expected


@pytest.mark.training
@pytest.mark.parametrize("option", [["--replace-unk"], ["--print-alignment", "hard"], ["--print-alignment", "soft"]])
def test_without_attention_there_is_no_alignment(
    generate: Callable[..., str], plain: Path, option: list[str]
) -> None:
    with pytest.raises(ValueError, match="an alignment needs a model with attention"):
        generate(plain, *option)


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
