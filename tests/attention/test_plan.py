"""The plan string: what it says, and what it refuses."""

from __future__ import annotations

import pytest

from seqstruct.attention import Site, make_config, parse_choices
from seqstruct.attention.plan import Choice


def names(text: str, layers: int) -> list[str]:
    return [str(choice) for choice in parse_choices(text, layers, Site.DECODER_SELF)]


def test_one_item_is_broadcast() -> None:
    assert names("softmax", 3) == ["softmax"] * 3
    assert names("superposition_stack(size=7)", 2) == ["superposition_stack(size=7)"] * 2


def test_layers_are_listed_from_the_lowest_up() -> None:
    text = "softmax*2 + nondeterministic_stack(states=2, symbols=3, size=5) + (sigmoid(bias=-1) + softmax) * 2"
    assert names(text, 7) == ["softmax", "softmax", "nondeterministic_stack"] + ["sigmoid(bias=-1)", "softmax"] * 2


def test_defaults_make_equal_choices() -> None:
    assert parse_choices("superposition_stack", 1, Site.DECODER_SELF) == (
        Choice("superposition_stack", make_config("superposition_stack", {"size": 32})),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("softmax*2 + softmax", r"decoder_self attention: 3 layers described, the model has 6"),
        ("softmux", r"decoder_self attention, layer 0: no attention is called 'softmux'; there are: .*softmax"),
        ("softmax + superposition_stack(dim=3)", r"layer 1: superposition_stack has no option 'dim'; options: size"),
        ("superposition_stack(size='3')", r"layer 0: superposition_stack: option size takes int .*not '3'"),
        ("superposition_stack(size=True)", r"option size takes int"),
        ("superposition_stack(size=3, size=4)", r"superposition_stack: option size stands there twice"),
        ("superposition_stack(3)", r"superposition_stack takes options by name only"),
        ("superposition_stack(**{'size': 3})", r"'\*\*' is not part of a plan"),
        ("superposition_stack(size=open('x'))", r"option size takes a literal"),
        ("superposition_stack(size={[]: 1})", r"option size takes a literal, not {\[\]: 1}"),
        ("softmax*0", r"after '\*' stands a count"),
        ("softmax*2.0", r"after '\*' stands a count"),
        ("softmax*999999999", r"after '\*' stands a count"),
        ("softmax*1000*1000", r"more than 1000 layers"),
        ("softmax - softmax", r"expected a mechanism"),
        ("softmax +", r"cannot read"),
        ("", r"cannot read"),
        ("__import__('os').system('true')", r"expected a mechanism"),
        ("lambda: softmax", r"expected a mechanism"),
    ],
)
def test_what_does_not_fit_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_choices(text, 6, Site.DECODER_SELF)


def test_a_site_that_a_mechanism_does_not_serve_is_named() -> None:
    with pytest.raises(ValueError, match="cross attention, layer 2: superposition_stack does not work at cross"):
        parse_choices("softmax*2 + superposition_stack", 3, Site.CROSS)
