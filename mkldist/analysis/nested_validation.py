"""Nested cross-validation: settings selected inside each split, and how optimistic that looks.

A sweep with ``[selection]`` cross-validates every setting on the training part of each split.  The
validation loss of the selected setting is the least of many, and so too low on average; its loss on
the test part, which took no part in the selection, is not (Varma & Simon 2006; Cawley & Talbot
2010).  Their difference is the *optimism* of the selection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mkldist.analysis.comparison import loss_name
from mkldist.analysis.paired_losses import overlap_of
from mkldist.analysis.resampling import Overlap, known_interval
from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.errors import InputError
from mkldist.results.rows import (
    complete_values,
    hyperparameters,
    is_validated,
    method_nodes,
    place_of,
    settings_of,
)
from mkldist.results.schema import RUNGS, SPLIT, metric_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


Rule = Literal["best", "one_standard_error", "sparsest"]


def choose_setting(
    errors: Floats, simplicity: Floats, rule: Rule = "best", overlap: Overlap | None = None
) -> int:
    """Return the position of the setting that a rule chooses.

    Parameters
    ----------
    errors : (J, S) float64
        Validation error of each of S settings on each of J folds or splits.
    simplicity : (S,) float64
        What breaks ties, smaller first: for ``"one_standard_error"`` the order from strong to weak
        regularisation, for ``"sparsest"`` the mean number of active kernels.
    rule : {"best", "one_standard_error", "sparsest"}
        Least mean error; the simplest setting within one standard error of it (Breiman, Friedman,
        Olshen & Stone 1984); or the same by number of kernels.  The last two differ in what
        `simplicity` means only.
    overlap : Overlap, optional
        Sizes of training and test parts, for the standard error by Nadeau & Bengio; by default the
        folds count as independent.

    Raises
    ------
    ValueError
        If an error is missing, or a rule needs a standard error and there is one fold.
    """
    errors, simplicity = np.asarray(errors, float), np.asarray(simplicity, float)
    if np.isnan(errors).any():
        fold, setting = np.argwhere(np.isnan(errors))[0]
        raise ValueError(f"found no error of setting {setting} on fold {fold}; expected all errors")
    means, n_folds = errors.mean(axis=0), len(errors)
    limit = float(means.min())
    if rule != "best":
        if n_folds < 2:
            raise ValueError(f"found {n_folds} fold; expected at least two, for a standard error")
        best = int(means.argmin())
        factor = (overlap or Overlap(1.0, 1.0, independent=True)).variance_factor(n_folds)
        limit += float(errors[:, best].std(ddof=1) * np.sqrt(factor))
    within = np.flatnonzero(means <= limit)
    return int(within[np.lexsort((means[within], simplicity[within]))[0]])


NestedRule = Literal["best", "sparsest"]
RULES: tuple[NestedRule, ...] = ("best", "sparsest")
PLACE = ("dataset", "bank", "method", "rule")


def nested_selection(tree: xr.DataTree) -> pd.DataFrame:
    """Return the setting that each rule selects in each split, with its losses.

    The rules are ``"best"``, the setting of least validation loss, and ``"sparsest"``, that of
    fewest active kernels among those whose validation error is within one standard error of the
    least (Breiman, Friedman, Olshen & Stone 1984).  The standard error is theirs,
    ``sqrt(e (1 - e) / n)`` for the error e on the n training points of a split.  Other metrics
    have no such formula, and their ``"sparsest"`` setting is left out.  Of equal settings the
    first counts, and runs that are not complete do not.

    Parameters
    ----------
    tree : xarray.DataTree
        Results of a sweep with ``[selection]``, from :func:`mkldist.open_results`.

    Returns
    -------
    DataFrame
        A row for each data set, bank, method, rule and split: ``loss`` (name of the test loss),
        the hyperparameters, ``validation`` and ``test`` (losses of the selected setting),
        ``optimism`` (test minus validation), ``active_kernels``, ``n_settings``, and
        ``least_test``: the least test loss of all settings, which a selection on the test part
        would report.  Losses are shares, or in the units of the labels.

    Raises
    ------
    mkldist.errors.InputError
        If the sweep had no inner folds, or searched its settings by halving, whose rungs do not
        compare.
    """
    import pandas as pd

    _check(tree)
    rows = [row for node in method_nodes(tree) for row in _rows(node)]
    columns = [*PLACE, SPLIT, "loss", "validation", "test", "optimism", "active_kernels",
               "least_test", "n_settings"]  # fmt: skip
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)


def selection_optimism(tree: xr.DataTree) -> pd.DataFrame:
    """Return the mean optimism of each rule, with its corrected 95 % interval over the splits.

    Parameters
    ----------
    tree : xarray.DataTree
        As for :func:`nested_selection`.

    Returns
    -------
    DataFrame
        A row for each data set, bank, method and rule: ``loss``, ``n_splits``, ``n_settings``, the
        means ``validation``, ``test``, ``least_test`` and ``active_kernels``, and ``optimism`` with
        the ends ``low`` and ``high`` of its interval by Nadeau & Bengio (2003), which are NaN for
        one split.

    Raises
    ------
    mkldist.errors.InputError
        As for :func:`nested_selection`.
    """
    import pandas as pd

    nodes = {tuple(place_of(node).values()): node.to_dataset() for node in method_nodes(tree)}
    table = nested_selection(tree)
    found = []
    for key, some in table.groupby(list(PLACE), sort=False):
        place = [str(part) for part in key]
        data = nodes[tuple(place[:3])]
        number = np.flatnonzero(np.isin(data[SPLIT].to_numpy(), some[SPLIT].to_numpy()))
        overlap = overlap_of(data, number.tolist())
        _, low, high = known_interval(some["optimism"].to_numpy(float), overlap)
        names = ["validation", "test", "least_test", "active_kernels", "optimism"]
        means = {name: float(some[name].mean()) for name in names}
        counts = {"n_splits": len(some), "n_settings": int(some["n_settings"].max())}
        own = dict(zip(PLACE, place, strict=True))
        found.append({**own, "loss": some["loss"].iloc[0], **counts, **means,
                      "low": low, "high": high})  # fmt: skip
    return pd.DataFrame(found)


def within_one_standard_error(errors: Floats, n_points: int) -> Bools:
    """Return which settings have an error within one standard error of the least.

    Parameters
    ----------
    errors : (S,) float64
        Cross-validated errors of S settings, as shares; NaN for one that does not take part.
    n_points : int
        Number of points on which they are errors.

    Examples
    --------
    >>> within_one_standard_error(np.array([0.2, 0.23, 0.3]), 100)
    array([ True,  True, False])
    """
    least = float(np.nanmin(errors))
    limit = least + math.sqrt(least * (1.0 - least) / n_points)
    within: Bools = errors <= limit
    return within


def _check(tree: xr.DataTree) -> None:
    """Refuse results that do not tell what nested selection would select."""
    if not is_validated(tree):
        raise InputError(
            "nested_selection",
            "results of a sweep without inner folds",
            "validation scores, by which to select",
            "Add [selection] to the sweep file and repeat the sweep",
        )
    if any(RUNGS in node.attrs for node in method_nodes(tree)):
        raise InputError(
            "nested_selection",
            "a search by halving, whose trials are validated at unequal resources",
            'a grid, or a search of another kind such as "random"',
        )


def _rows(node: xr.DataTree) -> list[dict[str, Any]]:
    """Return a row for each rule and split of a node."""
    loss = loss_name([node])
    name = metric_of(node).variable("validation")
    *scores, kernels = (_flat(node, one) for one in (name, loss, "active_kernels"))
    validation, test = map(metric_of(node).loss, scores)
    known = ~np.isnan(validation) & ~np.isnan(test)
    n_train = node.ds["n_train"].to_numpy()
    rows = []
    for rule in RULES if metric_of(node).name == "error" else RULES[:1]:
        for split in np.flatnonzero(known.any(axis=1)).tolist():
            errors = np.where(known[split], validation[split], np.nan)
            chosen = _choose(errors, kernels[split], int(n_train[split]), rule)
            rows.append(
                {
                    **place_of(node),
                    "rule": rule,
                    SPLIT: node.ds[SPLIT].to_numpy()[split].item(),
                    **_setting(node, split, chosen),
                    "loss": loss,
                    "validation": float(errors[chosen]),
                    "test": float(test[split, chosen]),
                    "optimism": float(test[split, chosen] - errors[chosen]),
                    "active_kernels": float(kernels[split, chosen]),
                    "least_test": float(test[split][known[split]].min()),
                    "n_settings": int(known[split].sum()),
                }
            )
    return rows


def _choose(losses: Floats, kernels: Floats, n_points: int, rule: NestedRule) -> int:
    """Return the position of the setting that a rule selects in a split."""
    if rule == "best":
        return int(np.nanargmin(losses))
    within: Ints = np.flatnonzero(within_one_standard_error(losses, n_points))
    return int(within[np.lexsort((losses[within], kernels[within]))[0]])


def _flat(node: xr.DataTree, name: str) -> Floats:
    """Return a variable as (splits, settings), NaN where no run is complete."""
    values = complete_values(node, name, (SPLIT, *hyperparameters(node)))
    return values.reshape(len(values), -1)


def _setting(node: xr.DataTree, split: int, chosen: int) -> dict[str, Any]:
    """Return the hyperparameters of a setting by its position among those of a split."""
    dims = hyperparameters(node)
    place = np.unravel_index(chosen, [node.sizes[name] for name in dims]) if dims else ()
    where: dict[str, Any] = {SPLIT: split, **dict(zip(dims, place, strict=True))}
    names: Sequence[str] = settings_of(node)
    found = {}
    for name in names:
        own = node.ds[name]
        value = own.isel({dim: where[str(dim)] for dim in own.dims})
        found[name] = value.item()
    return found
