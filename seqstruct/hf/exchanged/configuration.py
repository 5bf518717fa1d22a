"""Configurations of transformers' own models with a plan beside their fields.

transformers reads the types at run time: no postponed annotations here.
"""

from typing import ClassVar

from huggingface_hub.dataclasses import strict
from transformers import BertConfig, GPT2Config, LlamaConfig

from seqstruct.attention import Choice, Site, parse_choices


class ExchangedConfig:
    """What they share; it stands before transformers' own class among the bases.  Raises ValueError on a bad plan."""

    site: ClassVar[Site] = Site.DECODER_SELF

    def __post_init__(self, **kwargs):
        super().__post_init__(**kwargs)
        self.choices()

    def choices(self) -> tuple[Choice, ...]:
        """The mechanism of each layer."""
        return parse_choices(self.plan, self.num_hidden_layers, self.site)


@strict
class ExchangedGPT2Config(ExchangedConfig, GPT2Config):
    """GPT-2's.  plan: of its layers' self-attention."""

    model_type = "seqstruct_gpt2"
    plan: str = "softmax"


@strict
class ExchangedLlamaConfig(ExchangedConfig, LlamaConfig):
    """Llama's.  plan: of its layers' self-attention."""

    model_type = "seqstruct_llama"
    plan: str = "softmax"


@strict
class ExchangedBertConfig(ExchangedConfig, BertConfig):
    """BERT's.  plan: of its layers' self-attention, which sees both sides."""

    model_type = "seqstruct_bert"
    site = Site.ENCODER_SELF
    plan: str = "softmax"
