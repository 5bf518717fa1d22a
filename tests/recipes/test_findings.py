"""What docs/reproduction/ says is what the records carry: baselines, single seeds, reversed orders."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import pytest
import torch
from scipy.stats import ttest_ind

from seqstruct.harness.findings import PAGES, findings, items
from seqstruct.harness.findings import prose as prose_of
from seqstruct.harness.paper import read_tables
from seqstruct.harness.records import read_folder
from seqstruct.harness.report import lines_of
from seqstruct.layers.rational import RationalLayer

RECIPES = Path(__file__).resolve().parents[2] / "recipes"


def prose(paper):
    """Of all pages of a source."""
    return "\n\n".join(map(prose_of, sorted(PAGES.glob(f"{paper}*.md"))))


def lines(paper, name):
    table = next(table for table in read_tables(RECIPES / paper) if table.name == name)
    records = read_folder(RECIPES / paper / "records")
    return [line for line in lines_of(table, records, ("small", "paper")) if line.values]


def shown(line):
    """Its mean and deviation."""
    return f"{line.mean:.1f} ± {line.deviation:.1f}"


def finding(paper, start):
    """The item of a page's lists that begins so."""
    (found,) = [item for item in items(prose(paper)) if item.startswith(start)]
    return found


def test_every_finding_has_a_verdict():
    found = {page: findings(page) for page in PAGES.glob("*.md")}
    for paper in ("peng_thesis", "structured_attention", "stack_attention", "nmt_lectures"):
        assert any(told for page, told in found.items() if page.stem.startswith(paper)), paper
    for page, told in found.items():
        assert len(told) == sum(item.startswith("*") for item in items(prose_of(page))), page


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_a_finding_of_one_training_holds_in_part_at_most(page):
    whole = [found for found in findings(page) if found.verdict == "Holds"]
    assert [found.name for found in whole if re.search(r"\bone (seed|training)\b(?! and)", found.source)] == []


DRAWN = {"abilities"}  # as a chart, in docs/choosing.md


@pytest.mark.parametrize("paper", sorted({path.parent.name for path in RECIPES.glob("*/paper.json")} - DRAWN))
def test_every_table_stands_in_the_docs(paper):
    shown = "".join(path.read_text("utf-8") for path in (RECIPES.parent / "docs").glob("**/*.md"))
    whole = f"<!-- seqstruct report {paper} --format markdown" in shown
    missing = [table.name for table in read_tables(RECIPES / paper)
               if not whole and f"<!-- seqstruct report {paper} {table.name} " not in shown]
    assert missing == []


@pytest.mark.parametrize("name", ["3.1-stand-in", "4.3-stand-in", "6.3-stand-in"])
def test_perplexities_that_are_not_ahead_of_n_grams_are_not_discussed(name):
    found = [line for line in lines("peng_thesis", name) if line.unit == "perplexity"]
    text, metrics = prose("peng_thesis"), {line.metric for line in found}
    for metric in metrics:
        of_metric = [line for line in found if line.metric == metric]
        n_grams = [line.mean for line in of_metric if line.kind == "baseline"]
        for line in of_metric:
            if n_grams and line.kind != "baseline" and line.mean >= min(n_grams):
                assert not re.search(rf"(?<![\d.]){line.mean:,.0f}(?![\d.]*\d)", text), (line.row, metric)


def test_rows_of_listops_are_ahead_of_the_first_token_and_not_of_each_other():
    accuracy = {line.row.removeprefix("ListOps "): line for line in lines("peng_thesis", "4.5-stand-in")
                if line.metric == "test_accuracy"}
    item = finding("peng_thesis", "*ListOps*")
    first, _ = accuracy.pop("first token"), accuracy.pop("majority")
    assert f"({first.mean:.4g} % on test)" in item
    assert min(line.mean for line in accuracy.values()) > first.mean + 10
    names = {"Transformer": "Softmax has", "Sinkhorn": "Sinkhorn", "ABC-MLP": "`ABC-MLP`", "Linear": "elu",
             "RFA-Gaussian": "RFA", "Performer": "Performer", "Linformer": "Linformer", "Big Bird": "Big Bird",
             "Synthesizer": "Synthesizer", "Local attention": "windows", "Reformer": "Reformer alone,"}
    assert accuracy.keys() == names.keys()
    assert min(accuracy.values(), key=lambda line: line.mean).row == "ListOps Reformer"
    for row, name in names.items():
        line = accuracy[row]
        assert len(line.values) == 3
        p = "" if line.p_value is None else f" (p {line.p_value:.2g})"
        assert f"{name} {line.mean:.1f} ± {line.deviation:.1f}{' %' * (row == 'Transformer')}{p}" in item
        assert line.p_value is None or line.p_value > 0.05


