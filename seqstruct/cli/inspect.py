"""`seqstruct inspect CHECKPOINT`: what a checkpoint holds, without building its model.

The attention of each site and layer, parameters by part, task and data, training so far, and the versions that wrote
it.  The file is loaded with `weights_only=True`.  Tensors that share memory, as tied embeddings do, count once.
"""

from __future__ import annotations

import argparse
import operator
import re
from dataclasses import asdict
from itertools import groupby
from typing import Any, Iterable, Mapping

PARTS = (
    ("encoder self-attention", re.compile(r"^(encoder\.(layers\.\d+\.self_attn|attention)|intra)\.")),
    ("decoder self-attention", re.compile(r"^decoder\.layers\.\d+\.self_attn\.")),
    ("cross-attention", re.compile(r"\.encoder_attn\.|^decoder\.attention\.")),
    ("feed-forward", re.compile(r"\.fc[12]\.")),
    ("norms", re.compile(r"norm")),
    ("output", re.compile(r"output_projection|project_out")),
    ("embeddings", re.compile(r"embed|project_in")),
)
OTHER = "other"
ORDER = ("embeddings", *(part for part, _ in PARTS[:5]), "output", OTHER)
SITE_MODULES = (
    ("encoder_self", "encoder_self_attention", "encoder", "self_attn"),
    ("decoder_self", "decoder_self_attention", "decoder", "self_attn"),
    ("cross", "cross_attention", "decoder", "encoder_attn"),
    ("encoder_self", "intra_attention", "intra", "mechanism"),
)
SLOT = (
    "rotary", "encoder_kv_heads", "decoder_kv_heads", "qk_norm", "short_conv", "no_biases", "rms_norm", "swiglu",
    "logit_soft_cap",
)
ALONE = {
    ("encoder", "self_attn"): "encoder.attention.", ("decoder", "encoder_attn"): "decoder.attention.",
    ("intra", "mechanism"): "intra.",
}


def part_of(key: str) -> str:
    """The part of the model that an entry of a state dictionary belongs to."""
    return next((part for part, pattern in PARTS if pattern.search(key)), OTHER)


def count_parameters(model: Mapping[str, Any]) -> dict[str, int]:
    """Numbers of parameters by part, in a fixed order; tied tensors count in the part that comes first in the file.

    Integer tensors and fairseq's one-element placeholders are left out.
    """
    from seqstruct.bridge.checkpoints import place_of

    seen, counts = set(), {}
    for key, tensor in model.items():
        if not tensor.is_floating_point() or key.endswith(("version", "_float_tensor")) or place_of(tensor) in seen:
            continue
        seen.add(place_of(tensor))
        part = part_of(key)
        counts[part] = counts.get(part, 0) + tensor.numel()
    return {part: counts[part] for part in ORDER if part in counts}


def layers_of(model: Mapping[str, Any], side: str, module: str) -> int:
    """How many layers of a side hold an attention of this name; 1 where a model has one beside its layers."""
    pattern = re.compile(rf"^{side}\.layers\.(\d+)\.{module}\.")
    alone = ALONE.get((side, module))
    if alone and any(key.startswith(alone) for key in model):
        return 1
    return len({match.group(1) for match in map(pattern.match, model) if match})


