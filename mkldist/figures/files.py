"""Pictures as files: whole or not there, and drawn again only if they would show something else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.durable import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What carries the content id inside a file of each kind.
CARRIERS = {".png": "Source", ".svg": "Identifier"}
DOTS_PER_INCH = 220


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
    figure = draw()
    for path in paths:
        _write(path, figure, content)
    return True


def _shows(path: Path, content: str) -> bool:
    try:
        return content.encode() in path.read_bytes()
    except FileNotFoundError:
        return False


def _write(path: Path, figure: Figure, content: str) -> None:
    import matplotlib as mpl

    metadata: dict[str, str | None] = {CARRIERS[path.suffix]: content}
    if path.suffix == ".svg":
        metadata["Date"] = None
    with replacing(path) as temporary, mpl.rc_context({"svg.hashsalt": content}):
        figure.savefig(temporary, format=path.suffix[1:], dpi=DOTS_PER_INCH, metadata=metadata)
