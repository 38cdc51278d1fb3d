"""Rules that every comparison of two methods on the splits of one data set keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.analysis.resampling import (
    Interval,
    Overlap,
    Posterior,
    corrected_t_test,
    correlated_posterior,
    loss_interval,
)
from mkldist.core.arrays import Array, Bools, Floats
from mkldist.core.metrics import METRICS, Metric, metric_of_variable

if TYPE_CHECKING:
    import xarray as xr

SIGNIFICANCE = 0.05
"""P-values below it are called significant."""
ROPE = 0.01
"""Half the width of the region of equivalence: of a share, or relative to another loss."""


LABEL_UNITS = "units of the labels"


def in_units(loss: str) -> bool:
    """Return True for the name of a loss in the units of the labels."""
    return not metric_of_variable(loss).unit


def is_share(loss: str) -> bool:
    """Return True for the name of a loss between 0 and 1, such as an error or 1 less an AUC."""
    return metric_of_variable(loss).most == 1.0


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
    return ROPE if is_share(loss) else ROPE * abs(size)


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


def scored_part(splits: Mapping[str, Array]) -> str:
    """Return the part of the splits that is scored: ``unlabelled`` where none has test rows."""
    return "test" if np.any(splits.get("n_test", 1)) else "unlabelled"


@dataclass(frozen=True)
class Tested:
    """How many rows tell the losses of some splits.

    Parameters
    ----------
    overlap : Overlap
        Mean sizes of the parts.
    n_rows : float
        Rows that were tested, each counted once.
    n_rarest : float
        Of these, rows of the rarest class.
    """

    overlap: Overlap
    n_rows: float
    n_rarest: float

    @classmethod
    def of(cls, splits: Mapping[str, Array], known: Bools, part: str = "test") -> Tested:
        """Return those of the known splits of a part.

        Parameters
        ----------
        splits : mapping of str to (J,) array
            The coordinates ``n_train``, ``n_test``, ``n_unlabelled``, ``n_new`` and ``n_rarest``;
            those that are missing count as 0.
        known : (J,) bool
            The splits.
        part : {"test", "unlabelled"}
            Part of the splits that is scored.
        """
        names = ("n_train", f"n_{part}", "n_new", "n_rarest")
        n_train, n_test, n_new, n_rarest = (
            float(splits[name][known].sum()) if name in splits else 0.0 for name in names
        )
        n_splits = int(known.sum())
        overlap = Overlap(max(n_train, 1.0) / n_splits, n_test / n_splits, n_splits == 1)
        return cls(overlap, n_new, n_rarest * n_new / max(n_test, 1.0))

    def interval(self, losses: Floats, metric: Metric) -> Interval:
        """Return the mean and the 95 % interval of a metric's losses on these splits.

        A score of the order of decision values, or of one class, tells no more than the rows of
        the rarest class do; one that averages over classes, twice as much.
        """
        by_name = {"error": self.n_rows, "balanced_error": 2.0 * self.n_rarest}
        n = by_name.get(metric.name, self.n_rows if metric.probabilities else self.n_rarest)
        n = min(n, self.n_rows) if metric.task == "classification" else self.n_rows
        return loss_interval(losses, self.overlap, n, metric.most)


def beats(losses: Floats, constants: Floats, high: float, overlap: Overlap) -> bool:
    """Return True if losses are less than those of a constant prediction, as far as splits tell.

    The corrected resampled t-test decides, one-sided at 0.05.  Where it does not apply, for one
    split, equal differences or fewer training rows than test rows, the upper end of the interval
    of the mean loss does; without an interval, the mean.

    Parameters
    ----------
    losses, constants : (J,) float64
        On the same splits.
    high : float
        Upper end of the interval of the mean loss.
    overlap : Overlap
        Sizes of the parts.
    """
    differences = losses - constants
    mean = float(differences.mean())
    if mean >= 0.0:
        return False
    few = overlap.n_train < overlap.n_test
    if len(differences) < 2 or only_shifted(differences) or few:
        return bool(math.isnan(high) or high < float(constants.mean()))
    return corrected_t_test(differences, overlap).p_value / 2.0 < SIGNIFICANCE


@dataclass(frozen=True)
class Standing:
    """A score of a method beside that of the best constant prediction.

    Parameters
    ----------
    metric : Metric
        The score.
    part : str
        Part of the splits that is scored, ``test`` or ``unlabelled``.
    n_splits : int
        Number of splits.
    mean, low, high : float
        Mean over the splits, and its 95 % interval.
    constant : float
        Mean of the constant prediction; NaN if it is not known.
    no_better : bool
        True if the score is no better, see :func:`beats`; False where it is not known.
    """

    metric: Metric
    part: str
    n_splits: int
    mean: float
    low: float
    high: float
    constant: float
    no_better: bool

    @classmethod
    def of(
        cls, values: Floats, metric: Metric, splits: Mapping[str, Array], part: str
    ) -> Standing | None:
        """Return the standing of a metric's values; None if there are none.

        Parameters
        ----------
        values : (J,) float64
            Values on the splits; NaN for those without.
        metric : Metric
            The metric.
        splits : mapping of str to (J,) array
            As for :meth:`Tested.of`, with ``constant_score`` if that is known.
        part : {"test", "unlabelled"}
            Part of the splits that is scored.
        """
        known = ~np.isnan(values)
        if not known.any():
            return None
        losses, tested = metric.loss(values[known]), Tested.of(splits, known, part)
        interval = tested.interval(losses, metric)
        low, high = np.sort(metric.loss(np.array(interval[1:]))).tolist()
        constants = np.full(len(losses), np.nan)
        if "constant_score" in splits:
            constants = metric.loss(np.asarray(splits["constant_score"], dtype=np.float64)[known])
        no_better = not np.isnan(constants).any() and not beats(
            losses, constants, interval.high, tested.overlap
        )
        constant = float(metric.loss(constants.mean()))
        mean = float(metric.loss(interval.mean))
        return cls(metric, part, len(losses), mean, low, high, constant, no_better)

    @property
    def score(self) -> str:
        """The score with its interval, in words."""
        return f"{self.metric.words} {self.metric.text(self.mean, self.low, self.high)}"

    @property
    def over(self) -> str:
        """The parts that are scored, in words."""
        if self.n_splits == 1:
            return f"on the {self.part} part of one split"
        return f"on the {self.part} parts of {self.n_splits} splits"

    @property
    def words(self) -> str:
        """What the splits say of a method that is no better than a constant prediction."""
        constant = constant_words(self.metric, self.constant)
        return f"no better than {constant}: {self.score}, the 95 % interval, {self.over}"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON takes them; numbers that are not known are null."""
        numbers = {name: getattr(self, name) for name in ("mean", "low", "high", "constant")}
        return {
            "metric": self.metric.name,
            "part": self.part,
            "splits": self.n_splits,
            **{name: None if math.isnan(value) else value for name, value in numbers.items()},
            "no_better": self.no_better,
        }


