"""Translation scores through sacreBLEU, whole or by sentence length, and paired bootstrap resampling of two systems.

bleu: Papineni et al. (2002) with sacreBLEU's tokenisation (Post 2018).  chrf: Popovic (2015).  ter: translation edit
rate (Snover et al. 2006), where less is better.  Paired bootstrap: Koehn (2004).  These are sacreBLEU's own code; the
signature says the settings and its version.

tokenized_bleu: BLEU as papers before 2018 report it, over the Moses tokens of both sides and without smoothing.  It
depends on the tokeniser, and is comparable only with numbers computed in the same way; the signature names it.
exact_match: share of lines that are a reference, word by word.
gleu: corpus GLEU (Wu et al. 2016) times 100 over sacreBLEU's tokens, the best reference of each sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

UNITS = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER", "tokenized_bleu": "BLEU", "gleu": "GLEU", "exact_match": "%"}
METRICS = tuple(UNITS)
# The two that papers ask for; ter takes many times as long as both together.
DEFAULT_METRICS = ("bleu", "chrf")


@dataclass(frozen=True)
class Score:
    """One metric of one system on a corpus.

    value: 0 to 100, ter above 100 where a hypothesis is far longer than its reference.  signature: sacreBLEU's.
    details: n-gram precisions and lengths where the metric has them.
    """

    metric: str
    value: float
    signature: str
    details: str


@dataclass(frozen=True)
class Comparison:
    """A system against a baseline in one metric, by paired bootstrap.

    value, baseline: 0 to 100.  interval, baseline_interval: half-width of the 95 % confidence interval.
    p_value: (n + 1) / (resamples + 1), n counting those in which the size of the difference, less its mean, exceeds the
    observed one: of one side, so that of two systems that are equal it is below 0.05 about once in ten times.
    """

    metric: str
    value: float
    interval: float
    baseline: float
    baseline_interval: float
    p_value: float
    signature: str


@dataclass(frozen=True)
class LengthGroup:
    """The sentences of some lengths.

    least, most: lengths in words, both included; most is None for the last group, which has no end.
    scores: empty where there are no sentences.
    """

    least: int
    most: int | None
    sentences: int
    scores: list[Score]


@dataclass(frozen=True)
class NamedGroup:
    """The sentences of a name, or the mean over groups.

    groups: 1, or of how many this is the mean.  values: by metric, over all sentences of a group alike.
    """

    name: str
    groups: int
    sentences: int
    values: dict[str, float]


def _metrics(names: Sequence[str], lowercase: bool, tokenize: str, language: str | None) -> dict:
    """sacreBLEU's metric objects by name; a ValueError for an unknown name or a tokeniser that is not there."""
    from sacrebleu.metrics import BLEU, CHRF, TER

    from seqstruct.scoring.metrics import CorpusGLEU, ExactMatch, TokenizedBLEU

    unknown = [name for name in names if name not in METRICS]
    if unknown or not names:
        raise ValueError(f"metrics: expected some of {', '.join(METRICS)}, got {', '.join(unknown) or 'none'}")
    if {"bleu", "gleu"} & set(names) and tokenize not in BLEU.TOKENIZERS:
        raise ValueError(f"tokenize: expected one of {', '.join(BLEU.TOKENIZERS)}, got {tokenize!r}")
    if "tokenized_bleu" in names and not language:
        raise ValueError("tokenized_bleu: expected the language of the text, for Moses to tokenise it, got none")
    build = {
        "bleu": lambda: BLEU(lowercase=lowercase, tokenize=tokenize),
        "chrf": lambda: CHRF(lowercase=lowercase),
        "ter": lambda: TER(case_sensitive=not lowercase),
        "tokenized_bleu": lambda: TokenizedBLEU(language, lowercase),
        "gleu": lambda: CorpusGLEU(lowercase, tokenize),
        "exact_match": lambda: ExactMatch(lowercase),
    }
    try:
        return {name: build[name]() for name in names}
    except RuntimeError as error:  # a tokeniser's package is missing
        raise ValueError(f"tokenize: {tokenize}: {' '.join(str(error).split())}") from None


def _check(hypotheses: Sequence[str], references: Sequence[Sequence[str]], name: str) -> None:
    if not references or not references[0]:
        raise ValueError("references: expected one line or more, got none")
    for number, reference in enumerate(references, 1):
        if len(reference) != len(hypotheses):
            raise ValueError(f"{name}: {len(hypotheses)} lines, but reference {number} has {len(reference)}")


def _details(name: str, found: Any) -> str:
    if name == "ter":
        return f"({found.num_edits} edits for {found.ref_length:g} words)"
    if name not in ("bleu", "tokenized_bleu"):
        return ""
    precisions = "/".join(f"{p:.1f}" for p in found.precisions)
    return f"{precisions} (brevity penalty {found.bp:.3f}, {found.sys_len} words for {found.ref_len})"


