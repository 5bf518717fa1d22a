"""Drawings, each one PNG, PDF or SVG: learning curves, curves by length, and what the attention of a string does.

Of a nondeterministic stack the actions are expectations over all its runs so far, and its most probable run is drawn.
"""

from __future__ import annotations

import logging
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from seqstruct.data.files import atomic_write
from seqstruct.harness.logs import parse_lines
from seqstruct.harness.records import Record, latest

FORMATS = (".png", ".pdf", ".svg")
ACTIONS = ("push", "pop", "keep")


class LayerView(NamedTuple):
    """What one layer of a checkpoint did with a string: `actions` T 3 (push, pop, keep) or `weights` H T S.

    run: the most probable one (`seqstruct.ops.pushdown.best_run.Run`), of a nondeterministic stack alone.
    best: T S bool, the most probable structure, of segmentation with one head and of trees alone; of trees the weights
    are probabilities of heads, the root's first where it is no token.
    """

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    actions: Any
    weights: Any
    run: Any = None
    best: Any = None


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


def length_curves(
    records: Sequence[Record], title: str = "", selection: str | None = None, metric: str | None = None
) -> Figure:
    """A metric split up by its axis, one curve for each row: the mean over seeds, with a band from least to greatest.

    selection: the metric whose least value chooses the run of a row that is drawn, alone, instead of the mean; None for
    the mean.  metric: what is drawn, None for the one that is split up, the selection apart.
    Raises ValueError if none of that name is split up, or if several are, or of several units or axes.
    """
    split, (metric, unit, axis) = _split_up(records, selection, metric)
    figure = Figure(figsize=(6.4, 4.0))
    axes = figure.subplots()
    _draw_lengths(axes, split, metric, {row: row for row in dict.fromkeys(r.row for r in split)})
    axes.set_xlabel(axis)
    axes.set_ylabel(f"{metric.replace('_', ' ')} ({unit})")
    axes.set_title(title)
    axes.legend(fontsize="small")
    return figure


def length_panels(
    records: Sequence[Record], title: str = "", selection: str | None = None, metric: str | None = None
) -> Figure:
    """`length_curves` with a panel for each first word of the rows ("dyck Tf+Nd"), and one legend of the other words.

    Curves of one name have one colour in all panels.  Raises ValueError as `length_curves` does.
    """
    split, (metric, unit, axis) = _split_up(records, selection, metric)
    groups: dict[str, dict[str, str]] = {}
    for record in split:
        first, _, rest = record.row.partition(" ")
        groups.setdefault(first, {})[record.row] = rest or first
    names = list(dict.fromkeys(name for rows in groups.values() for name in rows.values()))
    columns = min(3, len(groups))
    lines = -(-len(groups) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.6 * lines + 0.8), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False).flat
    handles: dict[str, Any] = {}
    for axes, (first, rows) in zip(panels, groups.items(), strict=False):
        of_panel = [record for record in split if record.row in rows]
        handles |= _draw_lengths(axes, of_panel, metric, rows, {name: f"C{i}" for i, name in enumerate(names)})
        axes.set_title(first, fontsize="medium")
        axes.set_xlabel(axis)
    for axes in list(figure.axes)[len(groups) :]:
        axes.set_axis_off()
    figure.supylabel(f"{metric.replace('_', ' ')} ({unit})", fontsize="medium")
    figure.suptitle(title, fontsize="medium")
    figure.legend([handles[name] for name in names], names, loc="outside lower center", ncols=len(names))
    return figure


def _split_up(
    records: Sequence[Record], selection: str | None, metric: str | None
) -> tuple[list[Record], tuple[str, str, str]]:
    """The records to draw, and their one metric, unit and axis."""
    recent = latest(records)
    kinds = sorted({
        (name, found["unit"], found["axis"]) for r in recent for name, found in r.metrics.items()
        if "axis" in found and name != selection and metric in (None, name)
    })
    if len(kinds) != 1:
        raise ValueError(
            f"expected records of one metric that is split up; got {len(kinds)}: "
            + (", ".join(name for name, _, _ in kinds) or "none")
        )
    split = [r for r in recent if r.points(kinds[0][0])]
    if selection is not None:
        judged = {
            (r.row, r.scale, r.configuration_hash, r.seed): r.metrics[selection]["value"]
            for r in recent if selection in r.metrics
        }

        def judge(r: Record) -> float:
            return judged.get((r.row, r.scale, r.configuration_hash, r.seed), math.inf)

        split = [min((r for r in split if r.row == row), key=judge) for row in dict.fromkeys(r.row for r in split)]
    return split, kinds[0]


