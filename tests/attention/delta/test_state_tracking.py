"""What trained memories track beyond the lengths they were trained at: parity, and permutations of three elements."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqstruct.attention import Shape, Site, get_attention, make_config

pytestmark = [pytest.mark.slow, pytest.mark.training]


class OneLayer(nn.Module):
    """A mechanism between an embedding and scores of the state after each letter."""

    def __init__(self, name: str, options: dict[str, Any], letters: int, states: int, size: int):
        super().__init__()
        self.embedding = nn.Embedding(letters, size)
        self.attention = get_attention(name)(make_config(name, options), Shape.of(Site.DECODER_SELF, size, 2))
        self.output = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, states))

    def forward(self, letters: Tensor) -> Tensor:
        x = self.embedding(letters)
        return self.output(x + self.attention(x, x, x)[0].output)


def words(table: Tensor, batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random letters B T, and the state after each, from state 0; table[letter, state] is the next one."""
    letters = torch.randint(len(table), (batch, length), generator=generator)
    state, states = torch.zeros(batch, dtype=torch.long), []
    for t in range(length):
        state = table[letters[:, t], state]
        states.append(state)
    return letters, torch.stack(states, 1)


def accuracy_beyond(name: str, table: Tensor, size: int, rate: float, steps: int, length: int, **options: Any) -> float:
    """Share of right states at lengths from `length` to four times that, after a training at `length`."""
    generator = torch.Generator().manual_seed(1)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = OneLayer(name, options, *table.shape, size)
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, 2 * (steps - step) / steps))
    for _ in range(steps):
        letters, states = words(table, 32, length, generator)
        optimizer.zero_grad()
        F.cross_entropy(model(letters).flatten(0, 1), states.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        letters, states = words(table, 200, 4 * length, generator)
        return (model(letters).argmax(-1) == states)[:, length:].double().mean().item()


def test_parity_needs_negative_eigenvalues() -> None:
    table = torch.tensor([[0, 1], [1, 0]])
    recipe = dict(size=32, rate=3e-3, steps=600, length=40)
    assert accuracy_beyond("delta", table, negative_eigenvalues=True, **recipe) > 0.8
    assert accuracy_beyond("delta", table, **recipe) < 0.6


def test_permutations_of_three_need_two_steps() -> None:
    permutations = list(itertools.permutations(range(3)))
    number = {permutation: i for i, permutation in enumerate(permutations)}
    table = torch.tensor([[number[tuple(a[i] for i in b)] for b in permutations] for a in permutations])
    recipe = dict(size=64, rate=5e-3, steps=2500, length=12, negative_eigenvalues=True)
    assert accuracy_beyond("delta_product", table, **recipe) > 0.8
    assert accuracy_beyond("delta", table, **recipe) < 0.6
