"""Two methods, or one method in two sweeps, compared on the splits that they share.

First pairs of methods whose runs learnt from the same rows, in one tree of results or in two; then
the tests on these pairs; last the agreement of a sweep with the same sweep, run again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from mkldist.analysis.losses import (
    at_best,
    inference,
    is_share,
    loss_name,
    number_of_settings,
    overlap_of,
    region,
    test_of,
)
from mkldist.analysis.statistics import (
    Overlap,
    Posterior,
    holm,
    known_interval,
    largest_of_series,
    pairwise_wilcoxon,
)
from mkldist.core.arrays import Bools, Floats
from mkldist.core.metrics import default_metric, metric_of_variable
from mkldist.core.wording import html_of
from mkldist.errors import InputError
from mkldist.methods.registry import METHODS
from mkldist.results.folder import OutputFolder
from mkldist.results.journal import Journal, RunRecord
from mkldist.results.rows import (
    complete_values,
    is_pooled,
    is_validated,
    method_nodes,
    n_of_few_classes,
    place_of,
    settings_of,
    to_frame,
)
from mkldist.results.schema import COORDINATES, DATASET_SERIES, RUN_ID, SPLIT, STATE, RunState
from mkldist.results.tree import open_results
from mkldist.solvers.solver_params import SolverParams

if TYPE_CHECKING:
    import xarray as xr


Place: TypeAlias = dict[str, str]


@dataclass(frozen=True, eq=False)
class Results:
    """Results of a sweep with the records beside them."""

    path: Path  # The output folder
    tree: xr.DataTree  # As open_results returns it

    @classmethod
    def of(cls, path: str | Path) -> Results:
        """Open the results in an output folder."""
        return cls(Path(path), open_results(path))

    @cached_property
    def validated(self) -> bool:
        """True if settings are selected by validation in each split."""
        return is_validated(self.tree)

    @cached_property
    def chosen_tree(self) -> xr.DataTree:
        """The tree with each method at its chosen setting."""
        return at_best(self.tree)

    @cached_property
    def store(self) -> Journal:
        """The records."""
        return Journal(OutputFolder(self.path).records)

    def nodes(self) -> list[xr.DataTree]:
        """Return the nodes of the methods."""
        return method_nodes(self.tree)

    def places(self) -> list[Place]:
        """Return data set, bank and method of every node."""
        return [place_of(node) for node in self.nodes()]

    def chosen(self, node: xr.DataTree, loss: str) -> Chosen:
        """Return a method at its chosen setting."""
        return Chosen(self, node, self.chosen_tree[node.path].to_dataset(), loss)


@dataclass(frozen=True, eq=False)
class Chosen:
    """A method on a data set, at the setting that was chosen."""

    results: Results  # The results that hold it
    node: xr.DataTree  # Its node, with all settings
    data: xr.Dataset  # The node at the chosen setting: runs have the dim ``split`` alone
    loss: str  # Name of the loss that compares it

    @property
    def place(self) -> dict[str, str]:
        """Data set, bank and method."""
        return place_of(self.node)

    def name(self, *, with_bank: bool) -> str:
        """Return the name of the method, or BANK/METHOD."""
        bank = f"{self.place['bank']}/" if with_bank else ""
        return f"{bank}{self.place['method']}"

    @property
    def losses(self) -> Floats:
        """Loss on each split; NaN where a run is not complete."""
        losses: Floats = metric_of_variable(self.loss).loss(self.values(self.loss))
        return losses

    def values(self, name: str) -> Floats:
        """Return a variable of the runs, one value a split; NaN where a run is not complete."""
        if name not in self.data:
            return np.full(self.data.sizes[SPLIT], np.nan)
        return complete_values(self.data, name, (SPLIT,))

    @cached_property
    def complete(self) -> Bools:
        """Where the runs of the splits are complete."""
        done: Bools = self.data[STATE.name].to_numpy() == RunState.COMPLETE.value
        return done

    @cached_property
    def records(self) -> list[RunRecord | None]:
        """Record of each split's run; None where it is not complete or its record is gone."""
        ids = self.data[RUN_ID.name].to_numpy()
        return [
            self.results.store.read(str(run_id)) if done else None
            for run_id, done in zip(ids, self.complete, strict=True)
        ]

    def settings(self, splits: Sequence[int]) -> dict[str, Any]:
        """Return the hyperparameters: a value, or a list of one a split where they differ."""
        found = {}
        for name in settings_of(self.node):
            values = np.broadcast_to(self.data[name].to_numpy(), self.data.sizes[SPLIT])
            own = [values[j].item() if hasattr(values[j], "item") else values[j] for j in splits]
            found[name] = own[0] if len(set(own)) == 1 else own
        return found

    def facts(self, name: str) -> list[str]:
        """Return what the records say of their origin by this name, empty where nothing."""
        return [str(record.provenance.get(name, "")) if record else "" for record in self.records]


