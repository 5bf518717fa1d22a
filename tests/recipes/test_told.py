"""Sentences of docs/ are told as the records have it: decoding, exchanges, entailment, times, abilities."""

from __future__ import annotations

import re
import statistics
from itertools import pairwise

from seqstruct.harness.records import read_folder
from tests.recipes.test_findings import RECIPES, finding, lines, prose


def said(paper):
    return " ".join(prose(paper).split())


def test_steps_of_a_beam_search_are_told_with_a_source_and_without():
    ends = {}
    for kind, names in (("with", ("figure-4.2", "figure-5.1")), ("without", ("figure-4.3",))):
        times = [line.mean for name in names for line in lines("peng_thesis", name)
                 if line.metric == "beam_speed_up" and line.row not in ("softmax", "no attention")]
        ends[kind] = f"{min(times):.0f} to {max(times):.0f} times"
    text = said("peng_thesis")
    assert f"the others are {ends['with']} as fast, without a source {ends['without']}, which" in text


def test_language_models_of_brown_are_told_as_recorded():
    found = {(line.row, line.metric): line for line in lines("peng_thesis", "4.3-stand-in")}
    of = {row: line.mean for (row, metric), line in found.items() if metric == "test_perplexity"}
    softmax, gated = (found[row, "test_perplexity"] for row in ("BASE", "RFA-GATE-Gaussian"))
    text = said("peng_thesis")
    assert f"A Kneser-Ney 5-gram of the same subwords has {of['5-gram']:.0f} on test. Softmax has " in text
    told = "Softmax has {:.1f} ± {:.1f}, gated RFA {:.1f} ± {:.1f} (p {:.0e}; "
    both = (number for line in (softmax, gated) for number in (line.mean, line.deviation))
    assert told.format(*both, gated.p_value) in text and len(softmax.values) == len(gated.values) == 3
    context = (found[line.row, "test_perplexity_context_256"].mean for line in (softmax, gated))
    assert "context change little ({:.1f} and {:.1f})".format(*context) in text
    elu = found["phi-elu", "test_perplexity"]
    told = f"(equation A.2) has {of['BASE-GATE']:.0f}, elu without a gate {elu.mean:.1f} ± {elu.deviation:.1f} (p"
    rfa = found["RFA-Gaussian", "test_perplexity"]
    told = f"{told} {elu.p_value:.0e}), and RFA without one, {rfa.mean:.1f} ± {rfa.deviation:.1f}, is not ahead of the"
    assert told in text and min(elu.values.values()) > max(softmax.values.values())
    assert min(rfa.values.values()) > of["5-gram"] and len(rfa.values) == len(elu.values) == 3
    stateful = [found["RFA-GATE-Gaussian-Stateful", f"test_perplexity{end}"].mean for end in ("", "_no_state")]
    assert "gated RFA has {:.1f}, and {:.1f} when that model is tested without the state".format(*stateful) in text
    assert gated.mean < stateful[0] < stateful[1] < of["BASE-GATE"]
    one = of["RFA-GATE-Gaussian, one matrix"]
    assert f"as all others have them, gated RFA has {one:.1f} (one training, of" in text
    assert one < min(gated.values.values())
    assert f"with 5 % more parameters, has {of['gated delta']:.1f} (one training, of the mended loss)" in text
    size = {line.row: line.mean for (_, metric), line in found.items() if metric == "parameters"}
    assert round(100 * size["gated delta"] / size["RFA-GATE-Gaussian"]) == 105 and of["gated delta"] == min(of.values())
    assert f"T2R, learned from the start, has {of['T2R']:.1f}, and so is behind" in text and softmax.mean < of["T2R"]
    memory, wide = (found["ABC-MLP", f"test_perplexity{end}"].mean for end in ("", "_context_256"))
    told = "`ABC-MLP` has {:.1f} on test and {:.1f} with 256 tokens of context, where softmax has {:.1f} ± {:.1f} and"
    assert told.format(memory, wide, softmax.mean, softmax.deviation) in text
    assert softmax.mean < memory < of["5-gram"] < of["Linformer"] < of["ABC-RD"]
    rates = {line.row: [] for line in lines("peng_thesis", "4.3-rates")}
    for line in sorted(lines("peng_thesis", "4.3-rates"), key=lambda line: line.metric):
        rates[line.row] += [f"{line.mean:.3f}"] * ("loss" in line.metric)
    first, other = rates["rates, BASE"], rates["rates, RFA-GATE-Gaussian"]
    told = "softmax has {} bits of a subword on validation at that rate, {} at twice and {} at four times it, gated RFA"
    assert f"{told.format(*first)} {other[0]}, {other[1]} and {other[2]}, ahead at each" in text
    greater = {row: [found[f"{row}, rate searched", f"{split}_perplexity"].mean for split in ("test", "validation")]
               for row in ("RFA-GATE-Gaussian", "BASE")}
    told = ["{:.1f}, and not for softmax, {:.1f} (one training each, of the mended loss; on validation {:.1f}, where",
            "the rate of all has {:.1f} to {:.1f}, and {:.1f}, where it has {:.1f} to {:.1f}): gated RFA is ahead with"]
    ours, theirs = (sorted(found[row, "validation_perplexity"].values.values()) for row in greater)
    figures = [*(test for test, _ in greater.values()), greater["RFA-GATE-Gaussian"][1], ours[0], ours[-1]]
    assert " ".join(told).format(*figures, greater["BASE"][1], theirs[0], theirs[-1]) in text
    assert greater["RFA-GATE-Gaussian"][1] < ours[0] and greater["BASE"][1] > theirs[-1]
    assert all(theirs > ours for theirs, ours in zip(first, other, strict=True))
    least, *others = sorted([of["BASE-GATE"], gated.mean, *softmax.values.values(), of["phi-elu"], of["5-gram"]])
    assert least == gated.mean and others[0] == of["BASE-GATE"] and others[-1] == of["5-gram"] < of["RFA-Gaussian"]


