"""Timing of contestants that take turns, so that whatever else the machine does falls on all of them."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor


class Contestant(NamedTuple):
    """forward() gives a tensor; backward(tensor) runs its backward pass."""

    forward: Callable[[], Tensor]
    backward: Callable[[Tensor], None]


class Timing(NamedTuple):
    """Medians in milliseconds: the forward pass, and both passes; megabytes kept from one to the other."""

    forward: float
    both: float
    kept: float


def measure(contestants: Mapping[str, Contestant], repeats: int, warm_up: int = 2) -> dict[str, Timing]:
    """Run every contestant `repeats` times in turn, after `warm_up` rounds that do not count.

    Raises ValueError unless repeats is 1 or more.
    """
    if repeats < 1:
        raise ValueError(f"expected 1 or more repeats, got {repeats}")
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for turn in range(warm_up + repeats):
        for name, contestant in contestants.items():
            start = time.perf_counter()
            output = contestant.forward()
            middle = time.perf_counter()
            contestant.backward(output)
            end = time.perf_counter()
            if turn >= warm_up:
                times[name].append((middle - start, end - start))
    return {
        name: Timing(*(1e3 * median(column) for column in zip(*runs, strict=True)), kept(contestants[name].forward))
        for name, runs in times.items()
    }


def kept(forward: Callable[[], Tensor]) -> float:
    """Megabytes (10^6 bytes) that a forward pass keeps for its backward pass, each storage once."""
    storages: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        forward()
    return sum(storages.values()) / 1e6


def machine() -> str:
    """One line on what the timings depend on: processor, threads, torch, the allocator's settings, pressure."""
    settings = [f"{k}={os.environ[k]}" for k in sorted(os.environ) if k.startswith("MALLOC_") or k == "LD_PRELOAD"]
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"allocator {' '.join(settings) or 'as the system sets it'}, CPU pressure {_pressure()}"
    )


def _pressure() -> str:
    try:
        with open("/proc/pressure/cpu", encoding="ascii") as file:
            return file.readline().split("avg60=")[1].split()[0] + "% of the last minute"
    except (OSError, IndexError):
        return "unknown"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text, the first one left-aligned."""
    lines = [list(header), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    first, *others = widths
    return "\n".join(
        "  ".join([line[0].ljust(first), *(cell.rjust(width) for cell, width in zip(line[1:], others, strict=True))])
        for line in lines
    )
