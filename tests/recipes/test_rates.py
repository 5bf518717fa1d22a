"""How long models of a table are trained, at which rates and where is told beside what follows of their order."""

from __future__ import annotations

from collections import Counter

from seqstruct.harness.findings import PAGES, prose
from seqstruct.harness.records import read_folder
from seqstruct.search.settings import read_settings
from tests.recipes.composed import ROOT, composed, trainings
from tests.recipes.test_findings import finding, lines

# their page says what each row has; those of scale paper are as published
OWN = {"flare/recognition", "generalisation", "peng_thesis/rational_lm"}


def page(name):
    return " ".join(prose(PAGES / f"{name}.md").split())


def rate(recipe, row):
    return trainings(recipe, row, "small")[-1]["optimization"]["lr"][0]


def test_rows_of_a_table_have_one_rate_where_their_page_says_nothing():
    configs = ROOT / "configs"
    own = {str(path.parent.parent.relative_to(configs)) for path in configs.glob("**/row/*.yaml")
           if "lr: [" in path.read_text("utf-8") and not path.stem.endswith("_paper")}
    assert own == OWN - {"generalisation"}
    assert "all rows of a table have one learning rate, which was not searched for, where its page" in page("index")
    transformers, others = ({rate("flare/table-2", f"parity {model}") for model in models} for models in (
        ("Tf", "Tf+Sup", "Tf+Nd", "delta", "delta negative"), ("RNN", "LSTM", "RRNN", "LSTM+Sup", "LSTM+Nd")))
    told = "Transformers have the rate {}, the others {}, which were not searched for"
    assert told.format(*transformers, *others) in page("flare")
    of = {model: rate("generalisation/question-formation", model) for model in ("Tf", "Tf+Nd", "Tf+Sup", "LSTM")}
    assert of["Tf"] == of["Tf+Nd"] and f"rate {of['LSTM']} (`Tf` {of['Tf']}, neither of a search)" in page(
        "generalisation")
    assert f"and rate {of['Tf+Sup']}, so it differs from `Tf` in more" in page("generalisation")
    (one,) = {rate("peng_thesis/table-4.4", row) for row in ("BASE", "phi-elu", "RFA-Gaussian", "ABC-MLP 32-8")}
    assert f"at one rate, {one}, which was not searched for any" in page("peng_thesis_translation")


def test_rates_at_an_end_of_what_was_searched_are_told():
    item = finding("peng_thesis", "*Rational language models*")
    chosen = {line.row: line.mean for line in lines("peng_thesis", "6.3-stand-in")
              if line.metric == "chosen_learning_rate"}
    tried = read_settings(ROOT / "configs" / "peng_thesis" / "rational_lm" / "search.yaml", ("scale=small",))["grid"]
    (least, *_, most) = sorted(value for (value,) in tried["optimization.lr"])
    small = {row.partition(" 2 ")[0]: value for row, value in chosen.items() if row.endswith("2 layers 10M")}
    assert {row for row, value in small.items() if value == least} == {"RRNN(B) max-plus", "RRNN(C)"}
    assert max(small.values()) < most and f"max-plus and C the least rate, {least}, below which none was tried" in item
    assert all(chosen[row] == small[row.split(" 2 ")[0].split(" 3 ")[0]] for row in chosen)
    assert "Rows of 24M have what those of 10M chose." in item
    rates = {line.mean for line in lines("peng_thesis", "2.1-stand-in") if line.metric == "chosen_learning_rate"}
    tried = read_settings(ROOT / "configs" / "peng_thesis" / "joint_parsing" / "search.yaml", ("scale=small",))["grid"]
    assert len(tried["optimization.lr"]) == 2 and rates == set(min(tried["optimization.lr"]))
    item = finding("peng_thesis", "*SPIGOT, a tree before")
    assert "All rows chose the lesser of two rates, and none below it was tried;" in item


