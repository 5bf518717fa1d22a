"""Versions of what numbers may depend on; records and checkpoints hold them."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import seqstruct

PACKAGES = ("torch", "fairseq-fixed", "hydra-core", "omegaconf", "numpy")


def versions() -> dict[str, str]:
    """Of Python, this package and those it stands on; one that pip did not install is left out."""
    found = {"python": platform.python_version(), "seqstruct": seqstruct.__version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
