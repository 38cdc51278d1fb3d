"""Results of several nodes side by side, along a size, the data sets, the banks or the methods."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.core.arrays import Array
from mkldist.core.natural_order import natural_key
from mkldist.errors import InputError, nearest
from mkldist.results.rows import method_nodes, place_of
from mkldist.results.schema import (
    BANK_SERIES,
    BUILD_TIMES,
    COORDINATES,
    DATASET_SERIES,
    RUN_ID,
    SAMPLE,
)
from mkldist.spec.model import TRIAL

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

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
    >>> tree = mkldist.open_results("results/scaling")  # doctest: +SKIP
    >>> mkldist.concat(tree, "n_kernels")["wdbc/level"].seconds.mean("split")  # doctest: +SKIP
    >>> mkldist.concat(tree, "method_name")["wdbc/m100"].test_error.mean("split")  # doctest: +SKIP
    """
    import xarray as xr

    if dim not in DIMS:
        known = ", ".join(DIMS)
        raise InputError("concat", f"{dim!r}", f"one of {known}", nearest(dim, DIMS))
    nodes = [(place_of(node), node) for node in method_nodes(tree)]
    series = _series(dim, nodes)
    parts = PLACES.values()
    several = {part for part in parts if len({place[part] for place, _ in nodes}) > 1}
    joined = _SERIES[dim][0] if series else _joined_part(dim, several)
    if series and len(set(series.values())) == 1:
        several -= {joined}
    kept = [p for p in parts if (series or p != joined) and (p != "bank" or "bank" in several)]
    groups: dict[str, list[Part]] = {}
    for place, node in nodes:
        data, common = _of_runs(node), dict(place)
        value = place[PLACES[dim]] if dim in PLACES else _size(data, dim)
        if series:
            common[joined] = series[place[joined]]
            data = data.assign_attrs(bank=common["bank"])
        where = "/".join(common[part] for part in kept)
        groups.setdefault(where, []).append((value, place[joined], data))
    for where, group in groups.items():
        _check_values(group, dim, where)
        _check_searched(group, where)
    found = {where: _side_by_side(group, dim) for where, group in groups.items()}
    return xr.DataTree.from_dict(found, name=tree.name)


def _series(dim: str, nodes: Sequence[tuple[Mapping[str, str], xr.DataTree]]) -> dict[str, str]:
    """Return the series of each bank or data set, by its name; nothing without lists of sizes."""
    if dim not in _SERIES:
        return {}
    part, attribute = _SERIES[dim]
    found = {place[part]: str(node.attrs.get(attribute, place[part])) for place, node in nodes}
    return found if any(name != own for own, name in found.items()) else {}


def _joined_part(dim: str, several: Collection[str]) -> str:
    """Return the part of the place in which joined nodes differ."""
    if dim in PLACES:
        return PLACES[dim]
    return "bank" if dim == "n_kernels" and "bank" in several else "dataset"


def _of_runs(node: xr.DataTree) -> xr.Dataset:
    """Return the results of a node without what belongs to the rows of its data set."""
    data = node.to_dataset()
    return data.drop_dims([dim for dim in (SAMPLE,) if dim in data.dims])


def _size(data: xr.Dataset, dim: str) -> int | None:
    """Return a size of a node; None if it is not known."""
    return int(np.median(data[dim].to_numpy())) if dim in data.coords else None


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
    dims = _union(data.dims for _, _, data in group)
    for _, name, data in group:
        for own in data.coords:
            if own in dims and own not in data.dims and TRIAL in data[own].dims:
                raise InputError(
                    f"concat: {where}",
                    f"a search of {own} in {name} beside a grid of it",
                    "grids alone, or searches alone",
                    "Join the selected settings: mkldist.concat(mkldist.selected(tree), ...)",
                )


