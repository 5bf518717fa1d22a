"""Talks of TED, of the campaigns IWSLT 2014 (Cettolo et al. 2014) and 2015.

    iwslt14-de-en        as in Edunov et al. (2018): titles and descriptions count as sentences; 1 to 175 Moses tokens
                         a side, neither side more than 1.5 times as long as the other; every 23rd pair validates;
                         dev2010, dev2012, tst2010, tst2011 and tst2012 are the test set; lower case; byte-pair encoding
                         of each language on its own, 9,000 and 7,000 types (Peng 2022, Table 4.2)
    iwslt14-de-en-joint  the same with one of both languages, 10,000 types, as in fairseq's recipe.  The two are rows of
                         different tables: figures of one say nothing of the other's
    iwslt14-es-en        documents, as in Miculicich et al. (2018) and Peng (2022, appendix B.1.2): talks stay whole and
                         in order; dev2010 validates, tst2010 to tst2012 test; truecased, joint encoding of 30,000 types
    iwslt15-en-vi        the tokenised text of Luong and Manning (2015): tst2012 validates, tst2013 tests

Deviations: sizes are numbers of subword types, where fairseq's recipe counts merges (some 150 fewer).  Moses tokens are
those of `subwords.moses_tokenizer`; the published numbers of pairs hold to one in a hundred.  The thesis gives 1,421, 8
and 42 documents of es-en in its appendix and 1,713, 8 and 56 in Table 5.3, so the numbers found are reported, not
checked.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from seqstruct.data.corpora import translation
from seqstruct.data.corpora.translation import Corpus, Pair, Variants, full
from seqstruct.data.downloads import Remote
from seqstruct.data.text.aligned import read_pairs
from seqstruct.data.text.parallel import SubwordOptions
from seqstruct.data.text.segments import read_aligned_segments
from seqstruct.data.text.subwords import moses_tokenizer

MOST_TOKENS, MOST_RATIO, HOLD_OUT = 175, 1.5, 23
EVALUATION = {
    "de-en": ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012"),
    "es-en": ("TED.dev2010", "TED.tst2010", "TED.tst2011", "TED.tst2012"),
}
MANUAL = (
    "get 2014-01.tgz from https://wit3.fbk.eu/2014-01 by a browser, take texts/{}/en/{}-en.tgz out of it and name the "
    "folder with that file by --from"
)
STANFORD = "https://nlp.stanford.edu/projects/nmt/data/iwslt15.en-vi"
VIETNAMESE = {
    "train.en": "c26dfeed74b6bf3752f5ca552f2412456f0de153f7c804df8717931fb3a5c78a",
    "train.vi": "707206edf2dc0280273952c7b70544ea8a1363aa69aaeb9d70514b888dc3067d",
    "tst2012.en": "b8fbcd0d4199d41276421d1f7228298df67dd9e2c5c134c2ee8cdf3ec27801e2",
    "tst2012.vi": "01004078b3f36b0c46e81b65fc6851230b3c823405c76d1d82ef3b786b512ff0",
    "tst2013.en": "3860ce60bc5b85d96cc2d3d580cf1bc9d62440e939c1b964676d3607c4e8f1df",
    "tst2013.vi": "29af16842808da2812b8fd4d47fc05d082ba870e60ab7755090ad04b380994cd",
}
_TEXT = re.compile(r"<(title|description)>(.*)</\1>\s*", re.DOTALL)


def read_talks(source: Path, target: Path, titles: bool) -> Iterator[Pair | None]:
    """The pairs of train.tags files; None begins a talk.  titles: whether its title and description are sentences.

    Raises ValueError naming the line where a talk begins on one side alone, and as `read_pairs` does.
    """
    for number, pair in enumerate(read_pairs(source, target, empty=True), 1):
        begins = [side.lstrip().startswith("<url>") for side in pair]
        if begins[0] != begins[1]:
            raise ValueError(f"{source}, line {number}: a talk begins here, or in {target}, but not in both")
        if begins[0]:
            yield None
        elif not any(side.lstrip().startswith("<") for side in pair):
            yield pair
        elif titles:
            texts = [_TEXT.fullmatch(side.strip()) for side in pair]
            if all(texts):
                yield texts[0][2], texts[1][2]


def clean(pairs: Iterable[Pair], languages: tuple[str, str]) -> Iterator[Pair]:
    """Those of 1 to 175 Moses tokens a side, neither side more than 1.5 times as long as the other."""
    tokenizers = [moses_tokenizer(language) for language in languages]
    for pair in pairs:
        lengths = [len(cut(side).split()) for cut, side in zip(tokenizers, pair, strict=True)]
        if 1 <= min(lengths) and max(lengths) <= MOST_TOKENS and max(lengths) <= MOST_RATIO * min(lengths):
            yield pair


def read_evaluation(files: Mapping[str, Path], name: str, languages: Sequence[str]) -> Iterator[Pair | None]:
    """The pairs of a test set, curly apostrophes as straight ones; None begins a talk."""
    for pair in full(read_aligned_segments(files, name, languages)):
        yield None if pair is None else (pair[0].replace("’", "'"), pair[1].replace("’", "'"))


def read_german(files: Mapping[str, Path]) -> dict[str, Iterable[Pair]]:
    def training(held_out: bool) -> Iterator[Pair]:
        talks = read_talks(files["train.de"], files["train.en"], titles=True)
        pairs = clean((pair for pair in full(talks) if pair is not None), ("de", "en"))
        return (pair for number, pair in enumerate(pairs, 1) if (number % HOLD_OUT == 0) == held_out)

    def test() -> Iterator[Pair]:
        for name in EVALUATION["de-en"]:
            yield from (pair for pair in read_evaluation(files, name, ("de", "en")) if pair is not None)

    return {"train": training(False), "valid": training(True), "test": test()}


def read_spanish(files: Mapping[str, Path]) -> dict[str, Iterable[Pair | None]]:
    """The splits of es-en, with documents."""
    def evaluation(names: Iterable[str]) -> Iterator[Pair | None]:
        for name in names:
            yield from read_evaluation(files, name, ("es", "en"))

    first, *rest = EVALUATION["es-en"]
    train = full(read_talks(files["train.es"], files["train.en"], titles=False))
    return {"train": train, "valid": evaluation([first]), "test": evaluation(rest)}


def read_vietnamese(files: Mapping[str, Path]) -> dict[str, Iterable[Pair]]:
    """The splits of en-vi, with XML's entities resolved."""
    def pairs(name: str) -> Iterator[Pair]:
        found = read_pairs(files[f"{name}.en"], files[f"{name}.vi"], empty=True)
        return full((html.unescape(en), html.unescape(vi)) for en, vi in found)

    return {split: pairs(name) for split, name in {"train": "train", "valid": "tst2012", "test": "tst2013"}.items()}


