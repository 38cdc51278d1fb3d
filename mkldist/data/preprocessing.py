"""Feature scaling, fitted on training rows or on all."""

from __future__ import annotations

import numpy as np

from mkldist.data.dataset import Floats, Split
from mkldist.errors import DataError
from mkldist.spec.model import PreprocessingSpec


def scaled(spec: PreprocessingSpec, x: Floats, split: Split | None = None) -> Floats:
    """Return all rows of `x`, scaled by statistics of the training rows or of all rows.

    ``zscore`` subtracts the mean and divides by the standard deviation (of the population);
    ``minmax`` maps the range of the fitted rows onto [-1, 1].  A feature that is constant on the
    fitted rows is only shifted, to 0 on these rows.

    Parameters
    ----------
    spec : PreprocessingSpec
        What to do and where to fit it.
    x : (n, d) float64
        Features, finite.
    split : Split, optional
        With ``fit = "train"``, whose training rows to fit on; None fits on all rows.

    Returns
    -------
    (n, d) float64
        Scaled features; `x` itself with ``scale = "none"``.

    Raises
    ------
    DataError
        If values are so large that their spread exceeds the range of float64.
    """
    if spec.scale == "none":
        return x
    fitted = x if spec.fit == "all" or split is None else x[split.train]
    low, high = fitted.min(axis=0), fitted.max(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        if spec.scale == "zscore":
            centre, spread = fitted.mean(axis=0), fitted.std(axis=0)
        else:
            centre, spread = low / 2 + high / 2, high / 2 - low / 2
        # Rounding gives a constant a tiny spread, or a mean beside it.
        constant = (low == high) | (spread == 0)
        result = (x - np.where(constant, low, centre)) / np.where(constant, 1.0, spread)
    bad = np.flatnonzero(~np.isfinite(result).all(axis=0) | ~np.isfinite(spread))
    if len(bad):
        raise DataError(
            f"scaling of feature {bad[0]} (from 0)",
            f"values from {x[:, bad[0]].min():g} to {x[:, bad[0]].max():g}",
            "values whose squares are finite in float64",
            "Rescale this feature in the data.",
        )
    return np.asarray(result)
