"""What laws are held against: mechanisms at every site they claim, with the option sets below (or their defaults).

And what laws are made of: modules with random parameters, inputs, the forms of a mechanism, outputs and gradients.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from seqstruct.attention import ATTENTIONS, Attention, Choice, Reading, Shape, Site, Slot, get_attention, make_config
from seqstruct.attention.multi_head import MultiHeadAttention
from seqstruct.attention.plan import read_items

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "abc_mlp": [
        {"slots": 3},
        {"slots": 4, "activation": "sigmoid", "gate": True},
        {"slots": 3, "activation": "relu"},
        {"slots": 3, "activation": "relu", "empty_slots": True, "gate": True},
    ],
    "abc_random": [{"slots": 4, "period": 5}, {"slots": 3, "period": 31, "empty_slots": True}],
    "additive": [{}, {"size": 5}],
    "alignment_crf": [{}, {"score": "concat"}],
    "bigbird": [{"size": 2}, {"size": 3, "window": 0, "global_blocks": 0, "random": 1}],
    "constituency": [{"hidden_size": 3, "score_size": 4}, {"hidden_size": 3, "score_size": 5, "bounded": False}],
    "clustering": [{"slots": 3, "allow_short": True}, {"slots": 4, "allow_short": True, "empty_slots": True}],
    "dilated_window": [{"slots": 3}, {"slots": 2, "dilation": 3, "empty_slots": True}],
    "linformer": [{"slots": 3, "length": 13}],
    "local_blocks": [{"size": 4}],
    "local_to_global": [{"slots": 5, "stride": 2}, {"slots": 12, "stride": 1, "empty_slots": True}],
    "lsh": [{"rounds": 2, "buckets": 4}, {"rounds": 1, "buckets": 2, "chunk": 9}],
    "luna": [{"slots": 3}],
    "local_monotonic": [{"half_width": 2}, {"score": "concat"}],
    "local_predictive": [{"half_width": 2}, {"score": "concat", "half_width": 5}],
    "location": [{"length": 20}, {"length": 8}],
    "luong": [{}, {"score": "concat"}],
    "mean_pool": [{"slots": 5, "stride": 3}, {"slots": 7, "stride": 2, "empty_slots": True}],
    "sigmoid": [{"bias": -0.7}],
    "delta": [{}, {"negative_eigenvalues": True}, {"bidirectional": True}],
    "delta_product": [{}, {"steps": 3, "negative_eigenvalues": True, "gate": True}, {"bidirectional": True}],
    "gated_delta": [{}, {"negative_eigenvalues": True, "bidirectional": True}],
    "gla": [{}, {"bidirectional": True}],
    "gsa": [{"slots": 3}, {"slots": 5, "bidirectional": True}],
    "kda": [{}, {"bidirectional": True}],
    "log_linear": [{"levels": 5}, {"levels": 3}, {"bidirectional": True}],
    "mlstm": [{}, {"bidirectional": True}],
    "retention": [{}, {"bidirectional": True}],
    "ssd": [{}, {"bidirectional": True}],
    "dependency": [
        {"hidden_size": 3, "score_size": 4},
        {"hidden_size": 3, "score_size": 5, "bounded": False, "root_token": True, "single_root": True},
        {"hidden_size": 5, "score_size": 7, "bounded": False, "gradient": "spigot", "root_token": True},
    ],
    "hard_parents": [{"without_heads": "chain"}, {"without_heads": "chain", "root_token": True}],
    "segmentation": [{}, {"normalize": False, "score_l2": 0.1}, {"pairwise": False, "total": 3.0}],
    "simple": [{"hidden_size": 3, "score_size": 4}],
    "soft_children": [{"hidden_size": 3, "score_size": 4}, {"hidden_size": 3, "score_size": 5, "root_token": True}],
    "limited_nondeterministic_stack": [
        {"states": 2, "symbols": 3, "size": 2, "window": 3},
        {"states": 1, "symbols": 2, "size": 3, "window": 9, "sigmoid": True},
    ],
    "state_stack": [{"height": 3, "size": 2}, {"height": 13, "size": 3}],
    "stratification_stack": [{"size": 3}],
    "superposition_stack": [{"size": 3}, {"size": 5, "sigmoid": True}],
    "nondeterministic_stack": [
        {"states": 2, "symbols": 3, "size": 2},
        {"states": 1, "symbols": 2, "size": 3, "sigmoid": True},
    ],
    "normalized_softmax": [{"sigma": 1.5}],
    "performer": [{"features": 9}, {"features": 10, "hyperbolic": True, "orthogonal": False}],
    "rfa": [
        {"features": 16, "pool": 3},
        {"features": 9, "kernel": "arccos", "pool": 1, "floor": 0.0},
        {"features": 2048, "unit_norm": False, "pool": 3},
        {"features": 16, "gate": True, "pool": 3, "floor": 0.0},
        {"features": 2048, "gate": True, "unit_norm": False, "pool": 3},
    ],
    "sinkhorn": [{"size": 3}, {"size": 1, "rounds": 2}],
    "sliding_window": [{"slots": 3}, {"slots": 9, "empty_slots": True}],
    "synthesizer": [{"length": 9}, {"kind": "random", "length": 9}],
    "t2r": [{"features": 5}],
}
LONG = 103  # three times all that cuts sequences
LONG_OPTIONS: dict[str, list[dict[str, Any]]] = {  # where those above lay out less, or cut nothing
    "dependency": [{"hidden_size": 3, "score_size": 4}],
    "linformer": [{"slots": 3, "length": LONG}],
    "lsh": [{"rounds": 2, "buckets": 4, "chunk": 3}, {"rounds": 1, "buckets": 2, "chunk": 9}],
    "mean_pool": [{"slots": 26, "stride": 4}, {"slots": 21, "stride": 5, "empty_slots": True}],
    "rfa": [{"features": 16}, {"features": 9, "kernel": "arccos", "gate": True}],
    "synthesizer": [{"length": LONG}, {"kind": "random", "length": LONG}],
}
ALL, STREAMING = pytest.mark.law(), pytest.mark.law(streaming=True)
SITES = pytest.mark.law(one_of_each="site")
TOLERANCE = {"rtol": 1e-9, "atol": 1e-10}
BATCH, LENGTH, SOURCE, DIM, MEMORY_DIM, HEADS = 5, 7, 11, 6, 10, 2


class Case(NamedTuple):
    """A mechanism with options at a site, and those of the slot."""

    name: str
    options: dict[str, Any]
    site: Site
    slot: Slot = Slot()

    def __str__(self) -> str:
        options = ",".join(f"{key}={value}" for key, value in self.options.items())
        changed = [f.name for f in dataclasses.fields(Slot) if getattr(self.slot, f.name) != f.default]
        return "+".join([f"{self.name}({options})@{self.site.value}", *changed])

    @property
    def sizes(self) -> tuple[int, int]:
        """Model size and heads, the latter even where slots group or turn them."""
        return (DIM, HEADS) if self.slot == Slot() else (8, 4)


def cases(
    plans: Sequence[str] = (),
    *,
    streaming: bool = False,
    long: bool = False,
    decoder: bool = False,
    slots: str = "",
    one_of_each: str = "",
) -> list[Case]:
    """The cases of a law: of all mechanisms, or of those that plans such as "rfa(features=8) + linear" have.

    streaming: of mechanisms that have a step form alone.  long: with options for LONG tokens, unless plans give others.
    decoder: at a decoder's sites alone.
    slots: "full" for slots that ask for all they can, "each" for what `asked_of` has, "" for usual ones.
    one_of_each: "site" for one set of options of a mechanism at each site, "family" for one mechanism of each folder.
    """
    if one_of_each:
        chosen: dict[Hashable, Case] = {}
        for case in cases(plans, streaming=streaming, decoder=decoder):
            family = get_attention(case.name).__module__.rpartition(".")[0]
            chosen.setdefault(family if one_of_each == "family" else (case.name, case.site), case)
        return list(chosen.values())
    if slots:
        first: dict[tuple[str, Site], Case] = {}  # one set of options
        for case in cases(plans, streaming=streaming, decoder=decoder):
            first.setdefault((case.name, case.site), case)
        start = -1 if slots == "full" else 0
        found = [case._replace(slot=slot) for case in first.values() for slot in asked_of(case)[start:]]
        return [case for case in found if not streaming or build(case, torch.Generator()).streaming]
    table = {**OPTIONS, **LONG_OPTIONS} if long else OPTIONS
    asked = [item for plan in plans for item in read_items(plan, "--attention")] or [(name, {}) for name in ATTENTIONS]
    return [
        Case(name, options, site)
        for name, given in sorted(asked, key=lambda item: item[0])
        for options in ([given] if given else table.get(name, [{}]))
        for both_ways in [options.get("bidirectional", False)]  # which is for encoders and has no step form
        for site in (Site.ENCODER_SELF,) * both_ways or sorted(get_attention(name).sites)
        if (get_attention(name).streaming and not both_ways) or not streaming
        if site is not Site.ENCODER_SELF or not decoder
    ]


def asked_of(case: Case) -> list[Slot]:
    """Slots that ask nothing of a mechanism at a site, all but one thing, and all that they may: any two things with
    one another and without; the one with all is last."""
    mechanism = get_attention(case.name)
    heads, here = issubclass(mechanism, MultiHeadAttention), case.site is not Site.CROSS
    asked = {
        "kv_heads": (None, 2) if heads else (None,),
        "biases": (False,),
        "qk_norm": (False, True) if heads else (False,),
        "rotary_base": (None, 100.0) if mechanism.rotates and here else (None,),
        "short_conv": (0, 3) if here else (0,),
    }
    nothing, everything = ({name: values[end] for name, values in asked.items()} for end in (0, -1))
    all_but_one = ({**everything, name: nothing[name]} for name in asked if everything[name] != nothing[name])
    return list(dict.fromkeys(Slot(**options) for options in (nothing, *all_but_one, everything)))


def build(case: Case, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> Attention:
    """The module in evaluation mode with independent random parameters."""
    memory_dim = MEMORY_DIM if case.site is Site.CROSS else None
    shape = Shape.of(case.site, *case.sizes, dropout=0.1, memory_dim=memory_dim, slot=case.slot)
    config = make_config(case.name, case.options)
    with torch.random.fork_rng():
        torch.manual_seed(generator.initial_seed())  # for what is drawn at construction and is no parameter
        attention = Choice(case.name, config).build(shape, get_attention(case.name).shared(config, shape))
    attention = attention.to(dtype).eval()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.uniform_(-0.9, 0.9, generator=generator)
    return attention


class DrawnInputs(NamedTuple):
    """query B T C and memory B S C; one tensor at self-attention sites."""

    query: Tensor
    memory: Tensor


def inputs(
    case: Case, generator: torch.Generator, batch: int = BATCH, length: int = LENGTH, source: int = SOURCE
) -> DrawnInputs:
    """Random float64 inputs that require gradients."""
    query = torch.randn(batch, length, case.sizes[0], generator=generator, dtype=torch.float64).requires_grad_()
    if case.site is not Site.CROSS:
        return DrawnInputs(query, query)
    memory = torch.randn(batch, source, MEMORY_DIM, generator=generator, dtype=torch.float64)
    return DrawnInputs(query, memory.requires_grad_())


def in_type(case: Case, generator: torch.Generator, dtype: torch.dtype, times: float = 1.0) -> DrawnInputs:
    """Inputs of a type, which require gradients."""
    query, memory = inputs(case, generator)
    scaled = (times * query.detach()).to(dtype).requires_grad_()
    return DrawnInputs(scaled, scaled if memory is query else (times * memory.detach()).to(dtype).requires_grad_())


def stepwise(
    attention: Attention, query: Tensor, key: Tensor, value: Tensor, padding_mask: Tensor | None = None
) -> tuple[Reading, Any]:
    """`forward` as it is defined, by `write` and `read` in turn."""
    return Attention.parallel(attention, attention.cleared(query, key, value, padding_mask), None)


def forms(attention: Attention) -> list[Callable[..., tuple[Reading, object]]]:
    """`forward`; and step by step and going on from a state, if the mechanism has these."""
    whole = [type(attention).forward]
    return [*whole, stepwise, resumed] if attention.streaming else whole


def resumed(
    attention: Attention, query: Tensor, key: Tensor, value: Tensor, padding_mask: Tensor | None = None
) -> tuple[Reading, object]:
    """`forward` from the empty state."""
    return attention(query, key, value, padding_mask, attention.initial_state(query.size(0)))


def output(attention: Attention, query: Tensor, memory: Tensor, padding_mask: Tensor | None = None) -> Tensor:
    """The parallel form's output."""
    return attention(query, memory, memory, padding_mask)[0].output


def gradients(result: Tensor, attention: Attention, *tensors: Tensor) -> list[Tensor]:
    """Gradients of a fixed random projection of the result."""
    weights = torch.randn(result.shape, generator=torch.Generator().manual_seed(7), dtype=result.dtype)
    wanted = [*tensors, *attention.parameters()]
    found = torch.autograd.grad((result * weights).sum(), wanted, allow_unused=True)
    return [torch.zeros_like(t) if g is None else g for t, g in zip(wanted, found, strict=True)]


def distinct(query: Tensor, memory: Tensor) -> list[Tensor]:
    """The leaves among the inputs."""
    return [query] if query is memory else [query, memory]


def padded(x: Tensor, lengths: list[int], side: str, total: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Rows cut to their lengths and padded with noise on one side; and the mask."""
    noise = torch.randn(x.size(0), total, x.size(2), generator=generator, dtype=x.dtype)
    mask = torch.ones(x.size(0), total, dtype=torch.bool)
    rows = []
    for row, length in enumerate(lengths):
        real = slice(0, length) if side == "right" else slice(total - length, total)
        mask[row, real] = False
        filled = noise[row].clone()
        filled[real] = x[row, :length]
        rows.append(filled)
    return torch.stack(rows), mask
