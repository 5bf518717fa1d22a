"""What a search tries, read from a YAML file, and which of it is best on validation.

    metric: accuracy              a statistic of validation, as fairseq logs it without "valid_"
    direction: max                or min
    at: best                      the epoch whose value counts, of equal ones the last; or last
    tie: loss                     a statistic whose least value decides among equal settings (default: the first wins)
    epochs: 3                     of each setting
    up_to: 12                     a setting that is at chance has twice as many epochs, until there are so many
    grid:                         all combinations of the values of these keys of the config; a value may be a mapping
      optimization.lr: [[0.004], [0.008]]
    count: 6                      or so many draws, each key in its turn: integers, uniform, log_uniform, or a value
    draws:
      model.dropout: {uniform: [0, 0.5]}
    then:                         values tried with the best setting, one key at a time
      model.forget_bias: [0.0, 2.0]
    overrides: [...]              for the search alone, as fairseq-hydra-train takes them
    measurements: [...]           see `measurements`
    where:                        what else holds if these words are among the command's
      scale=smoke: {epochs: 1}
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from seqstruct.bridge.logs import LogEntry
from seqstruct.scoring.measurement import Measurement

KEYS = {"metric", "direction", "at", "tie", "epochs", "up_to", "grid", "count", "draws", "then", "overrides",
        "measurements"}
NUMBER = re.compile(r"(?:(?<!\w)-)?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
Point = dict[str, Any]


def read_settings(path: Path, words: Sequence[str]) -> dict[str, Any]:
    """The file, with what it says of the words.  Raises ValueError naming the file and what is wrong in it."""
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
        return _checked(_where(loaded, words))
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path}: {' '.join(str(error).split())}") from None


def _where(loaded: Any, words: Sequence[str]) -> dict[str, Any]:
    where = _mapping("settings", loaded).pop("where", {})
    for condition, more in _mapping("where", where).items():
        if set(condition.split()) <= set(words):
            loaded |= {key: {**_mapping(key, loaded.get(key, {})), **value} if isinstance(value, dict) else value
                       for key, value in _mapping(condition, more).items()}
    return loaded


def _mapping(name: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
        raise ValueError(f"{name}: expected keys and values, got {given!r}")
    return given


def _checked(loaded: dict[str, Any]) -> dict[str, Any]:
    strange = sorted(set(loaded) - KEYS)
    if strange:
        raise ValueError(f"expected keys of {', '.join(sorted(KEYS))}, got {strange[0]}")
    for key, known in (("direction", ("max", "min")), ("at", ("best", "last"))):
        if loaded.setdefault(key, known[0]) not in known:
            raise ValueError(f"{key}: expected {' or '.join(known)}, got {loaded[key]!r}")
    if not isinstance(loaded.get("metric"), str) or not _positive(loaded.get("epochs")):
        raise ValueError("expected metric, a name, and epochs, a number of 1 or more")
    if not isinstance(loaded.get("tie") or "", str) or not _positive(loaded.get("up_to", 1)):
        raise ValueError("expected of tie a name, and of up_to a number of 1 or more")
    if ("grid" in loaded) == ("draws" in loaded):
        raise ValueError("expected grid or draws, one of them")
    if "draws" in loaded:
        _mapping("draws", loaded["draws"])
        if not _positive(loaded.get("count")):
            raise ValueError(f"count: expected how many draws, 1 or more, got {loaded.get('count')!r}")
    for name in ("grid", "then"):
        for key, values in _mapping(name, loaded.get(name, {})).items():
            if not isinstance(values, list) or not values:
                raise ValueError(f"{name}: {key}: expected a list of values, got {values!r}")
    for name, kind in (("overrides", str), ("measurements", dict)):
        given = loaded.get(name, [])
        if not isinstance(given, list) or not all(isinstance(one, kind) for one in given):
            raise ValueError(f"{name}: expected a list of {'words' if kind is str else 'mappings'}, got {given!r}")
    for asked in loaded.get("measurements", []):
        if missing := {"metric", "unit", *(() if "of" in asked else ("axis",))} - set(asked):
            raise ValueError(f"measurements: expected {' and '.join(sorted(missing))} in {asked}")
        _check_numbers(loaded, asked)
    return loaded


def _check_numbers(loaded: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Raise ValueError, before a search rather than after it, where what a measurement reads has no number."""
    draws = loaded.get("draws", {})
    plain = {key: [value] for key, value in draws.items() if not isinstance(value, dict)}
    tried = [value if isinstance(value, dict) else {key: value}
             for part in (loaded.get("grid", {}), loaded.get("then", {}), plain)
             for key, values in part.items() for value in values]
    for word in ("of", "for", "along"):
        if not isinstance(asked.get(word, ""), str):
            raise ValueError(f"measurements: {word}: expected a key, got {asked[word]!r}")
        given = [value[asked[word]] for value in tried if asked.get(word) in value]
        for value in given:
            try:
                _number(value)
            except ValueError as error:
                raise ValueError(f"measurements: {word}: {asked[word]}: {error}") from error
    if "for" in asked and asked["for"] not in _keys_of_all(loaded):
        raise ValueError("measurements: for: expected a key of grid or draws that all settings have, got "
                         f"{asked['for']}")


