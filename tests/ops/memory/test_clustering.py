"""k-means against Lloyd's rounds written out."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqstruct.ops.memory.clustering import k_means


def lloyd(points: list[Tensor], clusters: int, rounds: int) -> list[int]:
    """The cluster of each point of one row and head."""

    def nearest(point: Tensor) -> int:
        return min(range(clusters), key=lambda j: float((point - centres[j]).square().sum()))

    centres = [points[j * len(points) // clusters] for j in range(clusters)]
    for _ in range(rounds):
        chosen = [nearest(point) for point in points]
        for j in range(clusters):
            own = [point for point, cluster in zip(points, chosen, strict=True) if cluster == j]
            centres[j] = sum(own) / len(own) if own else centres[j]
    return [nearest(point) for point in points]


@pytest.mark.parametrize("rounds", [0, 1, 5])
@pytest.mark.parametrize("clusters", [1, 4, 13])
def test_rounds_are_those_of_lloyd(rounds: int, clusters: int, generator: torch.Generator) -> None:
    """Points of three groups, padding on the left, right and in between; more clusters than tokens too."""
    points = torch.randn(4, 2, 23, 3, generator=generator, dtype=torch.float64)
    points += 4.0 * torch.randint(3, (4, 2, 23, 1), generator=generator)
    padding = torch.zeros(4, 23, dtype=torch.bool)
    padding[0, :6] = padding[1, -6:] = padding[2, ::3] = True
    points[padding[:, None].expand(-1, 2, -1)] = 1e3
    padding[3, 9:] = True
    found = k_means(points, clusters, rounds, padding)
    for row in range(4):
        real = ~padding[row]
        for head in range(2):
            assert found[row, head, real].tolist() == lloyd(list(points[row, head, real]), clusters, rounds)


def test_points_of_separate_groups_fall_into_them(generator: torch.Generator) -> None:
    group = torch.arange(40) * 7 // 5 % 4
    points = 10.0 * group[:, None] * torch.ones(2) + torch.randn(40, 2, generator=generator)
    found = k_means(points.view(1, 1, 40, 2), 4, 10)[0, 0]
    assert all(len(set(found[group == g].tolist())) == 1 for g in range(4)) and len(set(found.tolist())) == 4


def test_an_offset_costs_no_digits(generator: torch.Generator) -> None:
    points = torch.randn(2, 3, 50, 4, generator=generator, dtype=torch.float64)
    offset = (points + 1e4).float()
    assert torch.equal(k_means(offset, 5, 4), k_means(offset.double(), 5, 4))
    assert k_means(points[:, :, :0], 5, 4).shape == (2, 3, 0)
