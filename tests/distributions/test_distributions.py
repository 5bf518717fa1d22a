"""Every distribution against all its structures, in every operation."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from tests.distributions.structures import FAMILIES, INF

CLOSE = {"rtol": 1e-9, "atol": 1e-9}
of_each = pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))


def drawer(seed=1, spread=1.0, holes=0.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        found = spread * torch.randn(*shape, generator=generator, dtype=dtype)
        return found.masked_fill(torch.rand(shape, generator=generator) < holes, -INF)

    return draw


DRAWERS = {  # seed, spread, share of -inf
    "ordinary": (1, 1.0, 0.0),
    "others": (2, 2.0, 0.0),
    "holes": (3, 1.0, 0.3),
    "great": (4, 1e4, 0.0),
    "enormous": (5, 1e30, 0.2),
    "nothing": (6, 1.0, 1.0),
}
of_potentials = pytest.mark.parametrize("draw", DRAWERS)


def drawn(family, draw, count=1, most=9):
    draws, lengths = drawer(*DRAWERS[draw]), tuple(min(most, n) for n in family.lengths)
    found = [family.make(draws, lengths, (len(lengths),)) for _ in range(count)]
    return found if count > 1 else found[0]


def as_parts(event):
    return event if isinstance(event, tuple) else (event,)


def score(distribution, row, events):
    """P, of the structures of a row."""
    total = 0.0
    for x, own in zip(events, distribution.potentials, strict=True):
        terms = torch.where(x > 0, own[row].double(), 0.0)
        total = total + terms.flatten(1).sum(1)
    return total


def truth(family, distribution, row):
    """Structures, scores, log-partition and probabilities."""
    events = family.all(distribution, row)
    scores = score(distribution, row, events)
    log_partition = scores.logsumexp(0) if len(scores) else torch.tensor(-INF, dtype=torch.float64)
    best = scores.max() if len(scores) else log_partition
    shares = (scores - best).softmax(0) if best > -INF else torch.zeros_like(scores)
    return events, scores, log_partition, shares


def rounding(*scores):
    """What is lost in sums of numbers as great as these."""
    return 1e-15 * sum(x.masked_fill(x == -INF, 0.0).abs().amax().item() for x in scores)


def expectation(shares, events):
    return torch.tensordot(shares, events, 1)


@of_each
@of_potentials
def test_sums(family, draw):
    p = drawn(family, draw)
    marginals, entropy = as_parts(p.marginals()), p.entropy()
    for row in range(len(family.lengths)):
        events, scores, log_partition, shares = truth(family, p, row)
        torch.testing.assert_close(p.log_partition()[row], log_partition, **CLOSE)
        for found, x in zip(marginals, events, strict=True):
            torch.testing.assert_close(found[row], expectation(shares, x), **CLOSE)
        wanted = torch.special.entr(shares).sum()
        torch.testing.assert_close(entropy[row], wanted, rtol=1e-8, atol=1e-8)
        if len(scores):
            sample = type(p.marginals()) if isinstance(p.marginals(), tuple) else (lambda x: x)
            rows = [x.unsqueeze(1).expand(-1, len(family.lengths), *x.shape[1:]) for x in events]
            found = p.log_prob(sample(*rows))[:, row]
            total = log_partition if log_partition > -INF else 0.0
            torch.testing.assert_close(found, scores - total, rtol=1e-9, atol=1e-9 + rounding(scores))
            assert p.contains(sample(*rows))[:, row].all()


@of_each
@of_potentials
def test_best(family, draw):
    p = drawn(family, draw)
    best, top, maxima = as_parts(p.argmax()), p.topk(7), as_parts(p.max_marginals())
    for row in range(len(family.lengths)):
        events, scores, log_partition, _ = truth(family, p, row)
        possible = scores[scores > -INF].sort(descending=True).values
        wanted = torch.full((7,), -INF, dtype=torch.float64)
        wanted[: len(possible)] = possible[:7]
        torch.testing.assert_close(top.scores[:, row], wanted, **CLOSE)
        tops = [x[:, row] for x in as_parts(top.events)]
        torch.testing.assert_close(score(p, row, tops)[: len(possible)], wanted[: len(possible)], **CLOSE)
        for x in tops:
            assert ((x == 0) | (x == 1)).all()
            assert not x[len(possible) :].any()
        flat = torch.cat([x.flatten(1) for x in tops], 1)[: len(possible)]
        assert len(flat.unique(dim=0)) == len(flat)
        known = {tuple(x) for x in torch.cat([x.flatten(1) for x in events], 1).tolist()} if len(scores) else set()
        assert all(tuple(x) in known for x in flat.tolist())
        here = [x[row] for x in best]
        if len(possible):
            torch.testing.assert_close(score(p, row, [x[None] for x in here]), possible[:1], **CLOSE)
            assert tuple(torch.cat([x.flatten() for x in here]).tolist()) in known
        else:
            assert not any(x.any() for x in here)
        for found, x in zip(maxima, events, strict=True):
            having = torch.where(x > 0, scores.view(-1, *[1] * (x.dim() - 1)), -INF)
            wanted = having.amax(0) if len(scores) else torch.full_like(found[row], -INF)
            torch.testing.assert_close(found[row], wanted, **CLOSE)


@of_each
@of_potentials
def test_two_distributions(family, draw):
    p, q = drawn(family, draw, 2)
    cross, divergence = p.cross_entropy(q), p.kl_divergence(q)
    assert (p.kl_divergence(p) == 0).all()
    for row in range(len(family.lengths)):
        _, scores, log_partition, shares = truth(family, p, row)
        _, others, other_partition, _ = truth(family, q, row)
        if log_partition == -INF:
            assert divergence[row] == cross[row] == 0
            continue
        here = shares > 0
        if (others[here] == -INF).any():
            assert divergence[row] == cross[row] == INF
            continue
        wanted = (shares[here] * (other_partition - others[here])).sum()
        close = {"rtol": 1e-9, "atol": 1e-9 + rounding(scores, others)}
        torch.testing.assert_close(cross[row], wanted, **close)
        wanted = (shares[here] * (scores[here] - log_partition - others[here] + other_partition)).sum()
        torch.testing.assert_close(divergence[row], wanted, **close)


@of_each
@pytest.mark.parametrize("draw", ["ordinary", "holes", "great", "nothing"])
def test_samples(family, draw):
    p, generator = drawn(family, draw), torch.Generator().manual_seed(3)
    count = 2000
    samples = as_parts(p.sample((2, count // 2), generator=generator))
    for row in range(len(family.lengths)):
        events, _, log_partition, shares = truth(family, p, row)
        drawn_ones = torch.cat([x[:, :, row].flatten(0, 1).flatten(1) for x in samples], 1)
        if log_partition == -INF:
            assert not drawn_ones.any()
            continue
        names = [tuple(x) for x in torch.cat([x.flatten(1) for x in events], 1).tolist()]
        found = Counter(map(tuple, drawn_ones.tolist()))
        assert set(found) <= {name for name, share in zip(names, shares, strict=True) if share > 0}
        wanted = Counter()
        for name, share in zip(names, shares.tolist(), strict=True):
            wanted[name] += share
        distance = sum(abs(found[name] / count - share) for name, share in wanted.items()) / 2
        assert distance < 0.5 * (len(wanted) / count) ** 0.5 + 0.01


@of_each
@pytest.mark.parametrize("draw", ["ordinary", "holes"])
def test_derivatives(family, draw):
    p, q = drawn(family, draw, most=3), drawn(family, "others", most=3)
    leaves = [x.clone().requires_grad_() for x in p.potentials]
    generator = torch.Generator().manual_seed(5)
    others = zip(p.potentials, q.potentials, strict=True)
    q.potentials = tuple(torch.where(x.isfinite(), y, -INF) for x, y in others)  # what p excludes, no more
    weights = [torch.randn(x.shape, generator=generator, dtype=x.dtype) for x in leaves]

    def with_(*potentials):
        found = p.expand(p.batch_shape)
        found.potentials = potentials
        return found

    def weighted(*x):
        return sum((w * m).sum() for w, m in zip(weights, as_parts(with_(*x).marginals()), strict=True))

    functions = {
        "log_partition": lambda *x: with_(*x).log_partition(),
        "marginals": weighted,
        "entropy": lambda *x: with_(*x).entropy(),
        "kl_divergence": lambda *x: with_(*x).kl_divergence(q),
        "cross_entropy": lambda *x: q.cross_entropy(with_(*x)),
    }
    finite = [x.detach().isfinite() for x in leaves]

    def of_finite(function):
        def inner(*given):
            x = [torch.where(here, y, -INF) for here, y in zip(finite, given, strict=True)]
            found = function(*x)
            return found.masked_fill(~found.isfinite(), 0.0)

        return inner

    points = [torch.where(here, x.detach(), 0.0).requires_grad_() for here, x in zip(finite, leaves, strict=True)]
    for name, function in functions.items():
        assert torch.autograd.gradcheck(of_finite(function), points, fast_mode=True), name
    assert torch.autograd.gradgradcheck(of_finite(functions["log_partition"]), points, fast_mode=True)


@of_each
@pytest.mark.parametrize("draw", ["ordinary", "enormous"])
def test_inference_mode_changes_nothing(family, draw):
    """Where all is made in it, and where only what is asked is asked outside of it."""

    def answers(p):
        names = ("log_partition", "marginals", "entropy", "argmax", "max_marginals")
        found = [x for name in names for x in as_parts(getattr(p, name)())]
        samples = p.sample((3,), generator=torch.Generator().manual_seed(1))
        return [*found, p.topk(3).scores, *as_parts(samples), p.kl_divergence(p), p.contains(p.argmax())]

    wanted = answers(drawn(family, draw))
    with torch.inference_mode():
        p = drawn(family, draw)
        inside = answers(p)
    for outside in (inside, answers(p)):
        for x, y in zip(outside, wanted, strict=True):
            assert torch.equal(x, y)


@of_each
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_log_probabilities_are_rounded_once(family, dtype):
    """Log-partitions are of many thousands, of which no digit is lost before the score is taken away."""
    p = family.make(drawer(1, 3e4, dtype=dtype), family.lengths, (len(family.lengths),))
    best = p.argmax()
    exact = p._in_double()
    torch.testing.assert_close(p.log_prob(best), exact.log_prob(best).to(dtype))
    assert (p.log_prob(best) <= 0).all()


@of_each
def test_batches_expand_and_padding_does_not_matter(family):
    draw = drawer(8)
    one = family.make(draw, (max(family.lengths),), (1,))
    many = one.expand((2, 3, 1))
    for name in ("log_partition", "entropy"):
        torch.testing.assert_close(getattr(many, name)(), getattr(one, name)().expand(2, 3, 1))
    for x, y in zip(as_parts(many.argmax()), as_parts(one.argmax()), strict=True):
        assert torch.equal(x, y.expand(2, 3, *y.shape))
    p = family.make(drawer(1), family.lengths, (len(family.lengths),))
    spoiled = p.expand(p.batch_shape)
    spoiled.potentials = tuple(
        torch.where(mask.expand(x.shape), x, torch.nan) for x, mask in zip(p.potentials, p.mask(), strict=True)
    )
    for name in ("log_partition", "marginals", "entropy", "argmax", "max_marginals"):
        for x, y in zip(as_parts(getattr(p, name)()), as_parts(getattr(spoiled, name)()), strict=True):
            assert torch.equal(x, y)
    spoiled.potentials = tuple(x.index_fill(0, torch.tensor([0]), -INF) for x in spoiled.potentials)
    for x in (spoiled.topk(2).scores, *as_parts(spoiled.argmax())):  # nor where another row has no structure
        assert not x.isnan().any()


@of_each
def test_what_does_not_fit_is_refused(family):
    p = family.make(drawer(1), family.lengths, (len(family.lengths),))
    spoiled = p.expand(p.batch_shape)
    first = p.potentials[0].clone()
    spoiled.potentials = (torch.full_like(first, torch.nan), *p.potentials[1:])
    for name in ("log_partition", "marginals", "entropy", "argmax", "max_marginals"):
        with pytest.raises(ValueError, match="expected numbers or -inf, got nan at"):
            getattr(spoiled, name)()
    with pytest.raises(ValueError, match="k of 1 or more"):
        p.topk(0)
    other = FAMILIES["categorical" if "bernoulli" in str(type(p)).lower() else "bernoulli"]
    with pytest.raises(ValueError, match="same structures"):
        p.kl_divergence(other.make(drawer(1), other.lengths, (len(other.lengths),)))


@of_each
def test_events_of_another_shape_are_refused(family):
    p = family.make(drawer(1), family.lengths, (len(family.lengths),))
    kind = type(p).Event
    whole = [torch.ones_like(x) for x in p.potentials]
    wrong = [[x[1:] for x in whole], [x[None, 1:] for x in whole], [x.sum(-1) for x in whole]]
    for n, x in enumerate(whole):
        wrong += [[*whole[:n], x.narrow(axis, 0, 1), *whole[n + 1 :]] for axis in range(x.dim()) if x.size(axis) > 1]
        wrong += [[*whole[:n], torch.stack([x, x]), *whole[n + 1 :]]] if len(whole) > 1 else []
    values = [kind(*parts) for parts in wrong]
    for value in [*values, (*whole, whole[0])]:
        for method in (p.log_prob, p.contains):
            with pytest.raises(ValueError, match=rf"expected events of {p.kinds[0]} .. .*, got \("):
                method(value)
    assert p.log_prob(kind(*(torch.stack([x, x]) for x in whole))).shape == (2, len(family.lengths))


@of_each
def test_no_value_that_is_no_structure_is_taken_for_one(family):
    p = family.make(drawer(1), family.lengths, (len(family.lengths),))
    if "bernoulli" in str(type(p)).lower():
        return
    nothing = type(p).Event(*(torch.zeros_like(x) for x in p.potentials))
    everything = type(p).Event(*(torch.ones_like(x) for x in p.potentials))
    for row in range(len(family.lengths)):
        events = family.all(p, row)
        empty = len(events[0]) > 0 and not any(x[0].any() for x in events)
        assert bool(p.contains(nothing)[row]) == empty
        assert not p.contains(everything)[row]


@of_each
@pytest.mark.parametrize("number", [-1.0, 0.5, 2.0, torch.inf, torch.nan])
def test_numbers_other_than_0_and_1_are_no_structures(family, number):
    """In any part, be the others what they may."""
    p = family.make(drawer(1), family.lengths, (len(family.lengths),))
    given = [torch.where(x != 0, number, x) for x in as_parts(p.argmax())]
    there = torch.stack([x.flatten(1).any(1) for x in given]).any(0)
    assert there.any() and not p.contains(type(p).Event(*given))[there].any()


@of_each
def test_nothing_at_all(family):
    """Rows without positions, where the tensors have none either; no rows; and no batch."""
    generator = torch.Generator().manual_seed(2)
    for lengths, batch in (((0, 0), (2,)), ((2, 2), (0,)), ((3,), ())):
        p = family.make(drawer(1), lengths, batch)
        if batch == (2,):
            torch.testing.assert_close(p.log_partition()[0], truth(family, p, 0)[2], **CLOSE)
        for name in ("log_partition", "entropy"):
            assert getattr(p, name)().shape == p.kl_divergence(p).shape == batch
        best, samples = as_parts(p.argmax()), as_parts(p.sample((3,), generator=generator))
        for name in ("marginals", "max_marginals"):
            assert [x.shape for x in as_parts(getattr(p, name)())] == [x.shape for x in best]
        for x, y, z in zip(best, as_parts(p.topk(2).events), samples, strict=True):
            assert (y.shape, z.shape) == ((2, *x.shape), (3, *x.shape))
        assert p.contains(p.argmax()).shape == batch
