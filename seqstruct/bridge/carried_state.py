"""What language models carry from one segment of a stream to the next, handed to `forward` as `carried=`.

As with fairseq's incremental_state, the caller owns the object and a model puts its new state into it; unlike a
dictionary it survives fairseq's moving of batches to a device.  A model has `initial_state(batch_size)`, and its state
is a tensor or nested tuples of tensors with the batch first.

A transformer's state is the attention memory of each layer; within a pass adapters find theirs by `memories()`, since
fairseq's layers hand nothing of the kind on.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Iterator

from torch import Tensor, nn


class CarriedState:
    """States by module; empty at the start of a stream."""

    def __init__(self) -> None:
        self._states: dict[int, Any] = {}

    def get(self, module: nn.Module, batch_size: int) -> Any:
        """The module's state, its initial one if it has put none.

        Raises ValueError if the state is of another number of rows.
        """
        state = self._states.get(id(module))
        if state is None:
            return module.initial_state(batch_size)
        rows = _rows(state)
        if rows != batch_size:
            raise ValueError(f"the state carried so far is of {rows} rows, the segment of {batch_size}")
        return state

    def put(self, module: nn.Module, state: Any) -> None:
        """Keep a state, cut from the graph, for the next segment."""
        self._states[id(module)] = _detached(state)


_memories: ContextVar[list[Any] | None] = ContextVar("memories", default=None)


@contextmanager
def going_on_from(memories: list[Any]) -> Iterator[None]:
    """One pass through layers whose self-attention goes on from memories[layer] and leaves its new State there."""
    token = _memories.set(memories)
    try:
        yield
    finally:
        _memories.reset(token)


def memories() -> list[Any] | None:
    """The memories by layer of the pass that is open, or None if it starts from empty ones and keeps none."""
    return _memories.get()


def _rows(state: Any) -> int:
    return state.size(0) if isinstance(state, Tensor) else _rows(next(iter(state)))


def _detached(state: Any) -> Any:
    if isinstance(state, Tensor):
        return state.detach()
    parts = [_detached(part) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
