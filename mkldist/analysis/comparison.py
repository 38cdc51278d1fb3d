"""Comparison of the methods of a sweep, from its tree of results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.analysis.over_data_sets import Friedman, friedman, holm, pairwise_wilcoxon
from mkldist.analysis.resampling import Overlap, corrected_t_test, correlated_posterior
from mkldist.arrays import Floats
from mkldist.results.rows import hyperparameters, method_nodes, place_of
from mkldist.results.selected import is_validated, selected
from mkldist.results.state import RunState

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import xarray as xr

SCORES = {
    "classification": ("test_error", "unlabelled_error"),
    "regression": ("rmse", "unlabelled_rmse"),
}
"""Losses of each task; the first that a data set has compares its methods."""


@dataclass(frozen=True, eq=False)
class Compared:
    """Losses of the methods on one data set, each at one setting.

    Parameters
    ----------
    dataset : str
        The data set.
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
    losses: pd.DataFrame
    overlap: Overlap
    settings: dict[str, dict[str, Any]]
    validated: bool


def compared_losses(tree: xr.DataTree) -> list[Compared]:
    """Return the losses of all methods, for each data set (and bank, if there are several).

    The loss is the test error, or the root mean square error for regression.

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
    for (dataset, task), members in groups.items():
        columns, settings = {}, {}
        for name, node in members:
            losses, setting = best_setting(node, loss_name([node for _, node in members], task))
            if not np.isnan(losses).all():
                columns[name], settings[name] = losses, setting
        if columns:
            table = pd.DataFrame(columns, index=members[0][1].ds["split"].to_numpy())
            table.index.name = "split"
            overlap = _overlap(members[0][1].ds)
            found.append(Compared(dataset, table, overlap, settings, validated))
    return found


def compare_methods(tree: xr.DataTree, rope: float = 0.01) -> pd.DataFrame:
    """Compare every two methods on every data set.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it.
    rope : float
        Half the width of the region of practical equivalence, in units of the loss: a difference of
        0.01 in error by default.

    Returns
    -------
    DataFrame
        A row for each data set and pair: ``dataset``, ``first``, ``second``, ``difference`` (mean
        loss of the first minus that of the second), ``n_splits``, ``p_value`` and ``p_holm`` of
        the corrected resampled t-test (Holm over the pairs of a data set), and the posterior
        probabilities ``first_better``, ``equivalent`` and ``second_better`` of the correlated
        t-test.  Pairs with fewer than two splits in common have no row.
    """
    return pairs_of(compared_losses(tree), rope)


def pairs_of(compared: Sequence[Compared], rope: float = 0.01) -> pd.DataFrame:
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
                test = corrected_t_test(differences, one.overlap)
                posterior = correlated_posterior(differences, one.overlap, rope)
                place = (one.dataset, first, second)
                rows.append((*place, test.mean, len(differences), test.p_value, *posterior))
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
    """

    losses: pd.DataFrame
    pairs: pd.DataFrame
    ranks: Friedman | None


def compare_over_data_sets(tree: xr.DataTree) -> OverDataSets | None:
    """Compare methods by their mean losses on several data sets; None if there is nothing to rank.

    Only methods with a loss on every data set take part.  Losses of regression, which have the
    units of their labels, and of classification are ranked alike.
    """
    return ranks_of(compared_losses(tree))


def ranks_of(compared: Sequence[Compared]) -> OverDataSets | None:
    """Return what :func:`compare_over_data_sets` does, from losses that have been read."""
    import pandas as pd

    means = {one.dataset: one.losses.mean() for one in compared}
    losses = pd.DataFrame(means).T.dropna(axis=1)
    if len(losses) < 2 or losses.shape[1] < 2:
        return None
    ranks = friedman(losses) if losses.shape[1] > 2 else None
    return OverDataSets(losses, pairwise_wilcoxon(losses), ranks)


def loss_name(nodes: Sequence[xr.DataTree], task: str) -> str:
    """Return the name of the loss that compares nodes of a data set."""
    for name in SCORES[task]:
        if any(name in node.ds and node.ds[name].notnull().any() for node in nodes):
            return name
    return SCORES[task][0]


def best_setting(node: xr.DataTree, score: str) -> tuple[Floats, dict[str, Any]]:
    """Return a node's losses on the splits at its setting of least mean loss, and the setting.

    Settings with fewer complete runs than others are left out.
    """
    data = node.ds
    n_splits = data.sizes["split"]
    if score not in data:
        return np.full(n_splits, np.nan), {}
    dims = hyperparameters(node)
    complete = (data["state"] == RunState.COMPLETE.value).to_numpy()
    values = np.where(complete, data[score].to_numpy(), np.nan)
    array = data[score].copy(data=values).transpose("split", *dims)
    flat = array.to_numpy().reshape(n_splits, -1)
    count = (~np.isnan(flat)).sum(axis=0)
    means = np.where(count == count.max(), np.nansum(flat, axis=0) / np.maximum(count, 1), np.inf)
    best = int(means.argmin())
    place = np.unravel_index(best, array.shape[1:]) if dims else ()
    setting = {
        name: data[name].to_numpy()[position].item()
        for name, position in zip(dims, place, strict=True)
    }
    return flat[:, best], setting


def _overlap(data: xr.Dataset) -> Overlap:
    """Return the mean sizes of the parts of a node's splits."""
    n_train, n_test = float(data["n_train"].mean()), float(data["n_test"].mean())
    return Overlap(n_train, n_test, independent=data.sizes["split"] == 1)
