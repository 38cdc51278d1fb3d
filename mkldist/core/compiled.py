"""Decorator of compiled functions: numba's, with machine code kept on disk.

Numba takes longer to import than all else that most commands need, so it is imported when a first
compiled function is called.  With ``NUMBA_DISABLE_JIT=1``, numba's switch for debuggers and
coverage, Python runs all functions, which is slow.

Compiling takes a second, and a small system is solved in much less by Python.  Functions of such
systems say `python_first`: each process calls them in Python until that has taken a tenth of a
second.

Compiled functions are written in loops over scalars, and write to arrays that they are given.  Each
array expression, sort, matrix product, allocation or message inside one costs 0.1 to 4 seconds of
compiling, a loop about a tenth of a second; numpy does the rest before or after the call.  A power
costs 0.2 seconds, a product nothing.

Numba does not check the machine code that it loads.  Each file of it has its checksum beside it, so
that one which a power cut or a bad disk altered is removed and made again.  Numba makes a file anew
if the module of its function has changed.  The file also holds the code of callees, whose modules
numba does not look at: a compiled function calls those of its own module alone.
"""

from __future__ import annotations

import functools
import gc
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast, overload

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])
FEW_ENTRIES = 1000  # a call whose arrays have more entries together is compiled at once
SECONDS_IN_PYTHON = 0.1  # after so many in calls in Python, a function is compiled
LOCK_SECONDS = 60.0  # after which a process compiles beside another one that holds the lock
_MAKING = threading.RLock()
_DISPATCHERS: list[Any] = []  # those that this process has made


@overload
def compiled(function: Function) -> Function: ...


@overload
def compiled(
    *, fastmath: bool | set[str] = ..., python_first: bool = ..., inner: bool = ...
) -> Callable[[Function], Function]: ...


def compiled(
    function: Function | None = None,
    *,
    fastmath: bool | set[str] = False,
    python_first: bool = False,
    inner: bool = False,
) -> Function | Callable[[Function], Function]:
    """Compile a function on its first call; keep its machine code on disk, and release the GIL.

    Parameters
    ----------
    function : callable, optional
        The function; omitted where the decorator has arguments.
    fastmath : bool or set of str
        Changes of rounding that the compiler may make, by LLVM's names; True for all.
    python_first : bool
        True for a function of small systems, whose calls on few entries Python does at first, with
        results that are equal to the bit.  It multiplies rather than takes powers, which numba and
        Python round each in its own way, and calls no function with changes of rounding.
    inner : bool
        True for a function that compiled functions alone call.  Without `fastmath` it is written
        into its callers, whose changes of rounding it takes over, which saves time of compiling.
    """
    if function is None:
        return functools.partial(
            compiled, fastmath=fastmath, python_first=python_first, inner=inner
        )
    return cast("Function", CompiledFunction(function, fastmath, python_first, inner))


class CompiledFunction:
    """A function that numba compiles when Python, or another compiled function, first calls it.

    Attributes of numba's dispatcher, such as ``signatures`` and ``py_func``, are found here too.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        fastmath: bool | set[str],
        python_first: bool = False,
        inner: bool = False,
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        inlined = inner and not fastmath
        self._options = {"fastmath": fastmath} | ({"inline": "always"} if inlined else {})
        self._python_first, self._seconds_in_python = python_first, 0.0
        self._dispatcher: Any = None
        self._form: Callable[..., Any] | None = None  # what is called after the first call

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return (self._form or self._first_form(arguments))(*arguments)

    def _first_form(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """Return what the first call calls: machine code, compiled or loaded, or Python."""
        with _preparing():  # of which the first one imports numba
            disabled = jit_is_disabled()
        if disabled:
            self._form = self._in_python
            return self._form
        few = sum(getattr(one, "size", 0) for one in arguments) <= FEW_ENTRIES
        if few and self._python_first and self._seconds_in_python < SECONDS_IN_PYTHON:
            return self._in_python_for_a_while
        types = tuple(map(_type_of, arguments))
        with _preparing(), without_garbage_collection(), _compiling_alone(self.dispatcher):
            try:
                self.dispatcher.compile(types)
            except Exception:  # its file, or that of a function that it calls, does not load
                for dispatcher in _DISPATCHERS:
                    _remove_files(dispatcher)
                self.dispatcher.compile(types)
            _keep_checksums(self.dispatcher)
        self._form = self.dispatcher
        return cast("Callable[..., Any]", self.dispatcher)

    def _in_python(self, *arguments: Any) -> Any:
        """Call the function in Python, as quiet about floats as machine code is.

        Scalars of numpy, which it may return, become those of Python, which machine code returns.
        """
        with np.errstate(all="ignore"):
            found = self._function(*arguments)
        return tuple(map(_plain, found)) if isinstance(found, tuple) else _plain(found)

    def _in_python_for_a_while(self, *arguments: Any) -> Any:
        """Call the function in Python, and charge its seconds."""
        begun = time.perf_counter()
        with _preparing():
            found = self._in_python(*arguments)
        self._seconds_in_python += time.perf_counter() - begun
        return found

    @property
    def dispatcher(self) -> Any:
        """Numba's object of the function, the same for all threads."""
        with _MAKING:
            if self._dispatcher is None:
                _tell_numba()
                import numba

                options: dict[str, Any] = {"cache": True, "nogil": True, **self._options}
                self._dispatcher = numba.njit(**options)(self._function)
                _remove_damaged(self._dispatcher)
                _DISPATCHERS.append(self._dispatcher)
            return self._dispatcher

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # protocols that others ask for must not import numba
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.dispatcher, name)