def plan_lines(model: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    """One line for each site that the model has: which layers hold which mechanism.  Layers count from 0.

    Raises ValueError if the plan in the configuration does not fit the layers in the file.
    """
    from seqstruct.attention import Site, parse_choices

    lines = []
    for site, option, side, module in SITE_MODULES:
        layers = layers_of(model, side, module)
        if not layers:
            continue
        if options.get(option) not in (None, "none"):
            names = [spelled_out(choice) for choice in parse_choices(options[option], layers, Site(site))]
        else:
            stock = any(f".{module}." in key for key in model)
            names = ["fairseq's own attention" if stock else "the architecture's own attention"] * layers
        lines.append(f"{site.replace('_', ' '):12} {', '.join(ranges(names))}")
    return lines


def slot_lines(options: Mapping[str, Any]) -> list[str]:
    """One line of what was switched on in layers beside the plan, rotary positions and the like; none if nothing."""
    chosen = {name: options.get(name) for name in SLOT if options.get(name) not in (None, False, 0, "none")}
    if "rotary" in chosen:
        chosen["rotary_base"] = options["rotary_base"]
    return [", ".join(name if value is True else f"{name}={value}" for name, value in chosen.items())][: len(chosen)]


def spelled_out(choice: Any) -> str:
    """A mechanism with all its options, defaults too: "sigmoid(bias=0.0)"."""
    settings = ", ".join(f"{name}={value!r}" for name, value in asdict(choice.config).items())
    return f"{choice.name}({settings})" if settings else choice.name


def ranges(names: Iterable[str]) -> list[str]:
    """Runs of equal names: ["a", "a", "b"] gives ["0-1 a", "2 b"]."""
    found, first = [], 0
    for name, run in groupby(names):
        last = first + len(list(run)) - 1
        found.append(f"{first} {name}" if first == last else f"{first}-{last} {name}")
        first = last + 1
    return found


def data_lines(task: Mapping[str, Any], model: Mapping[str, Any]) -> list[str]:
    """Task, data folder, languages, and the rows of the embedding tables."""
    lines = [f"task {task.get('_name') or 'unknown'}"]
    if task.get("data"):
        lines.append(f"data {task['data']}")
    if task.get("source_lang"):
        lines.append(f"{task['source_lang']} to {task.get('target_lang')}")
    for side in ("encoder", "decoder"):
        table = model.get(f"{side}.embed_tokens.weight")
        if table is not None:
            lines.append(f"{side} vocabulary {table.shape[0]:,}")
    return lines


def whole(number: Any) -> str:
    return f"{operator.index(number):,}"


def training_lines(state: Mapping[str, Any], configuration: Mapping[str, Any]) -> list[str]:
    """Progress, the best validation value so far, and how it was trained."""
    extra = state.get("extra_state") or {}
    history = (state.get("optimizer_history") or [{}])[-1]
    iterator = extra.get("train_iterator") or {}
    lines = []
    if "num_updates" in history:
        lines.append(f"{whole(history['num_updates'])} updates")
    if "epoch" in iterator:
        epoch, done = iterator["epoch"], iterator.get("iterations_in_epoch", 0)
        lines.append(f"{whole(done)} batches into epoch {whole(epoch)}" if done else f"epoch {whole(epoch)} is next")
    if extra.get("best") is not None:
        metric = configuration.get("checkpoint", {}).get("best_checkpoint_metric", "loss")
        lines.append(f"best {metric} {float(extra['best']):.4g}")
    for name in ("criterion", "optimizer", "lr_scheduler"):
        chosen = configuration.get(name, {}).get("_name")
        if chosen:
            lines.append(f"{name.replace('_', ' ')} {chosen}")
    if "seed" in configuration.get("common", {}):
        lines.append(f"seed {configuration['common']['seed']}")
    return lines


def version_lines(state: Mapping[str, Any]) -> list[str]:
    versions = (state.get("extra_state") or {}).get("seqstruct_versions") or {}
    return [f"{name} {version}" for name, version in versions.items()] or ["not in this checkpoint"]


def describe(path: str) -> str:
    """The report on a checkpoint file.  Raises OSError or ValueError if it cannot be read as one."""
    from seqstruct.bridge.checkpoints import load_checkpoint

    state = load_checkpoint(path)
    try:
        sections = sections_of(state)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    except (AttributeError, IndexError, KeyError, TypeError) as error:  # another program wrote it
        raise ValueError(f"{path}: not the entries of a fairseq checkpoint ({error})") from error
    return "\n".join(f"{name:12} " + f"\n{'':12} ".join(lines) for name, lines in sections.items())


def sections_of(state: Mapping[str, Any]) -> dict[str, list[str]]:
    """The lines of each section.  Raises ValueError where entries contradict each other, whatever else where they are
    not fairseq's.
    """
    from seqstruct.bridge.checkpoints import configuration_of

    configuration = configuration_of(state)
    model = {key.replace("sentence_encoder.", ""): tensor for key, tensor in state["model"].items()}  # RoBERTa's
    options = configuration.get("model", {})
    counts = count_parameters(model)
    kinds = sorted({str(t.dtype).removeprefix("torch.") for t in model.values() if t.is_floating_point()})
    return {
        "model": [str(options.get("arch") or options.get("_name") or "unknown")],
        "plan": [*plan_lines(model, options), *slot_lines(options)] or ["no transformer layers"],
        "parameters": [f"{sum(counts.values()):,} in all, {', '.join(kinds)}"]
        + [f"{part:24} {count:>14,}" for part, count in counts.items()],
        "data": data_lines(configuration.get("task", {}), model),
        "training": training_lines(state, configuration) or ["not in this checkpoint"],
        "versions": version_lines(state),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="a .pt file written by fairseq-train")


def run(args: argparse.Namespace) -> None:
    print(describe(args.checkpoint))
