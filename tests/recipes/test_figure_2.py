"""What docs/reproduction/stack_attention.md says of figure 2 is what the records carry, draw by draw."""

from __future__ import annotations

import re

import pytest

from tests.recipes.test_findings import finding, items, lines, prose


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
    return finding("stack_attention", "Which findings of section 6 hold", start)


def test_claims_that_rest_on_one_seed_say_so():
    claims = items(prose("stack_attention"), "Which findings of section 6 hold")
    of_more = ("*Tf+Sup is better", "*Tf+Nd overfits", "*What a draw decides")
    assert len(claims) == 8 and [c for c in claims if "one seed" not in c and not c.startswith(of_more)] == []
    several, stacks = {row: len(draws) for row, draws in of_figure_2().items() if len(draws) > 1}, ("", "+Sup", "+Nd")
    assert several == {f"marked-reversal Tf{stack}": 3 for stack in stacks} | {
        f"{language} Tf{stack}": 2 for language in ("hardest-cfl", "unmarked-reversal") for stack in stacks} | {
        f"{language} Tf{stack}": 2 for language in ("padded-reversal", "dyck") for stack in stacks[:2]}  # fmt: skip


def test_n_grams_stand_beside_the_strings_of_figure_2():
    text, draws = " ".join(prose("stack_attention").split()), of_figure_2()
    grams = {row.split()[0]: found[0] for row, found in draws.items() if row.endswith("5-gram")}
    assert all(found[-1][0] < grams[row.split()[0]][0] for row, found in draws.items() if not row.endswith("5-gram"))
    (hardest, hardest_beyond), (valid, beyond) = grams.pop("hardest-cfl"), zip(*grams.values(), strict=True)
    assert f"V {hardest:.2f} on the hardest CFL and {min(valid):.2f} to {max(valid):.2f} on the other languages" in text
    assert f"and X {hardest_beyond:.2f} and {min(beyond):.2f} to {max(beyond):.2f};" in text


# a claim's beginning, and words of it with V, or by a colon X, of a cell's best draw
SAID = [
    ("*Tf+Nd is best", "one, {hardest Tf+Nd}; Tf+Sup {hardest Tf+Sup}, Tf {hardest Tf}; the 5-gram {hardest 5-gram})"),
    ("*Tf+Nd is best", "LSTM+Nd has V {hardest LSTM+Nd}, LSTM {hardest LSTM} and LSTM+Sup {hardest LSTM+Sup}"),
    ("*Tf+Nd is ahead", "one seed of Tf+Nd (V {padded Tf+Nd}; {padded Tf} and {padded Tf+Sup})"),
    ("*Tf+Nd is ahead", "two draws ({unmarked Tf+Nd}; {unmarked Tf} and {unmarked Tf+Sup})"),
    ("*Tf+Nd is ahead", "an LSTM has {unmarked LSTM}"),
    ("*Tf+Sup is better", "Dyck-2 (V {dyck Tf+Sup}; {dyck Tf}) and, by little, on padded"),
    ("*Tf+Sup is better", "padded reversal ({padded Tf+Sup}; {padded Tf})"),
    ("*Tf+Sup is better", "({marked Tf+Sup}; {marked Tf}), and behind by the third"),
    ("*Tf+Sup is better", "the better one ({unmarked Tf+Sup}; {unmarked Tf})"),
    ("*Tf+Sup is better", "nothing tells the two apart ({hardest Tf+Sup}; {hardest Tf})"),
    ("*LSTM+Nd generalises", "the hardest CFL (X {hardest LSTM+Nd:}; Tf+Nd 0.162 and {hardest Tf+Nd:})"),
    ("*LSTM+Nd generalises", "unmarked reversal ({unmarked LSTM+Nd:}; {unmarked Tf+Nd:})"),
    ("*LSTM+Nd generalises", "the least X of all models ({marked LSTM+Nd:})"),
    ("*LSTM+Nd generalises", "nothing tells the two apart ({padded LSTM+Nd:}; {padded Tf+Nd:})"),
    ("*LSTM+Nd generalises", "behind ({dyck LSTM+Nd:}; {dyck Tf+Nd:})"),
    *(("*LSTM+Sup is better", f"({{{f} LSTM+Sup}}; {{{f} Tf+Sup}}, and {{{f} LSTM}}; {{{f} Tf}})")
      for f in ("unmarked", "hardest")),
    ("*LSTM+Sup is better", "LSTM+Sup from Tf+Sup ({dyck LSTM+Sup}; {dyck Tf+Sup})"),
    ("*LSTM+Sup is better", "LSTM is not ahead of Tf ({dyck LSTM}; {dyck Tf})"),
    ("*LSTM+Sup is better", "LSTM+Sup is ahead ({padded LSTM+Sup}; {padded Tf+Sup}), LSTM is not"),
    ("*LSTM+Sup is better", "LSTM is not ({padded LSTM}; {padded Tf})"),
    ("*LSTM+Sup is better", "LSTM+Sup ({marked LSTM+Sup}) is behind the best draw of Tf+Sup ({marked Tf+Sup})"),
    ("*LSTM+Sup is better", "LSTM ({marked LSTM}) behind that of Tf ({marked Tf})"),
    ("*LSTM+Sup is better", "(X {marked LSTM+Nd:} to {marked LSTM+Sup:}; {marked 5-gram:})"),
    ("*Tf+Nd overfits", "({dyck Tf+Nd:}; LSTM+Sup {dyck LSTM+Sup:})"),
    ("*What a draw", "(V {marked Tf+Sup} with Tf+Sup, {marked Tf+Nd} with Tf+Nd, {marked Tf} without a stack"),
]  # fmt: skip
LANGUAGES = {"hardest": "hardest-cfl", "dyck": "dyck"} | {
    kind: f"{kind}-reversal" for kind in ("marked", "unmarked", "padded")}  # fmt: skip


