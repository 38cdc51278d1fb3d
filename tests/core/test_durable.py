"""Files that are whole or absent: order of the steps, kills at every writer, refusals."""

import errno
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mkldist.core import durable
from mkldist.core.durable import (
    check_free,
    discard,
    flush_folder,
    is_alive,
    is_temporary,
    machine_id,
    make_folder,
    output_error,
    refused_write,
    remove_temporaries,
    temporary_path,
    write_file,
    writing,
)
from mkldist.errors import OutputError
from tests import durable_writers

ROOT = Path(__file__).parents[2]


def temporaries(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if is_temporary(path.name)]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the flushes and renames in their order."""
    seen: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def flush(descriptor: int) -> None:
        fsync(descriptor)
        status = os.fstat(descriptor)
        folder = stat.S_ISDIR(status.st_mode)
        seen.append("flush folder" if folder else f"flush file of {status.st_size} bytes")

    def rename(source: Path, target: Path) -> Path:
        seen.append("rename")
        return replace(source, target)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(Path, "replace", rename)
    return seen


def test_a_file_is_flushed_renamed_and_its_folder_flushed(tmp_path, steps):
    write_file(tmp_path / "a", [b"12", memoryview(b"345")])
    assert (tmp_path / "a").read_bytes() == b"12345"
    assert steps == ["flush file of 5 bytes", "rename", "flush folder"]


def test_without_durability_nothing_is_flushed(tmp_path, steps):
    write_file(tmp_path / "new" / "a", [b"1"], through=tmp_path / "other", durable=False)
    assert steps == ["rename"]


def test_every_new_folder_is_flushed_into_its_parent(tmp_path, steps):
    make_folder(tmp_path / "a" / "b" / "c")
    make_folder(tmp_path / "a" / "b" / "c")
    assert steps == ["flush folder"] * 3


def test_a_block_that_raises_leaves_the_old_file_alone(tmp_path):
    target = tmp_path / "a"
    write_file(target, [b"old"])

    def parts() -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_file(target, parts())
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_medium_that_refuses_leaves_the_old_file_alone(tmp_path, monkeypatch, step):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    target = tmp_path / "a"
    write_file(target, [b"old"])
    monkeypatch.setattr(os if step == "fsync" else Path, step, refuse)
    with pytest.raises(OSError, match="No space"):
        write_file(target, [b"new"])
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


@pytest.mark.parametrize(
    ("code", "raises"), [(errno.EINVAL, False), (errno.EACCES, False), (errno.EIO, True)]
)
def test_only_file_systems_that_cannot_flush_folders_are_excused(
    tmp_path, monkeypatch, code, raises
):
    def refuse(descriptor: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", refuse)
    if raises:
        with pytest.raises(OSError, match="Input/output"):
            flush_folder(tmp_path)
    else:
        flush_folder(tmp_path)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder below which every writer was killed at its first rename."""
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, durable_writers.__file__, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", durable_writers.WRITERS)
def test_what_a_killed_writer_left_is_gone_after_the_next_opening(killed, name):
    assert temporaries(killed / name)
    durable_writers.WRITERS[name](killed / name)
    assert temporaries(killed / name) == []


def left_by(folder: Path, machine: str, pid: int) -> Path:
    return folder / f"{durable._PREFIX}{machine}.{pid}.0"


