"""Buffers and their views, made once for a shape and used again: for dynamic programs of many small operations, where
making views takes as long as the arithmetic.

A workspace is lent to one computation and its derivative; it is free again when nobody refers to the loan any more.
What is free is kept for the next borrower, up to a number of bytes in all, the longest unused dropped first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

import torch

MOST_BYTES = 64 * 2**20


class Workspace(Protocol):
    """nbytes: of all its buffers."""

    nbytes: int


W = TypeVar("W", bound=Workspace)


class Loan(Generic[W]):
    """A workspace of one's own for as long as this object lives."""

    def __init__(self, pool: Pool, key: Hashable, space: W) -> None:
        self.space = space
        self._pool, self._key = pool, key

    def __del__(self) -> None:
        self._pool.take_back(self._key, self.space)


class Pool:
    """Free workspaces by shape; any thread may borrow."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes, self.nbytes = most_bytes, 0
        self._free: OrderedDict[Hashable, list[Workspace]] = OrderedDict()
        self._lock = threading.RLock()  # a loan may end, by garbage collection, while this thread holds it

    def borrow(self, key: Hashable, make: Callable[[], W]) -> Loan[W]:
        """A free workspace of that key, or a new one."""
        with self._lock:
            spaces = self._free.get(key)
            if spaces:
                self._free.move_to_end(key)
                space = spaces.pop()
                self.nbytes -= space.nbytes
                return Loan(self, key, space)
        with torch.inference_mode(False):  # what is kept may be used in training later
            return Loan(self, key, make())

    def take_back(self, key: Hashable, space: Workspace) -> None:
        """Keep a workspace whose loan has ended, unless it is too large."""
        if space.nbytes > self.most_bytes:
            return
        with self._lock:
            self._free.setdefault(key, []).append(space)
            self._free.move_to_end(key)
            self.nbytes += space.nbytes
            while self.nbytes > self.most_bytes:
                oldest = next(iter(self._free))
                spaces = self._free[oldest]
                if spaces:
                    self.nbytes -= spaces.pop().nbytes
                if not spaces:
                    del self._free[oldest]
