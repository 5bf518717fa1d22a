"""What is completed and checked before a model is built; mistakes in options are in `tests/bridge/test_mistakes.py`."""

from __future__ import annotations

import types
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.tasks.fairseq_task import FairseqTask

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.bridge.patches.requirements import check_options, check_task
from seqstruct.tasks.nli import NLITask
from tests.golden.checkpoints.make import FOLDER


def test_a_presets_checkpoint_without_options_of_today_has_their_defaults(tmp_path: Path) -> None:
    state = load_checkpoint(FOLDER / "lm_cfl.pt")
    assert state["cfg"]["model"]["_name"] == "structured_transformer_lm_cfl"
    for option in ("reversible", "ffn_chunks"):
        del state["cfg"]["model"][option]
    path = str(tmp_path / "older.pt")
    torch.save(state, path)
    (model,), cfg, _ = checkpoint_utils.load_model_ensemble_and_task([path], {"data": str(FOLDER / "data" / "text")})
    assert cfg.model.ffn_chunks == 1 and cfg.model.reversible is False
    assert model.state_dict().keys() >= state["model"].keys() - {"decoder.version"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": 1.0}, "--dropout is a probability, 0 or more and below 1, not 1.0"),
        ({"decoder_embed_dim": 0}, "--decoder-embed-dim is 1 or more, not 0"),
        ({"decoder_layers": -1}, "--decoder-layers is 0 or more, not -1"),
    ],
)
def test_numbers_out_of_range(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_options(options)
    check_options({"dropout": 0.0, "decoder_embed_dim": 1, "decoder_layers": 0, "tied": True, "name": "x"})


def test_made_for_another_task() -> None:
    made = types.new_class("Made")
    made.made_for = ("nli",)
    other, own = FairseqTask.__new__(FairseqTask), NLITask.__new__(NLITask)
    with pytest.raises(ValueError, match="the model made needs --task nli, not FairseqTask"):
        check_task("model", "made", made, other)
    check_task("model", "made", made, own)
    check_task("model", "made", object, other)
