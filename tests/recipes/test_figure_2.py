"""What docs/reproduction/stack_attention.md says of figure 2 is what the records carry, draw by draw."""

from __future__ import annotations

import math
import re

import pytest

from tests.recipes.test_findings import finding, lines, prose


def of_figure_2():
    """By cell, of its draws: the difference on validation, and the mean beyond the lengths of training; best first."""
    found = {}
    for line in lines("stack_attention", "figure-2"):
        found[line.row] = []
        for run in line.runs.values():
            valid, test = (run.metrics[f"{split}_cross_entropy_difference"] for split in ("validation", "test"))
            beyond = [value for length, value in test["points"] if length > 80]
            found[line.row].append((valid["value"], sum(beyond) / len(beyond)))
        found[line.row].sort()
    return found


def drawn(row):
    """The differences on validation of a cell's draws, by seed."""
    line = next(line for line in lines("stack_attention", "figure-2") if line.row == row)
    return [line.runs[seed].metrics["validation_cross_entropy_difference"]["value"] for seed in sorted(line.runs)]


def claim(start):
    return finding("stack_attention", start)


def test_claims_say_how_many_draws_there_are():
    counts = {row: len(draws) for row, draws in of_figure_2().items() if not row.endswith("5-gram")}
    assert len(counts) == 30 and set(counts.values()) == {3}


def test_n_grams_stand_beside_the_strings_of_figure_2():
    text, draws = " ".join(prose("stack_attention").split()), of_figure_2()
    grams = {row.split()[0]: found[0] for row, found in draws.items() if row.endswith("5-gram")}
    assert all(found[-1][0] < grams[row.split()[0]][0] for row, found in draws.items() if not row.endswith("5-gram"))
    (hardest, hardest_beyond), (valid, beyond) = grams.pop("hardest-cfl"), zip(*grams.values(), strict=True)
    assert f"V {hardest:.2f} on the hardest CFL and {min(valid):.2f} to {max(valid):.2f} on the other languages" in text
    assert f"and X {hardest_beyond:.2f} and {min(beyond):.2f} to {max(beyond):.2f};" in text


# a claim's beginning, and words of it with V, or by a colon X, of a cell's best draw, or by a star of all, best first
SAID = [
    ("*Tf+Nd is best", "(V {hardest Tf+Nd*}; the best of Tf+Sup {hardest Tf+Sup}, of Tf {hardest Tf}; the 5-gram"),
    ("*Tf+Nd is best", "are ahead of the 5-gram (X {hardest Tf+Nd*:}), and no draw of Tf"),
    ("*Tf+Nd is best", "best draws next to LSTM+Nd ({hardest LSTM+Nd*})"),
    ("*Tf+Nd is best", "behind each LSTM+Sup ({hardest LSTM+Sup*}) and LSTM ({hardest LSTM*})"),
    ("*Tf+Nd is ahead", "an LSTM has {unmarked LSTM*}"),
    ("*Tf+Sup is better", "each draw on Dyck-2 (V {dyck Tf+Sup}; {dyck Tf}) and, by little, on padded"),
    ("*Tf+Sup is better", "padded reversal ({padded Tf+Sup}; {padded Tf})"),
    ("*Tf+Sup is better", "({marked Tf+Sup}; {marked Tf}), and behind by the third"),
    ("*Tf+Sup is better", "the best of both ({unmarked Tf+Sup}; {unmarked Tf})"),
    ("*Tf+Sup is better", "nothing tells the two apart ({hardest Tf+Sup}; {hardest Tf})"),
    ("*Tf+Nd alleviates", "has X {padded Tf+Nd:} on padded reversal, {hardest Tf+Nd:} on the hardest CFL and, next to"),
    ("*Tf+Nd alleviates", "the 5-gram's {unmarked 5-gram:}, {unmarked Tf+Nd:} on unmarked reversal"),
    ("*LSTM+Nd generalises", "the hardest CFL it has X {hardest LSTM+Nd*:} (Tf+Nd {hardest Tf+Nd*:})"),
    ("*LSTM+Nd generalises", "unmarked reversal {unmarked LSTM+Nd*:} ({unmarked Tf+Nd*:})"),
    ("*LSTM+Nd generalises", "by little at the best, {padded LSTM+Nd*:} ({padded Tf+Nd*:});"),
    ("*LSTM+Nd generalises", "on marked reversal {marked LSTM+Nd*:}, the first two the least X of all"),
    ("*LSTM+Nd generalises", "best draws of both among them ({dyck LSTM+Nd*:}; {dyck Tf+Nd*:})"),
    ("*LSTM+Sup is better", "({hardest LSTM+Sup*}; {hardest Tf+Sup}, and {hardest LSTM*}; {hardest Tf})"),
    ("*LSTM+Sup is better", "LSTM+Sup ({dyck LSTM+Sup*}) is behind Tf+Sup ({dyck Tf+Sup*}) at two of three"),
    ("*LSTM+Sup is better", "its best draw among them ({dyck LSTM*}; {dyck Tf*})"),
    *(("*LSTM+Sup is better", f"(LSTM+Sup {{{f} LSTM+Sup*}}; {{{f} Tf+Sup{a}}}, and LSTM {{{f} LSTM*}}; {{{f} Tf{a}}})")
      for f, a in (("unmarked", ""), ("padded", "*"))),
    ("*LSTM+Sup is better", "LSTM+Sup ({marked LSTM+Sup*}) is behind the best draw of Tf+Sup ({marked Tf+Sup})"),
    ("*LSTM+Sup is better", "LSTM ({marked LSTM*}) by its best draw ahead of that of Tf ({marked Tf})"),
    ("*Tf+Nd overfits", "(X {dyck Tf+Nd:}; LSTM {dyck LSTM:}, LSTM+Sup {dyck LSTM+Sup:}, LSTM+Nd {dyck LSTM+Nd:})"),
    ("*Tf+Nd overfits", "(X {dyck Tf+Nd*:}). So it is with Tf+Sup ({dyck Tf+Sup*:})"),
    ("*What a draw", "(V {marked Tf+Sup} with Tf+Sup, {marked Tf+Nd} with Tf+Nd, {marked Tf} without a stack"),
]
LANGUAGES = {"hardest": "hardest-cfl", "dyck": "dyck"} | {
    kind: f"{kind}-reversal" for kind in ("marked", "unmarked", "padded")}


