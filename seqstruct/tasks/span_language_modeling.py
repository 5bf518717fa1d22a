"""`stream_language_modeling` with gold spans: each batch has `gold_spans` for span attention (Peng 2022, eq. 3.7)."""

from typing import Any, Dict

import torch
from fairseq.tasks import register_task
from torch import Tensor
from torch.utils.data import Dataset

from seqstruct.data.corpora.parsed_text import read_bits
from seqstruct.data.streams.dataset import StreamDataset, StreamSegments
from seqstruct.tasks.stream_language_modeling import StreamLanguageModelingConfig, StreamLanguageModelingTask

READ_BEFORE = 2  # the step that predicts token k has read token k - 1 and attends to spans that end at token k - 2


class WithGoldSpans(Dataset):
    """The batches of `segments`, with gold_spans B T long: bit l is set where the span of l + 1 tokens that ends before
    the token read at a step is a constituent.
    """

    def __init__(self, segments: StreamSegments, bits: Tensor):
        """bits: B L long, by target token, of the rows that `segments` has."""
        self.segments, self.bits = segments, bits

    def __len__(self) -> int:
        return len(self.segments)

    def __getitem__(self, step: int) -> Dict[str, Any]:
        ends = self.segments.ends
        part = slice(int(ends[step - 1]) if step else 0, int(ends[step]))
        return {**self.segments[step], "gold_spans": self.bits[:, part].contiguous()}


@register_task("span_language_modeling", dataclass=StreamLanguageModelingConfig)
class SpanLanguageModelingTask(StreamLanguageModelingTask):
    """Takes the bin folder of data-prep/ptb_trees.sh, which has SPLIT.spans.npy beside the text."""

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **named: Any) -> None:
        """The text and its spans.  Raises ValueError if the spans are missing, damaged, or of another text."""
        super().load_dataset(split, epoch, combine, **named)
        dataset = self.datasets[split]
        dataset.spans = torch.from_numpy(read_bits(self.args.data, split, len(dataset)))

    def get_batch_iterator(self, dataset: StreamDataset, *args: Any, **named: Any) -> Any:
        """As of `stream_language_modeling`, of batches with gold_spans."""
        batches = super().get_batch_iterator(dataset, *args, **named)
        segments = batches.dataset
        shards, shard = named.get("num_shards", 1), named.get("shard_id", 0)
        rows, length = segments.source.shape
        whole = dataset.spans.new_zeros(rows * shards * length)
        moved = dataset.spans[:-READ_BEFORE]
        whole[READ_BEFORE : READ_BEFORE + len(moved)] = moved
        bits = whole.view(-1, length)[shard * rows : (shard + 1) * rows]
        batches.dataset = WithGoldSpans(segments, bits)
        return batches
