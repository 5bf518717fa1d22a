"""Initialisation of Stack Attention, appendix D.2, as the released code does it."""

from __future__ import annotations

from torch import nn

from seqstruct.bridge.adapter import AttentionAdapter
from seqstruct.layers.stack_lstm import SuperpositionController
from seqstruct.layers.vocabulary import TerminalProjection


def initialize_uniform(model: nn.Module, bound: float) -> None:
    """Draw every parameter from U(-bound, bound), with three exceptions.

    * Norms: weight 1, bias 0.
    * The linear layers of a left-to-right mechanism, and the feed-forward layers of the layer it stands in: Xavier
      uniform with the gain of the activation that follows (sqrt 2 before the ReLU, else 1), bias 0.
    * The output layer of a compact vocabulary, and the layers that control the superposition stack of an LSTM: Xavier
      uniform, bias 0.
    Raises ValueError unless bound > 0.
    """
    if bound <= 0:
        raise ValueError(f"the bound of a uniform initialisation is positive, not {bound}")
    for module in model.modules():
        if isinstance(module, (nn.LayerNorm, nn.RMSNorm)):
            nn.init.ones_(module.weight)
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)
        else:
            for parameter in module.parameters(recurse=False):
                nn.init.uniform_(parameter, -bound, bound)
    for module in model.modules():
        attention = getattr(module, "self_attn", None)
        if isinstance(attention, AttentionAdapter) and attention.mechanism.unidirectional:
            for linear in attention.mechanism.modules():
                _xavier(linear)
            _xavier(module.fc1, 2**0.5)
            _xavier(module.fc2)
        elif isinstance(module, TerminalProjection):
            _xavier(module)
        elif isinstance(module, SuperpositionController):
            _xavier(module.action_layer)
            _xavier(module.pushed_layer)


def _xavier(module: nn.Module, gain: float = 1.0) -> None:
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight, gain=gain)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
