"""How sentences were rewritten: the metrics of McCoy, Frank and Linzen (2020), in percent of the pairs of a split.

test_full_sentence, gen_full_sentence: every word is right.  Of questions that tell the rules apart:

* gen_first_word: the first word is that of the question, the main auxiliary;
* gen_first_auxiliary: it is the sentence's first auxiliary, which the linear rule moves;
* gen_main_auxiliary: the auxiliaries of the output, other words aside, are those of the question in its order: the main
  one went to the front and is no longer at its place.

Of sentences in the present tense that tell the rules apart:

* gen_main_verb, gen_recent_noun: the main verb agrees with its subject, or with the noun before it, and all other words
  are of the same kinds as those of the target, noun, verb and so on; else it is neither.

"linear rule" moves the first auxiliary, or has each verb agree with the noun before it; "majority" puts the most
frequent first word of training's questions, or each verb's most frequent form in the present; "copy" leaves all as is.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from seqstruct.data.transformations.folder import read_meta, read_split
from seqstruct.data.transformations.grammar import AUXILIARIES, TRANSFORMATIONS, WORD_CLASSES, Pair, Transformation
from seqstruct.scoring.measurement import Measurement

Output = Sequence[str]
SCORED = ("test", "gen")
BASELINES = ("linear rule", "majority", "copy")


def is_folder(folder: str | os.PathLike) -> bool:
    """Whether `seqstruct prepare question-formation` or tense-reinflection made the folder."""
    return Path(folder, "text", "gen.source").is_file()


def score(rule: Transformation, pairs: Mapping[str, Sequence[Pair]], outputs: Mapping[str, Sequence[Output]]
          ) -> list[Measurement]:
    """The metrics of outputs for the pairs of test and gen.  Raises ValueError if their numbers differ."""
    found = []
    for split in SCORED:
        if len(outputs[split]) != len(pairs[split]) or not pairs[split]:
            raise ValueError(f"{split}: {len(outputs[split])} outputs for {len(pairs[split])} sentences")
        judged = [
            {"full_sentence": list(output) == pair.target, **(_judge(rule, pair, output) if split == "gen" else {})}
            for pair, output in zip(pairs[split], outputs[split], strict=True)
        ]
        found += [Measurement(f"{split}_{name}", 100.0 * fmean(one[name] for one in judged), "%") for name in judged[0]]
    return found


def _judge(rule: Transformation, pair: Pair, output: Output) -> dict[str, bool]:
    linear = rule.by_linear_rule(pair.source)
    if pair.target[-1] == "?":
        auxiliaries, right = ([w for w in words if w in AUXILIARIES] for words in (output, pair.target))
        first = output[0] if output else None
        return {"first_word": first == pair.target[0], "first_auxiliary": first == linear[0],
                "main_auxiliary": auxiliaries == right}
    main = next(place for place, words in enumerate(zip(linear, pair.target, strict=True)) if words[0] != words[1])
    alike = [WORD_CLASSES.get(word) for word in output] == [WORD_CLASSES[word] for word in pair.target]
    return {"main_verb": alike and output[main] == pair.target[main],
            "recent_noun": alike and output[main] == linear[main]}


def baselines(rule: Transformation, train: Sequence[Pair]) -> dict[str, Callable[[Sequence[str]], Output]]:
    """From a source to the output of each of `BASELINES`."""
    changed = [pair for pair in train if pair.source[-1] == rule.change]
    fronted = Counter(pair.target[0] for pair in changed).most_common(1)
    forms: dict[str, Counter[str]] = {}
    for pair in changed:
        for given, target in zip(pair.source[:-2], pair.target, strict=False):
            forms.setdefault(given, Counter())[target] += 1

    def majority(source: Sequence[str]) -> Output:
        if source[-1] != rule.change:
            return source[:-1]
        linear = rule.by_linear_rule(source)
        if linear[-1] == "?":
            return [fronted[0][0], *linear[1:]] if fronted else linear
        return [forms[word].most_common(1)[0][0] if word in forms else word for word in source[:-1]]

    return {"linear rule": rule.by_linear_rule, "majority": majority, "copy": lambda source: source[:-1]}


def measure(folder: str | os.PathLike, name: str) -> list[Measurement]:
    """The metrics of one of `BASELINES` on a prepared folder.  Raises ValueError if the folder is damaged."""
    rule, pairs = read(folder)
    answer = baselines(rule, pairs["train"])[name]
    return score(rule, pairs, {split: [answer(pair.source) for pair in pairs[split]] for split in SCORED})


def read(folder: str | os.PathLike) -> tuple[Transformation, dict[str, list[Pair]]]:
    """What a prepared folder asks for, and its pairs for training, test and gen.  Raises ValueError if it is damaged or
    of something else."""
    meta = read_meta(folder)
    rule = TRANSFORMATIONS[meta["transformation"]]
    return rule, {split: read_split(folder, split, meta) for split in ("train", *SCORED)}
