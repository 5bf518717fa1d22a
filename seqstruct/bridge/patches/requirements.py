"""What models, criterions and options need of each other, checked before anything is built or read.

A model or criterion that works with certain tasks alone names them, `made_for = ("joint_parsing",)`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable

from fairseq import criterions, models, tasks
from fairseq.tasks import TASK_REGISTRY
from fairseq.tasks.fairseq_task import FairseqTask
from fairseq.tasks.language_modeling import LanguageModelingTask
from fairseq.trainer import Trainer
from omegaconf import DictConfig, OmegaConf, open_dict

from seqstruct.bridge.options import spelled
from seqstruct.bridge.patches.patch import patch

AT_LEAST_1 = re.compile(r"(^|_)(embed_dim|attention_heads|input_dim|output_dim|positions|tokens_per_sample)$")
INTERVALS = {
    "common": ("log_interval",), "dataset": ("validate_interval",), "optimization": ("update_freq",),
    "checkpoint": ("save_interval", "keep_interval_updates_pattern"),
}
PROBABILITY = re.compile(r"(^|_)(dropout|layerdrop)$")


def check_task(kind: str, name: str, cls: type | None, task: Any) -> None:
    """Raise ValueError if a model or criterion (kind) was made for other tasks than this one."""
    names = getattr(cls, "made_for", ())
    own = tuple(TASK_REGISTRY[name] for name in names if name in TASK_REGISTRY)
    if names and isinstance(task, FairseqTask) and not isinstance(task, own):
        given = next((key for key, found in TASK_REGISTRY.items() if found is type(task)), type(task).__name__)
        raise ValueError(f"the {kind} {name} needs --task {' or '.join(names)}, not {given}")


def check_targets(name: str, cls: type | None, task: Any) -> None:
    """Raise ValueError if a criterion of fairseq is for symbols, and the task of this package has other targets."""
    key = next((key for key, found in TASK_REGISTRY.items() if found is type(task)), None)
    own = [other for other, found in criterions.CRITERION_REGISTRY.items() if key in getattr(found, "made_for", ())]
    labels = task.target_dictionary is None or getattr(task, "labels", False)
    if own and labels and cls is not None and cls.__module__.startswith("fairseq."):
        raise ValueError(f"the criterion {name} is none for --task {key}, whose targets are no symbols: give "
                         f"--criterion {' or '.join(own)}")


def check_options(config: Mapping[str, Any]) -> None:
    """Raise ValueError, naming the option, if a number of a model's is negative, a probability not in [0, 1), sizes of
    tables that are shared differ, or cutoffs of adaptive ones are none."""
    for option, value in config.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if PROBABILITY.search(option) and not 0 <= value < 1:
            raise ValueError(f"{spelled(option)} is a probability, 0 or more and below 1, not {value}")
        least = 1 if AT_LEAST_1.search(option) else 0
        if isinstance(value, int) and value < least:
            raise ValueError(f"{spelled(option)} is {least} or more, not {value}")
    shared = [name for name in ("share_all_embeddings", "share_decoder_input_output_embed") if config.get(name)]
    if shared and "decoder_input_dim" in config and config.get("adaptive_softmax_cutoff") is None:
        sizes = [config[f"decoder_{side}_dim"] or config["decoder_embed_dim"] for side in ("input", "output")]
        if sizes[0] != sizes[1]:
            raise ValueError("{} needs one size: --decoder-input-dim is {}, "
                             "--decoder-output-dim {}".format(spelled(shared[0]), *sizes))
    for option in ("adaptive_softmax_cutoff", "adaptive_input_cutoff"):
        if config.get(option) is not None:
            bands = _check_cutoffs(option, config[option])
            if option == "adaptive_input_cutoff" and config.get("adaptive_input"):
                _check_sizes(config["decoder_input_dim"] or config["decoder_embed_dim"], bands, config)


def _check_cutoffs(option: str, value: Any) -> int:
    words = str(value).strip("()[], ").split(",")
    cutoffs = [int(word) if word.strip().isdecimal() else 0 for word in words]
    if cutoffs[0] < 1 or cutoffs != sorted(set(cutoffs)):
        raise ValueError(f"{spelled(option)}: expected rising numbers of words, such as 20000,60000, got {value}")
    return len(cutoffs)


def _check_sizes(size: int, bands: int, config: Mapping[str, Any]) -> None:
    if size // config["adaptive_input_factor"] ** bands < 1:
        raise ValueError(f"--adaptive-input-factor {config['adaptive_input_factor']:g}: the size {size} is divided by "
                         f"it for each of {bands} cutoffs, and nothing is left")


def _items(config: Any) -> Mapping[str, Any]:
    return config if hasattr(config, "items") else vars(config)


@patch(models, "build_model")
def build_model(build: Callable, cfg: Any, task: Any, from_checkpoint: bool = False) -> Any:
    """A model of another plugin, for another task or of senseless sizes fails somewhere inside, and so does a preset's
    checkpoint that lacks options which its model has gained since: they have their defaults.
    """
    name = getattr(cfg, "_name", None) or getattr(cfg, "arch", None)
    cls = models.ARCH_MODEL_REGISTRY.get(name) or models.MODEL_REGISTRY.get(name)
    if name is not None and cls is None:
        raise ValueError(f"no model is called {name}; if it comes from another plugin, give that as --user-dir")
    if cls is not None and cls.__module__.startswith("seqstruct."):
        check_task("model", name, cls, task)
        check_options(_items(cfg))
        if from_checkpoint and OmegaConf.is_config(cfg):
            _complete(cfg, models.MODEL_DATACLASS_REGISTRY.get(models.ARCH_MODEL_NAME_REGISTRY.get(name)))
    if isinstance(task, LanguageModelingTask) and not hasattr(cls, "supported_targets"):
        raise ValueError(f"the task needs a language model, such as structured_transformer_lm; {name} is none")
    return build(cfg, task, from_checkpoint)


def _complete(cfg: DictConfig, options: type | None) -> None:
    defaults = {} if options is None else OmegaConf.to_container(OmegaConf.structured(options), resolve=False)
    with open_dict(cfg):
        for option, default in defaults.items():
            if option not in cfg:
                cfg[option] = default


@patch(criterions, "build_criterion")
def build_criterion(build: Callable, cfg: Any, task: Any, *rest: Any, **named: Any) -> Any:
    """A criterion for other tasks fails at the first batch, or, as the default one, trains labels by the word."""
    name = getattr(cfg, "_name", None)
    cls = criterions.CRITERION_REGISTRY.get(name)
    check_task("criterion", name, cls, task)
    check_targets(name, cls, task)
    return build(cfg, task, *rest, **named)


@patch(tasks, "setup_task")
def setup_task(setup: Callable, cfg: Any, **named: Any) -> Any:
    """Unknown tasks, sizes below 1, missing dictionaries and languages are told in terms of fairseq's code."""
    if cfg is None:
        raise ValueError("give a task, such as task=translation or task=language_modeling")
    options = _items(cfg)
    name = options.get("_name") or options.get("task")
    if name is not None and name not in TASK_REGISTRY:
        raise ValueError(f"no task is called {name}; if it comes from another plugin, give that as --user-dir")
    for option, value in options.items():
        if AT_LEAST_1.search(option) and isinstance(value, int) and value < 1:
            less = ", less --context-window," if option == "tokens_per_sample" else ""
            raise ValueError(f"{spelled(option)}{less} is 1 or more, not {value}")
    folder = str(options.get("data")).split(":")[0]
    try:
        return setup(cfg, **named)
    except FileNotFoundError as error:
        missing = Path(str(error.filename))
        if Path(folder).is_dir() and missing.name.startswith("dict."):
            found = ", ".join(sorted(path.name for path in Path(folder).glob("dict.*"))) or "no dictionary"
            raise ValueError(f"{folder} has no {missing.name}, which the task {name} reads: {found}") from error
        raise
    except Exception as error:
        if "Could not infer language pair" in str(error):
            raise ValueError(f"{folder} names no pair of languages, as train.de-en.de.idx does: give --source-lang "
                             f"and --target-lang, another folder, or another task than {name}") from error
        raise