def test_rational_models_with_fixed_vectors_are_told_as_recorded():
    found = {line.row.removesuffix(", skip-gram"): line for line in lines("peng_thesis", "6.5-skip-gram")
             if line.metric == "test_accuracy"}
    item = finding("peng_thesis", "*Text classification*")
    for corpus, above, level in (("SST", ["F", "max-plus"], ["B", "C"]), ("subj", ["C", "F"], ["B", "max-plus"])):
        rows = {"B": "RRNN(B)", "C": "RRNN(C)", "max-plus": "RRNN(B) max-plus", "F": "RRNN(F)"}
        of = {name: found[f"{corpus} {row}"] for name, row in rows.items()}
        assert f"On {corpus} the LSTM has {found[f'{corpus} LSTM'].mean:.1f} %, " in item
        for one, other in (above, level):
            assert (f"{one} {of[one].mean:.1f} and {other} {of[other].mean:.1f} (p {of[one].p_value:.2g} and "
                    f"{of[other].p_value:.2g})") in item
        assert all((of[name].p_value < 0.05) == (name in above) for name in rows)
    on_cr = [line for row, line in found.items() if row.startswith("CR ") and line.kind != "baseline"]
    means = sorted(line.mean for line in on_cr)
    assert f"({means[0]:.1f} to {means[-1]:.1f}, p 1)" in item
    assert {line.p_value for line in on_cr} <= {None, 1.0}


def test_tree_transduction_is_told_as_recorded():
    item = finding("structured_attention", "*Tree transduction*")
    found = {(line.row, line.metric[-1]): line for line in lines("structured_attention", "2")}
    whole = [found[row, "e"].mean for row in ("Structured", "Simple", "No attention", "constant")]
    said = "structured attention has {:.1f} % of the target before the first failure, simple attention {:.1f} (p "
    p = ttest_ind(*([*found[row, "e"].values.values()] for row in ("Structured", "Simple")), equal_var=False).pvalue
    assert said.format(*whole) + f"{p:.1g}, one test) and no attention {whole[2]:.1f}, which is" in item
    assert f"one constant form for all formulas ({whole[3]:.1f})" in item and whole[2] < whole[3]
    assert all(found["Structured", depth].mean > found["Simple", depth].mean for depth in "23456")
    by_depth = {"4": "({:.1f} against {:.1f} %, p {:.2g};", "3": "at depth 3 {:.1f} against {:.1f}, p {:.2g})"}
    for depth, between in by_depth.items():
        structured = found["Structured", depth]
        assert between.format(structured.mean, found["Simple", depth].mean, structured.p_value) in item
    assert [depth for depth in "23456" if found["Structured", depth].p_value < 0.05] == ["4"]


