"""`structured_transformer` as a translation model of transformers."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationMixin, LogitsProcessor, LogitsProcessorList
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

from seqstruct.hf.cache import SeqstructCache
from seqstruct.hf.configuration import SeqstructConfig
from seqstruct.hf.modeling import (
    IGNORED,
    SeqstructPreTrainedModel,
    build_decoder,
    build_encoder,
    cross_entropy,
    embed,
    padding,
)
from seqstruct.layers.transformer import Encoder, plainly


class SeqstructEncoder(Encoder):
    """The encoder as `generate` calls it."""

    main_input_name = "input_ids"

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        call: Any = plainly,
    ) -> BaseModelOutput:
        """Encodings B S C of tokens B S; attention_mask: B S, 0 = padding."""
        embedded = embed(self, input_ids, inputs_embeds)
        mask = padding(input_ids, attention_mask, embedded, self.front.padding_idx)
        x, hidden, weights = self.encode(embedded, mask, bool(output_attentions), call)
        return BaseModelOutput(
            last_hidden_state=x,
            hidden_states=tuple(hidden) if output_hidden_states else None,
            attentions=tuple(weights) if output_attentions else None,
        )


class EndInTime(LogitsProcessor):
    """Nothing but the end of sentence, at its own probability, where one token more is left, as fairseq ends a search.

    transformers leaves out hypotheses of the greatest length that have no end.
    """

    def __init__(self, max_length: int, ends: list[int]):
        self.max_length, self.ends = max_length, ends

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """scores: rows N of the next token after input_ids, rows T."""
        if input_ids.size(1) + 1 < self.max_length:
            return scores
        others = torch.ones(scores.size(1), dtype=torch.bool, device=scores.device)
        others[self.ends] = False
        return scores.masked_fill(others, -math.inf)


class SeqstructForSeq2SeqLM(SeqstructPreTrainedModel, GenerationMixin):
    """An encoder-decoder with any attention in any layer of any site."""

    def __init__(self, config: SeqstructConfig):
        super().__init__(config)
        self.encoder = build_encoder(config, SeqstructEncoder)
        table = self.encoder.embed_tokens if config.share_all_embeddings else None
        self.decoder = build_decoder(config, table)
        self.finish()

    def get_encoder(self, *_: Any, **__: Any) -> nn.Module:
        return self.encoder

    def get_decoder(self, *_: Any, **__: Any) -> nn.Module:
        return self.decoder

    def generate(self, inputs: Tensor | None = None, *given: Any, **named: Any) -> Any:
        """As transformers' own; without attention_mask, padding of the source is where the token of that name is."""
        tokens = named.get("input_ids", inputs)
        if tokens is not None and named.get("attention_mask") is None:
            named["attention_mask"] = tokens.ne(self.config.pad_token_id).long()
        return super().generate(inputs, *given, **named)

    def _get_logits_processor(self, generation_config: Any, *rest: Any, **named: Any) -> LogitsProcessorList:
        processors = super()._get_logits_processor(generation_config, *rest, **named)
        end = generation_config.eos_token_id
        if generation_config.max_length is not None and end is not None:
            ends = [end] if isinstance(end, int) else list(end)
            processors.insert(0, EndInTime(generation_config.max_length, ends))  # else sampling may have left no end
        return processors

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Put another table of the source's tokens in its place."""
        super().set_input_embeddings(value)
        if self.config.share_all_embeddings:
            self.decoder.embed_tokens = value

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """What the decoder reads to predict labels B T: the token that starts it, and all labels but the last."""
        shifted = labels.new_full(labels.shape, self.config.decoder_start_token_id)
        shifted[:, 1:] = labels[:, :-1]
        return shifted.masked_fill(shifted == IGNORED, self.config.pad_token_id)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple | None = None,
        past_key_values: SeqstructCache | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **_: Any,
    ) -> Seq2SeqLMOutput | tuple:
        """Logits B T N of target tokens B T, for source tokens B S or their encodings.

        Masks: 0 = padding, on either side; without one, padding is where the token of that name is.  labels: B T, each
        predicted at its place; -100 = not.  Without target tokens, they follow from labels.
        """
        weighed = self.config.output_attentions if output_attentions is None else output_attentions
        shown = self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        if encoder_outputs is None:
            encoder_outputs = self.encoder(
                input_ids, attention_mask, inputs_embeds, weighed, shown, call=self._caller()
            )
        source = encoder_outputs[0]
        source_mask = padding(input_ids, attention_mask, source, self.config.pad_token_id)
        if decoder_input_ids is None and decoder_inputs_embeds is None:
            if labels is None:
                raise ValueError("expected decoder_input_ids, decoder_inputs_embeds or labels")
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        cache = self._cache(past_key_values, use_cache if labels is None else False)
        features, hidden, weights = self._decode(
            decoder_input_ids, decoder_attention_mask, decoder_inputs_embeds, cache, source, source_mask, bool(weighed)
        )
        logits = self._logits(features)
        loss = None if labels is None else cross_entropy(logits.flatten(0, 1), labels.flatten(), num_items_in_batch)
        output = Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            past_key_values=cache,
            decoder_hidden_states=tuple(hidden) if shown else None,
            decoder_attentions=tuple(own for own, _ in weights) if weighed else None,
            cross_attentions=tuple(cross for _, cross in weights) if weighed else None,
            encoder_last_hidden_state=source,
            encoder_hidden_states=getattr(encoder_outputs, "hidden_states", None),
            encoder_attentions=getattr(encoder_outputs, "attentions", None),
        )
        return output if return_dict or return_dict is None else output.to_tuple()
