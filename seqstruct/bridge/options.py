"""Options of fairseq's command line."""

from dataclasses import field
from typing import Any


def flag(default: Any, text: str) -> Any:
    """An option, a field of its dataclass, with its help."""
    return field(default=default, metadata={"help": text})


def spelled(option: str) -> str:
    """An option as the command line has it, by its field's name."""
    return f"--{option.replace('_', '-')}"
