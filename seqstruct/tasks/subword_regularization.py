"""Translation trained on segmentations drawn anew in each epoch: subword regularization and BPE dropout.

The task is fairseq's `translation` in all but the training set, whose sentences are cut inside the data loader
(docs/tutorials/translation.md has an example).
Validation and test sets keep the one best segmentation, in which they were binarised; `fairseq-generate` needs none of
these options, nor this task.  Sources and deviations: seqstruct/data/text/subword_sampling.py.
"""

from dataclasses import dataclass
from typing import Any, Dict, List, Optional

import numpy as np
import torch
from fairseq.data import BaseWrapperDataset, Dictionary, LanguagePairDataset
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II
from torch import Tensor

from seqstruct.bridge.options import flag
from seqstruct.data.text.subword_sampling import Sampler, Sampling, load_sampler

# How many sentences are segmented beforehand to see that text, subword model and binarised data belong together.
CHECKED_SENTENCES = 1000


@dataclass
class SubwordRegularizationConfig(TranslationConfig):
    training_text: Optional[str] = flag(
        None, "PREFIX of PREFIX.LANGUAGE, the training text that was binarised: as it was given to fairseq-preprocess "
              "--trainpref, or the same lines without subwords"
    )
    source_subword_model: Optional[str] = flag(
        None, "the source's SentencePiece model or subword-nmt codes; without it the source keeps its best segmentation"
    )
    target_subword_model: Optional[str] = flag(None, "the same for the target; both sides may have one model")
    sampling_alpha: float = flag(
        Sampling.alpha, "exponent on the probabilities of a unigram model's segmentations, 0 or more; 0 makes all "
                        "alike, a great one leaves the best"
    )
    sampling_nbest: int = flag(
        Sampling.nbest, "a unigram model's best segmentations to draw from, 1 or more, or -1 for all there are"
    )
    bpe_dropout: float = flag(Sampling.dropout, "probability with which byte-pair encoding leaves out a merge, 0 to 1")
    seed: int = II("common.seed")


class LineFile:
    """The lines of a UTF-8 file by index, read from the disk when they are asked for.

    Memory: eight bytes a line.
    """

    def __init__(self, path: str):
        """Find the lines.  Raises OSError if the file cannot be read, ValueError if it is empty."""
        self.path = path
        with open(path, "rb") as stream:
            if not stream.read(1):
                raise ValueError(f"{path}: the file is empty")
        self.bytes = np.memmap(path, np.uint8, "r")
        ends = np.flatnonzero(self.bytes == ord("\n"))
        if self.bytes[-1] != ord("\n"):
            ends = np.append(ends, len(self.bytes))
        self.bounds = np.concatenate([[0], ends + 1])

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, index: int) -> str:
        line = self.bytes[self.bounds[index] : self.bounds[index + 1]].tobytes()
        try:
            return line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path}: line {index + 1} is not UTF-8: {error.reason}") from None


class SampledSide:
    """One language of the training set: text, subword model and dictionary.

    most: the greatest number of subwords, its end of sentence included, that a draw may have.
    """

    def __init__(self, text: LineFile, sampler: Sampler, dictionary: Dictionary, most: int):
        self.text, self.sampler, self.dictionary, self.most = text, sampler, dictionary, most

    def encode(self, pieces: List[str]) -> Tensor:
        """(T,) indices, the end of the sentence last."""
        return torch.tensor([*map(self.dictionary.index, pieces), self.dictionary.eos()])

    def check(self, binarised: Any) -> None:
        """Compare the best segmentations of the first sentences with the binarised ones.

        Raises ValueError with the first line that differs, or if there are more of one than of the other.
        """
        if len(self.text) != len(binarised):
            raise ValueError(f"{self.text.path}: {len(self.text)} lines, but the binarised data has {len(binarised)}")
        for index in range(min(CHECKED_SENTENCES, len(binarised))):
            pieces = self.sampler.best(self.sampler.text(self.text[index]))
            if self.encode(pieces).tolist() != binarised[index].tolist():
                there = self.dictionary.string(binarised[index])
                raise ValueError(
                    f"{self.text.path}: line {index + 1}: the subword model does not match the dictionary or the text: "
                    f"it gives {' '.join(pieces)!r}, where the binarised data has {there!r}"
                )

    def draw(self, index: int, generator: np.random.Generator) -> Optional[Tensor]:
        """(T,) indices of one sentence in subwords drawn at random; None if they are more than allowed."""
        drawn = self.sampler.sample(self.sampler.text(self.text[index]), generator)
        return self.encode(drawn) if len(drawn) < self.most else None


