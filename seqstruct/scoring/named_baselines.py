"""Baselines of a prepared folder, by name: what the data alone give, as the numbers of a recipe's row.

The folders are those that the scripts of data-prep/ and `seqstruct prepare` make.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from inspect import signature
from itertools import chain
from pathlib import Path
from statistics import fmean

from seqstruct.data.abilities import folder as sequences
from seqstruct.data.babi import stories
from seqstruct.data.cfl import folder as strings
from seqstruct.data.files import existing, read_json, undamaged
from seqstruct.data.nli import folder as nli
from seqstruct.data.parsing import folder as parsing
from seqstruct.data.parsing.sentence import TOP, AnnotatedSentence
from seqstruct.data.recognition import folder as recognition
from seqstruct.data.recognition.trivial import COUNTS, LOOKS, Looks, trivially_right
from seqstruct.data.text.aligned import read_lines
from seqstruct.data.text_classification import folder as texts
from seqstruct.data.tree_transduction import folder as formulas
from seqstruct.scoring.baselines import (
    UNKNOWN,
    KneserNey,
    most_frequent_accuracy,
    most_frequent_sequence,
    neighbour_heads,
    random_choice,
)
from seqstruct.scoring.dependency import f1, share
from seqstruct.scoring.first_failure import lengths_to_failure, shares_by_depth
from seqstruct.scoring.measurement import Measurement
from seqstruct.scoring.parentheses import even_weights, nearest_weights, weights_on_openings
from seqstruct.scoring.transformations import is_folder
from seqstruct.scoring.transformations import measure as measure_transformation

END = "</s>"
ORDERS = {"bigram": 2, "trigram": 3, "5-gram": 5}
VALIDATED, TESTED = {"valid": "validation", "test": "test"}, {"test": "test"}
Labelled = list[tuple[Hashable, Hashable]]


def measure(name: str, folder: Path, **options: object) -> list[Measurement]:
    """The numbers of a baseline.  options: of the function that makes it, below.

    Metrics have the names that the recipes give them: test_perplexity, test_accuracy, test_bleu and so on.
    Raises ValueError for another name or option, or if the folder is not one of the baseline's.
    """
    if name not in BASELINES:
        raise ValueError(f"expected a baseline of {', '.join(BASELINES)}, got {name!r}")
    strange = [option for option in options if option not in signature(BASELINES[name]).parameters]
    if strange:
        raise ValueError(f"{name} has no option {strange[0]!r}")
    return BASELINES[name](Path(folder), name, **options)


def _ngrams(folder: Path, name: str, *, sentences: bool = False, pieces: bool = False,
            discount: float | None = None) -> list[Measurement]:
    """Perplexity of a word, an end of line counted as one and pieces that end in "@@" not.

    Words that bin/ has no number for are unknown, in training too.  sentences: whether a line is a text of its own,
    else all of a file are one.  pieces: whether it is the perplexity of a piece instead.  discount: as of `KneserNey`.
    """
    if (folder / "valid.log_probability").is_file():
        return _string_differences(folder, ORDERS[name], discount)
    dictionary = next((path for path in (folder / "bin" / "dict.txt", folder / "bin" / "0" / "dict.txt")
                       if path.is_file()), None)
    if dictionary is None:
        raise ValueError(f"{folder / 'bin' / 'dict.txt'}: no such file: expected a folder for language modeling")
    known = {END, *(line.rpartition(" ")[0] for line in read_lines(dictionary))}

    def texts_of(split: str) -> Iterable[Iterable[str]]:
        lines = ([token if token in known else UNKNOWN for token in line] for line in _lines(folder, split))
        return lines if sentences else [chain.from_iterable(lines)]

    model = KneserNey(texts_of("train"), ORDERS[name], discount)
    found = []
    for split, called in {**VALIDATED, "test1": "wikitext2_test"}.items():
        if (folder / "text" / f"{split}.txt").is_file():
            words = sum(pieces or not token.endswith("@@") for line in _lines(folder, split) for token in line)
            nats = -float(model.log_probabilities(texts_of(split)).sum())
            found.append(Measurement(f"{called}_perplexity", math.exp(nats / words), "perplexity"))
    return found


def _lines(folder: Path, split: str) -> Iterator[tuple[str, ...]]:
    path = folder / "text" / f"{split}.txt"
    if not path.stat().st_size:
        raise ValueError(f"{path}: the file is empty")
    return ((*line.split(), END) for line in read_lines(path))


def _string_differences(folder: Path, order: int, discount: float | None) -> list[Measurement]:
    """Cross-entropy above the true distribution, in nats per symbol, and by length, as of `cfl_cross_entropy`."""
    meta = strings.read_meta(folder)
    splits = {split: strings.read_split(folder, split, meta) for split in strings.SPLITS}

    def symbols(split: str) -> Iterator[tuple[str, ...]]:
        return ((*map(str, string), END) for string in splits[split].strings)

    model, found = KneserNey(symbols("train"), order, discount), []
    for split, called in VALIDATED.items():
        nats, at = -model.log_probabilities(symbols(split)), 0
        above: dict[int, list[float]] = {}
        for string, known in zip(splits[split].strings, splits[split].log_probability, strict=True):
            above.setdefault(len(string), []).append(float(nats[at : at + len(string) + 1].sum() + known))
            at += len(string) + 1
        of_lengths = len(splits[split].strings) * math.log(meta["valid_length_counts"][split])
        whole = (sum(map(sum, above.values())) - of_lengths) / at
        by_length = [(length, fmean(values) / (length + 1)) for length, values in sorted(above.items())]
        metric = f"{called}_cross_entropy_difference"
        found.append(Measurement(metric, whole, "nats per symbol", "string length", by_length))
    return found


def _classes(folder: Path, name: str) -> list[Measurement]:
    """Accuracy in percent of the most frequent class, of all or given the text's first token; classes of texts, of
    pairs (nli), of the corpus "classes", or of fairseq's label/."""
    if is_folder(folder):
        return measure_transformation(folder, name)
    read = read_labels(folder)
    train = read("train")
    if name == "majority":
        train = [(None, label) for _, label in train]
    return [
        Measurement(f"{called}_accuracy", most_frequent_accuracy(train, found), "%")
        for split, called in VALIDATED.items() if (found := read(split))
    ]


