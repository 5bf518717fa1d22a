"""What docs/reproduction/nmt_lectures.md says of the lineage is what the records carry."""

from __future__ import annotations

import pytest

from seqstruct.attention import make_config
from seqstruct.harness.paper import read_tables
from tests.recipes.composed import trainings
from tests.recipes.test_findings import RECIPES, finding, lines
from tests.recipes.test_told import said


def listed(values, form=".1f"):
    *others, last = (format(abs(value), form) for value in values)
    return f"{', '.join(others)} and {last}"


def test_five_epochs_of_the_lineage_are_told_as_recorded():
    table = lines("nmt_lectures", "multi30k")
    found = {line.row: line for line in table if line.metric == "test_bleu"}
    bleu, text = {row: line.mean for row, line in found.items()}, said("nmt_lectures")
    plain, search = bleu["RNN encoder-decoder"], bleu["RNNsearch"]
    assert f"after five epochs, below, {search:.1f} and {plain:.1f}." in text and search > plain
    pyramid = found["grConv"]
    told = f"recursive encoder ({pyramid.mean:.1f} ± {pyramid.deviation:.1f} by three seeds of five epochs) is behind"
    assert told in text
    assert len(pyramid.runs) == 3 and max(run.value("test_bleu") for run in pyramid.runs.values()) < plain
    assert f"self-attention the Transformer has {bleu['Transformer, linear attention']:.1f}, on" in text
    pieces = (bleu[f"Transformer, unigram{sampled}"] for sampled in ("", " sampled"))
    told = "After five epochs, below, unigram pieces have {:.1f} BLEU and those that are drawn {:.1f}, whose lines"
    assert told.format(*pieces) in text
    luong = [value for row, value in bleu.items() if row.startswith("Luong")]
    told = f"Luong's models have {min(luong):.0f} to {max(luong):.0f} BLEU and Sutskever's {bleu['Sutskever']:.0f},"
    assert told in text and len(luong) == 3 and bleu["Sutskever"] < max(luong) < plain


def test_five_epochs_are_told_with_what_was_not_alike():
    text, table = said("nmt_lectures"), lines("nmt_lectures", "multi30k")
    minutes = [run.seconds / 60 for line in table for run in line.runs.values() if run.seconds]
    assert f"a row is five epochs, {min(minutes):.0f} to {max(minutes):.0f} minutes of one thread" in text
    settings = {}
    for row in ("Transformer", "RNNsearch", "ConvS2S", "GNMT", "Luong general"):
        *_, found = trainings("nmt_lectures/multi30k", row, "small")
        settings[row] = found["optimization"]["lr"][0], found["model"]["dropout"]
    rate, dropout = settings.pop("Transformer")
    (others,) = set(settings.values())
    told = f"({rate} and {dropout} of Transformers, {others[0]} and {others[1]} of the others)"
    assert f"Rates and dropout are not one for all {told}" in text


