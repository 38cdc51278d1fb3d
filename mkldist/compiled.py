"""Decorator of compiled functions: numba's, with type hints and settings common to all.

Numba takes longer to import than everything else that a command needs.  It is imported when the
first compiled function is called, so that commands that solve nothing do without it.

Compiling takes a second, and a small system is solved in much less by Python.  Functions of such
systems say `python_first`: without machine code on disk, they are called in Python until that has
taken a tenth of a second.  With ``NUMBA_DISABLE_JIT=1``, numba's switch for debuggers and coverage,
Python runs all functions, which is slow.

Compiled functions are written in loops over scalars, and write to arrays that they are given.  Each
array expression, sort, matrix product, allocation or message inside one costs 0.1 to 4 seconds of
compiling, a loop about a tenth of a second; numpy does the rest before or after the call.  A power
costs 0.2 seconds, a product nothing.  Machine code counts no references to arrays, which would take
a tenth of compiling: numba refuses functions that make arrays, and none may return one.
"""

from __future__ import annotations

import functools
import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar, cast, overload

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])
FIRST_CALL: ContextVar[Callable[[CompiledFunction, tuple[Any, ...]], Callable[..., Any]] | None] = (
    ContextVar("FIRST_CALL", default=None)
)
"""Chooses what this thread calls for a function that this process has not called before."""
_MAKING = threading.RLock()
FEW_ENTRIES = 1000  # a call whose arrays have more entries together is compiled at once
SECONDS_IN_PYTHON = 0.1  # after so many in calls in Python, a function is compiled


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
        True for a function that compiled functions alone call; Python runs it uncompiled.  It has
        no entrance for Python, and without `fastmath` it is written into its callers, whose changes
        of rounding it takes over.  Both save time of compiling.
    """
    if function is None:
        return functools.partial(
            compiled, fastmath=fastmath, python_first=python_first, inner=inner
        )
    return cast("Function", CompiledFunction(function, fastmath, python_first, inner))


class CompiledFunction:
    """A function that numba compiles when Python, or another compiled function, first calls it.

    Attributes of numba's dispatcher, such as ``signatures`` and ``py_func``, are found here too.

    Parameters
    ----------
    function : callable
        The function in Python.
    fastmath : bool or set of str
        As for :func:`compiled`.
    python_first, inner : bool
        As for :func:`compiled`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        fastmath: bool | set[str],
        python_first: bool = False,
        inner: bool = False,
    ) -> None:
        functools.update_wrapper(self, function)
        self.in_python, self._inner = function, inner
        self._fastmath, self._python_first = fastmath, python_first
        self._python_seconds: float | None = None  # left of those in Python
        self._dispatcher: Any = None
        # what is called, once there is machine code
        self._form: Callable[..., Any] | None = function if inner else None

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return (self._form or self._first_form(arguments))(*arguments)

    def _first_form(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """Return what the first call calls."""
        preparation.begin()  # to look for machine code imports the compiler
        try:
            with _no_garbage_sought():
                if jit_is_disabled():
                    self._form = self._plain_call
                    return self._form
                choose = FIRST_CALL.get()
                if choose is not None:
                    return choose(self, arguments)
                few = sum(getattr(one, "size", 0) for one in arguments) <= FEW_ENTRIES
                if few and self._may_wait():
                    return self._called_in_python
                self.compile_for(types_of(arguments))
        finally:
            preparation.end()
        return self

    def _may_wait(self) -> bool:
        """Return True if Python may still call the function: it has no machine code, and time."""
        if self._python_seconds is None:
            waits = self._python_first and not has_code_on_disk(self)
            self._python_seconds = SECONDS_IN_PYTHON if waits else 0.0
        return self._python_seconds > 0.0

    def _called_in_python(self, *arguments: Any) -> Any:
        """Call the function in Python, and charge its seconds."""
        begun = time.perf_counter()
        preparation.begin()
        try:
            return self._plain_call(*arguments)
        finally:
            preparation.end()
            left = self._python_seconds or 0.0
            self._python_seconds = left - (time.perf_counter() - begun)

    def _plain_call(self, *arguments: Any) -> Any:
        """Call the function in Python, without warnings of floats.

        Scalars of numpy, which it may return, become those of Python, which machine code returns.
        """
        with np.errstate(all="ignore"):
            found = self.in_python(*arguments)
        return tuple(map(_plain, found)) if isinstance(found, tuple) else _plain(found)

    def compile_for(self, types: tuple[Any, ...]) -> None:
        """Compile the function for numba's types of its arguments, or load it from disk."""
        with _no_garbage_sought():
            self.dispatcher.compile(types)
        if not self._inner:
            self._form = self.dispatcher

    @property
    def dispatcher(self) -> Any:
        """Numba's object of the function, the same for all threads."""
        with _MAKING:
            if self._dispatcher is None:
                import numba
                from numba.core.cpu import CPUTargetOptions

                # Nothing calls these functions by a pointer to a C function, and they make no
                # arrays: whoever calls them holds those that they are given.
                options: dict[str, Any] = {"fastmath": self._fastmath, "no_cfunc_wrapper": True}
                counts_none = hasattr(CPUTargetOptions, "_nrt")  # an option that is not documented
                options |= {"_nrt": False} if counts_none else {}
                if self._inner:
                    options |= {"no_cpython_wrapper": True}
                    options |= {} if self._fastmath else {"inline": "always"}
                made = numba.njit(cache=True, nogil=True, **options)(self.in_python)
                self._dispatcher = _load_lightly(made) if counts_none else made
            return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """Type by which numba knows the function inside others that it compiles."""
        return self.dispatcher._numba_type_

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # protocols that others ask for must not import numba
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.dispatcher, name)


