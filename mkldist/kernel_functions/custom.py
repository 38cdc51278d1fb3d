"""Kernel functions of the user: a Python function, named by ``"package.module:function"``.

The function is called as ``function(left, right, **parameters)`` with points (r, s) and (c, s),
read-only, numbers or str objects, and returns their kernel values (r, c).  Shape and finite values
are checked on every tile, symmetry and positive semi-definiteness on those of the diagonal and,
before anything else, on a hundred points.  A function that is semi-definite on these alone passes,
and a certificate is then void.

An installed package may name such a function by an entry point of the group ``mkldist.kernels``;
its name is then that of the kernel function.

A bank knows the content of a function, so that it is computed anew when the function changes: the
file that defines it, and the version of the package that an entry point comes from.  Files that
this file imports do not count.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import os
import pickle
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.checksums import content_id
from mkldist.errors import GramError, SpecError
from mkldist.kernel_functions.bases import Tile, mirror
from mkldist.kernel_functions.definition import KernelFunction


def function_identity(call: Callable[..., Any]) -> str:
    """Return a hash of the code of a function or class, and of what it holds.

    It is that of the file that defines it, of the data of its module, and of the function as
    cloudpickle writes it: by its name, or with all that it uses where no name imports it.
    One that holds what cannot be pickled gets another hash at every call.

    >>> function_identity(lambda x, z: x @ z.T) == function_identity(lambda x, z: z @ x.T)
    False
    """
    plain = plain_function(call)
    held: list[Any] = [call]
    source = _source(plain)
    if source and inspect.isclass(plain):  # which cloudpickle numbers anew in every process
        held = [] if plain is call else [vars(call)]
    digest = hashlib.blake2b(source, digest_size=10)
    try:
        digest.update(cloudpickle.dumps([held, getattr(plain, "__qualname__", ""), _data(plain)]))
    except Exception:  # the content cannot be told: a bank of it is never found again
        digest.update(os.urandom(16))
    return digest.hexdigest()


def plain_function(call: Callable[..., Any]) -> Any:
    """Return the function or class whose code is called."""
    while isinstance(call, functools.partial):
        call = call.func
    call = inspect.unwrap(call)
    return call if inspect.isroutine(call) or inspect.isclass(call) else type(call)


def _data(plain: Any) -> list[Any]:
    """Return the data of the module that defines a function, which may be set from outside."""
    found: list[Any] = []
    for name, value in vars(sys.modules.get(plain.__module__, functools)).items():
        if not (name.startswith("_") or callable(value) or inspect.ismodule(value)):
            listed = sorted(map(repr, value)) if isinstance(value, set | frozenset) else value
            with suppress(Exception):
                found.append((name, pickle.dumps(listed)))
    return found


def _source(plain: Any) -> bytes:
    """Return the file that defines a function or class; empty if there is none."""
    try:
        file = inspect.getsourcefile(plain)
        return Path(file).read_bytes() if file else b""
    except (TypeError, OSError):
        return b""


GROUP = ".".join(("mkldist", "kernels"))  # of entry points, not the module of this name
CUSTOM_CODE = 255  # of all functions of the user in lists of kernels
SYMMETRY = 1e-8  # of the largest value, by which k(x, z) and k(z, x) may differ
NEGATIVE = 1e-8  # of the trace, to which an eigenvalue may be negative by rounding
CHECKED_POINTS = 100  # of a tile of the diagonal, whose kernel values have no negative eigenvalue
DIAGONAL_POINTS = 64  # whose kernel values are computed together for k(x, x)

Argument = float | int | str | bool


@dataclass(frozen=True)
class CustomFunction:
    """A function of the user."""

    label: str  # its name in results
    call: Callable[..., Any]
    identity: str  # hash of its content
    imported_as: str = ""  # the name that it was imported by; empty for a function that was at hand

    @property
    def reference(self) -> str:
        """The name by which another process can import the function; empty if it has none."""
        if self.imported_as:
            return self.imported_as
        module = getattr(self.call, "__module__", None)
        name = getattr(self.call, "__qualname__", "")
        if module in (None, "__main__"):
            return ""
        try:
            found: Any = functools.reduce(getattr, name.split("."), sys.modules[module])
        except (AttributeError, KeyError):  # of a function within another, or without a module
            return ""
        return f"{module}:{name}" if found is self.call else ""

    @classmethod
    def of(cls, call: Callable[..., Any]) -> CustomFunction:
        """Return a function that is at hand."""
        label = getattr(plain_function(call), "__name__", type(call).__name__)
        return cls(label, call, function_identity(call))

    @classmethod
    def named(cls, reference: str, where: str) -> CustomFunction:
        """Import a function by ``"package.module:function"`` or the name of an entry point.

        A SpecError tells of one that cannot be imported or called.
        """
        module, _, attribute = reference.partition(":")
        version = ""
        try:
            if attribute:
                call = functools.reduce(getattr, attribute.split("."), _module(module))
            else:
                entry = entry_points()[reference]
                call = entry.load()
                version = f"{entry.dist.name} {entry.dist.version}" if entry.dist else ""
        except Exception as error:
            found = f"{reference!r}, which cannot be imported: {type(error).__name__}: {error}"
            expected = '"package.module:function" that this Python can import'
            hint = "The folder of the sweep file, or of the model, is searched first"
            raise SpecError(where, found, expected, hint) from error
        if not callable(call):
            found = f"{reference!r}, which is no function"
            raise SpecError(where, found, "a function of two sets of points")
        identity = content_id(code=function_identity(call), version=version)
        return cls(reference, call, identity, imported_as=reference)


@dataclass(frozen=True)
class CustomKernel:
    """A function of the user with its parameters."""

    function: CustomFunction
    arguments: tuple[tuple[str, Argument], ...] = ()  # its parameters by name

    @property
    def identity(self) -> str:
        """Hash of the function's name and content and of the parameters."""
        function = self.function
        return content_id(
            name=function.label, code=function.identity, arguments=list(self.arguments)
        )

    @property
    def head(self) -> str:
        """Name and parameters as text."""
        said = ", ".join(f"{name}={_spelled(value)}" for name, value in self.arguments)
        return f"{self.function.label}({said})" if said else self.function.label

    def check(self, where: str) -> None:
        """Raise SpecError if the function does not take two sets of points and the parameters."""
        try:
            inspect.signature(self.function.call).bind(None, None, **dict(self.arguments))
        except TypeError as error:
            names = ", ".join(name for name, _ in self.arguments) or "none"
            found = f"{names}, which {self.function.label} does not take: {error}"
            expected = "parameters of the function, after two sets of points"
            raise SpecError(f"{where}.parameters", found, expected) from None
        except ValueError:  # a function of C does not say what it takes
            return

    @functools.cached_property
    def definition(self) -> KernelFunction:
        """The function as those of the registry are."""
        return KernelFunction(
            self.function.label,
            code=CUSTOM_CODE,
            formula="a function of the user",
            values=self._values,
            diagonal=self._diagonal,
        )

    def _values(self, tile: Tile, first: float, second: float, out: Floats) -> None:
        """Write the values of a tile to `out`."""
        out[...] = self._called(tile.left, tile.right)
        if tile.symmetric:
            self._check_symmetry(out)
            mirror(out)
            self._check_definiteness(out[:CHECKED_POINTS, :CHECKED_POINTS])

    def _diagonal(self, points: Any, first: float, second: float) -> Floats:
        """Return ``k(x, x)``, (n,), from blocks of the diagonal."""
        starts = range(0, len(points), DIAGONAL_POINTS)
        blocks = (points[start : start + DIAGONAL_POINTS] for start in starts)
        found = [np.diagonal(self._called(block, block)) for block in blocks]
        return np.concatenate(found) if found else np.zeros(0)

    def _called(self, left: Any, right: Any) -> Floats:
        """Return the values between points, or raise a GramError about them."""
        shape = len(left), len(right)
        expected = f"finite numbers of shape {shape}"
        sides = [_read_only(left), _read_only(right)]
        try:
            values = np.asarray(self.function.call(*sides, **dict(self.arguments)), np.float64)
        except Exception as error:
            found = f"an error {type(error).__name__}: {error}"
            hint = f"It was called with points of shapes {_shape(left)} and {_shape(right)}"
            raise GramError(f"kernel function {self.head}", found, expected, hint) from error
        if values.shape != shape:
            found = f"values of shape {values.shape}"
            raise GramError(f"kernel function {self.head}", found, expected)
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0].tolist()
            found = f"the value {values[row, column]} in row {row}, column {column} (from 0)"
            raise GramError(f"kernel function {self.head}", found, expected)
        return values

    def _check_symmetry(self, values: Floats) -> None:
        difference = np.abs(values - values.T)
        if difference.size and difference.max() > SYMMETRY * np.abs(values).max():
            i, j = np.unravel_index(difference.argmax(), values.shape)
            found = f"k(x, z) = {values[i, j]:.6g} but k(z, x) = {values[j, i]:.6g} for two points"
            raise GramError(f"kernel function {self.head}", found, "a symmetric function")

    def _check_definiteness(self, values: Floats) -> None:
        least, trace = np.linalg.eigvalsh(values).min(initial=0.0), np.trace(values)
        if least < -NEGATIVE * abs(trace):
            place = f"kernel function {self.head}"
            found = f"an eigenvalue of {least:.3g} between {len(values)} points, trace {trace:.3g}"
            raise GramError(place, found, "a positive semi-definite function")


def search_first(folder: str) -> None:
    """Let Python search a folder for modules first."""
    if folder not in sys.path:
        sys.path.insert(0, folder)


def entry_points() -> Mapping[str, Any]:
    """Return the kernel functions of installed packages, by the names of their entry points."""
    from importlib.metadata import entry_points as installed

    return {entry.name: entry for entry in installed(group=GROUP)}


_imported: dict[str, bytes] = {}


def _module(name: str) -> ModuleType:
    """Import a module, again if its file has changed since this process imported it here."""
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    file = getattr(module, "__file__", None)
    source = Path(file).read_bytes() if file else b""
    if _imported.setdefault(name, source) != source:
        module = importlib.reload(module)
        _imported[name] = source
    return module


def _read_only(points: Any) -> Any:
    """Return a view of points that a function cannot change."""
    if not isinstance(points, np.ndarray):
        return points
    view = points.view()
    view.flags.writeable = False
    return view


def _shape(points: Any) -> Any:
    return getattr(points, "shape", (len(points),))


def _spelled(value: Argument) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
