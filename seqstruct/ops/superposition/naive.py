"""The superposition stack of Joulin and Mikolov (2015), as DuSell and Chiang (2024), section 3.2.1, use it.

With row 0 the top of the stack V, rows outside the stack 0, and `push`, `pop`, `noop` the probabilities of step t,

    V_t[0] = push * v_t        + noop * V_{t-1}[0] + pop * V_{t-1}[1]
    V_t[i] = push * V_{t-1}[i-1] + noop * V_{t-1}[i] + pop * V_{t-1}[i+1]        i >= 1

and the reading of step t is V_t[0], after the update.  There is no bottom vector: popping the empty stack leaves it
empty.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqstruct.ops.opaque import opaque

ACTIONS = 3  # push, pop, no-op


def superposition_stack_step(stack: Tensor, actions: Tensor, pushed: Tensor) -> Tensor:
    """The stack after one step; its row 0 is the reading.

    stack: B h m, row 0 the top; actions: B 3, probabilities of push, pop and no-op; pushed: B m.
    Returns the stack B (h + 1) m, a new tensor.  Differentiable.  Raises ValueError if the shapes do not fit.
    Cost: O(B h m) time.
    """
    check_shapes(actions, pushed, stack, steps=False)
    push, pop, noop = actions[:, :, None, None].unbind(1)  # B 1 1 each
    below = torch.cat([pushed.unsqueeze(1), stack], 1)  # B h+1 m
    moved = torch.cat([stack, stack.new_zeros(stack.size(0), 2, stack.size(2))], 1)  # B h+2 m
    return push * below + noop * moved[:, :-1] + pop * moved[:, 1:]


def naive_stack(actions: Tensor, pushed: Tensor, stack: Tensor) -> tuple[Tensor, Tensor]:
    """Readings B T m after each of T steps, 1 or more, and the stack B h+T m after all; see `superposition_stack`."""
    readings = []
    for step in zip(actions.unbind(1), pushed.unbind(1), strict=True):
        stack = superposition_stack_step(stack, *step)
        readings.append(stack[:, 0])
    return torch.stack(readings, 1), stack


@opaque(lambda actions, pushed, stack: stack.new_empty(*pushed.shape[:2], *stack.shape[1:]))
def bounded_stacks(actions: Tensor, pushed: Tensor, stack: Tensor) -> Tensor:
    """The whole stacks B T h m after each of T steps, of the height h of the first one; what is pushed beyond is lost.

    actions: B T 3, probabilities of push, pop and no-op; pushed: B T m; stack: B h m, row 0 the top.
    Raises ValueError if the shapes do not fit.  Differentiable.  O(B T h m) time and memory, one step after the other.
    """
    check_shapes(actions, pushed, stack, steps=True)
    stacks = []
    for a, v in zip(actions.unbind(1), pushed.unbind(1), strict=True):
        stack = superposition_stack_step(stack, a, v)[:, :-1]
        stacks.append(stack)
    return torch.stack(stacks, 1) if stacks else pushed.new_zeros(len(pushed), 0, *stack.shape[1:])


def no_op(like: Tensor) -> Tensor:
    """The actions (3) that leave a stack as it is, of the type and on the device of `like`."""
    return (torch.arange(ACTIONS, device=like.device) == ACTIONS - 1).to(like.dtype)


def check_shapes(actions: Tensor, pushed: Tensor, stack: Tensor | None, steps: bool) -> None:
    """Raises ValueError if the shapes do not fit; steps: whether there is an axis T."""
    axes = "B T" if steps else "B"
    if pushed.dim() != 2 + steps or actions.shape != (*pushed.shape[:-1], ACTIONS):
        raise ValueError(
            f"expected actions {axes} 3 and pushed {axes} m, got {tuple(actions.shape)} and {tuple(pushed.shape)}"
        )
    if stack is not None and (stack.dim() != 3 or stack[:, 0:0].shape != (pushed.size(0), 0, pushed.size(-1))):
        raise ValueError(
            f"expected a stack {pushed.size(0)} h {pushed.size(-1)} to fit the pushed vectors, got {tuple(stack.shape)}"
        )


def heights_of(start: int, steps: int, truncate: bool) -> list[int]:
    """Rows of the stack that are computed after t = 0 .. T steps."""
    full = [start + t for t in range(steps + 1)]
    return [min(h, steps + 1 - t) for t, h in enumerate(full)] if truncate else full


def rows_of(start: int, steps: int, truncate: bool) -> int:
    """The sum of all `heights_of` but the last, in numbers that may be symbols."""
    if not truncate:
        return steps * start + steps * (steps - 1) // 2
    grows = torch.sym_max(0, torch.sym_min(steps, (steps + 3 - start) // 2))  # steps up to the greatest height
    return grows * start + grows * (grows - 1) // 2 + (steps + 1 - grows) * (steps + 2 - grows) // 2 - 1
