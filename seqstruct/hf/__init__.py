"""Models of transformers around the mechanisms of `seqstruct.attention`; importing this registers them there.

    import seqstruct.hf
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained("exported")

It needs torch, transformers and safetensors, not fairseq.
"""

from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from seqstruct.hf.cache import SeqstructCache
from seqstruct.hf.causal_lm import SeqstructForCausalLM
from seqstruct.hf.classification import SeqstructForSequenceClassification
from seqstruct.hf.configuration import SeqstructConfig
from seqstruct.hf.seq2seq import SeqstructForSeq2SeqLM
from seqstruct.hf.tokenization import SeqstructTokenizer

AutoConfig.register(SeqstructConfig.model_type, SeqstructConfig, exist_ok=True)
AutoModel.register(SeqstructConfig, (SeqstructForCausalLM, SeqstructForSeq2SeqLM, SeqstructForSequenceClassification),
                   exist_ok=True)
AutoModelForCausalLM.register(SeqstructConfig, SeqstructForCausalLM, exist_ok=True)
AutoModelForSeq2SeqLM.register(SeqstructConfig, SeqstructForSeq2SeqLM, exist_ok=True)
AutoModelForSequenceClassification.register(SeqstructConfig, SeqstructForSequenceClassification, exist_ok=True)
AutoTokenizer.register(SeqstructConfig, SeqstructTokenizer, exist_ok=True)

__all__ = [
    "SeqstructCache",
    "SeqstructConfig",
    "SeqstructForCausalLM",
    "SeqstructForSeq2SeqLM",
    "SeqstructForSequenceClassification",
    "SeqstructTokenizer",
]
