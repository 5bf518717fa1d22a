"""Whole decoders for `seqstruct bench decode`, and their states after so many tokens."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from seqstruct.attention.base import Reading, Site
from seqstruct.attention.multi_head import MultiHeadAttention
from seqstruct.benchmarks.timing import Place, made_up_task
from seqstruct.bridge.adapter import AttentionAdapter
from seqstruct.data.text.byte_symbols import SPECIAL
from seqstruct.models.transformer.translation import StructuredTransformerModel, StructuredTransformerModelConfig

LAYERS, MODEL, HEADS, FEED_FORWARD, WORDS = 6, 512, 8, 2048, 32000
PLANS = {  # cross and causal attention, of the sizes of figures 4.2 and 5.1
    "softmax": ("softmax", "softmax"),
    "linear": ("linear", "linear"),
    "rfa, 256 and 128 features": ("rfa(features=256)", "rfa(features=128)"),
    "rfa arccos, 128 and 64 features": (
        "rfa(features=128, kernel='arccos')", "rfa(features=64, kernel='arccos')"
    ),
    "t2r, 32 and 4 features": ("t2r(features=32)", "t2r(features=4)"),
    "abc_mlp, 32 and 8 slots": ("abc_mlp(slots=32)", "abc_mlp(slots=8)"),
}


class Idle(MultiHeadAttention):
    """Projections with nothing between them: what attention costs when writing and reading cost nothing."""

    sites = frozenset(Site)

    class State(NamedTuple):
        """last: B C."""

        last: Tensor

    def initial_state(self, batch_size: int) -> State:
        return self.State(self.k_proj.weight.new_zeros(batch_size, self.shape.embed_dim))

    def write(self, state: State, key: Tensor, value: Tensor, padding_mask: Tensor | None = None) -> State:
        self.k_proj(key)
        return self.State(self.v_proj(value)[:, -1])

    def read(
        self, state: State, query: Tensor, position: Tensor | None = None, *, need_weights: bool = False
    ) -> Reading:
        return Reading(self.out_proj(self.q_proj(query)))


def decoder(plans: tuple[str, str], conditional: bool, length: int, place: Place) -> nn.Module:
    """A decoder in evaluation mode; plans: of cross and of causal attention."""
    config = StructuredTransformerModelConfig(
        encoder_layers=1,
        encoder_embed_dim=MODEL,
        decoder_layers=LAYERS,
        decoder_embed_dim=MODEL,
        decoder_attention_heads=HEADS,
        decoder_ffn_embed_dim=FEED_FORWARD,
        cross_attention=plans[0],
        decoder_self_attention=plans[1],
        max_source_positions=length + 8,
        max_target_positions=length + 8,
        share_decoder_input_output_embed=True,
    )
    torch.manual_seed(1)
    task = made_up_task(map(str, range(WORDS - SPECIAL)))
    built = StructuredTransformerModel.build_model(config, task).decoder.to(place.device).eval()
    if not conditional:
        for layer in built.layers:
            layer.encoder_attn = None
    return built


def limit(built: nn.Module) -> nn.Module:
    for adapter in _adapters(built):
        adapter.mechanism = Idle(Idle.Config(), adapter.mechanism.shape).to(adapter.mechanism.k_proj.weight.device)
    return built.eval()


def _adapters(built: nn.Module) -> list[AttentionAdapter]:
    return [module for module in built.modules() if isinstance(module, AttentionAdapter)]


class Prefix:
    """A decoder that has read `length` - 1 tokens; each step reads one more."""

    def __init__(self, built: nn.Module, length: int, batch: int, place: Place, reorder: bool = False):
        """States of random keys and values; the source, if there is one, is of the same length.

        reorder: whether each step takes the rows of all states in a new order first, as in beam search.
        """
        generator = torch.Generator().manual_seed(1)
        self.built = built
        self.tokens = torch.randint(4, WORDS, (batch, length), generator=generator).to(place.device)
        orders = torch.randint(batch, (batch,), generator=generator).to(place.device)
        self.orders = orders if reorder else None
        given = torch.randn(length, batch, MODEL, generator=generator).to(place.device)
        self.encoded = {"encoder_out": [given], "encoder_padding_mask": []}
        self.incremental: dict[str, dict[str, Any]] = {}
        for adapter in _adapters(built):
            static = adapter.mechanism.shape.site is Site.CROSS
            read = given if static else given[1:]
            adapter(given[:1], read, read, incremental_state=self.incremental, static_kv=static, need_weights=False)

    def step(self) -> Tensor:
        """Reorder all states if asked to, then read the last token: B 1 V."""
        if self.orders is not None:
            self.built.reorder_incremental_state_scripting(self.incremental, self.orders)
        return self.built(self.tokens, encoder_out=self.encoded, incremental_state=self.incremental)[0]

    def states(self) -> list[Any]:
        return [saved["state"] for saved in self.incremental.values() if "state" in saved]


@torch.no_grad()
def full_run(built: nn.Module, length: int, batch: int, place: Place) -> float:
    """Seconds of decoding greedily from nothing to `length` tokens; the source, if there is one, is as long."""
    given = torch.randn(length, batch, MODEL, generator=torch.Generator().manual_seed(1)).to(place.device)
    encoded = {"encoder_out": [given], "encoder_padding_mask": []}
    tokens = torch.zeros(batch, length + 1, dtype=torch.long, device=place.device).fill_(2)
    incremental: dict[str, dict[str, Any]] = {}
    start = time.perf_counter()
    for t in range(length):
        logits = built(tokens[:, : t + 1], encoder_out=encoded, incremental_state=incremental)[0]
        tokens[:, t + 1] = logits[:, -1].argmax(-1)
    place.finished(tokens)
    return time.perf_counter() - start
