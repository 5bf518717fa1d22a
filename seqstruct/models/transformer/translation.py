"""`structured_transformer`: an encoder-decoder transformer with any attention in any layer of any site."""

from dataclasses import dataclass
from typing import Any, Optional

from fairseq.models import register_model
from fairseq.models.transformer import TransformerModelBase

from seqstruct.bridge.initialization import initialize_uniform
from seqstruct.bridge.options import flag
from seqstruct.bridge.transformer import StructuredDecoder, StructuredEncoder, nested_config
from seqstruct.models.presets import ACTIVATIONS, PLAN_HELP, both_sides, modern, preset
from seqstruct.models.transformer.base import DecoderOptions, EncoderOptions, StructuredModel


@dataclass
class StructuredTransformerModelConfig(EncoderOptions, DecoderOptions):
    """One flat set of options for the command line and YAML."""

    cross_attention: str = flag("softmax", PLAN_HELP)
    activation_fn: ACTIVATIONS = flag("relu", "activation of feed-forward layers")
    attention_dropout: float = flag(0.0, "dropout probability of attention weights")
    activation_dropout: float = flag(0.0, "dropout probability inside feed-forward layers")
    encoder_embed_dim: int = flag(512, "model size of the encoder")
    encoder_ffn_embed_dim: int = flag(2048, "inner size of its feed-forward layers")
    encoder_layers: int = flag(6, "number of encoder layers")
    encoder_attention_heads: int = flag(8, "heads in the encoder")
    encoder_normalize_before: bool = flag(False, "pre-norm in the encoder")
    encoder_learned_pos: bool = flag(False, "learned positions in the encoder")
    encoder_layerdrop: float = flag(0.0, "LayerDrop probability in the encoder")
    encoder_embed_path: Optional[str] = flag(None, "file of initial source embeddings")
    decoder_embed_dim: int = flag(512, "model size of the decoder")
    decoder_ffn_embed_dim: int = flag(2048, "inner size of its feed-forward layers")
    decoder_layers: int = flag(6, "number of decoder layers")
    decoder_attention_heads: int = flag(8, "heads in the decoder, cross attention too")
    decoder_normalize_before: bool = flag(False, "pre-norm in the decoder")
    decoder_learned_pos: bool = flag(False, "learned positions in the decoder")
    decoder_layerdrop: float = flag(0.0, "LayerDrop probability in the decoder")
    decoder_embed_path: Optional[str] = flag(None, "file of initial target embeddings")
    max_source_positions: int = flag(1024, "longest source, in tokens")
    max_target_positions: int = flag(1024, "longest target, in tokens")
    share_decoder_input_output_embed: bool = flag(False, "tie target embeddings")
    share_all_embeddings: bool = flag(False, "tie source, target and output embeddings (needs a joined dictionary)")
    layernorm_embedding: bool = flag(False, "normalise embeddings")
    no_scale_embedding: bool = flag(False, "do not multiply embeddings by sqrt(size)")
    no_token_positional_embeddings: bool = flag(False, "no positions at all")
    offload_activations: bool = flag(False, "keep checkpointed activations in main memory (implies checkpointing)")
    initialization_bound: float = flag(0.01, "bound of the uniform initialisation, > 0 (0.01 in G.3)")


@register_model("structured_transformer", dataclass=StructuredTransformerModelConfig)
class StructuredTransformerModel(StructuredModel, TransformerModelBase):
    """An encoder-decoder on `StructuredEncoder` and `StructuredDecoder`."""

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "StructuredTransformerModel":
        """From the flat configuration and a translation task; ValueError on a plan or options that do not fit."""
        if cfg.decoder_input_dim not in (None, cfg.decoder_embed_dim):
            raise ValueError(f"--decoder-input-dim {cfg.decoder_input_dim}: embeddings of an encoder-decoder are of "
                             f"--decoder-embed-dim {cfg.decoder_embed_dim}")
        model = super().build_model(nested_config(cfg), task)
        if cfg.initialization == "uniform":
            initialize_uniform(model, cfg.initialization_bound)
        return model

    @classmethod
    def build_encoder(cls, cfg: Any, src_dict: Any, embed_tokens: Any) -> StructuredEncoder:
        return StructuredEncoder(cfg, src_dict, embed_tokens)

    @classmethod
    def build_decoder(cls, cfg: Any, tgt_dict: Any, embed_tokens: Any) -> StructuredDecoder:
        return StructuredDecoder(cfg, tgt_dict, embed_tokens)


preset("structured_transformer", "structured_transformer_small",
       "A model for corpora of Multi30k's size: 3 + 3 layers of size 256, 4 heads, pre-norm, all embeddings tied.",
       **both_sides(embed_dim=256, ffn_embed_dim=1024, layers=3, attention_heads=4, normalize_before=True), dropout=0.3,
       share_all_embeddings=True)
preset("structured_transformer", "structured_transformer_modern",
       "Layers of today: 6 + 6 of size 512, 8 heads, 4 of keys and values, rotary, RMS norms, SwiGLU, all tied.",
       **modern("encoder", "decoder", embed_dim=512, heads=8, layers=6), **both_sides(normalize_before=True),
       share_all_embeddings=True)
preset("structured_transformer", "structured_transformer_modern_small",
       "The same at the size of `structured_transformer_small`: 3 + 3 layers of size 256, 4 heads, dropout 0.3.",
       **modern("encoder", "decoder", embed_dim=256, heads=4, layers=3), **both_sides(normalize_before=True),
       share_all_embeddings=True, dropout=0.3)
preset("structured_transformer", "structured_transformer_iwslt_de_en",
       "fairseq's IWSLT'14 size: 6 + 6 layers of size 512, inner size 1024, 4 heads.",
       **both_sides(ffn_embed_dim=1024, attention_heads=4))
preset("structured_transformer", "structured_transformer_rfa",
       "Peng 2022, Table A.3: base sizes, everything tied, RFA-Gaussian in the decoder (D 128 across, 64 causal).",
       cross_attention="rfa(features=256)", decoder_self_attention="rfa(features=128)", share_all_embeddings=True)
preset("structured_transformer", "structured_transformer_abc",
       "Peng 2022, Table B.2, WMT14: base sizes, everything tied, ABC-MLP in the decoder (32 slots across, 8 causal).",
       cross_attention="abc_mlp(slots=32)", decoder_self_attention="abc_mlp(slots=8)", share_all_embeddings=True)
preset("structured_transformer", "structured_transformer_abc_documents",
       "Peng 2022, Table B.2, IWSLT14 documents: inner size 1024, dropout 0.3, 128 slots across and 64 causal.",
       **both_sides(ffn_embed_dim=1024), dropout=0.3, cross_attention="abc_mlp(slots=128)",
       decoder_self_attention="abc_mlp(slots=64)", share_all_embeddings=True)
preset("structured_transformer", "structured_transformer_stack_europarl",
       "Stack Attention, section 8 and appendix G: 5 + 5 layers, 8 heads, inner size 4d, everything tied (d 160).",
       **both_sides(ffn_embed_dim=lambda cfg: 4 * cfg.decoder_embed_dim, layers=5, normalize_before=True),
       decoder_embed_dim=160, encoder_embed_dim=lambda cfg: cfg.decoder_embed_dim, attention_dropout=0.1,
       activation_dropout=0.1, share_all_embeddings=True, interleaved_positions=True, initialization="uniform",
       initialization_bound=0.01)
