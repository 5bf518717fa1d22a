"""Recognisers of formal languages: the language models of this package with heads of their own.

A string is read after BOS, left to right, and a linear layer on the state after its last symbol, where the end would be
predicted, says whether it is a member (Butoi et al. 2025).  Beside it stand, for auxiliary losses, the language model's
own output layer and, with the task's `--next-symbols`, a linear layer that says of every symbol and of the end whether
it may come next.  Heads are Xavier uniform, biases 0.

    transformer_recognizer   `structured_transformer_lm`: any attention in any layer
    recurrent_recognizer     `recurrent_lm`: layers of tanh RNNs, LSTMs or rational recurrences
    stack_lstm_recognizer    `stack_lstm_lm`: an LSTM with a stack; before the first symbol its state is 0, so that the
                             bias alone decides on the empty string

Presets have about 64,000 parameters; those of the paper's three models have its five layers.  Deviations: recurrent
layers start from zeros and read BOS; dropout has one mask for all steps, and there is another one on embeddings; forget
gates of an LSTM start open (`layers.rational`); input and output embeddings of the Transformer are not shared, whether
there is a language modeling loss or not.
"""

from operator import attrgetter
from typing import Any, Optional, Tuple

import torch
from fairseq.models import register_model
from torch import Tensor, nn

from seqstruct.models.language_models.recurrent_lm import RecurrentLanguageModel, RecurrentLanguageModelConfig
from seqstruct.models.language_models.stack_lstm_lm import (
    NONDETERMINISTIC,
    SUPERPOSITION,
    StackLSTMLanguageModel,
    StackLSTMLanguageModelConfig,
)
from seqstruct.models.presets import preset
from seqstruct.models.transformer.lm import (
    StructuredTransformerLanguageModel,
    StructuredTransformerLanguageModelConfig,
)


class RecognizerHeads:
    """What stands before a language model among the bases of a recogniser, with the size of its features."""

    made_for = ("recognition",)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> Any:
        """The language model and its heads.  Raises ValueError as the language model does."""
        model = super().build_model(cfg, task)
        terminals = len(task.target_dictionary) - task.target_dictionary.nspecial
        model.recognition_head = nn.Linear(model.feature_size, 1)
        model.next_symbol_head = nn.Linear(model.feature_size, terminals + 1) if task.cfg.next_symbols else None
        for head in filter(None, (model.recognition_head, model.next_symbol_head)):
            nn.init.xavier_uniform_(head.weight)
            nn.init.zeros_(head.bias)
        return model

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor, members: Optional[Tensor] = None, **_: Any
    ) -> Tuple[Tensor, Optional[Tensor], Optional[Tensor]]:
        """Logits B of membership; of the P members those of the next symbol, P T N, over the dictionary, and of what
        may come next, P T (V+1), the end last, or None without the head; both None where `members` is.

        src_tokens: B T, BOS and the string, padded on the right.  src_lengths: B, BOS counted.  members: B bool.
        """
        features, _ = self.decoder(src_tokens, features_only=True)
        rows = torch.arange(len(features), device=features.device)
        logits = self.recognition_head(features[rows, src_lengths - 1]).squeeze(1)
        if members is None:
            return logits, None, None
        features = features[members]
        following = None if self.next_symbol_head is None else self.next_symbol_head(features)
        return logits, self.decoder.output_layer(features), following


@register_model("transformer_recognizer", dataclass=StructuredTransformerLanguageModelConfig)
class TransformerRecognizer(RecognizerHeads, StructuredTransformerLanguageModel):
    """A causal transformer with any attention that says whether a string is a member of a language."""

    feature_size = property(attrgetter("decoder.output_embed_dim"))


@register_model("recurrent_recognizer", dataclass=RecurrentLanguageModelConfig)
class RecurrentRecognizer(RecognizerHeads, RecurrentLanguageModel):
    """Layers of RNNs, LSTMs or rational recurrences that say whether a string is a member of a language."""

    feature_size = property(attrgetter("decoder.embed_tokens.embedding_dim"))


@register_model("stack_lstm_recognizer", dataclass=StackLSTMLanguageModelConfig)
class StackLSTMRecognizer(RecognizerHeads, StackLSTMLanguageModel):
    """An LSTM, alone or with a stack, that says whether a string is a member of a language."""

    feature_size = property(attrgetter("decoder.lstm.hidden_size"))


preset("transformer_recognizer", "transformer_recognizer_flare",
       "Butoi et al. 2025, 64k parameters: 5 layers of size 32, normed before, 8 heads, inner size 128, dropout 0.1.",
       decoder_layers=5, decoder_embed_dim=32, decoder_ffn_embed_dim=128, decoder_attention_heads=8, dropout=0.1,
       attention_dropout=0.1, activation_dropout=0.1, interleaved_positions=True, compact_vocabulary=True,
       initialization="uniform", initialization_bound=0.1)
preset("recurrent_recognizer", "recurrent_recognizer_rnn_flare",
       "Butoi et al. 2025, 64k parameters: 5 tanh layers of 79.",
       cell="RNN", decoder_layers=5, hidden_size=79, dropout=0.1, variational_dropout=0.1)
preset("recurrent_recognizer", "recurrent_recognizer_lstm_flare",
       "Butoi et al. 2025, 64k parameters: 5 LSTM layers of 40.",
       cell="LSTM", decoder_layers=5, hidden_size=40, dropout=0.1, variational_dropout=0.1)
preset("stack_lstm_recognizer", "stack_lstm_recognizer_sup",
       "64k parameters: an LSTM of 117 with a superposition stack.",
       hidden_size=117, stack=SUPERPOSITION, initialization_bound=0.1)
preset("stack_lstm_recognizer", "stack_lstm_recognizer_nd",
       "64k parameters: an LSTM of 100 with a nondeterministic stack.",
       hidden_size=100, stack=NONDETERMINISTIC, initialization_bound=0.1)
