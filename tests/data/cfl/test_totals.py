import math

import numpy as np
import pytest

from seqstruct.data.cfl.totals import InfiniteWeights, closure, productive, proper, total_weights


def rules(*lines):
    return [(left, tuple(right.split()), weight) for left, right, weight in lines]


@pytest.mark.parametrize(
    ("weights", "each", "root"),
    [
        ((0.4, 0.4, 0.2), 0.0, 0.5),
        ((0.4, 0.4, 0.2), 1.0, 1.0),
        ((0.3, 0.2, 0.1), 0.7, (1 - math.sqrt(1 - 4 * 0.3 * 0.27)) / 0.6),
        ((0.6, 0.4, 0.0), 1.0, 2 / 3),
        ((0.5, 0.5, 0.0), 0.0, 1.0),
        ((0.25, 1.0, 0.0), 0.0, 2.0),
    ],
)
def test_the_least_root_of_a_quadratic(weights, each, root):
    """S = a S^2 + b + c each, where it has one root twice too."""
    a, b, c = weights
    written = rules(("S", "S S", a), ("S", "", b), ("S", "x", c))
    assert total_weights(written, {"x"}, each)["S"] == pytest.approx(root, rel=1e-13)


@pytest.mark.parametrize("weights", [(0.5, 0.51), (0.9, 0.5), (3.0, 1.0), (0.250001, 1.0)])
def test_a_quadratic_without_a_root(weights):
    with pytest.raises(InfiniteWeights) as error:
        total_weights(rules(("S", "S S", weights[0]), ("S", "", weights[1])), (), 1.0)
    assert error.value.names == ("S",)


def test_totals_beyond_float64_are_infinite():
    """A product of finite totals; and a path so heavy that its matrix is taken for singular."""
    product = rules(("S", "A A", 1.0), ("A", "x", 1e200))
    path = rules(*((f"N{i}", f"x N{i + 1}", 10.0) for i in range(400)), ("N400", "x", 1.0))
    for written in (product, path):
        assert set(total_weights(written, {"x"}, 1.0).values()) == {math.inf}


def test_a_linear_system_and_what_derives_nothing():
    """S = 1/2 T + 1/4, T = 1/2 S + 1/8 x; U has no string, and without symbols T has none of its own."""
    written = rules(("S", "T", 0.5), ("S", "", 0.25), ("T", "S", 0.5), ("T", "x", 0.125), ("U", "U x", 1.0))
    assert total_weights(written, {"x"}, 1.0) == pytest.approx({"S": 5 / 12, "T": 1 / 3}, rel=1e-14)
    assert total_weights(written, {"x"}, 0.0) == pytest.approx({"S": 1 / 3, "T": 1 / 6}, rel=1e-14)
    assert productive(written, {"x"}) == {"S", "T", "x"}
    assert productive(written, ()) == {"S", "T"}
    assert total_weights([], (), 1.0) == {}


def test_the_totals_of_a_random_system_are_a_fixed_point_below_any_other():
    random = np.random.default_rng(5)
    names = [f"N{i}" for i in range(7)]
    written = []
    for name in names:
        shares = random.dirichlet(np.ones(5)) * 0.9
        bodies = [" ".join(random.choice(names, size=length)) for length in (1, 2, 3)] + ["x", ""]
        written += rules(*((name, body, share) for body, share in zip(bodies, shares, strict=True)))
    found = total_weights(written, {"x"}, 1.0)
    z = dict.fromkeys(names, 0.0)
    for _ in range(2000):
        value = dict.fromkeys(names, 0.0)
        for left, right, weight in written:
            value[left] += weight * math.prod(z.get(s, 1.0) for s in right)
        z = value
    assert found == pytest.approx(z, rel=1e-12)


def test_proper_weights_sum_to_one():
    written = rules(("S", "S S", 0.2), ("S", "T", 0.5), ("S", "x", 0.1), ("T", "x T", 0.3), ("T", "", 0.5))
    totals = total_weights(written, {"x"}, 1.0)
    made = proper(written, totals)
    for name in ("S", "T"):
        assert sum(weight for left, _, weight in made if left == name) == pytest.approx(1.0, rel=1e-12)
    assert total_weights(made, {"x"}, 1.0) == pytest.approx({"S": 1.0, "T": 1.0}, rel=1e-12)


def test_closure_is_the_sum_of_powers_with_exact_zeros():
    random = np.random.default_rng(3)
    steps = random.random((7, 7)) * (random.random((7, 7)) < 0.25) * 0.4
    series = sum(np.linalg.matrix_power(steps, n) for n in range(200))
    found = closure(steps, "abcdefg")
    np.testing.assert_allclose(found, series, rtol=1e-12, atol=1e-15)
    assert ((found == 0) == (series == 0)).all()
    assert closure(np.zeros((0, 0)), "").shape == (0, 0)


def test_closure_without_a_limit():
    steps = np.zeros((5, 5))
    steps[0, 1], steps[1, 2], steps[2, 1], steps[3, 3] = 5.0, 2.0, 0.5, 0.9
    with pytest.raises(InfiniteWeights, match="b, c") as error:
        closure(steps, "abcde")
    assert error.value.names == ("b", "c")
    steps[2, 1] = 0.49
    assert closure(steps, "abcde")[0, 2] == pytest.approx(10 / (1 - 0.98), rel=1e-12)
