"""Bounds on what flows through LSTM layers, so that 8 bits lose little (Wu et al. 2016, sec. 6, eq. 10 to 12).

With a bound d, in layer i and step t:

    c'_t, m_t = LSTM_i(c_{t-1}, m_{t-1}, x_t^{i-1}),   c_t = clip(c'_t, d),   x_t^i = clip(m_t + x_t^{i-1}, d)

where layers without residual connection have x_t^i = clip(m_t, d).  In the source d falls from 8 to 1 in training and
is 1 afterwards; when it falls is not published.  Here it falls linearly.  Deviation: m_t is the gated tanh of c'_t, as
in all LSTMs of this package, where the source writes the gated c'_t itself.
"""

from __future__ import annotations

from torch import Tensor, nn


class Clipping(nn.Module):
    """Clips to [-d, d] for the d of the number of updates so far, in evaluation for the last one."""

    def __init__(self, start: float, final: float = 0.0, updates: int = 0):
        """start: d before the first update.  final: d after `updates` updates; 0 and 0 for a constant d.

        Raises ValueError on a start that is not positive, and where final and updates do not go together.
        """
        super().__init__()
        if start <= 0 or final < 0 or updates < 0:
            raise ValueError(f"clipping: expected bounds above 0, got {start} and {final} over {updates} updates")
        if (final > 0) != (updates > 0):
            raise ValueError(f"clipping: a final bound and the updates to it go together, got {final} and {updates}")
        self.start, self.final, self.updates = start, final or start, updates
        self.num_updates = 0

    def set_num_updates(self, num_updates: int) -> None:
        """The number of updates made so far, as fairseq's trainer tells it."""
        self.num_updates = num_updates

    @property
    def bound(self) -> float:
        """d, the largest absolute value at this update."""
        if not self.training or not self.updates:
            return self.final
        done = min(self.num_updates / self.updates, 1.0)
        return self.start + (self.final - self.start) * done

    def forward(self, x: Tensor) -> Tensor:
        """x, of any shape, between -d and d."""
        return x.clamp(-self.bound, self.bound)