@pytest.mark.parametrize("start, words", SAID)
def test_claims_of_figure_2_are_told_as_recorded(start, words):
    draws = of_figure_2()

    def told(found):
        of_cell = draws[f"{LANGUAGES[found[1]]} {found[2]}"]
        *others, last = [f"{draw[bool(found[4])]:.3f}" for draw in (of_cell if found[3] else of_cell[:1])]
        return f"{', '.join(others)} and {last}" if others else last

    assert re.sub(r"{(\w+) ([\w+-]+)(\*?)(:?)}", told, words) in claim(start)


NONDETERMINISTIC = ("hardest-cfl", "padded-reversal", "unmarked-reversal")
ALL = {"marked-reversal", *NONDETERMINISTIC, "dyck"}


# of Transformers or LSTMs: in how many draws of several languages one is ahead of each other one, in V or beyond
SIGNS = [
    ("Tf+Nd", ("Tf", "Tf+Sup"), NONDETERMINISTIC, False, 8, "eight of nine draws, of Tf and of Tf+Sup (p {} each)"),
    ("Tf+Nd", ("Tf", "Tf+Sup"), NONDETERMINISTIC, True, 9, "on all three (nine of nine each, p {})"),
    ("Tf+Sup", ("Tf",), ALL - {"hardest-cfl"}, False, 10, "ten of twelve draws (p {})"),
    ("LSTM+Nd", ("Tf+Nd",), ALL, True, 14, "in 14 of 15 draws (p {})"),
    ("LSTM+Sup", ("Tf+Sup",), ALL, False, 12, "in 12 of 15 draws (p {})"),
    ("LSTM", ("Tf",), ALL - {"dyck"}, False, 11, "LSTM in 11 of 12 (p {})"),
]


@pytest.mark.parametrize("mine, others, languages, beyond, ahead, told", SIGNS)
def test_signs_of_draws_are_counted_as_recorded(mine, others, languages, beyond, ahead, told):
    draws = of_figure_2()

    def values(row):
        return [dict(draws[row])[v] if beyond else v for v in drawn(row)]

    for other in others:
        signs = [first < second for language in languages
                 for first, second in zip(values(f"{language} {mine}"), values(f"{language} {other}"), strict=True)]
        assert sum(signs) == ahead
    p = 2 * sum(math.comb(len(signs), k) for k in range(ahead, len(signs) + 1)) / 2 ** len(signs)
    assert told.format(f"{p:.1g}") in prose("stack_attention").replace("\n ", "")


