"""The tokenizer alone; tests.exchange holds it equal to fairseq's preparation."""

from __future__ import annotations

from pathlib import Path

from seqstruct.hf import SeqstructTokenizer


def test_what_is_no_id_is_unknown(tmp_path: Path) -> None:
    """Such as -100, of labels that nothing is learnt from, which is no symbol counted from the end."""
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *(f"w{number}" for number in range(200))]
    (tmp_path / "vocab").write_text("".join(f"{symbol}\n" for symbol in symbols), encoding="utf-8")
    tokenizer = SeqstructTokenizer(str(tmp_path / "vocab"))
    assert tokenizer.decode([4, -100, 203, 204]) == "w0 <unk> w199 <unk>"
