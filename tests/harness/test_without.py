"""Checkpoints without attention: what is fine-tuned from them has it at its initial values."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch

from seqstruct.harness import without
from tests.models.building import dictionary_of, small_language_model


@pytest.mark.parametrize("plan, reset", [
    ("rfa(features=128)", False), ("rfa(features=128)", True), ("softmax", True), ("t2r(features=32)", False)])
def test_what_a_model_starts_from(plan: str, reset: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Reset: attention's own initial values; otherwise the trained projections; all else is the trained model's."""
    words = dictionary_of("abcdef")
    trained = small_language_model(words, decoder_self_attention="softmax")
    start = tmp_path / "trained.pt"
    torch.save({"model": trained.state_dict()}, start)
    if reset:
        assert without.main([str(start), "*.self_attn.*", "--out", str(tmp_path / "start.pt")]) == 0
        start = tmp_path / "start.pt"
    fresh = small_language_model(words, decoder_self_attention=plan)
    initial = {name: value.clone() for name, value in fresh.state_dict().items()}
    with caplog.at_level(logging.WARNING):
        fresh.load_state_dict(torch.load(start, weights_only=True)["model"], strict=True)
    assert "needs fine-tuning" in caplog.text
    assert "35.5 BLEU" in caplog.text and "0.4" in caplog.text, "table 4.6"
    for name, value in fresh.state_dict().items():
        own = ".self_attn." in name and (reset or name not in trained.state_dict())
        assert torch.equal(value, (initial if own else trained.state_dict())[name]), name


def test_a_part_that_no_name_has_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"model": {"a.weight": torch.ones(1)}}, tmp_path / "a.pt")
    assert without.main([str(tmp_path / "a.pt"), "*.b.*", "--out", str(tmp_path / "b.pt")]) == 1
    assert "no parameter's name matches '*.b.*'" in capsys.readouterr().err and not (tmp_path / "b.pt").exists()
