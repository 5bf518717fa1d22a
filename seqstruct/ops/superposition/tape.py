"""The superposition stack within a recurrent network: all steps of a sequence of known length, and back.

The recurrences and the buffer are those of `superposition.stack`; rows that no reading can reach are left out.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from seqstruct.ops.compiled import usable
from seqstruct.ops.superposition.compiled import STEP, STEP_BACKWARD
from seqstruct.ops.superposition.naive import ACTIONS, heights_of
from seqstruct.ops.superposition.stack import blend

CPU = torch.device("cpu")


@lru_cache(maxsize=64)
@torch.inference_mode(False)  # what is cached may be used in training later
def control_order(size: int, device: torch.device = CPU) -> Tensor:
    """Which of the controls, push, pop, no-op and m numbers to push, stands where in those of a tape, 3+m long."""
    return torch.tensor([0, 2, 1, *range(ACTIONS, ACTIONS + size)], device=device)


class SuperpositionTape:
    """A `StackTape`; readings B m, controls B 3+m: push, no-op, pop before their softmax, and the vector to push.

    O(B T (h + T) m) time and memory.
    """

    def __init__(self, start: Tensor, steps: int, *, sigmoid: bool):
        """start: B h m, the stack to go on from, row 0 the top; sigmoid: whether pushed vectors are squashed."""
        B, height, self.reading_size = start.shape
        self.sigmoid, self.length, self.start = sigmoid, 0, start.shape
        self.heights = heights_of(height, steps, truncate=True)
        self.buffer = start.new_zeros(steps + 1, B, max(self.heights) + 3, self.reading_size)
        self.buffer[0, :, 1 : self.heights[0] + 1] = start[:, : self.heights[0]]
        self.slabs, self.pushed, self.tops = self.buffer.unbind(0), *(self.buffer[:, :, i].unbind(0) for i in (0, 1))
        self.all_weights = start.new_empty(steps, B, ACTIONS)
        self.weights = self.all_weights.unbind(0)
        self.compiled = usable(start)
        self.mixtures = [step.unbind(1) for step in self.all_weights[..., None, None].unbind(0)]

    def first_reading(self, reading: Tensor) -> None:
        """The top, zeros if the stack is empty."""
        reading.copy_(self.tops[0])

    def step(self, controls: Tensor, reading: Tensor) -> None:
        """Mix the last stack, moved by each action."""
        now = self.length
        if self.compiled:
            slabs = self.slabs[now], self.weights[now], self.slabs[now + 1]
            STEP.call(*self.heights[now : now + 2], self.sigmoid, controls, *slabs, reading)
            self.length = now + 1
            return
        actions, pushed = controls.split([ACTIONS, self.reading_size], 1)
        torch.softmax(actions, 1, out=self.weights[now])
        if self.sigmoid:
            torch.sigmoid(pushed, out=self.pushed[now])
        else:
            self.pushed[now].copy_(pushed)
        blend(self.slabs[now], self.mixtures[now], self.slabs[now + 1].narrow(1, 1, self.heights[now + 1]))
        reading.copy_(self.tops[now + 1])
        self.length = now + 1

    def in_range(self) -> None:
        """Numbers of any size are in range."""

    def begin_backward(self) -> None:
        """Adjoints lie in slabs [0, 0, dV_t, 0] and go the other way."""
        self.length = len(self.weights)
        adjoint = torch.zeros_like(self.buffer)
        pushed = self.buffer[:-1, :, 0]
        slopes = pushed * (1 - pushed) if self.sigmoid else torch.ones_like(pushed)
        self.slopes = (slopes * self.all_weights[..., :1]).unbind(0)
        self.adjoints, self.d_tops = adjoint.unbind(0), adjoint[:, :, 2].unbind(0)

    def step_backward(self, grad_reading: Tensor, grad_controls: Tensor) -> None:
        """The adjoint of the stack after a step gives those of the step's controls and of the stack before it."""
        now = self.length = self.length - 1
        if self.compiled:
            known = grad_reading, self.slabs[now], self.weights[now], self.slopes[now]
            adjoints = self.adjoints[now + 1], self.adjoints[now]
            STEP_BACKWARD.call(*self.heights[now : now + 2], *known, *adjoints, grad_controls)
            return
        d_actions, d_pushed = grad_controls.split([ACTIONS, self.reading_size], 1)
        top, height = self.d_tops[now + 1].add_(grad_reading), self.heights[now + 1]
        changes = self.adjoints[now + 1].narrow(1, 2, height)
        stacks = (self.slabs[now].narrow(1, i, height) for i in range(ACTIONS))
        shares = torch.stack([(changes * stack).sum((1, 2)) for stack in stacks], 1).mul_(self.weights[now])
        torch.addcmul(shares, self.weights[now], shares.sum(1, keepdim=True), value=-1, out=d_actions)
        torch.mul(top, self.slopes[now], out=d_pushed)
        if self.heights[now]:
            later = self.adjoints[now + 1].narrow(1, 1, self.adjoints[0].size(1) - 1)
            blend(later, self.mixtures[now][::-1], self.adjoints[now].narrow(1, 2, self.heights[now]))

    def start_gradient(self, grad_reading: Tensor) -> Tensor:
        """Of the stack to start from, B h m."""
        grad = grad_reading.new_zeros(self.start)
        grad[:, : self.heights[0]] = self.adjoints[0].narrow(1, 2, self.heights[0])
        grad[:, :1] += grad_reading.unsqueeze(1)
        return grad
