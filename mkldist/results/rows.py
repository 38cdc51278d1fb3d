"""The tree of results as one tidy table: a row per run."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.core.arrays import Array, Bools, Floats
from mkldist.core.metrics import METRICS, metric_of_variable
from mkldist.core.wording import natural_key
from mkldist.errors import InputError, SpecError, nearest
from mkldist.results.schema import (
    BANK_BYTES,
    BANK_SERIES,
    BUILD_TIMES,
    CLASS,
    COORDINATES,
    DATASET_SERIES,
    DECISION_VALUES,
    KERNEL,
    LABEL,
    OF_SPLITS,
    PREDICTED,
    RUN_ID,
    SAMPLE,
    SPLIT,
    STATE,
    TEXTS,
    WEIGHTS,
    RunState,
    metric_of,
)
from mkldist.scores import score_over_folds
from mkldist.spec.kinds import TRIAL

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
    >>> runs = runs.query("method == 'level'")  # doctest: +SKIP
    >>> runs.groupby("C").test_error.mean().round(3).to_dict()  # doctest: +SKIP
    {0.1: 0.048, 1.0: 0.037, 10.0: 0.035}
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
    order = dict.fromkeys((*first, *middle, *last))  # joined results have n_kernels twice
    return rows[[name for name in order if name in rows.columns]]


def weight_rows(tree: xr.DataTree) -> pd.DataFrame:
    """Return one row per run and kernel of non-zero weight."""
    import pandas as pd

    nodes = [node for node in method_nodes(tree) if WEIGHTS.name in node.variables]
    settings = dict.fromkeys(name for node in nodes for name in _settings(node))
    columns = [*IDENTITY, *settings, KERNEL, "weight", RUN_ID.name]
    tables = [table for node in nodes for table in _node_weights(node)]
    found = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    return found.reindex(columns=[*dict.fromkeys((*columns, *found.columns))])


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


@dataclass(frozen=True, eq=False)
class MethodRuns:
    """The runs of a method on a bank as arrays, by split and by setting of a grid; no vectors."""

    place: Mapping[str, str]  # Data set, bank and method
    attributes: Mapping[str, Any]  # Those of its node
    grid: Mapping[str, Array]  # Values of the hyperparameters
    values: Mapping[str, Array]  # Of each variable, (n_splits, n_settings)
    splits: Mapping[str, Array]  # Of the coordinates along the splits, (n_splits,)
    n_pooled: int = 0  # Test parts without a score of their own, see `is_pooled`

    @classmethod
    def of(cls, node: xr.DataTree) -> MethodRuns:
        """Return the runs of a node of a tree."""
        data, dims = node.to_dataset(), (SPLIT, *hyperparameters(node))
        pooled = [str(name) for name in data.data_vars if is_pooled(data, str(name))]
        values = {
            str(name): complete_values(data, str(name), dims)
            if name in pooled
            else values.transpose(*dims).to_numpy()
            for name, values in data.data_vars.items()
            if {*values.dims} == {*dims}
        }
        return cls(
            place_of(node),
            {str(name): value for name, value in node.attrs.items()},
            {name: node[name].to_numpy() for name in dims[1:]},
            {name: array.reshape(len(array), -1) for name, array in values.items()},
            {name: data[name].to_numpy() for name in OF_SPLITS if name in data.coords},
            n_of_few_classes(data) if pooled else 0,
        )


def _settings(node: xr.DataTree) -> list[str]:
    """Return the names of a node's dims and hyperparameters."""
    return [*dict.fromkeys((*hyperparameters(node), *settings_of(node)))]


def method_nodes(tree: xr.DataTree) -> list[xr.DataTree]:
    """Return the nodes that hold runs."""
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
    """Return the losses of a metric's variable, which are the less the better."""
    losses: Floats = metric_of_variable(name).loss(complete_values(node, name, dims))
    return losses


def complete_values(node: xr.DataTree | xr.Dataset, name: str, dims: Sequence[str]) -> Floats:
    """Return a variable of a node's runs along `dims`, NaN where a run is not complete."""
    values, states = (node[one].transpose(*dims).to_numpy() for one in (name, STATE.name))
    complete = states == RunState.COMPLETE.value
    if is_pooled(node, name):
        values = _of_folds_together(node, name, dims, complete)
    return np.where(complete, values, np.nan)


_CONTRASTS = {m.variable(): m for m in METRICS.values() if m.contrasts}


def n_of_few_classes(node: xr.DataTree | xr.Dataset) -> int:
    """Return how many test parts lack a class or, of real values, a second one; 0 but for folds."""
    known = {str(name): values.to_numpy() for name, values in node.coords.items() if values.ndim}
    return few_classes(known, node.sizes.get(CLASS, 2))


