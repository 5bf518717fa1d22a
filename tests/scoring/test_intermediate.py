"""What joint training changes, from two checkpoints."""

import json
from dataclasses import replace

import pytest

from seqstruct.data.parsing.folder import write_folder
from seqstruct.harness.changed_trees import main
from seqstruct.scoring.dependency import f1, share
from seqstruct.scoring.intermediate import compare_trees, predictions
from tests.data.parsing.corpora import corpus
from tests.models.front_door import fairseq


def trained(data, folder, seed, intermediate="tree"):
    sizes = ["--word-dim", 8, "--lemma-dim", 0, "--tag-dim", 4, "--lstm-size", 6, "--mlp-size", 6]
    fairseq(
        "train", data, "--task", "joint_parsing", "--criterion", "joint_parsing", "--arch", "joint_parser_small",
        *sizes, "--intermediate", intermediate, "--optimizer", "adam", "--lr", 0.03, "--batch-size", 16, "--max-epoch",
        2, "--seed", seed, "--save-dir", folder, "--no-epoch-checkpoints", "--update-epoch-batch-itr", "True",
    )
    return folder / "checkpoint_last.pt"


@pytest.mark.training
def test_groups_and_changes_add_up(tmp_path, capsys):
    data = tmp_path / "data"
    graphs = corpus("graphs", 2)
    graphs.splits["valid"][0] = replace(graphs.splits["valid"][0], heads=None)
    write_folder({"trees": corpus("trees"), "dm": graphs}, data)
    one, other = (trained(data, tmp_path / str(seed), seed) for seed in (1, 2))
    found = {m.metric: m.value for m in compare_trees(data, "dm", "valid", one, other)}
    assert found["same_sentences"] + found["diff_sentences"] == 7
    before, after = (predictions(path, data, "dm", "valid") for path in (one, other))
    changed = sum(int((a["heads"] != b["heads"]).sum()) for a, b in zip(before, after, strict=True))
    assert found["changes"] == changed
    kinds = [found[f"changes_{kind}"] for kind in ("to_head", "to_dependent", "from_dependent", "other")]
    assert changed == 0 or sum(kinds) == pytest.approx(100)
    assert sum(output["tree"] is None for output in before) == 1
    different = [b for a, b in zip(before, after, strict=True) if (a["heads"] != b["heads"]).any()]
    if different:
        annotated = [o for o in different if o["tree"] is not None]
        right = sum(int((o["heads"] == o["tree"]).sum()) for o in annotated)
        assert found["diff_joint_uas"] == share(right, sum(len(o["tree"]) for o in annotated))
        shared = sum(int(((o["chosen"] == o["gold"]) & (o["gold"] >= 0)).sum()) for o in different)
        counts = (sum(int((o[name] >= 0).sum()) for o in different) for name in ("chosen", "gold"))
        assert found["diff_joint_labeled_f1"] == f1(shared, *counts)
    words = [str(data), "--before", str(one), "--after", str(other), "--out", str(tmp_path / "changes.json")]
    assert main(words) == 0
    assert {m["metric"]: m["value"] for m in json.loads((tmp_path / "changes.json").read_text())} == found
    assert main([*words, "--corpus", "trees"]) == 1
    assert f"changed_trees: {data}: expected a corpus of graphs, got trees" in capsys.readouterr().err
    alone = trained(data, tmp_path / "alone", 1, intermediate="none")
    with pytest.raises(ValueError, match="expected a model whose graphs see a tree"):
        predictions(alone, data, "dm", "valid")
