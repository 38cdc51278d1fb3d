"""Identity of a function of the user: a hash that changes whenever its values may change.

It covers the file that defines the function, what the function holds (defaults, closure,
attributes, arguments), and the data that code of this file uses by global names, for these may be
set from outside.  Data that cannot be pickled, such as locks, do not count.  A file may define
several functions of one name, such as lambdas; their instructions tell them apart.  A function
without a file, as a notebook or ``python -`` has it, is told by its instructions and by all global
names that they use.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

Seen = tuple[Any, ...]


def function_identity(call: Callable[..., Any]) -> str:
    """Return a hash of the code of a function and of what it holds.

    A function that holds what cannot be pickled gets another hash at every call.

    Examples
    --------
    >>> function_identity(lambda x, z: x @ z.T) == function_identity(lambda x, z: z @ x.T)
    False
    """
    return _digest(call, ()).hex()


def plain_function(call: Callable[..., Any]) -> Any:
    """Return the function or class whose code is called."""
    while isinstance(call, functools.partial):
        call = call.func
    call = inspect.unwrap(call)
    return call if inspect.isroutine(call) or inspect.isclass(call) else type(call)


def _digest(call: Callable[..., Any], seen: Seen) -> bytes:
    """Return the hash of a function.

    Parameters
    ----------
    call : callable
        The function.
    seen : tuple of callable
        Functions that hold or use this one.
    """
    plain, seen = plain_function(call), (*seen, call)
    source, name = _source(plain), getattr(plain, "__qualname__", repr(plain))
    parts = _held(call, seen)
    if not source or "<" in name:  # <lambda>, or <locals> of a function that was called twice
        parts.append([_instructions(code) for code, _ in _codes(plain)])
    parts.append(
        [_data(code, scope, []) if source else _globals(code, scope, seen)
         for code, scope in _codes(plain)]
    )  # fmt: skip
    digest = hashlib.blake2b(source + name.encode(), digest_size=10)
    try:
        pickle.dump(parts, SimpleNamespace(write=digest.update))
    except Exception:  # the content cannot be told: a bank of it is never found again
        digest.update(os.urandom(16))
    return digest.digest()


def _source(plain: Any) -> bytes:
    """Return the file that defines a function or class; empty if there is none."""
    try:
        file = inspect.getsourcefile(plain)
        return Path(file).read_bytes() if file else b""
    except (TypeError, OSError):
        return b""


def _codes(plain: Any) -> Iterator[tuple[CodeType, dict[str, Any]]]:
    """Yield the code of a function, or of the methods of a class, and the globals of each."""
    owned = [plain]
    if inspect.isclass(plain):
        owned = [one for base in plain.__mro__ for one in vars(base).values()]
    for function in owned:
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType):
            yield code, function.__globals__


def _instructions(code: CodeType) -> list[Any]:
    """Return what a code object does, without its place in memory and in its file."""
    constants = [
        _instructions(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts
    ]
    return [code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants]


def _globals(code: CodeType, scope: dict[str, Any], seen: Seen) -> list[Any]:
    """Return the global names that a code object uses, with their values."""
    own = [[name, _told(scope[name], seen)] for name in code.co_names if name in scope]
    nested = (one for one in code.co_consts if isinstance(one, CodeType))
    return own + [found for one in nested for found in _globals(one, scope, seen)]


def _data(code: CodeType, scope: dict[str, Any], known: list[CodeType]) -> list[Any]:
    """Return the global data that code of a file uses, also by way of other functions of the file.

    Parameters
    ----------
    code : CodeType
        The code.
    scope : dict
        Globals of the file.
    known : list of CodeType
        Code that was met before; code that is met is added.
    """
    known.append(code)
    found: list[Any] = []
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    for name in code.co_names:
        value = scope.get(name)
        if inspect.isroutine(value) or inspect.isclass(value):
            own = _codes(value) if getattr(value, "__module__", "") == scope.get("__name__") else ()
            inner += [one for one, around in own if around is scope]
        elif name in scope and not inspect.ismodule(value):
            listed = sorted(map(repr, value)) if isinstance(value, (set, frozenset)) else value
            with suppress(Exception):
                found.append((name, pickle.dumps(listed)))
    for one in inner:
        if one not in known:
            found += _data(one, scope, known)
    return found


def _held(call: Any, seen: Seen) -> list[Any]:
    """Return what a function holds besides its code: defaults, closure, attributes, arguments."""
    if isinstance(call, functools.partial):
        arguments = [_told(one, seen) for one in call.args]
        named = {name: _told(one, seen) for name, one in call.keywords.items()}
        return [arguments, named, _held(call.func, seen)]
    cells = [_told(cell.cell_contents, seen) for cell in getattr(call, "__closure__", None) or ()]
    defaults = [getattr(call, name, None) for name in ("__defaults__", "__kwdefaults__")]
    owner = getattr(call, "__self__", None)
    own = None if inspect.isroutine(call) or inspect.isclass(call) else vars(call)
    return [cells, defaults, own, None if inspect.ismodule(owner) else owner]


def _told(value: Any, seen: Seen) -> Any:
    """Return what stands for a value: the name of a module, the hash of Python code."""
    if isinstance(value, ModuleType):
        return value.__name__
    if inspect.isclass(value) or hasattr(value, "__code__"):
        named = any(value is one for one in seen)
        return value.__qualname__ if named else _digest(value, seen)
    return value
