"""Dependency trees of one sentence by several checkpoints of `joint_parser`, with its semantic graph below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc

from seqstruct.plots.figures import plain

ROOT = "root"


def trees_of_checkpoints(
    checkpoints: Sequence[str | Path], data: str | Path, corpus: str, split: str, sentence: int
) -> tuple[list[str], dict[str, list[int]], list[tuple[int, int, str]]]:
    """Words; the head of each word by checkpoint, named after its folder, and "annotated" where there is such a tree;
    and the arcs of the graph, (head, dependent, label).

    sentence: its number in the split, from 1.  Raises ValueError if there is no such sentence or corpus, or a model
    whose graphs see no tree.
    """
    from seqstruct.data.parsing.folder import read_meta, read_split
    from seqstruct.scoring.intermediate import predictions

    meta = read_meta(data)
    if meta["corpora"].get(corpus, {}).get("kind") != "graphs":
        names = [name for name, entry in meta["corpora"].items() if entry["kind"] == "graphs"]
        known = ", ".join(names) or "of which there is none"
        raise ValueError(f"{data}: expected a corpus of graphs, {known}; got {corpus!r}")
    sentences = read_split(data, corpus, split, meta)
    if not 1 <= sentence <= len(sentences):
        raise ValueError(f"{corpus}, {split}: expected a sentence from 1 to {len(sentences)}, got {sentence}")
    chosen = sentences[sentence - 1]
    trees = {}
    for path in checkpoints:
        heads = predictions(path, data, corpus, split)[sentence - 1]["heads"].tolist()
        trees[name_of(path, trees)] = heads
    if chosen.heads is not None:
        trees["annotated"] = list(chosen.heads)
    return list(chosen.words), trees, [arc for arc in chosen.arcs or () if arc[0]]


def name_of(checkpoint: str | Path, taken: Mapping[str, object]) -> str:
    """The run's folder, without checkpoints/, numbered where it is taken."""
    folder = Path(checkpoint).resolve().parent
    name = folder.parent.name if folder.name == "checkpoints" else folder.name
    return name if name not in taken else f"{name} ({len(taken) + 1})"


def dependencies(
    words: Sequence[str], trees: Mapping[str, Sequence[int]], graph: Sequence[tuple[int, int, str]] = ()
) -> Figure:
    """A panel for each tree, one below the other, and one for the graph, if it has arcs.

    trees: the head of each word, 0 the root, by name; arcs that the first tree has not are red.
    """
    panels = len(trees) + bool(graph)
    figure = Figure(figsize=(min(20.0, 2.0 + 0.75 * len(words)), 2.2 * panels))
    axes = figure.subplots(panels, squeeze=False)[:, 0]
    first = next(iter(trees.values()), ())
    for axis, (name, heads) in zip(axes, trees.items(), strict=False):
        arcs = [(head, word, "") for word, head in enumerate(heads, 1)]
        changed = {word for word, (head, old) in enumerate(zip(heads, first, strict=True), 1) if head != old}
        _panel(axis, words, arcs, name, changed)
    if graph:
        _panel(axes[-1], words, graph, "semantic graph", set())
    figure.tight_layout()
    return figure


def _panel(
    axis: Axes, words: Sequence[str], arcs: Sequence[tuple[int, int, str]], name: str, changed: set[int]
) -> None:
    highest, drawn = 1.0, set()
    for head, dependent, label in arcs:
        if head == 0:
            continue
        colour = "tab:red" if dependent in changed else "black"
        width, middle = abs(head - dependent), (head + dependent) / 2
        height = 0.8 * width + (0.4 if (dependent, head) in drawn else 0.0)  # above the arc the other way
        drawn.add((head, dependent))
        axis.add_patch(Arc((middle, 0), width, 2 * height, theta1=0, theta2=180, color=colour))
        axis.plot(dependent, 0.06, marker="v", markersize=4, color=colour)
        if label:
            axis.text(middle, height + 0.08, plain(label), ha="center", fontsize=6)
        highest = max(highest, height)
    for dependent in (dependent for head, dependent, _ in arcs if head == 0):
        colour = "tab:red" if dependent in changed else "black"
        axis.annotate("", (dependent, 0.05), (dependent, highest), arrowprops={"arrowstyle": "->", "color": colour})
        axis.text(dependent, highest + 0.05, ROOT, ha="center", fontsize=7, color=colour)
    axis.set_xlim(0.3, len(words) + 0.7)
    axis.set_ylim(0, highest + 0.5)
    axis.set_xticks(range(1, len(words) + 1), map(plain, words), rotation=30, ha="right")
    axis.set_yticks([])
    axis.set_title(plain(name), loc="left", fontsize=9)
    axis.spines[["top", "left", "right"]].set_visible(False)
