"""Decoders whose state in step-by-step decoding is one value."""

from __future__ import annotations

from typing import Any

from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor

from seqstruct.bridge.adapter import reorder_state


class StatefulDecoder(FairseqIncrementalDecoder):
    """A subclass has `extract_features`, which takes up and leaves what is `saved`, `output_layer` and `max_positions`.

    What is saved is a dictionary; its `state` is nested tuples of tensors with the batch first.
    """

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Any = None,
        incremental_state: dict[str, dict[str, Any]] | None = None,
        features_only: bool = False,
        **options: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Logits B T N for tokens B T; step by step those of the positions since the last call alone.

        options: what else `extract_features` takes.
        """
        features, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state, **options)
        return features if features_only else self.output_layer(features), extra

    def saved(self, incremental_state: dict[str, dict[str, Any]] | None) -> dict[str, Any] | None:
        """What the step before has left; None at the first one, and outside of decoding."""
        return None if incremental_state is None else incremental_state.get(self._key)

    def save(self, incremental_state: dict[str, dict[str, Any]] | None, **values: Any) -> None:
        """Leave `state` and other values for the next step, in decoding."""
        if incremental_state is not None:
            incremental_state[self._key] = values

    def reordered(self, state: Any, new_order: Tensor) -> Any:
        """The rows new_order of a state."""
        return reorder_state(state, new_order)

    def reorder_incremental_state(self, incremental_state: dict[str, dict[str, Any]], new_order: Tensor) -> None:
        saved = self.saved(incremental_state)
        if saved is not None:
            self.save(incremental_state, **{**saved, "state": self.reordered(saved["state"], new_order)})

    @property
    def _key(self) -> str:
        return f"seqstruct.{type(self).__name__}.{id(self)}"
