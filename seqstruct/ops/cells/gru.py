"""One step of a gated recurrent unit (Cho et al. 2014, sec. 2.3).

    r = sigmoid(x_r + h_r),  z = sigmoid(x_z + h_z),  n = tanh(x_n + r h_n);  h_t = z h_{t-1} + (1 - z) n

x and h are what input and state add to the gates, in the order of torch: reset, update, candidate.  The reset gate is
applied after the recurrent product, as in the decoder of the source (appendix A.1.2) and in torch; the source's encoder
applies it before.
"""

from __future__ import annotations

import torch
from torch import Tensor


def gru_step(input_gates: Tensor, hidden_gates: Tensor, hidden: Tensor) -> Tensor:
    """Hidden state B h after one step.

    input_gates, hidden_gates: B 3h, what input and state before the step add to the gates; hidden: B h, before the
    step.  Raises ValueError if the shapes do not fit.
    """
    size = hidden.size(-1)
    gates = hidden.size(0), 3 * size
    if hidden.dim() != 2 or input_gates.shape != gates or hidden_gates.shape != gates:
        shapes = tuple(input_gates.shape), tuple(hidden_gates.shape), tuple(hidden.shape)
        raise ValueError("expected gates B 3h, gates B 3h and a state B h, got {}, {} and {}".format(*shapes))
    (given, of_input), (kept, of_hidden) = (x.split([2 * size, size], 1) for x in (input_gates, hidden_gates))
    reset, update = (given + kept).sigmoid_().chunk(2, 1)
    of_hidden = of_hidden.clone()  # kept for the backward pass, which would keep all of hidden_gates for a part of it
    candidate = torch.addcmul(of_input, reset, of_hidden).tanh_()
    return torch.lerp(candidate, hidden, update)