@patch(Trainer, "__init__")
def initialize(original: Callable, self: Trainer, cfg: Any, task: Any, *rest: Any, **named: Any) -> None:
    """An interval of 0, as if never, is divided by, and --combine-valid-subsets does nothing beside other subsets than
    valid, which are then missing, and in tasks that do not ask for it.
    """
    for section, options in INTERVALS.items():
        for option in options:
            if cfg[section][option] in (0, [0]):
                raise ValueError(f"{spelled(option)} is 1 or more, not 0")
    if cfg.dataset.combine_valid_subsets and not cfg.dataset.disable_validation:
        if cfg.dataset.valid_subset != "valid":
            raise ValueError("--combine-valid-subsets makes one of valid, valid1 and so on, which goes with "
                             f"--valid-subset valid, not {cfg.dataset.valid_subset}")
        if "combine" not in inspect.signature(task.load_dataset).parameters:
            raise ValueError(f"--combine-valid-subsets does nothing in --task {cfg.task._name}, which reads one subset "
                             "by a name")
    original(self, cfg, task, *rest, **named)


@patch(FairseqTask, "filter_indices_by_size")
def filter_indices_by_size(
    fit: Callable, self: FairseqTask, indices: Any, dataset: Any, max_positions: Any = None,
    ignore_invalid_inputs: bool = False,
) -> Any:
    """A sample that is too long is an error without its remedy, and where all are, there is none."""
    try:
        fitting = fit(self, indices, dataset, max_positions, ignore_invalid_inputs)
    except Exception as error:
        found = re.match(r"Size of sample #(\d+) is invalid", str(error))
        if not found:
            raise
        sizes = re.sub(r"np\.\w+\((\d+)\)", r"\1", str(dataset.size(int(found[1]))))
        raise ValueError(f"sample {found[1]} has {sizes} tokens, model and task take {max_positions}: "
                         "--skip-invalid-size-inputs-valid-test leaves such samples out") from error
    if len(indices) and not len(fitting):
        raise ValueError(f"all {len(indices)} samples are longer than the {max_positions} tokens that model, task and "
                         "--max-tokens take (--tokens-per-sample, --max-source-positions, --max-target-positions)")
    return fitting


@patch(FairseqTask, "get_batch_iterator")
def get_batch_iterator(
    batches: Callable, self: FairseqTask, dataset: Any, max_tokens: int | None = None,
    max_sentences: int | None = None, *rest: Any, **named: Any,
) -> Any:
    """Batches of no size are searched for without end."""
    for flag, value in (("--max-tokens", max_tokens), ("--batch-size", max_sentences)):
        if value is not None and value < 1:
            raise ValueError(f"{flag} is 1 or more, not {value}")
    return batches(self, dataset, max_tokens, max_sentences, *rest, **named)
