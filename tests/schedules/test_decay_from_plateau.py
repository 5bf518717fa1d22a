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


def rates(schedule: DecayFromPlateau, losses: list[float | None], start: int = 1) -> list[float]:
    """The rate in each epoch and that of the one after the last; None: no validation."""
    found = []
    for epoch, loss in enumerate(losses, start):
        schedule.step_begin_epoch(epoch)
        found.append(schedule.optimizer.get_lr())
        schedule.step(epoch, loss)
    schedule.step_begin_epoch(start + len(losses))
    return [*found, schedule.optimizer.get_lr()]


def test_the_first_epoch_without_improvement_starts_it() -> None:
    assert rates(schedule(), [5.0, 4.0, 4.0, 3.0, 2.0]) == [8.0, 8.0, 8.0, 4.0, 2.0, 1.0]


def test_the_limit_starts_it() -> None:
    assert rates(schedule(decay_after_epoch=2, lr_shrink=0.25), [5.0, 4.0, 3.0]) == [8.0, 8.0, 2.0, 0.5]


def test_without_validation_only_the_limit_counts() -> None:
    assert rates(schedule(), [None, None]) == [8.0, 8.0, 8.0]
    assert rates(schedule(decay_after_epoch=1), [None, 5.0, None]) == [8.0, 4.0, 2.0, 1.0]


def test_the_call_before_the_first_epoch_changes_nothing() -> None:
    own = schedule(decay_after_epoch=1)
    own.step(1)  # as fairseq does when there is no checkpoint
    assert rates(own, [5.0, 4.0]) == [8.0, 4.0, 2.0]


@pytest.mark.parametrize("losses", [[5.0, 4.0, 6.0, 3.0, 2.0, 1.0], [5.0, 5.0, None, None, 2.0, None], [None] * 6])
@pytest.mark.parametrize("cut", [1, 2, 3, 5])
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_it_goes_on_where_it_was(losses: list[float | None], cut: int, limit: int) -> None:
    """Cut within an epoch and, with the checkpoint that fairseq writes before the schedule's step, at its end."""
    whole = rates(schedule(decay_after_epoch=limit), losses)
    first = schedule(decay_after_epoch=limit)
    rates(first, losses[: cut - 1])
    state = first.state_dict()  # of epoch `cut`, which has begun and not ended
    for at_the_end in (False, True):
        second = schedule(decay_after_epoch=limit)
        second.load_state_dict(state)
        for _ in range(2):  # fairseq's calls as it loads
            second.step(cut + at_the_end)
        if at_the_end and losses[cut - 1] is not None:
            second.step(cut, losses[cut - 1])  # of `seqstruct.bridge.patches.resume`
        begin = cut + at_the_end
        assert rates(second, losses[begin - 1 :], begin) == whole[begin - 1 :]


def test_a_checkpoint_that_says_no_epoch_is_read() -> None:
    own = schedule()
    own.load_state_dict({"best": 5.0, "lr": 2.0, "decaying": True})
    assert rates(own, [4.0, None], 4) == [2.0, 1.0, 0.5]


@pytest.mark.parametrize("options", [{"lr_shrink": 1.0}, {"decay_after_epoch": -1}, {"lr": [1.0, 2.0]}])
def test_options_that_do_not_fit(options: dict) -> None:
    with pytest.raises(ValueError, match="decay_from_plateau"):
        schedule(**options)
