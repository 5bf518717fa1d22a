"""The tokenizer alone; tests.exchange holds it equal to fairseq's preparation."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from seqstruct.hf import SeqstructTokenizer


def tokenizer_of(folder: Path, **options: object) -> SeqstructTokenizer:
    """Of two words, separated by spaces."""
    (folder / "vocab").write_text("<s>\n<pad>\n</s>\n<unk>\nlong\nlists\n", encoding="utf-8")
    return SeqstructTokenizer(str(folder / "vocab"), **options)


@pytest.mark.parametrize("begin", [False, True])
@pytest.mark.parametrize("end", [False, True])
def test_the_mask_of_special_tokens_is_of_all_ids(begin: bool, end: bool, tmp_path: Path) -> None:
    tokenizer = tokenizer_of(tmp_path, begin=begin, end=end)
    found = tokenizer("long \t lists", return_special_tokens_mask=True)
    assert found["input_ids"] == [0] * begin + [4, 5] + [2] * end
    assert found["special_tokens_mask"] == [1] * begin + [0, 0] + [1] * end
    tokenizer.save_pretrained(tmp_path / "saved")
    assert SeqstructTokenizer.from_pretrained(tmp_path / "saved")("long lists")["input_ids"] == found["input_ids"]


def test_a_tokenizer_that_was_used_is_pickled(tmp_path: Path) -> None:
    """As for another process that loads data."""
    tokenizer = tokenizer_of(tmp_path, source_pipeline={"words": "moses", "language": "en", "lowercase": True})
    assert tokenizer.decode(tokenizer("Long lists.")["input_ids"]) == "long lists <unk> </s>"
    assert pickle.loads(pickle.dumps(tokenizer))("Long lists.") == tokenizer("Long lists.")


def test_no_symbol_is_added(tmp_path: Path) -> None:
    """It would be found in no text that is cut to subwords, and be unknown in what is decoded."""
    tokenizer = tokenizer_of(tmp_path)
    assert tokenizer.add_tokens(["long"]) == 0
    assert tokenizer.decode(tokenizer("long lists")["input_ids"]) == "long lists </s>"
    told = " is no symbol of the source: a run has those of the dictionaries that it was trained with"
    with pytest.raises(ValueError, match=f"'novel'{told}"):
        tokenizer.add_tokens(["lists", "novel"])
    with pytest.raises(ValueError, match=f"'<mask>'{told}"):
        tokenizer.add_special_tokens({"mask_token": "<mask>"})
    with pytest.raises(ValueError, match=f"'<none>'{told}"):
        tokenizer_of(tmp_path, pad_token="<none>")


def test_what_is_no_id_is_unknown(tmp_path: Path) -> None:
    """Such as -100, of labels that nothing is learnt from, which is no symbol counted from the end."""
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *(f"w{number}" for number in range(200))]
    (tmp_path / "vocab").write_text("".join(f"{symbol}\n" for symbol in symbols), encoding="utf-8")
    tokenizer = SeqstructTokenizer(str(tmp_path / "vocab"))
    assert tokenizer.decode([4, -100, 203, 204]) == "w0 <unk> w199 <unk>"
