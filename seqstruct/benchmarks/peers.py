"""Others' packages that are timed beside ours: their versions, and how to get those that are not there."""

from __future__ import annotations

import importlib.util
from importlib import import_module, metadata
from typing import Any, NamedTuple

EXTRA = 'pip install "seqstruct[bench]"'


class Peer(NamedTuple):
    """What is imported of a package, its name on PyPI, and how to get it."""

    module: str
    distribution: str
    source: str = EXTRA


PEERS = {
    "torch-struct": Peer("torch_struct", "torch-struct"),
    "supar": Peer("supar.structs", "supar"),
    "transformers": Peer("transformers.models.qwen3_next.modeling_qwen3_next", "transformers"),
    "fairseq": Peer("fairseq", "fairseq-fixed"),
    "JoeyNMT": Peer("joeynmt.model", "joeynmt", "pip install --target FOLDER importlib-metadata, then with --no-deps "
                    "joeynmt==2.3.0 too, then --peer FOLDER"),
    "flash-linear-attention": Peer("fla.ops", "flash-linear-attention", "pip install flash-linear-attention"),
}


def peer(name: str) -> Any:
    """The module of one of `PEERS`; None where it is not installed, or does not load."""
    try:
        if name != "transformers":
            return import_module(PEERS[name].module)
        from seqstruct.hf.exchanged.audio import without_broken_audio

        with without_broken_audio():
            return import_module(PEERS[name].module)
    except (ImportError, OSError):
        return None


def version(name: str, module: Any) -> str:
    """Of a distribution; where that is not known, the folder of the module that serves."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"of {next(iter(getattr(module, '__path__', ())), None) or getattr(module, '__file__', 'no file')}"


def told(name: str) -> str:
    """One line: which version a peer has, or why it is left out and how to get it."""
    module = peer(name)
    if module is None and importlib.util.find_spec(PEERS[name].module.partition(".")[0]):
        return f"without {name}, which is installed but does not load"
    if module is None:
        return f"without {name}, which is not installed: {PEERS[name].source}"
    return f"beside {name} {version(PEERS[name].distribution, module)}"
