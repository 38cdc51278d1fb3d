"""Files that are whole or absent, even if their writer is killed or the power fails.

Every writer of the package takes the same four steps: it writes under a temporary name, flushes
the file to the device, renames it, and flushes the folder that holds the new name.  A temporary
name contains the process that writes there, so :func:`remove_temporaries` recognises the files that
killed processes left behind.  This module also words the errors of media that refuse a write.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from itertools import count
from pathlib import Path

from mkldist.errors import OutputError

Buffer = bytes | memoryview

ABANDONED_AFTER_SECONDS = 3600.0
_PREFIX = ".mkldist-partial-"
# Some network file systems cannot flush folders, and a folder may be writable but not readable.
_NO_FLUSH_OF_FOLDERS = (errno.EINVAL, errno.ENOTSUP, errno.EACCES)
_REFUSALS = {
    errno.ENOSPC: ("no space left on the device", "Free some space"),
    errno.EDQUOT: ("a disk quota that is used up", "Free some space"),
    errno.EFBIG: ("a file larger than its file system allows", "Allow larger files"),
    errno.EROFS: ("a read-only file system", "Make it writable"),
    errno.EACCES: ("no permission to write", "Change its permissions"),
    errno.EPERM: ("no permission to write", "Change its permissions"),
    errno.ENOENT: ("a folder that is gone or takes no files", "Make it anew"),
    errno.ENOTDIR: ("a file as a part of the path", "Move that file away"),
    errno.EEXIST: ("a file where a folder is needed", "Move that file away"),
    errno.ENOLCK: ("a file system without locks", "Mount it with locks"),
    errno.EBADMSG: ("a damaged lock file", "Remove .in-use and .removing there"),
    errno.EISDIR: ("a folder where a file is needed", "Move that folder away"),
    errno.ENOTEMPTY: ("a folder that is not empty", "Move that folder away"),
    errno.ELOOP: ("a symbolic link that leads to no file", "Remove that link"),
    errno.ENAMETOOLONG: ("a name longer than its file system allows", "Shorten it"),
    errno.EIO: ("a device that fails (Input/output error)", "Repair it"),
    errno.ESTALE: ("a network file system that has lost it", "Mount that anew"),
    errno.ETIMEDOUT: ("a file system that does not answer", "Wait until it answers"),
}
_EXPECTED = {
    errno.EBADMSG: "a lock file",
    errno.EISDIR: "a file",
    errno.ELOOP: "a file",
    errno.ENAMETOOLONG: "a shorter name",
}
_LINK_TO_NOTHING = ("a symbolic link to nothing", "Remove that link")
# Of these errors of a rename, the new name is the culprit and not the old one.
_AT_NEW_NAME = (errno.EISDIR, errno.ENOTEMPTY, errno.ENOTDIR, errno.EEXIST)


@contextmanager
def replacing(target: Path, *, through: Path | None = None, durable: bool = True) -> Iterator[Path]:
    """Yield a temporary path; what the block writes there becomes `target` when the block ends.

    Readers see the old file or the whole new one.  If the block raises, `target` stays as it was
    and nothing is left.  The temporary file is in the folder of `target`, or in `through` on the
    same file system.  Unless `durable`, a power cut may lose the file.
    """
    make_folder(target.parent, durable=durable)
    temporary = temporary_path(through or target.parent)
    make_folder(temporary.parent, durable=durable)
    try:
        yield temporary
        if durable:
            _flush(temporary)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        flush_folder(target.parent)


def write_file(
    target: Path, parts: Iterable[Buffer], *, through: Path | None = None, durable: bool = True
) -> None:
    """Write the concatenated `parts` to `target` at once; see :func:`replacing`."""
    with replacing(target, through=through, durable=durable) as temporary:
        _write(temporary, parts)


def make_folder(path: Path, *, durable: bool = True) -> None:
    """Make a folder and its parents, and flush the entry of each new one to the device."""
    if path.is_dir():
        return
    make_folder(path.parent, durable=durable)
    path.mkdir(exist_ok=True)
    if durable:
        flush_folder(path.parent)


def flush_folder(path: Path) -> None:
    """Flush the names in a folder to the device if the system can do that."""
    try:
        _flush(path)
    except OSError as error:
        if error.errno not in _NO_FLUSH_OF_FOLDERS:
            raise


def temporary_path(folder: Path) -> Path:
    """Return a new name in `folder` for a file or folder that is being made or discarded."""
    return folder / f"{_PREFIX}{machine_id()}.{os.getpid()}.{uuid.uuid4().hex}"


def temporary_folder() -> Path:
    """Return the folder for temporary files: the first that can be written of those of Python."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise OutputError(
            "TMPDIR",
            f"no folder for temporary files that can be written ({error.strerror})",
            "a folder that can be written, with some space",
            "Set TMPDIR to one",
        ) from error


def is_temporary(name: str) -> bool:
    """Return True if a file or folder of this name was made by :func:`temporary_path`."""
    return name.startswith(_PREFIX)


def remove_temporaries(folder: Path) -> int:
    """Remove the temporary entries of killed processes from a folder, and return their number.

    An entry of this machine goes once its process has ended.  An entry of another machine, whose
    processes cannot be asked, goes after an hour without a change.
    """
    removed, names = 0, list[str]()
    with suppress(OSError):
        names = os.listdir(folder)  # noqa: PTH208, tens of thousands of them
    for path in (folder / name for name in names if is_temporary(name)):
        with suppress(OSError, ValueError):
            if _is_abandoned(path):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
                removed += 1
    return removed


