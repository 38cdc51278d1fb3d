"""How much kernel weights change from iteration to iteration, by the traces of runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floats

if TYPE_CHECKING:
    import xarray as xr


def weight_changes(trace: xr.Dataset) -> Floats:
    """Return the mean change of the five largest kernel weights between two iterations of each run.

    A change is the sum of ``|d_m(t) - d_m(t - 1)|`` over the kernels that are among the five
    largest in one of the two iterations; a weight that is not kept counts as 0.

    Parameters
    ----------
    trace : xarray.Dataset
        The group ``convergence`` of a method at one setting, with the dim ``split``.

    Returns
    -------
    (J,) float64
        One number a split; NaN for a run without two iterations.
    """
    parts = [
        trace[name].transpose("split", "iteration", "rank").to_numpy()
        for name in ("largest_kernels", "largest_weights")
    ]
    return np.array([_mean_change(names, weights) for names, weights in zip(*parts, strict=True)])


def _mean_change(names: npt.NDArray[np.object_], weights: Floats) -> float:
    """Return the mean change of one run, of names and weights (T, R); '' where there is none."""
    known = names != ""
    last = int(known.any(axis=1).sum())
    if last < 2:
        return math.nan
    kept = np.where(known, weights, 0.0)
    now, before = slice(1, last), slice(last - 1)
    same = (names[now, :, None] == names[before, None, :]) & known[now, :, None]
    followed = np.abs(kept[now, :, None] - kept[before, None, :])
    change = np.where(same, followed, 0.0).sum(axis=(1, 2))
    change += np.where(same.any(axis=2), 0.0, kept[now]).sum(axis=1)  # came among the largest
    change += np.where(same.any(axis=1), 0.0, kept[before]).sum(axis=1)  # left them
    return float(change.mean())