def test_lengths_are_told_as_recorded():
    draws = of_figure_2()
    grams = {language: draws[f"{language} 5-gram"][0][1] for language in NONDETERMINISTIC}
    ahead = [x < grams[language] for language in NONDETERMINISTIC for _, x in draws[f"{language} Tf+Nd"]]
    assert sum(ahead) == 8 and "with eight of nine, of the 5-gram" in claim("*Tf+Nd alleviates")
    by_more = {language: sum(x < grams[language] - 0.001 for stack in ("", "+Sup")
                             for _, x in draws[f"{language} Tf{stack}"]) for language in NONDETERMINISTIC}
    assert by_more == {"hardest-cfl": 0, "padded-reversal": 3, "unmarked-reversal": 0}
    tests = [line.p_value for line in lines("stack_attention", "figure-2") if line.p_value is not None]
    assert len(tests) == 20 and 0.095 < min(tests) < 0.105


def by_draw(language, stacks=("", "+Sup", "+Nd")):
    """V of a language's Transformers at each rate that all were drawn, by stack."""
    found = {stack: drawn(f"{language} Tf{stack}") for stack in stacks}
    return [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]


def test_orders_of_the_transformers_are_those_of_the_records():
    draws = of_figure_2()
    for language in ("hardest-cfl", "padded-reversal"):
        assert all(draw["+Nd"] < min(draw["+Sup"], draw[""]) for draw in by_draw(language))
    ((_, gram),) = draws["hardest-cfl 5-gram"]
    best, behind, other = (beyond for _, beyond in draws["hardest-cfl Tf+Nd"])
    assert max(best, other) < gram - 0.03 and behind > gram
    assert min(x for stack in ("", "+Sup") for _, x in draws[f"hardest-cfl Tf{stack}"]) > gram - 0.001
    first, second, third = by_draw("padded-reversal")
    assert all(draw["+Nd"] < draw["+Sup"] / 2 for draw in (first, third)) and second["+Nd"] > second["+Sup"] * 0.8
    told = "(V {+Nd:.3f}; {plain:.3f} and {+Sup:.3f}".format(**first, plain=first[""])
    told += ", and {+Nd:.3f}; {plain:.3f} and {+Sup:.3f})".format(**third, plain=third[""])
    assert told in claim("*Tf+Nd is ahead")
    told = "second ({+Nd:.3f}; {plain:.3f} and {+Sup:.3f})".format(**second, plain=second[""])
    assert told in claim("*Tf+Nd is ahead")
    for language in ("padded-reversal", "dyck"):
        assert all(draw["+Sup"] < draw[""] for draw in by_draw(language, ("", "+Sup")))
    one, two, three = by_draw("unmarked-reversal")
    assert sorted(one, key=one.get) == ["+Sup", "", "+Nd"] and sorted(two, key=two.get) == ["+Nd", "", "+Sup"]
    assert sorted(three, key=three.get) == ["+Nd", "+Sup", ""] and three["+Nd"] < three["+Sup"] / 2
    for draw, said in ((three, "best draw"), (two, "with the second"), (one, "learned the language")):
        told = said + " ({+Nd:.3f}; {plain:.3f} and {+Sup:.3f})".format(**draw, plain=draw[""])
        assert told in claim("*Tf+Nd is ahead")
    beyond = [{stack: x for stack in ("", "+Sup", "+Nd") for v, x in draws[f"dyck Tf{stack}"] if v == draw[stack]}
              for draw in by_draw("dyck")]
    assert all(draw["+Nd"] < draw["+Sup"] < draw[""] for draw in beyond)
    for stack in ("+Sup", "+Nd"):
        xs = [x for _, x in draws[f"dyck Tf{stack}"]]
        assert xs == sorted(xs, reverse=True)
    assert draws["dyck Tf+Nd"][0] == min(found[0] for row, found in draws.items() if row.startswith("dyck"))
    assert f"in distribution (V {draws['dyck Tf+Nd'][0][0]:.4f})" in claim("*Tf+Nd overfits")
    of_transformers = [longer for row in draws if row.startswith("marked-reversal Tf") for _, longer in draws[row]]
    assert len(of_transformers) == 9 and min(of_transformers) > draws["marked-reversal 5-gram"][0][1]
    p = {line.row: line.p_value for line in lines("stack_attention", "figure-2") if line.p_value is not None}
    of_stacks = [p[f"marked-reversal Tf{stack}"] for stack in ("+Sup", "+Nd")]
    assert of_stacks == [1.0, 1.0] and "(p 1 with both stacks)" in claim("*What a draw")