def test_the_lineage_is_told_as_the_records_have_it():
    text = said("nmt_lectures")
    found = {(line.row, line.metric): line for line in lines("nmt_lectures", "lineage")}
    models = ("Transformer", "RNNsearch", "Luong general", "RNN encoder-decoder")
    five = "Transformer", "ConvS2S", "RNNsearch", "Luong general", "GNMT"
    score = {row: list(found[row, "test_tokenized_bleu_lowercased"].values.values()) for row in five}
    told = "Transformer has {}, ConvS2S {}, RNNsearch {}, Luong general {} and GNMT {};"
    assert told.format(*map(listed, score.values())) in text
    assert [len(values) for values in score.values()] == [3] * 5
    ahead, p, behind, chrf_p = ([found["ConvS2S", f"test_{metric}"].values[seed] for seed in (1, 2, 3)] for metric in (
        "bleu_difference", "bleu_p", "chrf_difference", "chrf_p"))
    told = f"{listed(ahead)} ahead in BLEU (p {listed(p, '.2f')}), {listed(behind)} behind in chrF (p "
    assert f"{told}{listed(chrf_p, '.2f')}), RNNsearch" in text and min(ahead) > 0 > max(behind)
    softmax, convolved = (found[row, "test_bleu"].values for row in five[:2])
    *of_other, again = (softmax[seed] - convolved[seed] + gain for seed, gain in enumerate(ahead, 1))
    for less in of_other:
        assert f"have {less:.1f} BLEU less than those of the same seeds that the table averages." in text
    assert again == pytest.approx(0, abs=1e-9)
    for row in five[2:]:
        gap = -found[row, "test_bleu_difference"].values[3]
        assert found[row, "test_bleu"].values[3] + gap == pytest.approx(softmax[3], abs=1e-9)
    later = tuple(f"Luong {score}" for score in ("dot", "location", "concat", "local-m", "local-p"))
    later += "Sutskever, source not reversed", "decoder performer", "decoder t2r", "Transformer, words"
    later += ("Transformer, words and characters",)
    later += "decoder lsh", "decoder lsh(buckets=2)", "decoder gated_delta", "decoder superposition_stack"
    later += ("decoder nondeterministic_stack",)
    for row in later:  # scored against what a later commit trained
        again = found[row, "test_bleu"].values[2] - found[row, "test_bleu_difference"].values[2]
        assert again == pytest.approx(found["Transformer", "test_bleu"].values[2], abs=1e-9)
    alike = found["Transformer", "test_bleu"].values.values()
    assert f"by more than the {max(alike) - min(alike):.2f} over which its three seeds range, and both seeds" in text
    assert "to the same BLEU in each digit, as" in text
    (_, at_30), (_, last) = (found["ConvS2S", "validation_perplexity"].runs[1].points("validation_perplexity")[n]
                             for n in (29, 39))
    assert f"ConvS2S by little ({at_30:.1f} to {last:.1f})" in text
    behind, p, more, chrf_p = ([found["RNNsearch", f"test_{metric}"].values[seed] for seed in (1, 2, 3)] for metric in (
        "bleu_difference", "bleu_p", "chrf_difference", "chrf_p"))
    over_seeds = found["RNNsearch", "test_bleu"].p_value
    told = f"RNNsearch {listed(behind)} behind in BLEU (p {listed(p, '.3f')}; by the table's t test over seeds "
    told += f"{over_seeds:.3f}), {listed(more)} ahead in chrF (p "
    assert f"{told}{listed(chrf_p, '.2f')})." in text and max(behind) < 0 < min(more)
    behind, p, chrf, chrf_p = ([found["Luong general", f"test_{metric}"].values[seed] for seed in (1, 2, 3)]
                               for metric in ("bleu_difference", "bleu_p", "chrf_difference", "chrf_p"))
    told = f"of two layers is behind the Transformer by {listed(behind)} BLEU (p {listed(p, '.3f')}; in chrF by "
    assert f"{told}{listed(chrf)}, p {listed(chrf_p, '.3f')}), GNMT, of four," in text
    behind, p, chrf, chrf_p = ([found["GNMT", f"test_{metric}"].values[seed] for seed in (1, 2, 3)]
                               for metric in ("bleu_difference", "bleu_p", "chrf_difference", "chrf_p"))
    told = f"GNMT, of four, by {listed(behind)} (p {listed(p, '.3f')}; in chrF by {listed(chrf)}, p {max(chrf_p):.3f})"
    assert f"{told} and" in text and max(chrf_p) < 0.0015
    for row in (models[2], "GNMT"):
        assert all(max(found[row, f"test_{name}_difference"].values.values()) < 0 for name in ("bleu", "chrf"))
    of_one = [-found[models[3], "test_bleu_difference"].values[seed] for seed in (1, 2)]
    assert f"attention, of one, by {listed(of_one)} (p 0.001, and behind in chrF too)" in text
    for name in ("bleu", "chrf"):
        assert {f"{p:.3f}" for p in found[models[3], f"test_{name}_p"].values.values()} == {"0.001"}
        assert max(found[models[3], f"test_{name}_difference"].values.values()) < 0
    bleu = [found[row, "test_bleu"].mean for row in (models[1], models[3])]
    assert "RNNsearch has {:.1f} BLEU where the encoder-decoder has {:.1f};".format(*bleu) in text
    curves = [found[row, "validation_perplexity"].runs[1].metrics["validation_perplexity"]["points"] for row in models]
    luong, without = ([value for _, value in curve] for curve in curves[2:])
    ahead = [epoch for epoch, pair in enumerate(zip(luong, without, strict=True), 1) if pair[0] < pair[1]]
    assert ahead == list(range(8, 41)) and "passes it at the eighth and stays ahead" in text
    assert f"of {luong[3]:.0f} after four epochs where the model without attention has {without[3]:.0f}" in text


