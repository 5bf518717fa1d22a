"""`structured_roberta`: fairseq's RoBERTa with any attention in any layer, for checkpoints of RoBERTa among others.

A checkpoint of fairseq's `roberta` loads into any plan: what attention shares by name and shape (queries, keys, values
and output projections) is taken over, the rest starts anew, and a warning says that training has to go on (Peng 2022,
section 5.5.3: masked language modeling, then the task of interest; without the former all models failed).

    fairseq-train TEXT --user-dir "$(seqstruct path)" --task masked_lm --criterion masked_lm \\
        --arch structured_roberta_abc --finetune-from-model roberta.base/model.pt ...
    fairseq-train GLUE --user-dir "$(seqstruct path)" --task sentence_prediction --criterion sentence_prediction \\
        --arch structured_roberta_abc --finetune-from-model continued/checkpoint_last.pt \\
        --init-token 0 --separator-token 2 --num-classes 3 ...
"""

from dataclasses import dataclass
from typing import Any, Optional

from fairseq.models import register_model
from fairseq.models.roberta.model import RobertaEncoder, RobertaModel, base_architecture
from fairseq.modules.transformer_sentence_encoder import init_bert_params
from omegaconf import OmegaConf
from torch import nn

from seqstruct.bridge.options import flag
from seqstruct.bridge.transformer import StructuredEncoder, encoder_config
from seqstruct.models.presets import ACTIVATIONS, preset
from seqstruct.models.transformer.base import EncoderOptions, StructuredModel


@dataclass
class StructuredRobertaConfig(EncoderOptions):
    """One flat set of options for the command line and YAML; defaults are those of roberta.base."""

    encoder_layers: int = flag(12, "number of layers, 1 or more")
    encoder_embed_dim: int = flag(768, "model size")
    encoder_ffn_embed_dim: int = flag(3072, "inner size of feed-forward layers")
    encoder_attention_heads: int = flag(12, "heads")
    encoder_normalize_before: bool = flag(False, "pre-norm")
    encoder_layerdrop: float = flag(0.0, "LayerDrop probability, in [0, 1)")
    activation_fn: ACTIVATIONS = flag("gelu", "activation of feed-forward layers")
    pooler_activation_fn: ACTIVATIONS = flag("tanh", "activation of classification heads")
    attention_dropout: float = flag(0.1, "dropout probability of attention weights")
    activation_dropout: float = flag(0.0, "dropout probability inside feed-forward layers")
    pooler_dropout: float = flag(0.0, "dropout probability of classification heads")
    max_positions: Optional[int] = flag(None, "longest text, in tokens (default: the task's tokens_per_sample)")
    untie_weights_roberta: bool = flag(
        False, "embeddings and the output layer of masked language modeling are not tied"
    )
    load_checkpoint_heads: bool = flag(False, "take over the classification heads of a checkpoint")


class StructuredRobertaEncoder(RobertaEncoder):
    """fairseq's, around an encoder of the plan."""

    def build_encoder(self, args: Any, dictionary: Any, embed_tokens: nn.Module) -> StructuredEncoder:
        options = OmegaConf.to_container(args) if OmegaConf.is_config(args) else vars(args)
        encoder = StructuredEncoder(encoder_config(options), dictionary, embed_tokens)
        encoder.apply(init_bert_params)
        return encoder


@register_model("structured_roberta", dataclass=StructuredRobertaConfig)
class StructuredRoberta(StructuredModel, RobertaModel):
    """fairseq's RoBERTa with attention of a plan; linear layers of all mechanisms start as BERT's do, N(0, 0.02)."""

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "StructuredRoberta":
        """From the flat configuration and a task with source_dictionary; ValueError on a plan that does not fit."""
        if OmegaConf.is_config(cfg):
            OmegaConf.set_struct(cfg, False)
        base_architecture(cfg)
        if getattr(cfg, "max_positions", None) is None:
            cfg.max_positions = task.max_positions()
        cfg.max_source_positions = cfg.max_positions
        return cls(cfg, StructuredRobertaEncoder(cfg, task.source_dictionary))


preset("structured_roberta", "structured_roberta_abc", "Peng 2022, Table 5.6: roberta.base with ABC-MLP, 128 slots.",
       encoder_self_attention="abc_mlp(slots=128)")
preset("structured_roberta", "structured_roberta_linformer",
       "Peng 2022, Table 5.6: roberta.base with Linformer, 128 slots for texts of 512 tokens.",
       encoder_self_attention="linformer(slots=128, length=512)")
