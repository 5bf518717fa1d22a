"""What seeds leave open, docs/reproduction/ leaves open: a finding that a difference could not show is not refuted."""

from __future__ import annotations

from itertools import combinations

from scipy.stats import spearmanr, ttest_ind

from seqstruct.harness.paper import read_tables
from tests.recipes.test_findings import RECIPES, finding, lines
from tests.recipes.test_lineage import listed


def interval(one, other):
    """Of the difference of two rows' means, at 95 %, by Welch's test."""
    runs = ([*line.values.values()] for line in (one, other))
    return ttest_ind(*runs, equal_var=False).confidence_interval()


def test_an_intermediate_tree_is_told_as_recorded():
    item = finding("peng_thesis", "*SPIGOT, a tree before")
    found = {line.row: line for line in lines("peng_thesis", "2.1-stand-in") if line.metric == "test_labeled_f1"}
    said = "neither SPIGOT ({:.1f}) nor STE ({:.1f}) is ahead of the pipeline ({:.1f})"
    assert said.format(*(found[row].mean for row in ("SPIGOT", "STE", "PIPELINE"))) in item
    spigot, ste = (interval(found[row], found["PIPELINE"]) for row in ("SPIGOT", "STE"))
    ends = -spigot.low, spigot.high, -ste.low, ste.high
    said = "SPIGOT is between {:.1f} behind and {:.1f} ahead, STE between {:.1f} behind and {:.1f} ahead."
    assert said.format(*ends) in item
    assert "**Not shown**" in item and spigot.high > 91.6 - 90.8 > spigot.low and ste.high > 91.1 - 90.8 > ste.low
    assert f"attention ({found['SA'].mean:.1f}) leads" in item
    assert f"(p {found['SA'].p_value:.2g} against the pipeline" in item
    runs = {row: [*line.values.values()] for row, line in found.items()}
    by_seed = zip(*(runs[row] for row in ("SA", "PIPELINE", "STE", "SPIGOT")), strict=True)
    assert all(first > max(others) for first, *others in by_seed)
    table = lines("peng_thesis", "2.1-stand-in")
    tried = {line.row: line for line in table if line.metric == "search_f1_at_rate_0.004"}
    spigot, ste = (dict(tried[row].runs[1].points(tried[row].metric)) for row in ("SPIGOT", "STE"))
    assert all([*f1.values()] == sorted(f1.values(), reverse=True) and min(f1) == 0.03 for f1 in (spigot, ste))
    told = "SPIGOT has {:.1f} and STE {:.1f}, to 0.03, the least tried and chosen by both, with {:.1f} and {:.1f};"
    assert told.format(spigot[1], ste[1], spigot[0.03], ste[0.03]) in item
    assert f"is what an eta of 0 comes to, has {tried['PIPELINE'].mean:.1f}, each by one training." in item
    tree = [ttest_ind(runs[row], runs["no syntax"], equal_var=False).pvalue for row in ("SA", "PIPELINE")]
    assert "attention (p {:.1g} by a test of its own), with the pipeline perhaps (p {:.1g})".format(*tree) in item


