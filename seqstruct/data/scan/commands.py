"""The commands of SCAN with their meanings, and the published ways to split them.

Lake and Baroni, "Generalization without systematicity: on the compositional skills of sequence-to-sequence recurrent
networks" (ICML 2018), the phrase-structure grammar and the interpretation function of their supplement:

    C -> S and S | S after S | S              [S1 and S2] = [S1] [S2], [S1 after S2] = [S2] [S1]
    S -> V twice | V thrice | V               twice or three times [V]
    V -> D | U | D opposite | D around        U left = LTURN [U], U opposite left = LTURN LTURN [U],
    D -> U left | U right | turn left | ...   U around left = LTURN [U] four times; the same to the right
    U -> walk | look | run | jump             [turn] is nothing but the turns

Everything is made from these rules: 20,910 commands, each with one meaning.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

PRIMITIVES = ("walk", "look", "run", "jump")
TURNS = {"left": "LTURN", "right": "RTURN"}
REPETITIONS = {"twice": 2, "thrice": 3}
LONGEST_IN_TRAINING = 22  # actions, of the split by length
ADDED = {"add-jump": "jump", "add-turn-left": "turn left"}
SPLITS = ("simple", "length", *ADDED)
Pair = tuple[str, str]


def commands() -> list[Pair]:
    """All commands and their actions, symbols separated by spaces."""
    sentences: dict[str, list[str]] = {}
    for phrase, actions in _phrases().items():
        sentences[phrase] = actions
        sentences |= {f"{phrase} {word}": actions * times for word, times in REPETITIONS.items()}
    found = dict(sentences)
    for first, one in sentences.items():
        for second, two in sentences.items():
            found[f"{first} and {second}"] = one + two
            found[f"{first} after {second}"] = two + one
    return [(command, " ".join(actions)) for command, actions in found.items()]


def _phrases() -> dict[str, list[str]]:
    """V of the grammar."""
    found = {verb: [verb.upper()] for verb in PRIMITIVES}
    for verb in (*PRIMITIVES, "turn"):
        done = [] if verb == "turn" else [verb.upper()]
        for direction, turn in TURNS.items():
            found[f"{verb} {direction}"] = [turn, *done]
            found[f"{verb} opposite {direction}"] = [turn, turn, *done]
            found[f"{verb} around {direction}"] = [turn, *done] * 4
    return found


def divided(split: str, seed: int) -> tuple[list[Pair], list[Pair]]:
    """What is to be learnt and what is to be tested, of one of SPLITS, in the order of `commands`.

    simple: a fifth drawn by seed is tested.  length: what takes more than LONGEST_IN_TRAINING actions is.  add-jump,
    add-turn-left: all that this primitive is a part of; by itself it is repeated until it is a tenth of training.
    """
    pairs = commands()
    if split == "simple":
        drawn = set(random.Random(seed).sample(range(len(pairs)), len(pairs) // 5))
        tested = [number in drawn for number in range(len(pairs))]
    elif split == "length":
        tested = [len(actions.split()) > LONGEST_IN_TRAINING for _, actions in pairs]
    else:
        tested = [ADDED[split] in command and command != ADDED[split] for command, _ in pairs]
    train = [pair for pair, out in zip(pairs, tested, strict=True) if not out]
    if split in ADDED:
        (alone,) = (pair for pair in train if pair[0] == ADDED[split])
        train += [alone] * (round((len(train) - 1) / 9) - 1)
    return train, [pair for pair, out in zip(pairs, tested, strict=True) if out]


def held_out(train: Sequence[Pair], split: str, count: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Training without `count` commands drawn to validate on, the primitive that is added not among them, and those.

    Raises ValueError if there are not more commands than that.
    """
    free = [pair for pair in train if pair[0] != ADDED.get(split)]
    if not 1 <= count < len(free):
        raise ValueError(f"valid: expected 1 to {len(free) - 1:,} of the training commands, got {count}")
    drawn = set(random.Random(seed).sample(free, count))
    return [pair for pair in train if pair not in drawn], [pair for pair in free if pair in drawn]
