"""Lower bounds with the kernels themselves, for solutions that were found on factors of them.

A dual point is feasible whatever the kernels are.  With the quadratic forms of the kernels
themselves its dual value therefore bounds the optimum with the kernels from below.  One pass over
the kernels gives the forms.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from mkldist.arrays import Floats
from mkldist.gram.requests import Diagonal, Quadratic, Request
from mkldist.optim.form_rounding import form_rounding


def largest_forms(vectors: Floats) -> Generator[Request, Any, Floats]:
    """Ask for upper bounds of ``v'K_m v`` that rounding cannot break.

    Parameters
    ----------
    vectors : (n, R) float64
        The vectors v.

    Returns
    -------
    (M, R) float64
    """
    forms: Floats = yield Quadratic(vectors)
    energies: Floats = yield Diagonal(vectors**2)
    return forms + form_rounding(forms, energies, len(vectors))


def best_multiple(height: float, form: float) -> float:
    """Return ``max_t { t height - t^2/2 form }`` over 0 <= t <= 1.

    It is the dual value of the best multiple of a machine's dual point alpha.

    Parameters
    ----------
    height : float
        ``1'alpha``, or less.
    form : float
        Its quadratic form, or more.
    """
    t = height / form if form > height else 1.0
    return t * height - 0.5 * t**2 * form