def _side_by_side(group: Sequence[Part], dim: str) -> xr.Dataset:
    """Return the results of some nodes along a dimension, in the order of its values."""
    import xarray as xr

    ordered = sorted(group, key=lambda part: natural_key(str(part[0])))
    parts = [data.drop_vars(dim, errors="ignore") for _, _, data in ordered]
    runs = _union(part[RUN_ID.name].dims for part in parts)
    indexes = {
        name: _merged([part.indexes[name] for part in parts if name in part.indexes])
        for name in _union(part.indexes for part in parts)
    }
    parts = [_filled(part, runs, indexes) for part in parts]
    shared = _shared_coordinates(parts, indexes)
    texts = {name: "" for part in parts for name, v in part.variables.items() if _is_text(v)}
    values = np.array([value for value, _, _ in ordered])
    described = {v.name: v.attributes for v in COORDINATES if v.name in SIZES}.get(
        dim, {"long_name": f"name of the {PLACES.get(dim, dim)}"}
    )
    others = [name for name in _union(part.coords for part in parts) if name not in indexes]
    partial = [name for name in others if any(name not in part.coords for part in parts)]
    bare = [part.drop_vars([*shared, *partial], errors="ignore") for part in _of_equal_dims(parts)]
    differing = [
        name
        for name in others
        if name in bare[0].coords and not all(bare[0][name].equals(part[name]) for part in bare)
    ]
    return xr.concat(
        bare,
        xr.DataArray(values, {dim: values}, (dim,), dim, attrs=described),
        data_vars="all",
        coords=differing,
        compat="override",
        join="exact",
        fill_value={**dict.fromkeys(_union(part.data_vars for part in parts), np.nan), **texts},
        combine_attrs="drop_conflicts",
    ).assign_coords(shared)


def _filled(
    part: xr.Dataset, runs: Iterable[Hashable], indexes: Mapping[Hashable, Array]
) -> xr.Dataset:
    """Return a part at all values of all dims, the hyperparameters that it lacks among them."""
    missing = {dim: indexes[dim] for dim in runs if dim not in part.dims}
    lists = [part[name].expand_dims(missing) for name in part.data_vars]
    whole = part.assign({array.name: array for array in lists}) if missing else part
    own = {dim: values for dim, values in indexes.items() if dim in whole.dims}
    texts = {name: "" for name, v in whole.variables.items() if _is_text(v) and name not in own}
    rest = {name: np.nan for name in whole.variables if name not in texts and name not in own}
    filled = whole.reindex(own, fill_value={**rest, **texts})
    return filled.transpose(*runs, ...)


def _shared_coordinates(
    parts: Sequence[xr.Dataset], indexes: Mapping[Hashable, Array]
) -> dict[Hashable, xr.Variable]:
    """Return coordinates along the dims of parts whose known values agree, such as widths."""
    shared: dict[Hashable, xr.Variable] = {}
    measured = {time.name for time in BUILD_TIMES}
    for name in _union(part.coords for part in parts):
        own = [part[name] for part in parts if name in part.coords]
        alike = len({array.dims for array in own}) == 1
        if name in indexes or name in measured or not own[0].dims or not alike:
            continue
        values, agree = own[0].to_numpy().copy(), True
        for array in own[1:]:
            other = array.to_numpy()
            known, there = ~_is_missing(values), ~_is_missing(other)
            both = known & there
            agree &= len(values) == len(other) and bool((values[both] == other[both]).all())
            if not agree:
                break
            values = np.where(known, values, other)
        if agree:
            shared[name] = own[0].variable.copy(data=values)
    return shared


def _of_equal_dims(parts: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Return parts without the variables that have other dims in another part."""
    dims: dict[Hashable, set[tuple[Hashable, ...]]] = {}
    for part in parts:
        for name, array in part.data_vars.items():
            dims.setdefault(name, set()).add(array.dims)
    unequal = [name for name, found in dims.items() if len(found) > 1]
    return [part.drop_vars(unequal, errors="ignore") for part in parts]


def _union(names: Iterable[Iterable[Hashable]]) -> list[Hashable]:
    return list(dict.fromkeys(name for some in names for name in some))


def _merged(indexes: Sequence[pd.Index[Any]]) -> Array:
    """Return the values of indexes, each once; numbers in order, texts as they come."""
    values = list(dict.fromkeys(value for index in indexes for value in index.tolist()))
    merged: Array = np.array(values)
    return merged if merged.dtype.kind in "UO" else np.sort(merged)


def _is_text(values: xr.Variable | Array) -> bool:
    return values.dtype.kind in "OU"


def _is_missing(values: Array) -> Array:
    missing: Array = values == "" if _is_text(values) else np.isnan(values)
    return missing
