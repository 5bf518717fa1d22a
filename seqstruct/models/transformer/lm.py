"""`structured_transformer_lm`: a decoder-only transformer with any attention in any layer."""

from dataclasses import dataclass
from typing import Any

from fairseq.models import FairseqLanguageModel, register_model
from fairseq.models.transformer import Embedding
from fairseq.models.transformer_lm import TransformerLanguageModelConfig
from fairseq.modules import AdaptiveInput

from seqstruct.bridge.initialization import initialize_uniform
from seqstruct.bridge.options import flag
from seqstruct.bridge.transformer import StructuredDecoder, nested_config
from seqstruct.layers.vocabulary import TerminalEmbedding
from seqstruct.models.presets import modern, preset
from seqstruct.models.transformer.base import DecoderOptions, LayerOptions, StructuredModel


@dataclass
class StructuredTransformerLanguageModelConfig(LayerOptions, DecoderOptions, TransformerLanguageModelConfig):
    """fairseq's language model options, and ours."""

    decoder_normalize_after: bool = flag(
        False, "normalise after each block (post-norm); before each block without this, as fairseq does"
    )
    reversible: bool = flag(
        False, "reversible residual layers (Gomez et al. 2017): activations are recomputed in the backward pass, from "
               "the outputs of the layers"
    )
    compact_vocabulary: bool = flag(
        False, "tables of V+1 rows for V terminals: BOS is the one special symbol at the input, EOS at the output, "
               "which has a bias; for --task cfl_language_modeling"
    )
    initialization_bound: float = flag(0.1, "bound of the uniform initialisation, > 0 (0.1 in D.2, 0.01 in F.2)")


@register_model("structured_transformer_lm", dataclass=StructuredTransformerLanguageModelConfig)
class StructuredTransformerLanguageModel(StructuredModel, FairseqLanguageModel):
    """A language model on `StructuredDecoder`."""

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "StructuredTransformerLanguageModel":
        """From the flat configuration and a task with two dictionaries; ValueError on options that do not fit."""
        _check(cfg)
        cfg.decoder_normalize_before = not cfg.decoder_normalize_after
        if cfg.max_target_positions is None:
            cfg.max_target_positions = cfg.tokens_per_sample
        nested = nested_config(cfg)
        embed_tokens = cls.build_embedding(cfg, task.source_dictionary, nested.decoder.input_dim)
        model = cls(StructuredDecoder(nested, task.target_dictionary, embed_tokens, no_encoder_attn=True))
        if cfg.initialization == "uniform":
            initialize_uniform(model, cfg.initialization_bound)
        return model

    @classmethod
    def build_embedding(cls, cfg: Any, dictionary: Any, embed_dim: int) -> Any:
        """The input table: compact, adaptive (Baevski & Auli 2019) or plain."""
        if cfg.compact_vocabulary:
            return TerminalEmbedding(dictionary, embed_dim)
        if cfg.adaptive_input:
            return AdaptiveInput(
                len(dictionary),
                dictionary.pad(),
                embed_dim,
                cfg.adaptive_input_factor,
                cfg.decoder_embed_dim,
                [int(cut) for cut in cfg.adaptive_input_cutoff.split(",")],
                cfg.quant_noise_pq,
                cfg.quant_noise_pq_block_size,
            )
        return Embedding(len(dictionary), embed_dim, dictionary.pad())


def _check(cfg: Any) -> None:
    if cfg.character_embeddings:
        raise ValueError("--character-embeddings are not offered with structured attention")
    if cfg.decoder_normalize_before and cfg.decoder_normalize_after:
        raise ValueError("--decoder-normalize-before and --decoder-normalize-after exclude each other")
    if cfg.compact_vocabulary and (
        cfg.share_decoder_input_output_embed or cfg.adaptive_input or cfg.adaptive_softmax_cutoff is not None
    ):
        raise ValueError("--compact-vocabulary has tables of its own: neither shared nor adaptive ones")
    if cfg.adaptive_input and cfg.adaptive_input_cutoff is None:
        raise ValueError("--adaptive-input needs --adaptive-input-cutoff, such as 20000,60000")
    if cfg.adaptive_input and cfg.share_decoder_input_output_embed and cfg.adaptive_softmax_cutoff is None:
        raise ValueError("--share-decoder-input-output-embed does not go with --adaptive-input, whose tables "
                         "--tie-adaptive-weights shares with those of --adaptive-softmax-cutoff")
    if cfg.tie_adaptive_weights:
        cutoffs = cfg.adaptive_input_cutoff if cfg.adaptive_input else None, cfg.adaptive_softmax_cutoff
        if cutoffs[0] != cutoffs[1] or cutoffs[0] is None:
            raise ValueError("--tie-adaptive-weights needs --adaptive-input and one cutoff at the input and at the "
                             "output, got {} and {}".format(*cutoffs))
        if cfg.decoder_output_dim not in (None, cfg.decoder_embed_dim):
            raise ValueError(f"--tie-adaptive-weights needs one size: --decoder-embed-dim is {cfg.decoder_embed_dim}, "
                             f"--decoder-output-dim {cfg.decoder_output_dim}")