def _keys_of_all(loaded: Mapping[str, Any]) -> set[str]:
    """What every setting that is tried has a value of."""
    parts = [[set(value) if isinstance(value, dict) else {key} for value in values]
             for key, values in loaded.get("grid", {}).items()]
    return set(loaded.get("draws", ())).union(*(set.intersection(*part) for part in parts))


def _positive(given: Any) -> bool:
    return type(given) is int and given > 0


def points(settings: Mapping[str, Any], seed: int) -> list[Point]:
    """The settings to try, values by key of the config; draws are those of the seed.  Raises ValueError for a draw."""
    if "grid" in settings:
        return [_merged(zip(settings["grid"], values, strict=True))
                for values in itertools.product(*settings["grid"].values())]
    found = []
    for number in range(settings["count"]):
        generator = np.random.default_rng([seed, number])
        found.append({key: _draw(key, asked, generator) for key, asked in settings["draws"].items()})
    return found


def _merged(pairs: Any) -> Point:
    merged: Point = {}
    for key, value in pairs:
        merged |= value if isinstance(value, dict) else {key: value}
    return merged


def _draw(key: str, asked: Any, generator: np.random.Generator) -> Any:
    """Integers with both ends, uniform to four decimals, log_uniform to six digits; a plain value as it is."""
    if not isinstance(asked, dict):
        return asked
    kind, ends = next(iter(asked.items()), ("", None))
    pair = isinstance(ends, list) and len(asked) == 1 and [type(end) in (int, float) for end in ends] == [True, True]
    low, high = ends if pair and -math.inf < ends[0] <= ends[1] < math.inf else (math.nan, math.nan)
    if kind == "integers" and type(low) is type(high) is int:
        value: float = int(generator.integers(low, high + 1))
    elif kind == "uniform" and low == round(low, 4) and high == round(high, 4):
        value = round(float(generator.uniform(low, high)), 4)
    elif kind == "log_uniform" and low > 0:
        value = float(f"{np.exp(generator.uniform(math.log(low), math.log(high))):.6g}")
    else:
        raise ValueError(f"{key}: expected integers, uniform or log_uniform (above 0), each of two ends, uniform's of "
                         f"four decimals at most, got {asked}")
    return [value] if key == "optimization.lr" else value


def override(key: str, value: Any) -> str:
    """++KEY=VALUE as hydra reads it.  Raises ValueError if it has a space, at which a shell would part it."""
    plain = isinstance(value, str) and re.fullmatch(r"[\w.+-]+", value)
    word = f"++{key}={value if plain else json.dumps(value, separators=(',', ':'))}"
    if " " in word:
        raise ValueError(f"expected values without a space, got {word}")
    return word