def test_trees_that_spigot_changes_are_told_as_recorded():
    item = finding("peng_thesis", "*SPIGOT overrules trees")
    found, control = ({line.metric: line for line in lines("peng_thesis", "2.3-stand-in") if line.row == row}
                      for row in ("SPIGOT", "PIPELINE, another seed"))
    (eta,) = {line.mean for line in lines("peng_thesis", "2.1-stand-in") if line.metric == "chosen_eta"}
    assert f"With an eta of {eta} (the thesis: 1), on the sentences whose trees it changes," in item

    def of(kind, found=found):
        pipeline, joint = (found[kind.format(which)] for which in ("pipeline", "joint"))
        return (pipeline.mean, joint.mean), [joint.values[seed] - pipeline.values[seed] for seed in pipeline.values]

    (means, trees), (f1, graphs), (same, _) = of("diff_{}_uas"), of("diff_{}_labeled_f1"), of("same_{}_labeled_f1")
    assert "in the mean {:.1f} to {:.1f} UAS, as".format(*means) in item and len(trees) == 3 and max(trees) < 0
    (_, seeds), many = of("diff_{}_uas", control), [row["diff_sentences"].values.values() for row in (control, found)]
    ends = (f"{end:.0f}" for values in many for end in (min(values), max(values)))
    told = "the trees of as many sentences, {} to {} of 200 where SPIGOT changes {} to {}, and these by "
    told = told.format(*ends) + listed(seeds) + " UAS, all three to the better, where SPIGOT's become worse by "
    assert told + listed(trees) + "." in item and min(seeds) > 0 and sum(seeds) > -sum(trees)
    assert found["same_sentences"].values[1] + found["diff_sentences"].values[1] == 200
    assert "from {:.1f} to {:.1f} labeled F1, up with one seed and down with two, and".format(*f1) in item
    assert sorted(change > 0 for change in graphs) == [False, False, True]
    assert "where no tree was changed from {:.1f} to {:.1f}.".format(*same) in item
    uas = {line.row: line for line in lines("peng_thesis", "2.1-stand-in") if line.metric == "test_graph_sentences_uas"}
    rows = uas["SPIGOT"], uas["STE"]
    told = "here, on test, they have {:.1f} and {:.1f} of {:.1f} (three seeds each, p {:.2f} by a test of its own, STE"
    p_value = ttest_ind(*([*line.values.values()] for line in rows), equal_var=False).pvalue
    assert told.format(*(line.mean for line in (*rows, uas["PIPELINE"])), p_value) in item
    kinds, other = ([row[f"changes_{kind}"].mean for kind in ("to_head", "to_dependent", "from_dependent")]
                    for row in (found, control))
    told = "Of the changes {:.1f} % give a word a head that it has in its graph, {:.1f} % make it hang on a dependent, "
    assert (told + "and {:.1f} % take it from one;").format(*kinds) in item
    assert "by another seed it is {:.1f}, {:.1f} and {:.1f} %, so".format(*other) in item and kinds[0] < other[0]


def test_graphs_before_a_class_could_show_little():
    item = finding("peng_thesis", "*SPIGOT, a graph before")
    found = {line.row: line for line in lines("peng_thesis", "2.2-stand-in") if line.metric == "test_accuracy"}
    means = sorted(line.mean for line in found.values() if line.row != "majority")
    assert f"all have {means[0]:.1f} to {means[-1]:.1f} %, with graphs or without ({found['BiLSTM'].mean:.1f};" in item
    ends = [interval(found[row], found["BiLSTM"]) for row in ("SPIGOT", "PIPELINE", "STE")]
    gains = [value - 84.8 for value in (86.3, 85.7, 85.4)]  # the thesis's
    between = "between {:.1f} behind and {:.1f} ahead"
    told = f"SPIGOT is {between}, which leaves no room for the thesis's {{:.1f}}, the pipeline {between}, which "
    told += f"leaves room for its {{:.1f}}, and STE {between}, where the thesis has it {{:.1f}} ahead."
    spigot, pipeline, ste = ((-end.low, end.high) for end in ends)
    assert told.format(*spigot, gains[0], *pipeline, gains[1], *ste, gains[2]) in item
    assert all(end.low < 0 < end.high for end in ends)
    assert [end.high > gain for end, gain in zip(ends, gains, strict=True)] == [False, True, False]
    f1 = {line.row: line.mean for line in lines("peng_thesis", "2.2-stand-in") if line.metric == "graphs_labeled_f1"}
    own, pipeline, spigot, ste = (f1[row] for row in ("parser alone", "PIPELINE", "SPIGOT", "STE"))
    assert f"the parser has {own:.1f} labeled F1 by itself (graphs in which each word hangs on the next: " in item
    assert f"The pipeline keeps {pipeline:.1f} of that, SPIGOT {spigot:.0f} and STE {ste:.0f}:" in item


