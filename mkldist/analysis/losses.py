"""Losses of the methods on the splits of a data set, and the rules that every comparison keeps."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.analysis.statistics import (
    Friedman,
    Interval,
    Overlap,
    Posterior,
    corrected_t_test,
    correlated_posterior,
    friedman,
    holm,
    largest_of_series,
    loss_interval,
    pairwise_wilcoxon,
)
from mkldist.core.arrays import Array, Bools, Floats
from mkldist.core.metrics import METRICS, Metric, metric_of_variable
from mkldist.results.rows import (
    complete_losses,
    hyperparameters,
    is_validated,
    method_nodes,
    place_of,
    selected,
)
from mkldist.results.schema import DATASET_SERIES, SPLIT, metric_of

if TYPE_CHECKING:
    import pandas as pd
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
    """Return half the width of the region of practical equivalence, in units of the loss."""
    if rope is not None:
        return rope
    return ROPE if is_share(loss) else ROPE * abs(size)


def overlap_of(data: xr.Dataset, splits: Sequence[int] | None = None) -> Overlap:
    """Return the mean sizes of the parts of some splits, by default of all."""
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
    """How many rows tell the losses of some splits."""

    overlap: Overlap  # Mean sizes of the parts
    n_rows: float  # Rows that were tested, each counted once
    n_rarest: float  # Of these, rows of the rarest class

    @classmethod
    def of(cls, splits: Mapping[str, Array], known: Bools, part: str = "test") -> Tested:
        """Return those of the known splits, (J,), of a part."""
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

    Shapes: losses, constants (J,).
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
    """A score of a method beside that of the best constant prediction."""

    metric: Metric  # The score
    part: str  # Part of the splits that is scored, ``test`` or ``unlabelled``
    n_splits: int  # Number of splits
    mean: float  # Mean over the splits, and its 95 % interval
    low: float
    high: float
    constant: float  # Mean of the constant prediction; NaN if it is not known
    no_better: bool  # True if the score is no better, see beats; False where it is not known

    @classmethod
    def of(
        cls, values: Floats, metric: Metric, splits: Mapping[str, Array], part: str
    ) -> Standing | None:
        """Return the standing of a metric's values, (J,); None if there are none."""
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


TO_TRY = {
    "classification": (
        "Try other kernels, such as those of single columns, a wider grid of C, or more rows;",
        'for unequal classes, metric = "balanced_error" and class_weight = "balanced".',
    ),
    "regression": (
        "Try other kernels, a wider grid of C, or more rows;",
        'and, unless it is set, target = "zscore" of [preprocessing].',
    ),
}
"""Lines of what may help where nothing beats a constant prediction, by task."""


def only_shifted(differences: Floats) -> bool:
    """Return True if all differences are the same other than 0: their spread tells nothing.

    Errors of few rows are coarse, so that a few splits may have equal differences by chance.  A
    test that took their spread for zero would be sure of anything.
    """
    size = float(np.abs(differences).max())
    return size > 0.0 and float(np.ptp(differences)) <= 1e-12 * size


def inference(differences: Floats, overlap: Overlap, rope: float) -> tuple[float, Posterior]:
    """Return the p-value of the corrected t-test and its posterior; NaN where none applies."""
    if len(differences) < 2 or only_shifted(differences):
        return math.nan, Posterior(math.nan, math.nan, math.nan)
    p_value = corrected_t_test(differences, overlap).p_value
    return p_value, correlated_posterior(differences, overlap, rope)


@dataclass(frozen=True, eq=False)
class Compared:
    """Losses of the methods on one data set, each at one setting."""

    dataset: str  # The data set
    series: str  # Name that it shares with other sizes of it in a scaling study; else its own
    # Name of its variable; the losses of a metric that is better greater are 1 less its
    # values
    loss: str
    losses: pd.DataFrame  # A row a split, a column a method; NaN where a run is missing
    overlap: Overlap  # Sizes of the parts, and whether training parts overlap
    # Hyperparameters of each method; empty where they differ between splits
    settings: dict[str, dict[str, Any]]
    # True if settings were selected by validation in each split; False if each method has the
    # setting of its least mean loss on the test parts, which flatters methods of many
    # settings
    validated: bool