def outcome(entries: Sequence[LogEntry], settings: Mapping[str, Any]) -> dict[str, float]:
    """Metric and tie of the epoch that counts.

    Raises ValueError if validation says no finite value of the metric, or nothing of the tie.
    """
    name = f"valid_{settings['metric']}"
    validated = [entry.statistics for entry in entries if math.isfinite(entry.statistics.get(name, math.nan))]
    if not validated:
        raise ValueError(f"expected finite values of {name}, found none")
    sign = 1 if settings["direction"] == "max" else -1
    counted = validated[-1]
    if settings["at"] == "best":
        counted = max(reversed(validated), key=lambda statistics: sign * statistics[name])
    tie = settings.get("tie")
    if tie and f"valid_{tie}" not in counted:
        raise ValueError(f"expected valid_{tie} beside {name}, found none")
    return {"value": counted[name], **({"tie": counted[f"valid_{tie}"]} if tie else {})}


def chance(labels: Sequence[Any]) -> float:
    """The accuracy in percent that three standard errors part from always giving the most frequent of the labels."""
    share = max(Counter(labels).values()) / len(labels)
    return 100 * (share + 3 * (share * (1 - share) / len(labels)) ** 0.5)


def order(settings: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], tuple[float, float]]:
    """A key by which the better of two that were tried comes first; NaN is the worst tie, not equal to all."""
    sign = -1 if settings["direction"] == "max" else 1

    def key(tried: Mapping[str, Any]) -> tuple[float, float]:
        tie = tried.get("tie", 0.0)
        return sign * tried["value"], math.inf if math.isnan(tie) else tie

    return key


def choose(settings: Mapping[str, Any], tried: Sequence[Mapping[str, Any]], least: float | None) -> Mapping[str, Any]:
    """The best; least: what it has to be above, or None.

    Raises ValueError if it is not, or two are best in the metric and in the tie.
    """
    best, *rest = sorted(tried, key=order(settings))
    metric, tie = settings["metric"], settings.get("tie")
    if least is not None and best["value"] <= least:
        raise ValueError(
            f"none of {len(tried)} settings differs from chance: the best has a validation {metric} of "
            f"{best['value']:g} after {best['epochs']} epochs, expected more than {least:.4g}"
        )
    rest = [one for one in rest if one["setting"] != best["setting"]]  # draws may be alike
    if tie and rest and order(settings)(rest[0]) == order(settings)(best):
        raise ValueError(
            f"two settings are best, with a validation {metric} of {best['value']:g} and a {tie} of {best['tie']:g}: "
            f"{best['setting']} and {rest[0]['setting']}"
        )
    return best


def measurements(
    settings: Mapping[str, Any], tried: Sequence[Mapping[str, Any]], best: Mapping[str, Any]
) -> list[Measurement]:
    """What is recorded of a search, as the file's `measurements` ask.

    {metric: NAME, unit: UNIT, of: KEY} is the chosen value of a key, nothing where it is not tried; without `of` it is
    the best value reached, split up along an `axis`, the number of the setting or what `along: KEY` has where it is
    tried; with `for: KEY` there is one for each value of that key, which takes the place of {} in NAME.
    """
    found = []
    for asked in settings.get("measurements", ()):
        name, unit = asked["metric"], asked["unit"]
        if "of" in asked:
            if asked["of"] in best["setting"]:
                found.append(Measurement(name, _number(best["setting"][asked["of"]]), unit))
            continue
        groups: dict[Any, list[tuple[float, float]]] = {}
        along = asked.get("along")
        for number, one in enumerate(tried, 1):
            group = _number(one["setting"][asked["for"]]) if "for" in asked else None
            x = _number(one["setting"].get(along, math.nan)) if along else number
            groups.setdefault(group, []).append((x, one["value"]))
        for group, reached in groups.items():
            value = (max if settings["direction"] == "max" else min)(value for _, value in reached)
            known = [(x, y) for x, y in reached if not math.isnan(x)]
            axis = {"axis": asked["axis"], "points": known} if known else {}
            found.append(Measurement(name.format(f"{group:g}" if group is not None else ""), value, unit, **axis))
    return found


def _number(value: Any) -> float:
    """A number, the first of a list, or the last one in a text.  Raises ValueError if there is none."""
    found = value[:1] if isinstance(value, list) else NUMBER.findall(value)[-1:] if isinstance(value, str) else [value]
    if not found or not isinstance(found[0], int | float | str):
        raise ValueError(f"expected a number, a list of them or a text with one, got {value!r}")
    return float(found[0])
