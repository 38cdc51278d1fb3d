"""Two methods, or one method in two sweeps, compared on the splits and points that they share."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from mkldist.analysis.losses import (
    ROPE,
    inference,
    is_share,
    number_of_settings,
    overlap_of,
    region,
)
from mkldist.analysis.pairing import (
    Pair,
    Results,
    Unpaired,
    matching,
    paired,
)
from mkldist.analysis.statistics import (
    Overlap,
    Posterior,
    holm,
    known_interval,
    largest_of_series,
    pairwise_wilcoxon,
    signed_rank_posterior,
)
from mkldist.core.arrays import Bools, Floats
from mkldist.core.metrics import default_metric, metric_of_variable
from mkldist.core.wording import html_of
from mkldist.errors import InputError
from mkldist.methods.registry import METHODS
from mkldist.results.rows import hyperparameters, is_pooled, n_of_few_classes, to_frame
from mkldist.results.schema import COORDINATES, DATASET_SERIES, SPLIT, STATE, RunState
from mkldist.solvers.solver_params import SolverParams
from mkldist.spec.kinds import TRIAL

if TYPE_CHECKING:
    import xarray as xr


FEWEST_DATA_SETS = 6
"""With fewer data sets, Wilcoxon's two-sided p-value exceeds 0.05 whatever they show."""
DEPTH = 2  # slashes in the path of a method, /DATASET/METHOD, in results of one bank
MEASURES = ("active_kernels", "seconds", "gap", "objective")


class Difference(NamedTuple):
    """Means of a number of two methods over the same splits, and the interval of the difference."""

    first: float  # Means over the splits
    second: float
    difference: float  # Mean of the first minus that of the second
    # Corrected 95 % interval of the difference; NaN for a single split, and where every split
    # has the same difference
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class PairComparison:
    """Two methods on one data set."""

    dataset: str  # Data set and methods; a method has its bank before it where banks differ
    first: str
    second: str
    loss: str  # Name of the loss
    # Hyperparameters that were chosen: a value, or a list of one a split
    first_setting: dict[str, Any]
    second_setting: dict[str, Any]
    # True if validation chose the settings of the first, of the second
    validated: tuple[bool, bool]
    n_splits: int  # Splits that both have
    left_out: tuple[int, int]  # Splits that the first, the second has besides
    losses: Difference  # Losses
    # Of the corrected resampled t-test, and adjusted for all pairs of the comparison; NaN
    # where the interval is
    p_value: float
    p_holm: float
    rope: float  # Half the width of the region of practical equivalence
    # Probabilities that the first is better, that both are equivalent, that the second is
    # better
    posterior: Posterior
    # Active kernels, seconds and gap; the objective where both minimise the same function
    measures: dict[str, Difference]
    # Runs of one method at equal settings; None for two methods or other kernels
    equal_settings: EqualSettings | None
    pooled: int = 0  # test parts that lack a class, where the losses are of all folds together
    # Name that the data set shares with other sizes of it in a scaling study; else its own
    series: str = ""
    n_train: float = math.nan  # Mean number of training points
    # Settings from which those of the first, of the second were chosen
    n_settings: tuple[int, int] = (1, 1)

    @property
    def scores(self) -> Difference:
        """Values of the metric, whose losses may be 1 less these."""
        metric, (first, second, difference, low, high) = metric_of_variable(self.loss), self.losses
        if not metric.greater:
            return self.losses
        return Difference(metric.loss(first), metric.loss(second), -difference, -high, -low)


@dataclass(frozen=True)
class OverDataSets:
    """Two methods over several data sets of the same loss.

    Errors are compared as they are.  Losses of real values have the units of their labels, so each
    is divided by that of the second method, and differences are shares of it.
    """

    first: str  # The methods and the loss
    second: str
    loss: str
    datasets: tuple[str, ...]  # The data sets; of several sizes of one, the largest
    median_difference: float  # Median of the differences of mean losses, first minus second
    # Of Wilcoxon's signed-rank test, and adjusted for all such pairs; NaN with too few data
    # sets
    p_value: float
    p_holm: float
    posterior: Posterior  # Of the Bayesian signed-rank test
    rope: float  # Half the width of the region of practical equivalence


@dataclass(frozen=True, eq=False)
class ResultsComparison:
    """Everything that could be compared, and what could not."""

    pairs: tuple[PairComparison, ...]  # A pair of methods on a data set each
    over: tuple[OverDataSets, ...]  # The same pairs over data sets; empty for single data sets
    unpaired: tuple[Unpaired, ...]  # What takes no part