def compared_losses(tree: xr.DataTree) -> list[Compared]:
    """Return the losses of all methods, for each data set (and bank, if there are several).

    The loss is that of the sweep's metric on the test part: by default the test error, or the root
    mean square error for regression; of a metric that is better greater, 1 less its value.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it.

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/quickstart")  # doctest: +SKIP
    >>> [found] = mkldist.analysis.compared_losses(tree)  # doctest: +SKIP
    >>> found.losses.mean().round(3)  # doctest: +SKIP
    best_single    0.034
    level          0.035
    majority       0.372
    spicymkl       0.036
    uniform        0.034
    dtype: float64
    """
    import pandas as pd

    validated, nodes = is_validated(tree), method_nodes(tree)
    places = [place_of(node) for node in nodes]
    several_banks = len({place["bank"] for place in places}) > 1
    groups: dict[tuple[str, str], dict[str, tuple[xr.DataTree, list[str]]]] = {}
    for place, node, best in zip(places, nodes, method_nodes(at_best(tree)), strict=True):
        name = f"{place['method']} ({place['bank']})" if several_banks else place["method"]
        members = groups.setdefault((place["dataset"], str(node.attrs["task"])), {})
        members[name] = best, [] if validated else hyperparameters(node)
    found = []
    for (dataset, _), members in groups.items():
        first, loss = (
            next(iter(members.values()))[0],
            loss_name([one for one, _ in members.values()]),
        )
        columns = {name: losses_at_best(one, loss) for name, (one, _) in members.items()}
        known = {name: own for name, own in columns.items() if not np.isnan(own).all()}
        if known:
            table = pd.DataFrame(known, index=first.ds[SPLIT].to_numpy()).rename_axis(SPLIT)
            settings = {
                name: {dim: one.ds[dim].item() for dim in dims}
                for name, (one, dims) in members.items()
                if name in known
            }
            series, overlap = str(first.attrs.get(DATASET_SERIES, dataset)), overlap_of(first.ds)
            found.append(Compared(dataset, series, loss, table, overlap, settings, validated))
    return found


def compare_methods(tree: xr.DataTree, rope: float | None = None) -> pd.DataFrame:
    """Compare every two methods on every data set.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it.
    rope : float, optional
        Half the width of the region of practical equivalence, in units of the loss; by default 0.01
        of an error, and a hundredth of the mean loss of the second method for real values.

    Returns
    -------
    DataFrame
        A row for each data set and pair: ``dataset``, ``first``, ``second``, ``difference`` (mean
        loss of the first minus that of the second), ``n_splits``, ``p_value`` and ``p_holm`` of
        the corrected resampled t-test (Holm over the pairs of a data set), and the posterior
        probabilities ``first_better``, ``equivalent`` and ``second_better`` of the correlated
        t-test.  These are NaN where all differences are equal other than 0, which no test can
        judge.  Pairs with fewer than two splits in common have no row.

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/quickstart")  # doctest: +SKIP
    >>> pairs = mkldist.analysis.compare_methods(tree)  # doctest: +SKIP
    >>> pairs[["first", "second", "difference", "p_holm"]].round(3).head(3)  # doctest: +SKIP
             first    second  difference  p_holm
    0  best_single     level      -0.001     1.0
    1  best_single  majority      -0.338     0.0
    2  best_single  spicymkl      -0.002     1.0
    """
    return pairs_of(compared_losses(tree), rope)


def pairs_of(compared: Sequence[Compared], rope: float | None = None) -> pd.DataFrame:
    """Return the table of :func:`compare_methods` from losses that have been read."""
    import pandas as pd

    columns = ["dataset", "first", "second", "difference", "n_splits", "p_value",
               "first_better", "equivalent", "second_better"]  # fmt: skip
    tables = []
    for one in compared:
        rows, tests = [], []
        names = list(one.losses.columns)
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                differences = (one.losses[first] - one.losses[second]).dropna().to_numpy()
                if len(differences) < 2:
                    continue
                common = one.losses[[first, second]].dropna()
                width = region(one.loss, float(common[second].mean()), rope)
                p_value, posterior = inference(differences, one.overlap, width)
                place = (one.dataset, first, second)
                mean = float(differences.mean())
                rows.append((*place, mean, len(differences), p_value, *posterior))
                sides = [(name.split(" (")[0], common[name].to_numpy()) for name in (first, second)]
                tests.append(test_of(one.dataset, sides))
        table = pd.DataFrame(rows, columns=columns)
        table.insert(6, "p_holm", holm(table["p_value"].to_numpy(float), tests))
        tables.append(table)
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def test_of(dataset: str, sides: Sequence[tuple[str, Floats]]) -> Hashable:
    """Return what copies of a test share: the methods, whatever their banks, and their losses.

    A method without kernels is the same on every bank.
    """
    return dataset, frozenset((method, losses.tobytes()) for method, losses in sides)