@contextmanager
def _no_garbage_sought() -> Iterator[None]:
    """Let nobody look for garbage meanwhile.

    A compiler makes many objects, when it is imported too, and a sixth of its time would go into
    looking.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Preparation(threading.local):
    """Seconds for which a thread has compiled functions, or called them in Python before that.

    One may happen inside the other; such seconds count once.
    """

    def __init__(self) -> None:
        self.seconds, self._depth, self._since = 0.0, 0, 0.0

    def begin(self) -> None:
        """Note that something begins."""
        self._since = self._since if self._depth else time.perf_counter()
        self._depth += 1

    def end(self) -> None:
        """Note that something ends, which may have begun before anybody noted it."""
        if self._depth:
            self._depth -= 1
            self.seconds += 0.0 if self._depth else time.perf_counter() - self._since


preparation = _Preparation()


def _plain(value: Any) -> Any:
    """Return a scalar of numpy as one of Python, and all else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def jit_is_disabled() -> bool:
    """Return True if numba's switch NUMBA_DISABLE_JIT has Python run all functions."""
    import numba

    config: Any = numba.config  # numba ships no types
    return bool(config.DISABLE_JIT)


def types_of(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return numba's types of arguments."""
    import numba

    type_of: Callable[[Any], Any] = numba.typeof
    return tuple(map(type_of, arguments))


def has_code_on_disk(function: Callable[..., Any]) -> bool:
    """Return True if machine code of a compiled function, as it is now, is kept on disk.

    False where that cannot be told, for instance since no folder takes machine code.
    """
    with suppress(Exception):
        return bool(cast("CompiledFunction", function).dispatcher._cache._cache_file._load_index())
    return False


def _load_lightly(dispatcher: Any) -> Any:
    """Return one of numba's dispatchers, which loads machine code without numba's compiler.

    Before numba loads a function from its cache, it imports and registers all of Python and numpy
    that it can compile, for a quarter of a second, and compiles how references are counted.
    Machine code that counts none needs neither, and numba does both before it compiles.  The key
    of such code says so: former versions kept code that counts.  A numba whose cache is another is
    left as it is.
    """
    from numba.core.caching import FunctionCache

    numbas_own: Any = FunctionCache  # numba ships no types

    class LightCache(numbas_own):  # type: ignore[misc]
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)

        def _index_key(self, sig: Any, codegen: Any) -> Any:
            return (*super()._index_key(sig, codegen), "counts no references")

    used = ("_guard_against_spurious_io_errors", "_load_overload", "_index_key")
    known = all(hasattr(numbas_own, name) for name in used)
    if known and type(getattr(dispatcher, "_cache", None)) is numbas_own:
        dispatcher._cache = LightCache(dispatcher.py_func)
    return dispatcher
