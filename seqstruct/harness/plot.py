"""Drawings, each one PNG, PDF or SVG: learning curves, curves by length, and what the attention of a string does."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from seqstruct.data.files import atomic_write
from seqstruct.harness.logs import parse_lines
from seqstruct.harness.records import Record, latest

FORMATS = (".png", ".pdf", ".svg")
ACTIONS = ("push", "pop", "keep")


class LayerView(NamedTuple):
    """What one layer of a checkpoint did with a string: `actions` T 3 (push, pop, keep) or `weights` H T S."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    actions: Any
    weights: Any


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure under its name when it is whole.  Raises ValueError if the ending is not .png, .pdf or .svg."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"{path}: expected a name that ends in {', '.join(FORMATS)}")
    with atomic_write(path, "wb") as stream:
        figure.savefig(stream, format=path.suffix[1:].lower(), dpi=150, bbox_inches="tight")


def learning_curves(logs: Mapping[str, Path], metric: str) -> Figure:
    """A validation statistic by epoch, one curve for each train.log.

    logs: path by the name in the legend.  metric: as fairseq logs it, without "valid_" ("loss", "difference").
    Raises ValueError if a log has no such statistic, OSError if it is missing.
    """
    figure = Figure(figsize=(6.4, 4.0))
    axes = figure.subplots()
    for name, path in logs.items():
        entries = parse_lines(path.read_text(encoding="utf-8").splitlines())
        points = {
            e.statistics["epoch"]: e.statistics[f"valid_{metric}"] for e in entries if f"valid_{metric}" in e.statistics
        }
        if not points:
            known = sorted({key[6:] for e in entries for key in e.statistics if key.startswith("valid_")})
            raise ValueError(f"{path}: no validation statistic {metric!r}; there are: {', '.join(known) or 'none'}")
        axes.plot(list(points), list(points.values()), marker="o", markersize=2.5, label=name)
    axes.set_xlabel("epoch")
    axes.set_ylabel(f"validation {metric.replace('_', ' ')}")
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
    return figure


def length_curves(records: Sequence[Record], title: str = "") -> Figure:
    """A metric split up by its axis, one curve for each row: the mean over seeds, with a band from least to greatest.

    records: of one metric, unit and axis.  Raises ValueError if none of them is split up, or if they are of several.
    """
    split = [r for r in latest(records) if r.series]
    kinds = sorted({(r.metric, r.unit, r.series["axis"]) for r in split})
    if len(kinds) != 1:
        raise ValueError(
            f"expected records of one metric that is split up; got {len(kinds)}: "
            + (", ".join(metric for metric, _, _ in kinds) or "none")
        )
    metric, unit, axis = kinds[0]
    figure = Figure(figsize=(6.4, 4.0))
    axes = figure.subplots()
    for row in dict.fromkeys(r.row for r in split):
        values: dict[float, list[float]] = {}
        for r in split:
            if r.row == row:
                for x, y in r.series["points"]:
                    values.setdefault(x, []).append(y)
        at = sorted(values)
        (line,) = axes.plot(at, [statistics.fmean(values[x]) for x in at], label=row)
        if any(len(values[x]) > 1 for x in at):
            low, high = [min(values[x]) for x in at], [max(values[x]) for x in at]
            axes.fill_between(at, low, high, color=line.get_color(), alpha=0.2)
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.set_xlabel(axis)
    axes.set_ylabel(f"{metric.replace('_', ' ')} ({unit})")
    axes.set_title(title)
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
    return figure


def layer_views(
    checkpoint: str | Path, text: str, *, target: str = "", data: str | Path | None = None
) -> list[LayerView]:
    """What each layer of a checkpoint did with a string, lowest first; one without actions and weights is left out.

    text: symbols separated by spaces, as in the training data.  target: the other side, for a translation model.
    data: the data folder, if it is not where it was in training.
    Raises ValueError if a symbol is unknown or a translation model gets no target, OSError if there is no checkpoint.
    """
    import torch
    from fairseq import checkpoint_utils

    # something that fairseq imports turns on every library's debugging messages
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    import seqstruct.models
    import seqstruct.tasks  # noqa: F401 (registers the tasks)
    from seqstruct.bridge.collect import collect_readings

    overrides = {} if data is None else {"data": str(data)}
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], arg_overrides=overrides)
    model.eval()
    encoded = hasattr(model, "encoder")
    if encoded and not target:
        raise ValueError("a translation model needs a target too")
    source = _indices(task.source_dictionary, text)
    before, after = source, target.split()
    with torch.no_grad(), collect_readings() as readings:
        if encoded:
            eos = torch.tensor([task.source_dictionary.eos()])
            before = torch.cat([source, eos])
            previous = torch.cat([eos, _indices(task.target_dictionary, target)])
            model(before[None], torch.tensor([len(before)]), previous[None])
        else:
            model(torch.cat([torch.tensor([task.source_dictionary.bos()]), source])[None])
    names = {
        "encoder_self": (text.split() + ["</s>"],) * 2,
        "decoder_self": (["<s>", *(after if encoded else text.split())],) * 2,
        "cross": (["</s>", *after], text.split() + ["</s>"]),
    }
    views = []
    for site, layer, reading in readings:
        rows, columns = names[site.value]
        actions = reading.extra.get("actions")
        if actions is not None or reading.weights is not None:
            views.append(LayerView(
                f"{site.value.replace('_', ' ')}, layer {layer + 1}", rows, columns,
                None if actions is None else actions[0].float().numpy(),
                None if reading.weights is None else reading.weights[0].float().numpy(),
            ))
    return views


def _indices(dictionary: Any, text: str) -> Any:
    import torch

    symbols = text.split()
    found = [dictionary.index(symbol) for symbol in symbols]
    unknown = [s for s, i in zip(symbols, found, strict=True) if i == dictionary.unk() and s != dictionary.unk_word]
    if unknown or not symbols:
        raise ValueError(
            f"unknown symbols: {' '.join(dict.fromkeys(unknown))}" if unknown else "expected at least one symbol"
        )
    return torch.tensor(found)


def attention(views: Sequence[LayerView], title: str = "") -> Figure:
    """One panel for each layer: stack actions as a heat map over the string, or weights averaged over heads."""
    if not views:
        raise ValueError("no layer gives actions or attention weights")
    heights = [1.0 if view.actions is not None else 4.0 for view in views]
    width = min(16.0, 2.0 + 0.28 * max(len(view.columns) for view in views))
    figure = Figure(figsize=(width, 0.8 + 1.1 * sum(heights)), layout="constrained")
    panels = figure.subplots(len(views), 1, squeeze=False, height_ratios=heights)
    for axes, view in zip(panels[:, 0], views, strict=True):
        stack = view.actions is not None
        shown = view.actions.T if stack else view.weights.mean(0)
        image = axes.imshow(shown, vmin=0.0, vmax=1.0, cmap="Blues", aspect="auto", interpolation="nearest")
        labels = view.rows if stack else view.columns
        axes.set_xticks(range(len(labels)), labels, fontsize="small")
        axes.set_yticks(range(shown.shape[0]), ACTIONS if stack else view.rows, fontsize="small")
        axes.set_title(view.title, fontsize="medium", loc="left")
        figure.colorbar(image, ax=axes, aspect=8 if stack else 20, pad=0.01)
    if title:
        figure.suptitle(title, fontsize="medium")
    return figure
