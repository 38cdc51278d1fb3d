"""Coordinates of the tree of results: values of hyperparameters along dims, or of each run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.core.arrays import Array
from mkldist.results.schema import BANK_BYTES, BUILD_TIMES, KERNEL, SEARCH_DIMS, SPLIT, Variable
from mkldist.solvers.settings import setting
from mkldist.spec.model import SOURCE_PREFIX, TRIAL

if TYPE_CHECKING:
    from mkldist.bank.bank_kernels import BankKernels
    from mkldist.kernels.kernel_list import KernelList
    from mkldist.planning.model import BankPlan, RunPlan
    from mkldist.spec.banks import BankSpec


DTYPES = {"f": "float64", "i": "int64", "b": "bool", "O": "string"}
"""Data types of coordinates by the kind of their arrays."""
_SEARCH_DIMS = {variable.name: variable for variable in SEARCH_DIMS}


@dataclass(frozen=True, eq=False)
class Coordinate:
    """A coordinate and its values.

    Parameters
    ----------
    variable : Variable
        Name, units, meaning and dims of the coordinate.
    values : array
        Values; text as objects.
    """

    variable: Variable
    values: Array


def of_values(name: str, series: Sequence[Any], method: str) -> Coordinate:
    """Return the values of a hyperparameter: numbers if all are numbers, else text.

    Parameters
    ----------
    name : str
        Name of the hyperparameter, or of a dim of a search.
    series : sequence
        Its values.
    method : str
        The method that has it.
    """
    values = _array(series)
    known = _SEARCH_DIMS.get(name)
    return Coordinate(known or _variable(name, values, method, (name,)), values)


def positions_of(
    runs: Iterable[RunPlan], dims: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[int, ...]]:
    """Yield the position of each run in its node: its split, then where it is along some dims."""
    known: dict[int, tuple[int, ...]] = {}  # along the dims, of settings that splits share
    for run in runs:
        along = None if run.at else known.get(id(run.params))
        if along is None:
            at = (run.at[n] if n in run.at else setting(run.params, n) for n in dims)
            along = tuple(series.index(v) for series, v in zip(dims.values(), at, strict=True))
            known[id(run.params)] = along
        yield run.asked_split, *along


def of_runs(
    name: str, runs: Sequence[RunPlan], n_splits: int, dims: Mapping[str, Sequence[Any]]
) -> Coordinate:
    """Return a parameter of which every run has a value of its own.

    It lies along ``split`` and the dims of the node; that of trials along ``split`` and ``trial``
    alone, since the rungs of a trial share it.  It is NaN, or an empty text, where there is no run.
    """
    along = {TRIAL: dims[TRIAL]} if TRIAL in dims else dims
    values_of_runs = (setting(run.params, name) for run in runs)
    places = dict(zip(positions_of(runs, along), values_of_runs, strict=True))
    series = _array(list(places.values()))
    is_number = series.dtype.kind in "if"
    shape = n_splits, *map(len, along.values())
    values: Array = np.full(shape, np.nan) if is_number else np.full(shape, "", dtype=object)
    for place, value in zip(places, series.tolist(), strict=True):
        values[place] = value if is_number else str(value)
    return Coordinate(_variable(name, values, runs[0].method, (SPLIT, *along)), values)


def _variable(name: str, values: Array, method: str, dims: tuple[str, ...]) -> Variable:
    """Return the variable of a hyperparameter, described as the method describes it."""
    from mkldist.methods.registry import METHODS  # not for those who only read results

    fields = METHODS[method].params.model_fields if method in METHODS else {}
    known = fields[name].description if name in fields else None
    dtype = DTYPES[values.dtype.kind]
    text = f"{name}: {known}" if known else f"hyperparameter {name}"
    if name.startswith(SOURCE_PREFIX):
        text = f"{name.removeprefix(SOURCE_PREFIX)} of the method that gives C"
    return Variable(name, "1" * (dtype != "string"), text, dtype, dims)


def _array(series: Sequence[Any]) -> Array:
    kinds = {type(value) for value in series}
    if kinds == {bool}:
        return np.array(series, dtype=np.bool_)
    if kinds == {int}:
        return np.array(series, dtype=np.int64)
    if kinds <= {int, float}:
        return np.array(series, dtype=np.float64)
    return np.array([str(value) for value in series], dtype=object)


def bank_coordinates(banks: Iterable[BankPlan], n_splits: int) -> dict[str, Coordinate]:
    """Return bytes and build times of the banks of a node, along its splits.

    The times of stored banks come with the runs, and are NaN until then; a bank that is not stored
    takes none.

    Parameters
    ----------
    banks : iterable of BankPlan
        Banks of one data set and label: one for each split, or one for all.
    n_splits : int
        Number of splits.
    """
    n_bytes = np.full(n_splits, np.nan)
    seconds = np.full(n_splits, np.nan)
    for bank in banks:
        if bank.split is None or bank.split < n_splits:
            where = slice(None) if bank.split is None else bank.split
            n_bytes[where] = bank.n_bytes
            seconds[where] = np.nan if bank.stored else 0.0
    times = {time.name: Coordinate(time, seconds) for time in BUILD_TIMES}
    return {BANK_BYTES.name: Coordinate(BANK_BYTES, n_bytes), **times}


CUSTOM = "custom"


def kernel_coordinates(
    bank: BankSpec,
    names: Sequence[str],
    kernels: BankKernels | None,
    feature_names: Sequence[str] = (),
    views: Mapping[str, Collection[int]] = MappingProxyType({}),
) -> dict[str, Array]:
    """Return the coordinates of a bank's kernels, by name; text as objects.

    Parameters
    ----------
    bank : BankSpec
        The bank.
    names : sequence of str
        Names of its M kernels.
    kernels : BankKernels or None
        The kernels; None for a data set of Gram matrices.
    feature_names : sequence of str, optional
        Names of the features.
    views : mapping of str to collection of int, optional
        Features of each view that has a table.

    Returns
    -------
    dict of str to (M,) array
        ``kernel``, the names; ``function`` and each of its parameters, such as ``width``, NaN for
        kernels without it; ``features`` as in the names, and ``feature_group``: ``all``, the name
        by which the sweep file calls the features, ``single`` or ``several``; ``view``, if there
        are views; ``family``, ``normalisation`` and ``bank``, which all kernels of a bank share.
        The function of a Gram matrix is ``precomputed``, and its features are its view.
    """
    from mkldist.spec.banks import PRECOMPUTED  # commands that read need none

    found = {KERNEL: np.array(names, dtype=object)}
    if kernels is None:
        found["function"] = np.full(len(names), PRECOMPUTED, dtype=object)
    else:
        parts = [
            _of_functions(functions, columns, blocks)
            for functions, columns, blocks in (
                (kernels.of_features, feature_names, views),
                (kernels.of_texts, kernels.text_names, kernels.text_views),
            )
            if functions is not None
        ]
        if kernels.given or not parts:
            parts.append(_of_views([one.view for one in kernels.given]))
        found |= _joined(parts)
        if not any(found["view"].tolist()):
            del found["view"]
    shared = {
        "family": bank.family or CUSTOM,
        "normalisation": "+".join(bank.normalisations),
        "bank": bank.label,
    }
    return found | {name: np.full(len(names), text, dtype=object) for name, text in shared.items()}


def _of_views(views: Sequence[str]) -> dict[str, Array]:
    """Return the coordinates of one Gram matrix of each view."""
    from mkldist.spec.banks import PRECOMPUTED

    places = np.array(views, dtype=object)
    function = np.full(len(views), PRECOMPUTED, dtype=object)
    return {"function": function, "features": places, "feature_group": places, "view": places}


def _joined(parts: Sequence[dict[str, Array]]) -> dict[str, Array]:
    """Return the coordinates of several lists of kernels, one after the other."""
    found: dict[str, Array] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        columns = [part.get(name, np.full(len(part["function"]), np.nan)) for part in parts]
        if any(name in part and part[name].dtype == object for part in parts):
            columns = [_as_text(column) for column in columns]
        found[name] = np.concatenate(columns)
    return found


def _as_text(column: Array) -> Array:
    """Return numbers as text, empty for NaN, and texts as they are."""
    if column.dtype == object:
        return column
    return np.array(["" if np.isnan(value) else str(value) for value in column], dtype=object)


def _of_functions(
    kernels: KernelList, feature_names: Sequence[str], views: Mapping[str, Collection[int]]
) -> dict[str, Array]:
    """Return the coordinates that functions of features have."""
    found = {name: _plain(column) for name, column in kernels.columns().items()}
    found["features"] = _of_subsets(kernels, kernels.subset_names(feature_names))
    found["feature_group"] = _of_subsets(kernels, _groups(kernels, feature_names))
    found["view"] = np.full(len(kernels), "", dtype=object)
    for name, columns in views.items():
        own = np.isin(kernels.subset_indices, [*columns])
        within = np.logical_and.reduceat(own, kernels.subset_indptr[:-1])
        found["view"][within[kernels.subset]] = name
    return found


def _groups(kernels: KernelList, feature_names: Sequence[str]) -> list[str]:
    """Return the group of every feature subset; a feature by its own name is a single one."""
    sizes = np.diff(kernels.subset_indptr).tolist()
    found = ["single" if size == 1 else "several" for size in sizes]
    for s, label in kernels.subset_labels.items():
        first = kernels.subset_indices[kernels.subset_indptr[s]]
        if sizes[s] > 1 or label != feature_names[first]:
            found[s] = label
    return found


def _of_subsets(kernels: KernelList, texts: Sequence[str]) -> Array:
    """Return the text of every kernel's feature subset."""
    of_kernels: Array = np.array(texts, dtype=object)[kernels.subset]
    return of_kernels


def _plain(column: Array) -> Array:
    """Return numbers as they are, and other values as text, empty for none."""
    if column.dtype != object:
        return column
    return np.array(["" if value is None else str(value) for value in column], dtype=object)
