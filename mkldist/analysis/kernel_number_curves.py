"""The loss of each method against its number of kernels: those it selects, or those it is given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.analysis.comparison import best_setting, loss_name
from mkldist.analysis.growth import series_names
from mkldist.analysis.paired_losses import overlap_of
from mkldist.analysis.resampling import known_interval
from mkldist.results.rows import (
    complete_losses,
    complete_values,
    hyperparameters,
    method_nodes,
    place_of,
)
from mkldist.results.schema import SPLIT
from mkldist.results.selected import is_validated, selected

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

N_KERNELS = "n_kernels"
_LOSS = ("loss", "mean", "low", "high", "n_splits")


def loss_by_active_kernels(tree: xr.DataTree) -> pd.DataFrame:
    """Return the mean loss of each setting of each method, and how many kernels it selects.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it; the sweep may be running.

    Returns
    -------
    DataFrame
        A row for each data set, bank, method and setting with a complete run: ``dataset``,
        ``bank``, ``method``, the hyperparameters, ``active_kernels`` (mean number of kernels of
        more than 0.001 of the largest weight), ``loss`` (name of the loss), ``mean``, ``low`` and
        ``high`` (the 95 % interval by Nadeau & Bengio 2003; NaN for one split) and ``n_splits``.
    """
    import pandas as pd

    rows = [row for node in method_nodes(tree) for row in _settings(node)]
    columns = ["dataset", "bank", "method", "active_kernels", *_LOSS]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)


def loss_by_bank_size(tree: xr.DataTree) -> pd.DataFrame:
    """Return the mean loss of each method on each size of ``[[banks]] n_kernels = [...]``.

    On each bank a method has its setting chosen there: by validation in each split, else that of
    the least mean loss on the test parts.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it; the sweep may be running.

    Returns
    -------
    DataFrame
        A row for each data set, bank of several sizes, method and size: ``dataset``, ``bank``
        (without its size), ``method``, ``n_kernels``, and ``loss``, ``mean``, ``low``, ``high`` and
        ``n_splits`` as in :func:`loss_by_active_kernels`.
    """
    import pandas as pd

    nodes = method_nodes(selected(tree) if is_validated(tree) else tree)
    banks = {path: bank for path, (_, bank) in series_names(nodes).items()}
    rows = [row for node in nodes for row in _chosen(node, banks[node.path])]
    table = pd.DataFrame(rows, columns=["dataset", "bank", "method", N_KERNELS, *_LOSS])
    group = ["dataset", "bank", "method"]
    several = table.groupby(group)[N_KERNELS].transform("nunique") > 1
    return table[several].reset_index(drop=True)


def _settings(node: xr.DataTree) -> Iterator[dict[str, Any]]:
    """Yield the row of each setting of a node that has a complete run."""
    loss, dims = loss_name([node]), hyperparameters(node)
    if not {loss, "active_kernels"} <= set(node.data_vars):
        return
    losses = complete_losses(node, loss, (SPLIT, *dims))
    kernels = complete_values(node, "active_kernels", (SPLIT, *dims))
    overlap = overlap_of(node.ds)
    for place in np.ndindex(losses.shape[1:]):
        values = losses[:, *place]
        known = ~np.isnan(values)
        if known.any():
            yield {
                **place_of(node),
                **{n: node.ds[n].to_numpy()[i].item() for n, i in zip(dims, place, strict=True)},
                "active_kernels": float(kernels[known, *place].mean()),
                "loss": loss,
                **known_interval(values, overlap)._asdict(),
                "n_splits": int(known.sum()),
            }


def _chosen(node: xr.DataTree, bank: str) -> Iterator[dict[str, Any]]:
    """Yield the row of a node's chosen setting, if it has a complete run."""
    loss = loss_name([node])
    values, _ = best_setting(node, loss)
    n_splits = int((~np.isnan(values)).sum())
    if n_splits and N_KERNELS in node.ds.coords:
        yield {
            **place_of(node),
            "bank": bank,
            N_KERNELS: int(node.ds[N_KERNELS].median()),
            "loss": loss,
            **known_interval(values, overlap_of(node.ds))._asdict(),
            "n_splits": n_splits,
        }
