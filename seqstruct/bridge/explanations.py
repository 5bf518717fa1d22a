"""What some of fairseq's errors mean: everyday mistakes, told in terms of what the user gave."""

from __future__ import annotations

import ast
import json
import re
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fairseq.optim.lr_scheduler import FairseqLRScheduler
from fairseq.trainer import Trainer
from omegaconf.errors import OmegaConfBaseException

from seqstruct.bridge.options import spelled

BATCHES = {"train_step", "valid_step", "inference_step"}


class Frame(NamedTuple):
    """One call of a traceback, the outermost first: file, function, and its variables."""

    path: str
    function: str
    variables: Mapping[str, Any]

    def within(self, ending: str, *functions: str) -> bool:
        """Whether the file ends so, and the function is one of these (any, if none is named)."""
        return self.path.endswith(ending) and (not functions or self.function in functions)


def frames_of(error: BaseException) -> list[Frame]:
    return [
        Frame(frame.f_code.co_filename, frame.f_code.co_name, frame.f_locals)
        for frame, _ in traceback.walk_tb(error.__traceback__)
    ]


def explain(error: BaseException) -> str | None:
    """A sentence for an error that is known to be a mistake in what was given; None for any other."""
    frames = frames_of(error)
    if not frames:
        return None
    return next(filter(None, (explanation(error, frames) for explanation in EXPLANATIONS)), None)


def _no_such_config(error: BaseException, frames: list[Frame]) -> str | None:
    """fairseq takes a --config-name that no file has for its own defaults, in which something is missing."""
    trains = any(isinstance(frame.variables.get("trainer"), Trainer) for frame in frames)
    args = next((f.variables["args"] for f in frames if f.within("hydra/_internal/utils.py", "_run_hydra")), None)
    if trains or args is None or args.config_name in (None, "config") or args.config_path is not None:
        return None
    name = f"{args.config_name.removesuffix('.yaml')}.yaml"
    if args.config_dir is None:
        return f"--config-name {args.config_name} needs the folder of {name}, --config-dir"
    folder = Path(args.config_dir).absolute()
    return None if (folder / name).is_file() else f"--config-name {args.config_name}: no {name} in {folder}"


def _no_batch_size(error: BaseException, frames: list[Frame]) -> str | None:
    if "Must specify batch size" in str(error):
        return "give the size of batches: --batch-size SENTENCES or --max-tokens TOKENS"
    return None


def _no_architecture(error: BaseException, frames: list[Frame]) -> str | None:
    if not frames[-1].within("fairseq/options.py", "parse_args_and_arch"):
        return None
    if isinstance(error, KeyError):
        return "give --task, such as --task translation or --task language_modeling"
    return "give --arch, the model; `seqstruct list` names those of this package" if not str(error) else None


def _no_such_part(error: BaseException, frames: list[Frame]) -> str | None:
    """An optimizer, schedule and so on by a name of hydra's, which nothing checks."""
    if not isinstance(error, KeyError) or not frames[-1].within("fairseq/registry.py", "build_x"):
        return None
    found = frames[-1].variables
    return f"no {found['registry_name']} is called {found['choice']}; there are: {', '.join(sorted(found['REGISTRY']))}"


def _no_such_option(error: BaseException, frames: list[Frame]) -> str | None:
    """What a schedule or an optimizer needs and was not given, or cannot be given here."""
    found = re.match(r"Error merging override \w+\.(\w+)=null", str(error))
    if found:
        return f"give {spelled(found[1])}"
    if frames[-1].within("tri_stage_lr_scheduler.py", "__init__") and not str(error):
        return "--phase-ratio needs --max-update, of which it gives the parts"
    if isinstance(error, OmegaConfBaseException) and any(f.within("fairseq/optim/composite.py") for f in frames):
        return ("--optimizer composite needs the optimizer of each group, in a file of fairseq-hydra-train: "
                f"{str(error).splitlines()[0]}")
    return None


def _no_split(error: BaseException, frames: list[Frame]) -> str | None:
    found = re.fullmatch(r"(?:\[.*\] )?Dataset not found: (\S+) \((.*)\)", str(error))
    if not found:
        return None
    folder = Path(found[2]) if Path(found[2]).is_dir() else Path(found[2]).parent
    splits = sorted({path.name.split(".")[0] for path in folder.glob("*.idx")})
    return f"{folder} has no {found[1]!r} for these languages and this task; it has {', '.join(splits) or 'no data'}"