@pytest.mark.parametrize("start, words", SAID)
def test_claims_of_figure_2_are_told_as_recorded(start, words):
    best = {row: draws[0] for row, draws in of_figure_2().items()}
    told = re.sub(r"{(\w+) ([\w+-]+)(:?)}", lambda m: f"{best[f'{LANGUAGES[m[1]]} {m[2]}'][bool(m[3])]:.3f}", words)
    assert told in claim(start)


def test_the_order_of_figure_2_is_that_of_the_records():
    draws = of_figure_2()
    valid = {row: found[0][0] for row, found in draws.items()}
    beyond = {row: found[0][1] for row, found in draws.items()}
    models = ("LSTM+Nd", "LSTM", "LSTM+Sup", "Tf+Nd", "Tf", "Tf+Sup", "5-gram")
    hardest = [valid[f"hardest-cfl {model}"] for model in models]
    assert hardest == sorted(hardest) and valid["hardest-cfl LSTM+Sup"] < valid["hardest-cfl Tf+Sup"]
    stacks = [draws[f"hardest-cfl Tf{stack}"] for stack in ("+Nd", "", "+Sup")]
    assert all(min(of_draw)[0] == of_draw[0][0] for of_draw in zip(*stacks, strict=True)), "Tf+Nd by each draw"
    assert [f"{worse[1]:.3f}" for _, worse in stacks] == ["0.162", "0.193", "0.193"]
    assert min(better[1] for better, _ in stacks) > beyond["hardest-cfl 5-gram"]
    assert all(valid[f"{language} LSTM+Sup"] < valid[f"{language} Tf+Sup"] for language in LANGUAGES.values()
               if language != "marked-reversal")  # fmt: skip
    behind = {language for language in LANGUAGES.values() if valid[f"{language} LSTM"] > valid[f"{language} Tf"]}
    assert behind == {"marked-reversal", "padded-reversal", "dyck"}
    of_seed = {row: dict(enumerate(drawn(row))) for row in draws}
    for language in ("padded-reversal", "dyck"):
        sup, plain = (of_seed[f"{language} Tf{stack}"] for stack in ("+Sup", ""))
        assert len(sup) == 2 and all(sup[seed] < plain[seed] for seed in plain), "Tf+Sup by each draw"
    one, two = ({stack: of_seed[f"unmarked-reversal Tf{stack}"][seed] for stack in ("", "+Sup", "+Nd")}
                for seed in (0, 1))  # fmt: skip
    assert sorted(one, key=one.get) == ["+Sup", "", "+Nd"] and sorted(two, key=two.get) == ["+Nd", "", "+Sup"]
    told = "learned the language ({+Nd:.3f}; {plain:.3f} and {+Sup:.3f})".format(**one, plain=one[""])
    assert told in claim("*Tf+Nd is ahead")
    assert valid["padded-reversal Tf+Nd"] < valid["padded-reversal Tf+Sup"] / 5
    for language in ("marked-reversal", "dyck"):
        least = min((row for row in beyond if row.startswith(f"{language} ")), key=beyond.__getitem__)
        assert least == f"{language} {'LSTM+Nd' if language == 'marked-reversal' else 'Tf+Nd'}"
    p = {line.row: line.p_value for line in lines("stack_attention", "figure-2") if line.p_value is not None}
    assert "(p {marked-reversal Tf+Sup:.2g} and {marked-reversal Tf+Nd:.2g})".format(**p) in claim("*What a draw")
    of_transformers = [longer for row in draws if row.startswith("marked-reversal Tf") for _, longer in draws[row]]
    assert len(of_transformers) == 9 and min(of_transformers) > beyond["marked-reversal 5-gram"]
