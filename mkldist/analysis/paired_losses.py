"""Rules that every comparison of two methods on the splits of one data set keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mkldist.analysis.resampling import (
    Overlap,
    Posterior,
    corrected_t_test,
    correlated_posterior,
)
from mkldist.arrays import Floats

if TYPE_CHECKING:
    import xarray as xr

SIGNIFICANCE = 0.05
"""P-values below it are called significant."""
ROPE = 0.01
"""Half the width of the region of equivalence: of an error, or as a share of another loss."""


def is_error(loss: str) -> bool:
    """Return True for the name of a share of wrong predictions, which has no unit."""
    return loss.endswith("error")


def region(loss: str, size: float, rope: float | None = None) -> float:
    """Return half the width of the region of practical equivalence, in units of the loss.

    Parameters
    ----------
    loss : str
        Name of the loss.
    size : float
        Mean loss of the second method.
    rope : float, optional
        The half width that the user asked for.

    Examples
    --------
    >>> region("test_error", 0.2), region("rmse", 300.0), region("rmse", 300.0, 0.5)
    (0.01, 3.0, 0.5)
    """
    if rope is not None:
        return rope
    return ROPE if is_error(loss) else ROPE * abs(size)


def overlap_of(data: xr.Dataset, splits: Sequence[int] | None = None) -> Overlap:
    """Return the mean sizes of the parts of some splits, by default of all.

    Parameters
    ----------
    data : Dataset
        A method's runs, with ``n_train``, ``n_test`` and ``n_unlabelled`` along ``split``.  The
        scored part is the unlabelled one where no split has a test part.
    splits : sequence of int, optional
        Positions of the splits.
    """
    places = list(range(data.sizes["split"])) if splits is None else list(splits)

    def mean(name: str) -> float:
        return float(data[name].to_numpy()[places].mean())

    n_test = mean("n_test") or mean("n_unlabelled")
    return Overlap(mean("n_train"), n_test, independent=len(places) == 1)


def only_shifted(differences: Floats) -> bool:
    """Return True if all differences are the same other than 0: their spread tells nothing.

    Errors of few rows are coarse, so that a few splits may have equal differences by chance.  A
    test that took their spread for zero would be sure of anything.
    """
    size = float(np.abs(differences).max())
    return size > 0.0 and float(np.ptp(differences)) <= 1e-12 * size


def inference(differences: Floats, overlap: Overlap, rope: float) -> tuple[float, Posterior]:
    """Return the p-value of the corrected t-test, and the posterior of the correlated t-test.

    Parameters
    ----------
    differences : (J,) float64
        Differences of two methods' losses on the splits.
    overlap : Overlap
        Sizes of the parts.
    rope : float
        As :func:`region` returns it.

    Returns
    -------
    p_value : float
    posterior : Posterior
        All NaN where no test applies: for one split, and where :func:`only_shifted` is true.
    """
    if len(differences) < 2 or only_shifted(differences):
        return math.nan, Posterior(math.nan, math.nan, math.nan)
    p_value = corrected_t_test(differences, overlap).p_value
    return p_value, correlated_posterior(differences, overlap, rope)
