"""Rules that choose one setting by its validation errors on several folds or splits."""

from __future__ import annotations

from typing import Literal

import numpy as np

from mkldist.analysis.resampling import Overlap
from mkldist.arrays import Floats

Rule = Literal["best", "one_standard_error", "sparsest"]


def choose_setting(
    errors: Floats, simplicity: Floats, rule: Rule = "best", overlap: Overlap | None = None
) -> int:
    """Return the position of the setting that a rule chooses.

    Parameters
    ----------
    errors : (J, S) float64
        Validation error of each of S settings on each of J folds or splits.
    simplicity : (S,) float64
        What breaks ties, smaller first: for ``"one_standard_error"`` the order from strong to weak
        regularisation, for ``"sparsest"`` the mean number of active kernels.
    rule : {"best", "one_standard_error", "sparsest"}
        Least mean error; the simplest setting within one standard error of it (Breiman, Friedman,
        Olshen & Stone 1984); or the same by number of kernels.  The last two differ in what
        `simplicity` means only.
    overlap : Overlap, optional
        Sizes of training and test parts, for the standard error by Nadeau & Bengio; by default the
        folds count as independent.

    Raises
    ------
    ValueError
        If an error is missing, or a rule needs a standard error and there is one fold.
    """
    errors, simplicity = np.asarray(errors, float), np.asarray(simplicity, float)
    if np.isnan(errors).any():
        fold, setting = np.argwhere(np.isnan(errors))[0]
        raise ValueError(f"found no error of setting {setting} on fold {fold}; expected all errors")
    means, n_folds = errors.mean(axis=0), len(errors)
    limit = float(means.min())
    if rule != "best":
        if n_folds < 2:
            raise ValueError(f"found {n_folds} fold; expected at least two, for a standard error")
        best = int(means.argmin())
        factor = (overlap or Overlap(1.0, 1.0, independent=True)).variance_factor(n_folds)
        limit += float(errors[:, best].std(ddof=1) * np.sqrt(factor))
    within = np.flatnonzero(means <= limit)
    return int(within[np.lexsort((means[within], simplicity[within]))[0]])
