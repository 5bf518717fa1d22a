"""Readings handed out of a forward pass to whoever asks: criterions, plots, tests.

fairseq's layers pass on attention weights alone, so adapters put each Reading into the collection that is open in
the current context, and modules keep nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Iterator, NamedTuple

from seqstruct.attention import Reading, Site


class CollectedReading(NamedTuple):
    """One layer's reading; tensors have the batch first."""

    site: Site
    layer: int
    reading: Reading


_collection: ContextVar[list[CollectedReading] | None] = ContextVar("collection", default=None)
_carries: ContextVar[dict[Site, Any] | None] = ContextVar("carries", default=None)


@contextmanager
def collect_readings() -> Iterator[list[CollectedReading]]:
    """Collect the readings, with weights where they exist, of all forward passes inside the block.

    The list is in order of computation: encoder layers first, then each decoder layer's self and cross attention.
    """
    readings: list[CollectedReading] = []
    token = _collection.set(readings)
    try:
        yield readings
    finally:
        _collection.reset(token)


def collecting() -> bool:
    """Whether readings are being collected."""
    return _collection.get() is not None


def collect(site: Site, layer: int, reading: Reading) -> None:
    """Add a reading to the open collection, if there is one."""
    readings = _collection.get()
    if readings is not None:
        readings.append(CollectedReading(site, layer, reading))


@contextmanager
def carrying() -> Iterator[None]:
    """One pass through a stack of layers: what a layer's reading carries goes to the next layer of its site."""
    token = _carries.set({})
    try:
        yield
    finally:
        _carries.reset(token)


def carried(site: Site) -> Any:
    """What the layer below handed on, or None."""
    carries = _carries.get()
    return None if carries is None else carries.get(site)


def hand_on(site: Site, carry: Any) -> None:
    """Give a value to the next layer of the site, within the pass that is open."""
    carries = _carries.get()
    if carries is not None:
        carries[site] = carry