def test_what_goes_on_from_softmax_is_told_as_recorded():
    table = {(line.row, line.metric): line for line in lines("peng_thesis", "figure-4.4")}
    item = finding("peng_thesis", "*Figure 4.4*")
    rows = "RFA", "RFA reset", "softmax reset", "T2R", "softmax continued"

    def by_seed(row, metric, form="{:,.0f}, {:,.0f} and {:,.0f}"):
        return form.format(*(table[row, metric].values[seed] for seed in (1, 2, 3)))

    back = {row: by_seed(row, "updates_to_softmax_loss") for row in rows}
    assert f"is back at its training loss after {back['RFA']} updates" in item and "three seeds)" in item
    assert back["softmax continued"] == "100, 100 and 100" and f"T2R is back after {back['T2R']}." in item
    told = f"begun anew softmax is back after {back['softmax reset']} (the thesis: fewer than 200), and RFA after "
    assert f"{told}{back['RFA reset']}, behind the" in item
    bleu = {row: by_seed(row, "validation_bleu", "{:.1f}, {:.1f} and {:.1f}") for row in (*rows, "softmax")}
    before = {row: by_seed(row, "validation_bleu_before", "{:.1f}, {:.1f} and {:.1f}") for row in rows}
    told = f"softmax has {bleu['softmax']}, RFA at once {before['RFA']} (in the thesis 0.4) and after tuning"
    told += f" {bleu['RFA']}, {bleu['RFA reset']} anew, softmax anew {bleu['softmax reset']}, T2R {before['T2R']} at "
    assert f"{told}once and {bleu['T2R']} after." in item
    anew, on = (table[row, "validation_bleu"].values for row in ("RFA reset", "RFA"))
    told = "in BLEU it is by one seed {:.1f} ahead of that, by the others {:.1f} and {:.1f} behind, which"
    assert told.format(anew[1] - on[1], on[2] - anew[2], on[3] - anew[3]) in item
    of = {row: [[loss for _, loss in table[row, "training_loss"].runs[seed].points("training_loss")]
              for seed in (1, 2, 3)]
          for row in rows}
    assert all(anew > on for two in zip(of["RFA reset"], of["RFA"], strict=True) for anew, on in zip(*two, strict=True))
    starts = [table["softmax", "training_loss"].values[seed] + 0.01 for seed in (1, 2, 3)]
    assert len(of["RFA"][0]) == 20 and all(max(on) < at for on, at in zip(of["softmax continued"], starts, strict=True))
    rises = [after - point for row in rows for curve in of[row] for point, after in pairwise(curve)]
    assert f"means of 100 updates that rise by up to {max(rises):.2f} from one to the next" in item
    whole = {row: [next((100 * n for n in range(6, 21) if statistics.mean(curve[n - 6 : n]) <= at - 0.01), None)
                   for curve, at in zip(of[row], starts, strict=True)] for row in rows[:-1]}
    form = "{:,.0f}, {:,.0f} and {:,.0f}"
    rfa, anew, t2r = (form.format(*whole[row]) for row in ("RFA", "softmax reset", "T2R"))
    told = f"RFA is back after {rfa}, softmax anew after {anew}, T2R after {t2r}, and RFA anew not within 2,000."
    assert told in item and whole["RFA reset"] == [None] * 3
    apart = [anew[-1] - on[-1] for anew, on in zip(of["RFA reset"], of["RFA"], strict=True)]
    assert "at each of twenty points, by {:.2f}, {:.2f} and {:.2f} bits of a subword at the last".format(*apart) in item
    behind = [curve[-1] - on[-1] for row in rows[:-1] for curve, on in zip(of[row], of[rows[-1]], strict=True)]
    assert f"behind, by {min(behind):.2f} to {max(behind):.2f} bits." in item
    assert f"BLEU comes to {bleu['softmax continued']}, for softmax was not trained to the end" in item


