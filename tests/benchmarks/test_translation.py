"""The benchmark of translation runs at a tiny size and prints all its rows."""

from __future__ import annotations

from seqstruct.benchmarks import translation


def test_rows(monkeypatch):
    for name, value in (("SIZE", 8), ("BATCH", 3), ("VOCABULARY", 20), ("BEAM", 2)):
        monkeypatch.setattr(translation, name, value)
    monkeypatch.setitem(translation.MODELS["GRU, additive, previous state"], "maxout_size", 8)
    text = translation.run([4], 1)
    for names, rows in (((translation.FAIRSEQ, *translation.MODELS), 2), (translation.PRODUCTS, 1)):
        for name in names:
            assert sum(line.startswith(f"{name}  ") for line in text.splitlines()) == rows


def test_lengths_are_checked(refused):
    assert "lengths of 2 or more, got 1" in refused("bench", "translation", "--lengths", "1")