def _draw_lengths(
    axes: Any, records: Sequence[Record], metric: str, rows: Mapping[str, str],
    colors: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """One curve for each row; rows: its name in the legend.  The curves come back by name."""
    drawn = {}
    for row, name in rows.items():
        values: dict[float, list[float]] = {}
        for r in records:
            if r.row == row:
                for x, y in r.points(metric):
                    values.setdefault(x, []).append(y)
        at = sorted(values)
        (line,) = axes.plot(
            at, [statistics.fmean(values[x]) for x in at], label=name, color=None if colors is None else colors[name]
        )
        drawn[name] = line
        if any(len(values[x]) > 1 for x in at):
            low, high = [min(values[x]) for x in at], [max(values[x]) for x in at]
            axes.fill_between(at, low, high, color=line.get_color(), alpha=0.2)
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.grid(alpha=0.3)
    return drawn


def layer_views(
    checkpoint: str | Path, text: str, *, target: str = "", data: str | Path | None = None
) -> list[LayerView]:
    """What each layer of a checkpoint did with a string, lowest first; one without actions and weights is left out.

    text: symbols separated by spaces, as in the training data.  target: the other side, for a translation model.
    data: the data folder, if it is not where it was in training.
    Raises ValueError if a symbol is unknown, a translation model gets no target or the model is of another kind, and
    OSError if there is no checkpoint.
    """
    import torch
    from fairseq import checkpoint_utils
    from fairseq.models import FairseqEncoderDecoderModel, FairseqLanguageModel

    # something that fairseq imports turns on every library's debugging messages
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    import seqstruct.models
    import seqstruct.tasks  # noqa: F401 (registers the tasks)
    from seqstruct.bridge.collect import collect_readings

    overrides = {} if data is None else {"data": str(data)}
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], arg_overrides=overrides)
    model.eval()
    encoded = isinstance(model, FairseqEncoderDecoderModel)
    if not encoded and not isinstance(model, FairseqLanguageModel):
        raise ValueError(f"{checkpoint}: expected a translation or a language model, got {type(model).__name__}")
    if encoded and not target:
        raise ValueError("a translation model needs a target too: --target TEXT")
    source = _indices(task.source_dictionary, text)
    before, after = source, target.split()
    with torch.no_grad(), collect_readings() as readings, _pushdown_logits(model) as logits:
        if encoded:
            eos = torch.tensor([task.source_dictionary.eos()])
            before = task.build_dataset_for_inference([torch.cat([source, eos])], [len(source) + 1])[0]["source"]
            previous = torch.cat([eos, _indices(task.target_dictionary, target)])
            model(before[None], torch.tensor([len(before)]), previous[None])
        else:
            model(torch.cat([torch.tensor([task.source_dictionary.bos()]), source])[None])
    symbols = [task.source_dictionary[i] for i in before]
    names = {
        "encoder_self": (symbols, symbols),
        "decoder_self": (["<s>", *(after if encoded else text.split())],) * 2,
        "cross": (["</s>", *after], symbols),
    }
    views = []
    for site, layer, reading in readings:
        rows, columns = names[site.value]
        actions, run = reading.extra.get("actions"), None
        if (site, layer) in logits:
            actions, run = _runs(*logits[site, layer])
        if actions is not None or reading.weights is not None:
            weights, best = _weights_and_best(reading)
            rooted = weights is not None and weights.shape[-1] == len(columns) + 1
            views.append(LayerView(
                f"{site.value.replace('_', ' ')}, layer {layer + 1}", rows, ["root", *columns] if rooted else columns,
                None if actions is None else actions[0].float().numpy(), weights, run, best,
            ))
    return views


def _weights_and_best(reading: Any) -> tuple[Any, Any]:
    """Weights H T S, or probabilities of heads 1 T S (S+1 with the root), and the best structure T S, of one row."""
    import torch

    weights, best = reading.weights, None
    if "heads" in reading.extra:
        weights, heads = reading.extra["marginals"][:, None], reading.extra["heads"][0]
        best = heads[:, None] == torch.arange(weights.size(3))
    elif "best_selection" in reading.extra and weights.size(1) == 1:
        best = reading.extra["best_selection"][0, :, 0] == 1
    return None if weights is None else weights[0].float().numpy(), None if best is None else best.numpy()


