"""Checkpoints of earlier versions keep their numbers though a default has changed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.bridge.earlier_plans import DEFAULTS, keep_meaning, version_of, written_out
from seqstruct.bridge.patches.compat import prepare_fairseq
from seqstruct.bridge.swapped_attention import changed
from seqstruct.bridge.versions import versions
from tests.models.building import cfl_dictionary, small_language_model

PLAN = "rfa(features=8, pool=2)"
FIRST = "rfa(features=8, pool=2, floor=0.0)"


def write(path: Path, plan: str, written_by: dict[str, str] | None, model: torch.nn.Module | None = None) -> Path:
    extra = {} if written_by is None else {"seqstruct_versions": written_by}
    weights = {} if model is None else model.state_dict()
    configuration = {"model": {"decoder_self_attention": plan}, "common": {}, "task": {}}
    history = [{"optimizer_name": "FairseqAdam", "lr_scheduler_state": {}}]
    torch.save({"model": weights, "cfg": configuration, "extra_state": extra, "optimizer_history": history}, path)
    return path


def plan_of(state: dict) -> str:
    return state["cfg"]["model"]["decoder_self_attention"]


@pytest.mark.parametrize(
    "plan, expected",
    [
        ("rfa", "rfa(floor=0.0)"),
        (PLAN, FIRST),
        ("softmax*2 + rfa(gate=True)*3 + rfa(floor=2)", "softmax * 2 + rfa(gate=True, floor=0.0) * 3 + rfa(floor=2)"),
        ("softmax*2 + linear", "softmax*2 + linear"),
        ("rfa(", "rfa("),
        ("none", "none"),
    ],
)
def test_a_default_is_written_out_where_nothing_is_given(plan: str, expected: str) -> None:
    (default,) = DEFAULTS
    assert written_out(plan, default) == expected
    assert written_out(expected, default) == expected


@pytest.mark.parametrize("written_by", [None, {"torch": "2.13.0"}, {"seqstruct": "0.1.0"}])
def test_an_earlier_checkpoint_has_its_own_default(tmp_path: Path, written_by: dict | None) -> None:
    assert plan_of(load_checkpoint(write(tmp_path / "old.pt", PLAN, written_by))) == FIRST


def test_a_checkpoint_of_today_is_left_alone(tmp_path: Path) -> None:
    assert version_of({"extra_state": {"seqstruct_versions": versions()}}) >= max(d.before for d in DEFAULTS)
    path = write(tmp_path / "new.pt", PLAN, versions())
    assert plan_of(load_checkpoint(path)) == PLAN
    assert plan_of(checkpoint_utils.load_checkpoint_to_cpu(str(path))) == PLAN


def test_the_numbers_are_those_it_was_trained_with(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    prepare_fairseq()
    dictionary = cfl_dictionary("dyck")
    torch.manual_seed(3)
    model = small_language_model(dictionary, decoder_self_attention=FIRST).eval()
    path = write(tmp_path / "old.pt", PLAN, {"seqstruct": "0.1.0"}, model)
    state = checkpoint_utils.load_checkpoint_to_cpu(str(path))
    assert "old.pt is of an earlier version: its decoder_self_attention is " + FIRST in caplog.text
    loaded = small_language_model(dictionary, **state["cfg"]["model"]).eval()
    loaded.load_state_dict(state["model"])
    tokens = torch.randint(4, 8, (2, 9), generator=torch.Generator().manual_seed(1))
    assert torch.equal(loaded(tokens)[0], model(tokens)[0])
    other = small_language_model(dictionary, decoder_self_attention=PLAN).eval()
    other.load_state_dict(state["model"])
    assert not torch.allclose(other(tokens)[0], model(tokens)[0])


def test_overrides_are_in_todays_meaning(tmp_path: Path) -> None:
    prepare_fairseq()
    path = str(write(tmp_path / "old.pt", PLAN, None))
    overrides = {"decoder_self_attention": PLAN}
    assert plan_of(checkpoint_utils.load_checkpoint_to_cpu(path, overrides)) == PLAN
    assert changed(path, overrides) == [f"decoder_self_attention: {FIRST}, now {PLAN}"]


def test_windows_of_earlier_encoders_give_a_warning() -> None:
    plans = {"encoder_self_attention": "softmax + sliding_window(slots=5)", "decoder_self_attention": "dilated_window"}
    state = {"cfg": {"model": dict(plans)}}
    (change,) = keep_meaning(state)
    assert change.startswith("sliding_window in its encoder_self_attention looked left alone")
    assert state["cfg"]["model"] == plans
    assert keep_meaning({**state, "extra_state": {"seqstruct_versions": versions()}}) == []


def test_pyramids_of_earlier_encoders_give_a_warning() -> None:
    state = {"cfg": {"model": {"encoder": "gated_convolution"}}}
    (change,) = keep_meaning(state)
    assert change.startswith("nodes of its gated_convolution were of tanh and are rectified now")
    assert keep_meaning({**state, "extra_state": {"seqstruct_versions": versions()}}) == []


@pytest.mark.parametrize("state", [{}, {"cfg": None}, {"cfg": [1]}, {"cfg": {"model": 3}, "extra_state": 4}])
def test_what_holds_no_plan_is_let_be(state: dict) -> None:
    assert keep_meaning(state) == []
