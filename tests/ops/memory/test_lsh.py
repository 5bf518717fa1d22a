"""Attention in buckets against its definition, written out."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from seqstruct.attention import Attention, Shape, Site, get_attention, make_config
from seqstruct.ops.memory.lsh import bucket_attention, hash_codes, limits, meetings, met_weights
from seqstruct.testing.cases import stepwise

BATCH, HEADS, ROUNDS, LENGTH, DIM = 2, 2, 3, 23, 4
SITES = [Site.ENCODER_SELF, Site.DECODER_SELF]


def met(codes: list[list[int]], chunk: int, causal: bool, real: list[bool]) -> list[list[int]]:
    """In how many rounds each position meets each, by counting; codes: R T."""
    length = len(real)
    counts = [[0] * length for _ in range(length)]
    for code in codes:
        for t in range(length):
            if not real[t]:
                continue
            for step, last in ((-1, -1), (1, t if causal else length)):
                seen = 0
                for s in range(t + step, last, step):
                    if real[s] and code[s] == code[t] and seen < chunk:
                        counts[t][s] += 1
                        seen += 1
            counts[t][t] += 1
    return counts


def sides(length: int) -> dict[str, Tensor]:
    """Masks of two rows, the second without padding."""
    masks = {side: torch.zeros(BATCH, length, dtype=torch.bool) for side in ("none", "left", "right", "amid")}
    masks["left"][0, :5] = masks["right"][0, -5:] = masks["amid"][0, 2::3] = True
    return masks


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("chunk", [1, 3, 7, 40])
@pytest.mark.parametrize("side", sides(1))
def test_chunks_are_the_definition(causal: bool, chunk: int, side: str, generator: torch.Generator) -> None:
    """Buckets larger than a chunk, and smaller ones; gradients too."""
    padding = sides(LENGTH)[side]
    codes = torch.randint(3, (BATCH, HEADS, ROUNDS, LENGTH), generator=generator)
    query, key, value = (
        torch.randn(BATCH, HEADS, LENGTH, DIM, generator=generator, dtype=torch.float64).requires_grad_()
        for _ in range(3)
    )
    counted = torch.tensor([
        [met(codes[b, h].tolist(), chunk, causal, (~padding[b]).tolist()) for h in range(HEADS)] for b in range(BATCH)
    ])
    nothing = torch.zeros(BATCH, LENGTH, dtype=torch.long)
    assert torch.equal(meetings(codes, codes, nothing, chunk, causal, padding), counted)
    weights = met_weights(query, key, counted > 0)
    expected = weights @ value
    found = bucket_attention(query, key, value, codes, chunk, causal, padding)
    torch.testing.assert_close(found, expected)
    pull = torch.randn(found.shape, generator=generator, dtype=torch.float64)
    gradients = [torch.autograd.grad((x * pull).sum(), [query, key, value]) for x in (found, expected)]
    torch.testing.assert_close(*gradients)


def test_a_position_attends_to_itself_only_if_there_is_nothing_else(generator: torch.Generator) -> None:
    query, key = (torch.randn(1, 1, 4, DIM, generator=generator) for _ in range(2))
    codes = torch.tensor([0, 1, 0, 0]).view(1, 1, 1, 4)
    padding = torch.zeros(1, 4, dtype=torch.bool)
    seen = meetings(codes, codes, torch.zeros(1, 4, dtype=torch.long), 9, True, padding) > 0
    weights = met_weights(100 * query, key, seen)[0, 0]
    assert torch.equal(weights.diagonal(), torch.tensor([1.0, 1.0, 0.0, 0.0]))
    assert weights[2].tolist() == [1.0, 0.0, 0.0, 0.0]
    torch.testing.assert_close(weights[3, [0, 2]], (50 * query[0, 0, 3] @ key[0, 0, [0, 2]].T).softmax(-1))


def test_a_hash_looks_at_angles_alone_and_halves_its_buckets(generator: torch.Generator) -> None:
    x = torch.randn(2, 3, 9, 6, generator=generator, dtype=torch.float64)
    rotations = torch.randn(3, 5, 6, 4, generator=generator, dtype=torch.float64)
    halvings = torch.randn(3, 5, 6, 3, generator=generator, dtype=torch.float64)
    codes = hash_codes(x, rotations, halvings)
    assert torch.equal(codes, hash_codes(3.5 * x, rotations, halvings))
    assert torch.equal(codes >> 2, hash_codes(x, rotations, halvings[..., :1]))
    bucket = (x.unsqueeze(2) @ torch.cat([rotations, -rotations], -1)).argmax(-1)
    assert torch.equal(codes >> 3, bucket) and int(bucket.max()) <= 7


def test_buckets_follow_the_length() -> None:
    """Two tokens in half a chunk: the paper's chunk is twice the mean bucket."""
    assert limits(16, 64, 3) == [512, 1024, 2048]
    attention = build(Site.DECODER_SELF, chunk=64, buckets=16)
    for tokens, halved in ((1, 0), (512, 0), (513, 1), (1024, 1), (1025, 2), (4096, 3)):
        assert attention._halved(tokens) == halved
        assert 16 * 2**halved >= 2 * tokens / 64 > 0


def build(site: Site, **options: int) -> Attention:
    torch.manual_seed(3)
    return get_attention("lsh")(make_config("lsh", options), Shape.of(site, 12, 3)).double().eval()


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("options", [{"chunk": 3, "buckets": 2, "rounds": 2}, {"chunk": 8, "buckets": 4, "rounds": 1}])
def test_all_forms_of_the_layer_are_one(site: Site, options: dict, generator: torch.Generator) -> None:
    """Chunks, all pairs, steps: at a length of many chunks, whose buckets are halved several times."""
    attention = build(site, **options)
    x = torch.randn(BATCH, 71, 12, generator=generator, dtype=torch.float64)
    assert attention._halved(71) >= 3
    for padding in sides(71).values():
        with torch.no_grad():
            chunks = attention(x, x, x, padding)[0].output
            pairs = attention(x, x, x, padding, need_weights=True)[0]
            steps = stepwise(attention, x, x, x, padding)[0].output
        torch.testing.assert_close(chunks, pairs.output)
        torch.testing.assert_close(chunks, steps)
        real = (~padding).double()[:, None].expand(-1, 3, -1)
        torch.testing.assert_close(pairs.weights.sum(-1), real)


@pytest.mark.parametrize("options", [{}, {"chunk": 5, "buckets": 2}])
def test_later_tokens_change_nothing(options: dict, generator: torch.Generator) -> None:
    """With the default options too, at twice the tokens for which the first buckets suffice."""
    attention = build(Site.DECODER_SELF, **options)
    x = torch.randn(1, 1024, 12, generator=generator, dtype=torch.float64)
    x[:, ::2] = x[:, :1]  # buckets of all sizes
    other = x.clone()
    other[:, 512:] = torch.randn(1, 512, 12, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        whole, changed = (attention(y, y, y)[0].output for y in (x, other))
        short = attention(*[x[:, :512]] * 3)[0].output
        reading, _ = attention(*[x[:, 500:]] * 3, state=attention.write(attention.initial_state(1), *[x[:, :500]] * 2))
    # Later tokens may move a bucket to another place of a chunk, and so the order of summation.
    torch.testing.assert_close(whole[:, :512], changed[:, :512], rtol=0, atol=1e-14)
    torch.testing.assert_close(whole[:, :512], short, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(whole[:, 500:], reading.output, rtol=1e-9, atol=1e-10)
