"""Choice of local or remote blobs by the text of a place: a path or a URL."""

from __future__ import annotations

from pathlib import Path

from mkldist.gram.blobs import Blobs, readable
from mkldist.gram.local_blobs import LocalBlobs

LAPLACIANS = "laplacians"
"""Folder of graph Laplacians, beside the banks."""
SNAPSHOTS = "snapshots"
"""Folder of the data in an object store, beside the banks, or in the cache of a machine."""


def open_blobs(root: str | Path, folder: str) -> Blobs:
    """Return the blobs in a folder below a path or below a URL that fsspec understands.

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
    """Return the sorted names of the folders right below a path or URL, without hidden ones."""
    text = str(root).removeprefix("file://")
    if "://" in text:
        from mkldist.gram.remote_blobs import list_folders as list_remote

        names = list_remote(text)
    else:
        with readable(text):
            folder = Path(text)
            names = [p.name for p in folder.iterdir() if p.is_dir()] if folder.is_dir() else []
    return sorted(name for name in names if not name.startswith("."))
