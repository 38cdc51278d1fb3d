"""Turns of a machine: one process at a time has it, and a killed one gives it back."""

from __future__ import annotations

import errno
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from mkldist.run import tasks
from mkldist.run.tasks import machine_lock_file

HOLDER = """
from mkldist.run.tasks import exclusive_machine_lock

with exclusive_machine_lock(lambda: print("waits", flush=True)) as is_alone:
    print("has it" if is_alone else "no locks", flush=True)
    input()
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    """Another process, which has the turn."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "has it\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("end", ["ends", "is killed"])
def test_a_process_waits_until_the_one_that_has_the_turn_ends(holder, end):
    waits, got = threading.Event(), list[bool]()

    def take() -> None:
        with tasks.exclusive_machine_lock(waits.set) as is_alone:
            got.append(is_alone)

    thread = threading.Thread(target=take)
    thread.start()
    assert waits.wait(60)
    assert got == []
    assert holder.poll() is None
    if end == "ends":
        holder.communicate("\n")
    else:
        holder.kill()
    thread.join(60)
    assert got == [True]


def test_a_turn_that_nobody_has_is_not_waited_for():
    for _ in range(2):
        with tasks.exclusive_machine_lock(lambda: pytest.fail("it waits")) as is_alone:
            assert is_alone
            with pytest.raises(Timeout), FileLock(machine_lock_file(), timeout=0.0):
                pass


def test_an_error_within_a_turn_comes_out_of_it():
    with (
        pytest.raises(OSError, match="of the task"),
        tasks.exclusive_machine_lock(lambda: None) as is_alone,
    ):
        raise OSError("of the task" if is_alone else "no locks")


def test_machines_that_share_a_cache_have_turns_of_their_own(monkeypatch):
    files = set()
    for number in range(2):
        monkeypatch.setattr(tasks, "machine_id", lambda n=number: f"machine{n}")
        files.add(machine_lock_file())
    assert len(files) == 2


def test_an_error_of_who_is_told_of_the_wait_comes_out(holder):
    """It may be an OSError, as that of a connection that is closed, and says nothing of locks."""

    def fail() -> None:
        raise ConnectionResetError("of the announcement")

    with (
        pytest.raises(ConnectionResetError, match="of the announcement"),
        tasks.exclusive_machine_lock(fail),
    ):
        pytest.fail("it has the turn")


@pytest.mark.parametrize("refusal", ["no locks", "no folder"])
def test_where_there_are_no_locks_a_task_goes_on_and_knows(cache, monkeypatch, refusal):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    if refusal == "no locks":
        monkeypatch.setattr(FileLock, "acquire", refuse)
    else:
        cache.write_text("a file")
    with tasks.exclusive_machine_lock(lambda: pytest.fail("it waits")) as is_alone:
        assert not is_alone
