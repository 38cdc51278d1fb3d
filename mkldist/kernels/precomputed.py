"""Gram matrices that stand beside kernel functions in the list of a bank's kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mkldist.kernels.words import Kernel
from mkldist.spec.banks import PRECOMPUTED


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

    Examples
    --------
    >>> import numpy as np
    >>> Precomputed(np.eye(3), name="strings").entry()
    {'function': 'precomputed', 'features': 'strings'}
    """

    function = PRECOMPUTED

    grams: Any
    name: str = "given"

    __eq__ = object.__eq__  # matrices are not compared
    __hash__ = object.__hash__

    def entry(self) -> dict[str, Any]:
        """Return the entry of ``[[banks.kernels]]`` that names the view."""
        return {"function": self.function, "features": self.name}

    def __repr__(self) -> str:
        """Return the name alone: matrices are large."""
        return f"Precomputed(name={self.name!r})"