def few_classes(splits: Mapping[str, Array], n_classes: int) -> int:
    """Return the number of :func:`n_of_few_classes` from coordinates along the splits."""
    if "n_classes" not in splits or not np.any(np.diff(splits["repeat"]) == 0):
        return 0
    return int((splits["n_classes"] < n_classes).sum())


def is_pooled(node: xr.DataTree | xr.Dataset, name: str) -> bool:
    """Return True for a score of which a fold has none of its own, as it lacks a class.

    The rows of all folds of a repetition are then scored together, if their decision values are
    recorded.
    """
    if name not in _CONTRASTS or name not in node:
        return False
    known = _CONTRASTS[name].by_confusion or DECISION_VALUES.name in node
    return known and n_of_few_classes(node) > 0


def _of_folds_together(
    node: xr.DataTree | xr.Dataset, name: str, dims: Sequence[str], complete: Bools
) -> Floats:
    """Return a score of the rows of all folds of each repetition together, along `dims`."""
    k, repeat = node.sizes.get(CLASS, 0), node["repeat"].to_numpy()
    found = np.full(complete.shape, np.nan)
    confusion, decisions = np.zeros((*found.shape, 0, 0)), None
    labels: Array = np.zeros(0)
    if k:
        confusion = node["confusion"].transpose(*dims, CLASS, PREDICTED).to_numpy()
    if not _CONTRASTS[name].by_confusion:
        decisions = node[DECISION_VALUES.name].transpose(*dims, ..., SAMPLE)
        labels = node[LABEL].to_numpy()
        labels = labels > 0 if k == 2 else labels
    for at in np.ndindex(found.shape[1:]):
        for number in np.unique(repeat):
            place = np.flatnonzero((repeat == number) & complete[:, *at]), *at
            values, of_fold, tested = np.zeros((1, 0)), np.arange(len(place[0])), labels
            if decisions is not None:
                own = decisions[place].to_numpy().reshape(len(place[0]), -1, len(labels))
                of_fold, rows = np.nonzero(~np.isnan(own[:, 0]))
                values, tested = own[of_fold, :, rows].T, labels[rows]
            if len(of_fold):
                found[place] = score_over_folds(name, values, tested, of_fold, k, confusion[place])
    return found


def settings_of(node: xr.DataTree) -> list[str]:
    """Return the names of a node's hyperparameters; of trials, those that are coordinates."""
    of_trials = [
        str(name) for name, values in node.ds.coords.items() if values.dims == (SPLIT, TRIAL)
    ]
    return of_trials or hyperparameters(node)


def _node_rows(node: xr.DataTree, names: Collection[str] | None) -> pd.DataFrame:
    import pandas as pd

    dims = (SPLIT, *hyperparameters(node))
    dataset = node.to_dataset().transpose(*dims, ...)  # joined results have a dim before the splits
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
        If the sweep had no inner folds, or the results are joined already, by :func:`concat`.

    Examples
    --------
    >>> import mkldist
    >>> tree = mkldist.selected(mkldist.open_results("results/selected"))  # doctest: +SKIP
    >>> tree["wdbc/level"].C.to_numpy()  # of each split  # doctest: +SKIP
    array([3., 1., 1.])
    """
    import xarray as xr

    if not is_validated(tree):
        raise InputError(
            "selected",
            "results of a sweep without inner folds",
            "validation scores, by which to select",
            "Add [selection] to the sweep file and repeat the sweep",
        )
    joined = [dim for node in method_nodes(tree) for dim in hyperparameters(node) if dim in DIMS]
    if joined:
        raise InputError(
            "selected",
            f"results joined along {joined[0]!r}, which is no setting to select",
            "results as open_results returns them",
            f"Select first: concat(selected(tree), {joined[0]!r})",
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
    return metric_of(node.attrs).variable("validation")


def selecting_losses(node: xr.DataTree) -> Array:
    """Return the losses of which the least selects, (n_splits, ...); NaN cannot be selected."""
    dims = hyperparameters(node)
    values = node.ds[_score(node)].transpose(SPLIT, *dims).to_numpy()
    losses: Array = metric_of(node.attrs).loss(values)
    if {TRIAL, "tol"} <= {*dims}:  # of successive halving
        losses = _on_last_rung(losses, 1 + dims.index("tol"))
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


SIZES = ("n_kernels", "n_features", "n_train", "n_test", "n_unlabelled")
PLACES = {"dataset": "dataset", "bank": "bank", "method_name": "method"}
"""Part of a node's place that each dim of names joins; ``sel`` of xarray has a word ``method``."""
_SERIES = {"n_kernels": ("bank", BANK_SERIES), "n_train": ("dataset", DATASET_SERIES)}
"""Sizes of a scaling study: the part of the place that a list makes several of, and its name."""
DIMS = (*PLACES, *SIZES)
Part = tuple[Any, str, "xr.Dataset"]
"""Value along the dimension, name in the place that is joined, and results of a node."""