STACK_ATTENTION = dict(
    decoder_layers=5, dropout=0.1, attention_dropout=0.1, activation_dropout=0.1, interleaved_positions=True,
    initialization="uniform",
)
# Baevski & Auli's (2019) adaptive input and softmax, tied
WIKITEXT103 = dict(
    decoder_ffn_embed_dim=lambda cfg: 4 * cfg.decoder_embed_dim, adaptive_input=True,
    adaptive_input_cutoff="20000,60000", adaptive_softmax_cutoff="20000,60000", tie_adaptive_weights=True,
)
# what tables A.2 and B.1 leave to Baevski & Auli (2019): fairseq's transformer_lm_baevski_wiki103
BAEVSKI_AULI = WIKITEXT103 | dict(
    decoder_embed_dim=1024, decoder_attention_heads=8, dropout=0.3, attention_dropout=0.1, activation_dropout=0.1,
    adaptive_softmax_dropout=0.2, tie_adaptive_proj=True, no_decoder_final_norm=True,
)

preset("structured_transformer_lm", "structured_transformer_lm_cfl",
       "Stack Attention, appendix D: 5 layers of size 32 (28 with a nondeterministic stack), 4 heads, dropout 0.1.",
       decoder_embed_dim=32, decoder_ffn_embed_dim=lambda cfg: 2 * cfg.decoder_embed_dim, decoder_attention_heads=4,
       initialization_bound=0.1, compact_vocabulary=True, **STACK_ATTENTION)
preset("structured_transformer_lm", "structured_transformer_lm_ptb",
       "Stack Attention, section 7 and appendix F: 5 layers of size 256, inner size 1024, 8 heads, tied embeddings.",
       decoder_embed_dim=256, decoder_ffn_embed_dim=lambda cfg: 4 * cfg.decoder_embed_dim, decoder_attention_heads=8,
       initialization_bound=0.01, share_decoder_input_output_embed=True, **STACK_ATTENTION)
preset("structured_transformer_lm", "structured_transformer_lm_modern",
       "A decoder of today: 6 layers of size 512, 8 heads, 4 of keys and values, rotary positions, RMS norms, SwiGLU.",
       share_decoder_input_output_embed=True, **modern("decoder", embed_dim=512, heads=8, layers=6))
preset("structured_transformer_lm", "structured_transformer_lm_wikitext103_small",
       "Peng 2022, table A.2, small: 6 layers of size 512, 8 heads, dropout 0.05 (of 0.05 and 0.1); sinusoids.",
       decoder_layers=6, decoder_attention_heads=8, decoder_embed_dim=512, dropout=0.05, **WIKITEXT103)
preset("structured_transformer_lm", "structured_transformer_lm_wikitext103_big",
       "Peng 2022, table A.2, big: 16 layers of size 1024, 16 heads, dropout 0.2 (of 0.2, 0.25 and 0.3).",
       decoder_layers=16, decoder_attention_heads=16, decoder_embed_dim=1024, dropout=0.2, **WIKITEXT103)
preset("structured_transformer_lm", "structured_transformer_lm_wikitext103_16_layers",
       "Peng 2022, table B.1, after Baevski & Auli (2019): 16 layers of size 1024, 8 heads, dropout 0.3.",
       decoder_layers=16, **BAEVSKI_AULI)
preset("structured_transformer_lm", "structured_transformer_lm_wikitext103_32_layers",
       "Peng 2022, table B.1, after Kasai et al. (2021): 32 layers, a fifth of them left out of each training pass.",
       decoder_layers=32, decoder_layerdrop=0.2, **BAEVSKI_AULI)
