"""Text as a corpus's preparation cuts it, there and back: one value for a side of a folder of `seqstruct prepare`.

    pipeline = read_pipeline("data-bin/multi30k", "de")
    pipeline.encode("Ein Hund schläft.")    # the tokens that text/SPLIT.de has, which the dictionary numbers
    pipeline.decode(tokens)                 # the sentence again

`decode` undoes subwords, begins sentences with a capital where training was truecased, and puts the punctuation of
Moses tokens back to their words; what preparation leaves out (case, rare words, numbers) does not come back.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from seqstruct.data.corpora.language_modeling import TextOptions, clean
from seqstruct.data.corpora.sentences import unknown_class
from seqstruct.data.files import read_json
from seqstruct.data.text import subwords
from seqstruct.data.text.byte_symbols import SYMBOLS, spell, unspell
from seqstruct.data.text.word_pairs import PROGRAMS, characters, segmented

DESCRIPTIONS = ("corpus.json", "meta.json", "nli.json", "corpora.json")
BINARISED = "bin"  # the folder below a prepared one that fairseq reads
INSIDE = (BINARISED, "mlm", "sst", "rte")  # the last three of `corpora.masked_sentences`
ROMANIAN = "wmt16-en-ro"  # of `corpora.wmt`
CLASSES, BYTES, UNMARKED = "classes", "bytes", "unmarked-characters"
_UNDO: Mapping[str, Callable[[str], str]] = {**subwords.UNDO, UNMARKED: subwords.undo_sentencepiece}
_LOAD: Mapping[str, Callable[[Any], Callable[[str], str]]] = {
    **subwords.LOAD,
    UNMARKED: lambda model: characters,
    CLASSES: lambda model: _load_classes(model),
    "": lambda model: str,
}


@dataclass(frozen=True)
class TextPipeline:
    """How a sentence becomes tokens.

    words: "moses" tokens, words that stand apart by "spaces" already, words by "kytea" or "mecab", or "" where
    subwords are cut from the text itself.  language: two-letter code, for Moses.  subwords: a kind of
    `subwords.KINDS`, characters whose first has no mark ("unmarked-characters"), "classes" of unknown words
    (`corpora.sentences`), "bytes", or "" for none.  model: the file of what subwords are cut by.  truecaser: the file
    of Moses's truecaser.  lowercase; numbers: whether they become N, as `corpora.language_modeling` has it; nfkc:
    whether Unicode is normalised so; deescape: whether the escapes of Moses are undone; commas: whether Romanian
    letters with a cedilla get a comma.  max_length: of "bytes", after which a text ends; 0 for none.  description: the
    file that said so.
    """

    words: str = "spaces"
    language: str = ""
    subwords: str = ""
    model: Path | None = None
    truecaser: Path | None = None
    lowercase: bool = False
    numbers: bool = False
    nfkc: bool = False
    deescape: bool = False
    commas: bool = False
    max_length: int = 0
    description: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that it was read from; a folder that has them under the same names gives the same pipeline, but of
        "bytes", which the dictionary beside tells."""
        return tuple(path for path in (self.description, self.model, self.truecaser) if path is not None)

    def encode(self, sentence: str) -> list[str]:
        """The tokens of a sentence, none of an empty one.  Raises ValueError if it is no string."""
        if not isinstance(sentence, str):
            raise ValueError(f"expected a sentence as a string, got {type(sentence).__name__}")
        if self.subwords == BYTES:
            return spell(sentence.encode()[: self.max_length or None])
        line = subwords.deescape(sentence) if self.deescape else sentence
        line = unicodedata.normalize("NFKC", line) if self.nfkc else line
        line = subwords.with_commas(line) if self.commas else line
        line = subwords.normalize_spaces(line)
        line = line.lower() if self.lowercase else line
        for step in self._steps:
            line = step(line) if line else ""
        return line.split()

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: steps are functions, which are no part of a pickle."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def decode(self, tokens: Sequence[str]) -> str:
        """The sentence of tokens.  Raises ValueError on a token of no byte where tokens are bytes."""
        if self.subwords == BYTES:
            return unspell(list(tokens)).decode(errors="replace")
        line = " ".join(tokens)
        for step in self._steps_back:
            line = step(line)
        return line

    @cached_property
    def _steps(self) -> list[Callable[[str], str]]:
        steps: list[Callable[[str], str]] = []
        if self.words == "moses":
            steps.append(subwords.moses_tokenizer(self.language))
        elif self.words in PROGRAMS:
            steps.append(lambda line: next(segmented([line], self.words, self.language)))
        if self.numbers:
            steps.append(lambda line: next(clean([line], TextOptions(lowercase=True))))
        if self.truecaser is not None:
            steps.append(subwords.load_truecase(self.truecaser))
        return [*steps, _LOAD[self.subwords](self.model)]

    @cached_property
    def _steps_back(self) -> list[Callable[[str], str]]:
        steps = [_UNDO.get(self.subwords, str)]
        if self.truecaser is not None:
            steps.append(subwords.undo_truecase)
        if self.words == "moses":
            steps.append(subwords.moses_detokenizer(self.language))
        elif self.words in PROGRAMS:
            steps.append(lambda line: line.replace(" ", ""))
        return steps


