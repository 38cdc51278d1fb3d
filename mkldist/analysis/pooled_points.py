"""Points that methods win from each other over data sets, by McNemar's test."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mkldist.analysis.paired_losses import is_error
from mkldist.analysis.paired_points import mcnemar
from mkldist.analysis.pairing import Chosen, Results, methods_by_data_set
from mkldist.analysis.point_counts import right_points
from mkldist.arrays import Bools
from mkldist.results.schema import STATE
from mkldist.results.state import RunState

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import pandas as pd


class PairPoints(NamedTuple):
    """Points of two methods on one data set, which add up to 1."""

    first: float
    second: float


def mcnemar_points(results: str | Path | Results, methods: Collection[str] = ()) -> pd.DataFrame:
    """Return the points of each method on each data set (Do, Kalousis, Woznica & Hilario 2009).

    Every two methods share one point: the better one by McNemar's test at the level 0.05 has it,
    and each has ½ where the test tells no difference.  The test is on all scored points of a
    repetition, whose folds are disjoint; points are averaged over the repetitions.  A method of
    which every run failed loses its point to one that has results.

    Parameters
    ----------
    results : str, Path or Results
        Output folder of a sweep with ``[outputs] predictions = true``.
    methods : collection of str, optional
        Only these, each as METHOD or BANK/METHOD; by default all.

    Returns
    -------
    DataFrame
        A row a data set of classes, a column a method: its points, summed over the others on the
        same bank; NaN where it was compared with none.  ``.sum()`` ranks the methods.  Of several
        sizes of one data set the largest alone has a row.

    Raises
    ------
    mkldist.errors.StoreError
        If there are no results or they are damaged.

    Examples
    --------
    >>> from mkldist import analysis
    >>> analysis.mcnemar_points("results/rmkl_table2").sum()  # doctest: +SKIP
    """
    import pandas as pd

    found = results if isinstance(results, Results) else Results.of(results)
    rows = {dataset: _of_data_set(own) for dataset, own in methods_by_data_set(found, methods)}
    table = pd.DataFrame.from_dict(rows, orient="index", dtype=float)
    return table.rename_axis(index="dataset").dropna(how="all")


def pair_points(first: Chosen, second: Chosen) -> PairPoints | None:
    """Return the points of two methods on one data set, averaged over repetitions.

    Parameters
    ----------
    first, second : Chosen
        Methods of classification on the same splits of one sweep.  Splits on which one of them has
        no predictions are left out.

    Returns
    -------
    PairPoints or None
        None where no split has predictions of both, unless every run of one has failed.
    """
    pooled: dict[int, list[tuple[Bools, Bools]]] = {}
    for split, repeat in enumerate(first.data["repeat"].to_numpy().tolist()):
        one, two = right_points(first, split), right_points(second, split)
        if one is not None and two is not None:
            pooled.setdefault(repeat, []).append((one, two))
    if not pooled:
        return _by_failure(first, second)
    points = [
        mcnemar(*(np.concatenate(side) for side in zip(*folds, strict=True))).points()
        for folds in pooled.values()
    ]
    return PairPoints(*np.mean(points, axis=0).tolist())


def _of_data_set(methods: Mapping[str, Chosen]) -> dict[str, float]:
    """Return the points of each method of a data set, summed over the others on its bank."""
    points: dict[str, float] = {}
    for first, second in combinations(methods, 2):
        one, two = methods[first], methods[second]
        if not is_error(one.loss) or one.place["bank"] != two.place["bank"]:
            continue
        found = pair_points(one, two)
        if found is not None:
            points[first] = points.get(first, 0.0) + found.first
            points[second] = points.get(second, 0.0) + found.second
    return points


def _by_failure(first: Chosen, second: Chosen) -> PairPoints | None:
    """Return the points of two methods of which one alone has failed; None for others."""
    failed = [bool((side.data[STATE.name] == RunState.FAILED).all()) for side in (first, second)]
    if failed[0] and second.complete.any():
        return PairPoints(0.0, 1.0)
    if failed[1] and first.complete.any():
        return PairPoints(1.0, 0.0)
    return None
