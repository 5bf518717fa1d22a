"""What is read from fairseq's logs."""

from __future__ import annotations

from seqstruct.bridge.logs import seconds


def line(tag: str, **statistics: str) -> str:
    """A line of fairseq's log."""
    content = ", ".join(f'"{name}": "{value}"' for name, value in statistics.items())
    return f"2024-05-13 10:11:12 | INFO | {tag} | {{{content}}}\n"


def test_seconds_are_of_all_parts_of_a_training() -> None:
    first = [line("train_inner", wall="13", train_wall="13"), line("train", train_wall="17", train_train_wall="16")]
    first.append(line("train_inner", wall="25", train_wall="8"))
    second = [line("train_inner", wall="7", train_wall="6"), line("valid", valid_wall="8")]
    second.append(line("train", train_wall="9"))
    assert seconds(first) == 25
    assert seconds(second) == 9
    assert seconds([*first, *second]) == 34


def test_without_statistics_seconds_are_unknown() -> None:
    assert seconds(["nothing to be seen\n"]) is None
