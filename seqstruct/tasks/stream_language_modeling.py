"""Language modeling of one long stream by truncated backpropagation through time, the state carried on.

The text of a split is read as `seqstruct.data.streams.dataset` says, `--batch-size` rows side by side, in segments of
`--tokens-per-sample` tokens.  A segment starts from the state that the one before it ended with, without a gradient
through it; the first one of a pass over the text starts from the initial state.  A model takes that state by the
argument `carried`, a `seqstruct.bridge.passes.CarriedState`.  Training, fairseq-validate and fairseq-eval-lm carry it
alike, so that `--tokens-per-sample` does not change what they report; with `--batch-size 1` nothing is read without
its context.  A training that is cut within an epoch goes on from the initial state; between epochs nothing is lost.

fairseq-interactive goes on from the lines it reads.  For fairseq-generate, which goes on from sentences of a split,
give `--task language_modeling --sample-break-mode eos`: the models serve both.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, NamedTuple, Optional

import numpy as np
import torch
from fairseq import utils
from fairseq.data import data_utils, iterators
from fairseq.tasks import register_task
from fairseq.tasks.language_modeling import LanguageModelingConfig, LanguageModelingTask
from omegaconf import II

from seqstruct.bridge.options import flag
from seqstruct.bridge.passes import CarriedState
from seqstruct.data.arguments import at_least
from seqstruct.data.streams.dataset import StreamDataset, StreamSegments, even_segments, random_segments


@dataclass
class StreamLanguageModelingConfig(LanguageModelingConfig):
    """Options of fairseq's language_modeling; tokens_per_sample is the length of a segment."""

    tokens_per_sample: int = flag(35, "tokens of a segment, through which gradients flow, 1 or more")
    random_segments: bool = flag(
        False, "in training, draw the length of each segment: normal around tokens_per_sample, one time in 20 around "
               "half of it, with deviation 5 and at least 5 tokens (Merity et al. 2018, section 4.1)"
    )
    train_subset: str = II("dataset.train_subset")


