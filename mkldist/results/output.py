"""The output folder of a sweep: its parts, its owner, and the process that writes to it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from mkldist.core.checked_json import json_value
from mkldist.core.durable import (
    is_alive,
    is_temporary,
    leads_to_nothing,
    machine_id,
    make_folder,
    remove_temporaries,
    write_json,
    writing,
)
from mkldist.errors import OutputError
from mkldist.results.journal import JOURNAL, Journal
from mkldist.results.manifest import MANIFEST, owner, write_manifest

LOCK, OWNER = ".lock", ".owner"


@dataclass(frozen=True)
class OutputFolder:
    """Paths of the parts of a sweep's output.

    Parameters
    ----------
    path : Path
        The folder itself.
    """

    path: Path

    @property
    def manifest(self) -> Path:
        """File that names the sweep that owns the folder."""
        return self.path / MANIFEST

    @property
    def records(self) -> Path:
        """File of records, see :mod:`mkldist.results.journal`."""
        return self.path / JOURNAL

    @property
    def snapshots(self) -> Path:
        """Folder of the data sets and splits that workers read."""
        return self.path / "snapshots"

    @property
    def data(self) -> Path:
        """Folder of the data sets that were given in Python."""
        return self.path / "data"

    @property
    def sweep_file(self) -> Path:
        """The sweep file of a sweep that was given in Python."""
        return self.path / "sweep.toml"

    @property
    def figures(self) -> Path:
        """Folder of pictures."""
        return self.path / "figures"


@dataclass(frozen=True)
class Claim:
    """Note of the process that claimed an output folder.

    Parameters
    ----------
    pid : int
        Id of the process.
    host : str
        Name of its machine, for people.
    machine : str
        Id of its machine or container, see :func:`mkldist.core.durable.machine_id`; empty if the
        note has none.
    """

    pid: int
    host: str
    machine: str = ""

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.host}"

    @property
    def is_live(self) -> bool | None:
        """True if the process lives, False if it has ended, None on another machine."""
        return is_alive(self.pid) if self.machine == machine_id() else None


def claim_on(path: Path) -> Claim | None:
    """Return the claim on an output folder, or None if there is none that can be read.

    A process that is killed leaves its claim.
    """
    with suppress(OSError, ValueError, KeyError, TypeError):
        note = json_value((path / OWNER).read_text())
        return Claim(int(note["pid"]), str(note["host"]), str(note.get("machine", "")))
    return None


@contextmanager
def claimed(
    path: Path, sweep_name: str, file: Path | None = None, spec: str = ""
) -> Iterator[OutputFolder]:
    """Claim the output folder of a sweep while the context lasts.

    The operating system holds the lock and releases it when the process ends, even by a kill.

    Parameters
    ----------
    path : Path
        The folder, made if it is missing.
    sweep_name : str
        Name of the sweep that owns the folder from now on.
    file : Path, optional
        Its file, which commands that are given the folder read.
    spec : str, optional
        Its whole specification as JSON, from which the results can be made anew.

    Raises
    ------
    mkldist.errors.OutputError
        If the folder belongs to another sweep, holds other files or cannot be written, or if
        another process writes to it now.  Nothing in the folder is changed then.
    """
    from filelock import FileLock, Timeout

    folder = OutputFolder(path)
    _check_owner(folder, sweep_name)
    with writing(path):
        _make(path)
        lock = FileLock(path / LOCK, timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            claim = claim_on(path)
            raise OutputError(
                str(path),
                f"another mkldist process{f' ({claim})' if claim else ''} that uses it",
                "one process per output folder",
                "Wait for it to end, or choose another folder with --output",
            ) from error
    try:
        with writing(path):
            _check_owner(folder, sweep_name)
            remove_temporaries(path)
            write_json(path / OWNER, asdict(Claim(os.getpid(), socket.gethostname(), machine_id())))
            write_manifest(path, sweep_name, file, spec)
        yield folder
    finally:
        with suppress(OSError):
            (path / OWNER).unlink()
        lock.release()


def _make(path: Path) -> None:
    """Make a folder and its parents, or raise OutputError."""
    try:
        make_folder(path)
    except FileNotFoundError as error:  # the answer of file systems such as /proc
        raise OutputError(
            str(path),
            "a folder that cannot be made",
            "a place where folders can be made",
            "Choose another with --output",
        ) from error


def _check_owner(folder: OutputFolder, sweep_name: str) -> None:
    """Refuse a folder that is neither empty nor owned by this sweep."""
    path = folder.path
    if leads_to_nothing(path):
        hint = "Remove the link or make its target, or choose another folder with --output"
        raise OutputError(str(path), "a symbolic link to nothing", "a folder", hint)
    if not path.exists():
        return
    if not path.is_dir():
        raise OutputError(str(path), "a file", "a folder", "Choose another one with --output")
    if not _is_of_a_sweep(folder):
        _refuse_others(path)
        return
    name = owner(path)
    if name not in (sweep_name, None):
        raise OutputError(
            str(path),
            f"the folder of sweep '{name}'",
            f"an empty folder or that of sweep '{sweep_name}'",
            "Choose another one with --output",
        )


def _is_of_a_sweep(folder: OutputFolder) -> bool:
    """Return True for a folder with a manifest, a damaged one included, or with records of runs."""
    with writing(folder.path):
        return os.path.lexists(folder.manifest) or bool(Journal(folder.records).states())


def _refuse_others(path: Path) -> None:
    """Refuse a folder that is not empty."""
    with writing(path):
        names = {entry.name for entry in path.iterdir()} - {LOCK, OWNER}
    others = sorted(name for name in names if not is_temporary(name))
    if others:
        raise OutputError(
            str(path),
            f"a folder that holds other files ({', '.join(others[:3])})",
            "an empty folder or that of the same sweep",
            "Choose another one with --output",
        )


def no_folder(path: Path) -> str:
    """Return the fault of a path that should be a folder."""
    if leads_to_nothing(path):
        return "a symbolic link to nothing"
    return "a file, not a folder" if path.is_file() else "no such folder"
