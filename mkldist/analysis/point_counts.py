"""Two methods on the scored points of each split, where predictions were kept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mkldist.analysis.over_data_sets import holm
from mkldist.analysis.paired_losses import SIGNIFICANCE
from mkldist.analysis.paired_points import McNemar, mcnemar
from mkldist.analysis.pairing import Chosen, Pair
from mkldist.arrays import Bools, Floats, Ints
from mkldist.results.run_record import RunRecord
from mkldist.scores import predicted_classes


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

    Parameters
    ----------
    pair : Pair
        The methods.

    Returns
    -------
    PointCounts or None
        None for regression, and where predictions were not kept.
    """
    if not pair.first.loss.endswith("error"):
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

    Parameters
    ----------
    side : Chosen
        A method of classification.
    split : int
        Position of the split.

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
