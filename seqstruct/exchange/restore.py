"""From a folder of `seqstruct export`, or of a model that transformers fine-tuned, to a checkpoint of fairseq."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError

from seqstruct.bridge.versions import versions
from seqstruct.data.files import atomic_write, check_free, read_json, undamaged
from seqstruct.data.text.pipeline import BINARISED
from seqstruct.exchange.architecture import ARCHITECTURES, difference, options_of
from seqstruct.exchange.export import TOLERANCE
from seqstruct.exchange.saved import CONFIGURATION, WEIGHTS, check_shapes, read_shapes
from seqstruct.hf import SeqstructConfig
from seqstruct.hf.tokenization import SeqstructTokenizer
from seqstruct.scoring.trained import register

HISTORY = {"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 0}  # of no training
TASKS = {"structured_transformer": "translation", "structured_transformer_lm": "language_modeling",
         "structured_transformer_classifier": "text_classification"}


def restore(folder: str | os.PathLike, data: str | os.PathLike, out: str | os.PathLike) -> SeqstructConfig:
    """Write the model of a folder as a checkpoint `out` over the prepared data; its configuration comes back.

    data: the folder of `seqstruct prepare`, or the bin/ in it, that the model's task reads.  Options of training are
    fairseq's defaults; `fairseq-train --finetune-from-model` goes on from it.
    Raises OSError if a file is missing, and ValueError if one is damaged, the folder is of another kind of model, `out`
    is there, or the dictionaries or labels of the data are not the model's.
    """
    folder, out = Path(folder), check_free(out)
    for name in (CONFIGURATION, WEIGHTS):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder / name}: no such file; expected a folder of a model of transformers")
    kind = read_json(folder / CONFIGURATION).get("model_type")
    if kind != SeqstructConfig.model_type:
        raise ValueError(f"{folder}: expected a model of type {SeqstructConfig.model_type}, got {kind}")
    with undamaged(folder / CONFIGURATION, StrictDataclassError):
        config = SeqstructConfig.from_pretrained(folder)
    cfg, task = _configured(config, Path(data), _begins(folder))
    _check_symbols(folder, task, config)
    model, found = task.build_model(cfg.model), read_shapes(folder / WEIGHTS)
    check_shapes(folder / WEIGHTS, found, model.state_dict())
    other = ARCHITECTURES[config.arch][2].from_pretrained(folder, dtype=torch.float32).eval()
    known = found.keys() | other.all_tied_weights_keys.keys() | other._keys_to_ignore_on_save
    lacking = sorted(other.state_dict().keys() - known)
    if lacking:
        raise ValueError(f"{folder / WEIGHTS}: expected {lacking[0]} and {len(lacking) - 1} others, which it lacks")
    model.load_state_dict({**model.state_dict(), **other.state_dict()})
    apart = difference(model.eval(), other)
    if not apart <= TOLERANCE:
        raise ValueError(f"{folder}: logits differ by {apart:g} from those of fairseq, expected {TOLERANCE} at most")
    from omegaconf import OmegaConf

    state = {
        "args": None, "cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True), "model": model.state_dict(),
        "criterion": None, "optimizer_history": [HISTORY], "task_state": {},
        "extra_state": {"seqstruct_versions": versions()},
        "last_optimizer_state": None,
    }
    with atomic_write(out, "wb") as stream:
        torch.save(state, stream)
    return config


def _begins(folder: Path) -> bool:
    """Whether texts of a language model begin with a symbol of their own, not with what ends the one before."""
    path = folder / "tokenizer_config.json"
    said = read_json(path) if path.is_file() else {}
    return bool(said.get("begin")) and said.get("bos_token") != said.get("eos_token")


def _configured(config: SeqstructConfig, data: Path, begins: bool) -> tuple[Any, Any]:
    """fairseq's configuration, and the task."""
    from fairseq import options, tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from omegaconf import open_dict

    register()
    inner = data / BINARISED if (data / BINARISED).is_dir() and not (data / "dict.txt").is_file() else data
    words = [str(inner), "--task", TASKS[config.arch], "--arch", config.arch]
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), words))
    with open_dict(cfg.model):
        for name, value in options_of(config).items():
            cfg.model[name] = value
    for name in ("max_source_positions", "max_target_positions", "tokens_per_sample"):
        if name in cfg.task and name in cfg.model:
            cfg.task[name] = cfg.model[name]
    if "add_bos_token" in cfg.task:
        cfg.task.add_bos_token = cfg.model.add_bos_token = begins
    return cfg, tasks.setup_task(cfg.task)


def _check_symbols(folder: Path, task: Any, config: SeqstructConfig) -> None:
    dictionaries = {"source": task.source_dictionary}
    if config.is_encoder_decoder:
        dictionaries["target"] = task.target_dictionary
    for side, dictionary in dictionaries.items():
        path = folder / SeqstructTokenizer.vocab_files_names[f"{side}_vocab"]
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file; expected the symbols of the model")
        with undamaged(path, UnicodeDecodeError):
            symbols = path.read_text(encoding="utf-8").split("\n")[:-1]
        if symbols != dictionary.symbols:
            raise ValueError(f"{path}: its {len(symbols)} symbols are not those of the data's {side} dictionary, "
                             f"which has {len(dictionary)}")
    labels = [config.id2label[index] for index in sorted(config.id2label)]
    unnamed = [f"LABEL_{index}" for index in range(len(labels))]  # as transformers calls them
    if config.arch.endswith("classifier") and labels not in (list(task.labels), unnamed):
        raise ValueError(f"{folder / CONFIGURATION}: its labels, {', '.join(labels)}, are not those of the data, "
                         f"{', '.join(task.labels)}")
