import cmath

import pytest
import torch

from seqstruct.ops.rotary import rotated
from tests.randomised import draw


def test_pairs_turn_as_complex_numbers(generator):
    x, position, base = draw(generator, 2, 3, 5, 6), torch.tensor([[0, 1, 7, 2, 3], [4, 0, 0, 11, 5]]), 37.0
    found = rotated(x, position, base)
    for b, h, t, i in ((0, 1, 2, 0), (1, 2, 3, 1), (1, 0, 4, 2), (0, 0, 0, 2)):
        angle = position[b, t].item() * base ** (-2 * i / 6)
        turned = complex(x[b, h, t, i], x[b, h, t, i + 3]) * cmath.exp(1j * angle)
        torch.testing.assert_close(complex(found[b, h, t, i], found[b, h, t, i + 3]), turned)


def test_products_depend_on_distances_alone(generator):
    query, key = draw(generator, 1, 2, 7, 4), draw(generator, 1, 2, 7, 4)
    place = torch.arange(7).unsqueeze(0)
    scores = [rotated(query, place + shift, 100.0) @ rotated(key, place + shift, 100.0).mT for shift in (0, 13)]
    torch.testing.assert_close(*scores)
    assert (scores[0] - query @ key.mT).abs().max() > 0.1


def test_one_position_serves_a_whole_row(generator):
    x, count = draw(generator, 2, 3, 5, 4), torch.tensor([[6], [0]])
    assert torch.equal(rotated(x, count, 10.0), rotated(x, count.expand(2, 5), 10.0))
    assert torch.equal(rotated(x, count, 10.0)[1], x[1])


def test_odd_heads_are_refused():
    with pytest.raises(ValueError, match="even size, not 5"):
        rotated(torch.zeros(1, 1, 2, 5), torch.zeros(1, 2, dtype=torch.long), 10.0)
