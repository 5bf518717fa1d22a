"""GPT-2, Llama and BERT of transformers with other attention; importing this registers them there.

    from seqstruct.hf.exchanged import swap_attention, transfer, tune
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained("converted")

It stands apart from `seqstruct.hf`, since it imports those models.
"""

from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

from seqstruct.hf.exchanged.audio import without_broken_audio

with without_broken_audio():
    from seqstruct.hf.exchanged.models import (
        ExchangedBertForMaskedLM,
        ExchangedGPT2LMHeadModel,
        ExchangedLlamaForCausalLM,
    )
from seqstruct.hf.exchanged.swap import falling, losses_at_swap, swap_attention, transfer, tune

for _model, _auto in (
    (ExchangedGPT2LMHeadModel, AutoModelForCausalLM),
    (ExchangedLlamaForCausalLM, AutoModelForCausalLM),
    (ExchangedBertForMaskedLM, AutoModelForMaskedLM),
):
    AutoConfig.register(_model.config_class.model_type, _model.config_class, exist_ok=True)
    _auto.register(_model.config_class, _model, exist_ok=True)

__all__ = [
    "ExchangedBertForMaskedLM",
    "ExchangedGPT2LMHeadModel",
    "ExchangedLlamaForCausalLM",
    "falling",
    "losses_at_swap",
    "swap_attention",
    "transfer",
    "tune",
]