def test_orders_of_the_lstms_are_those_of_the_records():
    draws = of_figure_2()
    valid = {row: [v for v, _ in found] for row, found in draws.items()}
    beyond = {row: [x for _, x in found] for row, found in draws.items()}
    best, *others = valid["hardest-cfl Tf+Nd"]
    third = {row: drawn(row)[2] for row in draws if row.startswith("hardest-cfl") and not row.endswith("5-gram")}
    assert min(third, key=third.get) == "hardest-cfl Tf+Nd" and third["hardest-cfl Tf+Nd"] == best
    assert f"(LSTM+Nd {third['hardest-cfl LSTM+Nd']:.3f} there)" in claim("*Tf+Nd is best")
    assert min(valid["hardest-cfl LSTM+Nd"]) < best
    for stack in ("", "+Sup"):
        assert best < min(valid[f"hardest-cfl LSTM{stack}"]) <= max(valid[f"hardest-cfl LSTM{stack}"]) < min(others)
    padded = [[dict(draws[row])[v] for v in drawn(row)] for row in ("padded-reversal LSTM+Nd", "padded-reversal Tf+Nd")]
    assert all(mine < other for mine, other in zip(*padded, strict=True)) and padded[0][0] > padded[1][0] - 0.005
    for language in ("hardest-cfl", "unmarked-reversal"):
        assert max(beyond[f"{language} LSTM+Nd"]) < min(beyond[f"{language} Tf+Nd"])
        for stack in ("", "+Sup"):
            assert max(valid[f"{language} LSTM{stack}"]) < min(valid[f"{language} Tf{stack}"])
    marked = {row: found for row, found in beyond.items() if row.startswith("marked-reversal")}
    other = min(x for row, found in marked.items() if not row.endswith("LSTM+Nd") for x in found)
    assert sum(x < other for x in marked["marked-reversal LSTM+Nd"]) == 2
    (gram,), of_lstms = marked["marked-reversal 5-gram"], sum((marked[r] for r in marked if " LSTM" in r), [])
    told = f"(X {min(of_lstms):.3f} to {max(of_lstms):.3f}; {gram:.3f})"
    assert max(of_lstms) < gram < min(marked["marked-reversal Tf+Nd"]) and told in claim("*LSTM+Sup is better")
    for stack in ("", "+Sup"):
        of_lstm, of_tf = (drawn(f"padded-reversal {model}{stack}") for model in ("LSTM", "Tf"))
        assert all(mine < other for mine, other in zip(of_lstm, of_tf, strict=True))
    assert min(valid["marked-reversal LSTM+Sup"]) > min(valid["marked-reversal Tf+Sup"])
    best, second, _ = sorted(valid["marked-reversal LSTM"])
    assert best < min(valid["marked-reversal Tf"]) < second and best == drawn("marked-reversal LSTM")[2]
    for stack, ahead in (("", 2), ("+Sup", 1)):
        of_lstm, of_tf = (drawn(f"dyck {model}{stack}") for model in ("LSTM", "Tf"))
        assert sum(mine < other for mine, other in zip(of_lstm, of_tf, strict=True)) == ahead
        assert (min(of_lstm) < min(of_tf)) == (ahead == 2)
    of_lstm, of_tf = ([dict(draws[row])[v] for v in drawn(row)] for row in ("dyck LSTM+Nd", "dyck Tf+Nd"))
    assert [mine < other for mine, other in zip(of_lstm, of_tf, strict=True)] == [False, True, True]
    assert [draws[row][0][1] for row in ("dyck LSTM+Nd", "dyck Tf+Nd")] == [of_lstm[2], of_tf[2]]
    assert all(draws[f"dyck LSTM{stack}"][0][1] < of_tf[2] for stack in ("", "+Sup", "+Nd"))
