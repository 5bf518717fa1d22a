"""The weights of a query are the marginals of the last step of an alignment, of the distribution and by enumeration."""

from __future__ import annotations

import itertools

import torch

from seqstruct.attention import Shape, Site
from seqstruct.attention.alignment.alignment_crf import AlignmentCRFAttention
from seqstruct.distributions import Alignment

INF = float("inf")


def test_weights_are_marginals_of_alignments(generator):
    T, S = 4, 5
    attention = AlignmentCRFAttention(AlignmentCRFAttention.Config(), Shape.of(Site.CROSS, 6, memory_dim=3)).double()
    query, key = (torch.randn(1, n, m, generator=generator, dtype=torch.float64) for n, m in ((T, 6), (S, 3)))
    weights = attention(query, key, torch.randn(1, S, 3, generator=generator).double(), need_weights=True)[0].weights
    logits = attention.stop(key)[0, :, 0]
    stop, onward = logits.sigmoid().log(), (-logits).sigmoid().log()
    scores = (query @ attention.score.key_proj(key).transpose(1, 2))[0]
    for t in range(T):
        potentials = torch.full((t + 2, S, 3), -INF, dtype=torch.float64)
        potentials[1:, :, 0], potentials[:, 1:, 2] = stop, onward[:-1]
        potentials[t + 1, :, 0], potentials[t + 1, 1:, 2] = scores[t], 0.0  # the last query; what is left costs nothing
        marginals = Alignment(potentials, kind="edit").marginals()[t + 1, :, 0]
        torch.testing.assert_close(weights[0, 0, t], marginals)
        counted = torch.zeros(S, dtype=torch.float64)
        for path in itertools.combinations_with_replacement(range(S), t + 1):
            passed = sum(onward[a:b].sum() for a, b in itertools.pairwise((0, *path)))
            counted[path[-1]] += (passed + stop[list(path[:-1])].sum() + scores[t, path[-1]]).exp()
        torch.testing.assert_close(weights[0, 0, t], counted / counted.sum())


def test_keys_that_stop_all_are_read_from_the_first_on(generator):
    """With p(stop) = 1 the prior stays at the first key; with small ones it has gone on."""
    attention = AlignmentCRFAttention(AlignmentCRFAttention.Config(), Shape.of(Site.CROSS, 6)).double()
    key = torch.randn(2, 7, 6, generator=generator, dtype=torch.float64)
    for bias, place in ((40.0, 0), (-2.0, 6)):
        with torch.no_grad():
            attention.stop.weight.zero_()
            attention.stop.bias.fill_(bias)
        state = attention.write(attention.initial_state(2), key, key)
        assert (attention.prior(state, 5)[:, 4].argmax(1) == place).all()