def _damaged_data(error: BaseException, frames: list[Frame]) -> str | None:
    for frame in reversed(frames):
        if frame.within("fairseq/data/indexed_dataset.py"):
            path = frame.variables.get("path") or getattr(frame.variables.get("self"), "_path", None)
            if path is not None and not isinstance(error, OSError):
                reason = str(error).split(". ")[0]
                return f"{path}: not a whole file of fairseq-preprocess ({reason})"
    return None


def _beyond_the_table(error: BaseException, frames: list[Frame]) -> str | None:
    if "index out of range in self" not in str(error) or not frames[-1].within("torch/nn/functional.py", "embedding"):
        return None
    rows, index = len(frames[-1].variables["weight"]), int(frames[-1].variables["input"].max())
    if any(type(frame.variables.get("self")).__name__ == "LearnedPositionalEmbedding" for frame in frames):
        return f"a sequence reaches position {index}, the model's table has {rows} (--max-source-positions and so on)"
    config = _configuration(frames)
    folder = f"{config.task.data}: " if config is not None and "data" in config.task else ""
    return (f"{folder}a token has the index {index}, the table of the model {rows} rows: data and dictionary do not "
            "belong together")


def _no_such_task_option(error: BaseException, frames: list[Frame]) -> str | None:
    found = re.match(r"Interpolation key 'task\.(\w+)' not found", str(error))
    args = next((f.variables["args"] for f in frames if f.function == "convert_namespace_to_omegaconf"), None)
    if not found or not hasattr(args, "arch"):
        return None
    return f"--arch {args.arch} needs a task with {found[1]}, such as language_modeling; --task {args.task} has none"


def _no_such_metric(error: BaseException, frames: list[Frame]) -> str | None:
    if not (isinstance(error, KeyError) and frames[-1].within("fairseq_cli/train.py", "validate", "get_valid_stats")):
        return None
    known = ", ".join(sorted(map(str, frames[-1].variables.get("stats", ()))))
    return f"--best-checkpoint-metric {error.args[0]}: validation has {known}"


def _no_language_model(error: BaseException, frames: list[Frame]) -> str | None:
    if "eval_lm_dataloader" not in str(error):
        return None
    return f"fairseq-eval-lm evaluates language models, which --task {_configuration(frames).task._name} does not have"


def _not_a_literal(error: BaseException, frames: list[Frame]) -> str | None:
    if isinstance(error, json.JSONDecodeError):
        return f"an option takes JSON, such as '{{\"beam\": 4}}', not {error.doc!r}: {error.msg}"
    if any(frame.within("ast.py", "literal_eval") for frame in frames):
        text = next(f.variables["node_or_string"] for f in frames if f.within("ast.py", "literal_eval"))
        # what is parsed already holds no literal somewhere, and the error names but an object
        got = f"{text!r}: {error.args[0]}" if isinstance(text, str) else repr(ast.unparse(text))
        return f"an option takes a Python dictionary, such as \"{{'dropout': 0.0}}\", not {got}"
    # validate and eval-lm evaluate it as code, and validate takes what comes out for a dictionary before it loads
    last = frames[-1]
    taken = (isinstance(error, (TypeError, ValueError)) and last.within("fairseq_cli/validate.py", "main")
             and "override_args" in last.variables and "models" not in last.variables)
    evaluated = "<string>" in (last.path, getattr(error, "filename", None))
    if (taken or evaluated) and (config := _configuration(frames)):
        return (f"an option takes a Python dictionary, such as \"{{'dropout': 0.0}}\", not "
                f"{config.common_eval.model_overrides!r}: {error.args[0]}")
    return None


def _no_processes(error: BaseException, frames: list[Frame]) -> str | None:
    if "Default process group has not been initialized" not in str(error):
        return None
    return ("--distributed-world-size asks for several processes and none was started, there being no SLURM: start "
            "them by torchrun, or give --distributed-init-method and --distributed-rank to each")


def _half_without_a_gpu(error: BaseException, frames: list[Frame]) -> str | None:
    asks = any(frame.within("fairseq/optim/fp16_optimizer.py", "build_fp32_params") for frame in frames)
    if not asks or not frames[-1].within("torch/cuda/__init__.py"):
        return None
    return ("--fp16 needs a GPU unless --fp16-no-flatten-grads is given; --memory-efficient-fp16 and --bf16 train "
            "without one")


def _in_place(error: BaseException, frames: list[Frame]) -> str | None:
    """Log-probabilities of adaptive softmax have no gradient."""
    config = _configuration(frames)
    changed = "has been modified by an inplace operation" in str(error)
    if not changed or config is None or config.model.get("adaptive_softmax_cutoff") is None:
        return None
    return f"--adaptive-softmax-cutoff trains with --criterion adaptive_loss, not with {config.criterion._name}"