def concat(tree: xr.DataTree, dim: str) -> xr.DataTree:
    """Return results whose nodes lie side by side along a dimension.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` or :func:`mkldist.selected` returns it.
    dim : str
        ``"method_name"``, ``"bank"`` or ``"dataset"`` joins the nodes that differ in nothing else,
        along a dimension of their names.  A size joins the nodes of each method along the numbers:
        ``"n_kernels"``, those of different banks on the same data set, or of different data sets if
        there is one bank; ``"n_features"``, ``"n_train"``, ``"n_test"`` and ``"n_unlabelled"``,
        those of different data sets.  In a scaling study, ``"n_kernels"`` and ``"n_train"`` join
        the sizes of each bank or data set of the sweep file, and no others.  A size that differs
        between splits counts with its median.

    Returns
    -------
    xarray.DataTree
        Nodes with the further dimension `dim`, called by the other names of their place, such as
        ``"wdbc/level"``; the sizes of a scaling study by their name in the sweep file.  Where nodes
        have different values of a dimension, such as ``C`` or ``kernel``, the results have all
        values, and NaN or empty text where a node has none.  A node without a hyperparameter, such
        as that of ``majority``, has the same results at each of its values.  Variables along
        ``sample``, convergence traces, and variables whose dimensions differ between joined nodes
        are left out.

    Raises
    ------
    mkldist.errors.InputError
        For another `dim`, or if two nodes that would be joined have the same size, or one has a
        grid of a hyperparameter that is searched in the other.

    Examples
    --------
    >>> import mkldist
    >>> tree = mkldist.open_results("results/growth")  # of several sizes  # doctest: +SKIP
    >>> joined = mkldist.concat(tree, "n_kernels")  # doctest: +SKIP
    >>> joined["wdbc-50/level"].test_error.mean("split").round(3).to_series()  # doctest: +SKIP
    n_kernels  C
    10         1.0    0.074
    30         1.0    0.040
    90         1.0    0.084
    Name: test_error, dtype: float64
    """
    import xarray as xr

    if dim not in DIMS:
        known = ", ".join(DIMS)
        raise InputError("concat", f"{dim!r}", f"one of {known}", nearest(dim, DIMS))
    nodes = [(place_of(node), node) for node in method_nodes(tree)]
    parts = PLACES.values()
    several = {part for part in parts if len({place[part] for place, _ in nodes}) > 1}
    default = "bank" if dim == "n_kernels" and "bank" in several else "dataset"
    joined, attribute = _SERIES.get(dim, ("", ""))
    series = {p[joined]: str(n.attrs.get(attribute, p[joined])) for p, n in nodes if joined}
    if all(name == own for own, name in series.items()):
        series, joined = {}, PLACES.get(dim, default)
    elif len({*series.values()}) == 1:
        several -= {joined}
    named = [p for p in parts if (series or p != joined) and (p != "bank" or "bank" in several)]
    groups: dict[str, list[Part]] = {}
    for place, node in nodes:
        data = node.to_dataset()
        data = data.drop_dims([one for one in (SAMPLE,) if one in data.dims])
        value = place.get(PLACES.get(dim, ""), data.coords.get(dim))
        if isinstance(value, xr.DataArray):
            value = int(np.median(value))
        common = place | ({joined: series[place[joined]]} if series else {})
        data = data.assign_attrs(bank=common["bank"]) if series else data
        groups.setdefault("/".join(common[part] for part in named), []).append(
            (value, place[joined], data)
        )
    for where, group in groups.items():
        _check_values(group, dim, where)
        _check_searched(group, where)
    found = {where: _side_by_side(group, dim) for where, group in groups.items()}
    return xr.DataTree.from_dict(found, name=tree.name)


def _check_values(group: Sequence[Part], dim: str, where: str) -> None:
    """Refuse nodes without a value along the dimension, or with the same one."""
    values = [value for value, _, _ in group]
    for value, name, _ in group:
        if value is None:
            raise InputError(f"concat: {where}", f"no {dim} of {name}", "results with this size")
        if values.count(value) > 1:
            same = [other for found, other, _ in group if found == value]
            raise InputError(
                f"concat: {where}",
                f"{dim} = {value} of {' and '.join(same)}",
                "nodes that differ in it",
                "Join them by their names, along bank or dataset",
            )