def score(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[str] = DEFAULT_METRICS,
    lowercase: bool = False,
    tokenize: str = "13a",
    language: str | None = None,
) -> list[Score]:
    """Score one system's text.

    hypotheses: one detokenised line a sentence.  references: one list or several, each as long as the hypotheses, raw.
    metrics: some of METRICS.  lowercase: score without regard to case.  tokenize: sacreBLEU's name of the tokeniser
    inside bleu and gleu.  language: two-letter code for Moses, which tokenized_bleu needs.
    Raises ValueError for unequal counts, no lines, or an unknown metric or tokeniser.
    """
    _check(hypotheses, references, "hypotheses")
    results = []
    for name, metric in _metrics(metrics, lowercase, tokenize, language).items():
        found = metric.corpus_score(list(hypotheses), [list(r) for r in references])
        results.append(Score(name, found.score, str(metric.get_signature()), _details(name, found)))
    return results


def score_by_length(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], lengths: Sequence[int], edges: Sequence[int],
    *settings: Any, **named: Any,
) -> list[LengthGroup]:
    """Score sentences in groups by length, as in the figures of Bahdanau et al. (2015) and Luong et al. (2015).

    lengths: of each sentence in words, of whichever side.  edges: the greatest length of each group but the last, 1 or
    more and ascending; a last group holds all longer sentences.  settings, named: of `score`, called once a group.
    Raises ValueError as `score` does, and for other edges or as many lengths as there are not sentences.
    """
    _check(hypotheses, references, "hypotheses")
    if len(lengths) != len(hypotheses):
        raise ValueError(f"lengths: expected {len(hypotheses)}, as there are sentences, got {len(lengths)}")
    if not edges or any(high <= low for low, high in zip([0, *edges], edges, strict=False)):
        raise ValueError(f"edges: expected ascending lengths of 1 word or more, got {' '.join(map(str, edges))}")
    groups = []
    for low, high in zip([0, *[edge + 1 for edge in edges]], [*edges, None], strict=True):
        chosen = [i for i, n in enumerate(lengths) if low <= n and (high is None or n <= high)]
        parts = [hypotheses[i] for i in chosen], [[r[i] for i in chosen] for r in references]
        groups.append(LengthGroup(low, high, len(chosen), score(*parts, *settings, **named) if chosen else []))
    return groups


def score_by_group(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], names: Sequence[str], *settings: Any, **named: Any
) -> list[NamedGroup]:
    """Score the sentences of each name together, in the order in which the names appear; then, for what stands before
    the first "/" of names, the means over its groups.

    settings, named: of `score`, called once a group.  Raises ValueError as `score` does, and for as many names as there
    are not sentences.
    """
    _check(hypotheses, references, "hypotheses")
    if len(names) != len(hypotheses):
        raise ValueError(f"groups: expected {len(hypotheses)}, as there are sentences, got {len(names)}")
    groups, kinds = [], {}
    for name in dict.fromkeys(names):
        chosen = [i for i, other in enumerate(names) if other == name]
        parts = [hypotheses[i] for i in chosen], [[r[i] for i in chosen] for r in references]
        values = {s.metric: s.value for s in score(*parts, *settings, **named)}
        groups.append(NamedGroup(name, 1, len(chosen), values))
        kind, slash, _ = name.partition("/")
        kinds.setdefault(kind, []).extend(groups[-1:] if slash else [])
    for kind, of in kinds.items():
        if of:
            values = {metric: fmean(group.values[metric] for group in of) for metric in of[0].values}
            groups.append(NamedGroup(kind, len(of), sum(group.sentences for group in of), values))
    return groups


def compare(
    hypotheses: Sequence[str],
    baseline: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[str] = DEFAULT_METRICS,
    lowercase: bool = False,
    tokenize: str = "13a",
    resamples: int = 1000,
    language: str | None = None,
) -> list[Comparison]:
    """Compare a system with a baseline on the same sentences by paired bootstrap resampling.

    Arguments as for `score`.  The draw is fixed by sacreBLEU (12345, or the environment's SACREBLEU_SEED) and part of
    the signature.  One deviation: equal scores get p = 1, where sacreBLEU's strict inequality gives the least p-value
    there is if no resample tells them apart.  Raises ValueError as `score` does, and for fewer than one resample.
    """
    if resamples < 1:
        raise ValueError(f"resamples: expected 1 or more, got {resamples}")
    _check(hypotheses, references, "hypotheses")
    _check(baseline, references, "baseline")
    from sacrebleu.significance import PairedTest

    built = _metrics(metrics, lowercase, tokenize, language)
    comparisons = []
    # One test a metric, since sacreBLEU files its results under names and both kinds of BLEU are "BLEU" to it; the
    # draws are the same in each.
    for name, metric in built.items():
        signatures, results = PairedTest(
            [("baseline", list(baseline)), ("hypotheses", list(hypotheses))], {name: metric},
            [list(r) for r in references], test_type="bs", n_samples=resamples,
        )()
        key, (theirs, ours) = next((key, found) for key, found in results.items() if key != "System")
        comparisons.append(Comparison(
            name, ours.score, float(ours.ci), theirs.score, float(theirs.ci),
            1.0 if ours.score == theirs.score else float(ours.p_value), str(signatures[key]),
        ))
    return comparisons
