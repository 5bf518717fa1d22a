"""How a fairseq command ends that failed: one sentence, exit status 1, and nothing useless left behind.

The traceback goes to the log (of --log-file, or of hydra); where there is none, that of an unknown error goes to a file
of its own, which the sentence names.  SEQSTRUCT_TRACEBACK=1 shows tracebacks on the terminal, and so does an error in
code that is neither fairseq's nor installed: somebody is writing it.  Scripts end as Python has it.
"""

from __future__ import annotations

import dis
import logging
import os
import sys
import sysconfig
import tempfile
import traceback
from pathlib import Path
from types import TracebackType

import fairseq
import torch
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

import seqstruct
from seqstruct.bridge.explanations import explain, frames_of

PACKAGE = str(Path(seqstruct.__file__).parent)
COMMANDS = str(Path(fairseq.__file__).parent.parent / "fairseq_cli")
FAIRSEQ = (str(Path(fairseq.__file__).parent), COMMANDS)
LIBRARIES = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
LIBRARIES += [*FAIRSEQ, PACKAGE, str(Path(torch.__file__).parents[1])]
LONGEST = 400  # letters of a sentence
made: list[Path] = []  # folders that the search for a place to save made, the outermost first


def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    remove_empty_folders()
    told = None if os.environ.get("SEQSTRUCT_TRACEBACK") else sentence(error)
    if told is None:
        sys.__excepthook__(kind, error, trace)
        return
    log = _write_to_logs(kind, error, trace)
    if not (is_mistake(error) or _is_meant(error)):
        place = log or _write_to_file(kind, error, trace)
        told += f" (the traceback is in {place}; SEQSTRUCT_TRACEBACK=1 shows it)"
    print(f"seqstruct: {told}", file=sys.stderr)


def sentence(error: BaseException) -> str | None:
    """One line for an error of a fairseq command; None for scripts of users, and for code being written."""
    frames = frames_of(error)
    inside = next((i for i, frame in enumerate(frames) if frame.path.startswith(COMMANDS)), None)
    if inside is None:
        return None
    own = own_error(error)
    if own is not None:
        return _line(own)
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    paths = [frame.path for frame in frames[inside:]]
    if any(os.path.isabs(path) and not path.startswith(tuple(LIBRARIES)) for path in paths):  # of code being written
        return None
    return explain(error) or _line(error)


def _is_meant(error: BaseException) -> bool:
    """Whether an error says by itself what the user may change: one of the system, or of a `raise` in fairseq.

    Its compiled code, whose assertions are such too, has file names from its root.
    """
    if isinstance(error, (OSError, OmegaConfBaseException, HydraException, KeyboardInterrupt)):
        return True
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not last.tb_frame.f_code.co_filename.startswith((*FAIRSEQ, "fairseq/")):
        return False
    if last.tb_frame.f_code.co_filename.endswith(".pyx"):
        return isinstance(error, AssertionError) and bool(str(error))
    return last.tb_frame.f_code.co_code[last.tb_lasti] == dis.opmap["RAISE_VARARGS"] and bool(str(error))


def own_error(error: BaseException | None) -> BaseException | None:
    """The ValueError or OSError of this package among an exception and those it was raised from, if any.

    What an exception was raised during counts where fairseq raised it, as its trainer does without naming the cause;
    anywhere else it may be handled, and the exception a bug of its own.
    """
    while error is not None:
        frames = frames_of(error)
        path = frames[-1].path if frames else ""
        if isinstance(error, (ValueError, OSError)) and path.startswith(PACKAGE):
            return error
        error = error.__cause__ or (error.__context__ if path.startswith(FAIRSEQ) else None)
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
    telling = (ValueError, OSError, AssertionError, HydraException)
    tells = isinstance(error, telling) or kind in (Exception, RuntimeError)
    return text if tells and text else f"{kind.__name__}: {text}".removesuffix(": ")


def is_mistake(error: BaseException) -> bool:
    """Whether an error is one of what was given, not of the code."""
    return own_error(error) is not None or explain(error) is not None


def remove_empty_folders() -> None:
    """Take away the folders made for checkpoints that hold nothing."""
    while made:
        try:
            made.pop().rmdir()
        except OSError:
            made.clear()


def _write_to_logs(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> str | None:
    """Add the traceback to every log file of this process; the path of the first comes back."""
    loggers = [logging.getLogger(), *(x for x in logging.root.manager.loggerDict.values() if hasattr(x, "handlers"))]
    handlers = [
        handler for logger in loggers for handler in logger.handlers
        if isinstance(handler, logging.FileHandler) and handler.baseFilename != os.devnull
    ]
    record = logging.LogRecord("seqstruct", logging.ERROR, __file__, 0, "the command failed", (), (kind, error, trace))
    for handler in handlers:
        handler.handle(record)
    return handlers[0].baseFilename if handlers else None


def _write_to_file(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> str:
    handle, path = tempfile.mkstemp(prefix="fairseq-traceback-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        traceback.print_exception(kind, error, trace, file=stream)
    return path
