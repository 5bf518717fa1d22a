"""fairseq's commands run inside the test's process: the plugin is imported, so only the command's own work is paid."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import logging
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser

import seqstruct.models
import seqstruct.tasks  # registers tasks and criterions, as --user-dir does in a fresh process

PLUGIN = str(Path(seqstruct.__file__).parent)
EVERYWHERE = ("--user-dir", PLUGIN, "--cpu", "--num-workers", 0)  # options given later stand in their place


def fairseq(command: str, *options: object) -> str:
    """Run `fairseq-COMMAND OPTIONS` with the plugin on the CPU and return what it printed and logged.

    Data are read without workers, unless the options say otherwise: where a command ends and its process does not, each
    is waited for, five seconds long, when garbage is next collected.
    """
    if command == "hydra-train":
        options = (*options, f"common.user_dir={PLUGIN}", "common.cpu=true", "dataset.num_workers=0")
    elif command != "preprocess":
        options = (*EVERYWHERE, *options)
    module = importlib.import_module(f"fairseq_cli.{command.replace('-', '_')}")
    _forget_earlier_runs()
    printed = io.StringIO()
    handler = logging.StreamHandler(printed)
    logging.getLogger().addHandler(handler)
    level = logging.getLogger().level
    logging.getLogger().setLevel(logging.INFO)
    own, before = logging.getLogger(module.__name__), list(logging.getLogger(module.__name__).handlers)
    try:
        with mock.patch.object(sys, "argv", [f"fairseq-{command}", *map(str, options)]):
            with contextlib.redirect_stdout(printed), _once_for_all():
                module.cli_main()
    finally:
        logging.getLogger().removeHandler(handler)
        logging.getLogger().setLevel(level)
        for left in [handler for handler in own.handlers if handler not in before]:  # of a file beside the data
            own.removeHandler(left)
            left.close()
    return printed.getvalue()


def fairseq_apart(command: str, *options: object) -> str:
    """The same in a process of its own, for data that workers read: they end with it."""
    words = [sys.executable, "-m", f"fairseq_cli.{command}", *map(str, (*EVERYWHERE, *options))]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def sizes(*sides: str, dim: int = 8, inner: int = 8, heads: int = 1, layers: int = 1) -> list[object]:
    """Options of a small transformer, of both sides unless one is named."""
    values = {"embed-dim": dim, "ffn-embed-dim": inner, "attention-heads": heads, "layers": layers}
    return [word for side in sides or ("encoder", "decoder") for name, value in values.items()
            for word in (f"--{side}-{name}", value)]


def nearly_equal(one: Sequence[object], other: Sequence[object]) -> bool:
    """Whether two lists of hypotheses agree but for one, or one in twenty: sums are rounded otherwise in batches of
    another size, and hypotheses that tie then change places."""
    return len(one) == len(other) and sum(a != b for a, b in zip(one, other, strict=True)) <= max(1, len(one) // 20)


_parse = OverridesParser.parse_rule
_parsed = functools.cache(lambda rule, name: _parse(OverridesParser.create(), rule, name))


@contextlib.contextmanager
def _once_for_all() -> Iterator[None]:
    """Hydra parses fairseq's 270 defaults and copies all that is registered for each command: a third of its time."""
    with (mock.patch.object(OverridesParser, "parse_rule", lambda self, *rule: _parsed(*rule)),
          mock.patch.object(ConfigStore, "__deepcopy__", lambda self, memo: self, create=True)):
        yield


def _forget_earlier_runs() -> None:
    """fairseq keeps the best scores of a process in functions' attributes; each command here is a run of its own."""
    from fairseq import checkpoint_utils
    from fairseq_cli.train import should_stop_early

    vars(checkpoint_utils.save_checkpoint).pop("best", None)
    vars(should_stop_early).clear()


def binarize(text: Path, out: Path, *options: object, only: str | None = None) -> Path:
    """fairseq-preprocess of the splits that are there: of both languages with a joined dictionary, or of the files with
    one ending alone."""
    languages = ["-s", "de", "-t", "en", "--joined-dictionary"] if only is None else ["--only-source"]
    splits = [split for split in ("train", "valid", "test") if any(text.glob(f"{split}*"))]
    texts = [word for split in splits for word in (f"--{split}pref", text / f"{split}{only or ''}")]
    fairseq("preprocess", *languages, *texts, "--destdir", out, "--workers", 1, *options)
    return out