def test_language_models_with_stacks_are_told_as_recorded():
    item = finding("stack_attention", "*Language modelling*")
    found = {line.row: line for line in lines("stack_attention", "2-stand-ins") if line.metric == "test_perplexity"}
    for text, order in (("brown", ("Tf+Nd", "Tf+Sup", "Tf")), ("wikitext2", ("Tf+Sup", "Tf", "Tf+Nd"))):
        means = [found[f"{text} {row}"].mean for row in (*order, "5-gram")]
        assert ", ".join(order) + " ({:.1f}, {:.1f}, {:.1f};".format(*means) in item and means == sorted(means)
    models = [found[f"treebank-sample {row}"].mean for row in ("Tf", "Tf+Sup", "Tf+Nd")]
    assert min(models) > found["treebank-sample 5-gram"].mean
    p = [line.p_value for line in found.values() if line.p_value is not None]
    assert f"(p {min(p):.2g} and more, of six tests)" in item and len(p) == 6
    brown, wikitext = (interval(found[f"{text} Tf+Nd"], found[f"{text} Tf"]) for text in ("brown", "wikitext2"))
    assert f"between {-brown.low:.0f} ahead of Tf and {brown.high:.0f} behind it on Brown" in item
    assert f"between {-wikitext.low:.0f} ahead and {wikitext.high:.0f} behind on WikiText-2." in item
    assert "**Not shown**" in item and all(end.low < 88.5 - 92.8 < end.high for end in (brown, wikitext))


def test_translation_with_linear_attention_is_told_as_recorded():
    item = finding("peng_thesis", "*Translation* (Table 4.4")
    found = {(line.row, line.metric): line for line in lines("peng_thesis", "4.4-stand-in")}
    rows = "BASE", "ABC-MLP 32-8", "phi-elu", "RFA-Gaussian", "RFA-Gaussian-NoFloor"
    softmax, *three, none = bleu = [found[row, "test_bleu"] for row in rows]
    scores = [line.mean for line in bleu]
    said = "Softmax {:.1f} BLEU, `ABC-MLP` {:.1f}, elu {:.1f}, RFA {:.1f}, without the floor {:.1f}."
    assert said.format(*scores) in item and scores == sorted(scores, reverse=True)
    assert all(len(line.values) == 3 for line in bleu) and none.p_value < 0.05
    (p,) = {f"{line.p_value:.2g}" for line in three}
    assert f"All are behind softmax (p {p} of the first three)" in item
    behind = interval(softmax, three[-1])
    assert f"RFA by {behind.low:.1f} to {behind.high:.1f} BLEU" in item
    assert all(end.low < 0 < end.high for end in (interval(*two) for two in combinations(three, 2)))
    speeds = [found[row, "decoding_speed"].mean for row in ("phi-elu", "ABC-MLP 32-8", "RFA-Gaussian")]
    assert "elu {:.2f} times softmax's speed, `ABC-MLP` {:.2f}, RFA {:.2f}, with".format(*speeds) in item
    others = [found[row, "test_bleu"] for row in ("RFA-GATE-Gaussian", "RFA-arccos", "RFA-GATE-arccos")]
    told = "of RFA with a gate has {:.1f} BLEU, and with arc-cosines, of half as many features, one has {:.1f} and one "
    told = (told + "with a gate too {:.1f}, where").format(*(line.mean for line in others))
    floor, none = (sorted(line.values.values()) for line in bleu[3:])
    assert told in item and max(line.mean for line in others[1:]) < floor[0]
    assert {len(line.values) for line in others} == {1}
    assert f"features without a gate have {floor[0]:.1f} to {floor[-1]:.1f}." in item
    told = "{:.1f}, {:.1f} and {:.1f} BLEU on Multi30k with three seeds, where it has {:.1f} to {:.1f} with a floor"
    assert told.format(*none, floor[0], floor[-1]) in finding("peng_thesis", "*Where RFA breaks.*")


