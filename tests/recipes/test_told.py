"""Sentences of docs/ are told as the records have it: decoding, exchanges, entailment, times, abilities."""

from __future__ import annotations

import re

from tests.recipes.test_findings import lines, prose


def said(paper):
    return " ".join(prose(paper).split())


def test_steps_of_a_beam_search_are_told_with_a_source_and_without():
    ends = {}
    for kind, names in (("with", ("figure-4.2", "figure-5.1")), ("without", ("figure-4.3",))):
        times = [line.mean for name in names for line in lines("peng_thesis", name)
                 if line.metric == "beam_speed_up" and line.row not in ("softmax", "no attention")]  # fmt: skip
        ends[kind] = f"{min(times):.0f} to {max(times):.0f} times"
    text = said("peng_thesis")
    assert f"the others are {ends['with']} as fast, without a source {ends['without']}, which" in text


def test_exchanges_in_a_gpt_2_are_told_as_recorded():
    found = {(line.row, line.metric.removeprefix("validation_perplexity")): line.mean
             for line in lines("peng_thesis", "figure-4.4-exchange")}  # fmt: skip
    of = [found["softmax", "_softmax"], found["softmax", ""]]
    assert "softmax has {:.1f}, and {:.1f} when it is tuned on".format(*of) in said("peng_thesis")
    of = [found[row, when] for row in ("T2R", "RFA") for when in ("_at_swap", "")] + [found["5-gram", ""]]
    told = "T2R in its place has {:.1f} at once, and {:.1f} after attention transfer and tuning; RFA {:.1f} and {:.1f}."
    assert (told + " Both begin behind a Kneser-Ney 5-gram ({:.1f})").format(*of) in said("peng_thesis")
    assert min(of[0], of[2]) > of[4] > max(of[1], of[3])


def test_rational_language_models_read_as_many_sentences_as_is_said():
    found = lines("peng_thesis", "6.3-stand-in")
    (many,) = {re.search(r"(\d+) training sentences", run.dataset)[1] for line in found for run in line.runs.values()}
    assert f"of their size, on {int(many):,} sentences of Brown" in said("peng_thesis")


def test_entailment_is_told_beside_what_its_pairs_can_tell():
    found = {line.row: line.mean for line in lines("structured_attention", "5-rte") if line.metric == "test_accuracy"}
    least, none = found.pop("majority"), found.pop("No attention")
    beyond = 1.96 * (least * (100 - least) / 2400) ** 0.5
    assert len(found) == 4 and max(found.values()) < least + beyond < none
    ends = f"{min(found.values()):.1f} to {max(found.values()):.1f} %, within what 2,400 pairs tell from the majority ("
    assert f"have {ends}{least:.1f}), and no attention has {none:.1f}, with one seed" in said("structured_attention")


def test_times_of_segmentation_attention_are_those_of_the_records():
    found = {line.row: line.runs[1].seconds for line in lines("structured_attention", "3-stand-in")
             if line.row.startswith("words, ")}  # fmt: skip
    simple, _ = found.pop("words, simple"), found.pop("words, sigmoid")
    times = [seconds / simple for seconds in found.values()]
    assert len(times) == 4
    assert f"that have it take {min(times):.1f} to {max(times):.1f} times as long" in said("structured_attention")
    speed = {line.row: line.mean for line in lines("published_sizes", "trial")
             if line.metric == "training_tokens_per_second"}  # fmt: skip
    structured, simple = (speed[f"structured_attention/table-3, words, {kind}"] for kind in ("structured", "simple"))
    assert f"it trains on {structured:,.0f} tokens a second and simple attention on {simple:,.0f} (" in said(
        "structured_attention")  # fmt: skip
