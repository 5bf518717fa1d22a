"""`structured_transformer_classifier` as a classifier of transformers."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_outputs import SequenceClassifierOutput

from seqstruct.hf.configuration import SeqstructConfig
from seqstruct.hf.modeling import SeqstructPreTrainedModel, build_encoder, cross_entropy, padding
from seqstruct.layers.transformer import Encoder


class SeqstructForSequenceClassification(SeqstructPreTrainedModel):
    """A transformer encoder with any attention that labels texts, or pairs of them."""

    def __init__(self, config: SeqstructConfig):
        super().__init__(config)
        self.encoder = build_encoder(config, Encoder)
        size, hidden = config.encoder_embed_dim, config.classifier_hidden_size or config.encoder_ffn_embed_dim
        ends = (4 * size, hidden, hidden // 2, config.num_labels) if config.pairs else (size, hidden, config.num_labels)
        self.head = nn.ModuleList(nn.Linear(*pair) for pair in zip(ends, ends[1:], strict=False))
        self.finish()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        second_input_ids: Tensor | None = None,
        second_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        return_dict: bool | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput | tuple:
        """Logits B K of texts B T, and of second texts B S where labels are of pairs.

        Masks: 0 = padding, on either side; without one, padding is where the token of that name is.  labels: B.
        num_items_in_batch: what the loss is divided by, as `Trainer` has it; None for the labels of this batch.
        Raises ValueError if second texts are there or not there against the configuration.
        """
        if self.config.pairs != (second_input_ids is not None):
            raise ValueError(f"second_input_ids: expected {'a second text' if self.config.pairs else 'none'}")
        x = self.encode(input_ids, attention_mask)
        if second_input_ids is not None:
            y = self.encode(second_input_ids, second_attention_mask)
            x = torch.cat([x, y, x * y, x - y], -1)
        for layer in self.head[:-1]:
            x = F.relu(layer(x))
        logits = self.head[-1](x)
        loss = None if labels is None else cross_entropy(logits, labels, num_items_in_batch)
        output = SequenceClassifierOutput(loss=loss, logits=logits)
        return output if return_dict or return_dict is None else output.to_tuple()

    def encode(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        """Texts B T as vectors B C: the encoding of a token before them, or the mean over them, of none zeros."""
        pad = padding(tokens, mask, tokens, self.config.pad_token_id)
        first = self.config.pooling == "first"
        if first and pad is not None:  # to the end, so that it parts no text from the token before it
            order = pad.long().argsort(dim=1, stable=True)
            tokens, pad = tokens.gather(1, order), pad.gather(1, order)
        if first:
            tokens = F.pad(tokens, (1, 0), value=self.config.bos_token_id)
            pad = None if pad is None else F.pad(pad, (1, 0))
        x, *_ = self.encoder.encode(self.encoder.embed_tokens(tokens), pad, call=self._caller())
        if first:
            return x[:, 0]
        real = x.new_ones(x.shape[:2]) if pad is None else (~pad).to(x.dtype)
        return (x * real.unsqueeze(2)).sum(1) / real.sum(1, keepdim=True).clamp(min=1)
