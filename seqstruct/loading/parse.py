"""Parsers of sentences, and the classifiers that see their trees."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from seqstruct.data.parsing.folder import FIELDS, read_split
from seqstruct.data.parsing.sentence import AnnotatedSentence
from seqstruct.data.parsing.tagger import Tagger
from seqstruct.loading.base import BATCH, Parse, TextModel, as_list, check_length
from seqstruct.scoring.parsers import predictions
from seqstruct.tasks.joint_parsing import JointParsingTask


class Parsing(TextModel):
    """Sentences in; trees, graphs and, where a corpus of the data has labels, classes out."""

    name, abilities = "parser", ("parse", "classify")

    @classmethod
    def fits(cls, model: Any, task: Any) -> bool:
        """The task joint_parsing."""
        return isinstance(task, JointParsingTask)

    @cached_property
    def needed(self) -> list[str]:
        """What the parsers read beside words, of lemmas and tags."""
        encoders = [self.model.tree_encoder, self.model.shared_encoder, *self.model.graph_encoders.values()]
        found = {field for encoder in encoders if encoder is not None
                 for field, table in zip(FIELDS, encoder.embeddings, strict=True) if table is not None}
        return [field for field in FIELDS if field in found and field != "words"]

    def parse(self, sentences: Any, *, batch_size: int = BATCH) -> Any:
        """Heads and labelled arcs of each sentence."""
        kinds = self.model.kinds
        graphs = [name for name, kind in kinds.items() if kind == "graphs"]
        if self.model.tree_encoder is None and not graphs:
            raise ValueError(f"{self.path}: a joint_parser of {', '.join(kinds)} alone does not parse: ask classify")
        read, alone = self._annotated(sentences)
        heads: list[Any] = [None] * len(read)
        if self.model.tree_encoder is not None:
            heads = [tuple(row.tolist()) for row in predictions(self.model, self.task, read, "trees", "", batch_size)]
        arcs = {name: self._arcs(name, read, batch_size) for name in graphs}
        found = [
            Parse(sentence.words, sentence.tags, heads[i], {name: of_all[i] for name, of_all in arcs.items()})
            for i, sentence in enumerate(read)
        ]
        return found[0] if alone else found

    def classify(self, texts: Any, *, batch_size: int = BATCH) -> Any:
        """The class of each sentence, for the data's corpus that has classes."""
        corpora = [name for name, kind in self.model.kinds.items() if kind == "classes"]
        if not corpora:
            raise ValueError(f"{self.path}: a parser of {', '.join(self.model.kinds)} has no classes: ask parse")
        read, alone = self._annotated(texts)
        labels = self.task.labels[corpora[0]]
        found = predictions(self.model, self.task, read, "classes", corpora[0], batch_size)
        named = [labels[int(number)] for number in found]
        return named[0] if alone else named

    def _arcs(self, name: str, read: Sequence[AnnotatedSentence], batch_size: int) -> list[list[tuple[int, int, str]]]:
        labels, found = self.task.labels[name], []
        for matrix in predictions(self.model, self.task, read, "graphs", name, batch_size):
            places = matrix.ge(0).nonzero().tolist()
            found.append([(head, dependent, labels[int(matrix[head, dependent])]) for head, dependent in places])
        return found

    def _annotated(self, sentences: Any) -> tuple[list[AnnotatedSentence], bool]:
        """The sentences with what the parsers read."""
        given, alone = as_list(sentences, (str, AnnotatedSentence), (list, tuple))
        return [self._complete(sentence, f"sentence {number}") for number, sentence in enumerate(given, 1)], alone

    def _complete(self, sentence: Any, place: str) -> AnnotatedSentence:
        if isinstance(sentence, AnnotatedSentence):
            check_length(len(sentence.words) + 1, None, place)
            lacking = [field for field in self.needed if len(getattr(sentence, field)) != len(sentence.words)]
            if lacking:
                raise ValueError(f"{place}: {self.path} reads {lacking[0]}, expected one for each word")
            return sentence
        words = self.source.encode(sentence) if isinstance(sentence, str) else list(sentence)
        if not all(isinstance(word, str) and word.strip() for word in words):
            raise ValueError(f"{place}: expected words, got {sentence!r:.60}")
        check_length(len(words) + 1, None, place)
        tags = tuple(self._tagger.tag(words)) if "tags" in self.needed else ()
        lemmas = tuple(self._lemmas.get(word, word.lower()) for word in words) if "lemmas" in self.needed else ()
        return AnnotatedSentence(tuple(words), lemmas, tags)

    @cached_property
    def _training(self) -> list[AnnotatedSentence]:
        """The training sentences of all corpora.  Raises ValueError if their files are not in the folder."""
        data, meta = self.task.cfg.data, self.task.meta
        try:
            return [sentence for name in meta["corpora"] for sentence in read_split(data, name, "train", meta)]
        except OSError as error:
            raise ValueError(f"{self.path} reads {' and '.join(self.needed)}, learnt from the training sentences, and "
                             f"there are none: {error}; an AnnotatedSentence brings its own") from None

    @cached_property
    def _tagger(self) -> Tagger:
        tagged = (sentence for sentence in self._training if sentence.tags)
        return Tagger(list(zip(sentence.words, sentence.tags, strict=True)) for sentence in tagged)

    @cached_property
    def _lemmas(self) -> dict[str, str]:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for sentence in self._training:
            for word, lemma in zip(sentence.words, sentence.lemmas, strict=False):
                counts[word][lemma] += 1
        return {word: found.most_common(1)[0][0] for word, found in counts.items()}
