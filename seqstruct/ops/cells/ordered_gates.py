"""Gates from syntactic distances (Shen et al. 2018a, PRPN, eq. 3 to 5): how far back a word looks.

    alpha_j^t = (hardtanh((d_t - d_j) tau) + 1) / 2
    g_i^t     = prod_{j=i+1}^{t-1} alpha_j^t,   1 for i = t - 1

d_j is the distance between the words j - 1 and j; tau is an inverse temperature.  A word before one of greater
distance than d_t is out of reach.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from seqstruct.ops.softmax import masked_softmax


def distance_gates(distance: Tensor, past: Tensor, inverse_temperature: float) -> Tensor:
    """Gates g of the S words before a step.

    distance: ..., of the step, d_t; past: ... S, of the words before it, d_{t-S} .. d_{t-1}.
    Returns ... S, within 0 and 1.  O(S) for each step.
    """
    alphas = (F.hardtanh((distance.unsqueeze(-1) - past) * inverse_temperature) + 1) / 2
    following = F.pad(alphas[..., 1:], (0, 1), value=1.0)
    return following.flip(-1).cumprod(-1).flip(-1)


def gated_attention(gates: Tensor, scores: Tensor, there: Tensor) -> Tensor:
    """Weights g_i / sum_j g_j times softmax(scores)_i (Shen et al. 2018a, eq. 12), ... S.

    there: bool, False where no word is; such words, and rows without any, have weight 0.
    """
    gates = gates * there
    total = gates.sum(-1, keepdim=True).masked_fill(~there.any(-1, keepdim=True), 1.0)
    return gates * masked_softmax(scores, ~there) / total
