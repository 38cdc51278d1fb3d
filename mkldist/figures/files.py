"""Pictures as files: whole or not there, and drawn again only if they would show something else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What carries the content id inside a file of each kind.
CARRIERS = {".png": "Source", ".svg": "Identifier"}
DOTS_PER_INCH = 220
_WRITING = ".writing-"


def keep_figure(folder: Path, name: str, content: str, draw: Callable[[], Figure]) -> bool:
    """Draw a picture and write it as ``NAME.png`` and ``NAME.svg``, unless both are there.

    Parameters
    ----------
    folder : Path
        Where to; made when needed.
    name : str
        What to call the files.
    content : str
        Content id of what the picture shows; files carry it.
    draw : callable
        Returns the picture.

    Returns
    -------
    bool
        Whether it was drawn.
    """
    paths = [folder / f"{name}{suffix}" for suffix in CARRIERS]
    if all(_shows(path, content) for path in paths):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    figure = draw()
    for path in paths:
        _write(path, figure, content)
    return True


def remove_unfinished(folder: Path) -> None:
    """Delete what a killed process was writing; nobody else may write there now."""
    for path in folder.glob(f"{_WRITING}*"):
        path.unlink(missing_ok=True)


def _shows(path: Path, content: str) -> bool:
    try:
        return content.encode() in path.read_bytes()
    except FileNotFoundError:
        return False


def _write(path: Path, figure: Figure, content: str) -> None:
    """Write a file under a temporary name, make it durable, then give it its name."""
    import matplotlib as mpl

    metadata: dict[str, str | None] = {CARRIERS[path.suffix]: content}
    if path.suffix == ".svg":
        metadata["Date"] = None
    temporary = path.with_name(f"{_WRITING}{path.name}")
    try:
        with temporary.open("wb") as file:
            with mpl.rc_context({"svg.hashsalt": content}):
                figure.savefig(file, format=path.suffix[1:], dpi=DOTS_PER_INCH, metadata=metadata)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
