"""Coordinates of the tree of results: values of hyperparameters along dims, or of each run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.arrays import Array
from mkldist.results.schema import SEARCH_DIMS, SPLIT, Variable
from mkldist.solvers.settings import setting
from mkldist.spec.source import SOURCE_PREFIX
from mkldist.spec.trial import TRIAL

if TYPE_CHECKING:
    from mkldist.planning.model import RunPlan

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
    """Yield the position of each run in its node: its split, then where it is along some dims.

    Parameters
    ----------
    runs : iterable of RunPlan
        The runs.
    dims : mapping of str to sequence
        Values along each dim.
    """
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

    Parameters
    ----------
    name : str
        Name of the parameter.
    runs : sequence of RunPlan
        The runs of a method on one bank.
    n_splits : int
        Number of splits.
    dims : mapping of str to sequence
        Values along each dim.
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
