"""Numbers of active kernels of methods, compared over data sets."""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import scipy

from mkldist.analysis.over_data_sets import holm, refuse_splits
from mkldist.analysis.paired_losses import only_shifted
from mkldist.analysis.pairing import Results, methods_by_data_set
from mkldist.core.arrays import Floats


def active_kernels(results: str | Path | Results, methods: Collection[str] = ()) -> pd.DataFrame:
    """Return the mean number of active kernels of each method on each data set.

    Parameters
    ----------
    results : str, Path or Results
        Output folder of a sweep.
    methods : collection of str, optional
        Only these, each as METHOD or BANK/METHOD; by default all.

    Returns
    -------
    DataFrame
        A row a data set, a column a method at its chosen settings: the mean over the complete runs;
        NaN without any.  Of several sizes of one data set the largest alone has a row.

    Raises
    ------
    mkldist.errors.StoreError
        If there are no results or they are damaged.
    """
    found = results if isinstance(results, Results) else Results.of(results)
    rows = {
        dataset: {name: _mean(one.values("active_kernels")) for name, one in own.items()}
        for dataset, own in methods_by_data_set(found, methods)
    }
    return pd.DataFrame.from_dict(rows, orient="index", dtype=float).rename_axis(index="dataset")


def compare_active_kernels(counts: pd.DataFrame) -> pd.DataFrame:
    """Compare the numbers of active kernels of every two methods by the paired t-test.

    Do, Kalousis, Woznica & Hilario (2009) test them so.  The pairs are the data sets, which are
    independent of each other, unlike the splits of one.

    Parameters
    ----------
    counts : DataFrame
        As :func:`active_kernels` returns it: a row a data set, a column a method.

    Returns
    -------
    DataFrame
        A row a pair with two data sets in common at least: ``first``, ``second``, ``n_datasets``,
        ``mean_difference`` (first minus second), ``p_value``, and ``p_holm``, adjusted for the
        number of pairs.  They are NaN where all differences are equal other than 0, which no test
        can judge.

    Raises
    ------
    mkldist.errors.InputError
        If the rows are splits of one data set, whose training parts overlap.
    """
    refuse_splits(counts)
    rows = []
    for first, second in combinations(counts.columns, 2):
        both = counts[[first, second]].dropna().to_numpy(float)
        if len(both) > 1:
            difference = float((both[:, 0] - both[:, 1]).mean())
            rows.append((first, second, len(both), difference, _paired_p_value(both)))
    columns = ["first", "second", "n_datasets", "mean_difference", "p_value"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(p_holm=holm(table["p_value"].to_numpy(float)))


def _paired_p_value(both: Floats) -> float:
    """Return the p-value of the paired t-test of two columns."""
    differences = both[:, 0] - both[:, 1]
    if not differences.any():
        return 1.0
    if only_shifted(differences):
        return math.nan
    return float(scipy.stats.ttest_rel(both[:, 0], both[:, 1]).pvalue)


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