def test_equation_4_10_is_told_as_recorded():
    item, found = finding("peng_thesis", "*Unit norm against"), lines("peng_thesis", "4.4-stand-in")
    of = {(line.row.removeprefix("RFA-Gaussian-NoNorm"), line.metric): line.mean for line in found}
    assert max(of["", "test_bleu"], of[" 0.25", "test_bleu"]) < 0.05 < of["copy", "test_bleu"]
    told = "has 0.0 BLEU and perplexities of {:.0f} and {:.0f} on validation."
    assert told.format(of["", "validation_perplexity"], of[" 0.25", "validation_perplexity"]) in item


def test_translation_with_stacks_is_told_as_recorded():
    found = {line.row: line for line in lines("multi30k", "multi30k") if line.metric == "test_bleu"}
    none, item = found["Tf"], finding("stack_attention", "*Machine translation*")
    assert f"Without a stack three seeds have {none.mean:.1f} ± {none.deviation:.1f} BLEU" in item
    for name, row in (("superposition stack", "Tf+Sup"), ("nondeterministic one", "Tf+Nd")):
        stack, ends = found[row], interval(found[row], none)
        told = f"the {name} {stack.mean:.1f} ± {stack.deviation:.1f} (p {stack.p_value:.2g}), "
        assert told in item and ends.low < 0 < ends.high and len(stack.values) == 3
        assert f"between {-ends.low:.1f} behind and {ends.high:.1f} ahead" in item[item.index(told) :]


def test_sizes_of_memories_are_told_as_recorded():
    item = finding("peng_thesis", "*Sizes of memories*")
    found = {line.row: line for line in lines("peng_thesis", "5.9-stand-in") if line.metric == "validation_bleu"}
    ends = {row: sorted(line.values.values()) for row, line in found.items() if len(line.runs) > 1}
    few, many = (ends.pop(f"cross {size}, causal 8") for size in (8, 32))
    told = "three seeds `ABC-MLP` has {:.1f} to {:.1f} BLEU with 8 slots across and {:.1f} to {:.1f} with 32 (p {:.2g})"
    told = told.format(few[0], few[-1], many[0], many[-1], ttest_ind(few, many, equal_var=False).pvalue)
    assert not ends and len(few) == len(many) == 3 and few[-1] < many[0] and told in item
    assert found.pop("copy").mean < 1
    found = {row: line.values[1] for row, line in found.items()}
    table = {(line.row, line.metric): line.values[1] for line in lines("peng_thesis", "5.9-stand-in")}
    across = {size: [row for row in found if row.startswith(f"cross {size},")] for size in (8, 16, 32, 64)}
    few, some, *more = ([found[row] for row in rows] for rows in across.values())
    many = sum(more, [])
    told = "has {:.1f} BLEU with 8 slots across, {:.1f} to {:.1f} with 16, and {:.1f} to {:.1f} with 32 or 64;"
    assert told.format(*few, *sorted(some), min(many), max(many)) in item
    assert max(few) < min(some) <= max(some) < min(many)
    few, some, *more = ([table[row, "validation_perplexity"] for row in rows] for rows in across.values())
    many = sum(more, [])
    told = "perplexities are {:.2f}, {:.2f} to {:.2f} and {:.2f} to {:.2f}."
    assert told.format(*few, *sorted(some), min(many), max(many)) in item and max(many) < min(some)
    (published,) = [table for table in read_tables(RECIPES / "peng_thesis") if table.name == "5.9"]
    theirs = {entry.row: entry.value for entry in published.published if entry.value is not None}
    rank = spearmanr(*zip(*((theirs[row], bleu) for row, bleu in found.items()), strict=True))
    assert f"(rank correlation {rank.statistic:.2f}, p {rank.pvalue:.1g})" in item and len(theirs) == len(found) == 10
    of = {(line.row, line.metric): [*line.values.values()] for line in lines("peng_thesis", "4.4-stand-in")}
    seeds, softmax = of["ABC-MLP 32-8", "validation_bleu"], of["BASE", "validation_perplexity"]
    assert f"of {min(seeds):.1f} to {max(seeds):.1f} for one size" in item and len(seeds) == len(softmax) == 3
    assert f"of {min(softmax):.2f} to {max(softmax):.2f} on validation, ahead" in item and max(softmax) < min(many)


