"""Translation scores through sacreBLEU: BLEU, chrF, and paired bootstrap resampling between two systems.

BLEU: Papineni et al. (2002) with sacreBLEU's tokenisation (Post 2018).  chrF: Popovic (2015).  Paired bootstrap:
Koehn (2004).  All three are sacreBLEU's own code; the signature says the settings and its version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

METRICS = ("bleu", "chrf")


@dataclass(frozen=True)
class Score:
    """One metric of one system on a corpus.

    value: 0 to 100.  signature: sacreBLEU's.  details: n-gram precisions and lengths where the metric has them.
    """

    metric: str
    value: float
    signature: str
    details: str


@dataclass(frozen=True)
class Comparison:
    """A system against a baseline in one metric, by paired bootstrap.

    value, baseline: 0 to 100.  interval, baseline_interval: half-width of the 95 % confidence interval.
    p_value: share of resamples in which the difference, centred on its mean, exceeds the observed one.
    """

    metric: str
    value: float
    interval: float
    baseline: float
    baseline_interval: float
    p_value: float
    signature: str


def _metrics(names: Sequence[str], lowercase: bool, tokenize: str) -> dict:
    """sacreBLEU's metric objects by name; a ValueError for an unknown name or a tokeniser that is not there."""
    from sacrebleu.metrics import BLEU, CHRF

    unknown = [name for name in names if name not in METRICS]
    if unknown or not names:
        raise ValueError(f"metrics: expected some of {', '.join(METRICS)}, got {', '.join(unknown) or 'none'}")
    if "bleu" in names and tokenize not in BLEU.TOKENIZERS:
        raise ValueError(f"tokenize: expected one of {', '.join(BLEU.TOKENIZERS)}, got {tokenize!r}")
    build = {
        "bleu": lambda: BLEU(lowercase=lowercase, tokenize=tokenize),
        "chrf": lambda: CHRF(lowercase=lowercase),
    }
    return {name: build[name]() for name in names}


def _check(hypotheses: Sequence[str], references: Sequence[Sequence[str]], name: str) -> None:
    if not references or not references[0]:
        raise ValueError("references: expected one line or more, got none")
    for number, reference in enumerate(references, 1):
        if len(reference) != len(hypotheses):
            raise ValueError(f"{name}: {len(hypotheses)} lines, but reference {number} has {len(reference)}")


def _details(name: str, found: Any) -> str:
    if name != "bleu":
        return ""
    precisions = "/".join(f"{p:.1f}" for p in found.precisions)
    return f"{precisions} (brevity penalty {found.bp:.3f}, {found.sys_len} words for {found.ref_len})"


def score(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[str] = METRICS,
    lowercase: bool = False,
    tokenize: str = "13a",
) -> list[Score]:
    """Score one system's text.

    hypotheses: one detokenised line a sentence.  references: one list or several, each as long as the hypotheses, raw.
    metrics: of "bleu" and "chrf".  lowercase: score without regard to case.  tokenize: sacreBLEU's name of the
    tokeniser inside BLEU.  Raises ValueError for unequal counts, no lines, or an unknown metric or tokeniser.
    """
    _check(hypotheses, references, "hypotheses")
    results = []
    for name, metric in _metrics(metrics, lowercase, tokenize).items():
        found = metric.corpus_score(list(hypotheses), [list(r) for r in references])
        results.append(Score(name, found.score, str(metric.get_signature()), _details(name, found)))
    return results


def compare(
    hypotheses: Sequence[str],
    baseline: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[str] = METRICS,
    lowercase: bool = False,
    tokenize: str = "13a",
    resamples: int = 1000,
) -> list[Comparison]:
    """Compare a system with a baseline on the same sentences by paired bootstrap resampling.

    Arguments as for `score`.  The draw is fixed by sacreBLEU (12345, or the environment's SACREBLEU_SEED) and part of
    the signature.  One deviation: identical outputs get p = 1, where sacreBLEU's strict inequality gives the least
    p-value there is.  Raises ValueError as `score` does, and for fewer than one resample.
    """
    if resamples < 1:
        raise ValueError(f"resamples: expected 1 or more, got {resamples}")
    _check(hypotheses, references, "hypotheses")
    _check(baseline, references, "baseline")
    from sacrebleu.significance import PairedTest

    built = _metrics(metrics, lowercase, tokenize)
    signatures, results = PairedTest(
        [("baseline", list(baseline)), ("hypotheses", list(hypotheses))], built, [list(r) for r in references],
        test_type="bs", n_samples=resamples,
    )()
    # sacreBLEU files its results under names such as "chrF2", in the order of the metrics.
    pairs = [(key, *found) for key, found in results.items() if key != "System"]
    identical = list(hypotheses) == list(baseline)
    return [
        Comparison(name, ours.score, float(ours.ci), theirs.score, float(theirs.ci),
                   1.0 if identical else float(ours.p_value), str(signatures[key]))
        for name, (key, theirs, ours) in zip(built, pairs, strict=True)
    ]
