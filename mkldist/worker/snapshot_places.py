"""Where a worker finds the snapshot of its data: in a shared folder, or fetched to its machine.

A snapshot is fetched once for a machine, by one process, and held to its checksums.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mkldist.data.snapshot import HEADER, damaged_files
from mkldist.durable import write_file, writing
from mkldist.errors import StoreError
from mkldist.gram.blob_places import SNAPSHOTS, open_blobs
from mkldist.gram.node_folders import NodeFolders
from mkldist.worker.post import FETCHED, Post

FETCHED_DATA = NodeFolders(SNAPSHOTS)
"""Snapshots that the workers of one machine have fetched."""


def fetched_snapshot(name: str, banks: str, post: str) -> Path:
    """Return the folder of a snapshot on this machine, fetched as far as it is missing or damaged.

    Parameters
    ----------
    name : str
        Its name, a hash of its content.
    banks : str
        URL of the store that holds it beside the banks; otherwise the coordinator publishes it.
    post : str
        Name of the post to the coordinator, which is told the bytes.

    Raises
    ------
    mkldist.errors.StoreError
        If it is nowhere, or arrives damaged.
    mkldist.errors.OutputError
        If the cache of this machine cannot be written.
    """
    with FETCHED_DATA.alone(name) as folder:
        if not damaged_files(folder):
            return folder
        way = Post(post)
        try:
            n_bytes = _fetch(folder, _from_store(banks, name) or _from_coordinator(way, name))
            way.send({FETCHED: n_bytes})
            _check_arrived(folder, banks if "://" in banks else "the scheduler")
        finally:
            way.close()
        FETCHED_DATA.make_room(0, keep=name)
        return folder


def _fetch(folder: Path, file: Callable[[str], bytes]) -> int:
    """Fetch the files that are missing or damaged; return their bytes."""
    n_bytes = 0
    for _ in (HEADER, "the files that it names"):
        for path in damaged_files(folder):
            content = file(path.name)
            with writing(path):
                write_file(path, [content], durable=False)  # a checksum tells damage
            n_bytes += len(content)
    return n_bytes


def _check_arrived(folder: Path, origin: str) -> None:
    """Raise unless all files of a snapshot are sound after they were fetched."""
    left = damaged_files(folder)
    if left:
        raise StoreError(
            f"{origin}: snapshot {folder.name}",
            f"{left[0].name}, which arrives damaged",
            "the file that the sweep put there",
            "Repeat the sweep's command, which puts it there anew",
        )


def _from_store(banks: str, name: str) -> Callable[[str], bytes] | None:
    """Return the reader of a snapshot's files in an object store; None without one."""
    if "://" not in banks:
        return None
    blobs = open_blobs(banks, f"{SNAPSHOTS}/{name}")

    def read(file: str) -> bytes:
        content = blobs.get(file)
        if content is None:
            raise StoreError(f"{blobs.location}/{file}", "no such file", "a file of the snapshot")
        return content

    return read


def _from_coordinator(post: Post, name: str) -> Callable[[str], bytes]:
    """Return the reader of a snapshot's files that the coordinator publishes."""
    return lambda file: post.file(published_name(post.name, name, file))


def published_name(post: str, snapshot: str, file: str) -> str:
    """Return the name by which the scheduler knows a file of a snapshot."""
    return f"{post}/{snapshot}/{file}"
