"""What is open in a context, and what is not."""

from __future__ import annotations

import pytest
import torch

from seqstruct.attention import Reading, Site
from seqstruct.bridge.passes import CarriedState, collect_readings, current_pass, passing

READING = Reading(torch.zeros(2, 3, 4), carry="below")


def test_nothing_is_kept_where_nobody_asks() -> None:
    current_pass().take(Site.CROSS, 0, READING)
    assert not current_pass().collects and current_pass().carried(Site.CROSS) is None


def test_a_stack_within_a_collection_hands_on_and_both_end() -> None:
    with collect_readings() as readings:
        with passing(carries={}):
            current_pass().take(Site.CROSS, 1, READING)
            assert current_pass().carried(Site.CROSS) == "below"
            assert current_pass().carried(Site.ENCODER_SELF) is None
            with passing(sources_in_place=True) as inner:
                assert inner is current_pass() and inner.collects and inner.sources_in_place
        assert current_pass().carried(Site.CROSS) is None and not current_pass().sources_in_place
        current_pass().take(Site.CROSS, 2, READING)
    assert [(r.site, r.layer) for r in readings] == [(Site.CROSS, 1), (Site.CROSS, 2)]
    assert not current_pass().collects


def test_an_error_ends_the_pass() -> None:
    with pytest.raises(KeyError), passing(memories=[1]):
        raise KeyError
    assert current_pass().memories is None


class Stateful(torch.nn.Module):
    """A module with a state of two parts."""

    def initial_state(self, batch_size: int) -> tuple:
        return (torch.zeros(batch_size, 2),), torch.zeros(batch_size)


def test_states_are_carried_without_gradients() -> None:
    module, carried = Stateful(), CarriedState()
    state = carried.get(module, 3)
    state = (state[0][0] + torch.ones(2, requires_grad=True),), state[1]
    carried.put(module, state)
    found = carried.get(module, 3)
    assert torch.equal(found[0][0], torch.ones(3, 2)) and not found[0][0].requires_grad
    with pytest.raises(ValueError, match="of 3 rows, the segment of 2"):
        carried.get(module, 2)
