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

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqstruct.attention.base import Reading, Site
from seqstruct.attention.multi_head import MultiHeadAttention
from seqstruct.attention.softmax.base import Cache
from seqstruct.benchmarks.timing import Place, draw, heading, made_up_task, megabytes, turns
from seqstruct.bridge.adapter import AttentionAdapter
from seqstruct.command import text_table
from seqstruct.data.text.byte_symbols import SPECIAL
from seqstruct.models.transformer.translation import StructuredTransformerModel, StructuredTransformerModelConfig
from seqstruct.ops.memory import EluMap, FeatureMap, GaussianMap, bounded_memory, linear_attention
from seqstruct.plots.curves import Curves, log_panels
from seqstruct.plots.figures import check_name, save

BATCH, HEADS, DIM = 16, 8, 64
LAYERS, MODEL, FEED_FORWARD, WORDS = 6, 512, 2048, 32000
CACHE = "softmax, preallocated cache"
LIMIT = "no attention"
SECTIONS = ("step", "unconditional", "conditional")
PLANS = {  # cross and causal attention, of the sizes of figures 4.2 and 5.1
    "softmax": ("softmax", "softmax"),
    "linear": ("linear", "linear"),
    "rfa, 256 and 128 features": ("rfa(features=256)", "rfa(features=128)"),
    "rfa arccos, 128 and 64 features": (
        "rfa(features=128, kernel='arccos')", "rfa(features=64, kernel='arccos')"
    ),
    "t2r, 32 and 4 features": ("t2r(features=32)", "t2r(features=4)"),
    "abc_mlp, 32 and 8 slots": ("abc_mlp(slots=32)", "abc_mlp(slots=8)"),
}


def run(
    lengths: Sequence[int],
    repeats: int,
    sections: Sequence[str] | None = None,
    plot: str | None = None,
    device: str = "cpu",
) -> str:
    """The tables of the sections (all by default); `plot`: a picture of the curves, with the section in its name.

    Raises ValueError on a device that is not to be had, or a picture of another kind.
    """
    place = Place.of(device, "float32")
    if plot:
        check_name(plot)
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
    return text_table(header, [[name, str(length), *cells] for (name, length), cells in rows.items()])


def _named(plot: str, section: str) -> str:
    stem, _, ending = plot.rpartition(".")
    return f"{stem}-{section}.{ending}"


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
            prefixes = {name: Prefix(model, length, place, reorder) for name, model in models.items()}
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
    built = decoder(PLANS["linear" if name == LIMIT else name], conditional, length, place)
    for adapter in _adapters(built) if name == LIMIT else ():
        adapter.mechanism = Idle(Idle.Config(), adapter.mechanism.shape).to(place.device)
    return built.eval()


def _megabytes_after_a_step(model: nn.Module, length: int, place: Place) -> tuple[float, float]:
    prefix = Prefix(model, length, place)
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


class Idle(MultiHeadAttention):
    """Projections with nothing between them: what attention costs when writing and reading cost nothing."""

    sites = frozenset(Site)

    class State(NamedTuple):
        """last: B C."""

        last: Tensor

    def initial_state(self, batch_size: int) -> State:
        return self.State(self.k_proj.weight.new_zeros(batch_size, self.shape.embed_dim))

    def write(self, state: State, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> State:
        self.k_proj(key)
        return self.State(self.v_proj(value)[:, -1])

    def read(
        self, state: State, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        return Reading(self.out_proj(self.q_proj(query)))


def decoder(plans: tuple[str, str], conditional: bool, length: int, place: Place) -> nn.Module:
    """plans: of cross and of causal attention."""
    config = StructuredTransformerModelConfig(
        encoder_layers=1,
        encoder_embed_dim=MODEL,
        decoder_layers=LAYERS,
        decoder_embed_dim=MODEL,
        decoder_attention_heads=HEADS,
        decoder_ffn_embed_dim=FEED_FORWARD,
        cross_attention=plans[0],
        decoder_self_attention=plans[1],
        max_source_positions=length + 8,
        max_target_positions=length + 8,
        share_decoder_input_output_embed=True,
    )
    torch.manual_seed(1)
    task = made_up_task(map(str, range(WORDS - SPECIAL)))
    built = StructuredTransformerModel.build_model(config, task).decoder.to(place.device)
    if not conditional:
        for layer in built.layers:
            layer.encoder_attn = None
    return built


def _adapters(built: nn.Module) -> list[AttentionAdapter]:
    return [module for module in built.modules() if isinstance(module, AttentionAdapter)]


class Prefix:
    """A decoder that has read `length` - 1 tokens; each step reads one more."""

    def __init__(self, built: nn.Module, length: int, place: Place, reorder: bool = False):
        """States of random keys and values; the source, if there is one, is of the same length.

        reorder: whether each step takes the rows of all states in a new order first, as in beam search.
        Raises ValueError on a length below 2, at which nothing was read.
        """
        if length < 2:
            raise ValueError(f"expected lengths of 2 or more, got {length}")
        generator = torch.Generator().manual_seed(1)
        self.built = built
        self.tokens = torch.randint(4, WORDS, (BATCH, length), generator=generator).to(place.device)
        orders = torch.randint(BATCH, (BATCH,), generator=generator).to(place.device)
        self.orders = orders if reorder else None
        given = torch.randn(length, BATCH, MODEL, generator=generator).to(place.device)
        self.encoded = {"encoder_out": [given], "encoder_padding_mask": []}
        self.incremental: dict[str, dict[str, Any]] = {}
        for adapter in _adapters(built):
            static = adapter.mechanism.shape.site is Site.CROSS
            read = given if static else given[1:]
            adapter(given[:1], read, read, incremental_state=self.incremental, static_kv=static, need_weights=False)

    def step(self) -> Tensor:
        """Reorder all states if asked to, then read the last token: B 1 V."""
        if self.orders is not None:
            self.built.reorder_incremental_state_scripting(self.incremental, self.orders)
        return self.built(self.tokens, encoder_out=self.encoded, incremental_state=self.incremental)[0]

    def states(self) -> list[Any]:
        return [saved["state"] for saved in self.incremental.values() if "state" in saved]


@torch.no_grad()
def full_run(built: nn.Module, length: int, place: Place) -> float:
    """Seconds of decoding greedily from nothing to `length` tokens; the source, if there is one, is as long."""
    given = torch.randn(length, BATCH, MODEL, generator=torch.Generator().manual_seed(1)).to(place.device)
    encoded = {"encoder_out": [given], "encoder_padding_mask": []}
    tokens = torch.zeros(BATCH, length + 1, dtype=torch.long, device=place.device).fill_(2)
    incremental: dict[str, dict[str, Any]] = {}
    start = time.perf_counter()
    for t in range(length):
        logits = built(tokens[:, : t + 1], encoder_out=encoded, incremental_state=incremental)[0]
        tokens[:, t + 1] = logits[:, -1].argmax(-1)
    place.finished(tokens)
    return time.perf_counter() - start