@contextmanager
def _pushdown_logits(model: Any) -> Iterator[dict]:
    """Inside the block: by site and layer, the mechanism of a nondeterministic stack and its last log-weights."""
    from seqstruct.attention import get_attention
    from seqstruct.bridge.adapter import AttentionAdapter

    kind = get_attention("nondeterministic_stack")
    found: dict = {}
    hooks = []
    for adapter in model.modules():
        if isinstance(adapter, AttentionAdapter) and isinstance(adapter.mechanism, kind):
            mechanism, key = adapter.mechanism, (adapter.mechanism.shape.site, adapter.layer)

            def keep(_: Any, __: Any, output: Any, mechanism: Any = mechanism, key: Any = key) -> None:
                found[key] = mechanism, output

            hooks.append(mechanism.transition_layer.register_forward_hook(keep))
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _runs(mechanism: Any, logits: Any) -> tuple[Any, Any]:
    """Expected actions 1 T 3 and the most probable run of one sequence."""
    from seqstruct.ops.pushdown.actions import expected_actions
    from seqstruct.ops.pushdown.best_run import most_probable_run

    sizes = {"states": mechanism.config.states, "symbols": mechanism.config.symbols}
    return expected_actions(logits, **sizes), most_probable_run(logits, **sizes)[0]


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
    """One panel for each layer: stack actions as a heat map over the string, or weights averaged over heads.

    The most probable structure, where there is one, is drawn as open squares.
    """
    if not views:
        raise ValueError("no layer gives actions or attention weights")
    heights = [1.0 if view.actions is not None else 4.0 for view in views]
    width = min(16.0, 2.0 + 0.28 * max(len(view.columns) for view in views))
    figure = Figure(figsize=(width, 0.8 + 1.1 * sum(heights)), layout="constrained")
    panels = figure.subplots(len(views), 1, squeeze=False, height_ratios=heights)
    for axes, view in zip(panels[:, 0], views, strict=True):
        stack = view.actions is not None
        shown = view.actions.T if stack else view.weights.mean(0)
        most = max(1.0, float(shown.max(initial=0.0)))  # weights of segmentation sum to 2 and may be above 1
        image = axes.imshow(shown, vmin=0.0, vmax=most, cmap="Blues", aspect="auto", interpolation="nearest")
        labels = view.rows if stack else view.columns
        upright = max(map(len, labels), default=0) <= 3  # words side by side would overlap
        axes.set_xticks(range(len(labels)), labels, fontsize="small", rotation=0 if upright else 90)
        axes.set_yticks(range(shown.shape[0]), ACTIONS if stack else view.rows, fontsize="small")
        if view.best is not None:
            down, across = view.best.nonzero()
            axes.scatter(across, down, marker="s", s=45, facecolors="none", edgecolors="C3", linewidths=1.0)
        axes.set_title(view.title, fontsize="medium", loc="left")
        figure.colorbar(image, ax=axes, aspect=8 if stack else 20, pad=0.01)
    if title:
        figure.suptitle(title, fontsize="medium")
    return figure


def stacks_of(run: Any) -> list[list[tuple[int, int]]]:
    """The stack after each step, bottom first: (symbol, step that pushed the vector, -1 for the bottom vector)."""
    stack, found = [(0, -1)], []
    for transition in run.transitions:
        if transition.action == "pop":
            stack.pop()
        elif transition.action == "push":
            stack.append((transition.next_symbol, transition.vector))
        else:
            stack[-1] = (transition.next_symbol, transition.vector)
        found.append(list(stack))
    return found


def stack_runs(views: Sequence[LayerView], title: str = "") -> Figure:
    """The most probable run of each nondeterministic stack: a column of cells for each step, the bottom lowest.

    A cell's colour is its stack symbol, its text the input whose vector it holds; under each column stand the input,
    the action (+ push, - pop, = replace) and the automaton's state after it.  Raises ValueError if no view has a run.
    """
    views = [view for view in views if view.run is not None]
    if not views:
        raise ValueError("no layer has a nondeterministic stack")
    signs = {"push": "+", "pop": "\u2212", "replace": "="}
    columns = [stacks_of(view.run) for view in views]
    heights = [max((len(stack) for stack in stacks), default=1) for stacks in columns]
    width = min(20.0, 2.2 + 0.36 * max(len(view.rows) for view in views))
    figure = Figure(figsize=(width, sum(1.5 + 0.3 * height for height in heights)), layout="constrained")
    panels = figure.subplots(len(views), 1, squeeze=False, height_ratios=[1.5 + 0.3 * height for height in heights])
    for axes, view, stacks, height in zip(panels[:, 0], views, columns, heights, strict=True):
        for at, stack in enumerate(stacks):
            for level, (symbol, vector) in enumerate(stack):
                axes.bar(at, 1, width=0.9, bottom=level, color=f"C{symbol}", alpha=0.55, edgecolor="white")
                text = "\u22a5" if vector < 0 else view.rows[vector]
                axes.text(at, level + 0.5, text, ha="center", va="center", fontsize="small")
        labels = [
            f"{name}\n{signs[transition.action]}\n{transition.next_state}"
            for name, transition in zip(view.rows, view.run.transitions, strict=True)
        ]
        axes.set_xticks(range(len(labels)), labels, fontsize="small")
        axes.set_xlim(-0.7, len(labels) - 0.3)
        axes.set_ylim(0, height)
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.set_ylabel("elements")
        share = f"{math.exp(view.run.log_share):.2g} of the weight of all runs"
        axes.set_title(f"{view.title}: {share}", fontsize="medium", loc="left")
        symbols = sorted({symbol for stack in stacks for symbol, _ in stack})
        handles = [axes.bar(0, 0, color=f"C{symbol}", alpha=0.55) for symbol in symbols]
        names = [f"symbol {symbol}" for symbol in symbols]
        axes.legend(handles, names, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    if title:
        figure.suptitle(title, fontsize="medium")
    return figure
