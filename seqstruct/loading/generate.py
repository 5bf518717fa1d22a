"""Language models of text."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from seqstruct.data.text.trees import binary_tree, bracketed
from seqstruct.loading.base import BATCH, Parse, Text, TextModel, as_list
from seqstruct.loading.search import best, check_options
from seqstruct.scoring.parsers import batches, model_parser
from seqstruct.scoring.trained import symbols_before
from seqstruct.tasks.recognition import RecognitionTask
from seqstruct.tasks.symbol_tagging import SymbolTaggingTask

OTHER_OUTPUTS = (RecognitionTask, SymbolTaggingTask)  # what these ask of a language model is no next symbol


class Generating(TextModel):
    """A decoder alone: the beginning of a text in, the text out."""

    name, abilities = "language model", ("generate", "score")

    @classmethod
    def fits(cls, model: Any, task: Any) -> bool:
        """A language model, with a dictionary, that was trained to say what comes next."""
        from fairseq.models import FairseqLanguageModel

        predicts = task.target_dictionary is not None and not isinstance(task, OTHER_OUTPUTS)
        return isinstance(model, FairseqLanguageModel) and predicts

    def generate(
        self, prefix: Text = "", beam: int = 1, *, batch_size: int = BATCH, seed: int = 1, **options: Any
    ) -> Any:
        texts, alone = as_list(prefix)
        prefixes = [self._of(text, f"prefix {number}", empty=True) for number, text in enumerate(texts, 1)]
        dictionary = self.task.target_dictionary
        check_options(options, len(dictionary))
        for number, ids in enumerate(prefixes, 1):  # which fairseq would cut
            if int(ids.max()) >= len(dictionary):
                word = self.task.source_dictionary[int(ids.max())]
                raise ValueError(f"prefix {number}: {word} is not among the {len(dictionary)} words that come out")
            most = options.get("max_len_a", 0) * len(ids) + options.get("max_len_b", 200)
            if len(ids) - 1 > most and not options.get("match_source_len"):
                raise ValueError(f"prefix {number} has {len(ids) - 1} tokens, and max_len_b and max_len_a allow "
                                 f"{most:g}")
        found = best(self, prefixes, beam, batch_size, seed, options)
        continued = [self.target.decode(symbols) for symbols in found]
        return continued[0] if alone else continued

    @torch.inference_mode()
    def score(self, texts: Text, translations: None = None, *, batch_size: int = BATCH) -> Any:
        """log P(text) in nats, its end included; as fairseq-eval-lm with --sample-break-mode eos has it, but for the
        beginning of sentence that --add-bos-token puts before each text, which is not counted.  Words that the output
        has not are its unknown word."""
        sentences, alone = as_list(texts)
        if translations is not None:
            raise ValueError("a language model scores texts, and takes no translations")
        before = torch.tensor(symbols_before(self.task), device=self.device)
        targets = [self._of(text, f"text {number}", more=len(before) - 1) for number, text in enumerate(sentences, 1)]
        dictionary, found = self.task.target_dictionary, {}
        for chosen in batches([len(target) for target in targets], batch_size):
            target = pad_sequence([targets[i] for i in chosen], True, dictionary.pad()).to(self.device)
            padding = target.eq(dictionary.pad())
            source = target[:, :-1].masked_fill(padding[:, 1:], dictionary.pad())
            source = torch.cat([before.expand(len(chosen), -1), source], 1)
            lengths = (~padding).sum(1) + len(before) - 1
            target = target.masked_fill(target >= len(dictionary), dictionary.unk())
            sample = {"target": torch.cat([before[1:].expand(len(chosen), -1), target], 1)}
            scores = self.model.get_normalized_probs(self.model(source, src_lengths=lengths), True, sample)
            scores = scores[:, len(before) - 1 :].gather(2, target.unsqueeze(2)).squeeze(2).masked_fill(padding, 0.0)
            found |= dict(zip(chosen, scores.double().sum(1).tolist(), strict=True))
        scored = [found[index] for index in range(len(targets))]
        return scored[0] if alone else scored

    def parse(self, sentences: Any, *, batch_size: int = BATCH) -> Any:
        """The binary tree of each sentence, of models with span attention or syntactic distances."""
        if not hasattr(self.model.decoder, "splits"):
            raise self._cannot("parse")
        texts, alone = as_list(sentences)
        parser, found = model_parser(self.model, self.task.source_dictionary), []
        for number, text in enumerate(texts, 1):
            self._of(text, f"sentence {number}")
            words = self.source.encode(text)
            found.append(Parse(tuple(words), brackets=bracketed(binary_tree(words, parser(words)))))
        return found[0] if alone else found

    def _of(self, text: str, place: str, empty: bool = False, more: int = 0) -> torch.Tensor:
        limit = self.model.max_positions()
        limit = limit if limit is None else limit - more
        return self._ids(self.source.encode(text), self.task.source_dictionary, limit, place, empty)
