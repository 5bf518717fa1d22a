"""`stream_language_modeling` with gold spans: each batch has `gold_spans` for span attention (Peng 2022, eq. 3.7)."""

from typing import Any

import torch
from fairseq.tasks import register_task

from seqstruct.data.corpora.parsed_text import read_bits
from seqstruct.data.streams.dataset import StreamDataset
from seqstruct.tasks.stream_language_modeling import StreamLanguageModelingConfig, StreamLanguageModelingTask

READ_BEFORE = 2  # the step that predicts token k has read token k - 1 and attends to spans that end at token k - 2


@register_task("span_language_modeling", dataclass=StreamLanguageModelingConfig)
class SpanLanguageModelingTask(StreamLanguageModelingTask):
    """Takes the bin folder of data-prep/ptb_trees.sh, which has SPLIT.spans.npy beside the text."""

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **named: Any) -> None:
        """The text and its spans.  Raises ValueError if the spans are missing, damaged, or of another text."""
        super().load_dataset(split, epoch, combine, **named)
        dataset = self.datasets[split]
        dataset.spans = torch.from_numpy(read_bits(self._folder(epoch), split, len(dataset)))

    def get_batch_iterator(self, dataset: StreamDataset, *args: Any, **named: Any) -> Any:
        """As of `stream_language_modeling`, with gold_spans B T long in each batch: bit l is set where the span of
        l + 1 tokens that ends before the token read at a step is a constituent."""
        batches = super().get_batch_iterator(dataset, *args, **named)
        if not isinstance(dataset, StreamDataset):  # prefixes to go on from
            return batches
        shards, shard = named.get("num_shards", 1), named.get("shard_id", 0)
        rows, length = batches.dataset.source.shape
        whole = dataset.spans.new_zeros(rows * shards * length)
        moved = dataset.spans[:-READ_BEFORE]
        whole[READ_BEFORE : READ_BEFORE + len(moved)] = moved
        batches.dataset.more["gold_spans"] = whole.view(-1, length)[shard * rows : (shard + 1) * rows]
        return batches
