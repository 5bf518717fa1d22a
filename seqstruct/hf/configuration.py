"""What a model is built from: the options of its architecture, under fairseq's names, as one flat configuration.

transformers reads the types at run time: no postponed annotations here.
"""

import copy
import math

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from seqstruct.attention import Choice, Site, Slot, get_attention, parse_choices
from seqstruct.attention.base import check_rotates
from seqstruct.layers.transformer import ACTIVATIONS, Front, LayerForm
from seqstruct.layers.vocabulary import Symbols

ARCHITECTURES = {  # fairseq's model, and that of transformers
    "structured_transformer": "SeqstructForSeq2SeqLM", "structured_transformer_lm": "SeqstructForCausalLM",
    "structured_transformer_classifier": "SeqstructForSequenceClassification",
}
KNOWN = {"arch": ARCHITECTURES, "activation_fn": ACTIVATIONS, "rotary": ("none", "all", "hybrid"),
         "pooling": ("first", "mean")}


def _of_first(encoder: str, decoder: str) -> property:
    """What transformers has one name for: of the encoder where there is one, as its own models have it.

    No attribute_map, which is one for all architectures.
    """

    def name(config: "SeqstructConfig") -> str:
        return decoder if config.arch == "structured_transformer_lm" else encoder

    return property(
        lambda config: getattr(config, name(config)), lambda config, value: setattr(config, name(config), value)
    )


