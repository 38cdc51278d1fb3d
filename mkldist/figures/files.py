"""Picture files, drawn again only if their content would differ."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from mkldist.durable import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Metadata field of each kind of file that holds the content id.
CARRIERS = {".png": "Source", ".svg": "Identifier"}
DOTS_PER_INCH = 220


def keep_figure(folder: Path, name: str, content: str, draw: Callable[[], Figure]) -> bool:
    """Draw a picture and write it as ``NAME.png`` and ``NAME.svg``, unless both exist.

    Parameters
    ----------
    folder : Path
        Folder of the files, made if it is missing.
    name : str
        Name of the files.
    content : str
        Content id of the picture, which is written into the files.
    draw : callable
        Function that returns the picture.

    Returns
    -------
    bool
        True if the picture was drawn.
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