def test_questions_are_told_as_recorded():
    item = finding("structured_attention", "*Question answering*")
    found = {(line.row, line.metric): line for line in lines("structured_attention", "4")}
    models = ("MemN2N", "Binary CRF", "Unary CRF")
    answers = [found[f"average {model}", "test_accuracy"] for model in models]
    best = "MemN2N has {:.1f} % on the average of twelve tasks, the binary CRF {:.1f} and the unary CRF {:.1f} ("
    assert best.format(*(line.best for line in answers)) in item
    tasks = {row.removesuffix(" Unary CRF") for row, metric in found if row.endswith("Unary CRF")} - {"average"}
    trivial = [statistics.fmean(found[f"{task} {kind} answer", "test_accuracy"].mean for task in tasks)
               for kind in ("most frequent", "random")]
    assert "is most frequent in training has {:.1f} % and one at random {:.1f}.".format(*trivial) in item
    assert f"({answers[1].mean:.1f}; {answers[0].mean:.1f}, p {answers[1].p_value:.1g})" in item
    facts = [found[f"average {model}", "fact_accuracy_of_best_half"].mean for model in models]
    said = f"the binary CRF finds the most, {facts[1]:.1f} %, MemN2N {facts[0]:.1f} and the unary CRF {facts[2]:.1f} ("
    assert said in item and max(facts) == facts[1]
    of_facts = {(int(row.split()[1]), row.split()[2]): line.mean for (row, metric), line in found.items()
                if row.startswith("task ") and metric == "fact_accuracy_of_best_half"}
    told = "on task 17 its {:.1f} is a random order of two facts ({:.0f}), for it alone may not choose one twice "
    told += "(MemN2N {:.1f})"
    chance = found["task 17 random answer", "fact_accuracy"].mean
    assert told.format(of_facts[17, "Binary"], chance, of_facts[17, "MemN2N"]) in item
    told = "without that task it has {:.1f} and MemN2N {:.1f}."
    without = [[value for (task, of), value in of_facts.items() if of == model and task != 17] for model in (
        "Binary", "MemN2N")]
    assert told.format(*map(statistics.fmean, without)) in item
    pairs = [n for task in (13, 2, 11) for n in (of_facts[task, "Binary"], of_facts[task, "MemN2N"])]
    told = "13 shows it ({:.1f}; {:.1f}), 2 hardly does ({:.1f}; {:.1f}), 17 for that reason alone, and 11 does the"
    assert (told + " reverse ({:.1f}; {:.1f})").format(*pairs) in item
    tasks = {model: {True: [], False: []} for model in models}
    for (row, metric), line in found.items():
        task, _, model = row.removeprefix("task ").partition(" ")
        if row.startswith("task ") and metric == "test_accuracy" and (line.p_value or 1) < 0.05:
            tasks[model][line.mean > found[f"task {task} MemN2N", metric].mean].append(int(task))
    assert tasks["Unary CRF"] == {False: [2, 3, 11, 13, 14], True: [7, 17, 19]}
    assert tasks["Binary CRF"] == {False: [3, 16], True: [14, 17, 19]}
    assert "the unary CRF is behind MemN2N on 2, 3, 11, 13 and 14, the binary CRF on 3 and 16" in item
    assert "the unary CRF on 7, 17 and 19" in item and "The binary CRF is ahead of MemN2N on 14, 17 and 19" in item


def test_what_a_crf_needs_is_told_as_recorded():
    item = finding("structured_attention", "*What a CRF needs")
    tried = {line.row: [value for _, value in line.runs[1].points(line.metric)]
             for line in lines("structured_attention", "4") if line.metric == "search_validation_accuracy"}
    unary, binary = (tried[f"task 16 {kind} CRF"] for kind in ("Unary", "Binary"))
    *others, best = unary
    *rest, chosen, ends = binary
    told = f"the unary CRF has {best:.0f} and the binary one {chosen:.0f}, by the seeds that chose this setting"
    assert told in item and max(*others, *rest) < 44 and max(others[2], *rest[4:]) < 40
    without, most, *_ = tried["task 11 Binary CRF"]  # settings come in pairs, the second with potentials of the ends
    assert most == max(tried["task 11 Binary CRF"])
    assert f"raise task 11 from {without:.0f} to {most:.0f} on validation" in item
    assert f"lower task 16 from {chosen:.0f} to {ends:.0f}." in item


def test_latent_trees_are_told_as_recorded():
    item = finding("peng_thesis", "*Latent trees*")
    found = {line.row.removeprefix("transduction "): line.mean for line in lines("peng_thesis", "latent-trees")
             if line.metric == "length_to_failure"}
    assert f"only marginals learn ({found['marginal']:.0f} % of the target" in item
    said = "SPIGOT has {:.1f}, STE {:.1f} and a tree that is never trained {:.1f}, where one constant form for all "
    rows = (found[row] for row in ("spigot", "ste", "pipeline"))
    assert f"{said.format(*rows)}formulas has {found['constant']:.1f} %" in item


