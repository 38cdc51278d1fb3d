"""Temporary folders of the workers of this machine, which survive a kill, and their removal.

Dask's workers have a folder for scratch files, and multiprocessing one for its sockets.  Both go at
the end of the process that starts the workers.  If it is killed, the next sweep removes them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mkldist.durable import remove_temporaries, temporary_folder, temporary_path, writing
from mkldist.errors import OutputError

SOCKETS = "pymp-*"
"""Names of the folders of multiprocessing, in the folder for temporary files."""
LONGEST_SOCKET = 103  # bytes that every system takes
SOCKET = "/pymp-12345678/listener-12345678"


@contextmanager
def scratch_of_workers() -> Iterator[None]:
    """Have Dask's workers of this machine use a folder that is removed at the end.

    Raises
    ------
    mkldist.errors.OutputError
        If no folder for temporary files can be written.
    """
    import dask

    folder = temporary_path(temporary_folder())
    with writing(folder.parent):
        folder.mkdir()
    try:
        with dask.config.set({"temporary-directory": str(folder)}):
            yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_sockets_fit() -> None:
    """Refuse a folder for temporary files whose path leaves no room for the name of a socket.

    Raises
    ------
    mkldist.errors.OutputError
        If the path is too long, or no folder for temporary files can be written.
    """
    folder, longest = temporary_folder(), LONGEST_SOCKET - len(SOCKET)
    length = len(os.fsencode(folder))
    if length > longest:
        raise OutputError(
            "TMPDIR",
            f"{folder}, a path of {length} bytes",
            f"at most {longest}, so that sockets of worker processes fit",
            "Set TMPDIR to a folder of a shorter path",
        )


def make_socket_folder() -> None:
    """Make multiprocessing's folder of sockets, unless it is there, to be removed at the end.

    Its own removal shows a traceback where the folder has vanished or become read-only.
    """
    from multiprocessing import process, util

    config = getattr(process.current_process(), "_config")  # noqa: B009, mypy knows no _config
    if config.get("tempdir") is None:
        folder = tempfile.mkdtemp(prefix=SOCKETS.rstrip("*"), dir=temporary_folder())
        config["tempdir"] = folder
        util.Finalize(
            None, shutil.rmtree, args=(folder,), kwargs={"ignore_errors": True}, exitpriority=-100
        )


def mark_sockets() -> None:
    """Note whose multiprocessing's folder of sockets is, unless that is noted there already."""
    from multiprocessing.util import get_temp_dir

    folder = Path(get_temp_dir())
    if not any(folder.glob(temporary_path(folder).name.rpartition(".")[0] + ".*")):
        temporary_path(folder).touch()


def remove_abandoned() -> int:
    """Remove the folders that killed processes left, and return their number.

    Raises
    ------
    mkldist.errors.OutputError
        If no folder for temporary files can be written.
    """
    folder = temporary_folder()
    removed = remove_temporaries(folder)
    for sockets in folder.glob(SOCKETS):
        if remove_temporaries(sockets):
            shutil.rmtree(sockets, ignore_errors=True)
            removed += 1
    return removed
