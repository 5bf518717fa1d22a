"""What all drawings share: how they are written, and words in them."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seqstruct.bridge.quiet import quiet
from seqstruct.data.files import atomic_write

FORMATS = (".png", ".pdf", ".svg")


def one_panel(x: str, y: str) -> tuple[Figure, Axes]:
    """A figure of one drawing, with what its axes are called and a grid."""
    figure = Figure(figsize=(6.4, 4.0))
    axes = figure.subplots()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    return figure, axes


def plain(text: str) -> str:
    """Text of the data for a drawing, where what stands between two dollars would be a formula."""
    return text.replace("$", "\\$")


def check_name(path: str | Path) -> None:
    """Raise ValueError if the ending is not .png, .pdf or .svg, or no file can have the name."""
    if Path(path).suffix.lower() not in FORMATS:
        raise ValueError(f"{path}: expected a name that ends in {', '.join(FORMATS)}")
    if Path(path).is_dir():
        raise ValueError(f"{path}: is a folder")
    above = next(parent for parent in Path(path).absolute().parents if parent.exists())
    if not above.is_dir():
        raise ValueError(f"{path}: {above} is no folder")


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure under its name when it is whole.  Raises ValueError as `check_name`."""
    check_name(path)
    path = Path(path)
    with quiet(), atomic_write(path, "wb") as stream:
        figure.savefig(stream, format=path.suffix[1:].lower(), dpi=150, bbox_inches="tight")
