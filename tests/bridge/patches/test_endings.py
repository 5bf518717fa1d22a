"""Which files of checkpoints are kept."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import CheckpointConfig


@pytest.mark.parametrize("highest", [True, False])
@pytest.mark.parametrize("values", [(-9.0, -5.0, -7.0, -3.0, -2.0, -6.0), (-1.5, 0.5, 2.0, -3.0), (9.0, 5.0, 7.0)])
def test_the_best_checkpoints_are_kept_whatever_their_signs(
    highest: bool, values: tuple[float, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = CheckpointConfig(
        save_dir=str(tmp_path), keep_best_checkpoints=2, best_checkpoint_metric="log_likelihood",
        maximize_best_checkpoint_metric=highest, no_epoch_checkpoints=True,
    )
    monkeypatch.delattr(checkpoint_utils.save_checkpoint, "best", raising=False)
    for number, value in enumerate(sorted(values, reverse=not highest), 1):
        epoch = SimpleNamespace(epoch=number, end_of_epoch=lambda: True, state_dict=dict)
        trainer = SimpleNamespace(
            data_parallel_rank=0, should_save_checkpoint_on_current_rank=True, checkpoint_suffix="", task=None,
            consolidate_optimizer=lambda: None, get_num_updates=partial(int, number),
            save_checkpoint=lambda path, state: Path(path).write_bytes(b""),
        )
        checkpoint_utils.save_checkpoint(config, trainer, epoch, value)
    vars(checkpoint_utils.save_checkpoint).pop("best")
    kept = [float(path.stem.split("_")[-1][:-1]) for path in tmp_path.glob("checkpoint.best_*")]
    assert sorted(kept, reverse=highest) == sorted(values, reverse=highest)[:2]