def _files(dispatcher: Any, ending: str) -> Iterator[Path]:
    """Yield numba's files of a function: those of machine code end in nbc, its index in nbi."""
    function = dispatcher.py_func
    name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}-*.{ending}"
    yield from Path(dispatcher.stats.cache_path).glob(re.sub("[<>]", "", name))


def _checksums(dispatcher: Any) -> Iterator[tuple[Path, Path, str, str]]:
    """Yield files of machine code, those of their checksums, what these say, and what is right."""
    for path in _files(dispatcher, "nbc"):
        with suppress(FileNotFoundError):  # another process has removed it
            kept, found = path.with_suffix(".crc32"), f"{zlib.crc32(path.read_bytes()):08x}"
            said = kept.read_text(errors="replace") if kept.exists() else ""
            yield path, kept, said, found


def _remove_damaged(dispatcher: Any) -> None:
    """Remove files of which another checksum was kept."""
    with suppress(OSError):  # of a folder that this user may not change
        for path, kept, said, found in _checksums(dispatcher):
            if said not in ("", found):
                path.unlink()
                kept.unlink()


def _keep_checksums(dispatcher: Any) -> None:
    """Keep the checksums of files that numba has loaded or written."""
    with suppress(OSError):  # as above
        for _, kept, said, found in _checksums(dispatcher):
            if said != found:
                kept.write_text(found)


def _remove_files(dispatcher: Any) -> None:
    """Remove what numba keeps of a function on disk."""
    for path in (*_files(dispatcher, "nb?"), *_files(dispatcher, "crc32")):
        with suppress(OSError):
            path.unlink()


def _plain(value: Any) -> Any:
    """Return a scalar of numpy as one of Python, and all else as it is."""
    return value.item() if isinstance(value, np.generic) else value


_THIS_THREAD = threading.local()


def preparation_seconds() -> tuple[float, float]:
    """Return the wall and the processor time that this thread spent on preparing functions.

    It prepares a function while it compiles or loads it, and while Python does its work before.
    """
    return getattr(_THIS_THREAD, "spent", (0.0, 0.0))


@contextmanager
def _preparing() -> Iterator[None]:
    """Count the time of the context, once where one context is within another."""
    (wall, cpu), begun, cpu_begun = preparation_seconds(), time.perf_counter(), time.thread_time()
    try:
        yield
    finally:
        _THIS_THREAD.spent = (
            wall + time.perf_counter() - begun,
            cpu + time.thread_time() - cpu_begun,
        )


def jit_is_disabled() -> bool:
    """Return True if numba's switch NUMBA_DISABLE_JIT has Python run all functions."""
    import numba

    config: Any = numba.config  # numba ships no types
    return bool(config.DISABLE_JIT)


def _type_of(value: Any) -> Any:
    """Return numba's type of a value."""
    import numba

    type_of: Callable[[Any], Any] = numba.typeof
    return type_of(value)


@functools.cache
def _tell_numba() -> None:
    """Have numba take a compiled function inside another one for its own dispatcher."""
    from numba.extending import typeof_impl

    typeof_impl.register(CompiledFunction)(lambda function, _: _type_of(function.dispatcher))


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector, which may take a third of the time while objects are made."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def _compiling_alone(dispatcher: Any) -> Iterator[None]:
    """Keep other processes from compiling a function meanwhile, where files can be locked.

    The next process loads what the first one has compiled.  Numba's index of a function's machine
    code is also no place for two writers at once: the second one may name the file of another
    signature.
    """
    from filelock import FileLock

    function = dispatcher.py_func
    name = f"{function.__module__}.{function.__qualname__}.lock"
    lock = FileLock(Path(dispatcher.stats.cache_path) / name, timeout=LOCK_SECONDS)
    with suppress(OSError, NotImplementedError):  # Timeout is an OSError
        lock.acquire(poll_interval=0.01)
    try:
        yield
    finally:
        lock.release()
