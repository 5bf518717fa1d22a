"""A stream in rows and segments: every token is a target once, and what it is predicted from stands before it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqstruct.data.streams.dataset import StreamDataset, StreamSegments, even_segments, random_segments

PAD, EOS = 1, 2


@pytest.mark.parametrize("tokens, rows, length", [(23, 4, 3), (23, 1, 35), (5, 4, 1), (1, 3, 7), (24, 3, 8)])
def test_every_token_is_predicted_once(tokens, rows, length):
    stream = torch.arange(10, 10 + tokens)
    dataset = StreamDataset(stream, PAD, EOS)
    row = -(-tokens // rows)
    segments = StreamSegments(dataset, rows, even_segments(row, length))
    batches = [segments[step] for step in range(len(segments))]
    assert [batch["step"] for batch in batches] == list(range(len(batches)))
    target = torch.cat([batch["target"] for batch in batches], 1)
    source = torch.cat([batch["net_input"]["src_tokens"] for batch in batches], 1)
    assert target.flatten()[target.flatten() != PAD].tolist() == stream.tolist()
    assert source.flatten()[target.flatten() != PAD].tolist() == [EOS, *stream[:-1].tolist()]
    assert torch.equal(source == PAD, target == PAD)
    assert sum(batch["ntokens"] for batch in batches) == tokens
    assert all(batch["target"].size(1) <= length for batch in batches)
    assert len(torch.cat([batch["id"] for batch in batches]).unique()) == rows * len(batches)


def test_shards_take_neighbouring_rows():
    dataset = StreamDataset(torch.arange(10, 34), PAD, EOS)
    whole = StreamSegments(dataset, 6, [3, 1])
    halves = [StreamSegments(dataset, 3, [3, 1], shard, 2) for shard in (0, 1)]
    for step in (0, 1):
        joined = torch.cat([half[step]["target"] for half in halves])
        assert torch.equal(joined, whole[step]["target"])


def test_random_segments():
    generator = np.random.default_rng(3)
    lengths = random_segments(20_000, 35, generator)
    assert sum(lengths) == 20_000 and min(lengths[:-1]) >= 5
    short = np.mean([length < 26 for length in lengths])
    assert 0.03 < short < 0.12 and 33 < np.median(lengths) < 37
    assert random_segments(3, 35, generator) == [3] and random_segments(0, 35, generator) == []
    assert random_segments(500, 35, np.random.default_rng([1, 2])) == random_segments(
        500, 35, np.random.default_rng([1, 2])
    )


def test_wrong_input():
    with pytest.raises(ValueError, match="at least one token"):
        StreamDataset(torch.zeros(0), PAD, EOS)
    with pytest.raises(ValueError, match="segments of 7 tokens do not cover rows of 8"):
        StreamSegments(StreamDataset(torch.arange(8), PAD, EOS), 1, [7])
