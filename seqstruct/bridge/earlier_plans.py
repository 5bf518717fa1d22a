"""Plans in checkpoints of earlier versions: defaults that have changed since are written out, so that numbers stay.

Where a mechanism computes something else since, and its parameters do not tell, there is a warning.
A checkpoint holds the plan as it was given, and the version that wrote it (`seqstruct_versions`, which the first lack).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, MutableMapping
from typing import Any, NamedTuple

OPTIONS = ("encoder_self_attention", "decoder_self_attention", "cross_attention", "intra_attention", "stack")


class Default(NamedTuple):
    """An option of a mechanism that had another default before a version."""

    before: tuple[int, ...]
    mechanism: str
    option: str
    value: Any


DEFAULTS = (Default((0, 2), "rfa", "floor", 0.0),)
ONE_SIDED = ("sliding_window", "dilated_window")  # looked left alone in encoders before 0.2
RECTIFIED = "nodes of its gated_convolution were of tanh and are rectified now, so that it has to be trained anew"


def keep_meaning(state: Mapping[str, Any], given: Collection[str] = ()) -> list[str]:
    """Write out, in a checkpoint's configuration, what its plans left to defaults that have changed; tell each change.

    given: options that are the caller's own, in today's meaning.
    """
    configuration = state.get("cfg")
    model = configuration.get("model") if isinstance(configuration, Mapping) else None
    if not isinstance(model, MutableMapping):
        return []
    changes = []
    version = version_of(state)
    for option in OPTIONS:
        plan = model.get(option)
        if not isinstance(plan, str) or option in given:
            continue
        for default in DEFAULTS:
            if version < default.before:
                plan = written_out(plan, default)
        if plan != model[option]:
            changes.append(f"its {option} is {plan}, which a run that goes on from it has to say")
            model[option] = plan
        if version < (0, 2) and option == "encoder_self_attention":
            now = f"in its {option} looked left alone and looks both ways now, so that the model needs fine-tuning"
            changes += [f"{name} {now}" for name in ONE_SIDED if re.search(rf"\b{name}\b", plan)]
    if version < (0, 4) and model.get("encoder") == "gated_convolution":
        changes.append(RECTIFIED)
    return changes


def version_of(state: Mapping[str, Any]) -> tuple[int, ...]:
    """Of this package, when it wrote the checkpoint: (0, 2) for 0.2.x; (0, 0) if it does not say."""
    extra = state.get("extra_state")
    versions = extra.get("seqstruct_versions") if isinstance(extra, Mapping) else None
    text = str(versions.get("seqstruct")) if isinstance(versions, Mapping) else ""
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def written_out(plan: str, default: Default) -> str:
    """The plan with the option of that mechanism, wherever it is not given; as it is where nothing is to be done."""
    try:
        tree = ast.parse(plan.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return plan  # the plan's own reader says what is wrong with it
    found = _Filling(default)
    filled = found.visit(tree)
    return ast.unparse(filled) if found.changed else plan


class _Filling(ast.NodeTransformer):
    def __init__(self, default: Default):
        self.default, self.changed = default, False

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.visit_Call(ast.Call(node, [], []))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        named = isinstance(node.func, ast.Name) and node.func.id == self.default.mechanism
        if named and self.default.option not in {keyword.arg for keyword in node.keywords}:
            self.changed = True
            node.keywords.append(ast.keyword(self.default.option, ast.Constant(self.default.value)))
        return node if node.keywords else node.func
