"""Decoding step by step: attention alone, and a whole decoder beside one whose attention does nothing.

`step`: one write and one reading, batch 16, 8 heads of size 64, from projected vectors (features are made in it, ABC's
control is given), held against softmax over a cache whose cells are there from the start.
`decoder` (Peng 2022, figures 4.2, 4.3 and 5.1): 6 layers of size 512, 8 heads, feed-forward 2,048, 32,000 words,
batch 16, one token a step after so many others: greedily, and with the rows of all states in a new order before each
step, as in beam search, which copies whole states, spare cells too.  The limit has every reading and writing replaced
by the identity, with the projections kept.  `conditional` has a source as long as the target, `unconditional` none.
Of a state the used megabytes are what is read; softmax's cache doubles when it is full, so that up to as many again are
reserved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqstruct.attention.softmax.base import Cache
from seqstruct.benchmarks.decode_models import PLANS, Prefix, decoder, limit
from seqstruct.benchmarks.timing import Place, draw, heading, megabytes, table, turns
from seqstruct.ops.memory import EluMap, FeatureMap, GaussianMap, bounded_memory, linear_attention
from seqstruct.plots.curves import Curves, log_panels
from seqstruct.plots.figures import save

BATCH, HEADS, DIM = 16, 8, 64
CACHE = "softmax, preallocated cache"
LIMIT = "no attention"
SECTIONS = ("step", "unconditional", "conditional")


def run(
    lengths: Sequence[int],
    repeats: int,
    sections: Sequence[str] | None = None,
    plot: str | None = None,
    device: str = "cpu",
) -> str:
    """The tables of the sections (all by default); `plot`: a picture of the curves, with the section in its name.

    Raises ValueError on a device that is not to be had.
    """
    place = Place.of(device, "float32")
    tables = []
    for section in SECTIONS:
        if sections and section not in sections:
            continue
        if section == "step":
            base, panels = CACHE, _steps(lengths, repeats, place)
        else:
            base, panels = "softmax", decoders(lengths, repeats, section == "conditional", place)
        tables.append(f"{section}\n" + _table(panels, base))
        if plot:
            name = plot if sections and len(sections) == 1 else _named(plot, section)
            save(log_panels(list(panels.items()), f"Decoding, {section}, batch {BATCH}"), name)
    return "\n\n".join([heading(f"Decoding, batch {BATCH}", place, repeats).rstrip(), *tables])


def _table(panels: Mapping[str, Curves], base: str) -> str:
    """Times beside how often they go into softmax's and how often the limit's into them, sizes beside their share."""
    rows: dict[tuple[str, int], list[str]] = {}
    header = ["attention", "length"]
    for label, curves in panels.items():
        timed, limited = label.endswith("ms"), LIMIT in curves
        header += [label, *(["times faster", *(["of the limit"] if limited else [])] if timed else ["of softmax's"])]
        for name, points in curves.items():
            for length, value in points.items():
                cells = [f"{value:.3f}", f"{curves[base][length] / value:.1f}"]
                cells += [f"{value / curves[LIMIT][length]:.2f}"] if limited else []
                if not timed:
                    cells = [f"{value:.2f}", f"{100 * value / curves[base][length]:.1f}%"]
                rows.setdefault((name, length), []).extend(cells)
    return table(header, [[name, str(length), *cells] for (name, length), cells in rows.items()])


def _named(plot: str, section: str) -> str:
    stem, dot, ending = plot.rpartition(".")
    return f"{stem}-{section}{dot}{ending}" if dot else f"{plot}-{section}"


@torch.no_grad()
def _steps(lengths: Sequence[int], repeats: int, place: Place) -> dict[str, Curves]:
    times: dict[str, dict[int, float]] = {}
    sizes: dict[str, dict[int, float]] = {}
    for length in lengths:
        steps = {CACHE: cached(length, place), f"linear, {DIM} features": featured(EluMap(), DIM, place)}
        for features in (128, 256):
            projection = _draw(place, HEADS, features // 2, DIM)
            made = GaussianMap(projection, True, projection[:, 0])
            steps[f"rfa, {features} features"] = featured(made, features, place)
        steps["abc_mlp, 32 slots"] = bounded(32, place)
        found = turns({name: step for name, (step, _) in steps.items()}, repeats, 2, 8, place)
        for name, (_, size) in steps.items():
            times.setdefault(name, {})[length] = found[name]
            sizes.setdefault(name, {})[length] = size
    return {"step ms": times, "state MB": sizes}


Step = tuple[Callable[[], Tensor], float]


def cached(length: int, place: Place) -> Step:
    """Softmax over `length` cells, of which the last is written; and megabytes of state."""
    keys, values = (_draw(place, BATCH, HEADS, length, DIM) for _ in range(2))
    query, key, value = _vectors(place)

    def step() -> Tensor:
        keys[:, :, length - 1 : length] = key
        values[:, :, length - 1 : length] = value
        return F.scaled_dot_product_attention(query, keys, values)

    return step, megabytes((keys, values))


def featured(features: FeatureMap, size: int, place: Place) -> Step:
    query, key, value = _vectors(place)
    state = linear_attention.empty_memory(BATCH, HEADS, size, DIM, query)

    def step() -> Tensor:
        return linear_attention.step(state, None, query, key, value, None, features)[0]

    return step, megabytes(state)


def bounded(slots: int, place: Place) -> Step:
    query, key, value = _vectors(place)
    control = _draw(place, BATCH, HEADS, 1, slots)
    state = bounded_memory.empty_bounded_memory(BATCH, HEADS, slots, DIM, DIM, query)

    def step() -> Tensor:
        return bounded_memory.step(state, None, query, key, value, control, True)[0]

    return step, megabytes(state)


@torch.no_grad()
def decoders(lengths: Sequence[int], repeats: int, conditional: bool, place: Place) -> dict[str, Curves]:
    """By quantity, decoder and length: milliseconds of a greedy step and of one in beam search; megabytes of states."""
    models = {name: model_of(name, conditional, max(lengths), place) for name in (*PLANS, LIMIT)}
    greedy, beam, used, reserved = ({name: {} for name in models} for _ in range(4))
    for length in lengths:
        for times, reorder in ((greedy, False), (beam, True)):
            prefixes = {name: Prefix(model, length, BATCH, place, reorder) for name, model in models.items()}
            found = turns({name: prefix.step for name, prefix in prefixes.items()}, repeats, place=place)
            for name, milliseconds in found.items():
                times[name][length] = milliseconds
            del prefixes
        for name, model in models.items():
            used[name][length], reserved[name][length] = _megabytes_after_a_step(model, length, place)
    return {"step ms": greedy, "beam step ms": beam, "state MB": used, "reserved MB": reserved}


@torch.no_grad()
def states(name: str, lengths: Sequence[int], conditional: bool, place: Place) -> dict[int, tuple[float, float]]:
    """Megabytes of all states of one decoder by length, used and reserved; nothing is timed."""
    model = model_of(name, conditional, max(lengths), place)
    return {length: _megabytes_after_a_step(model, length, place) for length in lengths}


def model_of(name: str, conditional: bool, length: int, place: Place) -> nn.Module:
    if name == LIMIT:
        return limit(decoder(("linear", "linear"), conditional, length, place))
    return decoder(PLANS[name], conditional, length, place)


def _megabytes_after_a_step(model: nn.Module, length: int, place: Place) -> tuple[float, float]:
    prefix = Prefix(model, length, BATCH, place)
    prefix.step()
    found = prefix.states()
    return sum(used_megabytes(state) for state in found), megabytes(found)


def used_megabytes(state: Any) -> float:
    """The same of what is read: of a cache the cells in use, of another state all."""
    if isinstance(state, Cache):
        used = int(state.length[0])
        return megabytes((state.key[:, :, :used], state.value[:, :, :used], state.padding[:, :used], state.length))
    return megabytes(state)


def _vectors(place: Place) -> tuple[Tensor, ...]:
    return tuple(_draw(place, BATCH, HEADS, 1, DIM) for _ in range(3))


def _draw(place: Place, *shape: int) -> Tensor:
    return draw(1, *shape, device=place.device).detach()