def methods_by_data_set(
    results: Results, methods: Collection[str] = ()
) -> Iterator[tuple[str, dict[str, Chosen]]]:
    """Yield each data set with its methods at their chosen settings, by their names.

    A method has its bank before its name where there are several.  Of several sizes of one data set
    the largest alone takes part: the sizes share their points, and are no independent data sets.
    """
    nodes: dict[str, list[xr.DataTree]] = {}
    for node, place in zip(results.nodes(), results.places(), strict=True):
        nodes.setdefault(place["dataset"], []).append(node)
    sizes = [
        (str(own[0].attrs.get(DATASET_SERIES, dataset)), float(own[0].ds["n_train"].mean()))
        for dataset, own in nodes.items()
    ]
    several_banks = len({place["bank"] for place in results.places()}) > 1
    datasets = list(nodes)
    for dataset in (datasets[number] for number in largest_of_series(sizes)):
        own = nodes[dataset]
        loss = loss_name(own)
        if methods:
            own = [one for one in own if any(is_named(place_of(one), name) for name in methods)]
        found = [results.chosen(node, loss) for node in own]
        yield dataset, {one.name(with_bank=several_banks): one for one in found}


@dataclass(frozen=True, eq=False)
class Pair:
    """Two methods on the same data and splits."""

    first: Chosen  # The methods
    second: Chosen
    splits: tuple[tuple[int, int], ...]  # Positions of the splits of equal rows in both

    @property
    def same_bank(self) -> bool:
        """True if both learnt from the same Gram matrices, as far as records say."""
        pairs = zip(*self.facts("bank"), strict=True)
        return all(one == other and one for one, other in pairs)

    @property
    def test(self) -> Hashable:
        """What it shares with copies of itself on other banks."""
        of_splits = zip(*self.splits, strict=True)
        sides = zip((self.first, self.second), map(list, of_splits), strict=True)
        losses = [(one.place["method"], one.losses[own]) for one, own in sides]
        return test_of(self.first.place["dataset"], losses)

    def facts(self, name: str) -> tuple[list[str], list[str]]:
        """Return what the records of the paired runs say of their origin by this name."""
        first, second = self.first.facts(name), self.second.facts(name)
        return [first[i] for i, _ in self.splits], [second[j] for _, j in self.splits]


@dataclass(frozen=True)
class Unpaired:
    """Runs or data sets that take no part in a comparison, and the reason."""

    place: str  # Data set and method
    reason: str  # Why, as a phrase


def is_named(place: Place, word: str) -> bool:
    """Return True if a word is the method of a place, or its bank and method as BANK/METHOD."""
    return word in (place["method"], f"{place['bank']}/{place['method']}")


