"""The plan: which mechanism stands in which layer, written as one string a site.

    softmax                                              every layer
    softmax*2 + nondeterministic_stack(states=2, symbols=3, size=5) + softmax*2

The grammar is a subset of Python expressions, read by `ast.parse` and a walker: a name, or a name called with
literal keywords; `*` and a count repeats it; `+` joins layers from the lowest up.  Nothing is evaluated.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from torch import nn

from seqstruct.attention.base import Attention, Shape, Site, check_site
from seqstruct.attention.option import default_of
from seqstruct.attention.registry import get_attention, make_config
from seqstruct.attention.short_convolution import ConvolvedAttention


@dataclass(frozen=True)
class Choice:
    """A mechanism and its options, for one layer of one site."""

    name: str
    config: Any

    def build(self, shape: Shape, tied: nn.Module | None = None) -> Attention:
        """The module; a mechanism that shares weights across layers gets them as `tied`.

        Where the slot has a convolution it stands behind one, as `mechanism` of the module.
        """
        attention = get_attention(self.name)(self.config, shape)
        if tied is not None:
            attention.tied = tied
        return ConvolvedAttention(attention) if shape.slot.short_conv else attention

    def seated(self, shape: Shape, shared: dict[tuple[Site, Choice], nn.Module | None]) -> Attention:
        """The module of one of a stack's layers; a mechanism that does not rotate gets no rotary positions.

        shared: what the layers so far of one site and choice share, to which this one's is added.
        """
        mechanism = get_attention(self.name)
        if not mechanism.rotates:
            shape = replace(shape, slot=replace(shape.slot, rotary_base=None))
        if (shape.site, self) not in shared:
            shared[shape.site, self] = mechanism.shared(self.config, shape)
        return self.build(shape, shared[shape.site, self])

    def __str__(self) -> str:
        chosen = [(field, getattr(self.config, field.name)) for field in fields(self.config)]
        options = [f"{field.name}={value!r}" for field, value in chosen if value != default_of(field)]
        return f"{self.name}({', '.join(options)})" if options else self.name


class AttentionPlan(NamedTuple):
    """Choices of all layers, from the lowest up, for each of the three sites."""

    encoder_self: tuple[Choice, ...]
    decoder_self: tuple[Choice, ...]
    cross: tuple[Choice, ...]

    def at(self, site: Site) -> tuple[Choice, ...]:
        """The choices of one site."""
        return getattr(self, Site(site).value)


def parse_choices(text: str, layers: int, site: Site) -> tuple[Choice, ...]:
    """Read one site's string for a stack of so many layers; one item alone is broadcast to all of them.

    Raises ValueError, naming site, layer, mechanism and what is allowed, on anything that does not fit.
    """
    site = Site(site)
    choices = []
    for layer, (name, options) in enumerate(read_items(text, f"{site.value} attention")):
        try:
            choice = Choice(name, make_config(name, options))
            check_site(get_attention(name), site)
        except ValueError as error:
            raise ValueError(f"{site.value} attention, layer {layer}: {error}") from None
        choices.append(choice)
    if len(choices) == 1:
        return tuple(choices * layers)
    if len(choices) != layers:
        raise ValueError(f"{site.value} attention: {len(choices)} layers described, the model has {layers}")
    return tuple(choices)


def read_items(text: str, what: str) -> list[tuple[str, dict[str, Any]]]:
    """The name and the options of each layer, as they stand.  Raises ValueError, naming `what`, on other grammar."""
    try:
        return _items(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError) as error:
        detail = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ValueError(f"{what}: cannot read {text!r}: {detail}") from None


MAX_LAYERS = 1000


def _items(node: ast.expr) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _items(node.left) + _items(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        count = node.right
        if not (isinstance(count, ast.Constant) and type(count.value) is int and 1 <= count.value <= MAX_LAYERS):
            raise ValueError(f"after '*' stands a count of layers from 1 to {MAX_LAYERS}, not {ast.unparse(count)}")
        items = _items(node.left)
        if len(items) * count.value > MAX_LAYERS:
            raise ValueError(f"more than {MAX_LAYERS} layers")
        return items * count.value
    if isinstance(node, ast.Name):
        return [(node.id, {})]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.args:
            raise ValueError(f"{node.func.id} takes options by name only")
        options: dict[str, Any] = {}
        for keyword in node.keywords:
            value = _literal(node.func.id, keyword)
            if keyword.arg in options:
                raise ValueError(f"{node.func.id}: option {keyword.arg} stands there twice")
            options[str(keyword.arg)] = value
        return [(node.func.id, options)]
    raise ValueError(f"expected a mechanism, not {ast.unparse(node)!r}")


def _literal(name: str, keyword: ast.keyword) -> Any:
    if keyword.arg is None:
        raise ValueError(f"{name}: '**' is not part of a plan")
    try:
        return ast.literal_eval(keyword.value)
    except (ValueError, TypeError):  # of a dictionary or a set whose keys are no keys
        raise ValueError(f"{name}: option {keyword.arg} takes a literal, not {ast.unparse(keyword.value)}") from None
