"""Every option of every mechanism declares its limits, and the parser of plans holds them."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import pytest

from seqstruct.attention import (
    ATTENTIONS,
    Attention,
    Shape,
    Site,
    make_config,
    option,
    parse_choices,
    register_attention,
    registry,
)
from seqstruct.attention.option import Limits, check_option, default_of, limits_of

OPTIONS = [(name, field) for name, cls in sorted(ATTENTIONS.items()) for field in dataclasses.fields(cls.Config)]
FREE = {("sigmoid", "bias")}  # any finite number


def beyond(field: dataclasses.Field) -> list[Any]:
    """Values just outside of what is declared."""
    default, limits = default_of(field), limits_of(field)
    if isinstance(default, bool):
        return [2, "yes"]
    outside: list[Any] = [True, None] + ([math.inf, -math.inf] if isinstance(default, float) else [1.5])
    if limits.among is not None:
        outside.append("".join(limits.among))
    step = 1 if isinstance(default, int) else 1e-9
    outside += [] if limits.least is None else [limits.least - step]
    outside += [] if limits.above is None else [limits.above]
    outside += [] if limits.most is None else [limits.most + step]
    outside += [default + 1] if limits.even else []
    return outside


def literal(value: Any) -> str:
    return repr(value).replace("inf", "1e999")


@pytest.mark.parametrize("name, field", OPTIONS, ids=lambda part: getattr(part, "name", part))
def test_a_value_beyond_its_limits_is_refused_by_the_parser(name: str, field: dataclasses.Field) -> None:
    default, limits = default_of(field), limits_of(field)
    if not isinstance(default, bool):
        assert limits is not None, f"{name}: declare {field.name} by option(), with its limits"
        bounded = limits.among if isinstance(default, str) else str(limits)
        assert bounded or (name, field.name) in FREE, f"{name}: {field.name} has no limits"
        check_option(name, field, default)
    site = min(ATTENTIONS[name].sites)
    for value in beyond(field):
        pattern = rf"^{site.value} attention, layer 1: {name}: (option )?{field.name} "
        with pytest.raises(ValueError, match=pattern):
            parse_choices(f"{name} + {name}({field.name}={literal(value)})", 2, site)
    if isinstance(default, float):
        with pytest.raises(ValueError, match="not nan"):
            make_config(name, {field.name: math.nan})


@pytest.mark.parametrize(
    "limits, words, inside, outside",
    [
        (Limits(), "", [-5, 1e300], [math.nan, math.inf, 10**400]),
        (Limits(least=1), "1 or more", [1, 7], [0, -1, math.nan]),
        (Limits(above=0), "above 0", [1e-9], [0, 0.0, -1, math.inf]),
        (Limits(most=3), "3 at most", [3, -2], [4]),
        (Limits(least=0, most=1), "from 0 to 1", [0, 0.5, 1], [-0.1, 1.1]),
        (Limits(above=0, most=1), "above 0, 1 at most", [1, 0.1], [0, 2]),
        (Limits(least=1), "1 or more", [None, 2], [0]),
        (Limits(least=2, even=True), "2 or more, even", [2, 8], [0, 3]),
        (Limits(among=("dot", "concat")), "one of dot, concat", ["dot"], ["", "do", 1]),
    ],
)
def test_limits_in_words_and_numbers(limits: Limits, words: str, inside: list, outside: list) -> None:
    assert str(limits) == words
    assert [value for value in inside + outside if limits.hold(value)] == inside


@pytest.mark.parametrize(
    "choice, message",
    [
        ("rfa(features=5)", "rfa: gaussian features are sines and cosines, an even number, not 5"),
        ("rfa(floor=2.0, unit_norm=False)", "rfa: a floor of 2.0 needs unit_norm; without it there is none"),
        ("performer(features=5, hyperbolic=True)", "performer: hyperbolic features come in pairs, not 5"),
    ],
)
def test_options_that_do_not_go_together_are_refused_by_the_parser(choice: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^decoder_self attention, layer 2: {message}$"):
        parse_choices(f"softmax*2 + {choice}", 3, Site.DECODER_SELF)


def test_a_config_made_by_hand_is_held_to_its_limits_by_the_module() -> None:
    cls = ATTENTIONS["superposition_stack"]
    with pytest.raises(ValueError, match="superposition_stack: size is 1 or more, not 0"):
        cls(cls.Config(size=0), Shape.of(Site.DECODER_SELF, 4))


def test_a_mechanism_may_declare_limits_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ATTENTIONS", registry.Register())

    @register_attention("foreign", sites=[Site.CROSS])
    class Foreign(Attention):
        @dataclass(frozen=True)
        class Config:
            size: int = -3
            widths: tuple = (1, 2)
            rate: float = option(0.5, least=0, most=1)
            depth: int | None = option(None, least=1)

    (choice,) = parse_choices("foreign(size=-5, rate=1)", 1, Site.CROSS)
    assert choice.config == Foreign.Config(-5, (1, 2), 1)
    Foreign(choice.config, Shape.of(Site.CROSS, 4))
    with pytest.raises(ValueError, match="cross attention, layer 0: foreign: rate is from 0 to 1, not 2"):
        parse_choices("foreign(rate=2)", 1, Site.CROSS)
    with pytest.raises(ValueError, match="foreign: depth is 1 or more, not 0"):
        parse_choices("foreign(depth=0)", 1, Site.CROSS)
    with pytest.raises(ValueError, match="option size takes int"):
        parse_choices("foreign(size='x')", 1, Site.CROSS)