def every_two(results: Results) -> Callable[[Place, Place], bool]:
    """Return the function that matches every two methods of results on the same bank, once."""
    order = {tuple(place.values()): number for number, place in enumerate(results.places())}

    def matches(one: Place, other: Place) -> bool:
        return one["bank"] == other["bank"] and (
            order[tuple(one.values())] < order[tuple(other.values())]
        )

    return matches


def matching(
    first: Results, second: Results, methods: tuple[str, str] | None = None
) -> Callable[[Place, Place], bool]:
    """Return the function that tells which methods of two results are to be compared.

    Methods are compared on the same bank where there are several, unless a name has its bank before
    it; and never with themselves.
    """
    names = [{(p["dataset"], p["method"]) for p in results.places()} for results in (first, second)]
    by_name = bool(names[0] & names[1])
    several = any(len({p["bank"] for p in results.places()}) > 1 for results in (first, second))
    one_bank = several and not any("/" in name for name in methods or ())

    def matches(one: Place, other: Place) -> bool:
        if one_bank and one["bank"] != other["bank"]:
            return False
        if methods is None:
            return one["method"] == other["method"] or not by_name
        itself = first is second and one == other
        return not itself and is_named(one, methods[0]) and is_named(other, methods[1])

    return matches


def paired(
    first: Results, second: Results, matches: Callable[[Place, Place], bool]
) -> tuple[list[Pair], list[Unpaired]]:
    """Pair the methods of two results on every data set that both have.

    Splits are paired where their rows are the same, whatever their positions; the records of the
    runs tell by fingerprints of data and splits.  Splits of one tree are the same by their
    positions.

    Pairs have a split in common at least.
    """
    pairs: list[Pair] = []
    unpaired: list[Unpaired] = []
    others = [(place_of(node), node) for node in second.nodes()]
    for place, node in ((place_of(node), node) for node in first.nodes()):
        for other_place, other in others:
            if place["dataset"] != other_place["dataset"] or not matches(place, other_place):
                continue
            found = _pair(first, node, second, other)
            if isinstance(found, Pair):
                pairs.append(found)
            else:
                unpaired.append(found)
    return pairs, unpaired


def _pair(
    first: Results, node: xr.DataTree, second: Results, other: xr.DataTree
) -> Pair | Unpaired:
    """Return two methods with the splits that they have in common, or why there are none."""
    names = [place_of(one)["method"] for one in (node, other)]
    where = f"{place_of(node)['dataset']}, {' and '.join(dict.fromkeys(names))}"
    tasks = [str(one.attrs["task"]) for one in (node, other)]
    if tasks[0] != tasks[1]:
        return Unpaired(where, f"one is of {tasks[0]}, the other of {tasks[1]}")
    loss = loss_name([node, other])
    one, two = first.chosen(node, loss), second.chosen(other, loss)
    for side, name in ((one, names[0]), (two, names[1])):
        if np.isnan(side.losses).all():
            what = loss.replace("_", " ")
            return Unpaired(
                where, f"{name} has no complete run with a {what} in {side.results.path}"
            )
    found = _same_splits(one, two)
    return Unpaired(where, found) if isinstance(found, str) else Pair(one, two, tuple(found))


def _same_splits(first: Chosen, second: Chosen) -> list[tuple[int, int]] | str:
    """Return the positions of splits of equal rows that both have a loss on, or why none are."""
    both = [~np.isnan(side.losses) for side in (first, second)]
    if first.results is second.results:
        splits = np.flatnonzero(both[0] & both[1]).tolist()
        return [(j, j) for j in splits] or "no split has a complete run of both"
    data = [{text for text in side.facts("data_fingerprint") if text} for side in (first, second)]
    for side, known in zip((first, second), data, strict=True):
        if not known:
            return (
                f"{side.results.path} holds no records, which tell if data and splits are the same"
            )
    if data[0] != data[1]:
        prints = " and ".join(", ".join(sorted(known)) for known in data)
        return f"their data differ (fingerprints {prints})"
    places: dict[str, int] = {}
    for j, text in enumerate(second.facts("split_fingerprint")):
        if text and both[1][j]:
            places.setdefault(text, j)
    found = []
    for i, text in enumerate(first.facts("split_fingerprint")):
        if both[0][i] and text in places:
            found.append((i, places.pop(text)))
    return found or "their splits differ: no split has the same rows in both"


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


