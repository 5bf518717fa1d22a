"""How joint training changes an intermediate parser (Peng 2022, section 2.5 and Table 2.3)."""

from __future__ import annotations

import os
from typing import Any

import torch

from seqstruct.scoring.dependency import attachment_counts, f1, graph_counts, kinds_of_change, share
from seqstruct.scoring.measurement import Measurement
from seqstruct.scoring.trained import load_model

BATCH = 32


@torch.no_grad()
def predictions(
    checkpoint: str | os.PathLike, data: str | os.PathLike, corpus: str, split: str
) -> list[dict[str, Any]]:
    """For each sentence of a graph corpus: chosen N N (labels, -1 without an arc), gold N N, heads n of the tree that
    the model saw, and tree n, the annotated one, or None.  Raises ValueError if the model sees no tree.
    """
    model, task = load_model(checkpoint, data)
    task.load_dataset(f"{split}_{corpus}")
    dataset = task.dataset(f"{split}_{corpus}")
    found = []
    for start in range(0, len(dataset), BATCH):
        sample = dataset.collater([dataset[i] for i in range(start, min(start + BATCH, len(dataset)))])
        batch = sample["net_input"]["batches"][corpus]
        output = model(**sample["net_input"])[corpus]
        if output.trees is None:
            raise ValueError(f"{checkpoint}: expected a model whose graphs see a tree (--intermediate tree)")
        chosen = model.best(corpus, output, batch["padding_mask"])
        heads = model.best(corpus, output.trees, batch["padding_mask"])
        for b, n in enumerate((~batch["padding_mask"]).sum(1).tolist()):
            tree = batch["heads"][b, : n - 1] if "heads" in batch else None
            found.append({
                "chosen": chosen[b, :n, :n], "gold": batch["arcs"][b, :n, :n], "heads": heads[b, : n - 1],
                "tree": None if tree is None or bool((tree < 0).any()) else tree,
            })
    return found


def compare_trees(
    data: str | os.PathLike, corpus: str, split: str, pipeline: str | os.PathLike, other: str | os.PathLike
) -> list[Measurement]:
    """Of sentences with the SAME intermediate tree in both systems and with a
    DIFFerent one, in each group the attachment score and labeled F1 of both, and the kinds of change.

    corpus: of graphs.  pipeline, other: checkpoints.  Attachment is that of the sentences that have a tree.
    """
    before = predictions(pipeline, data, corpus, split)
    after = predictions(other, data, corpus, split)
    groups: dict[str, list[int]] = {"same": [], "diff": []}
    changes: dict[str, int] = {}
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        same = torch.equal(old["heads"], new["heads"])
        groups["same" if same else "diff"].append(i)
        arcs = [(h, m) for h, m in (old["gold"] >= 0).nonzero().tolist() if h]
        counted = kinds_of_change(old["heads"].tolist(), new["heads"].tolist(), arcs)
        changes = {name: changes.get(name, 0) + count for name, count in counted.items()}
    found = []
    for group, members in groups.items():
        found.append(Measurement(f"{group}_sentences", float(len(members)), "sentences"))
        for system, outputs in (("pipeline", before), ("joint", after)):
            scores = _scores([outputs[i] for i in members])
            found += [Measurement(f"{group}_{system}_{name}", value, "%") for name, value in scores]
    whole = max(changes.get("changes", 0), 1)
    found.append(Measurement("changes", float(changes.get("changes", 0)), "words"))
    for kind in ("to_head", "to_dependent", "from_dependent", "other"):
        found.append(Measurement(f"changes_{kind}", share(changes.get(kind, 0), whole), "%"))
    return found


def _scores(outputs: list[dict[str, Any]]) -> list[tuple[str, float]]:
    if not outputs:
        return []
    graphs = [graph_counts(output["chosen"], output["gold"]) for output in outputs]
    sums = {name: sum(count[name] for count in graphs) for name in graphs[0]}
    scores = [("labeled_f1", f1(sums["labeled"], sums["predicted"], sums["gold"]))]
    words = [
        attachment_counts(o["heads"], o["tree"], torch.zeros_like(o["tree"]).bool())
        for o in outputs if o["tree"] is not None
    ]
    if words:
        scores.append(("uas", share(sum(w["right"] for w in words), sum(w["words"] for w in words))))
    return scores