def compare_results(
    first: Results,
    second: Results,
    matches: Callable[[dict[str, str], dict[str, str]], bool],
    rope: float | None = None,
) -> ResultsComparison:
    """Compare methods of two results on the splits that they share.

    Training parts of splits overlap, so tests within a data set are the corrected resampled t-test
    (Nadeau & Bengio 2003) and its Bayesian form (Benavoli et al. 2017).
    """
    pairs, unpaired = paired(first, second, matches)
    compared = [compare_pair(pair, rope) for pair in pairs]
    adjusted = holm(np.array([one.p_value for one in compared])).tolist()
    compared = [replace(one, p_holm=p) for one, p in zip(compared, adjusted, strict=True)]
    return ResultsComparison(tuple(compared), over_data_sets(compared, rope), tuple(unpaired))


def compare_pair(pair: Pair, rope: float | None = None) -> PairComparison:
    """Compare two methods on one data set; see :func:`compare_results`."""
    one, two = pair.first, pair.second
    splits = [i for i, _ in pair.splits], [j for _, j in pair.splits]
    overlap = overlap_of(one.data, splits[0])
    of_losses = _difference(one.losses[splits[0]], two.losses[splits[1]], overlap)
    rope = region(one.loss, of_losses.second, rope)
    differences = one.losses[splits[0]] - two.losses[splits[1]]
    p_value, posterior = inference(differences, overlap, rope)
    equal = at_equal_settings(pair)
    settings = one.settings(splits[0]), two.settings(splits[1])
    same_problem = equal is not None and settings[0] == settings[1]
    names = [name for name in MEASURES if name != "objective" or same_problem]
    measures = {
        name: _difference(one.values(name)[splits[0]], two.values(name)[splits[1]], overlap)
        for name in names
    }
    labels = _labels(pair)
    return PairComparison(
        dataset=one.place["dataset"],
        first=labels[0],
        second=labels[1],
        loss=one.loss,
        first_setting=settings[0],
        second_setting=settings[1],
        validated=(one.results.validated, two.results.validated),
        n_splits=len(differences),
        left_out=(len(one.losses) - len(differences), len(two.losses) - len(differences)),
        losses=of_losses,
        p_value=p_value,
        p_holm=p_value,
        rope=rope,
        posterior=posterior,
        measures=measures,
        equal_settings=equal,
        pooled=n_of_few_classes(one.data) if is_pooled(one.data, one.loss) else 0,
        series=str(pair.first.node.attrs.get(DATASET_SERIES, one.place["dataset"])),
        n_train=overlap.n_train,
        n_settings=(number_of_settings(one.node), number_of_settings(two.node)),
    )


def _labels(pair: Pair) -> tuple[str, str]:
    """Return the names of both methods, with their banks where these differ or are several."""
    one, two = pair.first.place, pair.second.place
    depths = [side.node.path.count("/") for side in (pair.first, pair.second)]
    if one["bank"] == two["bank"] and max(depths) == DEPTH:
        return one["method"], two["method"]
    return f"{one['bank']}/{one['method']}", f"{two['bank']}/{two['method']}"


def _difference(first: Floats, second: Floats, overlap: Overlap) -> Difference:
    """Return means and the corrected interval of the difference, of values known in both."""
    known = ~np.isnan(first - second)
    first, second = first[known], second[known]
    if not len(first):
        return Difference(*(math.nan,) * 5)
    found = known_interval(first - second, overlap)
    return Difference(float(first.mean()), float(second.mean()), *found)


def over_data_sets(
    compared: Sequence[PairComparison], rope: float | None = None
) -> tuple[OverDataSets, ...]:
    """Compare the pairs of methods that several data sets have, over these.

    Of several sizes of one data set the largest counts alone: the sizes share their points, and are
    no independent data sets.
    """
    import pandas as pd

    groups: dict[tuple[str, str, str], list[PairComparison]] = {}
    for one in compared:
        groups.setdefault((one.first, one.second, one.loss), []).append(one)
    found = []
    for (first, second, loss), of_all in groups.items():
        places = [(one.series or one.dataset, one.n_train) for one in of_all]
        members = [of_all[number] for number in largest_of_series(places)]
        if len(members) < 2:
            continue
        means = pd.DataFrame([[m.losses.first, m.losses.second] for m in members])
        if not is_share(loss):
            means = means.div(means[1], axis=0)
        row = pairwise_wilcoxon(means).iloc[0]
        enough = len(members) >= FEWEST_DATA_SETS
        p_value = float(row["p_value"]) if enough else math.nan
        width = rope if is_share(loss) and rope is not None else ROPE
        posterior = signed_rank_posterior((means[0] - means[1]).to_numpy(), width)
        datasets = tuple(member.dataset for member in members)
        median = float(row["median_difference"])
        found.append(
            OverDataSets(first, second, loss, datasets, median, p_value, p_value, posterior, width)
        )
    adjusted = holm(np.array([one.p_value for one in found])).tolist()
    return tuple(replace(one, p_holm=p) for one, p in zip(found, adjusted, strict=True))


