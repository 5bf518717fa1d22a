"""Averaged SGD: the average of the iterates, when it begins, and that a resumed run goes on as if never cut."""

from __future__ import annotations

import copy

import pytest
import torch

from seqstruct.schedules.averaged_sgd import (
    AveragedSGD,
    AveragedSGDConfig,
    AveragingSwitch,
    AveragingSwitchConfig,
)


def optimizer(parameters, **options):
    return AveragedSGD(AveragedSGDConfig(**{"first": "sgd", "weight_decay": 0.0, "lr": [0.25], **options}), parameters)


def schedule(own, **options):
    return AveragingSwitch(AveragingSwitchConfig(**{"lr": [0.25], **options}), own)


def train_step(own, parameter, target):
    """One step towards the minimum of (p - target)^2, as fairseq's trainer takes it."""
    own.zero_grad()
    at = parameter.detach().clone()
    (parameter - target).square().sum().backward()
    own.step()
    return at


@pytest.mark.training
def test_the_model_holds_the_mean_of_the_iterates_between_steps(generator):
    parameter = torch.nn.Parameter(torch.randn(5, dtype=torch.double, generator=generator))
    own = optimizer([parameter])
    iterate = parameter.detach().clone()
    own.start_averaging(0.1)
    iterates = []
    for _ in range(6):
        target = torch.randn(5, dtype=torch.double, generator=generator)
        torch.testing.assert_close(train_step(own, parameter, target), iterate)  # the gradient is the iterate's
        iterate = iterate - 0.1 * 2 * (iterate - target)
        iterates.append(iterate)
        torch.testing.assert_close(parameter.detach(), torch.stack(iterates).mean(0))


@pytest.mark.training
def test_before_the_switch_it_is_adam_or_sgd(generator):
    start = torch.randn(5, generator=generator)
    for first, kind in (("adam", torch.optim.Adam), ("sgd", torch.optim.SGD)):
        ours, theirs = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.clone())
        own, other = optimizer([ours], first=first, weight_decay=0.1), kind([theirs], lr=0.25, weight_decay=0.1)
        for target in (1.0, 2.0, 3.0):
            train_step(own, ours, target)
            other.zero_grad()
            (theirs - target).square().sum().backward()
            other.step()
        assert torch.equal(ours, theirs)


@pytest.mark.training
@pytest.mark.parametrize("switched", [False, True])
def test_from_a_checkpoint_it_goes_on_bit_for_bit(generator, switched):
    start, targets = torch.randn(5, generator=generator), torch.randn(8, 5, generator=generator)
    whole = torch.nn.Parameter(start.clone())
    own = optimizer([whole], first="adam")
    for number, target in enumerate(targets):
        if number == 4:
            model, state = whole.detach().clone(), copy.deepcopy(own.state_dict())
        if number == (2 if switched else 6):
            own.start_averaging(0.5)
        train_step(own, whole, target)
    parameter = torch.nn.Parameter(model)
    resumed = optimizer([parameter], first="adam")
    resumed.load_state_dict(state)
    for number, target in enumerate(targets[4:], 4):
        if number == 6 and not switched:
            resumed.start_averaging(0.5)
        train_step(resumed, parameter, target)
    assert torch.equal(parameter, whole)


@pytest.mark.training
def test_gradients_cleared_twice_are_cleared_once(generator):
    parameter = torch.nn.Parameter(torch.randn(5, generator=generator))
    own = optimizer([parameter])
    own.start_averaging(0.1)
    for target in (1.0, 2.0, 3.0):
        train_step(own, parameter, target)
    own.zero_grad()
    once = parameter.detach().clone()
    own.zero_grad()
    assert torch.equal(parameter, once)


@pytest.mark.training
def test_a_step_without_cleared_gradients_is_refused(generator):
    parameter = torch.nn.Parameter(torch.randn(5, generator=generator))
    own = optimizer([parameter])
    own.start_averaging(0.1)
    train_step(own, parameter, 1.0)
    with pytest.raises(ValueError, match="single precision"):
        own.step()


def test_a_number_of_epochs_switches():
    own = optimizer([torch.nn.Parameter(torch.zeros(1))])
    switch = schedule(own, switch_epoch=2, averaged_lr=7.0)
    for epoch, averaging in ((1, False), (2, False), (3, True)):
        switch.step_begin_epoch(epoch)
        assert own.averaging == averaging
    assert own.get_lr() == 7.0


@pytest.mark.parametrize("averaging", [False, True])
def test_a_reset_schedule_has_the_rates_that_are_given(averaging):
    """Beside an optimizer from a checkpoint with other ones."""
    before, own = (optimizer([torch.nn.Parameter(torch.zeros(1))]) for _ in range(2))
    if averaging:
        before.start_averaging(7.0)
    own.load_state_dict(before.state_dict())
    assert schedule(own, averaged_lr=3.0, lr=[0.5]).step_update(4) == own.get_lr() == (3.0 if averaging else 0.5)


def test_a_loss_above_all_but_the_last_switches():
    losses = [5.0, 4.0, 3.0, 3.5, 3.2, 3.4]
    own = optimizer([torch.nn.Parameter(torch.zeros(1))])
    switch = schedule(own, switch_epoch=0, nonmonotone=2)
    found = []
    for epoch, loss in enumerate(losses, 1):
        switch.step_begin_epoch(epoch)
        switch.step(epoch, loss)
        found.append(own.averaging)
    # epoch 4: 3.5 against 5; epoch 5: 3.2 against min(5, 4); epoch 6: 3.4 against min(5, 4, 3)
    assert found == [False] * 5 + [True]
    again = schedule(optimizer([torch.nn.Parameter(torch.zeros(1))]), switch_epoch=0, nonmonotone=2)
    again.load_state_dict(switch.state_dict())
    assert again.losses == losses


def test_what_does_not_fit_is_refused():
    parameter = [torch.nn.Parameter(torch.zeros(1))]
    with pytest.raises(ValueError, match="one learning rate"):
        optimizer(parameter, lr=[1.0, 2.0])
    for options in ({"switch_epoch": -1}, {"averaged_lr": 0.0}, {"nonmonotone": -2}):
        with pytest.raises(ValueError, match="averaging_switch"):
            schedule(optimizer(parameter), **options)
