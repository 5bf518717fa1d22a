"""Any mechanism behind the signature of `torch.nn.MultiheadAttention`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from seqstruct.attention import Reading, Shape, Site
from seqstruct.attention.slot import Slot
from seqstruct.attention.softmax.base import DotProductAttention
from seqstruct.nn.mixer import mechanism_of, site_of
from seqstruct.ops.masking import causal_mask


class _Elsewhere:
    """In the place of parameters that torch's encoder would hand to its fast path, which it does not take where one of
    them brings a function of its own; whether it may was decided when it was built, for the attention it had then.
    """

    weight = bias = None

    @classmethod
    def __torch_function__(cls, *arguments: Any) -> Any:
        return NotImplemented


class MultiheadAttention(nn.Module):
    """Stands where `torch.nn.MultiheadAttention` does, as `self_attn` of torch's transformer layers among others.

    With the plan "softmax" and the weights of torch's (`from_torch`) its outputs are torch's.  Differences: the
    projections of queries, keys and values are three; a query that may see nothing gets zeros, not NaN;
    `add_bias_kv` and `add_zero_attn` are refused.  Nested tensors are refused too, so that an encoder of torch's whose
    first layer keeps torch's attention is to be built with enable_nested_tensor=False.
    """

    in_proj_bias = None  # what torch's encoder layers look at: their own fast path knows no other attention
    in_proj_weight = out_proj = _Elsewhere()
    _qkv_same_embed_dim = False

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        plan: str = "softmax",
        site: Site | str = Site.ENCODER_SELF,
    ):
        """plan: one mechanism with its options.  site: "encoder_self" for self-attention, "decoder_self" where it is
        causal, "cross" where keys are another sequence; the rest as torch has it.

        Raises ValueError on a plan or sizes that do not fit, and on add_bias_kv and add_zero_attn.
        """
        super().__init__()
        if add_bias_kv or add_zero_attn:
            raise ValueError("add_bias_kv and add_zero_attn are not offered: expected False")
        site, sizes = site_of(site), (kdim or embed_dim, vdim or embed_dim)
        shape = Shape(embed_dim, *sizes, num_heads, dropout, site, site is Site.DECODER_SELF, Slot(biases=bias))
        self.embed_dim, self.num_heads, self.batch_first = embed_dim, num_heads, batch_first
        self.mechanism = mechanism_of(plan, shape).to(device=device, dtype=dtype)

    @classmethod
    def from_torch(
        cls, attention: nn.MultiheadAttention, plan: str = "softmax", site: Site | str = Site.ENCODER_SELF
    ) -> MultiheadAttention:
        """Of torch's sizes and with its projections, as copies, by any mechanism that has projections of heads, with
        biases where torch's have them: those of the delta rule's family have none.

        Raises ValueError if the mechanism has no such projections, or torch's has biases of keys or zeros added.
        """
        made = cls(
            attention.embed_dim, attention.num_heads, attention.dropout, attention.in_proj_bias is not None,
            attention.bias_k is not None, attention.add_zero_attn, attention.kdim, attention.vdim,
            attention.batch_first, attention.out_proj.weight.device, attention.out_proj.weight.dtype, plan=plan,
            site=site,
        )
        packed = attention.in_proj_weight
        weights = packed.chunk(3) if packed is not None else (
            attention.q_proj_weight, attention.k_proj_weight, attention.v_proj_weight)
        biases = [None] * 3 if attention.in_proj_bias is None else attention.in_proj_bias.chunk(3)
        given = zip((*weights, attention.out_proj.weight), (*biases, attention.out_proj.bias), strict=True)
        for name, (weight, bias) in zip(("q_proj", "k_proj", "v_proj", "out_proj"), given, strict=True):
            own = getattr(made.mechanism, name, None)
            fits = isinstance(own, nn.Linear) and own.weight.shape == weight.shape
            if not fits or (bias is None) != (own.bias is None):
                which = "biases" if fits else "weights"
                raise ValueError(f"{made.mechanism.name} has no projection {name} that torch's {which} fit")
            with torch.no_grad():
                own.weight.copy_(weight)
                if bias is not None:
                    own.bias.copy_(bias)
        return made.train(attention.training)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The output, of the query's shape, and weights B T S (B H T S if they are not averaged over heads), or None
        where they are not wanted or the mechanism has none.

        query: T B C, B T C with batch_first, or T C alone; key, value: likewise of length S.  key_padding_mask: B S (S
        alone), attn_mask: T S, or (B H) T S equal in all heads; either bool, True = not to be seen, or float of 0 and
        -inf.  is_causal: where there is no attn_mask, a query sees the keys up to its own place, both counted from the
        first; else nothing, the mask says what is seen.
        A causal mask goes with "decoder_self", which needs one, and with what reads left to right anyway; any mask
        with softmax, normalized_softmax and sigmoid at the other sites.  Raises ValueError on other masks and shapes.
        """
        if query.is_nested:
            raise ValueError("expected padded sequences, got nested ones: enable_nested_tensor=False of the encoder")
        batched = query.dim() == 3
        query, key, value = (self._batch_first(x, batched) for x in (query, key, value))
        padding_mask = None if key_padding_mask is None else hidden(key_padding_mask, "key_padding_mask")
        if padding_mask is not None and not batched:
            padding_mask = padding_mask.unsqueeze(0)
        visible = self._visible(attn_mask, is_causal, query, key)
        reading = self._read(query, key, value, padding_mask, visible, need_weights)
        output, weights = reading.output, reading.weights if need_weights else None
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return output.squeeze(0), None if weights is None else weights.squeeze(0)
        return output if self.batch_first else output.transpose(0, 1), weights

    def _batch_first(self, x: Tensor, batched: bool) -> Tensor:
        if x.dim() != 2 + batched:
            raise ValueError(f"expected queries, keys and values of 2 or of 3 axes, got one of {x.dim()}")
        return x.unsqueeze(0) if not batched else x if self.batch_first else x.transpose(0, 1)

    def _visible(self, attn_mask: Tensor | None, is_causal: bool, query: Tensor, key: Tensor) -> Tensor | None:
        """Which keys a query may see, 1 or B x T x S; None for all."""
        (batch, length), size = query.shape[:2], key.size(1)
        if attn_mask is None:
            return torch.ones(1, length, size, dtype=torch.bool, device=query.device).tril() if is_causal else None
        mask = hidden(attn_mask, "attn_mask")
        if mask.dim() == 3 and mask.size(0) == batch * self.num_heads:
            each = mask.unflatten(0, (batch, self.num_heads))
            if not bool((each == each[:, :1]).all()):
                raise ValueError("attn_mask: expected one that is equal in all heads")
            mask = each[:, 0]
        if mask.shape[-2:] != (length, size) or mask.dim() not in (2, 3) or (mask.dim() == 3 and len(mask) != batch):
            raise ValueError(f"attn_mask: expected ({length}, {size}) or ({batch * self.num_heads}, {length}, {size}), "
                             f"got {tuple(attn_mask.shape)}")
        return None if not bool(mask.any()) else ~mask.expand(1, *mask.shape[-2:]) if mask.dim() == 2 else ~mask

    def _read(
        self, query: Tensor, key: Tensor, value: Tensor, padding_mask: Tensor | None, visible: Tensor | None,
        need_weights: bool,
    ) -> Reading:
        mechanism = self.mechanism
        causal = visible is not None and query.size(1) == key.size(1) and bool(
            (visible == causal_mask(query.size(1), key.size(1), query.device)).all())
        if mechanism.shape.causal and not causal and query.size(1) > 1:
            raise ValueError(f"{mechanism.name} at decoder_self is causal: expected the causal attn_mask, or is_causal")
        if visible is None or (causal and mechanism.left_to_right):
            return mechanism(query, key, value, padding_mask, need_weights=need_weights)[0]
        kind, taken = type(mechanism), DotProductAttention
        if kind.parallel is not taken.parallel or kind._read_all is not taken._read_all:
            raise ValueError(f"{mechanism.name} at {mechanism.shape.site.value} takes no attn_mask; a causal one goes "
                             "with site='decoder_self'")
        return mechanism.masked(query, key, value, visible.unsqueeze(1), padding_mask, need_weights=need_weights)


def hidden(mask: Tensor, name: str) -> Tensor:
    """A mask as bool, True = not to be seen.  Raises ValueError if it is neither that nor of 0 and -inf."""
    if mask.dtype == torch.bool:
        return mask
    found = mask == -torch.inf
    if not mask.is_floating_point() or not bool((found | (mask == 0)).all()):
        raise ValueError(f"{name}: expected bool, or float of 0 and -inf alone, got {mask.dtype}")
    return found
