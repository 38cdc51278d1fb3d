"""Kernels of estimators: a modest bank by default, and those that they cannot take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from mkldist.errors import SpecError
from mkldist.kernels.precomputed import Precomputed
from mkldist.kernels.words import Gaussian, Kernel, Linear, Spectrum

RELATIVE_WIDTHS = (0.25, 0.5, 1.0, 2.0)  # times the root of the number of features
LENGTHS = (1, 2, 3)  # of substrings of texts
MOST_SINGLE_FEATURES = 100  # with more, no kernels on single features

OWN_GRAMS = (
    "Give the numbers of rows as X, and a kernel of your own that reads Gram matrices at them, as "
    "the class shows; or call mkldist.KernelBank.from_grams and mkldist.solve"
)


def refuse_grams(kernels: Any) -> None:
    """Refuse Gram matrices among kernels: scikit-learn divides rows, and knows no matrices.

    Raises
    ------
    mkldist.errors.SpecError
        Saying how an estimator uses them all the same; for what is no list, too.
    """
    shape = getattr(kernels, "shape", None)
    if shape is None and kernels is not None and not isinstance(kernels, Iterable):
        expected = "a list of kernels, or the name of a family"
        raise SpecError("kernels", f"{kernels!r:.60}", expected)
    for kernel in [kernels] if shape is not None else list(kernels or ()):
        if isinstance(kernel, Precomputed) or hasattr(kernel, "shape"):
            found = "Precomputed" if isinstance(kernel, Precomputed) else "an array"
            found += " in an estimator, whose rows scikit-learn divides"
            raise SpecError("kernels", found, "kernels of features", OWN_GRAMS)


def gaussians(n_features: int, features: str = "all", unit: float = 1.0) -> Gaussian:
    """Return Gaussians of four widths on some features together, by default on all.

    Between points of d features of standard deviation 1, squared distances are 2d on average.  The
    widths are therefore multiples of the root of d.

    Parameters
    ----------
    n_features : int
        Number d of these features.
    features : str
        Their word or the name of their group.
    unit : float
        Their standard deviation, the root of the mean of their variances.

    Examples
    --------
    >>> gaussians(4)
    Gaussian(width=(0.5, 1.0, 2.0, 4.0), features='all')
    """
    root = unit * math.sqrt(n_features)
    return Gaussian(width=tuple(share * root for share in RELATIVE_WIDTHS), features=features)


def default_kernels(
    n_features: int,
    views: Mapping[str, int] | None = None,
    unit: float = 1.0,
    *,
    linear: bool = True,
    texts: bool = False,
) -> list[Kernel]:
    """Return Gaussians and a linear kernel on all features, or on each view, and single Gaussians.

    Columns of texts have spectrum kernels of short substrings.

    Parameters
    ----------
    n_features : int
        Number d of features; above a hundred there is none on single features.
    views : mapping of str to int, optional
        Numbers of the features of views.
    unit : float
        As for :func:`gaussians`.
    linear : bool
        False for the Gaussians on several features alone.
    texts : bool
        True if there are columns of texts.
    """
    found: list[Kernel] = [Spectrum(length=LENGTHS, features="each")] if texts else []
    for name, count in (views or ({"all": n_features} if n_features else {})).items():
        found.append(gaussians(count, name, unit))
        if linear:
            found.append(Linear(features=name))
    if not linear or not 0 < n_features <= MOST_SINGLE_FEATURES:
        return found
    return [*found, Gaussian(width=unit, features="each")]


def unit_of(points: Any) -> float:
    """Return the root of the mean of the variances of sparse features (n, d); 1 if all are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> unit_of(csr_array(np.array([[2.0, 0.0], [0.0, 2.0]])))
    1.0
    """
    means = points.mean(axis=0)
    variance = float((points.multiply(points).mean(axis=0) - means * means).mean())
    return math.sqrt(variance) if variance > 0.0 else 1.0
