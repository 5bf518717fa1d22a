"""`stack_lstm_lm`: an LSTM language model, alone or with a stack, for context-free languages."""

from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqLanguageModel, register_model
from torch import Tensor
from torch.nn.functional import pad

from seqstruct.attention import Choice, Site, parse_choices
from seqstruct.bridge.initialization import initialize_uniform
from seqstruct.bridge.options import flag
from seqstruct.bridge.stateful_decoder import StatefulDecoder
from seqstruct.layers.stack_lstm import StackLSTM
from seqstruct.layers.vocabulary import TerminalProjection, terminal_rows
from seqstruct.models.presets import preset

SUPERPOSITION = "superposition_stack(size=10, sigmoid=True)"
NONDETERMINISTIC = "nondeterministic_stack(states=2, symbols=3, size=5, sigmoid=True)"


@dataclass
class StackLSTMLanguageModelConfig(FairseqDataclass):
    """One flat set of options for the command line and YAML."""

    hidden_size: int = flag(100, "size of the hidden state, 1 or more")
    stack: str = flag(
        "none", f"'none', or a stack as in an attention plan, e.g. '{SUPERPOSITION}' or '{NONDETERMINISTIC}'; "
                "without sigmoid=True pushed vectors are not squashed"
    )
    initialization_bound: float = flag(
        0.1, "bound of the uniform initialisation, > 0; Xavier for the output layer and the layers of a superposition "
             "stack (Stack Attention, appendix D.2)"
    )


class StackLSTMDecoder(StatefulDecoder):
    """Logits of the next symbol from the hidden state; the first position, BOS, is no input and has the hidden state 0.

    Symbols of the dictionary beyond the special ones are one-hot inputs; special ones after the first position (padding
    among them) are vectors of zeros.
    """

    def __init__(self, dictionary: Any, hidden_size: int, stack: Optional[Choice]):
        super().__init__(dictionary)
        self.lstm = StackLSTM(len(dictionary) - dictionary.nspecial, hidden_size, stack)
        self.output_projection = TerminalProjection(dictionary, hidden_size)
        self.register_buffer("rows", terminal_rows(dictionary), persistent=False)

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Any = None,
        incremental_state: Optional[Dict[str, Dict[str, Any]]] = None,
        **_: Any,
    ) -> Tuple[Tensor, Dict[str, Any]]:
        """Hidden states B T h, the first 0."""
        saved = self.saved(incremental_state)
        if saved is None:
            inputs, state = prev_output_tokens[:, 1:], None
        else:
            state = saved["state"]
            inputs = prev_output_tokens[:, 1 + int(state.length[0]) :]
        features, state = self.lstm(self.rows[inputs], state, need_state=incremental_state is not None)
        if saved is None:
            features = pad(features, (0, 0, 1, 0))
        self.save(incremental_state, state=state)
        return features, {"attn": [None]}

    def output_layer(self, features: Tensor, **_: Any) -> Tensor:
        """Logits of terminals and EOS; -inf for all other symbols."""
        return self.output_projection(features)

    def max_positions(self) -> int:
        return 100_000


@register_model("stack_lstm_lm", dataclass=StackLSTMLanguageModelConfig)
class StackLSTMLanguageModel(FairseqLanguageModel):
    """A language model on `StackLSTMDecoder`."""

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "StackLSTMLanguageModel":
        """Raises ValueError on a stack that cannot be read or does not go with an LSTM."""
        stack = None if cfg.stack == "none" else parse_choices(cfg.stack, 1, Site.DECODER_SELF)[0]
        model = cls(StackLSTMDecoder(task.target_dictionary, cfg.hidden_size, stack))
        initialize_uniform(model, cfg.initialization_bound)
        return model


preset("stack_lstm_lm", "stack_lstm_lm_lstm", "Stack Attention, appendix D: an LSTM of size 100.",
       hidden_size=100, stack="none", initialization_bound=0.1)
preset("stack_lstm_lm", "stack_lstm_lm_sup",
       "Stack Attention, appendix D: an LSTM of size 93 with a superposition stack of vectors of size 10.",
       hidden_size=93, stack=SUPERPOSITION, initialization_bound=0.1)
preset("stack_lstm_lm", "stack_lstm_lm_nd",
       "Stack Attention, appendix D: the VRNS-RNN, size 64, 2 states (3 for two languages), 3 symbols, vectors of 5.",
       hidden_size=64, stack=NONDETERMINISTIC, initialization_bound=0.1)