def test_gated_recursive_encoders_after_forty_epochs_are_told_as_recorded():
    found = {(line.row, line.metric): line for line in lines("nmt_lectures", "lineage")}
    metrics = "test_bleu", "test_chrf", "validation_perplexity", "test_bleu_difference", "test_chrf_difference"
    rows = dict.fromkeys(("grConv", "RNN encoder-decoder", "grConv, orthogonal"), 2)
    uniform, recurrent, begun = ([abs(found[row, m].values[seed]) for m in metrics] for row, seed in rows.items())
    text = said("nmt_lectures")
    behind = "is {:.1f} behind (p 0.001; in chrF {:.1f}, p 0.001)"
    told = "it has {:.1f} BLEU, {:.1f} chrF and a perplexity of {:.1f} and "
    told += behind.replace("behind", "BLEU behind the Transformer there") + ", where the recurrent one has "
    assert told.format(*uniform) + "{:.1f}, {:.1f} and {:.1f} and is {:.1f} behind. ".format(*recurrent) in text
    told = "models are here, it has {:.1f}, {:.1f} and {:.1f} and " + behind + ": so the"
    assert told.format(*begun) in text and uniform[0] < min(recurrent[0], begun[0])
    for behind in (0, 3):
        left = abs(recurrent[behind] - begun[behind]) / abs(recurrent[behind] - uniform[behind])
        assert 0.4 < left < 0.6 and "so the start is about half of what it is behind by; what" in text
    for row, seed in rows.items():
        assert all(found[row, f"test_{name}_difference"].values[seed] < 0 for name in ("bleu", "chrf"))
        assert {f"{found[row, f'test_{name}_p'].values[seed]:.3f}" for name in ("bleu", "chrf")} == {"0.001"}
    scored = {row: [found[row, f"test_bleu{part}"].values[2] for part in ("", "_difference")]
              for row in (*rows, "Luong general, one layer")}
    first, *others = (score - difference for score, difference in scored.values())
    assert others == pytest.approx([first] * 3, abs=1e-9)
    assert "in each digit, as one of the other kind does beside" in text


def test_what_replaces_softmax_after_forty_epochs_is_told_beside_the_same_seed():
    found = {(line.row, line.metric): line for line in lines("nmt_lectures", "lineage")}
    text = said("nmt_lectures")
    rows = [f"decoder {name}" for name in (
        "linear", "rfa", "abc_mlp", "performer", "t2r", "superposition_stack", "lsh(buckets=2)", "gated_delta",
        "nondeterministic_stack", "lsh")]
    assert all(set(found[row, "test_bleu"].values) == {2} for row in rows)
    bleu, p, behind, chrf, chrf_p, best = (
        [found[row, metric].values[2] for row in rows] for metric in (
            "test_bleu", "test_bleu_p", "test_bleu_difference", "test_chrf_difference", "test_chrf_p",
            "validation_perplexity"))
    softmax, perplexity = (found["Transformer", metric].values[2] for metric in ("test_bleu", "validation_perplexity"))
    told = "has {:.1f} to {:.1f} BLEU, where that of the same seed has {:.1f} (p {:.2f} to {:.2f}; in chrF "
    told = told.format(min(bleu[:8]), max(bleu[:8]), softmax, min(p[:8]), max(p[:8]))
    told += f"{-min(chrf[:8]):.1f} behind to {max(chrf):.1f} ahead, p {min(chrf_p[:8]):.2f} to {max(chrf_p[:8]):.2f})."
    assert told in text and min(*p[:8], *chrf_p[:8]) > 0.05 > max(*p[8:], *chrf_p[8:])
    *others, gated, stack, buckets = best
    told = f"Gated delta's perplexity on validation, {gated:.1f} at its best, is ahead of softmax's {perplexity:.1f}, "
    told += f"those of the other seven, {min(others):.1f} to {max(others):.1f}, are behind it. The nondeterministic "
    assert told + f"stack has a perplexity of {stack:.1f} too," in text and f"{stack:.1f}" == f"{max(others):.1f}"
    assert gated < perplexity < min(others)
    told = f"but {bleu[8]:.1f} BLEU, {-behind[8]:.1f} behind (p {p[8]:.3f}; in chrF {-chrf[8]:.1f}, p {chrf_p[8]:.3f})."
    assert told in text and make_config("lsh", {}).buckets == 16
    told = f"has {bleu[9]:.1f}, {-behind[9]:.1f} behind (p {p[9]:.3f}; in chrF {-chrf[9]:.1f}, p {chrf_p[9]:.3f}), and"
    assert told + f" a perplexity of {buckets:.1f} where two buckets have {others[-1]:.1f}." in text
    across = [found[f"cross and decoder {name}", f"test_bleu_{part}"].values[2] for part in ("difference", "p")
              for name in ("linear", "rfa", "abc_mlp")]
    told = "the gap is {:.1f} BLEU of elu, {:.1f} of RFA and {:.1f} of `abc_mlp` (one training each, p {:.3f}, {:.3f} "
    told += "and {:.3f} over its sentences, of one side)"
    item = finding("peng_thesis", "*Translation* (Table 4.4")
    assert told.format(*(-value for value in across[:3]), *across[3:]) in item
    told = "by elu is {:.1f} BLEU behind softmax, by RFA {:.1f} and by `abc_mlp` {:.1f} (one training each, p {:.2f}, "
    told += "{:.2f} and {:.2f})"
    assert told.format(*(-value for value in behind[:3]), *p[:3]) in item