@strict
class SeqstructConfig(PreTrainedConfig):
    """The three plans and the sizes of a transformer; what its architecture has no use for is left at its default.

    arch: the model's name in fairseq.  vocab_size: of the target, or the text; source_vocab_size: of the source, None
    for the same.  special_tokens: the first ids, which stand for no word.  encoder_self_attention,
    decoder_self_attention, cross_attention: plans, such as "softmax*2 + rfa(features=64)".  Other options are
    those of `fairseq-train --arch ...` with the same name.  Raises ValueError on a plan or an option that does not fit.
    """

    model_type = "seqstruct"
    keys_to_ignore_at_inference = ["past_key_values"]
    hidden_size = _of_first("encoder_embed_dim", "decoder_embed_dim")
    num_hidden_layers = _of_first("encoder_layers", "decoder_layers")
    num_attention_heads = _of_first("encoder_attention_heads", "decoder_attention_heads")
    max_position_embeddings = _of_first("max_source_positions", "max_target_positions")

    arch: str = "structured_transformer_lm"
    vocab_size: int = 1000
    source_vocab_size: int | None = None
    special_tokens: int = 4
    bos_token_id: int | None = 0
    pad_token_id: int | None = 1
    eos_token_id: int | list[int] | None = 2
    decoder_start_token_id: int | None = 2
    encoder_self_attention: str = "softmax"
    decoder_self_attention: str = "softmax"
    cross_attention: str = "softmax"
    encoder_layers: int = 0
    encoder_embed_dim: int = 512
    encoder_ffn_embed_dim: int = 2048
    encoder_attention_heads: int = 8
    encoder_normalize_before: bool = False
    encoder_learned_pos: bool = False
    encoder_layerdrop: float | int = 0.0
    decoder_layers: int = 6
    decoder_embed_dim: int = 512
    decoder_input_dim: int | None = None
    decoder_output_dim: int | None = None
    decoder_ffn_embed_dim: int = 2048
    decoder_attention_heads: int = 8
    decoder_normalize_before: bool = True
    decoder_learned_pos: bool = False
    decoder_layerdrop: float | int = 0.0
    no_decoder_final_norm: bool = False
    activation_fn: str = "relu"
    dropout: float | int = 0.1
    attention_dropout: float | int = 0.0
    activation_dropout: float | int = 0.0
    max_source_positions: int = 1024
    max_target_positions: int = 1024
    interleaved_positions: bool = False
    no_token_positional_embeddings: bool = False
    no_scale_embedding: bool = False
    layernorm_embedding: bool = False
    share_decoder_input_output_embed: bool = False
    share_all_embeddings: bool = False
    rotary: str = "none"
    rotary_base: float | int = 10000.0
    qk_norm: bool = False
    short_conv: int = 0
    no_biases: bool = False
    rms_norm: bool = False
    swiglu: bool = False
    encoder_kv_heads: int | None = None
    decoder_kv_heads: int | None = None
    logit_soft_cap: float | int | None = None
    compact_vocabulary: bool = False
    reversible: bool = False
    pooling: str = "first"
    classifier_hidden_size: int | None = None
    pairs: bool = False
    tie_layers: bool = False
    is_encoder_decoder: bool = False
    tie_word_embeddings: bool = True  # transformers ties nothing without it; what is tied, the options above say
    use_cache: bool = True

    def __post_init__(self, **kwargs):
        for name, known in KNOWN.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name}: expected one of {', '.join(known)}, got {getattr(self, name)!r}")
        if self.pad_token_id is None:
            raise ValueError("pad_token_id: expected the id of a token, got None; embeddings have a row for padding")
        if self.logit_soft_cap is not None and not 0 < self.logit_soft_cap < math.inf:
            raise ValueError(f"logit_soft_cap: expected a finite number above 0, got {self.logit_soft_cap}")
        if self.reversible and (self.arch != "structured_transformer_lm" or not self.decoder_normalize_before
                                or self.decoder_layerdrop):
            raise ValueError("reversible: expected a structured_transformer_lm with decoder_normalize_before and no "
                             "decoder_layerdrop")
        if self.interleaved_positions and (self.encoder_learned_pos or self.decoder_learned_pos):
            raise ValueError("interleaved_positions: expected no learned positions beside them")
        self.is_encoder_decoder = self.arch == "structured_transformer"
        super().__post_init__(**kwargs)
        self.architectures = self.architectures or [ARCHITECTURES[self.arch]]  # by which AutoModel chooses
        for site in Site:
            choices = self.choices(site)
            if self.rotary == "all" and site is not Site.CROSS:
                for choice in choices:
                    check_rotates(get_attention(choice.name), site)
        sizes = {(self.source_vocab_size or self.vocab_size, self.encoder_embed_dim),
                 (self.vocab_size, self.decoder_embed_dim)}
        if self.is_encoder_decoder and self.share_all_embeddings and len(sizes) > 1:
            raise ValueError("share_all_embeddings: expected tables of one size on both sides, got "
                             + " and ".join(f"{rows} x {size}" for rows, size in sorted(sizes)))
        if self.tie_layers and len(set(self.choices(Site.ENCODER_SELF))) > 1:
            raise ValueError("tie_layers: expected one mechanism for all layers in encoder_self_attention, got "
                             f"{self.encoder_self_attention!r}")

    def get_text_config(self, decoder: bool | None = None, encoder: bool | None = None) -> "SeqstructConfig":
        """Itself; of an encoder-decoder's decoder a copy, in which the names of transformers are the decoder's."""
        if not decoder or encoder or not self.is_encoder_decoder:
            return self
        found = copy.deepcopy(self)
        found.arch = "structured_transformer_lm"
        return found

    def choices(self, site: Site) -> tuple[Choice, ...]:
        """The mechanism of each layer at a site.  Raises ValueError as `parse_choices` does."""
        layers = self.encoder_layers if site is Site.ENCODER_SELF else self.decoder_layers
        return parse_choices(getattr(self, f"{site.value}_attention"), layers, site)

    @property
    def sites(self) -> list[Site]:
        """Those that the model has."""
        classifier, translation = self.arch.endswith("classifier"), self.is_encoder_decoder
        there = {Site.ENCODER_SELF: classifier or translation, Site.DECODER_SELF: not classifier,
                 Site.CROSS: translation}
        return [site for site in Site if there[site]]

    @property
    def mechanisms(self) -> list[str]:
        """The names of all mechanisms in the model, without repetition."""
        return sorted({choice.name for site in self.sites for choice in self.choices(site)})

    @property
    def longest_source(self) -> int:
        """Tokens of the longest source or text; a token put before it has one of the positions."""
        return self.max_source_positions - (self.arch.endswith("classifier") and self.pooling == "first")

    @property
    def symbols(self) -> Symbols:
        """The target's vocabulary."""
        return Symbols(self.vocab_size, self.special_tokens, self.pad_token_id, self.eos_token_id)

    def form(self, side: str) -> LayerForm:
        """What the layers of "encoder" or "decoder" share."""
        return LayerForm(
            embed_dim=self.of(side, "embed_dim"),
            ffn_embed_dim=self.of(side, "ffn_embed_dim"),
            num_heads=self.of(side, "attention_heads"),
            memory_dim=self.encoder_embed_dim,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            activation_dropout=self.activation_dropout,
            activation="swiglu" if self.swiglu else self.activation_fn,
            normalize_before=self.of(side, "normalize_before"),
            slot=Slot(
                kv_heads=self.of(side, "kv_heads"),
                biases=not self.no_biases,
                qk_norm=self.qk_norm,
                rotary_base=None if self.rotary == "none" else self.rotary_base,
                short_conv=self.short_conv,
            ),
            rms_norm=self.rms_norm,
        )

    def front(self, side: str) -> Front:
        """How tokens enter "encoder" or "decoder"."""
        positions = "interleaved" if self.interleaved_positions else "stacked"
        positions = "learned" if self.of(side, "learned_pos") else positions
        return Front(
            embed_dim=self.of(side, "embed_dim"),
            scaled=not self.no_scale_embedding,
            positions="none" if self.no_token_positional_embeddings or self.rotary != "none" else positions,
            max_positions=self.max_source_positions if side == "encoder" else self.max_target_positions,
            padding_idx=self.pad_token_id,
            normalized=self.layernorm_embedding,
            dropout=self.dropout,
            layerdrop=self.of(side, "layerdrop"),
            rms_norm=self.rms_norm,
        )

    def of(self, side: str, name: str):
        """The value of an option that encoder and decoder have."""
        return getattr(self, f"{side}_{name}")