def test_exchanges_in_a_gpt_2_are_told_as_recorded():
    found = {(line.row, line.metric.removeprefix("validation_perplexity")): line.mean
             for line in lines("peng_thesis", "figure-4.4-exchange")}
    of = [found["softmax", "_softmax"], found["softmax", ""]]
    assert "softmax has {:.1f}, and {:.1f} when it is tuned on".format(*of) in said("peng_thesis")
    of = [found[row, when] for row in ("T2R", "RFA") for when in ("_at_swap", "")] + [found["5-gram", ""]]
    told = "T2R in its place has {:.1f} at once, and {:.1f} after attention transfer, of twice as many updates, and "
    told += "tuning; RFA {:.1f} and {:.1f}. Both begin behind a Kneser-Ney 5-gram ({:.1f})"
    assert told.format(*of) in said("peng_thesis")
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


def test_closing_parentheses_are_told_as_recorded():
    found = {(line.row, line.metric): list(line.values.values()) for line in lines("structured_attention", "figure-3")}
    item = finding("structured_attention", "*Parentheses in self-attention*")
    rows = "Structured", "Simple", "even weights"
    of_any, of_own, beside = ([found[row, f"test_weight_on_{name}"] for row in rows]
                              for name in ("openings", "own_opening", "neighbours"))

    def listed(values):
        return "{:.1f}, {:.1f} and {:.1f}".format(*values)

    told = f"marginals have {listed(of_any[0])} % of their weight there, simple attention {listed(of_any[1])}, and "
    told += f"even weights {of_any[2][0]:.1f}; on the one that each closes {listed(of_own[0])}, {listed(of_own[1])}, "
    nearest = found["nearest opening", "test_weight_on_own_opening"][0]
    assert f"{told}and {of_own[2][0]:.1f}, where the nearest opening one before has {nearest:.1f}." in item
    told = f"of the weight of all symbols {listed(beside[0])} % is on the two next to them, where even weights have "
    assert f"{told}{beside[2][0]:.1f} and simple attention no more than {max(beside[1]):.1f}." in item
    assert max(of_any[0]) < min(of_any[2]) and min(beside[0]) > 7 * max(beside[1])