def read_labels(folder: Path) -> Callable[[str], Labelled]:
    """First token and class of each text of a split; nothing of a split that there is not."""
    if (folder / nli.META).is_file():
        labels = nli.read_meta(folder)["labels"]
        known = {line: number for number, line in enumerate(read_lines(folder / nli.VOCABULARY))}
        return lambda split: [(p.premise[0], p.label) for p in nli.read_split(folder, split, labels, known)]
    if (folder / parsing.META).is_file():
        meta = parsing.read_meta(folder)
        return lambda split: [(s.words[0], s.label) for s in parsing.read_split(folder, "classes", split, meta)]
    if (folder / "label").is_dir():
        return lambda split: _binarised_labels(folder / "label", split)
    meta = texts.read_meta(folder)
    return lambda split: [
        (words[0], label) for words, label in zip(*texts.read_split(folder, split, meta), strict=True)
    ]


def _binarised_labels(folder: Path, split: str) -> Labelled:
    from fairseq.data import Dictionary, data_utils

    dataset = data_utils.load_indexed_dataset(str(folder / split), Dictionary.load(str(folder / "dict.txt")))
    return [] if dataset is None else [(None, int(item[0])) for item in dataset]


def _simple_rule(folder: Path, name: str) -> list[Measurement]:
    """Accuracy in percent of the most frequent target in training given a little of what was read: of strings to
    recognise by the rule that is best on each split (`recognition.trivial`); of abilities by the one best on
    validation (`abilities.rules`), by task, and of whole sequences in a table of their own.
    """
    if not (folder / f"{recognition.SPLITS[2]}.txt").is_file():
        return _abilities(folder)
    return _best_look(folder, LOOKS)


def _counting_rule(folder: Path, name: str) -> list[Measurement]:
    """The same of strings to recognise, by rules that count and have no stack."""
    return _best_look(folder, COUNTS)


def _best_look(folder: Path, looks: Looks) -> list[Measurement]:
    meta = recognition.read_meta(folder)
    train, *others = (recognition.read_split(folder, split, meta) for split in recognition.SPLITS)
    right = (trivially_right(train, examples, looks).mean(1).max() for examples in others)
    return [Measurement(f"{called}_accuracy", 100.0 * float(share), "%")
            for called, share in zip(("validation", "long_validation", "test"), right, strict=True)]


