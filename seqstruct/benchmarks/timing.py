"""Timing of contestants that take turns, so that whatever else the machine does falls on all of them."""

from __future__ import annotations

import os
import platform
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from seqstruct.benchmarks.peers import told
from seqstruct.ops.compiled import switched_on
from seqstruct.ops.linear import choice


class Contestant(NamedTuple):
    """forward() gives a tensor; backward(tensor) runs its backward pass."""

    forward: Callable[[], Tensor]
    backward: Callable[[Tensor], None]


class Timing(NamedTuple):
    """Medians in milliseconds: the forward pass, and both passes; megabytes kept from one to the other."""

    forward: float
    both: float
    kept: float


def measure(
    contestants: Mapping[str, Contestant], repeats: int, warm_up: int = 2, place: Place | None = None
) -> dict[str, Timing]:
    """Run every contestant `repeats` times in turn, after `warm_up` rounds that do not count.

    place: where what they start has to be computed before the clock stops.
    Raises ValueError unless repeats is 1 or more.
    """
    if repeats < 1:
        raise ValueError(f"expected 1 or more repeats, got {repeats}")
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    finished = (lambda output: output) if place is None else place.finished
    for turn in range(warm_up + repeats):
        for name, contestant in contestants.items():
            start = time.perf_counter()
            output = finished(contestant.forward())
            middle = time.perf_counter()
            contestant.backward(output)
            finished(output)
            end = time.perf_counter()
            if turn >= warm_up:
                times[name].append((middle - start, end - start))
    return {
        name: Timing(*(1e3 * median(column) for column in zip(*runs, strict=True)), kept(contestants[name].forward))
        for name, runs in times.items()
    }


def turns(
    steps: Mapping[str, Callable[[], Any]], repeats: int, warm_up: int = 2, at_once: int = 1, place: Place | None = None
) -> dict[str, float]:
    """Medians in milliseconds of `repeats` turns, each the mean of `at_once` steps, after `warm_up` that do not count.

    place: where steps give tensors that have to be computed before the clock stops.
    """
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(warm_up + repeats):
        for name, step in steps.items():
            start = time.perf_counter()
            for _ in range(at_once):
                result = step()
            if place is not None:
                place.finished(result)
            if turn >= warm_up:
                times[name].append(1e3 * (time.perf_counter() - start) / at_once)
    return {name: median(found) for name, found in times.items()}


def draw(seed: int, *shape: int, device: torch.device | str = "cpu") -> Tensor:
    """A leaf of normal numbers, the same on every device."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(device).requires_grad_()


def made_up_task(symbols: Iterable[str]) -> SimpleNamespace:
    """What models take of a task: fairseq's dictionary of these symbols, in their order, on both sides."""
    from fairseq.data import Dictionary

    dictionary = Dictionary()
    for symbol in symbols:
        dictionary.add_symbol(symbol)
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)


def megabytes(state: Any) -> float:
    """10^6 bytes of the tensors of a state."""
    return sum(tensor.nbytes for tensor in tree_leaves(state) if isinstance(tensor, Tensor)) / 1e6


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


class Place(NamedTuple):
    """Where contestants run, and in which precision: float32, or bfloat16 where autocast allows it."""

    device: torch.device
    dtype: torch.dtype

    @staticmethod
    def of(device: str, dtype: str) -> Place:
        """Raises ValueError on a device that is not to be had here, or another data type."""
        if dtype not in ("float32", "bfloat16"):
            raise ValueError(f"expected the data type float32 or bfloat16, got {dtype}")
        try:
            torch.zeros(1, device=device).item()  # what stands on meta has no values
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"no device {device} here: {str(error).splitlines()[0]}") from None
        return Place(torch.device(device), getattr(torch, dtype))

    def __str__(self) -> str:
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else str(self.device)
        there = "" if self.device.type == "cuda" or torch.cuda.is_available() else ", no accelerator here"
        return f"{str(self.dtype).removeprefix('torch.')}, on {name}{there}"

    def precision(self) -> Any:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.dtype == torch.bfloat16)

    def finished(self, result: Tensor) -> Tensor:
        """The result, once the device has computed it."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return result

    def training_step(self, module: nn.Module, loss: Callable[[], Tensor]) -> Contestant:
        """Forward: the loss; backward: gradients, clipped at 5, and a step of Adam."""
        optimizer = torch.optim.Adam(module.parameters())

        def forward() -> Tensor:
            with self.precision():
                return self.finished(loss())

        def backward(value: Tensor) -> None:
            optimizer.zero_grad()
            value.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 5.0)
            optimizer.step()
            self.finished(value)

        return Contestant(forward, backward)


class Audit(TorchDispatchMode):
    """Counts what runs within it: `operators`, views among them, and `peak`, megabytes (10^6 bytes) of new tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.operators, self.peak, self._bytes = 0, 0.0, 0
        self._live: dict[int, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator; a storage counts until nothing refers to it any more."""
        result = func(*args, **(kwargs or {}))
        self.operators += 1
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._note(tensor.untyped_storage())
        return result

    def _note(self, storage: Any) -> None:
        key, size = storage.data_ptr(), storage.nbytes()
        if size and key not in self._live:
            self._live[key] = weakref.ref(storage, lambda _: self._forget(key, size))
            self._bytes += size
            self.peak = max(self.peak, self._bytes / 1e6)

    def _forget(self, key: int, size: int) -> None:
        if self._live.pop(key, None) is not None:
            self._bytes -= size


def audit(contestant: Contestant) -> Audit:
    """Of one forward and backward pass, after one that does not count."""
    contestant.backward(contestant.forward())
    with Audit() as found:
        contestant.backward(contestant.forward())
    return found


def heading(title: str, place: Place, repeats: int, *peers: str) -> str:
    """What stands above tables: what is timed and where, on what machine, and beside which versions of `PEERS`."""
    return "\n".join([f"{title}, {place}; medians of {repeats}", machine(), *map(told, peers)]) + "\n"


def machine() -> str:
    """One line on what timings depend on: processor, threads, torch, kernels, linear layers, allocator, pressure."""
    settings = [f"{k}={os.environ[k]}" for k in sorted(os.environ) if k.startswith("MALLOC_") or k == "LD_PRELOAD"]
    return (
        f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"{'compiled kernels, ' if switched_on() else ''}linear layers by {choice()}, "
        f"allocator {' '.join(settings) or 'as the system sets it'}, CPU pressure {_pressure()}"
    )


def _pressure() -> str:
    try:
        with open("/proc/pressure/cpu", encoding="ascii") as file:
            return file.readline().split("avg60=")[1].split()[0] + "% of the last minute"
    except (OSError, IndexError):
        return "unknown"
