"""Data of a picture of a decision boundary: the points, and the function on a grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mkldist.bank.recomputed import RecomputedBank
from mkldist.bank.view import make_views
from mkldist.core.arrays import Floats, Ints
from mkldist.data.dataset import Dataset, Split
from mkldist.data.preprocessing import feature_scale, filled
from mkldist.fit.decision import BankFunctions, Expansion
from mkldist.fit.problem import BankInputs
from mkldist.planning.model import BankPlan
from mkldist.results.record import RunRecord

GRID = 240  # points along each side
MARGIN = 0.08  # of the spread of the points, around them
ALIKE = 3.0  # largest ratio of the spreads of two features that are drawn to one scale
CACHED_BYTES = 2**26


@dataclass(frozen=True, eq=False)
class Boundary:
    """A decision function of two features and the points around it."""

    # (str, str): Names of the features on the horizontal and the vertical axis
    feature_names: tuple[str, str]
    class_names: tuple[str, ...]  # Names of the k classes
    points: Floats  # (n, 2) float64: All points, in the units of the data, missing values filled
    numbers: Ints  # (n,) intp: Position of each point's class in `class_names`
    # Points by role: ``labelled`` (``training`` in supervised learning), ``unlabelled`` and
    # ``test``. Roles without points are left out
    roles: Mapping[str, Ints]
    # ((g,) float64, (g,) float64): Values of the features along the grid
    axes: tuple[Floats, Floats]
    # (1, g, g) or (k, g, g) float64: The decision function, or that of each of k > 2 classes;
    # rows follow the second feature
    values: Floats

    @property
    def to_scale(self) -> bool:
        """True if both features span about the same range, so that circles can look round."""
        spans = [float(axis[-1] - axis[0]) for axis in self.axes]
        return max(spans) <= ALIKE * min(spans)


def boundary(
    bank: BankPlan, dataset: Dataset, splits: Sequence[Split], record: RunRecord
) -> Boundary:
    """Evaluate a run's decision function around the points of its data set.

    Kernels are computed from the features again, so the bank need not be stored.
    """
    if dataset.x is None or dataset.classes is None:
        raise ValueError(f"{dataset.name}: a boundary needs features and classes")
    split = splits[record.split]
    points = filled(bank.preprocessing, dataset, split)
    axes = _axes(points)
    grid = np.column_stack([side.ravel() for side in np.meshgrid(*axes)])
    function = decision_function(bank, dataset, splits, record)
    first, second = dataset.feature_names
    return Boundary(
        feature_names=(first, second),
        class_names=dataset.classes,
        points=np.asarray(points),
        numbers=dataset.class_numbers,
        roles=_roles(split),
        axes=axes,
        values=function(grid).reshape(-1, len(axes[1]), len(axes[0])),
    )


def decision_function(
    bank: BankPlan, dataset: Dataset, splits: Sequence[Split], record: RunRecord
) -> Callable[[Floats], Floats]:
    """Return the decision function of a run; parameters as for :func:`boundary`.

    Takes points (r, 2) in the units of the data, and returns (k, r) values, or (1, r) for two
    classes.
    """
    inputs = BankInputs.of(bank.spec, bank.preprocessing, dataset, splits, bank.split, bank.seed)
    if inputs.points is None or inputs.kernels is None or inputs.kernels.of_features is None:
        raise ValueError(f"{dataset.name}: a boundary needs kernels of features")
    kernels, learnt = inputs.kernels.of_features, inputs.points[record.train_rows]
    recomputed = RecomputedBank(inputs.source(), CACHED_BYTES)
    try:
        (view,) = make_views(
            recomputed, [inputs.bank_points(record.train_rows)], inputs.view_normalisations
        )
        functions = [
            Expansion.of(kernels, inputs.cosine, learnt, BankFunctions.of(view, *terms))
            for terms in _terms(record)
        ]
    finally:
        recomputed.close()
    split = None if bank.split is None else splits[bank.split]
    points = filled(bank.preprocessing, dataset, split)
    scale = feature_scale(bank.preprocessing, np.asarray(points), split)

    def values(x: Floats) -> Floats:
        return np.concatenate([one.values(scale.scaled(x)).T for one in functions])

    return values


def _terms(record: RunRecord) -> list[tuple[Floats, Floats, float]]:
    """Return kernel weights, coefficients and bias, of each class if there are more than two."""
    own, weights = record.kernel_coefficients, record.kernel_weights
    if "class_bias" not in record.of_classes:
        return [(weights, own if own.size else record.coefficients, record.bias)]
    biases = record.of_classes["class_bias"].tolist()
    weights = np.broadcast_to(weights, (len(biases), record.n_kernels))
    ends = np.cumsum(np.count_nonzero(weights, axis=1))[:-1]
    coefficients = np.split(own, ends) if own.size else record.coefficients
    return list(zip(weights, coefficients, biases, strict=True))


def _axes(x: Floats) -> tuple[Floats, Floats]:
    """Return the axes of a grid that covers all points and a margin around them."""
    low, high = x.min(axis=0), x.max(axis=0)
    room = MARGIN * (high - low)
    first, second = np.linspace(low - room, high + room, GRID).T
    return first, second


def _roles(split: Split) -> dict[str, Ints]:
    """Return the points of a split by their role."""
    known = "labelled" if len(split.unlabelled) else "training"
    roles = {known: split.train, "unlabelled": split.unlabelled, "test": split.test}
    return {name: rows for name, rows in roles.items() if len(rows)}
