"""Language modeling of context-free languages, the five of Stack Attention (DuSell and Chiang 2024), section 6, or ones
of one's own.

docs/tutorials/formal_languages.md trains a model; configs/stack_attention/cfl has the training of appendix D, with
fairseq's own optimizer and schedule (`adam` with its default betas; the learning rate is drawn log-uniformly for each
run).

The released code steps the schedule with the perplexity of a symbol and calls it an improvement when it falls by more
than a 10,000th, which is the default of `--lr-threshold`; hence `--best-checkpoint-metric perplexity`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Optional

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import register_task
from torch import Tensor

from seqstruct.bridge.options import flag
from seqstruct.bridge.patches.processes import evaluated
from seqstruct.data.cfl.dataset import CFLDataset
from seqstruct.data.cfl.folder import DICTIONARY, language_of, read_meta, read_split
from seqstruct.tasks.folder_task import FolderTask


@dataclass
class CFLLanguageModelingConfig(FairseqDataclass):
    data: Optional[str] = flag(None, "folder made by `seqstruct prepare cfl`")
    tokens_per_sample: int = flag(512, "positions of the model: longest string it takes, in symbols, and one (> 1)")
    max_target_positions: Optional[int] = flag(
        None, "the same, under the name that models read (default: tokens_per_sample)"
    )
    add_bos_token: bool = flag(
        False, "has no effect: every string starts with BOS. Models of fairseq ask for the option"
    )


@register_task("cfl_language_modeling", dataclass=CFLLanguageModelingConfig)
class CFLLanguageModelingTask(FolderTask):
    """Strings of one length in a batch, BOS before and EOS after, with their true log-probabilities.

    meta: the folder's description.  language: what it is a sample of.  lengths: all that its strings may have.
    """

    cfg: CFLLanguageModelingConfig
    needs = "cfl_language_modeling needs a folder made by `seqstruct prepare cfl`"

    def __init__(self, cfg: CFLLanguageModelingConfig):
        super().__init__(cfg)
        self.meta = meta = read_meta(cfg.data)
        self.dictionary = self.target = Dictionary.load(str(Path(cfg.data) / DICTIONARY))
        self.language = language_of(cfg.data, meta)
        ranges = meta["lengths"], meta["test_lengths"]
        self.lengths = sorted({length for low, high in ranges for length in self.language.valid_lengths(low, high)})

    def load_dataset(self, split: str, epoch: int = 1, **_: Any) -> None:
        """Read a split: train, valid or test.  Raises ValueError if a file is missing, truncated or altered."""
        strings, log_probability = read_split(self.cfg.data, split, self.meta)
        lengths = self.meta["valid_length_counts"][split]
        self.datasets[split] = CFLDataset(strings, self.dictionary, self.meta["batch"], log_probability, lengths)

    def filter_indices_by_size(
        self,
        indices: np.ndarray,
        dataset: CFLDataset,
        max_positions: Optional[int] = None,
        ignore_invalid_inputs: bool = False,
    ) -> np.ndarray:
        """The indices of strings that the model has positions for.

        Raises ValueError if there are longer ones, unless they are to be ignored.
        """
        longest = int(dataset.sizes[indices].max(initial=0))
        if max_positions is not None and longest > max_positions and not ignore_invalid_inputs:
            raise ValueError(
                f"a string of {longest - 1} symbols is too long for a model with {max_positions} positions; "
                "--tokens-per-sample sets them in training, and --skip-invalid-size-inputs-valid-test leaves such "
                "strings out, which fairseq-eval-lm alone does not take"
            )
        return super().filter_indices_by_size(indices, dataset, max_positions, ignore_invalid_inputs)

    def eval_lm_dataloader(
        self, dataset: CFLDataset, batch_size: Optional[int] = None, context_window: int = 0, num_shards: int = 1,
        shard_id: int = 0, **options: Any,
    ) -> Any:
        """Batches for fairseq-eval-lm; its loss is in bits, of the symbols and EOS.

        Raises ValueError with a context window: each string is one sequence of its own.
        """
        if context_window > 0:
            raise ValueError("--context-window has no meaning here: each string is a sequence of its own")
        shard = evaluated(num_shards, shard_id)
        batches = self.get_batch_iterator(dataset=dataset, max_sentences=batch_size, **shard, **options)
        return batches.next_epoch_itr(shuffle=False)

    def build_dataset_for_inference(self, src_tokens: List[Tensor], src_lengths: List[int], **_: Any) -> CFLDataset:
        """Prefixes to go on from, as fairseq-interactive reads them: dictionary ids, with or without EOS.

        Raises ValueError if a symbol is not one of the language.
        """
        first = self.dictionary.nspecial
        prefixes = []
        for number, tokens in enumerate(src_tokens, 1):
            symbols = tokens[tokens != self.dictionary.eos()]
            if (symbols < first).any():
                raise ValueError(
                    f"prefix {number} has a symbol that is not one of {self.language.name}: "
                    + " ".join(self.language.terminals)
                )
            prefixes.append(np.asarray(symbols - first))
        return CFLDataset(prefixes, self.dictionary, max(1, len(prefixes)))

    def inference_step(
        self,
        generator: Any,
        models: List[Any],
        sample: dict,
        prefix_tokens: Optional[Tensor] = None,
        constraints: Optional[Tensor] = None,
    ) -> Any:
        """Strings that go on from a prefix: prefix_tokens (--prefix-size of fairseq-generate), else the whole source.

        Raises ValueError with constraints.
        """
        if constraints is not None:
            raise ValueError("constrained decoding is not offered for language models")
        if prefix_tokens is None:
            prefix_tokens = sample["net_input"]["src_tokens"][:, 1:]
        if prefix_tokens.size(1) == 0:
            prefix_tokens = None
        with torch.no_grad():
            return generator.generate(models, sample, prefix_tokens=prefix_tokens, bos_token=self.dictionary.bos())
