"""What each layer of a checkpoint does with one string.

Of a nondeterministic stack the actions are expectations over all its runs so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import torch

from seqstruct.attention import get_attention
from seqstruct.bridge.adapter import AttentionAdapter
from seqstruct.bridge.passes import collect_readings
from seqstruct.ops.pushdown import expected_actions, most_probable_run
from seqstruct.scoring.trained import first_symbol, load_model


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


def layer_views(
    checkpoint: str | Path, text: str, *, target: str = "", data: str | Path | None = None
) -> list[LayerView]:
    """What each layer of a checkpoint did with a string, lowest first; one without actions and weights is left out.

    text: symbols separated by spaces, as in the training data.  target: the other side, for a translation model.
    data: the data folder, if it is not where it was in training.
    Raises ValueError if a symbol is unknown, a translation model gets no target or the model is of another kind, and
    OSError if there is no checkpoint.
    """
    from fairseq.models import FairseqEncoderDecoderModel, FairseqLanguageModel

    model, task = load_model(checkpoint, data)
    encoded = isinstance(model, FairseqEncoderDecoderModel)
    if not encoded and not isinstance(model, FairseqLanguageModel):
        raise ValueError(f"{checkpoint}: expected a translation or a language model, got {type(model).__name__}")
    if encoded and not target:
        raise ValueError("a translation model needs a target too: --target TEXT")
    source = _indices(task.source_dictionary, text)
    before = source
    with torch.no_grad(), collect_readings() as readings, _pushdown_logits(model) as logits:
        if encoded:
            eos = torch.tensor([task.source_dictionary.eos()])
            before = task.build_dataset_for_inference([torch.cat([source, eos])], [len(source) + 1])[0]["source"]
            after = [task.target_dictionary[eos], *target.split()]
            previous = torch.cat([eos, _indices(task.target_dictionary, target)])
            model(before[None], torch.tensor([len(before)]), previous[None])
        else:
            first = first_symbol(task)
            after = [task.source_dictionary[first], *text.split()]
            given = torch.cat([torch.tensor([first]), source])
            model(given[None], src_lengths=torch.tensor([len(given)]))
    symbols = [task.source_dictionary[i] for i in before]
    names = {
        "encoder_self": (symbols, symbols),
        "decoder_self": (after, after),
        "cross": (after, symbols),
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
    sizes = {"states": mechanism.config.states, "symbols": mechanism.config.symbols}
    return expected_actions(logits, **sizes), most_probable_run(logits, **sizes)[0]


def _indices(dictionary: Any, text: str) -> Any:
    symbols = text.split()
    found = [dictionary.index(symbol) for symbol in symbols]
    unknown = [s for s, i in zip(symbols, found, strict=True) if i == dictionary.unk() and s != dictionary.unk_word]
    if unknown or not symbols:
        raise ValueError(
            f"unknown symbols: {' '.join(dict.fromkeys(unknown))}" if unknown else "expected at least one symbol"
        )
    return torch.tensor(found)