class SampledSegmentations(BaseWrapperDataset):
    """Pairs of sentences whose subwords are drawn anew in each epoch, by (seed, epoch, index, side) alone.

    Sizes, and so batches, are those of the best segmentations; a batch of drawn ones is somewhat larger.
    """

    def __init__(self, dataset: LanguagePairDataset, sides: Dict[str, SampledSide], seed: int, epoch: int = 1):
        """sides: by "source" and "target"; one that is not there keeps its best segmentation."""
        super().__init__(dataset)
        self.sides, self.seed, self.epoch = sides, seed, epoch

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """No: the workers of a data loader that goes on never hear of another epoch."""
        return False

    def set_epoch(self, epoch: int) -> None:
        """What is drawn from now on is drawn for this epoch."""
        super().set_epoch(epoch)
        self.epoch = epoch

    def __getitem__(self, index: int) -> Dict[str, Any]:
        example = dict(self.dataset[index])
        for key, side in self.sides.items():
            generator = np.random.default_rng((self.seed, self.epoch, int(index), key == "target"))
            drawn = side.draw(int(index), generator)
            if drawn is not None:
                example[key] = drawn.to(example[key].dtype)
        return example


@register_task("translation_subword_regularization", dataclass=SubwordRegularizationConfig)
class SubwordRegularizationTask(TranslationTask):
    """fairseq's translation, with the training set's subwords drawn at random."""

    cfg: SubwordRegularizationConfig

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **options: Any) -> None:
        """Load a split; the training set is wrapped.

        Raises ValueError if options contradict each other, or if text, subword model, dictionary and binarised data
        do not belong together.
        """
        super().load_dataset(split, epoch=epoch, combine=combine, **options)
        if split != self.cfg.train_subset:
            return
        dataset = self.datasets[split]
        sides = self._sides()
        for key, side in sides.items():
            side.check(dataset.src if key == "source" else dataset.tgt)
        self.datasets[split] = SampledSegmentations(dataset, sides, self.cfg.seed, epoch)

    def _sides(self) -> Dict[str, SampledSide]:
        cfg = self.cfg
        if cfg.training_text is None or (cfg.source_subword_model is None and cfg.target_subword_model is None):
            raise ValueError("translation_subword_regularization: expected --training-text, and "
                             "--source-subword-model, --target-subword-model or both")
        for name in ("load_alignments", "truncate_source", "num_batch_buckets"):
            if getattr(cfg, name):
                raise ValueError(f"translation_subword_regularization: expected no --{name.replace('_', '-')}, which "
                                 "depends on the lengths of the binarised sentences")
        sampling = Sampling(cfg.sampling_alpha, cfg.sampling_nbest, cfg.bpe_dropout)
        sides = {}
        for key, model, language, dictionary, most in (
            ("source", cfg.source_subword_model, cfg.source_lang, self.src_dict, cfg.max_source_positions),
            ("target", cfg.target_subword_model, cfg.target_lang, self.tgt_dict, cfg.max_target_positions),
        ):
            if model is not None:
                sampler = load_sampler(model, dictionary, sampling)
                sides[key] = SampledSide(LineFile(f"{cfg.training_text}.{language}"), sampler, dictionary, most)
        return sides
