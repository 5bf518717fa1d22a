"""`structured_transformer_classifier` as a classifier of transformers."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.modeling_outputs import SequenceClassifierOutput

from seqstruct.hf.configuration import SeqstructConfig
from seqstruct.hf.modeling import SeqstructPreTrainedModel, build_encoder, padding
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
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput | tuple:
        """Logits B K of texts B T, and of second texts B S where labels are of pairs.

        Masks: 0 = padding, on either side; without one, padding is where the token of that name is.  labels: B, or
        as the configuration's problem_type has them, which follows from them where it is None, as in transformers' own.
        num_items_in_batch: what the loss is divided by, as `Trainer` has it; None for the labels of this batch.
        Hidden states and weights are of the tokens in their order, after the one that is put before them; of pairs
        those of the texts, then those of the second ones.  Weights are None in layers whose mechanism has none.
        Raises ValueError if second texts are there or not there against the configuration.
        """
        if self.config.pairs != (second_input_ids is not None):
            raise ValueError(f"second_input_ids: expected {'a second text' if self.config.pairs else 'none'}")
        weighed = self.config.output_attentions if output_attentions is None else output_attentions
        shown = self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        x, hidden, weights = self.encode(input_ids, attention_mask, bool(weighed))
        if second_input_ids is not None:
            y, *more = self.encode(second_input_ids, second_attention_mask, bool(weighed))
            x, hidden, weights = torch.cat([x, y, x * y, x - y], -1), hidden + more[0], weights + more[1]
        for layer in self.head[:-1]:
            x = F.relu(layer(x))
        logits = self.head[-1](x)
        loss = None
        if labels is not None:
            loss = self.loss_function(
                labels=labels, pooled_logits=logits.float(), config=self.config, num_items_in_batch=num_items_in_batch
            )
        output = SequenceClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=tuple(hidden) if shown else None,
            attentions=tuple(weights) if weighed else None,
        )
        return output if return_dict or return_dict is None else output.to_tuple()

    def encode(
        self, tokens: Tensor, mask: Tensor | None, need_weights: bool = False
    ) -> tuple[Tensor, list[Tensor], list[Tensor | None]]:
        """Texts B T as vectors B C: the encoding of a token before them, or the mean over them, of none zeros; and what
        `Encoder.encode` gives beside it."""
        pad = padding(tokens, mask, tokens, self.config.pad_token_id)
        first, order = self.config.pooling == "first", None
        if first and pad is not None:  # to the end, so that it parts no text from the token before it
            order = pad.long().argsort(dim=1, stable=True)
            tokens, pad = tokens.gather(1, order), pad.gather(1, order)
        if first:
            tokens = F.pad(tokens, (1, 0), value=self.config.bos_token_id)
            pad = None if pad is None else F.pad(pad, (1, 0))
        embedded = self.encoder.embed_tokens(tokens)
        x, hidden, weights = self.encoder.encode(embedded, pad, need_weights, self._caller())
        if order is not None:
            place = F.pad(order.argsort(dim=1) + 1, (1, 0))
            hidden = [_ordered(h, place, 1) for h in hidden]
            weights = [None if w is None else _ordered(_ordered(w, place, 2), place, 3) for w in weights]
        if first:
            return x[:, 0], hidden, weights
        real = x.new_ones(x.shape[:2]) if pad is None else (~pad).to(x.dtype)
        return (x * real.unsqueeze(2)).sum(1) / real.sum(1, keepdim=True).clamp(min=1), hidden, weights


def _ordered(x: Tensor, place: Tensor, dim: int) -> Tensor:
    """x, whose entries along dim are in the order place B T."""
    shape = [len(place), *(1,) * (x.dim() - 1)]
    shape[dim] = place.size(1)
    return x.take_along_dim(place.view(shape), dim)
