"""The cache of generation: of each decoder layer the States of its attention, which beam search reorders."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import Cache

from seqstruct.layers.transformer import LayerMemory


class SeqstructCache(Cache):
    """What a decoder keeps from step to step.  layers: memories, which are States of attention in place of keys and
    values; tokens: B long, the real tokens of each row so far; length: how many with padding."""

    def __init__(self, layers: int):
        super().__init__(layers=[LayerMemory() for _ in range(layers)])
        self.reset()

    def reset(self) -> None:
        """Go back to the beginning of a text."""
        self.layers = [LayerMemory() for _ in self.layers]
        self.tokens: Tensor | None = None
        self.length = 0

    def advance(self, position: Tensor, padding_mask: Tensor | None) -> Tensor:
        """Take in new tokens: their positions B T, counted from the first of them, as positions in the whole."""
        real = position.size(1) if padding_mask is None else (~padding_mask).sum(1)
        before = position.new_zeros(len(position)) if self.tokens is None else self.tokens
        self.tokens, self.length = before + real, self.length + position.size(1)
        return position + before.unsqueeze(1)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Tokens so far, padding included."""
        return self.length

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        """Tokens with the new ones, and 0: what transformers' own models ask of keys."""
        return self.length + query_length, 0

    def get_max_length(self, layer_idx: int | None = None) -> int:
        """-1: there is no limit."""
        return -1

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Go on from the rows beam_idx, whole numbers of any type."""
        order = beam_idx.long()
        for layer in self.layers:
            layer.select(order)
        self.tokens = None if self.tokens is None else self.tokens.index_select(0, order)

    def batch_select_indices(self, indices: Tensor) -> None:
        self.reorder_cache(indices)

    def batch_repeat_interleave(self, repeats: int) -> None:
        if self.tokens is not None:
            rows = torch.arange(len(self.tokens), device=self.tokens.device)
            self.reorder_cache(rows.repeat_interleave(repeats))

    def crop(self, tokens_to_remove: int) -> None:
        """Raises ValueError unless nothing is to be removed: what was written to a memory stays."""
        if tokens_to_remove:
            raise ValueError("a memory of attention cannot be put back to an earlier token; assisted generation and "
                             "others that do so need a new cache")

    def update(self, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Raises TypeError: layers write to their memories themselves."""
        raise TypeError("SeqstructCache holds States of attention, not keys and values")

    is_compileable = is_initialized = is_croppable = False


class Cached:
    """What models with such a cache share; it stands before transformers' own class among the bases."""

    _is_stateful = True  # what was written to a memory is not taken back

    def _cache(self, given: Any, wanted: bool | None) -> SeqstructCache | None:
        """The cache to go on with: the given one, a new one if one is wanted, or None; always None where activations
        are recomputed, which would write to memories once more.

        Raises ValueError if another kind of cache is given, or any where activations are recomputed.
        """
        if given is not None and not isinstance(given, SeqstructCache):
            raise ValueError(f"past_key_values: expected a SeqstructCache or None, got {type(given).__name__}")
        if self.training and self.is_activation_checkpointing:
            if given is not None:
                raise ValueError("past_key_values: expected None in training with gradient checkpointing, got a cache")
            return None
        wanted = self.config.use_cache and not self.training if wanted is None else wanted
        if given is None and wanted:
            return SeqstructCache(self.config.get_text_config(decoder=True).num_hidden_layers)
        return given

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False  # the first pass makes a SeqstructCache
