"""Rational recurrences (Peng 2022, section 6) behind the signature of torch's recurrent networks."""

from __future__ import annotations

from torch import Tensor, nn

from seqstruct.layers.rational import stack_of
from seqstruct.ops.automata import PATTERNS


class RRNN(nn.Module):
    """Layers of hidden states that weighted automata compute, left to right.

    automaton: "B" (two states; a gated sum of inputs, as in SRU and T-LM), "B_max_plus", "C" (three states in a row) or
    "F" (C with an epsilon arc and final weights); `seqstruct.ops.automata` has the equations.
    """

    def __init__(
        self,
        automaton: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        output_gate: bool = True,
        dropout: float = 0.0,
    ):
        """output_gate: whether hidden states are gated by the input.  dropout: of what goes from layer to layer.

        Raises ValueError on an unknown automaton, a size below 1 or a rate outside 0 <= p < 1.
        """
        super().__init__()
        self.input_size = input_size
        if automaton not in PATTERNS:  # `stack_of` makes others too, which torch has
            raise ValueError(f"automaton: expected one of {', '.join(PATTERNS)}, got {automaton!r}")
        self.stack = stack_of(automaton, num_layers, input_size, hidden_size, output_gate=output_gate, dropout=dropout)

    def initial_state(self, batch_size: int) -> tuple[Tensor, ...]:
        """Of each layer, before the first token."""
        return self.stack.initial_state(batch_size)

    def forward(self, x: Tensor, state: tuple[Tensor, ...] | None = None) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Hidden states B T hidden_size of the last layer for x B T input_size, and the state after the last token.

        state: to go on from; None for the initial one.  Padding on the right reaches nothing before it.
        Raises ValueError on other shapes, and on a state of another network.
        """
        layers = len(self.stack.layers)
        if x.dim() != 3 or x.size(2) != self.input_size:
            raise ValueError(f"expected inputs B T {self.input_size}, got {tuple(x.shape)}")
        if state is not None and len(state) != layers:
            raise ValueError(f"expected a state of {layers} layers, got one of {len(state)}")
        hidden, after, _ = self.stack(x, self.initial_state(x.size(0)) if state is None else state)
        return hidden, after