def compare_sweeps(
    first: str | Path,
    second: str | Path | None = None,
    *,
    methods: tuple[str, str] | None = None,
    rope: float | None = None,
) -> ResultsComparison:
    """Compare the methods that two sweeps share, or two methods, on the splits that both have.

    ``mkldist compare`` prints what this returns.

    Parameters
    ----------
    first : str or Path
        Output folder of a sweep.
    second : str or Path, optional
        That of another sweep; by default the same, which needs `methods`.
    methods : (str, str), optional
        A method of the first and one of the second, each as METHOD or BANK/METHOD.  By default
        methods of equal names are compared, and where there is none, every two.
    rope : float, optional
        Half the width of the region of practical equivalence, in units of the loss; by default 0.01
        of an error, and a hundredth of the mean loss for real values.

    Returns
    -------
    ResultsComparison
        ``pairs`` of methods, their comparison ``over`` data sets, and what is ``unpaired``.

    Raises
    ------
    mkldist.errors.InputError
        For one sweep without `methods`.
    mkldist.errors.StoreError
        If there are no results or they are damaged.

    Examples
    --------
    >>> from mkldist import analysis
    >>> found = analysis.compare_sweeps(
    ...     "results/quickstart", methods=("level", "uniform")
    ... )  # doctest: +SKIP
    >>> round(float(found.pairs[0].losses.difference), 4)  # doctest: +SKIP
    0.0007
    """
    if second is None and methods is None:
        raise InputError(
            "compare_sweeps", "one sweep without methods", "two sweeps, or methods = (A, B)"
        )
    one = Results.of(first)
    two = one if second is None else Results.of(second)
    return compare_results(one, two, matching(one, two, methods), rope)


ROUNDING = 1e-9


@dataclass(frozen=True)
class EqualSettings:
    """Runs of one method on the same Gram matrices, rows and settings, in two results."""

    n_runs: int  # Runs that are complete in both
    objective_change: float  # Largest relative difference of the objectives
    # Runs whose intervals from lower bound to objective have no point in common, so that one
    # of the two certificates is wrong
    contradictions: int
    # Median over the runs of the seconds of the first, divided by those of the second
    seconds_ratio: float


def at_equal_settings(pair: Pair) -> EqualSettings | None:
    """Compare the runs of a method in two results at all settings that both have.

    None if methods, Gram matrices or settings differ, so that objectives differ by right.
    """
    nodes = pair.first.node, pair.second.node
    problems = [(*map(node.attrs.get, ("method", "kernel_weights")), problem_settings(node))
                for node in nodes]  # fmt: skip
    dims = hyperparameters(nodes[0])
    if problems[0] != problems[1] or not pair.same_bank or TRIAL in dims:
        return None
    if {*dims} != {*hyperparameters(nodes[1])}:
        return None
    frames = []
    for node, rows in zip(nodes, zip(*pair.splits, strict=True), strict=True):
        number = dict(
            zip(node.ds[SPLIT].to_numpy()[list(rows)].tolist(), range(len(rows)), strict=True)
        )
        runs = _complete(node, ("seconds", *CERTIFICATE))
        frames.append(runs.assign(**{SPLIT: runs[SPLIT].map(number)}).dropna(subset=[SPLIT]))
    both = frames[0].merge(frames[1], on=[SPLIT, *dims], suffixes=("", " again"))
    apart, disjoint = certificates_apart(*(_both_values(both, name) for name in CERTIFICATE))
    if np.isnan(apart).all():
        return None
    seconds, again = _both_values(both[~np.isnan(apart)], "seconds")
    ratios = seconds[again > 0.0] / again[again > 0.0]
    return EqualSettings(
        int((~np.isnan(apart)).sum()),
        _known(np.max, apart),
        int(disjoint.sum()),
        _known(np.median, ratios),
    )


def certificates_apart(
    objectives: tuple[Floats, Floats], bounds: tuple[Floats, Floats]
) -> tuple[Floats, Bools]:
    """Compare the certificates of two results for the same problems.

    Shapes: objectives, bounds pair of (n,).

    Differences of the objectives, divided by the larger one; NaN where one is unknown.

    True where the intervals from lower bound to objective have no point in common.
    """
    size = np.maximum(np.abs(objectives[0]), np.abs(objectives[1]))
    apart = np.abs(objectives[0] - objectives[1]) / np.where(size > 0.0, size, 1.0)
    slack = ROUNDING * size
    disjoint = (bounds[0] > objectives[1] + slack) | (bounds[1] > objectives[0] + slack)
    return apart, disjoint


