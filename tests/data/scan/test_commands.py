"""SCAN's commands against an interpreter of their own, and the splits against the published sizes."""

import json
from collections import Counter

import pytest

from seqstruct.data.scan.commands import commands, divided, held_out
from tests.data.scripts import prepare

PAIRS = commands()


def carried_out(command):
    """What a walker does who reads the command word by word, with a compass: (steps so far, then what to repeat)."""
    words = command.split()
    for joint in ("and", "after"):
        if joint in words:
            at = words.index(joint)
            parts = [carried_out(" ".join(words[:at])), carried_out(" ".join(words[at + 1 :]))]
            return sum(parts if joint == "and" else parts[::-1], [])
    times = {"twice": 2, "thrice": 3}.get(words[-1], 1)
    words = words if times == 1 else words[:-1]
    step = [] if words[0] == "turn" else [words[0].upper()]
    if words[1:]:
        turn = f"{words[-1][0].upper()}TURN"
        quarters, rounds = {"opposite": (2, 1), "around": (1, 4)}.get(words[1], (1, 1))
        step = (quarters * [turn] + step) * rounds
    return step * times


def derives(words, symbol="C"):
    """Whether the published grammar derives the words, by trying every rule and every place to cut."""
    u = ("walk", "look", "run", "jump")
    if symbol == "C":
        cuts = [i for i, word in enumerate(words) if word in ("and", "after")]
        return derives(words, "S") or any(derives(words[:i], "S") and derives(words[i + 1 :], "S") for i in cuts)
    if symbol == "S":
        return derives(words, "V") or (bool(words) and words[-1] in ("twice", "thrice") and derives(words[:-1], "V"))
    if len(words) == 3:
        return words[1] in ("opposite", "around") and derives([words[0], words[2]], "V")
    if len(words) == 2:
        return words[0] in (*u, "turn") and words[1] in ("left", "right")
    return len(words) == 1 and words[0] in u


def test_there_are_as_many_as_published_each_with_one_meaning():
    assert len(PAIRS) == 20910 == len(dict(PAIRS))
    assert all(derives(command.split()) for command, _ in PAIRS)
    assert not derives(["turn"]) and not derives("turn opposite".split()) and not derives("jump twice twice".split())


def test_every_meaning_is_that_of_the_interpreter():
    assert all(carried_out(command) == actions.split() for command, actions in PAIRS)


@pytest.mark.parametrize(
    ("command", "actions"),
    [
        ("jump", "JUMP"),
        ("jump left", "LTURN JUMP"),
        ("jump around right", "RTURN JUMP RTURN JUMP RTURN JUMP RTURN JUMP"),
        ("turn left twice", "LTURN LTURN"),
        ("jump thrice", "JUMP JUMP JUMP"),
        ("jump opposite left and walk thrice", "LTURN LTURN JUMP WALK WALK WALK"),
        ("jump opposite left after walk around left",
         "LTURN WALK LTURN WALK LTURN WALK LTURN WALK LTURN LTURN JUMP"),
    ],
)
def test_examples_of_the_paper(command, actions):
    assert dict(PAIRS)[command] == actions


@pytest.mark.parametrize(
    ("split", "train", "test"),
    [("simple", 16728, 4182), ("length", 16990, 3920), ("add-jump", 14670, 7706), ("add-turn-left", 21890, 1208)],
)
def test_splits_have_the_published_sizes(split, train, test):
    learnt, tested = divided(split, 1)
    assert (len(learnt), len(tested)) == (train, test)
    assert set(learnt).isdisjoint(tested)
    assert set(learnt) | set(tested) == set(PAIRS)


def test_what_each_split_tests():
    learnt, tested = divided("length", 1)
    assert max(len(actions.split()) for _, actions in learnt) == 22
    lengths = {len(actions.split()) for _, actions in tested}
    assert (min(lengths), max(lengths)) == (24, 48)
    for split, primitive in (("add-jump", "jump"), ("add-turn-left", "turn left")):
        learnt, tested = divided(split, 1)
        counts = Counter(command for command, _ in learnt)
        assert counts.pop(primitive) * 10 == len(learnt)
        assert set(counts.values()) == {1} and not any(primitive in command for command in counts)
        assert all(primitive in command for command, _ in tested)
    assert divided("simple", 1) == divided("simple", 1) != divided("simple", 2)


def test_what_is_held_out():
    learnt, _ = divided("add-jump", 1)
    train, valid = held_out(learnt, "add-jump", 700, 3)
    assert len(valid) == 700 and len(train) + 700 == len(learnt) and set(train).isdisjoint(valid)
    assert ("jump", "JUMP") not in valid
    for count in (0, -1, 13203):
        with pytest.raises(ValueError, match="valid: expected 1 to 13,202 of the training commands"):
            held_out(learnt, "add-jump", count, 3)


def test_from_the_command_line_to_the_task_and_its_baseline(tmp_path, capsys):
    out = tmp_path / "scan"
    assert prepare("scan", "--split", "length", "--valid", 90, "--out", out) == 0, capsys.readouterr().err
    assert "16,900 commands to train on, 90 to validate on, 3,920 to test on" in capsys.readouterr().out
    assert json.loads((out / "meta.json").read_text())["counts"] == {"train": 16900, "valid": 90, "test": 3920}
    _, tested = divided("length", 1)
    lines = [(out / "raw" / f"test.{side}").read_text().splitlines() for side in ("commands", "actions")]
    assert list(zip(*lines, strict=True)) == tested
    from seqstruct.scoring.named_baselines import measure

    found = {m.metric: m.value for m in measure("constant", out)}
    train, valid = ((out / "text" / f"{split}.actions").read_text().splitlines() for split in ("train", "valid"))
    constant = max(train, key=Counter(train).__getitem__)
    assert found == {"validation_exact_match": pytest.approx(100 * valid.count(constant) / 90), "test_exact_match": 0.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--split", "long"], "invalid choice: 'long'"), (["--valid", "0"], "valid: expected 1 to 16,989"),
     (["--valid", "many"], "invalid int value")],
)
def test_wrong_options(options, message, tmp_path, refused):
    assert message in refused("prepare", "scan", "--split", "length", *options, "--out", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
