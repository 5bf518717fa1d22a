"""The adapter: an Attention behind the calling convention of fairseq's MultiheadAttention.

Time comes first outside (T B C) and the batch inside (B T C); `incremental_state` holds the mechanism's State and, in
beam search, the order in which the next step takes its rows.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from seqstruct.attention import Attention, Reading, Site
from seqstruct.attention.states import batch_size_of, select_rows
from seqstruct.bridge.passes import current_pass


class AttentionAdapter(nn.Module):
    """Stands where fairseq's layers expect a MultiheadAttention."""

    def __init__(self, mechanism: Attention, layer: int):
        """mechanism: the attention; layer: its index from the lowest, for collected readings."""
        super().__init__()
        self.mechanism = mechanism
        self.layer = layer
        self.num_heads = mechanism.shape.num_heads
        self.head_dim = mechanism.shape.head_dim

    def forward(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        key_padding_mask: Tensor | None = None,
        incremental_state: dict[str, dict[str, Any]] | None = None,
        need_weights: bool = True,
        static_kv: bool = False,
        attn_mask: Tensor | None = None,
        need_head_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """fairseq's call: query T B C, key and value S B C, key_padding_mask B S (the new keys alone, step by step).

        Returns the output T B C and the weights, B T S (the mean over heads) or H B T S with `need_head_weights`;
        None if they were not asked for or the mechanism has none.
        Raises ValueError where causality asked for is not the mechanism's own.
        """
        asked = need_weights or need_head_weights
        query, key, value = _batch_first(query, key, value)
        padding_mask = None if key_padding_mask is None else key_padding_mask.bool()
        mechanism, now = self.mechanism, current_pass()
        site = mechanism.shape.site
        need_weights = asked or now.collects
        if incremental_state is not None and site is not Site.ENCODER_SELF:
            reading = self._step(query, key, value, padding_mask, incremental_state, static_kv, need_weights)
        else:
            self._check_causality(query.size(1), attn_mask)
            stream = now.memories if site is Site.DECODER_SELF else None
            memory = None if stream is None else stream[self.layer]
            carry = now.carried(site) if mechanism.carries else None
            reading, memory = mechanism(query, key, value, padding_mask, memory, need_weights=need_weights, carry=carry)
            if stream is not None:
                stream[self.layer] = memory
        now.take(site, self.layer, reading)
        weights = reading.weights if asked else None
        if weights is not None:
            weights = weights.transpose(0, 1) if need_head_weights else weights.mean(1)
        return reading.output.transpose(0, 1), weights

    def _step(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        padding_mask: Tensor | None,
        incremental_state: dict[str, dict[str, Any]],
        static_kv: bool,
        need_weights: bool,
    ) -> Reading:
        mechanism, name = self.mechanism, self._key
        saved = incremental_state.get(name)
        state, asked, order = (None, 0, None) if saved is None else (saved["state"], saved["asked"], saved["order"])
        position, reading = None, None
        if static_kv:
            position = torch.arange(asked, asked + query.size(1), device=query.device).expand(query.shape[:2])
        if state is None or not static_kv:
            state = mechanism.initial_state(query.size(0)) if state is None else state
            new = key, value, padding_mask
            if not static_kv and query.size(1) == key.size(1) == 1:
                reading, state = mechanism.step(state, query, *new, order=order, need_weights=need_weights)
            else:
                state = state if order is None else select_rows(state, order)
                if mechanism.left_to_right and query.size(1) > 1:
                    reading, state = mechanism(query, *new, state, need_weights=need_weights)
                else:
                    state = mechanism.write(state, *new)
        incremental_state[name] = {"state": state, "asked": asked + query.size(1), "order": None}
        return reading or mechanism.read(state, query, position, need_weights=need_weights)

    def _check_causality(self, length: int, attn_mask: Tensor | None) -> None:
        shape, name = self.mechanism.shape, self.mechanism.name
        if attn_mask is None:
            if shape.causal and length > 1:
                raise ValueError(f"{shape.site.value} attention {name} is causal; a full context was asked for")
        elif not shape.causal:
            raise ValueError(f"{shape.site.value} attention {name} takes no attention mask")

    def make_generation_fast_(
        self, retain_dropout: bool = False, retain_dropout_modules: list[str] | None = None, **_: Any
    ) -> None:
        """fairseq's --retain-dropout, whose list of modules has the class that stands here in its own transformer."""
        if retain_dropout and (retain_dropout_modules is None or "MultiheadAttention" in retain_dropout_modules):
            for module in self.mechanism.modules():
                if isinstance(module, Attention):
                    module.keeps_dropout = True

    @property
    def _key(self) -> str:
        return f"seqstruct.attention.{id(self)}"

    def _get_input_buffer(self, incremental_state: dict | None) -> None:
        """fairseq's layers look here for cached keys of cross+self attention, which is not offered."""
        return None

    def reorder_incremental_state(self, incremental_state: dict[str, dict[str, Any]], new_order: Tensor) -> None:
        """Go on from the rows new_order (its length may be smaller than the batch) of the saved State.

        A state that the next step writes to is copied by that step.
        """
        saved = incremental_state.get(self._key)
        if saved is None:
            return
        if self.mechanism.shape.site is Site.CROSS:
            incremental_state[self._key] = {**saved, "state": reorder_source(saved["state"], new_order)}
            return
        order = saved["order"]
        size = batch_size_of(saved["state"]) if order is None else order.numel()
        if not _is_identity(new_order, size):
            order = new_order if order is None else order.index_select(0, new_order)
            incremental_state[self._key] = {**saved, "order": order}


def _batch_first(*inputs: Tensor | None) -> list[Tensor | None]:
    """T B C to B T C; one tensor given twice stays one."""
    turned = {id(x): x if x is None else x.transpose(0, 1) for x in inputs}
    return [turned[id(x)] for x in inputs]


def attention_penalty(model: nn.Module) -> Tensor | None:
    """The sum of the penalties of all mechanisms in a model (scalar), or None if none has one."""
    penalties = [module.penalty() for module in model.modules() if isinstance(module, Attention)]
    penalties = [penalty for penalty in penalties if penalty is not None]
    return torch.stack(penalties).sum() if penalties else None


def reorder_source(state: Any, new_order: Tensor) -> Any:
    """As `reorder_state`, of what is a function of the source alone, and so may be left as it is."""
    return state if current_pass().sources_in_place else reorder_state(state, new_order)


def reorder_state(state: Any, new_order: Tensor) -> Any:
    """Rows new_order of every tensor of a State (nested tuples of tensors, batch first); the identity is free."""
    return state if _is_identity(new_order, batch_size_of(state)) else select_rows(state, new_order)


def _is_identity(order: Tensor, size: int) -> bool:
    return order.numel() == size and torch.equal(order, torch.arange(size, device=order.device))
