"""`structured_transformer_lm` as a language model of transformers."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers import GenerationMixin
from transformers.modeling_outputs import CausalLMOutputWithPast

from seqstruct.hf.cache import SeqstructCache
from seqstruct.hf.configuration import SeqstructConfig
from seqstruct.hf.modeling import SeqstructPreTrainedModel, build_decoder, check_unpacked


class SeqstructForCausalLM(SeqstructPreTrainedModel, GenerationMixin):
    """A decoder-only transformer with any attention in any layer."""

    def __init__(self, config: SeqstructConfig):
        super().__init__(config)
        self.decoder = build_decoder(config)
        self.finish()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        past_key_values: SeqstructCache | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        logits_to_keep: int = 0,
        **options: Any,
    ) -> CausalLMOutputWithPast | tuple:
        """Logits B T N of tokens B T, or of vectors B T C in their place, which go on from what is in the cache.

        attention_mask: B S, of all tokens so far, 0 = padding, on either side; without one, padding is where the token
        of that name is.  labels: B T, of which the next one is predicted; -100 = not.  logits_to_keep: how many of the
        last positions have logits, 0 for all.  Weights of attention are None in layers whose mechanism has none.
        Raises ValueError on position_ids of sequences packed into one row; others say nothing new.
        """
        check_unpacked(options.pop("position_ids", None), attention_mask)
        cache = self._cache(past_key_values, use_cache)
        weighed = self.config.output_attentions if output_attentions is None else output_attentions
        features, hidden, weights = self._decode(
            input_ids, attention_mask, inputs_embeds, cache, need_weights=bool(weighed)
        )
        logits = self._logits(features[:, -logits_to_keep:] if logits_to_keep else features)
        loss = None
        if labels is not None:
            loss = self.loss_function(logits=logits, labels=labels, vocab_size=self.config.vocab_size, **options)
        shown = self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        output = CausalLMOutputWithPast(
            loss=loss,
            logits=logits,
            past_key_values=cache,
            hidden_states=tuple(hidden) if shown else None,
            attentions=tuple(own for own, _ in weights) if weighed else None,
        )
        return output if return_dict or return_dict is None else output.to_tuple()
