"""The tree of results as one tidy table: a row per run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.metrics import metric_of_variable
from mkldist.errors import SpecError
from mkldist.results.schema import (
    BANK_BYTES,
    BUILD_TIMES,
    CLASS,
    COORDINATES,
    KERNEL,
    RUN_ID,
    SPLIT,
    STATE,
    TEXTS,
    WEIGHTS,
)
from mkldist.results.state import RunState
from mkldist.spec.model import TRIAL

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

IDENTITY = ("dataset", "bank", "method", SPLIT)
_OF_ALL_KERNELS = ("bank", "family", "normalisation")
"""Coordinates along kernels that all kernels of a bank share."""
_OF_BANKS = tuple(v.name for v in (BANK_BYTES, *BUILD_TIMES))
_GIVEN = tuple(
    v.name for v in COORDINATES if v.dims in ((), (SPLIT,)) and v.name not in (SPLIT, *_OF_BANKS)
)


def to_frame(tree: xr.DataTree, names: Collection[str] | None = None) -> pd.DataFrame:
    """Return the results of a sweep as a table with a row per run.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` or :func:`mkldist.selected` returns it.
    names : collection of str, optional
        Read only these variables; by default all that hold one value per run.

    Returns
    -------
    pandas.DataFrame
        Columns ``dataset``, ``bank``, ``method`` (the key of its node), ``split`` and what else is
        known of it (``repeat``, ``fold``, ``n_train``, ``n_test`` …), ``n_kernels``,
        ``n_features``, one for each hyperparameter of any method (missing for methods without it),
        ``state``, and every scalar and text of the runs.  Vectors are left out.

    Examples
    --------
    >>> import mkldist
    >>> runs = mkldist.to_frame(mkldist.open_results("results/quickstart"))  # doctest: +SKIP
    >>> runs.groupby(["method", "C"], dropna=False).test_error.mean()  # doctest: +SKIP
    """
    import pandas as pd

    tables = []
    given: dict[str, None] = {}
    dims: dict[str, None] = {}
    for node in method_nodes(tree):
        tables.append(_node_rows(node, names))
        given |= dict.fromkeys(name for name in _GIVEN if name in tables[-1])
        dims |= dict.fromkeys(_settings(node))
    if not tables:
        return pd.DataFrame(columns=[*IDENTITY, STATE.name])
    rows = pd.concat(tables, ignore_index=True)
    last = [v.name for v in TEXTS] + [RUN_ID.name]
    first = [*IDENTITY, *given, *dims, STATE.name]
    middle = [name for name in rows.columns if name not in (*first, *last)]
    return rows[[name for name in (*first, *middle, *last) if name in rows.columns]]


def weight_rows(tree: xr.DataTree) -> pd.DataFrame:
    """Return one row per run and kernel of non-zero weight.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it.

    Returns
    -------
    pandas.DataFrame
        Columns ``dataset``, ``bank``, ``method``, ``split``, one for each hyperparameter of any
        method, ``kernel`` (its name, or its position in a bank without names), ``weight`` and
        ``run_id``, by which rows of runs are found;
        ``class_name`` if more than two classes have their own weights; and ``function``, its
        parameters such as ``width``, ``features``, ``feature_group`` and ``view`` of the kernel.
    """
    import pandas as pd

    nodes = [node for node in method_nodes(tree) if WEIGHTS.name in node.variables]
    settings = dict.fromkeys(name for node in nodes for name in _settings(node))
    columns = [*IDENTITY, *settings, KERNEL, "weight", RUN_ID.name]
    tables = [table for node in nodes for table in _node_weights(node)]
    return pd.concat([pd.DataFrame(columns=columns), *tables], ignore_index=True)


def _node_weights(node: xr.DataTree) -> Iterator[pd.DataFrame]:
    """Yield the weights of each split, so that those of all splits need not fit into memory."""
    import pandas as pd

    dataset = node.to_dataset()
    dims = (SPLIT, *hyperparameters(node))
    of_classes = CLASS in dataset[WEIGHTS.name].dims
    weights = dataset[WEIGHTS.name].transpose(*dims, *[CLASS] * of_classes, KERNEL)
    runs = dataset[RUN_ID.name].transpose(*dims)
    of_runs = {
        name: _plain(dataset[name].broadcast_like(runs).transpose(*dims).to_numpy())
        for name in (*_settings(node), RUN_ID.name)
    }
    names = _plain(dataset[KERNEL].to_numpy()) if KERNEL in dataset.coords else None
    known = {
        str(name): _plain(values.to_numpy())
        for name, values in dataset.coords.items()
        if values.dims == (KERNEL,) and name not in (KERNEL, *_OF_ALL_KERNELS)
    }
    for number, split in enumerate(dataset[SPLIT].to_numpy()):
        values = np.nan_to_num(weights.isel({SPLIT: number}).to_numpy())
        *places, kernels = found = np.nonzero(values)
        classes = {}
        if of_classes:
            classes[CLASS] = _plain(dataset[CLASS].to_numpy())[places.pop()]
        yield pd.DataFrame(
            {
                **place_of(node),
                SPLIT: split,
                KERNEL: kernels if names is None else names[kernels],
                "weight": values[found],
                **{name: own[(number, *places)] for name, own in of_runs.items()},
                **classes,
                **{name: values[kernels] for name, values in known.items()},
            }
        )


def _settings(node: xr.DataTree) -> list[str]:
    """Return the names of a node's dims and hyperparameters."""
    return [*dict.fromkeys((*hyperparameters(node), *settings_of(node)))]


def method_nodes(tree: xr.DataTree) -> list[xr.DataTree]:
    """Return the nodes that hold runs.

    Raises
    ------
    mkldist.errors.SpecError
        For anything but a tree, such as the path of a folder.
    """
    if not hasattr(tree, "subtree"):
        hint = 'Open the output folder first, as in mkldist.open_results("results/mine")'
        raise SpecError("tree", f"{tree!r:.60}", "results, an xarray.DataTree", hint)
    return [node for node in tree.subtree if RUN_ID.name in node.variables]


def place_of(node: xr.DataTree) -> dict[str, str]:
    """Return the data set, bank and method of a node's runs."""
    return {
        "dataset": node.path.split("/")[1],
        "bank": str(node.attrs.get("bank", "")),
        "method": str(node.name),
    }


def hyperparameters(node: xr.DataTree) -> list[str]:
    """Return the names of a node's hyperparameters."""
    return [str(name) for name in node.variables[RUN_ID.name].dims if name != SPLIT]


def complete_losses(node: xr.DataTree, name: str, dims: Sequence[str]) -> Floats:
    """Return the losses of a metric's variable, which are the less the better.

    They are its values, or 1 less those of a metric that is better greater; NaN where a run is not
    complete.
    """
    losses: Floats = metric_of_variable(name).loss(complete_values(node, name, dims))
    return losses


def complete_values(node: xr.DataTree, name: str, dims: Sequence[str]) -> Floats:
    """Return a variable of a node's runs along `dims`, NaN where a run is not complete."""
    values, states = (node[one].transpose(*dims).to_numpy() for one in (name, STATE.name))
    found: Floats = np.where(states == RunState.COMPLETE.value, values, np.nan)
    return found


def settings_of(node: xr.DataTree) -> list[str]:
    """Return the names of a node's hyperparameters; of trials, those that are coordinates."""
    of_trials = [
        str(name) for name, values in node.ds.coords.items() if values.dims == (SPLIT, TRIAL)
    ]
    return of_trials or hyperparameters(node)


def _node_rows(node: xr.DataTree, names: Collection[str] | None) -> pd.DataFrame:
    import pandas as pd

    dataset = node.to_dataset()
    dims = (SPLIT, *hyperparameters(node))
    shape = dataset[RUN_ID.name].shape
    columns: dict[str, Any] = dict(place_of(node))
    of_runs = [n for n, c in dataset.coords.items() if {*dims}.issuperset(c.dims) and n not in dims]
    if names is not None:
        of_runs = [name for name in of_runs if name not in _OF_BANKS or name in names]
    for name in (*dims, *of_runs):
        own = dataset.variables[name]
        values = _plain(own.transpose(*[dim for dim in dims if dim in own.dims]).to_numpy())
        values = values.reshape([own.sizes.get(dim, 1) for dim in dims])
        columns[str(name)] = np.broadcast_to(values, shape).ravel()
    for key, variable in dataset.data_vars.items():
        if variable.dims == dims and (names is None or key in names):
            columns[str(key)] = _plain(variable.to_numpy()).ravel()
    planned = _plain(dataset[RUN_ID.name].to_numpy()).ravel() != ""
    table: pd.DataFrame = pd.DataFrame(columns).loc[planned]
    return table


def _plain(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return text as Python strings, which every version of pandas and numpy reads."""
    return values.astype(object) if values.dtype.kind in "TU" else values
