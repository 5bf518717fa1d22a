"""`structured_transformer_classifier`: a transformer encoder with any attention plan labels texts or pairs.

As in the Long Range Arena (Tay et al. 2021, appendix A; its code's transformer and classifier heads): pre-norm layers,
interleaved sinusoidal positions, embeddings drawn from N(0, 1), a token before each text whose encoding stands for all
of it, or the mean over the text; then a perceptron with one hidden layer.  Two texts a and b are encoded alike, and
[a, b, a * b, a - b] goes through a perceptron with two hidden layers, the second half as large.
Deviations: the first token's embedding starts like the others, not at 0; means are over real tokens, not padding too;
query, key, value and output projections have biases; `tie_layers` shares norms along with all else.
"""

from dataclasses import dataclass
from typing import Any, Optional

import torch
from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model
from torch import Tensor, nn
from torch.nn import functional as F

from seqstruct.attention import Site
from seqstruct.bridge.options import flag
from seqstruct.bridge.transformer import StructuredEncoder, encoder_config
from seqstruct.models.presets import ACTIVATIONS, preset
from seqstruct.models.transformer.base import EncoderOptions, StructuredModel

POOLING = ("first", "mean")


@dataclass
class StructuredClassifierConfig(EncoderOptions):
    """One flat set of options for the command line and YAML."""

    pooling: ChoiceEnum(POOLING) = flag("first", "what stands for a text: a token put before it, or the mean over it")
    classifier_hidden_size: Optional[int] = flag(
        None, "hidden size of the perceptron, 1 or more; even for pairs (default: encoder_ffn_embed_dim)"
    )
    tie_layers: bool = flag(False, "all layers share their parameters")
    activation_fn: ACTIVATIONS = flag("gelu", "activation of feed-forward layers")
    attention_dropout: float = flag(0.1, "dropout probability of attention weights")
    activation_dropout: float = flag(0.1, "dropout probability inside feed-forward layers")
    encoder_embed_dim: int = flag(512, "model size, even")
    encoder_ffn_embed_dim: int = flag(2048, "inner size of feed-forward layers")
    encoder_layers: int = flag(6, "number of layers, 1 or more")
    encoder_attention_heads: int = flag(8, "heads")
    max_source_positions: int = flag(4001, "longest text, in tokens, one put before it included")


@register_model("structured_transformer_classifier", dataclass=StructuredClassifierConfig)
class StructuredClassifier(StructuredModel):
    """A transformer encoder with any attention that labels texts, or pairs of them; it gives logits."""

    made_for = ("text_classification",)
    takes_pairs = True

    def __init__(self, cfg: Any, dictionary: Any, labels: int, pairs: bool):
        """labels: their number.  pairs: whether a label is of two texts.

        Raises ValueError on a plan that does not fit and on sizes out of range.
        """
        super().__init__()
        hidden = cfg.encoder_ffn_embed_dim if cfg.classifier_hidden_size is None else cfg.classifier_hidden_size
        if hidden < 1 or (pairs and hidden % 2):
            wanted = "an even number of 2 or more for pairs" if pairs else "1 or more"
            raise ValueError(f"classifier_hidden_size: expected {wanted}, got {hidden}")
        if cfg.encoder_layers < 1:
            raise ValueError(f"encoder_layers: expected 1 or more, got {cfg.encoder_layers}")
        names = [name for name in StructuredClassifierConfig.__dataclass_fields__ if name != "_name"]
        fixed = dict(encoder_normalize_before=True, no_scale_embedding=True, interleaved_positions=True)
        nested = encoder_config({**{name: getattr(cfg, name) for name in names}, **fixed})
        embedding = nn.Embedding(len(dictionary), cfg.encoder_embed_dim, dictionary.pad())
        nn.init.zeros_(embedding.weight[dictionary.pad()])
        self.encoder = StructuredEncoder(nested, dictionary, embedding)
        if cfg.tie_layers:
            choices = nested.attention_plan.at(Site.ENCODER_SELF)
            if len(set(choices)) > 1:
                raise ValueError("--tie-layers: expected one mechanism for all layers in encoder_self_attention")
            self.encoder.layers = nn.ModuleList([self.encoder.layers[0]] * cfg.encoder_layers)
        self.first_token = dictionary.bos() if str(cfg.pooling) == "first" else None
        size = cfg.encoder_embed_dim
        sizes = (4 * size, hidden, hidden // 2, labels) if pairs else (size, hidden, labels)
        self.head = nn.ModuleList(nn.Linear(*ends) for ends in zip(sizes, sizes[1:], strict=False))

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "StructuredClassifier":
        """From the flat configuration and a task with source_dictionary, labels and pairs; ValueError as `__init__`."""
        return cls(cfg, task.source_dictionary, len(task.labels), task.pairs)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        second_tokens: Optional[Tensor] = None,
        second_lengths: Optional[Tensor] = None,
        **_: Any,
    ) -> Tensor:
        """Logits B K for texts B T, and second texts B S where labels are of pairs; all padded on the right."""
        x = self.encode(src_tokens)
        if second_tokens is not None:
            y = self.encode(second_tokens)
            x = torch.cat([x, y, x * y, x - y], -1)
        for layer in self.head[:-1]:
            x = F.relu(layer(x))
        return self.head[-1](x)

    def encode(self, tokens: Tensor) -> Tensor:
        """Texts B T, padded on the right, as vectors B C.  Raises ValueError past max_source_positions."""
        if self.first_token is not None:
            tokens = F.pad(tokens, (1, 0), value=self.first_token)
        encoded = self.encoder(tokens)["encoder_out"][0]  # T B C
        if self.first_token is not None:
            return encoded[0]
        real = tokens.ne(self.encoder.padding_idx).t().unsqueeze(-1)
        return (encoded * real).sum(0) / real.sum(0)

    def max_positions(self) -> int:
        return self.encoder.max_positions() - (self.first_token is not None)


preset("structured_transformer_classifier", "structured_transformer_classifier_listops",
       "Long Range Arena, ListOps: 6 layers of size 512 that share their parameters, texts of at most 2,000 tokens.",
       tie_layers=True, max_source_positions=2001)
preset("structured_transformer_classifier", "structured_transformer_classifier_text",
       "Long Range Arena, IMDb by characters: 4 layers of size 256.",
       encoder_embed_dim=256, encoder_ffn_embed_dim=1024, encoder_layers=4, encoder_attention_heads=4)
preset("structured_transformer_classifier", "structured_transformer_classifier_retrieval",
       "Long Range Arena, AAN's pairs by characters: 4 layers of size 128.",
       encoder_embed_dim=128, encoder_ffn_embed_dim=512, encoder_layers=4, encoder_attention_heads=4)
