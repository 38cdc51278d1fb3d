"""Results at the settings that cross-validation selects for each split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mkldist.core.arrays import Array
from mkldist.errors import InputError
from mkldist.results.node_variables import metric_of
from mkldist.results.rows import hyperparameters, method_nodes
from mkldist.results.schema import RUNGS, SPLIT

if TYPE_CHECKING:
    import xarray as xr


def selected(tree: xr.DataTree) -> xr.DataTree:
    """Return the results of every method at the setting selected for each split.

    The setting whose validation value of the sweep's metric is best is selected: the least
    ``validation_error`` (``validation_rmse`` for regression) of a sweep that names no metric.
    Selection never uses labels of test or unlabelled rows.  Of equal settings the first
    is taken, in the order of the values in the sweep file, with the last hyperparameter varying
    fastest.  Runs that failed or have no outcome yet are skipped; a split with no other run has the
    first setting, and its ``state`` tells why.  Of a search by halving it is the best on the last
    rung that has results.

    Parameters
    ----------
    tree : xarray.DataTree
        Results of a sweep with ``[selection]``, from :func:`mkldist.open_results`.

    Returns
    -------
    xarray.DataTree
        The same tree without the dims of hyperparameters; their selected values are coordinates
        along ``split``.

    Raises
    ------
    mkldist.errors.InputError
        If the sweep had no inner folds.

    Examples
    --------
    >>> import mkldist
    >>> tree = mkldist.selected(mkldist.open_results("results/mine"))  # doctest: +SKIP
    >>> tree["mine/level"].test_error.mean(), tree["mine/level"].C  # doctest: +SKIP
    """
    import xarray as xr

    if not is_validated(tree):
        raise InputError(
            "selected",
            "results of a sweep without inner folds",
            "validation scores, by which to select",
            "Add [selection] to the sweep file and repeat the sweep",
        )
    parts = {node.path: node.to_dataset() for node in tree.subtree}
    for node in method_nodes(tree):
        chosen = _chosen(node)
        for part in node.subtree:
            parts[part.path] = part.to_dataset().isel(chosen)
    return xr.DataTree.from_dict(parts, name=tree.name)


def is_validated(tree: xr.DataTree) -> bool:
    """Return True if results hold the scores that select settings."""
    nodes = method_nodes(tree)
    return bool(nodes) and all(_score(node) in node.ds for node in nodes)


def _score(node: xr.DataTree) -> str:
    return metric_of(node).variable("validation")


def selecting_losses(node: xr.DataTree) -> Array:
    """Return the losses of which the least selects, (n_splits, ...), a dim a hyperparameter.

    Those of runs that cannot be selected are NaN.
    """
    dims = hyperparameters(node)
    values = node.ds[_score(node)].transpose(SPLIT, *dims).to_numpy()
    losses: Array = metric_of(node).loss(values)
    if RUNGS in node.attrs:
        losses = _on_last_rung(losses, 1 + dims.index(node.attrs[RUNGS]))
    return losses


def _chosen(node: xr.DataTree) -> dict[str, xr.DataArray]:
    """Return the position of the selected setting of each split along every dim of the runs."""
    import xarray as xr

    dims = hyperparameters(node)
    losses = selecting_losses(node)
    n_splits, *grid = losses.shape
    flat = np.where(np.isnan(losses), np.inf, losses).reshape(n_splits, -1)
    places = np.unravel_index(flat.argmin(axis=1), grid) if grid else ()
    positions = dict(zip(dims, places, strict=True)) if dims else {}
    return {
        name: xr.DataArray(position, dims=SPLIT)
        for name, position in {SPLIT: np.arange(n_splits), **positions}.items()
    }


def _on_last_rung(losses: Array, axis: int) -> Array:
    """Return losses without those of earlier rungs than the last of each split that has any."""
    rungs_last = np.moveaxis(losses, axis, -1)
    n_splits, n_rungs = len(losses), rungs_last.shape[-1]
    finite: Array = np.isfinite(rungs_last).reshape(n_splits, -1, n_rungs)
    last = np.array([max(np.flatnonzero(rungs.any(axis=0)), default=-1) for rungs in finite])
    last %= n_rungs
    shape = [n_splits] + [1] * (losses.ndim - 2) + [n_rungs]
    is_last = (np.arange(n_rungs) == last[:, None]).reshape(shape)
    return np.moveaxis(np.where(is_last, rungs_last, np.nan), -1, axis)
