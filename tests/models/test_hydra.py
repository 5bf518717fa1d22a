"""A YAML and the command line build one and the same model, and train it to the same numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from seqstruct.bridge.checkpoints import load_checkpoint
from seqstruct.data.cfl.folder import StringsRequest, write_folder
from tests.models.front_door import PLUGIN, fairseq

ROOT = Path(PLUGIN).parent
PLAN = "softmax*2 + nondeterministic_stack(states=2, symbols=3, size=5) + softmax*2"


@pytest.mark.training
def test_hydra_equals_argparse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    write_folder(
        StringsRequest("dyck", train=40, valid=20, test_per_length=1, lengths=(5, 9), test_lengths=(5, 9), seed=1), data
    )
    fairseq(
        "hydra-train", "--config-dir", ROOT / "configs/stack_attention/cfl", "--config-name", "train", "row=tf_nd",
        "scale=small", f"task.data={data}", f"checkpoint.save_dir={tmp_path / 'hydra'}", "optimization.max_update=4",
        "optimization.lr=[0.002]",
    )
    fairseq(
        "train", data, "--task", "cfl_language_modeling", "--criterion", "cfl_cross_entropy", "--arch",
        "structured_transformer_lm_cfl", "--decoder-embed-dim", 28, "--decoder-self-attention", PLAN, "--optimizer",
        "adam", "--lr", 0.002, "--clip-norm", 5, "--batch-size", 10, "--max-update", 4, "--lr-scheduler",
        "reduce_lr_on_plateau", "--lr-shrink", 0.9, "--lr-patience", 5, "--best-checkpoint-metric", "perplexity",
        "--no-epoch-checkpoints", "--update-epoch-batch-itr", "True", "--save-dir", tmp_path / "argparse", "--seed", 1,
    )
    states = [load_checkpoint(tmp_path / name / "checkpoint_last.pt")["model"] for name in ("hydra", "argparse")]
    torch.testing.assert_close(*states, rtol=0, atol=0)