@register_task("stream_language_modeling", dataclass=StreamLanguageModelingConfig)
class StreamLanguageModelingTask(LanguageModelingTask):
    """Each of a split's rows is one text for the whole epoch; batches follow one another and are never shuffled."""

    def __init__(self, args: Any, dictionary: Any, output_dictionary: Any = None, targets: Any = None):
        super().__init__(args, dictionary, output_dictionary, targets)
        at_least(args, tokens_per_sample=1)
        if self.targets != ["future"]:
            raise ValueError(f"a stream has the next token as its target alone, not {', '.join(self.targets)}")
        for name in ("sample_break_mode", "shorten_method", "add_bos_token"):
            if str(getattr(args, name)) not in ("none", "False"):
                raise ValueError(f"a stream is one text, in segments: expected no --{name.replace('_', '-')}")
        self._carried: Dict[bool, _Carried] = {}  # by whether the model trains

    def build_model(self, args: Any, from_checkpoint: bool = False) -> Any:
        """fairseq's.  Raises ValueError if the model cannot carry a state."""
        model = super().build_model(args, from_checkpoint)
        if not hasattr(model.decoder, "initial_state"):
            name = getattr(args, "arch", None) or getattr(args, "_name", None) or type(model).__name__
            raise ValueError(
                f"{name} carries no state from segment to segment, as --task stream_language_modeling needs it; "
                "--task language_modeling takes any language model"
            )
        model.decoder.initial_state(1)
        return model

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **_: Any) -> None:
        """All tokens of a split of fairseq-preprocess --only-source, an EOS after each line.

        Raises FileNotFoundError if there is no such split, ValueError if it is empty.
        """
        path = str(self._folder(epoch) / split)
        found = data_utils.load_indexed_dataset(path, self.dictionary, self.args.dataset_impl, combine=combine)
        if found is None:
            raise FileNotFoundError(f"{path}.bin: no such split; fairseq-preprocess --only-source makes one")
        tokens = torch.cat([found[i] for i in range(len(found))]) if len(found) else torch.zeros(0)
        self.datasets[split] = StreamDataset(tokens, self.dictionary.pad(), self.dictionary.eos())

    def _folder(self, epoch: int) -> Path:
        """The data of an epoch: of several folders each in its turn."""
        folders = utils.split_paths(self.args.data)
        return Path(folders[(epoch - 1) % len(folders)])

    def get_batch_iterator(
        self, dataset: Any, max_tokens: Optional[int] = None, max_sentences: Optional[int] = None, *,
        seed: int = 1, epoch: int = 1, **options: Any,
    ) -> iterators.EpochBatchIterator:
        """The segments of a stream in their order; max_sentences: rows, of this shard.  Prefixes to go on from, as
        fairseq-interactive has them, are batched as fairseq does.

        Raises ValueError without a number of rows, or if a segment of all of them has more tokens than max_tokens.
        """
        if not isinstance(dataset, StreamDataset):
            return super().get_batch_iterator(dataset, max_tokens, max_sentences, seed=seed, epoch=epoch, **options)
        if options.get("grouped_shuffling"):
            raise ValueError("--grouped-shuffling: a state is carried between segments, which may not be shuffled")
        if not max_sentences:
            raise ValueError("a stream needs its number of rows: --batch-size")
        tokens = max_sentences * self.args.tokens_per_sample
        if max_tokens and max_tokens < tokens:
            raise ValueError(
                f"--max-tokens {max_tokens}: {max_sentences} rows of {self.args.tokens_per_sample} tokens are "
                f"{tokens}, as --batch-size and --tokens-per-sample have it"
            )
        shards, shard = options.get("num_shards", 1), options.get("shard_id", 0)
        row = -(-len(dataset) // (max_sentences * shards))
        if self.args.random_segments and dataset is self.datasets.get(self.args.train_subset):
            lengths = random_segments(row, self.args.tokens_per_sample, np.random.default_rng([seed, epoch]))
        else:
            lengths = even_segments(row, self.args.tokens_per_sample)
        segments = StreamSegments(dataset, max_sentences, lengths, shard, shards)
        return iterators.EpochBatchIterator(
            segments, _alone, [[step] for step in range(len(segments))], seed=seed, epoch=epoch,
            num_workers=options.get("num_workers", 0), buffer_size=options.get("data_buffer_size", 0),
            skip_remainder_batch=options.get("skip_remainder_batch", False), disable_shuffling=True,
        )

    def train_step(
        self, sample: Dict[str, Any], model: Any, criterion: Any, optimizer: Any, update_num: int,
        ignore_grad: bool = False,
    ) -> Any:
        """fairseq's, with the carried state; a batch whose gradient is ignored leaves it as it is."""
        sample = with_state(sample, CarriedState() if ignore_grad else self._state_for(sample, True, update_num))
        return super().train_step(sample, model, criterion, optimizer, update_num, ignore_grad)

    def valid_step(self, sample: Dict[str, Any], model: Any, criterion: Any) -> Any:
        return super().valid_step(with_state(sample, self._state_for(sample, False, sample["step"])), model, criterion)

    def _state_for(self, sample: Dict[str, Any], training: bool, update: int) -> CarriedState:
        """What was carried so far if the sample follows the last one; an empty state at the start of a pass, and
        for the first sample of all, with which a training that was cut goes on; what it started from the first time
        for a sample of the same update, all of which fairseq gives again after an overflow or to find a NaN.

        Raises ValueError if segments come out of order.
        """
        step, last = sample["step"], self._carried.get(training)
        starts = last.starts if last is not None and last.update == update else {}
        if last is None or step == 0:
            start, starts = CarriedState(), {}
        elif step == last.step + 1:
            start = last.state
        elif step in starts:
            start = starts[step]
        else:
            raise ValueError(
                f"segment {step} of a stream came after segment {last.step}: a state is carried between segments "
                "in their order, which may not be shuffled"
            )
        self._carried[training] = _Carried(update, step, start.copy(), {**starts, step: start})
        return self._carried[training].state

    def eval_lm_dataloader(
        self, dataset: StreamDataset, batch_size: Optional[int] = None, context_window: int = 0, **options: Any
    ) -> "_Carrying":
        """Segments for fairseq-eval-lm, of one row unless --batch-size says otherwise, with the carried state.

        Raises ValueError with a context window: the state carries all of the context.
        """
        if context_window > 0:
            raise ValueError("--context-window has no meaning here: the state carries all of the context")
        return _Carrying(super().eval_lm_dataloader(dataset, batch_size=batch_size or 1, **options))


class _Carried(NamedTuple):
    """The last segment of a pass, the state that its model leaves there, and what those of its update started from."""

    update: int
    step: int
    state: CarriedState
    starts: Dict[int, CarriedState]


class _Carrying:
    """The samples of one pass over a stream, all with one carried state."""

    def __init__(self, samples: Any):
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        carried = CarriedState()
        for sample in self.samples:
            yield with_state(sample, carried)


def with_state(sample: Dict[str, Any], carried: CarriedState) -> Dict[str, Any]:
    """The sample with what the model is to start from and to leave its state in."""
    return {**sample, "net_input": {**sample["net_input"], "carried": carried}}


def _alone(samples: Any) -> Dict[str, Any]:
    (sample,) = samples
    return sample