def test_translation_with_segmentation_attention_is_told_as_recorded():
    found = {line.row: line for line in lines("structured_attention", "3-stand-in") if line.metric == "test_bleu"}
    words = {row.partition(", ")[2]: line for row, line in found.items() if row.startswith("words, ")}
    text, kinds = said("structured_attention"), ("simple", "sigmoid", "structured")
    assert {len(words[kind].runs) for kind in words} == {3}
    shown = {kind: f"{line.mean:.1f} ± {line.deviation:.1f}" for kind, line in words.items() if line.deviation}
    told = "simple attention has {simple} BLEU, sigmoid attention {sigmoid} and structured attention {structured}, wh"
    assert told.format_map(shown) in text
    assert {line.p_value for kind, line in words.items() if kind != "from sigmoid"} == {None, 1.0}
    assert "nothing tells the kinds of attention apart (p 1)" in text
    told = "(simple attention {:.1f}, {:.1f} and {:.1f})"
    assert told.format(*(words["simple"].runs[seed].value("test_bleu") for seed in (1, 2, 3))) in text
    apart = [max(values) - min(values) for line in words.values() if (values := list(line.values.values()))]
    assert 10 <= max(apart) < 10.5 and "differ by up to 10 BLEU" in text
    characters = {kind: found[f"characters, {kind}"] for kind in kinds}
    told = [f"{line.mean:.1f} ± {line.deviation:.1f}" for line in map(characters.get, ("structured", "simple"))]
    assert "by three seeds: structured attention has {} and simple attention {}, in the paper's".format(*told) in text
    assert f"(p {characters['structured'].p_value:.2f}, of seven tests)" in text
    *trained, third = (characters["sigmoid"].runs[seed].value("test_bleu") for seed in (1, 2, 3))
    most = max(characters["structured"].values.values())
    told = "has {:.1f} and {:.1f} by two seeds, ahead of each seed of structured attention (at most {:.1f}), and {:.1f}"
    assert told.format(*trained, most, third) in text and most < min(trained)
    stays = next(line for line in lines("structured_attention", "3-stand-in") if line.row == "characters, sigmoid"
                 and line.metric == "validation_perplexity").runs[3].value("validation_perplexity")
    assert f"perplexity on validation, {stays:.0f}, is one of" in text
    told = "no gamma ({no gamma}), where the paper has marginals that saturate, nor a penalty on the unaries"
    told += " ({unary l2}) differs"
    assert told.format_map(shown) in text
    assert f"trained sigmoid model ({shown['from sigmoid']}, p {words['from sigmoid'].p_value:.2f})" in text


def test_times_of_segmentation_attention_are_those_of_the_records():
    found = {line.row: statistics.median(run.seconds for run in line.runs.values())
             for line in lines("structured_attention", "3-stand-in") if line.row.startswith("words, ")}
    simple, _, _ = (found.pop(f"words, {kind}") for kind in ("simple", "sigmoid", "from sigmoid"))
    times = [seconds / simple for seconds in found.values()]
    assert len(times) == 3
    assert f"that have it take {min(times):.1f} to {max(times):.1f} times as long" in said("structured_attention")
    speed = {(line.row.rpartition(" ")[2], line.scale): line.mean for line in lines("published_sizes", "trial")
             if line.metric == "training_tokens_per_second" and "structured_attention/table-3" in line.row}
    told = [speed[kind, scale] for scale in ("small", "paper") for kind in ("structured", "simple")]
    assert "it trains on {:,.0f} tokens a second and simple attention on {:,.0f} on a processor, and on {:,.0f} and " \
        "{:,.0f} on an H200, so {:.1f} times as long".format(*told, told[3] / told[2]) in said("structured_attention")


def abilities():
    """Mean and standard deviation of each row beyond the lengths of training, by task; and the page."""
    found = {}
    for record in read_folder(RECIPES / "abilities" / "records"):
        if record.table == "abilities":
            for name in record.metrics:
                if name.endswith("_long"):
                    values = [value for _, value in record.points(name)] or [record.value(name)]
                    found.setdefault(name.removesuffix("_long"), {})[record.row.partition("(slots")[0]] = (
                        statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0)
    return found, " ".join((RECIPES.parent / "docs" / "choosing.md").read_text("utf-8").split())


def test_what_mechanisms_remember_is_told_as_recorded():
    found, page = abilities()
    recall, copying = found["recall"], found["copying"]
    kept = ["performer", "gated_softmax", "mean_pool", "local_to_global"]
    low = {row for row, (mean, _) in recall.items() if mean < 95.5} - {"simple rule", "state_stack", *kept}
    assert all("window" in row or "stack" in row or "LSTM" in row or "RRNN" in row or row == "GRU" for row in low)
    assert f"({min(recall[row][0] for row in low):.0f} to {max(recall[row][0] for row in low):.0f}, the state" in page
    told = "`performer` {:.0f}), but for `gated_softmax` ({:.0f}), `mean_pool` ({:.0f}) and `local_to_global` ({:.0f})."
    assert told.format(*(recall[row][0] for row in kept)) in page
    family = [mean for row, (mean, _) in copying.items() if "delta" in row]
    assert f"the delta rule's family ({min(family):.0f} to {max(family):.0f}, but `kda` {copying['kda'][0]:.0f}" in page
    told = "the GRU ({:.0f} ± {:.0f}); then come `gla` ({:.0f}), `abc_mlp` ({:.0f}) and `gsa` ({:.0f}),"
    assert told.format(*copying["GRU"], *(copying[row][0] for row in ("gla", "abc_mlp", "gsa"))) in page
    assert "and softmax has {:.0f} ± {:.0f}.".format(*copying["softmax"]) in page
    best = sorted(copying, key=lambda row: -copying[row][0])
    assert [row for row in best if "delta" not in row][:5] == ["GRU", "gla", "abc_mlp", "kda", "gsa"]


