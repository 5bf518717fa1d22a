"""From a decoder's state to the features that the vocabulary's layer reads."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class AttentionalOutput(nn.Module):
    """tanh(U [context; hidden]), without bias (Luong et al. 2015, eq. 5; Kim et al. 2017, appendix A.3)."""

    def __init__(self, hidden_size: int, context_size: int):
        super().__init__()
        self.size = hidden_size
        self.combination = nn.Linear(context_size + hidden_size, hidden_size, bias=False)

    def forward(self, context: Tensor, hidden: Tensor, embedded: Tensor) -> Tensor:
        """... h from context ... c and hidden ... h; the embedded symbol is not looked at."""
        return self.combination(torch.cat([context, hidden], -1)).tanh()


class MaxoutOutput(nn.Module):
    """The greater of each two numbers of a linear map of context, hidden state and the symbol before (Cho et al. 2014,
    appendix A.1.2; Bahdanau et al. 2015, appendix A.2.2).
    """

    def __init__(self, hidden_size: int, context_size: int, embed_dim: int, size: int):
        """size: of the result.  Raises ValueError if it is below 1."""
        super().__init__()
        if size < 1:
            raise ValueError(f"expected a maxout size of 1 or more, got {size}")
        self.size = size
        self.combination = nn.Linear(context_size + hidden_size + embed_dim, 2 * size)

    def forward(self, context: Tensor, hidden: Tensor, embedded: Tensor) -> Tensor:
        """... m from context ... c, hidden ... h and embedded ... e."""
        pairs = self.combination(torch.cat([context, hidden, embedded], -1))
        return pairs.unflatten(-1, (self.size, 2)).amax(-1)


class PlainOutput(nn.Module):
    """The hidden state itself (Sutskever et al. 2014), beside the context where there is one (Wu et al. 2016)."""

    def __init__(self, hidden_size: int, context_size: int):
        super().__init__()
        self.size = hidden_size + context_size

    def forward(self, context: Tensor, hidden: Tensor, embedded: Tensor) -> Tensor:
        """Hidden state and context side by side, ... (h + c)."""
        return torch.cat([hidden, context], -1) if context.size(-1) else hidden


OUTPUTS = {"attentional": AttentionalOutput, "maxout": MaxoutOutput, "plain": PlainOutput}