def test_language_models_that_parse_are_told_as_recorded():
    item = finding("peng_thesis", "*PaLM*")
    found = {line.row: line for line in lines("peng_thesis", "3.1-stand-in") if line.metric == "test_perplexity"}
    base, unsupervised, supervised = of_three = [found[row] for row in ("AWD-LSTM", "PaLM-U", "PaLM-S")]
    assert "three seeds)" in item and all(len(line.values) == 3 for line in of_three)
    n_gram = found["5-gram"].mean
    assert f"ahead of a Kneser-Ney 5-gram (test perplexity {n_gram:.1f})" in item
    models = {row: line.mean for row, line in found.items() if line.kind != "baseline"}
    assert max(models.values()) < n_gram
    assert f"AWD-LSTM has {shown(base)}, PaLM-U {shown(unsupervised)} (p {unsupervised.p_value:.2g})" in item
    assert f"PaLM-S, which learned from trees, {shown(supervised)} (p {supervised.p_value:.2g})" in item
    right, one_seed = found["PaLM-RB"], [found[row].mean for row in ("ON-LSTM", "PRPN")]
    assert f"PaLM-RB {shown(right)} (p {right.p_value:.2g}), " in item
    one_seed.append(found["PaLM-U last layer"].mean)
    told = "ON-LSTM {:.1f} and PRPN {:.1f} with one seed each, as has PaLM-U where it attends after the last layer "
    assert f"{told}(note 9), {{:.1f}};".format(*one_seed) in item
    assert min(line.p_value for line in (unsupervised, supervised, right)) > 0.05 and "**Not shown**" in item


def test_parsers_are_held_against_right_branching():
    item = finding("peng_thesis", "*PaLM*")
    found = {(line.row, line.metric): line for line in lines("peng_thesis", "3.3-stand-in")}
    right, random = (found[f"{way} branching", "unlabeled_f1"].mean for way in ("Right", "Random"))
    own, left = (found["PaLM-S", f"{kind}unlabeled_f1"] for kind in ("", "left_score_"))
    assert f"none of these is ahead of right branching (F1 {right:.1f})" in item
    assert max(*own.values.values(), *left.values.values()) < right
    assert f"PaLM-S has {shown(own)} by its own scores and {shown(left)} with those from the left" in item
    ordered = found["ON-LSTM", "unlabeled_f1"].mean
    assert f"ON-LSTM {ordered:.1f}," in item and ordered < right
    unsupervised = found["PaLM-U", "unlabeled_f1"]
    assert f"PaLM-U {shown(unsupervised)}, behind random branching ({random:.1f})" in item
    assert max(unsupervised.values.values()) < random


def test_exchanged_attention_is_told_as_recorded():
    item = finding("peng_thesis", "*One attention trained, another used*")
    found = {(line.row.removeprefix("trained "), line.metric.removeprefix("bleu_evaluated_")): f"{line.mean:.1f}"
             for line in lines("peng_thesis", "4.6-stand-in")}
    runs = {line.row: len(line.values) for line in lines("peng_thesis", "4.6-stand-in")}
    assert "three seeds)" in item and [runs[f"trained {name}"] for name in ("S-attn", "NS-attn", "RFA")] == [3, 3, 3]
    softmax, unit, rfa = (found[name, name] for name in ("S-attn", "NS-attn", "RFA"))
    assert f"has {found['S-attn', 'RFA']} of its {softmax} BLEU with RFA" in item
    assert f"RFA's {found['RFA', 'S-attn']} of {rfa} with softmax" in item
    assert f"here {found['RFA', 'NS-attn']} of {rfa} and {found['NS-attn', 'RFA']} of {unit} are kept" in item


def test_masked_models_are_level_with_one_that_is_not_pretrained():
    found = {(line.row, line.metric): line.mean for line in lines("peng_thesis", "5.6-stand-in")}
    item = finding("peng_thesis", "*Masked language models and GLUE*")
    others = [row for row, metric in found if metric == "masked_perplexity" and row != "BASE"]
    sst = [found[row, "test_accuracy"] for row in ("BASE", *others)]
    without = found["BASE, not pretrained", "test_accuracy"]
    assert f"has {without:.1f} % on SST" in item and f"{min(sst):.1f} to {max(sst):.1f}" in item
    assert {line.p_value for line in lines("peng_thesis", "5.6-stand-in")} == {None, 1.0} and "(p 1)" in item
    assert f"all fail, {found['ABC-MLP 32, not continued', 'test_accuracy']:.1f} (majority" in item
    rte = {row: value for (row, metric), value in found.items() if metric == "rte_test_accuracy"}
    nothing, least = rte["BASE, not pretrained"], rte["majority"]
    told = rte["BASE"], *(end(rte[row] for row in others) for end in (min, max))
    assert "On RTE softmax has {:.1f} % and the others that are pretrained {:.1f} to {:.1f},".format(*told) in item
    assert f"without pretraining it is {nothing:.1f}, and the majority has {least:.1f}; on" in item
    *others, least = sorted(value for (row, metric), value in found.items() if metric == "rte_validation_accuracy")
    assert f"are behind the majority ({others[0]:.1f} to {others[-1]:.1f} %; {least:.1f})," in item
    assert least == found["majority", "rte_validation_accuracy"]
    by_seed = {line.row: line.values for line in lines("peng_thesis", "5.6-stand-in")
               if line.metric == "masked_perplexity"}
    base = by_seed.pop("BASE")
    ends = [end(values[seed] for values in by_seed.values()) for seed in (1, 2, 3) for end in (min, max)]
    told = "perplexity of {:.0f}, {:.0f} and {:.0f} with softmax, and of {:.0f} to {:.0f}, {:.0f} to {:.0f} and {:.0f} "
    assert (told + "to {:.0f} with the others").format(*(base[seed] for seed in (1, 2, 3)), *ends) in item


