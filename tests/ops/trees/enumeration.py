"""All dependency trees of a few words, by trying all heads, and all binary trees."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import lru_cache

import torch

from tests.ops.chains.enumeration import masks


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


def below_the_best(trees, arcs):
    """P, scores of trees P n less the greatest, added up as fractions; and the greatest."""
    arcs = arcs.tolist()
    scores = [sum(Fraction(arcs[h][m]) for m, h in enumerate(heads, 1)) for heads in trees.tolist()]
    return torch.tensor([float(x - max(scores)) for x in scores], dtype=torch.float64), float(max(scores))


def entropy_of(scores):
    """Of the distribution in proportion to exp(scores), P, the greatest of them 0, in full precision if one is sure."""
    others = scores.index_fill(0, scores.argmax(), -torch.inf).logsumexp(0)
    log_partition = torch.log1p(others.exp())
    return log_partition - ((scores - log_partition).exp() * scores).sum()


def trees_over(first, last):
    """All trees of the words first .. last, each the list of its spans."""
    if first == last:
        return [[(first, last)]]
    return [
        [(first, last), *left, *right]
        for middle in range(first, last)
        for left in trees_over(first, middle)
        for right in trees_over(middle + 1, last)
    ]


def split_spans(splits):
    """The spans of two words or more of a tree, both ends inclusive."""
    return {(first, last) for first, _, last in splits}


def masked_everywhere(generator, n, mask):
    """Arcs of rows all trees of which carry the mask: into one word, into two; and arcs from the root alone."""
    arcs = draw_arcs(generator, 3, n)
    arcs[0, :, 2] = mask
    arcs[1, :, 1], arcs[1, :, n], arcs[1, n, :] = mask, 2 * mask, mask
    arcs[2, 0] = mask + arcs[2, 0] if abs(mask) < 1e12 else mask
    return arcs


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
    mask = masks(lengths, n, left)
    first = [n - length if left else 0 for length in lengths]
    return mask, [torch.tensor([0, *range(f + 1, f + length + 1)]) for f, length in zip(first, lengths, strict=True)]
