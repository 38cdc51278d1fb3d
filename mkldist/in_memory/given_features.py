"""Features that a user gives :class:`mkldist.KernelBank`: conversion and checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.arrays import Floats
from mkldist.data.frames import frame_features
from mkldist.data.missing import check_values
from mkldist.data.raw import as_features
from mkldist.errors import DataError, GramError, nearest
from mkldist.in_memory.given_arrays import real_array


@dataclass(frozen=True, eq=False)
class Features:
    """Points with the names of their features.

    Parameters
    ----------
    points : (n, d) float64
        The points, finite.
    names : tuple of str
        d names; ``x0``, ``x1`` and so on for an array.
    named : bool
        True if the user gave the names: the columns of a DataFrame.
    """

    points: Floats
    names: tuple[str, ...]
    named: bool

    @classmethod
    def of(cls, given: Any, where: str = "X") -> Features:
        """Return a DataFrame or an array-like (n, d) of numbers, checked.

        Raises
        ------
        mkldist.errors.DataError
            For other shapes, texts, missing or infinite values, and columns of the same name.
        """
        named = hasattr(given, "columns") and hasattr(given, "to_numpy")
        if named:
            names = tuple(map(str, given.columns))
            twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
            if twice is not None:
                raise DataError(
                    where, f"two columns {twice!r}", "a name of its own for every column"
                )
            points = frame_features(given, where)
        else:
            points = _array(given, where)
            names = tuple(f"x{j}" for j in range(points.shape[1]))
        if not len(points):
            raise DataError(where, "no rows", "at least one point")
        return cls(_finite(points, names, where), names, named)

    def like(self, given: Any, where: str = "X_new") -> Floats:
        """Return new points with the same features, (t, d), columns of a DataFrame by their names.

        Raises
        ------
        mkldist.errors.DataError
            For other columns, and as :meth:`of`.
        """
        new = Features.of(given, where)
        if new.named and self.named:
            missing = [name for name in self.names if name not in new.names]
            others = [name for name in new.names if name not in self.names]
            if missing or others:
                found = f"no column {missing[0]!r}" if missing else f"a column {others[0]!r}"
                hint = nearest(missing[0], others) if missing else "Leave it out"
                raise DataError(
                    where, found, f"the {len(self.names)} columns that the bank was made of", hint
                )
            return np.ascontiguousarray(
                new.points[:, [new.names.index(name) for name in self.names]]
            )
        if len(new.names) != len(self.names):
            raise DataError(
                where, f"{len(new.names)} columns", f"{len(self.names)}, as the bank was made of"
            )
        return new.points


def _array(given: Any, where: str) -> Floats:
    """Return an array-like as (n, d) float64."""
    try:
        return as_features(real_array(given, where, "(n, d) numbers"), where)
    except GramError as error:
        raise DataError(error.where, error.found, error.expected, error.hint) from None


def _finite(points: Floats, names: Sequence[str], where: str) -> Floats:
    """Return points without missing values; the hint is one for arrays, not for sweep files."""
    try:
        check_values(points, names, None, where)
    except DataError as error:
        hint = "Fill them or remove those rows or columns before"
        raise DataError(where, error.found, error.expected, hint) from None
    return points