def _answers(folder: Path, name: str, *, steps: int = 1, memory: int = 25) -> list[Measurement]:
    """Accuracy of answers, one of training's at random or the most frequent, and of exact facts at random where there
    are as many as steps, in percent; bAbI.

    steps: facts that are chosen.  memory: the last facts, out of which they are.  Raises ValueError for steps below 1.
    """
    if steps < 1:
        raise ValueError(f"steps: expected 1 or more, got {steps}")
    questions = {split: stories.read_questions(folder / f"{split}.txt") for split in ("train", *VALIDATED)}
    train = [(None, question.answer) for question in questions["train"]]
    answers = {answer for _, answer in train}
    found = []
    for split, called in VALIDATED.items():
        asked = [(None, question.answer) for question in questions[split]]
        right = most_frequent_accuracy(train, asked)
        if name == "random answer":
            right = 100.0 / len(answers) * sum(answer in answers for _, answer in asked) / len(asked)
        found.append(Measurement(f"{called}_accuracy", right, "%"))
    chances = [
        random_choice(min(memory, len(q.facts)), steps)
        if len(q.support) == steps and -1 not in q.support_from_newest(memory) else 0.0 for q in questions["test"]
    ]
    return [*found, Measurement("fact_accuracy", 100.0 * fmean(chances), "%")]


def _copy(folder: Path, name: str, *, languages: Sequence[str] = (), metrics: Sequence[str] = ("bleu", "chrf"),
          lowercase: bool = False, splits: Mapping[str, str] = TESTED) -> list[Measurement]:
    """Scores of the raw source against the raw references; languages: source and target.  Of formulas see `_constant`.

    metrics, lowercase: as of `scoring.translation.score`.  splits: with how their metrics begin.
    """
    if (folder / "train.prefix").is_file():
        return _constant(folder, name)
    if is_folder(folder):
        return measure_transformation(folder, name)
    if len(languages) != 2:
        raise ValueError(f"{folder}: expected the languages of the source and the target, got {len(languages)}")
    from seqstruct.scoring.translation import UNITS, score

    found, end = [], "_lowercased" if lowercase else ""
    for split, called in splits.items():
        source, target = (list(read_lines(folder / "raw" / f"{split}.{language}")) for language in languages)
        for scored in score(source, [target], metrics, lowercase, language=languages[1]):
            found.append(Measurement(f"{called}_{scored.metric}{end}", scored.value, UNITS[scored.metric]))
    return found


def _constant(folder: Path, name: str) -> list[Measurement]:
    """Of one infix form for all formulas, symbol by symbol the most frequent in training, or the prefix form: mean
    share of the target before the first failure, in percent, of the test set for each depth and over depths.

    Of translations see `_constant_translation`.
    """
    if (folder / "text").is_dir():
        return _constant_translation(folder)
    meta = formulas.read_meta(folder)
    constant = most_frequent_sequence(formulas.read_split(folder, "train", meta).infix)
    splits = {split: formulas.read_split(folder, split, meta) for split in VALIDATED}
    return lengths_to_failure({
        split: shares_by_depth(found, [constant] * len(found.infix) if name == "constant" else found.prefix)
        for split, found in splits.items()
    })


def _parents(folder: Path, name: str) -> list[Measurement]:
    """Of formulas, where closing parentheses are taken by even weights, or by the nearest opening one before them: as
    of `scoring.parentheses`."""
    forms = formulas.read_split(folder, "test", formulas.read_meta(folder)).prefix
    weights = even_weights if name == "even weights" else nearest_weights
    return weights_on_openings((symbols, weights(symbols)) for symbols in forms)


def _constant_translation(folder: Path) -> list[Measurement]:
    """Share of the translations that are the most frequent one in training, in percent."""
    path = folder / "corpus.json"
    with undamaged(path, KeyError, TypeError):
        languages = read_json(existing(path))["options"]["languages"]
    counts = Counter(read_lines(folder / "text" / f"train.{languages[1]}"))
    ((constant, _),) = counts.most_common(1)
    found = []
    gen = {"gen": "gen"} if (folder / "text" / f"gen.{languages[1]}").is_file() else {}
    for split, called in {**VALIDATED, **gen}.items():
        lines = list(read_lines(folder / "text" / f"{split}.{languages[1]}"))
        found.append(Measurement(f"{called}_exact_match", share(lines.count(constant), len(lines)), "%"))
    return found


