"""All dependency trees of a few words, by trying all heads."""

from __future__ import annotations

import itertools
from functools import lru_cache

import torch


def is_tree(heads):
    """Whether all words 1 .. n reach the root 0; heads[m - 1] is the head of word m."""
    for word in range(1, len(heads) + 1):
        seen = set()
        while word:
            if word in seen:
                return False
            seen.add(word)
            word = heads[word - 1]
    return True


def is_projective(heads):
    """Whether no two arcs cross, the root standing in front of the words."""
    spans = [tuple(sorted((head, word))) for word, head in enumerate(heads, 1)]
    return not any(a < c < b < d for (a, b), (c, d) in itertools.permutations(spans, 2))


@lru_cache
def all_trees(n, projective, single_root):
    """P n long, heads."""
    trees = [
        heads
        for heads in itertools.product(range(n + 1), repeat=n)
        if is_tree(heads) and (not projective or is_projective(heads)) and (not single_root or heads.count(0) == 1)
    ]
    return torch.tensor(trees, dtype=torch.long).view(-1, n)


def scores_of(trees, arcs):
    """P, scores of trees P n under arcs n+1 n+1."""
    return arcs[trees, torch.arange(1, trees.size(1) + 1)].sum(1)


def indicators(trees):
    """P n+1 n+1."""
    P, n = trees.shape
    result = torch.zeros(P, n + 1, n + 1, dtype=torch.float64)
    if n:
        result[torch.arange(P)[:, None], trees, torch.arange(1, n + 1)] = 1.0
    return result


def draw_arcs(generator, B, n, spread=1.0, dtype=torch.float64):
    return spread * torch.randn(B, n + 1, n + 1, generator=generator, dtype=dtype)


def padding(lengths, n, left):
    """Mask B n, and per row the positions in the matrix of arcs that are real, the root's first."""
    position, ends = torch.arange(n), torch.tensor(lengths).unsqueeze(1)
    mask = (position < n - ends) if left else (position >= ends)
    first = [n - length if left else 0 for length in lengths]
    return mask, [torch.tensor([0, *range(f + 1, f + length + 1)]) for f, length in zip(first, lengths, strict=True)]