def test_speeds_on_long_texts_are_those_of_the_records():
    table = lines("peng_thesis", "4.5-stand-in")
    found = {(line.row.removeprefix("ListOps "), line.metric): line.mean for line in table}
    item = finding("peng_thesis", "*ListOps*")
    speed, memory, before = (
        [found[row, metric] for row in ("RFA-Gaussian", "Linear", "ABC-MLP", "Local attention")]
        for metric in ("speed_4k", "memory_4k", "speed_1k")
    )
    assert f"RFA {speed[0]:.1f} times as fast in {memory[0]:.1f} times the memory" in item
    assert "elu {:.1f} in {:.1f}, `ABC-MLP` {:.1f} in {:.1f}, windows {:.1f} in {:.1f}".format(
        *(value for pair in zip(speed[1:], memory[1:], strict=True) for value in pair)
    ) in item
    assert "at 1,000 tokens {:.1f}, {:.1f}, {:.1f} and {:.1f} times".format(*before) in item
    assert found["Reformer", "speed_2k"] < 1 < found["Reformer", "speed_3k"]
    longest = found["Reformer", "speed_4k"], found["Reformer", "memory_4k"]
    assert "({:.1f} at 4,000, in {:.1f} times".format(*longest) in item
    assert max(found["Synthesizer", f"speed_{n}k"] for n in (1, 2, 3, 4)) < 1


def test_states_are_held_against_what_softmax_uses():
    shares = [line.mean for name in ("figure-4.2", "figure-4.3", "figure-5.1") for line in lines("peng_thesis", name)
              if line.metric == "memory_share" and line.row not in ("softmax", "no attention")]
    said = re.sub(r"\s+", " ", prose("peng_thesis"))
    assert f"the states are {min(shares):.1f} to {max(shares):.1f} % of what softmax uses" in said


def test_encoding_is_told_as_recorded():
    claim = finding("peng_thesis", "*Encoding*")
    speed = {(line.scale, line.row): line.mean for line in lines("peng_thesis", "5.8")
             if line.metric == "encoding_speed"}
    told = "Linformer ({:.2f} times as fast with 64 slots) and `ABC-MLP` ({:.2f})"
    assert told.format(*(speed["small", f"{name} 64"] for name in ("Linformer", "ABC-MLP"))) in claim
    told = "on an H200 ({:.2f} and {:.2f}, where"
    assert told.format(*(speed["paper", f"{name} 64"] for name in ("Linformer", "ABC-MLP"))) in claim
    assert max(speed.values()) < 1.1, "so none gains time"
    page = (RECIPES.parent / "docs" / "speed.md").read_text("utf-8")
    anew = [re.search(rf"^\| {name}, 64 slots, an encoder's layer \|[^|]*\| ([^|]+) \|", page, re.M)[1]
            for name in ("linformer", "abc_mlp")]
    assert "they have {} and {}.".format(*anew) in claim


def test_splits_are_told_as_recorded():
    found = {(line.row, line.metric): line for line in lines("peng_thesis", "3.4-stand-in")}
    item = finding("peng_thesis", "*Left and right splits*")
    left, right = (found["PaLM-U", f"{side}_splits"].values.values() for side in ("left", "right"))
    assert len(left) == 3 and "**Does not hold**" in item and min(left) > 90 and max(right) < 5
    assert f"{min(left):.1f} % of its splits or more are left ones and {max(right):.1f} at most right ones" in item
    parsers = {line.row: line.mean for line in lines("peng_thesis", "3.3-stand-in") if line.metric == "unlabeled_f1"}
    assert f"(F1 {parsers['PaLM-U']:.1f} and {parsers['Left branching']:.1f})" in item
    right, left = (found["Random", f"{side}_splits"] for side in ("right", "left"))
    said = f"{right.mean:.0f} ± {right.deviation:.0f} % right and {left.mean:.0f} ± {left.deviation:.0f} % left"
    assert f"Untrained models split {said}" in item and len(right.values) == 25
    gold = [found["Gold", f"{side}_splits"].mean for side in ("right", "left")]
    assert "gold trees of nltk's sample {:.1f} and {:.1f}".format(*gold) in item