@dataclass(frozen=True, eq=False)
class RanksOverDataSets:
    """Comparison of methods over several data sets."""

    losses: pd.DataFrame  # Mean loss of each method (columns) on each data set (rows)
    pairs: pd.DataFrame  # See pairwise_wilcoxon
    ranks: Friedman | None  # Friedman's test; None for two methods
    left_out: tuple[str, ...]  # Methods that lack a split, or a data set


def without_gaps(losses: pd.DataFrame) -> pd.DataFrame:
    """Return losses (splits, methods) of the methods that lack no split that another has.

    The mean loss of a method on fewer splits is one of other points, perhaps of easier ones.
    """
    return losses.dropna(axis="index", how="all").dropna(axis="columns")


def compare_over_data_sets(tree: xr.DataTree) -> RanksOverDataSets | None:
    """Compare methods by their mean losses on several data sets; None if there is nothing to rank.

    Only methods with a loss on every data set, and there on every split, take part.  Of several
    sizes of one data set the largest counts alone: they share their points, and are no independent
    data sets.  Losses of regression, which have the units of their labels, and of classification
    are ranked alike.

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/quickstart")  # doctest: +SKIP
    >>> mkldist.analysis.compare_over_data_sets(tree) is None  # of one data set  # doctest: +SKIP
    True
    """
    return ranks_of(compared_losses(tree))


def ranks_of(compared: Sequence[Compared]) -> RanksOverDataSets | None:
    """Return what :func:`compare_over_data_sets` does, from losses that have been read."""
    import pandas as pd

    largest = largest_of_series([(one.series, one.overlap.n_train) for one in compared])
    tables = {compared[number].dataset: compared[number].losses for number in largest}
    means = pd.DataFrame({name: without_gaps(table).mean() for name, table in tables.items()}).T
    losses = means.dropna(how="all").dropna(axis=1)
    if len(losses) < 2 or losses.shape[1] < 2:
        return None
    ranks = friedman(losses) if losses.shape[1] > 2 else None
    methods = dict.fromkeys(name for table in tables.values() for name in table.columns)
    left_out = tuple(name for name in methods if name not in losses.columns)
    return RanksOverDataSets(losses, pairwise_wilcoxon(losses), ranks, left_out)


def loss_name(nodes: Sequence[xr.DataTree]) -> str:
    """Return the name of the variable whose loss compares nodes of a data set.

    It is that of the sweep's metric on the test part, or on the unlabelled points if only these
    have it.  Its losses are those of :func:`mkldist.results.rows.complete_losses`.
    """
    metric = metric_of(nodes[0].attrs)
    names = [metric.variable(part) for part in ("test", "unlabelled")]
    for name in names:
        if any(name in node.ds and node.ds[name].notnull().any() for node in nodes):
            return name
    return names[0]


def number_of_settings(node: xr.DataTree) -> int:
    """Return the number of settings of a node's method."""
    return math.prod(node.sizes[name] for name in hyperparameters(node))


def at_best(tree: xr.DataTree) -> xr.DataTree:
    """Return results with each method at one setting, without the dims of hyperparameters.

    It is the setting selected by validation in each split, else that of the least mean loss.
    Settings are then compared on the splits that all of them have, so that none wins by easy splits
    alone; those without any run are left out.  Where no split has all, those of most splits are
    compared.
    """
    import pandas as pd
    import xarray as xr

    if is_validated(tree):
        return selected(tree)
    parts = {node.path: node.to_dataset() for node in tree.subtree}
    for node in method_nodes(tree):
        place, dims, loss = 0, hyperparameters(node), loss_name([node])
        if loss in node.ds:
            losses = complete_losses(node, loss, (SPLIT, *dims)).reshape(node.sizes[SPLIT], -1)
            count = (~np.isnan(losses)).sum(axis=0)
            shared = losses[~np.isnan(losses[:, count > 0]).any(axis=1)]
            of_all = len(shared) > 0
            means = pd.DataFrame(shared if of_all else losses).mean()
            started = count > 0 if of_all else count == count.max()
            place = int(np.where(started, means, np.inf).argmin())
        at = np.unravel_index(place, [node.sizes[dim] for dim in dims]) if dims else ()
        for part in node.subtree:
            parts[part.path] = part.to_dataset().isel(dict(zip(dims, at, strict=True)))
    return xr.DataTree.from_dict(parts, name=tree.name)


def losses_at_best(node: xr.DataTree, loss: str) -> Floats:
    """Return the losses on the splits of a node of :func:`at_best`, NaN where it has none."""
    if loss not in node.ds:
        return np.full(node.sizes[SPLIT], np.nan)
    return complete_losses(node, loss, (SPLIT,))