def problem_settings(node: xr.DataTree) -> dict[str, Any]:
    """Return the settings that define the problem, of those that are no dims of the node."""
    settings = json.loads(str(node.attrs.get("settings", "{}")))
    name = str(node.attrs["method"])
    steering = (METHODS[name].params if name in METHODS else SolverParams).steering()
    return {name: value for name, value in settings.items() if name not in steering}


def _known(of: Callable[[Floats], Any], values: Floats) -> float:
    """Return what a function makes of the values that are not NaN; NaN without any."""
    known = values[~np.isnan(values)]
    return float(of(known)) if len(known) else math.nan


CERTIFICATE = ("objective", "dual_objective")
LOSSES = tuple(
    default_metric(task).variable(part)
    for task in ("classification", "regression")
    for part in ("test", "unlabelled")
)
_OF_SPLITS = {variable.name for variable in COORDINATES}


@dataclass(frozen=True)
class Agreement:
    """How far two results of one sweep agree."""

    n_runs: int  # Runs that are complete in both
    n_equal: int  # Those whose objective, lower bound and losses are equal to the bit
    # Those whose intervals from lower bound to objective have no point in common, so that one
    # of the two certificates is wrong
    contradictions: tuple[str, ...] = ()
    n_alone: tuple[int, int] = (0, 0)  # Runs that are complete in the first, in the second alone
    # Largest difference of the objectives, relative to the larger one; NaN without objectives
    objective_difference: float = math.nan
    # Largest absolute difference of each loss, such as ``test_error``
    loss_differences: dict[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """True if both have the same runs, and no certificates contradict each other."""
        return not self.contradictions and self.n_alone == (0, 0)

    def _repr_html_(self) -> str:
        """Return the fields as a table for a notebook."""
        return html_of("Agreement", asdict(self) | {"holds": self.holds})


def agreement(first: xr.DataTree, second: xr.DataTree) -> Agreement:
    """Compare the runs of a sweep with those of the same sweep, run again on the same data.

    Solvers stop at a tolerance, so that other versions and processors may give other objectives.
    Each run certifies an interval that holds the optimum, from its lower bound to its objective.
    The intervals of two runs for one problem must therefore have a point in common.

    Parameters
    ----------
    first, second : xarray.DataTree
        As :func:`mkldist.open_results` returns them.

    Examples
    --------
    >>> import mkldist
    >>> tree = mkldist.open_results("results/quickstart")  # doctest: +SKIP
    >>> mkldist.analysis.agreement(tree, tree).objective_difference  # doctest: +SKIP
    0.0
    """
    frames = [_complete(tree, (*CERTIFICATE, *LOSSES)) for tree in (first, second)]
    keys = [name for name in frames[0].columns if name in frames[1].columns]
    keys = keys[: keys.index(STATE.name)]
    both = frames[0].merge(frames[1], on=keys, suffixes=("", " again"))
    apart, disjoint = certificates_apart(*(_both_values(both, name) for name in CERTIFICATE))
    compared = [name for name in (*CERTIFICATE, *LOSSES) if name in both]
    equal = np.ones(len(both), dtype=bool)
    for name in compared:
        one, two = _both_values(both, name)
        equal &= (one == two) | (np.isnan(one) & np.isnan(two))
    return Agreement(
        n_runs=len(both),
        n_equal=int(equal.sum()),
        contradictions=tuple(_name(row) for row in both[keys][disjoint].to_dict("records")),
        n_alone=(len(frames[0]) - len(both), len(frames[1]) - len(both)),
        objective_difference=_known(np.max, apart),
        loss_differences={
            name: _known(np.max, np.abs(np.subtract(*_both_values(both, name))))
            for name in compared
            if name in LOSSES
        },
    )


def _complete(tree: xr.DataTree, names: Collection[str]) -> pd.DataFrame:
    """Return the identity and some numbers of the complete runs."""
    rows = to_frame(tree, (STATE.name, *names))
    return rows[rows[STATE.name] == RunState.COMPLETE.value]


def _both_values(both: pd.DataFrame, name: str) -> tuple[Floats, Floats]:
    """Return a variable of both results, NaN where one lacks it."""
    first, second = (
        both[column].to_numpy(np.float64) if column in both else np.full(len(both), math.nan)
        for column in (name, f"{name} again")
    )
    return first, second


def _name(row: dict[object, object]) -> str:
    """Return the place of a run in words: data set, bank, method, split and hyperparameters."""
    place = "/".join(str(row.pop(name)) for name in ("dataset", "bank", "method"))
    known = {name: row[name] for name in row if name == SPLIT or name not in _OF_SPLITS}
    given = [f"{name} {value}" for name, value in known.items() if value == value]  # NaN differs
    return ", ".join([place, *given])
