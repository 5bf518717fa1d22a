"""fairseq's schedule, stopping rule and clipping do what appendix D.3 of Stack Attention says."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import (
    ReduceLROnPlateauLRSchedule,
    ReduceLROnPlateauLRScheduleConfig,
)
from fairseq_cli import train
from omegaconf import OmegaConf

RATE = 0.003


def optimizer(parameters):
    cfg = OmegaConf.structured(FairseqAdamConfig(lr=[RATE], tpu=False))
    return FairseqAdam(cfg, parameters)


@pytest.mark.parametrize("fall", [0.0, 0.00009])
def test_the_rate_falls_by_a_tenth_at_the_sixth_epoch_without_improvement(fall):
    """Of the perplexity of a symbol; a fall by less than a 10,000th of it is none."""
    cfg = ReduceLROnPlateauLRScheduleConfig(
        lr=[RATE], lr_shrink=0.9, lr_patience=5, maximize_best_checkpoint_metric=False
    )
    schedule = ReduceLROnPlateauLRSchedule(cfg, optimizer([torch.nn.Parameter(torch.ones(3))]))
    rates = [schedule.step(epoch, 2.0 * (1 - fall if epoch > 1 else 1)) for epoch in range(1, 14)]
    assert rates[:6] == [RATE] * 6
    assert rates[6:12] == pytest.approx([0.9 * RATE] * 6)
    assert rates[12] == pytest.approx(0.81 * RATE)
    assert schedule.step(14, 1.9) == schedule.step(15, 1.9) == pytest.approx(0.81 * RATE)


def test_training_stops_at_the_tenth_epoch_without_improvement(monkeypatch):
    """Of any size."""
    for name in ("best", "num_runs"):
        monkeypatch.setattr(train.should_stop_early, name, None, raising=False)
    cfg = SimpleNamespace(checkpoint=SimpleNamespace(patience=10, maximize_best_checkpoint_metric=False))
    assert not train.should_stop_early(cfg, 2.0)
    assert not train.should_stop_early(cfg, 2.0 - 1e-9)
    assert [train.should_stop_early(cfg, 2.0) for _ in range(10)] == [False] * 9 + [True]