def find_description(places: Sequence[str | os.PathLike]) -> Path:
    """What describes a prepared folder: the first of `DESCRIPTIONS` in these places; where one is a folder of `INSIDE`
    or lies in it, also in the folder above.

    Raises ValueError that says what was looked for, and where.
    """
    tried: list[Path] = []
    for place in map(Path, places):
        above = [folder.parent for folder in (place, place.absolute().parent) if folder.name in INSIDE]
        for folder in (place, *above):
            tried.append(folder)
            for name in DESCRIPTIONS:
                if (folder / name).is_file():
                    return folder / name
    raise ValueError(f"how text becomes tokens is not known: looked for {', '.join(DESCRIPTIONS)}, which `seqstruct "
                     f"prepare` writes, in {', '.join(dict.fromkeys(map(str, tried)))}")


def read_pipeline(folder: str | os.PathLike, language: str | None = None) -> TextPipeline:
    """The pipeline of a folder of `seqstruct prepare`, or of the bin/ in it.

    language: which side, where there are two.  Raises ValueError if nothing describes the folder, the description is
    damaged, it has no such side, or the model of its subwords or the truecaser is not beside it.
    """
    path = find_description([folder])
    try:
        content = read_json(path)
        options = content.get("options", {})
        if "languages" in options:
            return _of_pair(path, content, language)
        return _of_text(path, content)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is truncated or altered: {error!r}") from None


def _of_pair(path: Path, content: Mapping[str, Any], language: str | None) -> TextPipeline:
    """Of `parallel.SubwordOptions` or `word_pairs.WordPairOptions`."""
    options = content["options"]
    languages = list(options["languages"])
    if language not in languages:
        raise ValueError(f"{path}: expected a language of {', '.join(languages)}, got {language!r}")
    side = languages.index(language)
    common = dict(language=language, lowercase=bool(options["lowercase"]), description=path)
    if "units" in options:
        unit = options["units"][side]
        if unit == "characters":
            return TextPipeline(words="", subwords=UNMARKED, **common)
        return TextPipeline(words=unit, **common)
    kinds = options["subwords"]
    kind = kinds if isinstance(kinds, str) else kinds[side]
    of_words, name = subwords.KINDS[kind]
    own = "" if isinstance(options["vocabulary"], int) else f".{language}"
    truecaser = _beside(path, f"truecase.{language}") if options.get("truecase") else None
    return TextPipeline(
        words="moses" if of_words else "",
        subwords=kind,
        model=_beside(path, name.replace("%s", own)) if name else None,
        truecaser=truecaser,
        nfkc=content.get("normalization") == "NFKC",
        deescape=options.get("escapes") == "undo",
        commas=language == "ro" and content.get("corpus") == ROMANIAN,
        **common,
    )


def _of_text(path: Path, content: Mapping[str, Any]) -> TextPipeline:
    """Of any other folder: one text, or several that are cut alike."""
    symbols = _symbols(path.parent)
    if symbols is not None and _types(symbols)[: len(SYMBOLS)] == list(SYMBOLS):
        return TextPipeline(subwords=BYTES, max_length=content.get("max_length", 0), description=path)
    if "classes" in (content.get("types") or {}):
        if symbols is None:
            raise ValueError(f"{path.parent}: expected the dictionary, dict.txt, there or in {BINARISED}")
        return TextPipeline(subwords=CLASSES, model=symbols, description=path)
    if content.get("encoding"):
        raise ValueError(f"{path}: text is in the encoding {content['encoding']}, which the folder does not hold")
    codes = path.parent / content.get("codes", subwords.KINDS["bpe"][1].replace("%s", ""))
    cut = content.get("cut") or {}
    return TextPipeline(
        words="moses" if cut.get("language") else "spaces",
        language=cut.get("language") or "",
        subwords="bpe" if codes.is_file() else "",
        model=codes if codes.is_file() else None,
        lowercase=bool(cut.get("lowercase", path.name == "nli.json" and content["lowercase"])),
        numbers=bool((content.get("options") or {}).get("lowercase")),
        description=path,
    )


def _beside(path: Path, name: str) -> Path:
    if not (path.parent / name).is_file():
        raise ValueError(f"{path.parent / name} is missing, and {path.name} beside it says that text was cut by it")
    return path.parent / name


def _symbols(folder: Path) -> Path | None:
    """The dictionary of a folder of one text."""
    found = [folder / "dict.txt", *(folder / BINARISED / part / "dict.txt" for part in ("", "0"))]
    return next((path for path in found if path.is_file()), None)


def _types(path: Path) -> list[str]:
    with open(path, encoding="utf-8", newline="\n") as stream:
        return [line.rpartition(" ")[0] for line in stream]


def _load_classes(path: Path) -> Callable[[str], str]:
    """A function from words to the same with `unknown_class` of each that the dictionary lacks, or the plainest."""
    types = set(_types(path))

    def classed(word: str) -> str:
        found = unknown_class(word, types)
        return found if found in types else "UNK"

    return lambda line: " ".join(word if word in types else classed(word) for word in line.split())
