"""The tasks by name, and what each is for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial

from seqstruct.data.abilities.ability import Ability
from seqstruct.data.abilities.formulas import ListOps
from seqstruct.data.abilities.recall import Copying, Induction, Recall
from seqstruct.data.abilities.stacks import Dyck, Undo
from seqstruct.data.abilities.states import GROUPS, Counting, Parity, WordProblem

TASKS: dict[str, Callable[..., Ability]] = {
    "recall": Recall, "copying": Copying, "induction": Induction, "parity": Parity, "counting": Counting,
    **{group: partial(WordProblem, group) for group in GROUPS}, "dyck": Dyck, "undo": Undo, "listops": ListOps,
}
FAMILIES = {
    "memory": ("recall", "copying", "induction"), "tracking": ("parity", "counting", *GROUPS),
    "nesting": ("dyck", "undo", "listops"),
}


def options_of(name: str) -> dict[str, object]:
    """The options of a task with their defaults.  Raises ValueError for a task that there is not."""
    if name not in TASKS:
        raise ValueError(f"no task is called {name!r}; there are: {', '.join(TASKS)}")
    made = TASKS[name]
    fields = dataclasses.fields(made.func if isinstance(made, partial) else made)
    return {field.name: field.default for field in fields if field.name != "group"}


def make(name: str, options: Mapping[str, object]) -> Ability:
    """A task.  Raises ValueError for a name, an option or a value that there is not."""
    known = options_of(name)
    for option in options:
        if option not in known:
            allowed = ", ".join(f"--{each.replace('_', '-')}" for each in known)
            raise ValueError(f"{name} has no option --{option.replace('_', '-')}; it has: {allowed}")
    return TASKS[name](**options)
