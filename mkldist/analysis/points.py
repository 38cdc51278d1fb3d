"""Methods compared on single points: McNemar's test, of one split and of all points together."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from mkldist.analysis.over_data_sets import holm
from mkldist.analysis.paired_losses import SIGNIFICANCE
from mkldist.analysis.pairing import Chosen, Pair, Results, methods_by_data_set
from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.core.metrics import metric_of_variable
from mkldist.results.record import RunRecord
from mkldist.results.schema import STATE, RunState
from mkldist.scores import predicted_classes

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import pandas as pd


EXACT_LIMIT = 1000  # discordant points up to which the binomial sum is taken, as cheap as exact


class McNemar(NamedTuple):
    """Result of McNemar's test.

    Parameters
    ----------
    first_only, second_only : int
        Points that the first method alone has right, and the second alone.
    p_value : float
        Two-sided p-value of equal error rates.
    """

    first_only: int
    second_only: int
    p_value: float

    @classmethod
    def of(cls, first_only: int, second_only: int) -> McNemar:
        """Test by the numbers of points that one method alone has right."""
        b, c = first_only, second_only
        if b + c == 0:
            return cls(b, c, 1.0)
        if b + c <= EXACT_LIMIT:
            return cls(b, c, float(scipy.stats.binomtest(b, b + c).pvalue))
        statistic = max(abs(b - c) - 1, 0) ** 2 / (b + c)
        return cls(b, c, float(scipy.stats.chi2.sf(statistic, 1)))

    def points(self, significance: float = 0.05) -> tuple[float, float]:
        """Return the points of both methods: 1 to one that is better, 0 to the other, or ½ each.

        Do, Kalousis, Woznica & Hilario (2009) add them over data sets to rank methods.
        """
        if self.p_value >= significance or self.first_only == self.second_only:
            return 0.5, 0.5
        return (1.0, 0.0) if self.first_only > self.second_only else (0.0, 1.0)


def mcnemar(first_right: npt.NDArray[np.bool_], second_right: npt.NDArray[np.bool_]) -> McNemar:
    """Test whether two methods have the same error rate on the same points (McNemar 1947).

    Under equal rates the number of points that the first method alone has right is binomial with
    probability ½ among those that exactly one has right.  The test is exact up to a thousand such
    points, and the chi-squared approximation with continuity correction beyond.

    Parameters
    ----------
    first_right, second_right : (t,) bool
        True where a method predicts the point's class.

    Raises
    ------
    ValueError
        If the lengths differ.
    """
    first, second = np.asarray(first_right, bool), np.asarray(second_right, bool)
    if first.shape != second.shape:
        raise ValueError(f"found {len(first)} and {len(second)} points; expected the same points")
    return McNemar.of(int((first & ~second).sum()), int((second & ~first).sum()))


class PointCounts(NamedTuple):
    """McNemar's test on the scored points of each split, with Holm's correction over the splits.

    Parameters
    ----------
    first_better, second_better, undecided : int
        Splits by the result of the test at the level 0.05.
    first_only, second_only : int
        Points that one method alone has right, summed over the splits.
    smallest_p : float
        Least adjusted p-value.
    """

    first_better: int
    second_better: int
    undecided: int
    first_only: int
    second_only: int
    smallest_p: float


def point_counts(pair: Pair) -> PointCounts | None:
    """Return McNemar's tests of two methods on the scored points of each split.

    Returns
    -------
    PointCounts or None
        None for regression, and where predictions were not kept.
    """
    if metric_of_variable(pair.first.loss).task == "regression":
        return None
    tests = []
    for i, j in pair.splits:
        right = [right_points(side, place) for side, place in ((pair.first, i), (pair.second, j))]
        if right[0] is None or right[1] is None or len(right[0]) != len(right[1]):
            return None
        tests.append(mcnemar(right[0], right[1]))
    adjusted = holm(np.array([test.p_value for test in tests]))
    decided = [
        McNemar(t.first_only, t.second_only, p) for t, p in zip(tests, adjusted, strict=True)
    ]
    points = [test.points(SIGNIFICANCE) for test in decided]
    wins, losses = points.count((1.0, 0.0)), points.count((0.0, 1.0))
    return PointCounts(
        wins,
        losses,
        len(points) - wins - losses,
        sum(test.first_only for test in tests),
        sum(test.second_only for test in tests),
        float(adjusted.min()),
    )


def right_points(side: Chosen, split: int) -> Bools | None:
    """Return which scored points of a split a method predicts right; None without predictions.

    Returns
    -------
    (t,) bool, or None
        In the order of the test rows; of the unlabelled ones where the loss is theirs.
    """
    record = side.records[split]
    if record is None or not len(record.decision_values) or "label" not in side.data.coords:
        return None
    labels = side.data["label"].to_numpy()
    n_test = int(side.data["n_test"].to_numpy()[split])
    scored = slice(n_test, None) if side.loss.startswith("unlabelled") else slice(n_test)
    predicted, known = _predicted(record, labels), _classes(labels[record.test_rows], record)
    right: Bools = predicted[scored] == known[scored]
    return right


def _predicted(record: RunRecord, labels: Floats) -> Ints:
    """Return the position of the class predicted at each row of a record."""
    values = record.decision_values
    if values.ndim == 1:
        found: Ints = (values >= 0.0).astype(np.intp)
        return found
    training = np.delete(labels, record.test_rows).astype(np.intp)
    counts = np.bincount(training, minlength=len(values))
    return predicted_classes(values, np.argsort(-counts, kind="stable"))


def _classes(labels: Floats, record: RunRecord) -> Ints:
    """Return the position of the class of each label."""
    found = labels > 0 if record.decision_values.ndim == 1 else labels
    positions: Ints = found.astype(np.intp)
    return positions


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
        if (
            metric_of_variable(one.loss).task == "regression"
            or one.place["bank"] != two.place["bank"]
        ):
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
