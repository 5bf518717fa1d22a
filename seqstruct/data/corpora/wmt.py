"""News translation, WMT 2014 (Bojar et al. 2014) and 2016.

    wmt14-en-de  Europarl v7, Common Crawl and News Commentary v9, 4.5 million pairs
    wmt14-en-fr  those, the UN corpus and 10^9 French-English, 41 million pairs
    wmt16-en-ro  Europarl v8 and SETIMES 2, 0.6 million pairs; Romanian letters with cedilla get a comma, as Sennrich et
                 al. (2016) have it

For 2014 newstest2013 validates and newstest2014 (all 3,003 sentences) tests, as in Vaswani et al. (2017); for 2016 they
are newsdev2016 and newstest2016.  Byte-pair encoding is of both languages together, 32,768 types (Peng 2022, sections
4.4.2 and 5.5.2) and 40,000 for Romanian (Gehring et al. 2017).  Pairs with an empty side are dropped, and those of more
than 250 subwords or with one side 1.5 times as long as the other.  Vaswani et al. published no cleaning: these limits
are fairseq's.  The sources give 36 million pairs of en-fr after theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from seqstruct.data.corpora import translation
from seqstruct.data.corpora.translation import Corpus, Pair, Variants, full
from seqstruct.data.downloads import Remote
from seqstruct.data.text.aligned import read_pairs
from seqstruct.data.text.parallel import SubwordOptions
from seqstruct.data.text.segments import news_archive, read_news
from seqstruct.data.text.subwords import with_commas

MIRROR = "https://huggingface.co/datasets/wmt"
MANUAL = "the archives are linked from https://www.statmt.org/wmt{}/translation-task.html; name their folder by --from"


def _remote(path: str, checksum: str, mirror_checksum: str, end: str = ".tgz", site: str = "www") -> Remote:
    year, name = path.split("/", 1)
    mirror = Remote(f"{MIRROR}/{year}/resolve/main-zip/{name}.zip", mirror_checksum)
    return Remote(f"https://{site}.statmt.org/{path}{end}", checksum, mirrors=(mirror,))


EUROPARL = _remote(
    "wmt13/training-parallel-europarl-v7", "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
    "5b2d8b32c2396da739b4e731871c597fcc6e75729becd74619d0712eecf7770e",
)
COMMON_CRAWL = _remote(
    "wmt13/training-parallel-commoncrawl", "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
    "5ffe980072ea29adfd84568d099bea366d9f72772b988e670794ae851b4e5627",
)
NEWS_COMMENTARY = _remote(
    "wmt14/training-parallel-nc-v9", "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
    "ce199f93ec56ff480137ba29f0819f9a22e70d88be6d7458f112303d67d623d5",
)
UNITED_NATIONS = _remote(
    "wmt13/training-parallel-un", "",
    "74f07002e053c81bc7f73b4fdab58e7987e831338748f264cbda82a8b062d2e2",
)
GIGA = _remote(
    "wmt10/training-giga-fren", "",
    "9439f86523e5dff3f923526dbf6c6929da1786c18dbf64436d2b7564b83aaba3", ".tar",
)
EUROPARL_8 = _remote(
    "wmt16/translation-task/training-parallel-ep-v8",
    "8917bd3bef3bc894c8519ca1f8a4c7c330aad08a1263655a9d99ee13d532e3c7",
    "387e570a6812948e30c64885e64a1d3735a66b7c0bc424fcff1208ef11110149", site="data",
)
SETIMES = Remote(
    "https://object.pouta.csc.fi/OPUS-SETIMES/v2/moses/en-ro.txt.zip",
    mirrors=(Remote("https://opus.nlpl.eu/download.php?f=SETIMES/v2/moses/en-ro.txt.zip", name="en-ro.txt.zip"),),
)
NEWS_MIRROR = Remote(  # of all years
    f"{MIRROR}/wmt19/resolve/main-zip/translation-task/dev.zip",
    "d796e363740fdc4261aa6f5a3d2f8223e3adaee7d737b7724863325b8956dfd1",
)
ARCHIVES = {14: ("wmt13", "wmt14/full"), 16: ("wmt16/dev", "wmt16")}  # of news, as sacreBLEU names them


def _wanted(language: str, training: Iterable[str], valid: str, test: str) -> dict[str, list[str]]:
    """Files of English and another language; sets of news are plain, or .sgm by the pair they were made for."""
    found = {}
    for side in ("en", language):
        for name in training:
            found[f"{name}.{side}"] = [f"{name}.{side}"]
        for name in (valid, test):
            found[f"{name}.{side}"] = [f"{name}.{side}"] + [
                f"{name}{pair}-{kind}.{side}.sgm" for pair in (f"-{language}en", "") for kind in ("src", "ref")
            ]
    return found


def _pairs(files: Mapping[str, Path], language: str, training: Iterable[str]) -> Iterator[Pair]:
    for name in training:
        yield from full(read_pairs(files[f"{name}.en"], files[f"{name}.{language}"], empty=True))


def _corpus(
    name: str, language: str, training: tuple[str, ...], remotes: tuple[Remote, ...], vocabulary: int,
    news: tuple[str, str], counts: tuple[int, int, int], year: int,
) -> Corpus:
    valid, test = news
    archives = tuple(replace(news_archive(each), mirrors=(NEWS_MIRROR,)) for each in ARCHIVES[year])

    def read(files: Mapping[str, Path]) -> dict[str, Iterable[Pair]]:
        splits = {"train": _pairs(files, language, training), "valid": full(read_news(files, valid, ("en", language))),
                  "test": full(read_news(files, test, ("en", language)))}
        if language != "ro":
            return splits
        return {split: ((en, with_commas(ro)) for en, ro in pairs) for split, pairs in splits.items()}

    return Corpus(
        name, SubwordOptions(("en", language), vocabulary=vocabulary, max_length=250, max_ratio=1.5),
        (*remotes, *archives), _wanted(language, training, valid, test), read,
        dict(zip(("train", "valid", "test"), counts, strict=True)), 0.001, MANUAL.format(year),
    )


_GERMAN = _corpus(
    "wmt14-en-de", "de", ("europarl-v7.de-en", "commoncrawl.de-en", "news-commentary-v9.de-en"),
    (EUROPARL, COMMON_CRAWL, NEWS_COMMENTARY), 32768, ("newstest2013", "newstest2014"), (4508785, 3000, 3003), 14,
)
_FRENCH = _corpus(
    "wmt14-en-fr", "fr", (
        "europarl-v7.fr-en", "commoncrawl.fr-en", "news-commentary-v9.fr-en", "undoc.2000.fr-en",
        "giga-fren.release2.fixed",
    ),
    (EUROPARL, COMMON_CRAWL, NEWS_COMMENTARY, UNITED_NATIONS, GIGA), 32768, ("newstest2013", "newstest2014"),
    (40836715, 3000, 3003), 14,
)
_ROMANIAN = _corpus(
    "wmt16-en-ro", "ro", ("europarl-v8.ro-en", "SETIMES.en-ro"), (EUROPARL_8, SETIMES), 40000,
    ("newsdev2016", "newstest2016"), (612422, 1999, 1999), 16,
)
VARIANTS = {
    "wmt14": Variants({"en-de": _GERMAN, "en-fr": _FRENCH}, "--pair", "languages, 1.7 and 6.7 GB to download"),
    "wmt16": Variants({"en-ro": _ROMANIAN}),
}
add_arguments, run = translation.command(VARIANTS)