class OverDataSets(NamedTuple):
    """Two methods over several data sets of the same loss."""

    first: str  # The methods and the loss
    second: str
    loss: str
    datasets: tuple[str, ...]  # The data sets; of several sizes of one, the largest
    median_difference: float  # Median of the differences of mean losses, first minus second
    # Of Wilcoxon's signed-rank test, and adjusted for all such pairs; NaN with too few data
    # sets
    p_value: float
    p_holm: float


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
    tests = [pair.test for pair in pairs]
    adjusted = holm(np.array([one.p_value for one in compared]), tests).tolist()
    compared = [replace(one, p_holm=p) for one, p in zip(compared, adjusted, strict=True)]
    return ResultsComparison(tuple(compared), over_data_sets(compared), tuple(unpaired))


def compare_pair(pair: Pair, rope: float | None = None) -> PairComparison:
    """Compare two methods on one data set; see :func:`compare_results`."""
    one, two = pair.first, pair.second
    splits = [i for i, _ in pair.splits], [j for _, j in pair.splits]
    overlap = overlap_of(one.data, splits[0])
    of_losses = _difference(one.losses[splits[0]], two.losses[splits[1]], overlap)
    rope = region(one.loss, of_losses.second, rope)
    differences = one.losses[splits[0]] - two.losses[splits[1]]
    p_value, posterior = inference(differences, overlap, rope)
    settings = one.settings(splits[0]), two.settings(splits[1])
    same = settings[0] == settings[1] and _same_problem(pair)
    names = [name for name in MEASURES if name != "objective" or same]
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


def over_data_sets(compared: Sequence[PairComparison]) -> tuple[OverDataSets, ...]:
    """Compare the pairs of methods that several data sets have, over these.

    Losses of real values, in the units of their labels, count as shares of the second method's.
    """
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
        datasets = tuple(member.dataset for member in members)
        median = float(row["median_difference"])
        found.append(OverDataSets(first, second, loss, datasets, median, p_value, p_value))
    adjusted = holm(np.array([one.p_value for one in found])).tolist()
    return tuple(one._replace(p_holm=p) for one, p in zip(found, adjusted, strict=True))


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


def _same_problem(pair: Pair) -> bool:
    """Return True if both methods minimise the same function of the same Gram matrices."""
    one, other = (
        (*map(node.attrs.get, ("method", "kernel_weights")), problem_settings(node))
        for node in (pair.first.node, pair.second.node)
    )
    return one == other and pair.same_bank


def problem_settings(node: xr.DataTree) -> dict[str, Any]:
    """Return the settings that define the problem, of those that are no dims of the node."""
    settings = json.loads(str(node.attrs.get("settings", "{}")))
    name = str(node.attrs["method"])
    steering = (METHODS[name].params if name in METHODS else SolverParams).steering()
    return {name: value for name, value in settings.items() if name not in steering}


def _largest(values: Floats) -> float:
    """Return the largest value that is not NaN; NaN without any."""
    return float(np.fmax.reduce(values, initial=math.nan))


ROUNDING = 1e-9
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
    objectives, bounds = (_both_values(both, name) for name in CERTIFICATE)
    size = np.maximum(*np.abs(objectives))
    apart = np.abs(np.subtract(*objectives)) / np.where(size > 0.0, size, 1.0)
    slack = ROUNDING * size
    disjoint = (bounds[0] > objectives[1] + slack) | (bounds[1] > objectives[0] + slack)
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
        objective_difference=_largest(apart),
        loss_differences={
            name: _largest(np.abs(np.subtract(*_both_values(both, name))))
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
