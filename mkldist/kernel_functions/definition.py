"""Definition of a kernel function: the contract of all of them.

To add a function, define a ``KernelFunction(...)`` in a module that ``MODULES`` of
:mod:`mkldist.kernel_functions` lists, or in a new one that is added there.  Sweep files,
classes of Python, ``mkldist show``, names and lists of kernels, results and the reference read
everything from the definition.

A function writes its values on a :class:`~mkldist.kernel_functions.bases.Tile`, which holds some
points and computes *bases*: numbers that depend on a pair of points, such as their distance, which
kernels of all parameters share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from mkldist.core.arrays import Floats
from mkldist.kernel_functions.bases import Base, Tile

Values = Callable[[Tile, float, float, Floats], None]
Diagonal = Callable[[Floats, float, float], Floats]
Kind = Literal["positive", "not negative", "count"]


class Takes(Enum):
    """Points that a kernel function is defined on, in words for messages."""

    NUMBERS = "numbers"
    NON_NEGATIVE = "numbers of at least 0"
    TEXTS = "texts"


@dataclass(frozen=True)
class Parameter:
    """Parameter of a kernel function."""

    name: str  # in results, and in the names of kernels
    meaning: str  # words for the reference
    kind: Kind  # values that it takes; a count is a whole number of at least 1
    word: str = ""  # key in a sweep file and in Python; by default the name
    default: float | None = None  # value where none is given; None if one must be
    smallest: float = 0.0  # limits that belong to the values
    largest: float = float("inf")
    drawn: bool = False  # True if "chi2" may draw one value for each random feature subset
    example: str = "[1, 2]"  # in the example that ``mkldist show`` prints

    @property
    def key(self) -> str:
        """The key in a sweep file and in Python."""
        return self.word or self.name

    @property
    def words(self) -> str:
        """Meaning and default in words for the reference."""
        said = self.meaning
        if self.default is not None:
            said += f" By default {self.default:g}."
        if self.drawn:
            said += ' `"chi2"` draws s² = 5χ² + 0.1 for each random subset.'
        return said


WIDTH = Parameter(
    "width",
    "Widths s.",
    "positive",
    word="widths",
    smallest=1e-150,  # beyond these limits, the square leaves the range of float64
    largest=1e150,
    drawn=True,
    example="[0.5, 1, 2]",
)

RELATIVE = "relative_widths"
"""The key of widths in units of the spread of the features, in place of that of widths."""


@dataclass(frozen=True)
class KernelFunction:
    """A kernel function."""

    name: str  # in sweep files and results
    code: int
    """Number in lists of kernels, from 0 to 199: part of the fingerprint of banks, it never
    changes."""
    formula: str  # ``k(x, z)`` in a line of plain letters; s stands for a width
    values: Values
    """``values(tile, first, second, out)`` writes the values of the kernel with the first and
    second parameter on a tile (r, c) to `out`, float64."""
    parameters: tuple[Parameter, ...] = ()  # at most two
    base: Base | None = None  # that all kernels of the function share
    diagonal: Diagonal | None = None
    """``diagonal(points, first, second)`` returns ``k(x, x)``, (n,); None if it is always 1."""
    takes: Takes = Takes.NUMBERS  # points that the function is defined on
    note: str = ""  # a sentence on points, use or source

    @property
    def label(self) -> str:
        """The name in sweep files and results."""
        return self.name

    @property
    def class_name(self) -> str:
        """Name of the class in Python, such as ``ChiSquared``."""
        return "".join(word.capitalize() for word in self.name.removesuffix("-rbf").split("-"))

    @property
    def norm(self) -> float:
        """The norm of differences of points that its widths are compared with; 0 for none."""
        return 0 if self.base is None or WIDTH not in self.parameters else self.base.norm

    @property
    def keys(self) -> list[str]:
        """The keys of its parameters in a sweep file and in Python."""
        found = [parameter.key for parameter in self.parameters]
        return [found[0], RELATIVE, *found[1:]] if self.norm else found

    def head(self, first: float, second: float) -> str:
        """Return name and parameters as text; the second where it is not its default.

        >>> from mkldist.kernel_functions import FUNCTIONS
        >>> FUNCTIONS["polynomial"].head(2.0, 1.0), FUNCTIONS["matern"].head(0.5, 2.5)
        ('polynomial(2)', 'matern(0.5, nu=2.5)')
        """
        said = [
            f"{value:.6g}" if place == 0 else f"{parameter.name}={value:.6g}"
            for place, (parameter, value) in enumerate(self.settings(first, second))
            if place == 0 or value != parameter.default
        ]
        return f"{self.name}({', '.join(said)})" if said else self.name

    def settings(self, first: float, second: float) -> Sequence[tuple[Parameter, float]]:
        """Return the parameters with their values."""
        return list(zip(self.parameters, (first, second), strict=False))


def kernel_words(label: str) -> str:
    """Return "a gaussian kernel" or "an intersection kernel" for messages."""
    article = "an" if label[:1].lower() in "aeiou" else "a"
    return f"{article} {label} kernel"
