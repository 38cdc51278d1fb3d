"""Default kernels of the estimators: a modest bank for features of standard deviation 1."""

from __future__ import annotations

import math

from mkldist.kernels.words import Gaussian, Kernel, Linear

RELATIVE_WIDTHS = (0.25, 0.5, 1.0, 2.0)  # times the root of the number of features
MOST_SINGLE_FEATURES = 100  # with more, no kernels on single features


def gaussians(n_features: int) -> Gaussian:
    """Return Gaussians of four widths on all features.

    Between points of d features of standard deviation 1, squared distances are 2d on average.  The
    widths are therefore multiples of the root of d.

    Parameters
    ----------
    n_features : int
        Number d of features.

    Examples
    --------
    >>> gaussians(4)
    Gaussian(width=(0.5, 1.0, 2.0, 4.0), features='all')
    """
    return Gaussian(width=tuple(share * math.sqrt(n_features) for share in RELATIVE_WIDTHS))


def default_kernels(n_features: int) -> list[Kernel]:
    """Return Gaussians and a linear kernel on all features, and a Gaussian on each.

    Parameters
    ----------
    n_features : int
        Number d of features; above a hundred there is none on single features.
    """
    on_all = [gaussians(n_features), Linear()]
    if n_features > MOST_SINGLE_FEATURES:
        return on_all
    return [*on_all, Gaussian(width=1.0, features="each")]
