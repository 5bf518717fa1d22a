"""Windows in blocks against the reference numbers and against masks written out."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from seqstruct.ops.memory.window import LEAST_BLOCK, ring_positions, ring_unrolled, ring_write, window_attention
from tests.ops.memory.test_linear_attention import load


@pytest.mark.parametrize("empty", [True, False])
@pytest.mark.parametrize("name", ["sliding_window", "dilated_window"])
def test_windows_are_the_reference(name: str, empty: bool, golden) -> None:
    case = load(golden, f"abc_{name}")
    leaves = [case[x].clone().requires_grad_() for x in "qkv"]
    window, dilation = int(case["window"]), int(case["dilation"])
    reach = (window - 1) * dilation
    there = F.pad(torch.full((2, reach), empty), (0, leaves[0].size(2)), value=True)
    key, value = (F.pad(x, (0, 0, reach, 0)) for x in leaves[1:])
    output = window_attention(leaves[0], key, value, window, dilation, there)
    wanted = case["out_all_slots" if empty else "out_written_slots_only"]
    torch.testing.assert_close(output, wanted, rtol=0, atol=1e-9)
    if not empty:
        for x, gradient in zip("qkv", torch.autograd.grad((output * case["w"]).sum(), leaves), strict=True):
            torch.testing.assert_close(gradient, case[f"grad_{x}_written"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("length", [1, 5, 3 * LEAST_BLOCK + 3, 7 * LEAST_BLOCK + 3])
@pytest.mark.parametrize("window, dilation", [(1, 1), (3, 1), (3, 4), (40, 1), (1, 3)])
def test_blocks_are_a_band(length: int, window: int, dilation: int, generator: torch.Generator) -> None:
    reach = (window - 1) * dilation
    query = torch.randn(2, 3, length, 5, generator=generator, dtype=torch.float64)
    key, value = (torch.randn(2, 3, reach + length, 5, generator=generator, dtype=torch.float64) for _ in range(2))
    there = torch.rand(2, reach + length, generator=generator) < 0.5
    output = window_attention(query, key, value, window, dilation, there)
    ages = reach + torch.arange(length).unsqueeze(1) - torch.arange(reach + length)
    band = (ages >= 0) & (ages <= reach) & (ages % dilation == 0)
    visible = (band & there.unsqueeze(1)).unsqueeze(1)
    blind = ~visible.any(-1, keepdim=True)
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=visible | blind).masked_fill(blind, 0.0)
    torch.testing.assert_close(output, expected)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("cells", [1, 3, 4])
def test_a_ring_holds_the_last_tokens(cells: int, recorded: bool, generator: torch.Generator) -> None:
    ring, count = torch.zeros(2, 1, cells, 1), torch.zeros(2, dtype=torch.long)
    tokens: list[list[float]] = [[0.0] * cells for _ in range(2)]
    for size in (1, 0, 2, 1, 5, 1, 1):
        new = torch.rand(2, 1, size, 1, generator=generator).requires_grad_(recorded)
        taken = torch.tensor([size, max(0, size - 1)])
        for row in range(2):
            tokens[row] += new[row, 0, : taken[row], 0].tolist()
        ring = ring_write(ring, new, count, count + taken)
        count = count + taken
        unrolled = ring_unrolled(ring, count, cells)[:, 0, :, 0]
        torch.testing.assert_close(unrolled, torch.tensor([row[-cells:] for row in tokens]))
        by_cell = [[row[cells + p] if p >= 0 else 0.0 for p in places] for row, places in
                   zip(tokens, ring_positions(count, cells).tolist(), strict=True)]
        torch.testing.assert_close(ring[:, 0, :, 0], torch.tensor(by_cell))