def test_classifiers_are_told_with_the_length_of_their_trainings():
    item = finding("peng_thesis", "*Text classification*")
    epochs = [composed("peng_thesis/text_classification", f"scale={scale}")["optimization"]["max_epoch"]
              for scale in ("small", "small_cr", "paper")]
    assert "Trainings are of at most {} epochs, {} on CR (published: {}).".format(*epochs) in item
    found = {line.row: line for line in lines("peng_thesis", "6.5") if line.metric == "test_accuracy"}
    names = {"F": "RRNN(F)", "B": "RRNN(B)", "C": "RRNN(C)", "max-plus": "RRNN(B) max-plus"}
    sst, cr = ({name: found[f"{corpus} {row}"] for name, row in names.items()} for corpus in ("SST", "CR"))
    told = "the LSTM has {:.1f} %, F {F:.1f}, B {B:.1f}, C {C:.1f} and max-plus {max-plus:.1f}: behind"
    assert told.format(found["SST LSTM"].mean, **{name: line.mean for name, line in sst.items()}) in item
    behind = [name for name, line in sst.items() if line.p_value < 0.05]
    assert behind == ["B", "max-plus"]
    assert "are B and max-plus (p {:.1g} and {:.2g} after".format(*(sst[name].p_value for name in behind)) in item
    told = "the LSTM has {:.1f}, B {B:.1f}, F {F:.1f}, max-plus {max-plus:.1f} and C {C:.1f}, all four behind it (p at"
    assert told.format(found["CR LSTM"].mean, **{name: line.mean for name, line in cr.items()}) in item
    assert f"it (p at most {max(line.p_value for line in cr.values()):.2g})" in item


def processors(paper, *tables):
    """By processor, the rows that it trained, with how many seeds."""
    found: dict[str, Counter[str]] = {}
    for record in read_folder(ROOT / "recipes" / paper / "records"):
        if record.table in tables and record.scale == "small" and record.parameters:
            found.setdefault(record.machine["processor"], Counter())[record.row] += 1
    return found


def test_rows_of_another_processor_than_what_they_stand_beside_are_told():
    tables = [f"{table}-stand-in" for table in ("4.4", "5.5a", "5.7", "5.9", "A.1", "A.4")]
    other = processors("peng_thesis", *tables)["Intel(R) Xeon(R) Processor (family 6, model 207)"]
    across = [f"cross {number}, causal 128" for number in (128, 512)]
    inside = [f"cross 256, causal {number}" for number in (32, 64, 256, 512)]
    later = ["Window 32-32", "Cluster 32-32", "cross 8, causal 8", "cross 32, causal 8", "cross 32, causal 128"]
    assert other.keys() == {"RFA-GATE-Gaussian", "RFA-arccos", "RFA-GATE-arccos", "RFA-Gaussian-NoNorm",
                            "RFA-Gaussian-NoNorm 0.25", "MLP-sigmoid 32-8", "MLP-sigmoid 32-32", "MLP-ReLU 32-32",
                            "MLP-ReLU 32-8", *across, *inside, *later}
    assert {other[row] for row in ("MLP-ReLU 32-8", *later)} == {2}
    told = "are the rows with gates, arc-cosines, sigmoids or equation 4.10, `MLP-ReLU` 32-32 and the later seeds "
    told += "of 32-8, of windows, of clusters and of sizes of memories, and those of Table A.4 with 128 and 512 across"
    told += ", other than 128 in the decoder or of later seeds."
    assert told in page("peng_thesis_translation")
    of = processors("generalisation", "tense-reinflection")
    assert of.pop("Intel(R) Xeon(R) Processor @ 2.50GHz (family 6, model 85)") == {"tense Tf": 5, "tense Tf+Sup": 1}
    told = "`Tf` and one run of `Tf+Sup` are of another processor than the rest."
    assert len(of) == 1 and told in page("generalisation")


def test_kernels_and_devices_of_a_table_are_told():
    for paper, tables, start in (("stack_attention", "14", "*Cost*"), ("peng_thesis", ("4.1", "5.2"), "*Growth*")):
        records = [record for record in read_folder(ROOT / "recipes" / paper / "records") if record.table in tables]
        assert {record.machine["kernels"] for record in records} == {"pytorch"}
        assert len({(record.seed, record.machine["processor"]) for record in records}) == 2
        assert "without compiled kernels, one measurement on each of two processors)" in finding(paper, start)
    started = {record.command.partition(" --row")[0] for record in read_folder(ROOT / "recipes/multi30k/records")
               if record.table == "memories"}
    assert len(started) == 1 and f"\n{started.pop()}\n" in (PAGES / "multi30k.md").read_text("utf-8")
