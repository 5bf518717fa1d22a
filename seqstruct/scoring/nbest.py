"""n-best lists of other systems, rescored by translation models (Sutskever et al. 2014, sec. 3.2 and Table 2).

The new score of a hypothesis is (1 - w) s + w log P(hypothesis | source), s being what its system gave and w = 0.5 the
even average of the source.  Lists are Moses's, `id ||| hypothesis ||| features ||| score` with ids from 0, or the
output of fairseq-generate, whose s is the log-probability in nats: the sum of a P- line, taken from bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from seqstruct.scoring.forced import EncodedPair, ForcedScorer
from seqstruct.scoring.hypotheses import in_order

WINDOW = 5000  # hypotheses held at a time


class Hypothesis(NamedTuple):
    """line: its number in the list, for errors.  features: as Moses writes them.  score: the system's own."""

    line: int
    text: str
    features: str
    score: float


class Rescorable(NamedTuple):
    """One sentence's hypotheses, best first if rescored.  source: None if the list has none."""

    id: int
    source: str | None
    hypotheses: list[Hypothesis]


def read_moses(lines: Iterable[str], name: str) -> Iterator[Rescorable]:
    """The sentences of a Moses list, in its order; lines of one sentence stand together.

    name: what to call the list in an error.  Raises ValueError, with the line, if one is malformed.
    """
    def hypotheses() -> Iterator[tuple[int, Hypothesis]]:
        for number, line in enumerate(lines, 1):
            fields = [part.strip() for part in line.split("|||")]
            if len(fields) < 4 or not fields[0].isdecimal():
                raise ValueError(f"{name}: line {number}: expected id ||| hypothesis ||| features ||| score")
            yield int(fields[0]), Hypothesis(number, fields[1], fields[2], _number(fields[3], name, number))

    for identity, found in groupby(hypotheses(), key=itemgetter(0)):
        yield Rescorable(identity, None, [hypothesis for _, hypothesis in found])


def read_generate(lines: Iterable[str], name: str) -> Iterator[Rescorable]:
    """The sentences in the output of fairseq-generate, in its order, with their sources.

    Raises ValueError, with the line, if an S-, H- or P- line is malformed, out of place or missing.
    """
    current: Rescorable | None = None
    text: str | None = None
    for number, line in enumerate(lines, 1):
        kind = line[:2]
        if kind not in ("S-", "H-", "P-"):
            continue
        fields = line.rstrip("\r\n").split("\t")
        if not fields[0][2:].isdecimal() or len(fields) != (3 if kind == "H-" else 2):
            raise ValueError(f"{name}: line {number}: expected {kind}id and its fields separated by tabs")
        if text is not None and kind != "P-":
            raise ValueError(f"{name}: line {number}: expected P-{current.id}, which the line H- before it lacks")
        if kind == "S-":
            if current is not None:
                yield current
            current = Rescorable(int(fields[0][2:]), fields[1], [])
            continue
        if current is None or int(fields[0][2:]) != current.id or (kind == "P-" and text is None):
            raise ValueError(f"{name}: line {number}: {fields[0]} does not follow its sentence")
        if kind == "H-":
            text = fields[2]
            continue
        bits = [_number(x, name, number) for x in fields[1].split() or [""]]
        score = sum(bits) * math.log(2)
        current.hypotheses.append(Hypothesis(number, text, f"LogProbability0= {score:.6g}", score))
        text = None
    if text is not None:
        raise ValueError(f"{name}: truncated: its last line H- has no P-{current.id} behind it")
    if current is not None:
        yield current


def _number(text: str, name: str, line: int) -> float:
    try:
        number = float(text.split()[0])
    except (ValueError, IndexError):
        raise ValueError(f"{name}: line {line}: expected a number, got {text!r}") from None
    if not math.isfinite(number):  # NaN has no place in an order
        raise ValueError(f"{name}: line {line}: expected a finite number, got {text!r}")
    return number


def rescore(
    sentences: Iterable[Rescorable],
    scorer: ForcedScorer,
    name: str,
    sources: Mapping[int, str] | None = None,
    weight: float = 0.5,
    feature: str = "Neural0",
    window: int = WINDOW,
) -> Iterator[Rescorable]:
    """Each sentence with its hypotheses in the order of their new scores, log P among the features as `feature`.

    Equal scores keep their order.  sources: by sentence id, in place of the list's own.  weight: of log P, 0 to 1.
    Memory: `window` hypotheses and one sentence's.
    Raises ValueError on a weight outside of [0, 1], on a sentence without a source or twice in the list, and, with the
    line, on a hypothesis that is empty or beyond the models' limit.
    """
    if not 0 <= weight <= 1:
        raise ValueError(f"expected a weight between 0 and 1, got {weight}")
    held: list[Rescorable] = []
    pairs: list[EncodedPair] = []
    seen: set[int] = set()
    for sentence in sentences:
        source = sentence.source if sources is None else sources.get(sentence.id)
        if source is None:
            raise ValueError(f"{name}: sentence {sentence.id} has no source sentence")
        if sentence.id in seen:
            raise ValueError(f"{name}: the hypotheses of sentence {sentence.id} do not stand together")
        seen.add(sentence.id)
        held.append(sentence)
        for hypothesis in sentence.hypotheses:
            try:
                pairs.append(scorer.encode(source, hypothesis.text))
            except ValueError as error:
                raise ValueError(f"{name}: line {hypothesis.line}: {error}") from None
        if len(pairs) >= window:
            yield from _reordered(held, scorer.log_probabilities(pairs), weight, feature)
            held, pairs = [], []
    yield from _reordered(held, scorer.log_probabilities(pairs), weight, feature)


def _reordered(sentences: list[Rescorable], scores: list[float], weight: float, feature: str) -> Iterator[Rescorable]:
    found = iter(scores)
    for sentence in sentences:
        rescored = []
        for hypothesis in sentence.hypotheses:
            log_probability = next(found)
            features = f"{hypothesis.features} {feature}= {log_probability:.6g}".lstrip()
            total = (1 - weight) * hypothesis.score + weight * log_probability
            rescored.append(hypothesis._replace(features=features, score=total))
        yield sentence._replace(hypotheses=sorted(rescored, key=lambda h: -h.score))


def write(
    sentences: Iterable[Rescorable], keep: Callable[[str], None] | None, expected: int | None, name: str
) -> list[str]:
    """Write the lines of a Moses list and collect the best hypotheses, in the order of their ids.

    keep: takes each line of the list, None for no list.  expected: the number of sentences, None if it is not known.
    Raises ValueError if a sentence from 0 to the last has no hypothesis.
    """
    best: dict[int, str] = {}
    for sentence in sentences:
        if sentence.hypotheses:
            best[sentence.id] = sentence.hypotheses[0].text
        for hypothesis in sentence.hypotheses if keep is not None else ():
            keep(f"{sentence.id} ||| {hypothesis.text} ||| {hypothesis.features} ||| {hypothesis.score:.6g}\n")
    if not best:
        raise ValueError(f"{name}: no hypotheses: expected an n-best list")
    return in_order(best, max(best) + 1 if expected is None else expected, name)
