"""Warnings where a trained model is given other attention than it was trained with.

Loading a state dictionary shows other parameters (`seqstruct.bridge.checkpoints`); mechanisms whose parameters bear the
same names and shapes, as those of softmax and linear, differ in the options alone, which `--model-overrides` changes.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Callable

from fairseq import checkpoint_utils

from seqstruct.bridge.dictionaries import mapped
from seqstruct.bridge.earlier_plans import keep_meaning

logger = logging.getLogger(__name__)

OPTIONS = ("encoder_self_attention", "decoder_self_attention", "cross_attention")
WITHOUT_FINE_TUNING = (
    "without it, a translation model trained with softmax attention (35.5 BLEU) and used with random feature attention "
    "had 0.4, and one trained with random feature attention (35.2) and used with softmax had 0.7 (IWSLT'14 de-en, "
    "development set; Peng 2022, Table 4.6)"
)

_said: ContextVar[list[str] | None] = ContextVar("said", default=None)


def warn(what: str) -> None:
    """Say what of a checkpoint's attention was swapped, and what comes of it without fine-tuning."""
    said = _said.get()
    if said is not None:
        said.append(what)
    logger.warning("%s, and the model needs fine-tuning; %s", what, WITHOUT_FINE_TUNING)


def install() -> None:
    """Make every loading for evaluation compare its overrides with the checkpoint; a second call changes nothing."""
    if not hasattr(checkpoint_utils.load_model_ensemble_and_task, "compares_attention"):
        checkpoint_utils.load_model_ensemble_and_task = _comparing(checkpoint_utils.load_model_ensemble_and_task)
        checkpoint_utils.load_model_ensemble_and_task.compares_attention = True


def _comparing(load: Callable) -> Callable:
    @functools.wraps(load)
    def load_model_ensemble_and_task(
        filenames: Sequence[str], arg_overrides: dict | None = None, *rest: Any, **named: Any
    ) -> Any:
        said: list[str] = []
        token = _said.set(said)
        try:
            loaded = load(filenames, arg_overrides, *rest, **named)
        finally:
            _said.reset(token)
        if not said:
            for filename in map(str, filenames):
                changes = changed(filename, arg_overrides or {})
                if changes:
                    warn(f"{filename} was trained with other attention ({'; '.join(changes)})")
        return loaded

    return load_model_ensemble_and_task


def changed(filename: str, overrides: Mapping[str, Any]) -> list[str]:
    """The options of attention that the overrides change, and how; none where the checkpoint does not say its own."""
    asked = {name: overrides[name] for name in OPTIONS if name in overrides}
    if not asked:
        return []
    state = mapped(filename) or {}
    keep_meaning(state)
    model = (state.get("cfg") or {}).get("model") or {}
    own = model if isinstance(model, Mapping) else vars(model)
    return [f"{name}: {own[name]}, now {plan}" for name, plan in asked.items() if own.get(name, plan) != plan]
