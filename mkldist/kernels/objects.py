"""Kernels as objects of Python: the entries of ``[[banks.kernels]]`` with the same keys.

An object stands for one kernel for each pair of a parameter value and a feature subset, as an entry
of a sweep file does.  Its values are checked where it is used, against the same model.  The classes
of kernel functions, such as ``Gaussian``, follow from the registry.

Examples
--------
>>> from mkldist.kernels import Gaussian
>>> Gaussian([0.5, 1.0], features="each").entry()
{'function': 'gaussian', 'widths': [0.5, 1.0], 'features': 'each'}
>>> Gaussian(relative_widths=1.0).entry()
{'function': 'gaussian', 'relative_widths': 1.0, 'features': 'all'}
"""

from __future__ import annotations

import math
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, make_dataclass
from typing import Any, ClassVar

from mkldist.kernel_functions import FUNCTIONS
from mkldist.kernel_functions.definition import RELATIVE, KernelFunction
from mkldist.spec.banks import PRECOMPUTED

Numbers = float | Sequence[float] | Mapping[str, Any]
"""A number, numbers, or a series ``{"start": ..., "stop": ..., "num": ..., "scale": "log"}``."""

FeatureSets = str | Mapping[str, int] | Sequence[str | Mapping[str, int]]
"""``"all"`` together, ``"each"`` alone, the name of a feature or of a group, random subsets
``{"count": 20}``, or several of these."""


@dataclass(frozen=True)
class Kernel:
    """Base of the kernels below."""

    function: ClassVar[str]

    def entry(self) -> dict[str, Any]:
        """Return the entry of ``[[banks.kernels]]`` that says the same."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        return {"function": self.function, **given}


SPREADS = {
    1: "the sum of the standard deviations of its features",
    2: "the root of the sum of the variances of its features",
    math.inf: "the largest standard deviation of its features",
}
"""Spread of a feature subset, by the norm of differences that widths are compared with."""

FEATURE_WORDS = (
    'Feature subsets: "all" together, "each" alone, the name of a feature or of a group, random '
    'ones {"count": 20}, or several of these.'
)


def _class_of(function: KernelFunction) -> type[Kernel]:
    """Return the dataclass of a kernel function, with a field for each of its parameters."""
    fields: list[tuple[str, Any, Any]] = []
    described = []
    spread = SPREADS.get(function.norm)
    for number, parameter in enumerate(function.parameters):
        default: Any = parameter.default
        if default is None and not spread:  # a width with a spread may be left out
            default = MISSING
        fields.append((parameter.key, Numbers, field(default=default)))
        described.append(f"{parameter.key} : number, numbers or series\n    {parameter.words}")
        if number == 0 and spread:
            fields.append((RELATIVE, Numbers, field(default=None, kw_only=True)))
            words = f"In place of these, multiples of the spread of a feature subset: {spread}."
            described.append(f"{RELATIVE} : number, numbers or series\n    {words}")
    fields.append(("features", FeatureSets, field(default="all")))
    described.append(f"features : str, mapping or sequence\n    {FEATURE_WORDS}")
    parts = [f"``{function.formula}``."]
    parts += [function.note] * bool(function.note)
    parts.append("\n".join(["Parameters", "----------", *described]))
    namespace = {"function": function.name, "__module__": __name__}
    made = make_dataclass(
        function.class_name, fields, bases=(Kernel,), namespace=namespace, frozen=True
    )
    values = {parameter.key: literal_eval(parameter.example) for parameter in function.parameters}
    call = ", ".join(f"{key}={value}" for key, value in values.items())
    example = [
        ">>> import mkldist",
        f">>> mkldist.kernels.{made.__name__}({call}).entry()",
        str(made(**values).entry()),
    ]
    parts.append("\n".join(["Examples", "--------", *example]))
    made.__doc__ = "\n\n".join(parts)
    return made


CLASSES: dict[str, type[Kernel]] = {
    function.class_name: _class_of(function) for function in FUNCTIONS.values()
}
"""Classes of kernel functions by name."""

globals().update(CLASSES)  # where pickle finds them


@dataclass(frozen=True)
class Custom(Kernel):
    """A function of one's own.

    Parameters
    ----------
    call : callable or str
        ``call(left, right, **parameters)`` returns the kernel values (r, c) of points (r, s) and
        (c, s).  It must be symmetric and positive semi-definite.  A text names a function to
        import, ``"package.module:function"``, or an entry point of the group ``mkldist.kernels``.
    parameters : mapping
        Numbers, texts or true and false by name; a list stands for several kernels.
    features
        As for :class:`Gaussian`.

    Examples
    --------
    >>> Custom(max, {"p": [1, 2]}).entry()
    {'function': <built-in function max>, 'parameters': {'p': [1, 2]}, 'features': 'all'}
    """

    call: Callable[..., Any] | str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    features: FeatureSets = "all"

    def entry(self) -> dict[str, Any]:
        """Return the entry of ``[[banks.kernels]]`` that says the same."""
        return {
            "function": self.call,
            "parameters": dict(self.parameters),
            "features": self.features,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Precomputed(Kernel):
    """Gram matrices over the points of a bank, given as they are.

    Parameters
    ----------
    grams : (n, n) or (M, n, n) array-like
        One matrix or several, positive semi-definite.  The row and the column of a point that lacks
        the view are NaN, which ``missing="zero"`` of the bank permits.
    name : str
        Name of the view, by which new points give their kernel values.
    indefinite : {"clip", "flip", "shift"}, optional
        What becomes of matrices with negative eigenvalues, as for
        :meth:`mkldist.KernelBank.from_grams`.

    Examples
    --------
    >>> import numpy as np
    >>> Precomputed(np.eye(3), name="strings").entry()
    {'function': 'precomputed', 'features': 'strings'}
    """

    function = PRECOMPUTED

    grams: Any
    name: str = "given"
    indefinite: str | None = None

    __eq__ = object.__eq__  # matrices are not compared
    __hash__ = object.__hash__

    def entry(self) -> dict[str, Any]:
        """Return the entry of ``[[banks.kernels]]`` that names the view."""
        return {"function": self.function, "features": self.name}

    def __repr__(self) -> str:
        """Return the name alone: matrices are large."""
        return f"Precomputed(name={self.name!r})"