def test_kinds_of_memories_are_told_as_recorded():
    item = finding("peng_thesis", "*Kinds of memories*")
    found = {line.row: line for line in lines("peng_thesis", "5.5a-stand-in") if line.metric == "test_bleu"}
    assert found.pop("copy").mean < 1 and "one seed" in item and {len(line.runs) for line in found.values()} == {1}
    bleu = {row: line.mean for row, line in found.items()}
    learned, *drawn = (bleu[row] for row in ("ABC-MLP 32-32", "ABC-RD 32-32", "ABC-RD 64-64"))
    assert f"has {learned:.1f} BLEU with 32 slots" in item
    assert "slots drawn at random (ABC-RD) {:.1f} with 32 and {:.1f} with 64".format(*drawn) in item
    assert abs(learned - drawn[1]) < 0.1 and "**Not shown**" in item
    for slots, share in ((64, "one in five"), (32, "one in three")):
        alone = (1 - 1 / slots) ** 13
        assert share in item and round(1 / (1 - alone)) == (5 if slots == 64 else 3)
    by_position = [bleu[f"Linformer {slots}-{slots}"] for slots in (32, 64)]
    assert "is behind it ({:.1f} and {:.1f})".format(*by_position) in item and max(by_position) < min(drawn)
    softmax = {line.row: line for line in lines("peng_thesis", "4.4-stand-in") if line.metric == "test_bleu"}["BASE"]
    assert f"All are behind softmax ({softmax.mean:.1f})." in item
    assert min(softmax.values.values()) > max(bleu.values())


def test_pools_of_matrices_are_told_as_recorded():
    item = finding("peng_thesis", "*Matrices to draw from*")
    found = {(line.row, line.metric): line for line in lines("peng_thesis", "A.1-stand-in")}
    assert found["copy", "validation_bleu"].mean < 1 and {len(line.runs) for line in found.values()} == {1}
    rows = [f"{number} matrices" for number in (1, 50, 100, 200)]
    bleu, perplexity = ([found[row, f"validation_{name}"].mean for row in rows] for name in ("bleu", "perplexity"))
    assert "One has {:.1f} BLEU, 50 {:.1f}, 100 {:.1f} and 200 {:.1f}, and".format(*bleu) in item
    assert "perplexities of {:.2f}, {:.2f}, {:.2f} and {:.2f}; the thesis".format(*perplexity) in item
    assert bleu[0] > max(bleu[1:]) and perplexity[0] < min(perplexity[1:]) and "one seed" in item
    of = {(line.row, line.metric): line for line in lines("peng_thesis", "4.4-stand-in")}
    seeds = sorted(of["RFA-Gaussian", "validation_bleu"].values.values())
    assert f"three seeds of 200 have {seeds[0]:.1f} to {seeds[-1]:.1f}" in item and len(seeds) == 3


