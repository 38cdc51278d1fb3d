"""Compilation shared by the processes of a machine: each function is compiled by one of them.

Machine code is kept on disk, so that a process which comes later loads it.  A process that meets a
function which another one is compiling calls it in Python meanwhile, and goes on to functions that
nobody compiles yet.  It does so on the few points of a specimen alone, where Python is fast enough.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mkldist.compiled import FIRST_CALL, CompiledFunction, types_of

LOCK_SECONDS = 300.0  # after which a process compiles for itself rather than wait for another
LOADING_SECONDS = 0.05  # that another process may take to load machine code
POLL_SECONDS = 0.005


@contextmanager
def compiling_together(folder: Path) -> Iterator[None]:
    """Share the compilation of functions that are called in the body for the first time.

    When the context ends, this process has machine code of all of them.  A context within another
    one of its thread is part of that.
    """
    if FIRST_CALL.get() is not None:
        yield
        return
    shared = _Shared(folder)
    token = FIRST_CALL.set(shared.form)
    try:
        yield
    finally:
        FIRST_CALL.reset(token)
        shared.finish()


class _Shared:
    """The functions that one process has met, and those of them that another one compiles."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        self._left: dict[CompiledFunction, tuple[Any, ...]] = {}  # with the types of arguments
        self._in_python = False  # within a function that another process compiles

    def form(self, function: CompiledFunction, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """Return the function compiled by this process, or in Python while another one compiles.

        Whoever compiles a function compiles what it calls, too, so that this is called in Python as
        well.
        """
        if self._in_python:
            return function.in_python
        types = types_of(arguments)
        with self._turn(function, 0.0 if function in self._left else LOADING_SECONDS) as is_ours:
            if is_ours:
                function.compile_for(types)
                self._left.pop(function, None)
                return function
        self._left[function] = types
        return functools.partial(self._called_in_python, function)

    def _called_in_python(self, function: CompiledFunction, *arguments: Any) -> Any:
        self._in_python = True
        try:
            return function.in_python(*arguments)
        finally:
            self._in_python = False

    def finish(self) -> None:
        """Wait for the functions that others compile, and load them; remove locks nobody holds."""
        from filelock import FileLock

        for function, types in self._left.items():
            with self._turn(function, LOCK_SECONDS):
                function.compile_for(types)
        for path in self._folder.glob("*.lock"):
            with suppress(OSError), FileLock(path, timeout=0.0):  # its Timeout is an OSError
                path.unlink()

    @contextmanager
    def _turn(self, function: CompiledFunction, seconds: float) -> Iterator[bool]:
        """Hold the lock of a function; yield False if another process keeps it for so long.

        Where there can be no lock, for instance on a file system without any, each process compiles
        for itself.
        """
        from filelock import FileLock, Timeout

        name = f"{function.__module__}.{function.__qualname__}.lock"
        lock, is_ours = FileLock(self._folder / name, timeout=seconds), True
        try:
            lock.acquire(poll_interval=POLL_SECONDS)
        except Timeout:
            is_ours = False
        except (OSError, NotImplementedError):
            pass
        try:
            yield is_ours
        finally:
            lock.release()