def test_attention_across_after_forty_epochs_is_told_beside_the_same_training():
    found = {(line.row, line.metric): line for line in lines("nmt_lectures", "lineage")}
    text = said("nmt_lectures")
    metrics = ("bleu", "bleu_difference", "bleu_p", "chrf_difference", "chrf_p", "chrf")
    of = {}
    for name in ("linear", "rfa", "abc_mlp"):
        of[name] = {metric: found[f"cross and decoder {name}", f"test_{metric}"].values for metric in metrics}
        assert all(set(values) == {2} for values in of[name].values())
        of[name] = {metric: abs(values[2]) for metric, values in of[name].items()}
    told = "{bleu:.1f}, {bleu_difference:.1f} behind (p {bleu_p:.3f}; in chrF {chrf_difference:.1f}, p {chrf_p:.3f})"
    linear, features, slots = (told.format_map(values) for values in of.values())
    assert f"there too the Transformer has {linear.replace(',', ' BLEU,', 1)}, with random features, 256 across" in text
    assert f"128 in the decoder, {features}, and with slots of `abc_mlp`, 32 and 8, {slots}." in text
    orders = [sorted(of, key=lambda name: of[name][metric]) for metric in ("bleu", "chrf")]
    assert orders[0] != orders[1]


def test_rates_above_those_that_were_searched_are_told_as_recorded():
    text, found = said("nmt_lectures"), {(line.row, line.metric): line for line in lines("nmt_lectures", "lineage")}
    assert {rate for (row, metric), line in found.items() for rate in line.values.values()
            if metric == "chosen_learning_rate" and "greater" not in row} == {0.004}
    of: dict[str, dict[str, float]] = {}
    for line in lines("nmt_lectures", "lineage-rates"):
        if line.values:
            of.setdefault(line.row.removeprefix("rates, "), {})[line.metric] = line.mean
    chosen = {row: found.pop("chosen_learning_rate") for row, found in of.items()}
    assert chosen == {"Transformer": 0.004, "RNNsearch": 0.008, "Luong general": 0.008, "ConvS2S": 0.016,
                      "RNN encoder-decoder": 0.008, "GNMT": 0.016, "Sutskever": 0.016}
    rows = "ConvS2S", "RNNsearch", "Luong general"
    told = "ConvS2S has {:.1f} BLEU and RNNsearch {:.1f}, where with 0.004 they have {:.1f} and {:.1f} by"
    bleu = [found[row + more, "test_bleu"].values[2] for more in (", greater rate", "") for row in rows[:2]]
    assert told.format(*bleu) in text
    both = (found[f"Luong general{more}", "test_bleu"].values[2] for more in (", greater rate", ""))
    behind = found["Luong general, greater rate", "test_bleu_difference"].mean
    told = "Luong general has {:.1f} and is {:.1f} behind the Transformer (p 0.001, in chrF too), where with 0.004 "
    assert (told + "the same seed has {:.1f}:").format(next(both), -behind, next(both)) in text
    of_row = [{metric: found[f"{row}, greater rate", f"test_{metric}"].mean for metric in (
        "bleu", "bleu_difference", "bleu_p", "chrf_difference", "chrf_p")} for row in rows]
    told = "one training each, ConvS2S is {bleu_difference:.1f} ahead (p {bleu_p:.2f}; in chrF {less:.1f} behind, p "
    assert (told + "{chrf_p:.3f})").format_map(of_row[0] | {"less": -of_row[0]["chrf_difference"]}) in text
    told = "RNNsearch {less:.1f} behind (p {bleu_p:.2f}; in chrF {chrf_difference:.1f} ahead, p {chrf_p:.2f})"
    assert told.format_map(of_row[1] | {"less": -of_row[1]["bleu_difference"]}) in text
    assert of_row[2]["chrf_difference"] < 0
    assert {round(of_row[2][f"{name}_p"], 3) for name in ("bleu", "chrf")} == {0.001}


