"""Our numbers beside published ones, in units of the published standard deviation."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.analysis.comparison import loss_name
from mkldist.analysis.pairing import Chosen, Results
from mkldist.arrays import Floats
from mkldist.data.csv_files import opened_csv
from mkldist.data.number_texts import finite_number
from mkldist.data.opening import check_file
from mkldist.errors import DataError, nearest
from mkldist.results.rows import hyperparameters, place_of
from mkldist.spec.toml_texts import TooLongError, parsed_toml

if TYPE_CHECKING:
    import xarray as xr

COLUMNS = ("experiment", "data set", "method", "setting", "metric", "mean", "sd", "source")
CLOSE, FAR = 1.0, 2.0  # standard deviations


@dataclass(frozen=True)
class Published:
    """A number of a paper, one row of a file.

    Parameters
    ----------
    experiment : str
        Name of the sweep that repeats it; may be empty.
    dataset, method : str
        Names in the results; a method may be ``BANK/METHOD``.
    setting : str
        Hyperparameters such as ``C=100, p=2``; empty for the chosen setting.
    metric : str
        Name of a variable of the results, such as ``test_error``.
    mean, sd : float
        In the units of the results, errors as fractions; `sd` is NaN where none is published.
    source : str
        Where it is published.
    line : str
        Its place in the file, for messages.
    """

    experiment: str
    dataset: str
    method: str
    setting: str
    metric: str
    mean: float
    sd: float
    source: str
    line: str = ""


@dataclass(frozen=True)
class Cell:
    """A published number and ours.

    Parameters
    ----------
    published : Published
        The number.
    n_splits : int
        Our splits; 0 where there is nothing to compare.
    mean, sd : float
        Ours, over the splits.
    distance : float
        Our mean minus the published one, by the published standard deviation; NaN without it.
    verdict : str
        What to make of it, in a few words.
    """

    published: Published
    n_splits: int
    mean: float
    sd: float
    distance: float
    verdict: str


def read_published(path: Path) -> list[Published]:
    """Read published numbers from a CSV file with a header.

    Parameters
    ----------
    path : Path
        The file, with the columns :data:`COLUMNS` in any order.

    Raises
    ------
    mkldist.errors.DataError
        If it cannot be read, lacks a column, has text where a number should be, or a standard
        deviation below zero.
    """
    rows = [_row(row, place) for place, row in named_rows(path, COLUMNS)]
    if not rows:
        raise DataError(str(path), "no rows", "published numbers, one a row")
    return rows


def named_rows(path: Path, columns: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    """Read a CSV file with a header; return the place and the fields of each row, by column.

    Parameters
    ----------
    path : Path
        The file.
    columns : sequence of str
        Columns that it has to have, in any order.

    Raises
    ------
    mkldist.errors.DataError
        If it cannot be read, lacks a column, or a row has another number of fields.
    """
    where = str(path)
    check_file(path, where, "Give the path relative to the folder in which the command runs")
    with opened_csv(path, where) as (header, lines):
        names = [name.strip().replace("dataset", "data set") for name in header]
        missing = [name for name in columns if name not in names]
        if missing:
            found = f"no column {', '.join(map(repr, missing))}"
            raise DataError(where, found, f"the columns {', '.join(columns)}")
        return [
            (f"{where}, line {line}", _fields(names, fields, f"{where}, line {line}"))
            for line, fields in lines
            if fields
        ]


def _fields(names: Sequence[str], fields: Sequence[str], place: str) -> dict[str, str]:
    if len(fields) != len(names):
        hint = "Put a text that holds a comma in double quotes"
        raise DataError(place, f"{len(fields)} fields", f"{len(names)}, as in the header", hint)
    return dict(zip(names, (field.strip() for field in fields), strict=True))


def of_sweep(published: Sequence[Published], sweep: str) -> tuple[list[Published], list[str]]:
    """Return the numbers of a sweep, and the names of other experiments, whose numbers are not.

    Parameters
    ----------
    published : sequence of Published
        The numbers; those without an experiment are of every sweep.
    sweep : str
        Name of the sweep.
    """
    own = [one for one in published if one.experiment in ("", sweep)]
    left_out = [one.experiment for one in published if one.experiment not in ("", sweep)]
    return own, list(dict.fromkeys(left_out))


def against_published(results: Results, published: Sequence[Published]) -> list[Cell]:
    """Compare results with published numbers.

    No test is made: a paper's splits are not ours, and its standard deviation is that of its own.

    Parameters
    ----------
    results : Results
        Results of a sweep.
    published : sequence of Published
        The numbers; those of other experiments are left out, see :func:`of_sweep`.

    Raises
    ------
    mkldist.errors.DataError
        For a metric of which runs do not have one number each.
    """
    own, _ = of_sweep(published, str(results.tree.attrs["sweep"]))
    return [_cell(results, one) for one in own]


def our_values(results: Results, one: Published) -> Floats | str:
    """Return our values on the splits with complete runs, or why there are none.

    Parameters
    ----------
    results : Results
        Results of a sweep.
    one : Published
        Data set, method, setting and metric.

    Raises
    ------
    mkldist.errors.DataError
        For a metric of which runs do not have one number each.
    """
    values = values_by_split(results, one)
    if isinstance(values, str):
        return values
    known = values[~np.isnan(values)]
    return known if len(known) else "no complete run"


def values_by_split(results: Results, one: Published) -> Floats | str:
    """Return our value on each split, NaN without a complete run, or why there are none.

    Parameters
    ----------
    results, one
        As for :func:`our_values`.

    Raises
    ------
    mkldist.errors.DataError
        For a metric of which runs do not have one number each.
    """
    nodes = [
        node
        for node in results.nodes()
        if place_of(node)["dataset"] == one.dataset and one.method in _names(node)
    ]
    if not nodes:
        return "not in the results"
    if len(nodes) > 1:
        return "in several banks: name it BANK/METHOD"
    (node,) = nodes
    chosen = results.chosen(node, loss_name([node], str(node.attrs["task"])))
    if one.setting:
        data = _at(node, _parsed(one.setting, one.source))
        if data is None:
            return "setting not in the results"
        chosen = Chosen(results, node, data, chosen.loss)
    if one.metric not in chosen.data:
        return f"no {one.metric} in the results"
    _check_metric(chosen, one)
    return chosen.values(one.metric)


def _row(row: Mapping[str, str], place: str) -> Published:
    """Return one row of the file."""
    _parsed(row["setting"], place)
    return Published(
        experiment=row["experiment"],
        dataset=row["data set"],
        method=row["method"],
        setting=row["setting"],
        metric=row["metric"],
        mean=_number(row, "mean", place),
        sd=_deviation(row, place) if row["sd"] else math.nan,
        source=row["source"],
        line=place,
    )


def _number(row: Mapping[str, str], name: str, place: str) -> float:
    value = finite_number(row[name])
    if value is None:
        raise DataError(f"{place}, column {name!r}", repr(row[name]), "a finite number")
    return value


def _deviation(row: Mapping[str, str], place: str) -> float:
    value = _number(row, "sd", place)
    if value < 0.0:
        hint = "Leave the field empty where no standard deviation is published"
        raise DataError(f"{place}, column 'sd'", repr(row["sd"]), "a number of at least 0", hint)
    return value


def _parsed(setting: str, place: str) -> dict[str, Any]:
    """Return the hyperparameters of ``C=100, p=2``."""
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in setting.split(","))):
        name, equals, value = (text.strip() for text in part.partition("="))
        if not equals or not name:
            raise DataError(f"{place}, column 'setting'", repr(setting), "C=100 or C=100, p=2")
        try:
            found[name] = parsed_toml(f"value = {value}")["value"]
        except TooLongError as error:
            raise DataError(f"{place}, column 'setting'", error.found, error.expected) from None
        except tomllib.TOMLDecodeError:
            found[name] = value
    return found


def _cell(results: Results, one: Published) -> Cell:
    """Return a published number with ours."""
    found = our_values(results, one)
    if isinstance(found, str):
        return Cell(one, 0, math.nan, math.nan, math.nan, found)
    mean = float(found.mean())
    sd = float(found.std(ddof=1)) if len(found) > 1 else math.nan
    difference = mean - one.mean
    if not one.sd > 0.0:
        verdict = f"{difference:+.3g}; no standard deviation is published"
        return Cell(one, len(found), mean, sd, math.nan, verdict)
    distance = difference / one.sd
    size = abs(distance)
    if size <= CLOSE:
        verdict = "agrees, within 1 sd"
    elif size <= FAR:
        verdict = "within 2 sd"
    else:
        verdict = f"{'higher' if distance > 0 else 'lower'} by {size:.1f} sd"
    return Cell(one, len(found), mean, sd, distance, verdict)


def _check_metric(chosen: Chosen, one: Published) -> None:
    """Refuse a metric of which a run does not have one number.

    Raises
    ------
    mkldist.errors.DataError
        If it is text, truth or several numbers a run, or a coordinate.
    """
    allowed = chosen.metrics()
    if one.metric not in allowed:
        raise DataError(
            f"{one.line or one.source}, column 'metric'",
            repr(one.metric),
            f"a variable of one number a run: {', '.join(allowed)}",
            nearest(one.metric, allowed),
        )


def _names(node: xr.DataTree) -> Iterator[str]:
    place = place_of(node)
    yield from (place["method"], f"{place['bank']}/{place['method']}")


def _at(node: xr.DataTree, setting: Mapping[str, Any]) -> xr.Dataset | None:
    """Return a node at a setting; None if it was not run or leaves a hyperparameter open."""
    data = node.to_dataset()
    for name in hyperparameters(node):
        values = data[name].to_numpy().tolist()
        if name not in setting and len(values) > 1:
            return None
        places = [i for i, value in enumerate(values) if _equal(value, setting.get(name, value))]
        if not places:
            return None
        data = data.isel({name: places[0]})
    return data if {*setting} <= {*hyperparameters(node)} else None


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9)
    return str(one) == str(other)