def test_windows_and_clusters_are_told_as_recorded():
    item = finding("peng_thesis", "*Windows, clusters and slots*")
    found = {line.row: line for line in lines("peng_thesis", "5.7-stand-in") if line.metric == "test_bleu"}
    assert found.pop("copy").mean < 1 and {row for row in found if len(found[row].runs) > 1} == {
        "MLP-sigmoid 32-8", "MLP-ReLU 32-8", "Window 32-32", "Cluster 32-32"}
    window, cluster = (sorted(found.pop(f"{row} 32-32").values.values()) for row in ("Window", "Cluster"))
    everywhere = found.pop("MLP-exp-all 32-32-32").mean
    table = {line.row: line for line in lines("peng_thesis", "4.4-stand-in") if line.metric == "test_bleu"}
    softmax, same = (sorted(table[row].values.values()) for row in ("BASE", "ABC-MLP 32-8"))
    told = "have {:.1f} to {:.1f} and clusters {:.1f} to {:.1f}, where softmax has {:.1f} to {:.1f} by"
    told = told.format(*(row[end] for row in (window, cluster, softmax) for end in (0, -1)))
    assert told in item and f"in the encoder too `MLP-exp` has {everywhere:.1f} (27.0)." in item
    assert (len(window), len(cluster)) == (3, 3) and min(window + cluster) > max(same)
    assert f"The least of windows is {window[0] - everywhere:.1f} ahead of that" in item
    kinds = "exp", "sigmoid", "ReLU"
    bleu = {kind: [found.pop(f"MLP-{kind} 32-{slots}") for slots in (8, 32)] for kind in kinds}
    assert not found and min(window + cluster) > max(everywhere, *(line.mean for line in bleu["exp"]))
    sigmoid, rectified = (sorted(bleu[kind][0].values.values()) for kind in kinds[1:])
    p = [ttest_ind(*pair, equal_var=False).pvalue for pair in ((same, sigmoid), (sigmoid, rectified))]
    exp, other, least = (f"{row[0]:.1f} to {row[-1]:.1f}" for row in (same, sigmoid, rectified))
    told = f"has {exp} BLEU by three seeds (Table 4.4; by one more training {bleu['exp'][0].mean:.1f}), `MLP-sigmoid` "
    told += f"{other} (p {p[0]:.2g}) and `MLP-ReLU` {least} (p {p[1]:.2g} to the sigmoid, each by a test of its own), "
    told += "with 32 there {:.1f}, {:.1f} and {:.1f}, by one".format(*(bleu[kind][1].mean for kind in kinds))
    assert told in item and "perplexities are in this order too" in item
    assert len(same) == len(sigmoid) == len(rectified) == 3 and sigmoid[0] > bleu["ReLU"][1].mean
    assert bleu["exp"][1].mean > bleu["sigmoid"][1].mean + 0.9 and bleu["sigmoid"][1].mean > rectified[-1] + 1.5
    assert same[0] > sigmoid[-1] + 0.9 and sigmoid[0] > rectified[-1] + 1.5
    perplexity = {line.row: line.mean for line in lines("peng_thesis", "5.7-stand-in")
                  if line.metric == "validation_perplexity"}
    first, second, third = ([perplexity[f"MLP-{kind} 32-{slots}"] for slots in (8, 32)] for kind in kinds)
    assert max(first) < min(second) and max(second) < min(third)


def test_features_across_are_told_as_recorded():
    item = finding("peng_thesis", "*Features across and in the decoder*")
    found = {line.row: line for line in lines("peng_thesis", "A.4-stand-in") if line.metric == "validation_bleu"}
    ends = {row: sorted(line.values.values()) for row, line in found.items() if len(line.runs) > 1}
    few, many = (ends.pop(f"cross {size}, causal 128") for size in (32, 512))
    told = "RFA has {:.1f} to {:.1f} BLEU with 32 across by three seeds, and {:.1f} to {:.1f} with 512."
    assert not ends and len(few) == len(many) == 3 and told.format(few[0], few[-1], many[0], many[-1]) in item
    assert found.pop("copy").mean < 1 and few[-1] + 2 < many[0]
    both = found["cross 256, causal 128"].mean
    across = [found.pop(f"cross {number}, causal 128").values[1] for number in (32, 64, 128, 256, 512)]
    told = "512 across, {:.1f}, {:.1f}, {:.1f}, {:.1f} and {:.1f};"
    assert told.format(*across) in item and across == sorted(across)
    inside = [found.pop(f"cross 256, causal {number}").mean for number in (32, 64, 256, 512)]
    inside.insert(2, both)
    assert "in the decoder it has {:.1f}, {:.1f}, {:.1f}, {:.1f} and {:.1f};".format(*inside) in item
    assert not found and abs(inside[-1] - inside[0]) < 0.2 and across[-1] - across[0] > 3
    table = {line.row: line for line in lines("peng_thesis", "4.4-stand-in") if line.metric == "validation_bleu"}
    softmax = sorted(table["BASE"].values.values())
    assert f"softmax have {softmax[0]:.1f} to {softmax[-1]:.1f} (beam search)." in item