def test_what_mechanisms_track_and_nest_is_told_as_recorded():
    found, page = abilities()
    even = {row: mean for row, (mean, _) in found["a5"].items()}
    assert f"most), the LSTM {even['LSTM']:.0f} and the GRU {even['GRU']:.0f}, no other above 3, chance 2." in page
    above = {row.partition("(negative")[0] for row, mean in even.items() if round(mean) > 3}
    assert above == {"LSTM", "GRU", "LSTM+Sup", "LSTM+Nd", "delta", "delta_product"}
    operations = [mean for row, (mean, _) in found["listops"].items() if row != "simple rule"]
    told = f"{min(operations):.0f} to {max(operations):.0f} beside {found['listops']['simple rule'][0]:.0f} of the rule"
    assert told in page
    stacks = ("superposition_stack(size=16)", "stratification_stack(size=16)", "nondeterministic_stack")
    assert f"({min(found[task][row][0] for task in ('dyck', 'undo') for row in stacks):.1f} and more)" in page
    limited, *lstms = ([found[task][row][0] for task in ("dyck", "undo")] for row in (
        "limited_nondeterministic_stack(window=8)", "LSTM+Sup", "LSTM+Nd"))
    assert "but for that of limited memory ({:.0f} and {:.0f});".format(*limited) in page
    told = "LSTMs with a stack ({:.0f} to {:.0f} and {:.0f} to {:.0f});"
    assert told.format(*(end for of in zip(*lstms, strict=True) for end in sorted(of))) in page


def test_abilities_are_of_as_many_parameters_as_is_said():
    records = read_folder(RECIPES / "abilities" / "records")
    sizes = [record.parameters for record in records if record.table == "abilities" and record.parameters]
    assert f"{min(sizes) // 1000 * 1000:,} to {max(sizes) // 1000 * 1000:,} parameters" in abilities()[1]


def test_recurrent_recognisers_are_told_by_language():
    found = {}
    for line in lines("flare", "2"):
        language, _, model = line.row.partition(" ")
        if line.metric == "test_accuracy":
            found.setdefault(model, {})[language] = line
    rule, lstm, rnn, tf = (found[model] for model in ("trivial rule", "LSTM", "RNN", "Tf"))
    assert "**Holds in part**: for the LSTM beyond seeds on parity and Dyck-(2, 3), of six languages" in said("flare")
    beyond = [name for name, line in lstm.items() if (line.p_value or 1) < 0.05 and line.mean > tf[name].mean]
    assert beyond == ["parity", "dyck-2-3"] and len(lstm) == 6
    ahead = [name for name, line in rnn.items() if line.mean > max(tf[name].mean, rule[name].mean)]
    assert ahead == ["repeat-01", "marked-reversal"]
    (marked, other) = (row["marked-reversal"] for row in (rnn, tf))
    told = f"and marked reversal ({marked.mean:.0f}; {other.mean:.0f}, p {marked.p_value:.0f})"
    assert told in said("flare")
    runs = [(name, value) for name in ("marked-reversal", "unmarked-reversal") for value in lstm[name].values.values()]
    (above,) = [value for name, value in runs if value > rule[name].mean]
    assert len(runs) == 6 and f"there one is ahead of the rule ({above:.0f} %)" in said("flare")


def test_steps_of_stack_models_are_told_beside_a_step_without_dropout_too():
    timed = (RECIPES / "SPEED.md").read_text("utf-8").partition("\n## stack-layers\n")[2].partition("Training steps")[2]
    rows = re.findall(r"^(\S.*?) +80 +[\d.]+ +([\d.]+) ", timed, re.M)
    steps = {row: float(ms) for row, ms in reversed(rows[:10])}
    plain = steps["plain Transformer step, length 80, no dropout"]
    of = [steps[f"{model}+Nd Q={states}"] / plain for model in ("Tf", "LSTM") for states in (2, 3)]
    told = "Tf+Nd with two and three states takes {:.1f} and {:.1f} times the time, LSTM+Nd {:.1f} and {:.1f}."
    assert told.format(*of) in " ".join((RECIPES.parent / "docs" / "speed.md").read_text("utf-8").split())
