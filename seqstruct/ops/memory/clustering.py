"""Clusters of vectors: Lloyd's rounds of k-means (Vyas et al. 2020, sec. 3.2.2, cluster so, though binary codes)."""

from __future__ import annotations

import torch
from torch import Tensor


def k_means(points: Tensor, clusters: int, rounds: int, padding: Tensor | None = None) -> Tensor:
    """B H S long: the cluster, from 0, of each point B H S D, by Euclidean distance; without gradient.

    The first centres are the points at equal steps through the sequence; a cluster that loses all its points keeps its
    centre.  padding: B S bool, True = padding, whose cluster is of no account, or None.
    Float32 at least.  O(rounds S N D) time and O(S N) memory for N clusters.
    """
    points = points.detach().to(torch.promote_types(points.dtype, torch.float32))
    batch, heads, length, dim = points.shape
    if length == 0:
        return torch.zeros(batch, heads, 0, dtype=torch.long, device=points.device)
    if padding is None:
        padding = torch.zeros(batch, length, dtype=torch.bool, device=points.device)
    real = (~padding)[:, None, :, None].to(points.dtype)  # B 1 S 1
    count = (~padding).sum(1, keepdim=True)
    # Distances are differences of squares: a common offset would cost them their digits.
    points = (points - (points * real).sum(2, keepdim=True) / real.sum(2, keepdim=True).clamp(min=1)) * real
    first = padding.long().argsort(dim=1, stable=True)  # B S, tokens first
    first = first.gather(1, torch.arange(clusters, device=points.device) * count // clusters)  # B N
    centres = points.gather(2, first[:, None, :, None].expand(-1, heads, -1, dim))
    index = torch.arange(clusters, device=points.device)
    for _ in range(rounds):
        members = (_nearest(points, centres).unsqueeze(-1) == index).to(points.dtype) * real  # B H S N
        sizes = members.sum(2).unsqueeze(-1)  # B H N 1
        centres = torch.where(sizes > 0, members.transpose(2, 3) @ points / sizes.clamp(min=1), centres)
    return _nearest(points, centres)


def _nearest(points: Tensor, centres: Tensor) -> Tensor:
    """B H S long: the centre, of B H N D, that is next to each point; the first of several."""
    return (centres.square().sum(-1).unsqueeze(2) - 2 * points @ centres.transpose(2, 3)).argmin(-1)