def test_temporaries_of_other_machines_stay_for_an_hour_and_those_of_living_processes(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    dead = left_by(tmp_path, machine_id(), child.pid)
    mine, init = temporary_path(tmp_path), left_by(tmp_path, machine_id(), 1)
    elsewhere = left_by(tmp_path, "another", child.pid)
    foreign, folder = tmp_path / ".partial", temporary_path(tmp_path)
    for path in (dead, mine, init, elsewhere, foreign):
        path.write_bytes(b"half")
    (folder / "below").mkdir(parents=True)
    check_free(tmp_path / "new", overwrite=False)
    assert set(tmp_path.iterdir()) == {mine, init, elsewhere, foreign, folder}
    # The time of a folder does not change with what is written below it.
    long_ago = time.time() - durable.ABANDONED_AFTER_SECONDS - 60
    for path in tmp_path.iterdir():
        os.utime(path, (long_ago, long_ago))
    assert remove_temporaries(tmp_path) == 1
    assert set(tmp_path.iterdir()) == {mine, init, foreign, folder}
    assert remove_temporaries(tmp_path / "missing") == 0


def test_a_process_is_alive_until_it_ends():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert is_alive(child.pid)
    child.communicate(b"\n")
    assert not is_alive(child.pid)
    assert is_alive(1)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no states of processes here")
def test_a_killed_process_that_nobody_waits_for_has_ended():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        os.kill(child.pid, 0)  # its id is still there
        assert not is_alive(child.pid)


@pytest.mark.parametrize(
    ("code", "found", "remedy"),
    [
        (errno.ENOSPC, "no space left", "Free some space"),
        (errno.EDQUOT, "quota", "Free some space"),
        (errno.EFBIG, "larger than its file system allows", "Allow larger files"),
        (errno.EROFS, "read-only", "Make it writable"),
        (errno.EACCES, "no permission to write", "Change its permissions"),
        (errno.ENOTDIR, "a file as a part of the path", "Move that file away"),
        (errno.ENOLCK, "without locks", "Mount it with locks"),
        (errno.EIO, "Input/output error", "Repair it"),
        (errno.EISDIR, "a folder where a file is needed", "Move that folder away"),
        (errno.ENOTEMPTY, "a folder that is not empty", "Move that folder away"),
        (errno.ELOOP, "a symbolic link that leads to no file", "Remove that link"),
        (errno.ENAMETOOLONG, "a name longer than", "Shorten it"),
        (errno.ESTALE, "a network file system that has lost it", "Mount that anew"),
        (errno.ETIMEDOUT, "a file system that does not answer", "Wait until it answers"),
    ],
)
def test_a_refusal_says_what_to_do(code, found, remedy):
    error = output_error("/data/x", OSError(code, os.strerror(code)))
    assert str(error).startswith("/data/x: ")
    assert found in error.found
    assert error.hint.startswith(f"{remedy} or choose another folder")


def test_a_write_that_is_refused_says_what_to_do():
    with pytest.raises(OutputError, match="elsewhere: found no space"), writing("elsewhere"):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OutputError, match="/data/x: found no space"), writing("elsewhere"):
        raise OSError(errno.ENOSPC, "No space left on device", "/data/x")
    with pytest.raises(OSError, match="call") as passed, writing("elsewhere"):
        raise OSError(errno.EINTR, "Interrupted system call")
    assert not isinstance(passed.value, OutputError)


def test_a_device_that_fails_at_a_flush_is_a_refused_write(tmp_path, monkeypatch):
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with (
        pytest.raises(OutputError, match=f"{tmp_path}: found a device that fails"),
        writing(tmp_path),
    ):
        write_file(tmp_path / "a", [b"1"])


def test_what_stands_in_the_place_of_a_file_or_folder_is_named(tmp_path):
    folder, link, loop = (tmp_path / name for name in ("folder", "link", "loop"))
    (folder / "below").mkdir(parents=True)
    link.symlink_to(tmp_path / "nothing")
    loop.symlink_to(loop)
    with pytest.raises(OutputError, match=f"{folder}: .*; expected a file"), writing(tmp_path):
        write_file(folder, [b"1"])
    for path in (link, loop):
        found = f"{path}: found a symbolic link to nothing"
        with pytest.raises(OutputError, match=found), writing(tmp_path):
            make_folder(path / "below")
    with pytest.raises(OutputError, match="link that leads to no file"), writing(tmp_path):
        loop.read_bytes()


def test_a_file_or_link_is_removed_and_a_folder_is_moved_away(tmp_path):
    file, link, folder = (tmp_path / name for name in ("file", "link", "folder"))
    file.write_text("1")
    link.symlink_to(link)
    for _ in range(2):
        folder.mkdir()
        (folder / "thesis.tex").write_text("years of work")
        for path in (file, link, folder, tmp_path / "missing"):
            discard(path)
    kept = ["folder.moved", "folder.moved1"]
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    assert all((tmp_path / name / "thesis.tex").exists() for name in kept)


def test_a_folder_that_takes_no_files_is_named_and_not_the_file_that_was_to_be_renamed(tmp_path):
    gone = temporary_path(tmp_path / "gone")
    with (
        pytest.raises(OutputError, match=f"{gone.parent}: found a folder that is gone or takes"),
        writing("elsewhere"),
    ):
        gone.open("xb")


def test_only_what_was_raised_at_a_write_counts_as_a_refused_one():
    refused = OutputError("/data/x", "no space left")
    wrapped = RuntimeError("task failed")
    wrapped.__cause__ = refused
    assert refused_write(refused) is refused_write(wrapped) is refused
    assert refused_write(PermissionError(errno.EACCES, "a read", "/data/x")) is None


def test_an_error_met_while_another_was_handled_is_no_refused_write():
    defect = ValueError("a defect")
    defect.__context__ = OutputError("/data/x", "no space left")  # as Python sets it
    assert refused_write(defect) is None
