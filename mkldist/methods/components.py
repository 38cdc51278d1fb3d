"""Regularisers and losses of the user as text, for sweeps record and send them so.

The text is the call that makes the object, such as ``Concave(lam=1.0, g=numpy.sqrt, ...)``.
Functions, and classes that are not mkldist's own, stand by the names that import them.  A hash of
the user's code follows, so that runs of other code are other runs, and a worker with other code
refuses them.
"""

from __future__ import annotations

import ast
import inspect
import math
import pkgutil
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

from mkldist.core.checksums import content_id
from mkldist.errors import SpecError
from mkldist.kernel_functions.custom import function_identity

CALL = re.compile(r"([\w.]+\(.*\))(?:  # ([0-9a-f]+))?", re.DOTALL)
NAME = re.compile(r"\w+(\.\w+)+")
VERSIONED = ("mkldist", "numpy", "scipy")  # packages whose code is known by their versions
EXPECTED = "one of importable functions, numbers and texts"


class Component:
    """An object that a parameter of a method takes: a regulariser, or a loss, perhaps the user's.

    It keeps the arguments of its constructor in attributes of the same names, as dataclasses do.
    """

    own: ClassVar[dict[str, type]] = {}
    """Classes of mkldist, whose names need no module."""

    def __init_subclass__(cls) -> None:
        if cls.__module__.startswith("mkldist."):
            Component.own[cls.__name__] = cls


class TextAtHand(str):
    """The text of a component that Python gave: its code runs already, and needs no consent."""

    __slots__ = ()


def written(component: Component, where: str) -> TextAtHand:
    """Return a component as text; refuse one that another process could not make of it.

    Examples
    --------
    >>> from mkldist.methods.regularizers import ElasticNet
    >>> str(written(ElasticNet(1.0, 0.5), "regularizer"))
    'ElasticNet(lam=1.0, mix=0.5)'
    """
    try:
        text = _text(component)
        if _text(_made(text)) != text:
            raise ValueError("found arguments that its constructor changes")
    except ValueError as error:
        found = str(error).removeprefix("found ").partition("; expected ")[0]
        raise SpecError(
            where,
            f"{type(component).__name__} that cannot be written down: {found}",
            EXPECTED,
            "Put its functions, and a class of your own, into a module that can be imported; the "
            "class keeps its constructor's arguments in attributes of the same names",
        ) from None
    return TextAtHand(text)


def plain(value: str | Component, where: str) -> str:
    """Return what records name a component by."""
    return value if isinstance(value, str) else str(written(value, where))


def named(value: Any) -> Any:
    """Return a component as text, by its class where no text makes it, and all else as it is."""
    if not isinstance(value, Component):
        return value
    try:
        return str(written(value, ""))
    except SpecError:
        return type(value).__name__


def read(value: Any) -> Any:
    """Return the component that a text makes, and anything else as it is.

    A text that makes none, or makes one of other code, raises ValueError.
    """
    return _made(value) if isinstance(value, str) and CALL.fullmatch(value) else value


def imported_by(value: Any) -> Iterator[str]:
    """Yield the names that a value of a parameter imports where it is such a text, not at hand."""
    if isinstance(value, str) and not isinstance(value, TextAtHand):
        with suppress(ValueError):
            match = CALL.fullmatch(value)
            call = _parsed(match[1] if match else value)
            nodes = [call.func, *(one.value for one in call.keywords)]
            yield from (ast.unparse(one) for one in nodes if isinstance(one, ast.Attribute))


def _text(component: Component) -> str:
    """Return the call that makes a component; raise ValueError where there is none."""
    kind = type(component)
    arguments = {n: getattr(component, n, kind) for n in inspect.signature(kind).parameters}
    texts = {name: _argument(value) for name, value in arguments.items()}
    for name, text in {f"class {kind.__qualname__}": _of_class(kind), **texts}.items():
        if not text:
            raise ValueError(f"found {name}, {arguments.get(name, kind)!r:.60}")
    call = f"{_of_class(kind)}({', '.join(f'{n}={text}' for n, text in texts.items())})"
    code = "".join(map(_identity, [kind, *filter(callable, arguments.values())]))
    return f"{call}  # {content_id(code=code)}" if code else call


def _made(text: str) -> Any:
    """Return the component that a call makes."""
    match = CALL.fullmatch(text)
    call = _parsed(match[1] if match else text)
    name = ast.unparse(call.func)
    kind = _imported(name) if "." in name else Component.own.get(name)
    if not (inspect.isclass(kind) and issubclass(kind, Component)) or inspect.isabstract(kind):
        raise ValueError(f"found {name}, which is no regulariser and no loss; expected {EXPECTED}")
    arguments = {str(one.arg): _value(one.value) for one in call.keywords}
    try:
        made = kind(**arguments)
    except Exception as error:
        raise ValueError(
            f"found {text:.60}, an error {type(error).__name__}: {error}; expected {EXPECTED}"
        ) from error
    if match and match[2] and not _text(made).endswith(match[2]):
        raise ValueError(
            f"found other code of {name} than that of this text; expected the code with which the "
            f"sweep began, or the text without its hash after #"
        )
    return made


def _parsed(text: str) -> ast.Call:
    try:
        call = ast.parse(text, mode="eval").body
        ast.unparse(call)  # which refuses what is nested too deep for the following
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        call = None
    if not isinstance(call, ast.Call) or call.args or not all(one.arg for one in call.keywords):
        raise ValueError(f"found {text:.60}; expected a call such as ElasticNet(lam=1.0, mix=0.5)")
    return call


def _value(node: ast.expr) -> Any:
    """Return a number, a text or what a name imports."""
    with suppress(ValueError):
        return ast.literal_eval(node)
    name = ast.unparse(node)
    if name in ("inf", "-inf"):
        return float(name)
    if not NAME.fullmatch(name):
        raise ValueError(f"found {name:.60}; expected numbers, texts and names such as numpy.sqrt")
    return _imported(name)


def _imported(name: str) -> Any:
    try:
        return pkgutil.resolve_name(name)
    except Exception as error:
        raise ValueError(
            f"found {name}, which cannot be imported: {type(error).__name__}: {error}; expected "
            f"names that this Python can import"
        ) from error


def _argument(value: Any) -> str:
    """Return an argument as text; empty if there is none that makes the same."""
    value = value.item() if isinstance(value, np.generic) else value
    if inspect.isclass(value):
        return ""
    if callable(value):
        return _reference(value)
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    with suppress(Exception):
        return repr(value) if ast.literal_eval(repr(value)) == value else ""
    return ""


def _of_class(kind: type) -> str:
    """Return the name of a class, with its module unless it is one of mkldist."""
    return kind.__name__ if Component.own.get(kind.__name__) is kind else _reference(kind)


def _reference(code: Any) -> str:
    """Return the name by which any process imports a function or class; empty if there is none."""
    name = getattr(code, "__qualname__", getattr(code, "__name__", ""))
    for module in (getattr(code, "__module__", None), "numpy", "scipy.special"):
        with suppress(Exception):  # numpy's functions on arrays may not know their module
            if module != "__main__" and pkgutil.resolve_name(f"{module}.{name}") is code:
                return f"{module}.{name}"
    return ""


def _identity(code: Any) -> str:
    """Return the hash of a function or class of the user; empty for those of known packages."""
    if _reference(code).split(".")[0] in VERSIONED:
        return ""
    try:
        return function_identity(code)
    except TypeError as error:  # of some functions of C
        raise ValueError(f"found {code!r:.60}, whose code cannot be read") from error
