"""What layers of one pass of a model tell each other and the outside, as fairseq's own layers hand on tensors alone.

One `Pass` is open at a time in a context, and modules keep nothing: readings are collected in it for whoever asks
(criterions, plots, tests), a layer's reading hands a value on to the next layer of its site, and the memories of a
stream of segments come from it and go there.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Iterator, NamedTuple

from torch import Tensor, nn

from seqstruct.attention import Reading, Site
from seqstruct.attention.states import batch_size_of, map_tensors


class CollectedReading(NamedTuple):
    """One layer's reading; tensors have the batch first."""

    site: Site
    layer: int
    reading: Reading


@dataclass(frozen=True)
class Pass:
    """readings: where readings are collected, in the order of computation; None if nobody asks for them.

    carries: by site, what the layer below handed on; None outside of a stack of layers.
    memories: by layer, the State that self-attention in a decoder goes on from, and the new one in its place; None for
    a pass from empty memories that keeps none.
    outputs: by layer, what self-attention in a decoder gave, B T C; None if nobody asks for it.
    sources_in_place: whether every row of a new order stays with its source sentence.
    """

    readings: list[CollectedReading] | None = None
    carries: dict[Site, Any] | None = None
    memories: list[Any] | None = None
    outputs: dict[int, Tensor] | None = None
    sources_in_place: bool = False

    @property
    def collects(self) -> bool:
        """Whether readings are asked for, with weights where they exist."""
        return self.readings is not None

    def take(self, site: Site, layer: int, reading: Reading) -> None:
        """Collect a layer's reading, and hand on what it carries, where either is wanted."""
        if self.readings is not None:
            self.readings.append(CollectedReading(site, layer, reading))
        if self.carries is not None:
            self.carries[site] = reading.carry
        if self.outputs is not None and site is Site.DECODER_SELF:
            self.outputs[layer] = reading.output

    def carried(self, site: Site) -> Any:
        """What the layer below handed on, or None."""
        return None if self.carries is None else self.carries.get(site)


_open: ContextVar[Pass] = ContextVar("pass")
_NOTHING = Pass()


def current_pass() -> Pass:
    return _open.get(_NOTHING)


@contextmanager
def passing(**changes: Any) -> Iterator[Pass]:
    """Inside, the open pass with fields changed: `carries={}` for one stack of layers, for example."""
    opened = replace(_open.get(_NOTHING), **changes)
    token = _open.set(opened)
    try:
        yield opened
    finally:
        _open.reset(token)


@contextmanager
def collect_readings() -> Iterator[list[CollectedReading]]:
    """Collect the readings, with weights where they exist, of all forward passes inside the block.

    The list is in order of computation: encoder layers first, then each decoder layer's self and cross attention.
    """
    readings: list[CollectedReading] = []
    with passing(readings=readings):
        yield readings


class CarriedState:
    """What language models carry from one segment of a stream to the next, handed to `forward` as `carried=`.

    States by module, empty at the start of a stream.  As with fairseq's incremental_state, the caller owns the object
    and a model puts its new state into it; unlike a dictionary it survives fairseq's moving of batches to a device.  A
    model has `initial_state(batch_size)`, and its state is a tensor or nested tuples of tensors with the batch first:
    a transformer's is the attention memory of each layer.
    """

    def __init__(self) -> None:
        self._states: dict[int, Any] = {}

    def get(self, module: nn.Module, batch_size: int) -> Any:
        """The module's state, its initial one if it has put none.

        Raises ValueError if the state is of another number of rows.
        """
        state = self._states.get(id(module))
        if state is None:
            return module.initial_state(batch_size)
        rows = batch_size_of(state)
        if rows != batch_size:
            raise ValueError(f"the state carried so far is of {rows} rows, the segment of {batch_size}")
        return state

    def copy(self) -> CarriedState:
        """Another object with the same states, which are shared: what is put into one is not in the other."""
        found = CarriedState()
        found._states = dict(self._states)
        return found

    def put(self, module: nn.Module, state: Any) -> None:
        """Keep a state, cut from the graph, for the next segment."""
        self._states[id(module)] = map_tensors(Tensor.detach, state)
