"""A layer of a transformer with any mechanisms: self-attention, attention to a memory if wanted, feed-forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

from seqstruct.attention import Site
from seqstruct.attention.dropout import Dropout
from seqstruct.attention.linear import Linear
from seqstruct.attention.slot import USUAL, Slot
from seqstruct.layers.feed_forward import swiglu
from seqstruct.layers.recurrent import check_rate, check_sizes
from seqstruct.nn.mixer import Mixer, MixerState

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu, "swiglu": swiglu}
NORMS: dict[str, type[nn.Module]] = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}


class BlockState(NamedTuple):
    """own: of self-attention.  cross: of attention to the memory, or an empty tuple."""

    own: MixerState
    cross: MixerState | tuple[()]


class TransformerBlock(nn.Module):
    """x + attention, x + attention to a memory where there is one, x + feed-forward; norms stand before each part
    (Xiong et al. 2020), or after each sum, as in Vaswani et al. (2017)."""

    def __init__(
        self,
        plan: str,
        embed_dim: int,
        num_heads: int = 1,
        *,
        ffn_dim: int | None = None,
        site: Site | str = Site.DECODER_SELF,
        cross: str | None = None,
        memory_dim: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation: str = "relu",
        norm: str = "layer",
        norm_first: bool = True,
        bias: bool = True,
        slot: Slot = USUAL,
    ):
        """plan, site, slot: of self-attention, as of `Mixer`.  cross: the plan of attention to a memory B S M; None for
        none.  memory_dim: M (default: C).  ffn_dim: inner size (default: 4 C).  dropout: of what each part adds.
        activation: "relu", "gelu", "silu" or "swiglu", which has two linear layers before it.  norm: "layer" or "rms".
        bias: of the feed-forward layers.

        Raises ValueError on an unknown name, an inner size below 1, a rate outside 0 <= p < 1, and as `Mixer` does.
        """
        super().__init__()
        for name, value, known in (("activation", activation, ACTIVATIONS), ("norm", norm, NORMS)):
            if value not in known:
                raise ValueError(f"{name}: expected one of {', '.join(known)}, got {value!r}")
        if Site.CROSS == site or (memory_dim is not None and cross is None):
            raise ValueError("attention to a memory: expected its plan by cross=, and a site of self-attention")
        self.mixer = Mixer(plan, embed_dim, num_heads, site=site, dropout=attention_dropout, slot=slot)
        self.cross = None
        if cross is not None:
            self.cross = Mixer(cross, embed_dim, num_heads, site=Site.CROSS, dropout=attention_dropout,
                               memory_dim=memory_dim, slot=slot)
        inner = 4 * embed_dim if ffn_dim is None else ffn_dim
        check_sizes(ffn_dim=inner)
        check_rate("dropout", dropout)
        self.norms = nn.ModuleList(NORMS[norm](embed_dim) for _ in range(2 + (cross is not None)))
        self.fc1 = Linear(embed_dim, inner * (1 + (activation == "swiglu")), bias)
        self.fc2 = Linear(inner, embed_dim, bias)
        self.dropout, self.norm_first, self.activation = Dropout(dropout), norm_first, activation

    def forward(
        self,
        x: Tensor,
        padding_mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """B T C for x B T C.  padding_mask: B T bool, True = padding; memory: B S M, memory_padding_mask: B S.

        Raises ValueError on other shapes, and where a memory is missing or too much.
        """
        self._check_memory(memory, memory_padding_mask)
        parts = [lambda y: self.mixer(y, None, padding_mask)]
        if self.cross is not None:
            parts.append(lambda y: self.cross(y, memory, memory_padding_mask))
        return self._through(x, parts)

    def initial_state(
        self, batch_size: int, memory: Tensor | None = None, memory_padding_mask: Tensor | None = None
    ) -> BlockState:
        """The state before the first token, with all of the memory.  Raises ValueError as `Mixer.initial_state`."""
        self._check_memory(memory, memory_padding_mask)
        across = () if self.cross is None else self.cross.initial_state(batch_size, memory, memory_padding_mask)
        return BlockState(self.mixer.initial_state(batch_size), across)

    def step(self, x: Tensor, state: BlockState, padding_mask: Tensor | None = None) -> tuple[Tensor, BlockState]:
        """The next tokens, B T C of one or more, from a state: B T C, and the state after them."""
        after: list[Any] = [*state]

        def own(y: Tensor) -> Tensor:
            y, after[0] = self.mixer.step(y, state.own, padding_mask)
            return y

        def across(y: Tensor) -> Tensor:
            y, after[1] = self.cross.step(y, state.cross)
            return y

        x = self._through(x, [own] if self.cross is None else [own, across])
        return x, BlockState(*after)

    def _check_memory(self, memory: Tensor | None, memory_padding_mask: Tensor | None) -> None:
        if (memory is None) != (self.cross is None):
            raise ValueError("expected a memory where, and only where, the block has a plan for cross")
        if memory is None and memory_padding_mask is not None:
            raise ValueError("memory_padding_mask: expected None without a memory")

    def _through(self, x: Tensor, parts: list[Callable[[Tensor], Tensor]]) -> Tensor:
        size = self.mixer.mechanism.shape.embed_dim
        if x.dim() != 3 or x.size(2) != size:
            raise ValueError(f"expected tokens B T {size}, got {tuple(x.shape)}")
        for norm, part in zip(self.norms, [*parts, self._feed_forward], strict=True):
            if self.norm_first:
                x = x + self.dropout(part(norm(x)))
            else:
                x = norm(x + self.dropout(part(x)))
        return x

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.fc2(ACTIVATIONS[self.activation](self.fc1(x)))