def _neighbours(folder: Path, name: str, *, splits: Mapping[str, str] = VALIDATED) -> list[Measurement]:
    """A neighbour is each word's head, and the only one in a graph, with the most frequent label of such: labeled and
    unlabeled F1 of the graphs; attachment in test sentences with a graph and in trees; in percent.

    splits: with how their metrics begin; where they are given, the graphs alone.
    """
    meta, side = parsing.read_meta(folder), name.split()[0]
    kinds = {corpus["kind"]: key for key, corpus in meta["corpora"].items()}
    label = _most_frequent_label(parsing.read_split(folder, kinds["graphs"], "train", meta), side)
    found = []
    for split, called in splits.items():
        if split not in meta["corpora"][kinds["graphs"]]["files"]:
            continue
        sentences = parsing.read_split(folder, kinds["graphs"], split, meta)
        names = (f"{called}_labeled_f1", f"{called}_unlabeled_f1")
        scores = zip(names, _graph_f1(sentences, side, label), strict=True)
        found += [Measurement(metric, value, "%") for metric, value in scores]
        with_trees = "trees" in kinds and split in meta["corpora"][kinds["trees"]]["files"]
        if split == "test" and splits is VALIDATED and with_trees:
            trees = parsing.read_split(folder, kinds["trees"], split, meta)
            found += [Measurement("test_graph_sentences_uas", _attachment(sentences, side), "%"),
                      Measurement("test_trees_uas", _attachment(trees, side), "%")]
    return found


def _most_frequent_label(sentences: Iterable[AnnotatedSentence], side: str) -> str:
    """Of the arcs from neighbours on that side; `TOP`, which no such arc has, where there are none."""
    step = -1 if side == "previous" else 1
    counts = Counter(
        label for sentence in sentences for head, word, label in sentence.arcs or () if head == word + step and head
    )
    return counts.most_common(1)[0][0] if counts else TOP


def _graph_f1(sentences: Iterable[AnnotatedSentence], side: str, label: str) -> tuple[float, float]:
    """Labeled and unlabeled; the root's arc is the top."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        heads = enumerate(neighbour_heads(len(sentence.words), side), 1)
        predicted = {(head, word, label if head else TOP) for word, head in heads}
        gold = set(sentence.arcs or ())
        pairs = {arc[:2] for arc in predicted} & {arc[:2] for arc in gold}
        counts.update(predicted=len(predicted), gold=len(gold), labeled=len(predicted & gold), unlabeled=len(pairs))
    return tuple(f1(counts[shared], counts["predicted"], counts["gold"]) for shared in ("labeled", "unlabeled"))


def _attachment(sentences: Iterable[AnnotatedSentence], side: str) -> float:
    right = [
        head == gold for sentence in sentences if sentence.heads is not None
        for head, gold in zip(neighbour_heads(len(sentence.words), side), sentence.heads, strict=True)
    ]
    return share(sum(right), len(right))


def _abilities(folder: Path) -> list[Measurement]:
    found = []
    for task, place in sequences.tasks_of(folder).items():
        meta = sequences.read_meta(place)
        reached = meta["rules"][sequences.best_rule(meta)]
        for subset, called in sequences.CALLED.items():
            for value, table in zip(reached[subset], ("", sequences.WHOLE), strict=True):
                found.append(Measurement(called.format(task), value, "%", table=table))
    return found


BASELINES: dict[str, Callable[..., list[Measurement]]] = {
    **dict.fromkeys(ORDERS, _ngrams), "majority": _classes, "first token": _classes, "copy": _copy,
    "constant": _constant, "random answer": _answers, "most frequent answer": _answers,
    "previous word": _neighbours, "next word": _neighbours, "simple rule": _simple_rule,
    "trivial rule": _simple_rule, "counting rule": _counting_rule, "linear rule": measure_transformation,
    "even weights": _parents, "nearest opening": _parents,
}
