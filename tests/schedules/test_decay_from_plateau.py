"""The schedule by itself: when the decay begins, and that a resumed one goes on."""

from __future__ import annotations

import pytest
import torch
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from omegaconf import OmegaConf

from seqstruct.schedules.decay_from_plateau import DecayFromPlateau, DecayFromPlateauConfig


def schedule(**options: object) -> DecayFromPlateau:
    config = OmegaConf.structured(FairseqAdamConfig(lr=[8.0], tpu=False))
    optimizer = FairseqAdam(config, [torch.nn.Parameter(torch.zeros(1))])
    return DecayFromPlateau(DecayFromPlateauConfig(**{"lr": [8.0], **options}), optimizer)


def rates(schedule: DecayFromPlateau, losses: list[float], start: int = 1) -> list[float]:
    return [schedule.step(epoch, loss) for epoch, loss in enumerate(losses, start)]


def test_the_first_epoch_without_improvement_starts_it() -> None:
    own = schedule()
    assert rates(own, [5.0, 4.0, 4.0, 3.0, 2.0]) == [8.0, 8.0, 4.0, 2.0, 1.0]
    assert own.optimizer.get_lr() == 1.0


def test_the_limit_starts_it() -> None:
    assert rates(schedule(decay_after_epoch=2, lr_shrink=0.25), [5.0, 4.0, 3.0]) == [8.0, 2.0, 0.5]


def test_without_validation_only_the_limit_counts() -> None:
    assert [schedule(decay_after_epoch=2).step(1), schedule().step(5)] == [8.0, 8.0]


def test_it_goes_on_where_it_was() -> None:
    losses = [5.0, 4.0, 6.0, 3.0, 2.0, 1.0]
    first, second = schedule(), schedule()
    begun = rates(first, losses[:4])
    second.load_state_dict(first.state_dict())
    assert second.optimizer.get_lr() == begun[-1]
    assert begun + rates(second, losses[4:], 5) == rates(schedule(), losses)


@pytest.mark.parametrize("options", [{"lr_shrink": 1.0}, {"decay_after_epoch": -1}, {"lr": [1.0, 2.0]}])
def test_options_that_do_not_fit(options: dict) -> None:
    with pytest.raises(ValueError, match="decay_from_plateau"):
        schedule(**options)
