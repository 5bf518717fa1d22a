"""Translation of documents: windows of sentences, and in decoding one's own translations as the target's context.

Data are those of fairseq's `translation`, one by one, with SPLIT.docs (see `seqstruct.data.documents.dataset`).
In training and validation a window's target is all of its sentences.  In decoding the documents go on side by side,
sentence by sentence: the translations of the sentences before it in the window, a separator after each, are the prefix
of the target (Peng 2022, section 5.5.2), and only what follows them counts, up to a separator if one comes.

    fairseq-train data-bin/talks/bin --user-dir "$(seqstruct path)" --task document_translation \\
        --arch structured_transformer_abc_documents ...
    fairseq-generate data-bin/talks/bin --user-dir "$(seqstruct path)" --task document_translation --beam 5 ...

writes one hypothesis for each sentence, to be scored as any other.  Its score is the whole window's, of which
--max-len-a and --max-len-b are the limits too: where the context alone reaches them, a translation is empty.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from seqstruct.bridge.options import flag
from seqstruct.data.documents.dataset import DocumentPairs, SentenceWindows, TargetWindows, read_documents

SEPARATOR = "<sep>"


@dataclass
class DocumentTranslationConfig(TranslationConfig):
    window: int = flag(4, "sentences of a window, the translated one included, 1 or more")
    documents: Optional[str] = flag(
        None, "folder with SPLIT.docs, the number of sentences of each document (default: text/ beside the binarised "
              "data)"
    )


@register_task("document_translation", dataclass=DocumentTranslationConfig)
class DocumentTranslationTask(TranslationTask):
    """fairseq's translation of windows; `<sep>` is one more entry of both dictionaries."""

    cfg: DocumentTranslationConfig

    def __init__(self, cfg: DocumentTranslationConfig, src_dict: Dictionary, tgt_dict: Dictionary):
        super().__init__(cfg, src_dict, tgt_dict)
        if cfg.window < 1:
            raise ValueError(f"window: expected 1 or more sentences, got {cfg.window}")
        for name in ("load_alignments", "truncate_source", "num_batch_buckets", "left_pad_target"):
            if getattr(cfg, name):
                raise ValueError(f"document_translation: expected no --{name.replace('_', '-')}")
        self._translated: Dict[Tuple[int, int], Tensor] = {}  # by document and position, in the pass that decodes

    @classmethod
    def load_dictionary(cls, filename: str) -> Dictionary:
        dictionary = super().load_dictionary(filename)
        dictionary.add_symbol(SEPARATOR)
        return dictionary

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **options: Any) -> None:
        """Load a split as windows.

        Raises ValueError if there is no target, SPLIT.docs is missing or does not fit the text.
        """
        super().load_dataset(split, epoch=epoch, combine=combine, **options)
        pairs = self.datasets[split]
        if pairs.tgt is None:
            raise ValueError(f"document_translation: the split {split} has no target")
        shards = utils.split_paths(self.cfg.data)
        data = Path(shards[(epoch - 1) % len(shards) if split == self.cfg.train_subset else 0])
        folder = data.parent / "text" if self.cfg.documents is None else Path(self.cfg.documents)
        documents = read_documents(folder / f"{split}.docs", len(pairs))
        sides = []
        for kind, sentences, sizes, dictionary in (
            (SentenceWindows, pairs.src, pairs.src_sizes, self.src_dict),
            (TargetWindows, pairs.tgt, pairs.tgt_sizes, self.tgt_dict),
        ):
            separator = dictionary.index(SEPARATOR)
            windows = kind(sentences, sizes, documents.position, self.cfg.window, separator)
            sides += [windows, windows.sizes, dictionary]
        training = split == self.cfg.train_subset
        self.datasets[split] = DocumentPairs(
            documents, not training, *sides, left_pad_source=self.cfg.left_pad_source, left_pad_target=False,
            shuffle=training, pad_to_multiple=self.cfg.required_seq_len_multiple,
        )

    def get_batch_iterator(self, *args: Any, **options: Any) -> Any:
        """fairseq's; what was translated of another split, or by another model, is no context of what comes."""
        self._translated = {}
        return super().get_batch_iterator(*args, **options)

    def inference_step(
        self, generator: Any, models: Any, sample: Dict[str, Any], prefix_tokens: Any = None, constraints: Any = None
    ) -> List[List[Dict[str, Any]]]:
        """Translate the last sentence of each window; the sample's target becomes that sentence's.

        Raises ValueError if an earlier sentence of a document was not translated before, or a prefix is given.
        """
        if "document" not in sample:  # lines typed in: windows of one sentence
            return super().inference_step(generator, models, sample, prefix_tokens, constraints)
        if prefix_tokens is not None:
            raise ValueError("document_translation: expected no --prefix-size, the context is the prefix")
        places = list(zip(sample["document"].tolist(), sample["position"].tolist(), strict=True))
        prefixes = [self._context(*place) for place in places]
        padded = None
        if any(len(prefix) for prefix in prefixes):
            padded = pad_sequence(prefixes, batch_first=True, padding_value=self.tgt_dict.pad())
            padded = padded.to(sample["net_input"]["src_tokens"])
        hypotheses = super().inference_step(generator, models, sample, padded, constraints)
        for place, prefix, found in zip(places, prefixes, hypotheses, strict=True):
            for hypothesis in found:
                self._cut(hypothesis, len(prefix))
            tokens = found[0]["tokens"].cpu()
            self._translated[place] = tokens[tokens != self.tgt_dict.eos()]
        sample["target"] = self._last_sentences(sample["target"])
        return hypotheses

    def _context(self, document: int, position: int) -> Tensor:
        """The translations of the window's earlier sentences, a separator after each."""
        parts = [torch.zeros(0, dtype=torch.long)]
        for before in range(max(0, position - self.cfg.window + 1), position):
            if (document, before) not in self._translated:
                raise ValueError(
                    f"document {document + 1}, sentence {position + 1}: sentence {before + 1} has no translation yet; "
                    "decode a whole split in one process, without leaving out long sentences"
                )
            parts += [self._translated[document, before].long(), torch.tensor([self.tgt_dict.index(SEPARATOR)])]
        return torch.cat(parts)

    def _cut(self, hypothesis: Dict[str, Any], start: int) -> None:
        """Keep what was generated after `start` tokens, up to a separator, which becomes the EOS; in place."""
        tokens = hypothesis["tokens"]
        found = (tokens[start:] == self.tgt_dict.index(SEPARATOR)).nonzero()
        start = min(start, len(tokens) - 1)  # where the context alone fills the limit, its EOS is left
        end = start + int(found[0]) + 1 if len(found) else len(tokens)
        for name in ("tokens", "positional_scores"):
            hypothesis[name] = hypothesis[name][start:end].clone()
        hypothesis["tokens"][-1] = self.tgt_dict.eos()
        alignment = hypothesis.get("alignment")
        if isinstance(alignment, list):  # of pairs, or of the weights of each word
            hard = bool(alignment) and isinstance(alignment[0], tuple)
            hypothesis["alignment"] = (
                [(word, at - start) for word, at in alignment if start <= at < end - 1] if hard
                else alignment[start : end - 1]
            )
        if isinstance(hypothesis.get("attention"), Tensor) and hypothesis["attention"].dim() == 2:
            hypothesis["attention"] = hypothesis["attention"][:, start:end]

    def _last_sentences(self, target: Tensor) -> Tensor:
        """B T, padded on the right, of windows B S."""
        separator, pad = self.tgt_dict.index(SEPARATOR), self.tgt_dict.pad()
        sentences = []
        for row in target:
            ends = (row == separator).nonzero()
            sentence = row[int(ends[-1]) + 1 :] if len(ends) else row
            sentences.append(sentence[sentence != pad])
        return pad_sequence(sentences, batch_first=True, padding_value=pad)
