"""Kernels as objects of Python: the entries of ``[[banks.kernels]]`` with the same words.

An object stands for one kernel for each pair of a parameter value and a feature subset, as an entry
of a sweep file does.  What it says is checked where it is used, against the same model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

Numbers = float | Sequence[float] | Mapping[str, Any]
"""A number, numbers, or a series ``{"start": ..., "stop": ..., "num": ..., "scale": "log"}``."""

FeatureWords = str | Mapping[str, int] | Sequence[str | Mapping[str, int]]
"""``"all"``, ``"each"``, the name of a feature or a group, ``{"count": 20}``, or several."""


@dataclass(frozen=True)
class Kernel:
    """Base of the kernels below."""

    function: ClassVar[str]

    def entry(self) -> dict[str, Any]:
        """Return the entry of ``[[banks.kernels]]`` that says the same."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        return {"function": self.function, **given}


@dataclass(frozen=True)
class Gaussian(Kernel):
    """``exp(-||x - z||^2 / (2 width^2))``.

    Parameters
    ----------
    widths : float, sequence of float or mapping, optional
        Widths, in units of the features; several stand for as many kernels.
    relative_widths : float, sequence of float or mapping, optional
        In place of `widths`, multiples of the spread of each feature subset: the root of the sum of
        the variances of its features.
    features : str, mapping or sequence
        Feature subsets: ``"all"`` together, ``"each"`` alone, the name of a feature or of a group,
        random ones ``{"count": 20}``, or several of these.

    Examples
    --------
    >>> Gaussian([0.5, 1.0], features="each").entry()
    {'function': 'gaussian', 'widths': [0.5, 1.0], 'features': 'each'}
    >>> Gaussian(relative_widths=1.0).entry()
    {'function': 'gaussian', 'relative_widths': 1.0, 'features': 'all'}
    """

    function = "gaussian"

    widths: Numbers | None = None
    relative_widths: Numbers | None = field(default=None, kw_only=True)
    features: FeatureWords = "all"


@dataclass(frozen=True)
class Additive(Kernel):
    """Mean over features of ``1 / (1 + (x_j - z_j)^2 / width^2)``.

    One kernel for sums of functions of single features, in place of a kernel for each.

    Parameters
    ----------
    widths, features
        As for :class:`Gaussian`.
    relative_widths
        The same, of the largest standard deviation.
    """

    function = "additive"

    widths: Numbers | None = None
    relative_widths: Numbers | None = field(default=None, kw_only=True)
    features: FeatureWords = "all"


@dataclass(frozen=True)
class Laplacian(Kernel):
    """``exp(-||x - z||_1 / width)``.

    Parameters
    ----------
    widths, features
        As for :class:`Gaussian`.
    relative_widths
        The same, of the sum of the standard deviations.
    """

    function = "laplacian-rbf"

    widths: Numbers | None = None
    relative_widths: Numbers | None = field(default=None, kw_only=True)
    features: FeatureWords = "all"


@dataclass(frozen=True)
class Polynomial(Kernel):
    """``(offset + x'z)^degree``.

    Parameters
    ----------
    degrees : int or sequence of int
        Degrees.
    offset : float
        Constant term.
    features
        As for :class:`Gaussian`.
    """

    function = "polynomial"

    degrees: int | Sequence[int]
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


@dataclass(frozen=True)
class Matern(Kernel):
    """Matérn kernel of the Euclidean distance, between the exponential and the Gaussian.

    Parameters
    ----------
    widths, relative_widths
        As for :class:`Gaussian`.
    nu : float or sequence of float
        Smoothness, at most 20: 0.5 is ``exp(-||x - z|| / width)``; 0.5, 1.5 and 2.5 are fastest.
    features
        As for :class:`Gaussian`.
    """

    function = "matern"

    widths: Numbers | None = None
    relative_widths: Numbers | None = field(default=None, kw_only=True)
    nu: Numbers = 1.5
    features: FeatureWords = "all"


@dataclass(frozen=True)
class Periodic(Kernel):
    """``exp(-2 sum_j sin^2(pi (x_j - z_j) / period) / width^2)``.

    Parameters
    ----------
    widths : float, sequence of float or mapping
        Widths.
    period : float, sequence of float or mapping
        Periods, in units of the features.
    features
        As for :class:`Gaussian`.
    """

    function = "periodic"

    widths: Numbers
    period: Numbers
    features: FeatureWords = "all"


@dataclass(frozen=True)
class ChiSquared(Kernel):
    """``exp(-sum_j (x_j - z_j)^2 / (x_j + z_j) / width)`` of features of at least 0.

    Parameters
    ----------
    widths, features
        As for :class:`Gaussian`.
    """

    function = "chi-squared"

    widths: Numbers
    features: FeatureWords = "all"


@dataclass(frozen=True)
class Intersection(Kernel):
    """Histogram intersection ``sum_j min(x_j, z_j)`` of features of at least 0.

    Parameters
    ----------
    features
        As for :class:`Gaussian`.
    """

    function = "intersection"

    features: FeatureWords = "all"


@dataclass(frozen=True)
class Jaccard(Kernel):
    """``sum_j min(x_j, z_j) / sum_j max(x_j, z_j)`` of sets, as features 0 and 1, and of counts.

    Parameters
    ----------
    features
        As for :class:`Gaussian`.
    """

    function = "jaccard"

    features: FeatureWords = "all"


@dataclass(frozen=True)
class Tanimoto(Kernel):
    """``x'z / (||x||^2 + ||z||^2 - x'z)``, of fingerprints and other vectors.

    Parameters
    ----------
    features
        As for :class:`Gaussian`.
    """

    function = "tanimoto"

    features: FeatureWords = "all"


@dataclass(frozen=True)
class Categorical(Kernel):
    """1 for points that are equal in every feature of the subset, else 0.

    Parameters
    ----------
    features
        As for :class:`Gaussian`.  ``"each"`` compares one column at a time; a group of indicator
        columns compares the category that they code.
    """

    function = "categorical"

    features: FeatureWords = "all"


@dataclass(frozen=True)
class Spectrum(Kernel):
    """Inner product of the counts of all substrings of a length, of columns of texts.

    Parameters
    ----------
    length : int or sequence of int
        Length of the substrings; several stand for as many kernels.
    features
        ``"each"`` column of texts, the name of one or of a view, or ``"all"``, whose values add up.
    """

    function = "spectrum"

    length: int | Sequence[int]
    features: FeatureWords = "all"


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
    features: FeatureWords = "all"

    def entry(self) -> dict[str, Any]:
        """Return the entry of ``[[banks.kernels]]`` that says the same."""
        return {
            "function": self.call,
            "parameters": dict(self.parameters),
            "features": self.features,
        }