def leads_to_nothing(path: Path) -> bool:
    """Return True for a symbolic link whose target is not there, or that leads to itself."""
    return path.is_symlink() and not os.path.exists(path)  # noqa: PTH110, False for loops


def discard(path: Path) -> Path | None:
    """Remove a file or link; move a folder away, which may hold what nobody can make again.

    Returns the new place of a folder, beside the old one with a name that ends in ``.moved``.
    """
    if path.is_dir() and not path.is_symlink():
        return move_away(path)
    path.unlink(missing_ok=True)
    return None


def move_away(path: Path) -> Path:
    """Give a file, link or folder a free name beside its own, and return that."""
    names = (f"{path.name}.moved{number or ''}" for number in count())
    free = next(path.with_name(n) for n in names if not os.path.lexists(path.with_name(n)))
    return path.rename(free)


def is_alive(pid: int) -> bool:
    """Return True if a process of this machine has the given id and has not ended.

    Where nobody waits for killed processes, as in a container, their ids stay; they have ended.
    """
    import psutil

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:  # it belongs to another user
        return True


def output_error(where: str, error: OSError) -> OutputError:
    """Return the error that tells a user why a write failed and what to do."""
    code = error.errno if error.errno is not None else 0
    found, remedy = _REFUSALS.get(
        code, (f"a write that failed: {error.strerror or error}", "Repair it")
    )
    if code == errno.EEXIST and leads_to_nothing(Path(where)):
        found, remedy = _LINK_TO_NOTHING
    return OutputError(
        where,
        found,
        _EXPECTED.get(code, "a writable folder with enough space"),
        f"{remedy} or choose another folder, then repeat the command: finished work is kept",
    )


MAGIC = b"\x93MKL\xf2\x00\r\n"
"""The first bytes of files with arrays, such as models."""


def check_free(
    target: Path, *, overwrite: bool, inputs: Iterable[Path] = (), is_model: bool = False
) -> None:
    """Refuse to write over a folder, over a file that a user did not give away, or over inputs.

    A model alone may replace a model, and replaces no other file.  What killed processes left
    beside the target goes.
    """
    remove_temporaries(target.parent)
    check_apart(target, inputs)
    if target.is_dir():
        raise OutputError(str(target), "a folder", "the name of a new file")
    if os.path.lexists(target) and not overwrite:
        hint = "Choose another name, or replace the file by --overwrite"
        raise OutputError(str(target), "a file of that name", "a new file", hint)
    if target.is_file() and (start := _start(target)) and (start == MAGIC) != is_model:
        found, expected = ("no model", "a model") if is_model else ("a model", "another file")
        raise OutputError(str(target), found, f"{expected} to replace", "Choose another name")


def _start(path: Path) -> bytes:
    """Return as many first bytes of a file as :data:`MAGIC` has."""
    with path.open("rb") as stream:
        return stream.read(len(MAGIC))


def check_apart(target: Path, inputs: Iterable[Path]) -> None:
    """Refuse a target that is one of the inputs, by whatever path or link, or stands in one."""
    for path in filter(Path.exists, inputs):
        same = target.exists() and target.samefile(path)
        if same or path.resolve() in target.resolve().parents:
            found = f"a file that this command reads ({path})"
            raise OutputError(str(target), found, "another file", "Choose another name")


def refused_write(error: BaseException) -> OutputError | None:
    """Return the OutputError that an error is, or that it was raised from; None if neither.

    Errors that were merely being handled when this one was raised do not count.
    """
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, OutputError):
        seen = seen.__cause__
    return seen


@contextmanager
def writing(where: Path | str) -> Iterator[None]:
    """Turn the error of a full, failing or forbidden file system into an OutputError.

    The context is for writes alone: a read may be forbidden too, and would be called a write.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        raise output_error(str(_place(error, where)), error) from error


def _place(error: OSError, where: Path | str) -> Path:
    """Return the place that an error names, else `where`; never a temporary name."""
    at_new_name = error.errno in _AT_NEW_NAME and error.filename2
    name = Path((error.filename2 if at_new_name else error.filename) or where)
    return name.parent if is_temporary(name.name) else name


def _write(path: Path, parts: Iterable[Buffer]) -> None:
    with path.open("xb") as file:
        for part in parts:
            file.write(part)


def _flush(path: Path) -> None:
    """Flush a file or folder to the device."""
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_abandoned(path: Path) -> bool:
    """Return True if no process can be writing to a temporary path any more."""
    machine, pid, _ = path.name.removeprefix(_PREFIX).split(".")
    if machine == machine_id():
        return not is_alive(int(pid))
    return time.time() - path.stat().st_mtime > ABANDONED_AFTER_SECONDS


@cache
def machine_id() -> str:
    """Return a name of the machine, or container, whose processes see each other's ids.

    Host names do not tell containers apart that share one, nor machines that are all called
    ``localhost``.  The boot id and the namespace of process ids do, where the system has them.
    """
    boot = Path("/proc/sys/kernel/random/boot_id")
    try:
        seen = f"{boot.read_text()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        seen = socket.gethostname()
    return blake2b(seen.encode(), digest_size=6).hexdigest()