def test_scores_of_the_lineage_are_held_to_what_was_trained_alike():
    text = said("nmt_lectures")
    found = {line.row: line for line in lines("nmt_lectures", "lineage") if line.metric == "test_bleu"}
    plain, gap = (found[row].mean for row in ("Sutskever", "Luong general"))
    of_two = found["Sutskever"].values
    assert f"have {of_two[1]:.1f} and {of_two[2]:.1f} after forty epochs and still gain" in text
    assert f"So the {gap - plain:.1f} BLEU between them and Luong general" in text
    whole = {(line.row, line.metric): line.values for line in lines("nmt_lectures", "lineage")}
    less, of_chrf = ([whole["Luong general", f"test_{name}"][seed] - whole["GNMT", f"test_{name}"][seed]
                      for seed in (1, 2, 3)] for name in ("bleu", "chrf"))
    told = f"GNMT has {less[0]:.1f} BLEU less than Luong general, {-less[1]:.1f} more and {less[2]:.1f} less, in chrF "
    own, other = (whole[row, "validation_perplexity"].values() for row in ("GNMT", "Luong general"))
    assert f"{told}{listed(of_chrf)} less, and perplexities of {listed(own)} where that has {listed(other)}," in text
    assert min(*of_chrf, less[0], -less[1], less[2]) > 0
    scores = "test_bleu", "test_chrf", "validation_perplexity"
    one, two = ([whole[f"Luong general{layers}", name][2] for name in scores] for layers in (", one layer", ""))
    told = "has {:.1f} BLEU, {:.1f} chrF and a perplexity of {:.1f} where two layers have {:.1f}, {:.1f} and {:.1f} by"
    assert told.format(*one, *two) in text
    names = "bleu_difference", "bleu_p", "chrf_difference", "chrf_p"
    behind = [abs(whole["Luong general, one layer", f"test_{name}"][2]) for name in names]
    assert "is {:.1f} BLEU behind the Transformer (p {:.3f}; in chrF {:.1f}, p {:.3f});".format(*behind) in text
    assert all(whole["Luong general, one layer", f"test_{name}_difference"][2] < 0 for name in ("bleu", "chrf"))
    assert f"their perplexity of {whole['Sutskever', 'validation_perplexity'][1]:.1f} falls to the last" in text


