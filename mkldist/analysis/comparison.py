"""Comparison of the methods of a sweep, from its tree of results."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.analysis.over_data_sets import (
    Friedman,
    friedman,
    holm,
    largest_of_series,
    pairwise_wilcoxon,
)
from mkldist.analysis.paired_losses import inference, overlap_of, region
from mkldist.analysis.resampling import Overlap
from mkldist.core.arrays import Floats
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
    from collections.abc import Sequence

    import pandas as pd
    import xarray as xr


@dataclass(frozen=True, eq=False)
class Compared:
    """Losses of the methods on one data set, each at one setting.

    Parameters
    ----------
    dataset : str
        The data set.
    series : str
        Name that it shares with other sizes of it in a scaling study; else its own.
    loss : str
        Name of its variable; the losses of a metric that is better greater are 1 less its values.
    losses : DataFrame
        A row a split, a column a method; NaN where a run is missing.
    overlap : Overlap
        Sizes of the parts, and whether training parts overlap.
    settings : dict of str to dict
        Hyperparameters of each method; empty where they differ between splits.
    validated : bool
        True if settings were selected by validation in each split; False if each method has the
        setting of its least mean loss on the test parts, which flatters methods of many settings.
    """

    dataset: str
    series: str
    loss: str
    losses: pd.DataFrame
    overlap: Overlap
    settings: dict[str, dict[str, Any]]
    validated: bool


def compared_losses(tree: xr.DataTree) -> list[Compared]:
    """Return the losses of all methods, for each data set (and bank, if there are several).

    The loss is that of the sweep's metric on the test part: by default the test error, or the root
    mean square error for regression; of a metric that is better greater, 1 less its value.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it.
    """
    import pandas as pd

    validated = is_validated(tree)
    nodes = method_nodes(selected(tree) if validated else tree)
    places = [place_of(node) for node in nodes]
    several_banks = len({place["bank"] for place in places}) > 1
    groups: dict[tuple[str, str], list[tuple[str, xr.DataTree]]] = {}
    for place, node in zip(places, nodes, strict=True):
        name = f"{place['method']} ({place['bank']})" if several_banks else place["method"]
        groups.setdefault((place["dataset"], str(node.attrs["task"])), []).append((name, node))
    found = []
    for (dataset, _), members in groups.items():
        columns, settings = {}, {}
        loss = loss_name([node for _, node in members])
        for name, node in members:
            losses, setting = best_setting(node, loss)
            if not np.isnan(losses).all():
                columns[name], settings[name] = losses, setting
        if columns:
            table = pd.DataFrame(columns, index=members[0][1].ds["split"].to_numpy())
            table.index.name = "split"
            node = members[0][1]
            series = str(node.attrs.get(DATASET_SERIES, dataset))
            overlap = overlap_of(node.ds)
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
    """
    return pairs_of(compared_losses(tree), rope)


def pairs_of(compared: Sequence[Compared], rope: float | None = None) -> pd.DataFrame:
    """Return the table of :func:`compare_methods` from losses that have been read."""
    import pandas as pd

    columns = ["dataset", "first", "second", "difference", "n_splits", "p_value",
               "first_better", "equivalent", "second_better"]  # fmt: skip
    tables = []
    for one in compared:
        rows = []
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
        table = pd.DataFrame(rows, columns=columns)
        table.insert(6, "p_holm", holm(table["p_value"].to_numpy(float)))
        tables.append(table)
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


@dataclass(frozen=True, eq=False)
class OverDataSets:
    """Comparison of methods over several data sets.

    Parameters
    ----------
    losses : DataFrame
        Mean loss of each method (columns) on each data set (rows).
    pairs : DataFrame
        See :func:`mkldist.analysis.over_data_sets.pairwise_wilcoxon`.
    ranks : Friedman or None
        Friedman's test; None for two methods.
    left_out : tuple of str
        Methods that lack a split, or a data set.
    """

    losses: pd.DataFrame
    pairs: pd.DataFrame
    ranks: Friedman | None
    left_out: tuple[str, ...]


def without_gaps(losses: pd.DataFrame) -> pd.DataFrame:
    """Return losses (splits, methods) of the methods that lack no split that another has.

    The mean loss of a method on fewer splits is one of other points, perhaps of easier ones.
    """
    return losses.dropna(axis="index", how="all").dropna(axis="columns")


def compare_over_data_sets(tree: xr.DataTree) -> OverDataSets | None:
    """Compare methods by their mean losses on several data sets; None if there is nothing to rank.

    Only methods with a loss on every data set, and there on every split, take part.  Of several
    sizes of one data set the largest counts alone: they share their points, and are no independent
    data sets.  Losses of regression, which have the units of their labels, and of classification
    are ranked alike.
    """
    return ranks_of(compared_losses(tree))


def ranks_of(compared: Sequence[Compared]) -> OverDataSets | None:
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
    return OverDataSets(losses, pairwise_wilcoxon(losses), ranks, left_out)


def loss_name(nodes: Sequence[xr.DataTree]) -> str:
    """Return the name of the variable whose loss compares nodes of a data set.

    It is that of the sweep's metric on the test part, or on the unlabelled points if only these
    have it.  Its losses are those of :func:`mkldist.results.rows.complete_losses`.
    """
    metric = metric_of(nodes[0])
    names = [metric.variable(part) for part in ("test", "unlabelled")]
    for name in names:
        if any(name in node.ds and node.ds[name].notnull().any() for node in nodes):
            return name
    return names[0]


def number_of_settings(node: xr.DataTree) -> int:
    """Return the number of settings of a node's method."""
    return math.prod(node.sizes[name] for name in hyperparameters(node))


def best_setting(node: xr.DataTree, score: str) -> tuple[Floats, dict[str, Any]]:
    """Return a node's losses on the splits at its setting of least mean loss, and the setting.

    Settings are compared on the splits that all of them have, so that none wins by easy splits
    alone; those without any run are left out.  Where no split has all, those of most splits are
    compared.
    """
    data = node.ds
    n_splits = data.sizes["split"]
    if score not in data:
        return np.full(n_splits, np.nan), {}
    dims = hyperparameters(node)
    losses = complete_losses(node, score, (SPLIT, *dims))
    flat = losses.reshape(n_splits, -1)
    count = (~np.isnan(flat)).sum(axis=0)
    started = count > 0
    shared = ~np.isnan(flat[:, started]).any(axis=1)
    if not shared.any():
        started = count == count.max()
        shared = np.ones(n_splits, dtype=np.bool_)
    sums = np.nansum(flat[shared], axis=0)
    means = np.where(started, sums / np.maximum((~np.isnan(flat[shared])).sum(axis=0), 1), np.inf)
    best = int(means.argmin())
    place = np.unravel_index(best, losses.shape[1:]) if dims else ()
    setting = {
        name: data[name].to_numpy()[position].item()
        for name, position in zip(dims, place, strict=True)
    }
    return flat[:, best], setting