def _unused_parameters(error: BaseException, frames: list[Frame]) -> str | None:
    if "Expected to have finished reduction in the prior iteration" not in str(error):
        return None
    return "some parameters of the model have no part in the loss: give --find-unused-parameters"


def _other_optimizer(error: BaseException, frames: list[Frame]) -> str | None:
    """A checkpoint's optimizer of other parameters: torch counts them as it loads, their sizes meet in a step."""
    if re.match("loaded state dict (contains a parameter group|has a different number)", str(error)):
        loads = (frame for frame in frames if frame.within("fairseq/trainer.py", "load_checkpoint"))
        path = next((frame.variables["filename"] for frame in loads), None)
    elif "must match the size" in str(error) and any(frame.function == "optimizer_step" for frame in frames):
        path = _resumed(frames)
    else:
        return None
    if path is None:
        return None
    return (f"{path} was trained with other parameters, so its optimizer does not fit: give --reset-optimizer, or "
            f"--finetune-from-model {path} and another --save-dir")


def _resumed(frames: list[Frame]) -> str | None:
    """The checkpoint that a run goes on from, until its first update is done."""
    config = _configuration(frames)
    trainer = next((frame.variables["trainer"] for frame in frames if "trainer" in frame.variables), None)
    history = getattr(trainer, "_optim_history", None)
    if config is None or not history or trainer.get_num_updates() != history[-1].get("num_updates"):
        return None
    path = config.checkpoint.restore_file
    return f"{config.checkpoint.save_dir}/{path}" if path == "checkpoint_last.pt" else path


def _other_schedule(error: BaseException, frames: list[Frame]) -> str | None:
    """A checkpoint's state of another schedule lacks what this one keeps."""
    config = _configuration(frames)
    loads = next((frame for frame in frames if frame.within("fairseq/trainer.py", "load_checkpoint")), None)
    reads = frames[-1].function == "load_state_dict" and isinstance(frames[-1].variables["self"], FairseqLRScheduler)
    if not isinstance(error, KeyError) or not reads or config is None or loads is None:
        return None
    return (f"{loads.variables['filename']} was trained with another schedule than --lr-scheduler "
            f"{config.lr_scheduler._name}: give that one, or --reset-lr-scheduler")


def _together(error: BaseException, frames: list[Frame]) -> str | None:
    """Parts that do not fit, found when they are built or meet their first batch."""
    if not isinstance(error, (AttributeError, KeyError, TypeError)) or isinstance(error, AssertionError):
        return None
    config = _configuration(frames)
    builds_model = any(frame.function == "build_model" for frame in frames)
    builds_criterion = any(frame.function == "build_criterion" for frame in frames)
    if config is None or not (builds_model or builds_criterion or _first_batch(frames)):
        return None
    flags = {"task": "task", "model": "arch"} | ({} if builds_model else {"criterion": "criterion"})
    parts = [f"--{flag} {config[part]._name}" for part, flag in flags.items() if (config.get(part) or {}).get("_name")]
    sample = next((f.variables["sample"] for f in frames if isinstance(f.variables.get("sample"), dict)), {})
    given = f"; batches have {', '.join(sample['net_input'])}" if isinstance(sample.get("net_input"), dict) else ""
    return f"{', '.join(parts)} do not go together: {type(error).__name__}: {error}{given}"


def _first_batch(frames: list[Frame]) -> bool:
    """Whether a batch was worked on and none before it."""
    if not any(frame.function in BATCHES for frame in frames):
        return False
    trainers = [frame.variables["trainer"] for frame in frames if "trainer" in frame.variables]
    return not trainers or trainers[0].get_num_updates() == 0


def _configuration(frames: list[Frame]) -> Any:
    """fairseq's configuration, of the first call that has it."""
    return next((f.variables["cfg"] for f in frames if "fairseq_cli" in f.path and "cfg" in f.variables), None)


EXPLANATIONS: tuple[Callable[[BaseException, list[Frame]], str | None], ...] = (
    _no_such_config, _no_batch_size, _no_architecture, _no_such_part, _no_such_option, _no_split, _damaged_data,
    _beyond_the_table, _no_such_metric, _no_language_model, _not_a_literal, _no_such_task_option, _no_processes,
    _half_without_a_gpu, _in_place, _unused_parameters, _other_optimizer, _other_schedule, _together,
)
