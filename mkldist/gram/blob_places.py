"""Places of blobs: a folder or a URL, told apart by what is written."""

from __future__ import annotations

from pathlib import Path

from mkldist.gram.blobs import Blobs, readable
from mkldist.gram.local_blobs import LocalBlobs

LAPLACIANS = "laplacians"
"""Folder beside the banks, of graph Laplacians."""


def open_blobs(root: str | Path, folder: str) -> Blobs:
    """Return the files below `folder` of a path or of a URL that fsspec understands.

    Examples
    --------
    >>> open_blobs("memory://banks", "7f").location
    'memory://banks/7f'
    """
    text = str(root).removeprefix("file://")
    if "://" in text:
        from mkldist.gram.remote_blobs import RemoteBlobs

        return RemoteBlobs(text, folder)
    return LocalBlobs(Path(text), folder)


def list_folders(root: str | Path) -> list[str]:
    """Return the names of the folders right below a path or URL, sorted, hidden ones left out."""
    text = str(root).removeprefix("file://")
    if "://" in text:
        from mkldist.gram.remote_blobs import list_folders as list_remote

        names = list_remote(text)
    else:
        with readable(text):
            folder = Path(text)
            names = [p.name for p in folder.iterdir() if p.is_dir()] if folder.is_dir() else []
    return sorted(name for name in names if not name.startswith("."))
