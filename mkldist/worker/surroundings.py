"""What a worker finds where it runs: its machine, what it shares with others, and its cache."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkldist.gram.cache import default_directory
from mkldist.memory import available_memory
from mkldist.processors import n_processors
from mkldist.worker.shared_place import SharedPlace

MOUNTS = Path("/proc/self/mounts")
NETWORK = ("nfs", "lustre", "cifs", "smb", "beegfs", "gpfs", "ceph", "glusterfs", "afs", "9p")
"""Beginnings of the types of file systems that lie on other machines."""
MEMORY_LIMITS = ("target", "spill", "pause", "terminate")


@dataclass(frozen=True)
class Surroundings:
    """What one worker finds.

    Parameters
    ----------
    host : str
        Name of its machine.
    processors : int
        Processors that it may use.
    memory : int
        Bytes that processes of its machine can get.
    cache : str
        Folder of the node cache.
    cache_bytes : int
        Bytes that are free there; -1 if it cannot be written.
    cache_is_remote : bool
        True if it lies on a file system of other machines.
    limits : tuple of str
        Limits on memory by which Dask would spill, pause or end this worker.
    wrong : mapping of str to str
        What is wrong with each shared place, by its root; empty if nothing is.
    """

    host: str
    processors: int
    memory: int
    cache: str
    cache_bytes: int
    cache_is_remote: bool
    limits: tuple[str, ...]
    wrong: Mapping[str, str]


def look_around(places: tuple[SharedPlace, ...], dask_worker: Any) -> Surroundings:
    """Return the surroundings of this worker, and answer the questions in shared places.

    Parameters
    ----------
    places : tuple of SharedPlace
        The places, in which the coordinator has put its questions.
    dask_worker : distributed.Worker
        This worker, as ``Client.run`` passes it.
    """
    folder = default_directory()
    there = next(one for one in (folder, *folder.parents) if one.exists())
    free = shutil.disk_usage(there).free if os.access(there, os.W_OK) else -1
    who = answer_name(dask_worker.address)
    return Surroundings(
        host=socket.gethostname(),
        processors=n_processors(),
        memory=available_memory(),
        cache=str(folder),
        cache_bytes=free,
        cache_is_remote=file_system(there).startswith(NETWORK),
        limits=_limits(dask_worker),
        wrong={place.root: place.answer(who) for place in places},
    )


def answer_name(address: str) -> str:
    """Return the name under which a worker answers.

    Examples
    --------
    >>> answer_name("tcp://10.0.0.1:4000")
    'tcp-10.0.0.1-4000'
    """
    return "-".join(part for part in address.replace("/", ":").split(":") if part)


def file_system(path: Path, mounts: Path = MOUNTS) -> str:
    """Return the type of the file system of a path, such as ``"ext4"``; ``""`` if it is unknown.

    Parameters
    ----------
    path : Path
        An existing file or folder.
    mounts : Path
        Table of what is mounted, in the format of Linux.
    """
    real = path.resolve()
    try:
        lines = [line.split() for line in mounts.read_text().splitlines()]
    except OSError:
        return ""
    above = {Path(line[1]): line[2] for line in lines if len(line) > 2}
    found = [(len(mount.parts), kind) for mount, kind in above.items() if _below(real, mount)]
    return max(found, default=(0, ""))[1]


def _below(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def _limits(dask_worker: Any) -> tuple[str, ...]:
    """Return the limits on memory that Dask would keep this worker to."""
    import dask

    if not dask_worker.memory_manager.memory_limit:
        return ()
    return tuple(n for n in MEMORY_LIMITS if dask.config.get(f"distributed.worker.memory.{n}"))