def _check_searched(group: Sequence[Part], where: str) -> None:
    """Refuse nodes of which one has a dimension that in another is a property of its trials."""
    dims = {dim for _, _, data in group for dim in data.dims}
    for _, name, data in group:
        for own in dims & {*data.coords} - {*data.dims}:
            if TRIAL in data[own].dims:
                raise InputError(
                    f"concat: {where}",
                    f"a search of {own} in {name} beside a grid of it",
                    "grids alone, or searches alone",
                    "Join the selected settings: mkldist.concat(mkldist.selected(tree), ...)",
                )


def _side_by_side(group: Sequence[Part], dim: str) -> xr.Dataset:
    """Return the results of some nodes along a dimension, in the order of its values."""
    import pandas as pd
    import xarray as xr

    ordered = sorted(group, key=lambda part: natural_key(str(part[0])))
    parts = [data.drop_vars(dim, errors="ignore") for _, _, data in ordered]
    runs = [*dict.fromkeys(name for part in parts for name in part[RUN_ID.name].dims)]
    indexes: dict[Any, Any] = {}
    for along in dict.fromkeys(name for part in parts for name in part.indexes):
        own = [part.indexes[along].to_series() for part in parts if along in part.indexes]
        indexes[along] = pd.concat(own).unique()
        if indexes[along].dtype.kind not in "UO":
            indexes[along].sort()
    shared = _shared_coordinates(parts, indexes)
    coords = {name for part in parts for name in part.coords} - {*indexes}
    partial = {name for name in coords if not all(name in part.coords for part in parts)}
    bare = [part.drop_vars(partial | {*shared}, errors="ignore") for part in parts]
    parts = [_filled(part, runs, indexes) for part in bare]
    dims: dict[Any, set[Any]] = {}
    for part in parts:
        for name, array in part.data_vars.items():
            dims.setdefault(name, set()).add(array.dims)
    unequal = [one for one, found in dims.items() if len(found) > 1]
    parts = [part.drop_vars(unequal, errors="ignore") for part in parts]
    attributes = {v.name: v.attributes for v in COORDINATES if v.name in SIZES}
    named = {"long_name": f"name of the {PLACES.get(dim, dim)}"}
    values = np.array([value for value, _, _ in ordered])
    return xr.concat(
        parts,
        xr.DataArray(values, {dim: values}, (dim,), dim, attrs=attributes.get(dim, named)),
        data_vars="all",
        coords="different",
        compat="equals",
        join="exact",
        fill_value=_fills(parts),
        combine_attrs="drop_conflicts",
    ).assign_coords(shared)


def _fills(parts: Iterable[xr.Dataset]) -> dict[Any, Any]:
    """Return what stands for a missing value of each variable: empty text, or NaN."""
    variables = {name: values for part in parts for name, values in part.variables.items()}
    return {n: "" if values.dtype.kind in "OU" else np.nan for n, values in variables.items()}


def _filled(
    part: xr.Dataset, runs: Iterable[Hashable], indexes: Mapping[Hashable, Any]
) -> xr.Dataset:
    """Return a part at all values of all dims, the hyperparameters that it lacks among them."""
    missing = {name: indexes[name] for name in runs if name not in part.dims}
    if missing:
        part = part.assign({name: part[name].expand_dims(missing) for name in part.data_vars})
    own = {name: values for name, values in indexes.items() if name in part.dims}
    fills = {name: fill for name, fill in _fills([part]).items() if name not in own}
    return part.reindex(own, fill_value=fills).transpose(*runs, ...)


def _shared_coordinates(
    parts: Sequence[xr.Dataset], indexes: Mapping[Hashable, Any]
) -> dict[Hashable, xr.DataArray]:
    """Return coordinates along the dims of parts whose known values agree, such as widths."""
    import xarray as xr

    shared: dict[Hashable, xr.DataArray] = {}
    measured = {time.name for time in BUILD_TIMES}
    for name in dict.fromkeys(name for part in parts for name in part.coords):
        arrays = [part[name] for part in parts if name in part.coords]
        dims = {array.dims for array in arrays}
        if name in indexes or name in measured or len(dims) > 1 or not arrays[0].dims:
            continue
        is_text = arrays[0].dtype.kind in "OU"
        known = [array.where(array != "") if is_text else array for array in arrays]
        with suppress(xr.MergeError):
            merged = xr.merge(
                [array.reset_coords(drop=True).rename(name) for array in known],
                compat="no_conflicts",
                join="outer",
            )[name]
            merged = merged.reindex({dim: indexes[dim] for dim in merged.dims if dim in indexes})
            shared[name] = merged.fillna("") if is_text else merged
    return shared
