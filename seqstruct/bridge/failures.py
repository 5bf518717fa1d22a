"""How a fairseq command ends that failed: one sentence, exit status 1, and nothing useless left behind.

The traceback goes to the log (of --log-file, or of hydra); where there is none, that of an unknown error goes to a file
of its own, which the sentence names.  SEQSTRUCT_TRACEBACK=1 shows tracebacks on the terminal, and so does an error in
code that is neither fairseq's nor installed: somebody is writing it.
"""

from __future__ import annotations

import dis
import functools
import logging
import os
import sys
import sysconfig
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import fairseq
import torch
from fairseq import checkpoint_utils
from fairseq.trainer import Trainer
from hydra.core.utils import JobReturn, JobStatus
from omegaconf.errors import OmegaConfBaseException

import seqstruct
from seqstruct.bridge.explanations import explain, frames_of

PACKAGE = str(Path(seqstruct.__file__).parent)
COMMANDS = str(Path(fairseq.__file__).parent.parent / "fairseq_cli")
FAIRSEQ = (str(Path(fairseq.__file__).parent), COMMANDS)
LIBRARIES = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
LIBRARIES += [*FAIRSEQ, PACKAGE, str(Path(torch.__file__).parents[1])]
LONGEST = 400  # letters of a sentence

_made: list[Path] = []  # folders that the search for a place to save made, the outermost first


def install() -> None:
    """Make the fairseq commands of this process end so; a second call changes nothing."""
    if sys.excepthook is report:
        return
    sys.excepthook = report
    checkpoint_utils.verify_checkpoint_directory = _remembering(checkpoint_utils.verify_checkpoint_directory)
    Trainer.save_checkpoint = _sparing(Trainer.save_checkpoint)
    # hydra prints a traceback by itself unless it is told to hand errors on
    os.environ["HYDRA_FULL_ERROR"] = "1"
    JobReturn.return_value = property(_plainly(JobReturn.return_value.fget), JobReturn.return_value.fset)


def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """The exception hook."""
    remove_empty_folders()
    told = None if os.environ.get("SEQSTRUCT_TRACEBACK") else sentence(error)
    if told is None:
        sys.__excepthook__(kind, error, trace)
        return
    log = _write_to_logs(kind, error, trace)
    if not (own_error(error) or explain(error) or _is_meant(error)):
        place = log or _write_to_file(kind, error, trace)
        told += f" (the traceback is in {place}; SEQSTRUCT_TRACEBACK=1 shows it)"
    print(f"seqstruct: {told}", file=sys.stderr)


def sentence(error: BaseException) -> str | None:
    """One line for an error of this package, or of a fairseq command; None for others, and for code being written."""
    own = own_error(error)
    if own is not None:
        return _line(own)
    frames = frames_of(error)
    inside = next((i for i, frame in enumerate(frames) if frame.path.startswith(COMMANDS)), None)
    if inside is None:
        return None
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if any(_is_being_written(frame.path) for frame in frames[inside:]):
        return None
    return explain(error) or _line(error)


def _is_meant(error: BaseException) -> bool:
    """Whether an error says by itself what the user may change: one of the system, or of a `raise` in fairseq."""
    if isinstance(error, (OSError, OmegaConfBaseException, KeyboardInterrupt)):
        return True
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not last.tb_frame.f_code.co_filename.startswith(FAIRSEQ):
        return False
    return last.tb_frame.f_code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"] and bool(str(error))


def _is_being_written(path: str) -> bool:
    return os.path.isabs(path) and not path.startswith(tuple(LIBRARIES))


def own_error(error: BaseException | None) -> BaseException | None:
    """The ValueError or OSError of this package among an exception and those it was raised from, if any."""
    while error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        if isinstance(error, (ValueError, OSError)) and frames and frames[-1].filename.startswith(PACKAGE):
            return error
        error = error.__cause__ or error.__context__
    return None


def _line(error: BaseException) -> str:
    """What an exception says, in one line; of one that was carried over from another process the last line."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    text, kind = str(error).strip(), type(error)
    if isinstance(error, OmegaConfBaseException):
        return text.splitlines()[0]
    if "Traceback (most recent call last)" in text:
        return text.splitlines()[-1]
    text = " ".join(text.split("\n\n")[0].split())
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
    tells = isinstance(error, (ValueError, OSError, AssertionError)) or kind in (Exception, RuntimeError)
    return text if tells and text else f"{kind.__name__}: {text}".removesuffix(": ")


def remove_empty_folders() -> None:
    """Take away the folders made for checkpoints that hold nothing."""
    while _made:
        try:
            _made.pop().rmdir()
        except OSError:
            _made.clear()


def _write_to_logs(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> str | None:
    """Add the traceback to every log file of this process; the path of the first comes back."""
    loggers = [logging.getLogger(), *(x for x in logging.root.manager.loggerDict.values() if hasattr(x, "handlers"))]
    handlers = [
        handler for logger in loggers for handler in logger.handlers
        if isinstance(handler, logging.FileHandler) and handler.baseFilename != os.devnull
    ]  # fmt: skip
    record = logging.LogRecord("seqstruct", logging.ERROR, __file__, 0, "the command failed", (), (kind, error, trace))
    for handler in handlers:
        handler.handle(record)
    return handlers[0].baseFilename if handlers else None


def _write_to_file(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> str:
    handle, path = tempfile.mkstemp(prefix="fairseq-traceback-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        traceback.print_exception(kind, error, trace, file=stream)
    return path


def _remembering(verify: Callable) -> Callable:
    @functools.wraps(verify)
    def verify_checkpoint_directory(save_dir: str) -> None:
        path = Path(save_dir).absolute()
        _made.extend(reversed([folder for folder in (path, *path.parents) if not folder.exists()]))
        try:
            verify(save_dir)
        except OSError as error:
            raise OSError(error.errno, error.strerror, save_dir) from error

    return verify_checkpoint_directory


def _sparing(save: Callable) -> Callable:
    """No crash.pt for a mistake, nor before the first update: it would hold nothing that is not elsewhere."""

    @functools.wraps(save)
    def save_checkpoint(self: Trainer, filename: str, extra_state: Any) -> Any:
        error = sys.exc_info()[1]
        if Path(filename).name == "crash.pt" and error is not None:
            restored = self._optim_history[-1].get("num_updates") if self._optim_history else 0
            if self.get_num_updates() in (0, restored) or own_error(error) is not None or explain(error) is not None:
                return None
        return save(self, filename, extra_state)

    return save_checkpoint


def _plainly(result: Callable) -> Callable:
    """What a job of hydra returned, or the error that it ended with, without the overrides that upstream prints."""

    def return_value(self: JobReturn) -> Any:
        if self.status == JobStatus.FAILED:
            raise self._return_value
        return result(self)

    return return_value
