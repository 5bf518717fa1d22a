"""Continued masked language models: rows are those of the tables, plans are read, fine-tuning is the source's."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from statistics import fmean

import pytest

from seqstruct.attention import Site, parse_choices
from seqstruct.harness.paper import read_tables
from seqstruct.harness.script import Cell, Script
from tests.recipes.composed import ROOT, composed

FAMILY = "peng_thesis/masked_lm"
SCRIPT = Script(ROOT / "recipes" / "peng_thesis" / "table-5.6.sh")


def test_averages_over_the_tasks_are_published_with_them() -> None:
    """Peng 2022, table 5.6, the last column, of rounded numbers."""
    (table,) = (table for table in read_tables(ROOT / "recipes" / "peng_thesis") if table.name == "5.6")
    found = {entry.row: entry for entry in table.published if entry.average_of}
    assert len(found) == 5
    for row, entry in found.items():
        parts = [e.value for e in table.published if fnmatchcase(e.row, entry.average_of) and e is not entry]
        assert len(parts) == 4 and entry.value == pytest.approx(fmean(parts), abs=0.0501), row


@pytest.mark.parametrize("row", sorted(path.stem for path in (ROOT / "configs" / FAMILY / "row").glob("*.yaml")))
def test_plans_are_read(row: str) -> None:
    plan = composed(FAMILY, f"row={row}", name="continue")["model"]["encoder_self_attention"]
    assert len(parse_choices(plan, 2, Site.ENCODER_SELF)) == 2


@pytest.mark.parametrize("task, classes, updates, warm_up", [
    ("mnli", 3, 123873, 7432), ("qnli", 2, 33112, 1986), ("qqp", 2, 113272, 28318), ("sst_2", 2, 20935, 1256)])
def test_fine_tuning_is_that_of_the_source(task: str, classes: int, updates: int, warm_up: int) -> None:
    config = composed(FAMILY, "row=linformer_128", "scale=paper", f"tuning={task}", name="finetune")
    assert config["model"]["encoder_self_attention"] == "linformer(slots=128, length=512)"
    assert (config["task"]["num_classes"], config["lr_scheduler"]["total_num_update"]) == (classes, updates)
    assert (config["lr_scheduler"]["warmup_updates"], config["optimization"]["lr"]) == (warm_up, [1e-5])


@pytest.mark.parametrize("scale, mode", [("paper", "complete"), ("small", "none")])
def test_blocks_of_scale_paper_are_whole_sentences(scale: str, mode: str) -> None:
    """Peng 2022, section 5.5.3: all preprocessing is that of RoBERTa's recipe."""
    config = composed(FAMILY, "row=abc_mlp_64", f"scale={scale}", f"updates=continue_{scale}", name="continue")
    assert config["task"]["sample_break_mode"] == mode


def test_models_are_pretrained_and_continued_once() -> None:
    plans = [SCRIPT.plan(Cell(row, 1, "small")) for row in ("ABC-MLP 32", "ABC-MLP 32, not continued", "BASE")]
    shared = [[step.target for step in plan.steps if step.kind == "shared"] for plan in plans]
    assert [len(folders) for folders in shared] == [2, 1, 2]
    assert len({folders[0] for folders in shared}) == 1 and shared[0][1] != shared[2][1]
    starts = [word for step in plans[0].steps for word in step.words if word.startswith("checkpoint.finetune_from")]
    pretrained, continued = (f"checkpoint.finetune_from_model={folder}/checkpoint_last.pt" for folder in shared[0])
    assert starts == [pretrained, continued, continued], "two tasks are tuned from what was continued"


def test_each_task_is_validated_and_tested_by_its_best_epoch() -> None:
    plan = SCRIPT.plan(Cell("ABC-MLP 16", 2, "small"))
    words = " ".join(word for step in plan.steps for word in step.words)
    for task in ("sst", "rte"):
        assert f"tuning=small_{task}" in words and f"{task}/checkpoint_best.pt --valid-subset valid,test" in words
    assert all("seed2" in step.target for step in plan.steps if step.kind == "shared"), "each seed has its own"


def test_pairs_of_the_stand_in_are_those_of_rte(tmp_path: Path) -> None:
    from fairseq.data import Dictionary, data_utils

    from seqstruct.cli.prepare import prepare
    from seqstruct.data.nli.folder import read_corpus
    from seqstruct.data.registry import find

    find("masked-lm").write_made_up(tmp_path / "raw" / "deeper")
    prepare(find("masked-lm"), ["--from", str(tmp_path / "raw"), "--unchecked", "--vocabulary", "60", "--lines", "50",
                                "--out", str(tmp_path / "out")])
    for split, gold in read_corpus("rte", tmp_path / "raw" / "deeper").items():
        rows = {}
        for part in ("input0", "input1", "label"):
            folder = tmp_path / "out" / "rte" / part
            dictionary = Dictionary.load(str(folder / "dict.txt"))
            rows[part] = list(data_utils.load_indexed_dataset(str(folder / split), dictionary))
        assert [dictionary.string(row) for row in rows["label"]] == [p.label.replace("no ", "not_") for p in gold.pairs]
        assert all(len(row) > len(pair.hypothesis) for row, pair in zip(rows["input0"], gold.pairs, strict=True))
        assert all(len(row) > len(pair.premise) for row, pair in zip(rows["input1"], gold.pairs, strict=True))