def test_the_source_that_is_not_reversed_is_told_as_recorded():
    item = finding("nmt_lectures", "*Reversing the source*")
    of = {(line.row, line.metric): line.values for line in lines("nmt_lectures", "lineage")}
    names = "test_bleu", "test_chrf", "validation_perplexity"
    forward = [of["Sutskever, source not reversed", name][2] for name in names]
    assert "It has {:.1f} BLEU, {:.1f} chrF and a perplexity of {:.1f} on validation".format(*forward) in item
    bleu, chrf, perplexity = ([of["Sutskever", name][seed] for seed in (1, 2)] for name in names)
    told = "backward have {:.1f} and {:.1f}, {:.1f} and {:.1f}, and {:.1f} (the source:"
    assert told.format(*bleu, *chrf, perplexity[0]) in item and {f"{x:.1f}" for x in perplexity} == {"12.1"}
    (paper,) = (table for table in read_tables(RECIPES / "nmt_lectures") if table.name == "sutskever")
    theirs = {entry.row: entry.value for entry in paper.published}
    both = (theirs[f"Single {way} LSTM, beam size 12"] for way in ("forward", "reversed"))
    assert "(the source: {:.1f} and {:.1f} BLEU)".format(*both) in item
    assert min(bleu) - forward[0] > max(bleu) - min(bleu)
    assert 0 < min(chrf) - forward[1] < max(chrf) - min(chrf)
    for row in ("Sutskever", "Sutskever, source not reversed"):
        (line,) = (x for x in lines("nmt_lectures", "lineage") if (x.row, x.metric) == (row, names[2]))
        for run in line.runs.values():
            *others, last = (value for _, value in run.points(names[2]))
            assert last < min(others)


def test_scores_of_attention_are_told_as_recorded():
    item = finding("nmt_lectures", "*Scores of attention*")
    of = {(line.row, line.metric): line.values for line in lines("nmt_lectures", "lineage")}
    names = "test_bleu", "test_chrf", "validation_perplexity"
    scores = "dot", "location", "concat", "local-m", "local-p"
    others = [[of[f"Luong {score}", name][2] for name in names] for score in scores]
    general = [[of["Luong general", name][seed] for seed in (1, 2, 3)] for name in names]
    told = "Dot has {:.1f} BLEU, {:.1f} chrF and a perplexity of {:.1f}, location, whose weights do not look at the "
    told += "source, {:.1f}, {:.1f} and {:.1f}, concat {:.1f}, {:.1f} and {:.1f}, local-m, general in a window at the "
    told += "step's own place, {:.1f}, {:.1f} and {:.1f}, local-p, in one that is predicted, {:.1f}, {:.1f} and {:.1f}"
    told = told.format(*(value for of_score in others for value in of_score))
    told += ", where general has 36.3 with each of its seeds"
    assert f"{told}, {listed(general[1])}, and {listed(general[2])}. They are" in item
    assert {f"{x:.1f}" for x in general[0]} == {"36.3"}
    behind = [-of[f"Luong {score}", f"test_{name}_difference"][2] for name in ("bleu", "chrf") for score in scores]
    told = "are {:.1f}, {:.1f}, {:.1f}, {:.1f} and {:.1f} BLEU behind the Transformer of their seed (p 0.001; in chrF "
    assert (told + "{:.1f}, {:.1f}, {:.1f}, {:.1f} and {:.1f}, p 0.001)").format(*behind) in item
    assert {f"{of[f'Luong {score}', f'test_{name}_p'][2]:.3f}" for name in ("bleu", "chrf") for score in scores} == {
        "0.001"}
    for other in others:
        assert all(max(of_general) > value for of_general, value in zip(general[:2], other[:2], strict=True))
        assert min(general[2]) < other[2]
    (paper,) = (table for table in read_tables(RECIPES / "nmt_lectures") if table.name == "luong")
    theirs = {entry.row: entry.value for entry in paper.published if entry.metric == "test_tokenized_bleu"}
    rows = "global (dot)", "global (location)", "local-m (general)", "local-p (general)", "global (general)"
    ahead = [theirs[row] for row in rows]
    assert "(dot {:.1f} BLEU, location {:.1f}, local-m {:.1f}, local-p {:.1f}, general {:.1f})".format(*ahead) in item
    assert min(ahead) == ahead[-1] and not any("concat" in row for row in theirs)