def _wanted(pair: str) -> dict[str, list[str]]:
    languages = pair.split("-")
    found = {f"train.{language}": [f"train.tags.{pair}.{language}"] for language in languages}
    for name in EVALUATION[pair]:
        found |= {f"{name}.{language}": [f"IWSLT14.{name}.{pair}.{language}.xml"] for language in languages}
    return found


def _german(name: str, vocabulary: int | tuple[int, int]) -> Corpus:
    return Corpus(
        name, SubwordOptions(("de", "en"), vocabulary=vocabulary, lowercase=True, max_length=1000, max_ratio=1000.0),
        (Remote("https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz",
                mirrors=(Remote("https://wit3.fbk.eu/archive/2014-01/texts/de/en/de-en.tgz"),)),),
        _wanted("de-en"), read_german, {"train": 160239, "valid": 7283, "test": 6750}, 0.01, MANUAL.format("de", "de"),
    )


_SPANISH = Corpus(
    "iwslt14-es-en", SubwordOptions(("es", "en"), vocabulary=30000, truecase=True, max_length=1000, max_ratio=1000.0),
    (Remote("https://wit3.fbk.eu/archive/2014-01/texts/es/en/es-en.tgz"),),
    _wanted("es-en"), read_spanish, manual=MANUAL.format("es", "es"),
)
_VIETNAMESE = Corpus(
    "iwslt15-en-vi", SubwordOptions(("en", "vi"), vocabulary=10000, max_length=1000, max_ratio=1000.0),
    tuple(Remote(f"{STANFORD}/{name}", digest) for name, digest in VIETNAMESE.items()),
    {name: [name] for name in VIETNAMESE}, read_vietnamese, {"train": 133317, "valid": 1553, "test": 1268}, 0.001,
    "the six files are of the IWSLT'15 English-Vietnamese data of https://nlp.stanford.edu/projects/nmt/",
)
VARIANTS = {
    "iwslt14": Variants(
        {"thesis": _german("iwslt14-de-en", (9000, 7000)), "fairseq": _german("iwslt14-de-en-joint", 10000)},
        "--recipe", "byte-pair encoding of each language, 9,000 and 7,000 types, or of both together, 10,000; results "
        "of one are not to be compared with those of the other",
    ),
    "iwslt14-documents": Variants({"es-en": _SPANISH}),
    "iwslt15": Variants({"en-vi": _VIETNAMESE}),
}
add_arguments, run = translation.command(VARIANTS)