def standing_in(facts: Mapping[str, Any]) -> Standing | None:
    """Return the standing in the facts of a model; None without one."""
    fields = facts.get("standing")
    if fields is None:
        return None
    names = ("mean", "low", "high", "constant")
    numbers = {n: math.nan if fields[n] is None else float(fields[n]) for n in names}
    metric, known = METRICS[fields["metric"]], bool(fields["no_better"])
    return Standing(metric, fields["part"], fields["splits"], **numbers, no_better=known)


def constant_words(metric: Metric, value: float) -> str:
    """Return what a constant prediction is and scores.

    Examples
    --------
    >>> constant_words(METRICS["error"], 0.2611)
    'always answering the majority (error 26.11 %)'
    >>> constant_words(METRICS["brier"], 0.19)
    'always answering the shares of the classes (Brier score 0.190)'
    """
    if metric.probabilities:
        answer = "the shares of the classes"
    elif metric.task == "regression":
        answer = "the median" if metric.name == "mae" else "the mean"
    else:
        answer = "one class" if metric.name == "f1" else "the majority"
    known = "" if math.isnan(value) else f" ({metric.words} {metric.text(value)})"
    return f"always answering {answer}{known}"


TO_TRY = (
    'Unless set, try metric = "balanced_error" and class_weight = "balanced" for unequal classes;',
    "else another normalisation, other kernel widths, a wider grid of C, or more rows.",
)
"""Lines of what may help where nothing beats a constant prediction."""


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