def test_penalties_of_beam_search_are_told_as_recorded():
    item = finding("nmt_lectures", "*Penalties of beam search*")
    tables = {table: {(line.row, line.metric): line.values for line in lines("nmt_lectures", table)}
              for table in ("lineage-penalties", "lineage", "multi30k")}
    names = "bleu", "bleu_difference", "bleu_p", "chrf_difference", "chrf_p"
    both, length, coverage = ([tables["lineage-penalties"][f"penalties {row}", f"test_{name}"][2] for name in names]
                              for row in ("0.2 0.2", "0.2 0", "0 0.2"))
    told = "has {:.1f} BLEU, {:.1f} more than without (p {:.3f}), though in chrF {:.1f} more (p {:.3f})"
    assert told.format(*both) in item
    told = "{:.1f}, {:.1f} more (p {:.2f}; in chrF {:.1f}, p {:.3f})"
    assert f"That of length alone gives {told.format(*length)}, that of coverage {told.format(*coverage)}." in item
    divided = tables["lineage"]["GNMT", "test_bleu"]
    of_bits = tables["lineage"]["GNMT, 8 bits", "test_bleu"][1]
    assert f"all of the lineage are, has {divided[2]:.1f}, which" in item
    fast, slow = (tables["lineage"][row, "decoding_sentences_per_second"][1] for row in ("GNMT, 8 bits", "GNMT"))
    told = f"that has {divided[1]:.1f}, and eight bits with both penalties {of_bits:.1f}, at {fast / slow:.1f} times"
    assert told in item
    ways = ", no penalties", ", length normalisation", ", coverage", ", length normalisation and coverage", ", 8 bits"
    few = [tables["multi30k"][f"GNMT{way}", "test_bleu"][1] for way in ("", *ways)]
    told = "{1:.1f} without penalties, {2:.1f} with that of length, {3:.1f} with coverage, {4:.1f} with both, by eight "
    assert told.format(*few) in item and f"{few[4]:.1f}" == f"{few[5]:.1f}" and f"{few[0]:.1f} by the division" in item
    speed = [tables["multi30k"][f"GNMT{way}", "decoding_sentences_per_second"][1] for way in ways[-2:]]
    assert f"too, {speed[1] / speed[0]:.1f} times as fast," in item


def test_expected_gleu_is_told_as_recorded():
    item = finding("nmt_lectures", "*Expected GLEU*")
    of = {line.metric: line.values[2] for line in lines("nmt_lectures", "lineage-penalties")
          if line.row == "GNMT, expected GLEU"}
    before = {line.metric: line.values[2] for line in lines("nmt_lectures", "lineage") if line.row == "GNMT"}
    assert of["test_bleu"] - of["test_bleu_difference"] == pytest.approx(before["test_bleu"], abs=1e-3)
    scores = before["test_bleu"], *(of[f"test_{name}"] for name in (
        "bleu_difference", "bleu_p", "chrf_difference", "chrf_p"))
    told = "has {:.1f} BLEU where it had {:.1f}, {:.1f} more (p {:.2f}), though in chrF {:.1f} more (p {:.3f}), and"
    assert told.format(of["test_bleu"], *scores) in item
    perplexities = of["validation_perplexity"], before["validation_perplexity"]
    assert "a perplexity of {:.1f} where it had {:.1f}.".format(*perplexities) in item


def test_an_ensemble_is_told_beside_its_members():
    found = {(line.row, line.metric): line.values for line in lines("nmt_lectures", "multi30k")}
    rows = [found["Transformer, ensemble of 2", f"test_{metric}"][1] for metric in ("bleu", "chrf")]
    members = [n for metric in ("bleu", "chrf") for n in found["Transformer", f"test_{metric}"].values()]
    told = "an ensemble of two has {:.1f} BLEU and {:.1f} chrF, its members {:.1f} and {:.1f} BLEU, {:.1f} and {:.1f}"
    assert told.format(*rows, *members) in finding("nmt_lectures", "*Ensembles*")
    assert rows[0] > max(members[:2]) and rows[1] > max(members[2:])


def test_trainings_that_still_gain_at_their_end_are_counted():
    curves = [[value for _, value in run.points("validation_perplexity")] for line in lines("nmt_lectures", "lineage")
              if line.metric == "validation_perplexity" and line.row != "GNMT, 8 bits"  # another row's training
              for run in line.runs.values()]
    whole = [curve for curve in curves if len(curve) == 40]
    gain = sum(curve[-1] == min(curve) for curve in whole)
    assert f"In {gain} of the {len(whole)} with forty epochs the last has the lowest" in said("nmt_lectures")
    assert len(curves) - len(whole) == 4, "of a quarter of the pairs, which patience ended"
