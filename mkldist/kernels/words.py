"""Kernels as objects of Python: the entries of ``[[banks.kernels]]`` with the same words.

An object stands for one kernel for each pair of a parameter value and a feature subset, as an entry
of a sweep file does.  What it says is checked where it is used, against the same model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

Numbers = float | Sequence[float] | Mapping[str, Any]
"""A number, numbers, or a series ``{"start": ..., "stop": ..., "num": ..., "scale": "log"}``."""

FeatureWords = str | Mapping[str, int] | Sequence[str | Mapping[str, int]]
"""``"all"``, ``"each"``, the name of a feature or a group, ``{"count": 20}``, or several."""


@dataclass(frozen=True)
class Kernel:
    """What the kernels below share."""

    function: ClassVar[str]

    def entry(self) -> dict[str, Any]:
        """Return the entry of ``[[banks.kernels]]`` that says the same."""
        words = {"width": "widths", "degree": "degrees"}
        fields = {words.get(name, name): value for name, value in vars(self).items()}
        return {"function": self.function, **fields}


@dataclass(frozen=True)
class Gaussian(Kernel):
    """``exp(-||x - z||^2 / (2 width^2))``.

    Parameters
    ----------
    width : float, sequence of float or mapping
        Widths, in units of the features; several stand for as many kernels.
    features : str, mapping or sequence
        Feature subsets: ``"all"`` together, ``"each"`` alone, the name of a feature or of a group,
        random ones ``{"count": 20}``, or several of these.

    Examples
    --------
    >>> Gaussian(width=[0.5, 1.0], features="each").entry()
    {'function': 'gaussian', 'widths': [0.5, 1.0], 'features': 'each'}
    """

    function = "gaussian"

    width: Numbers
    features: FeatureWords = "all"


@dataclass(frozen=True)
class Laplacian(Kernel):
    """``exp(-||x - z||_1 / width)``.

    Parameters
    ----------
    width, features
        As for :class:`Gaussian`.
    """

    function = "laplacian-rbf"

    width: Numbers
    features: FeatureWords = "all"


@dataclass(frozen=True)
class Polynomial(Kernel):
    """``(offset + x'z)^degree``.

    Parameters
    ----------
    degree : int or sequence of int
        Degrees.
    offset : float
        Constant term.
    features
        As for :class:`Gaussian`.
    """

    function = "polynomial"

    degree: int | Sequence[int]
    offset: float = 1.0
    features: FeatureWords = "all"


@dataclass(frozen=True)
class Linear(Kernel):
    """``x'z``.

    Parameters
    ----------
    features
        As for :class:`Gaussian`.
    """

    function = "linear"

    features: FeatureWords = "all"