def test_rational_language_models_are_told_as_recorded():
    recorded = lines("peng_thesis", "6.3-stand-in")
    table = {line.row: line for line in recorded if line.metric == "test_perplexity"}
    item = finding("peng_thesis", "*Rational language models*")
    names = "RRNN(B) max-plus", "RRNN(F)", "RRNN(B)", "LSTM", "RRNN(C)"
    small, two = [table[f"{name} 2 layers 10M"] for name in names], table["LSTM 2 layers 24M"]
    *deep, products = (table[f"{name} 3 layers 24M"] for name in names)
    assert all(len(line.runs) == 3 for line in (*small, two, *deep, products)) and "by three seeds" in item
    trigram = table["trigram"].mean
    assert f"ahead of a trigram ({trigram:.1f})" in item and max(line.mean for line in (*small, *deep)) < trigram
    chosen = {line.row: line.mean for line in recorded if line.metric == "chosen_unit_vectors"}
    as_drawn = {f"{name} {size}" for name in names[:2] for size in ("2 layers 10M", "3 layers 24M")}
    assert "max-plus and F choose them as drawn" in item and {row for row in chosen if not chosen[row]} == as_drawn
    most, f, b, lstm, c, great = (f"{line.mean:.1f} ± {line.deviation:.1f}" for line in (*small, two))
    first, second, third, same, behind, large, *of_three = ([*line.values.values()] for line in (*small, two, *deep))
    assert f"here F ({f}) and B ({b}) are ahead of the LSTM of their size with each seed ({lstm};" in item
    assert max(*second, *third) < min(same) and f"B by p {small[3].p_value:.2f}, of nine tests)" in item
    apart = min(ttest_ind(large, one, equal_var=False).pvalue for one in (second, third))
    assert f"nothing tells them from that with 24M ({great}; p {apart:.2f} and more, uncorrected)" in item
    assert f"C ({c}) is behind all of these (p {small[4].p_value:.1g} against B)" in item
    assert min(behind) > max(*same, *third, *second, *large)
    assert f"F is first of the three, as in the thesis, and with each seed (p {small[1].p_value:.2f})." in item
    assert max(second) < min(third) and max(first) < min(behind) and "The order is reversed of max-plus: the" in item
    apart = small[4].mean - small[2].mean
    assert f"B and C, level in the thesis, are {apart:.0f} apart (p {small[4].p_value:.1g})" in item
    assert f"ahead of C with each seed ({most}; p {small[0].p_value:.2f} against B)" in item
    told = "F ({}), max-plus ({}), the LSTM ({}) and B ({}), are all behind the LSTM of two (p {:.1g} at most)"
    most, f, b, lstm = (f"{line.mean:.1f} ± {line.deviation:.1f}" for line in deep)
    assert told.format(f, most, lstm, b, max(line.p_value for line in deep)) in item
    assert sum(line.p_value is not None for line in table.values()) == 9
    most, f, b, lstm = of_three
    assert max(*f, *most) < min(lstm) and "F and max-plus are ahead of the LSTM of three with each seed" in item
    told = f"is behind a trigram with each seed ({products.mean:.1f} ± {products.deviation:.1f})"
    assert told in item and min(products.values.values()) > trigram
    states = initial_states("C", 266, 3)
    assert "begin at 1e-7" in item and states[2] < 2e-7 and states[0] > 0.05


def initial_states(automaton, size, layers):
    """Standard deviations of the states that layers begin with, as `recurrent_lm --unit-vectors` draws them."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        found, states = [], torch.empty(5, 35, size).uniform_(-1, 1) * 3**0.5
        for layer in (RationalLayer(automaton, size, size, output_gate=True) for _ in range(layers)):
            states = layer(states, layer.initial_state(5))[0].detach()
            found.append(states.std().item())
    return found
