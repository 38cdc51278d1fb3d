"""Our numbers beside published ones, in units of the published standard deviation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mkldist.analysis.pairing import Results
from mkldist.analysis.published_number import Published
from mkldist.analysis.split_values import our_values, parsed_setting
from mkldist.data.csv_files import opened_csv
from mkldist.data.number_texts import finite_number
from mkldist.data.opening import check_file
from mkldist.errors import DataError

COLUMNS = ("experiment", "data set", "method", "setting", "metric", "mean", "sd", "source")
CLOSE, FAR = 1.0, 2.0  # standard deviations


@dataclass(frozen=True)
class Cell:
    """A published number and ours.

    Parameters
    ----------
    published : Published
        The number.
    n_splits : int
        Our splits, or data sets of a mean over these; 0 where there is nothing to compare.
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


@dataclass(frozen=True)
class Ours:
    """Our counterpart of a published number.

    Parameters
    ----------
    n_splits : int
        Our splits, or data sets of a mean over these; 0 where there is nothing to compare.
    mean, sd : float
        Over the splits; NaN where there are none, `sd` also where there is one.
    lacking : str
        Why there is nothing to compare.
    """

    n_splits: int
    mean: float
    sd: float
    lacking: str = ""


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
    return [beside(one, our_number(results, one)) for one in own]


def _row(row: Mapping[str, str], place: str) -> Published:
    """Return one row of the file."""
    parsed_setting(row["setting"], place)
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


def our_number(results: Results, one: Published) -> Ours:
    """Return our counterpart of a published number.

    Raises
    ------
    mkldist.errors.DataError
        For a metric of which runs do not have one number each.
    """
    found = our_values(results, one)
    if isinstance(found, str):
        return Ours(0, math.nan, math.nan, found)
    sd = float(found.std(ddof=1)) if len(found) > 1 else math.nan
    return Ours(len(found), float(found.mean()), sd)


def beside(one: Published, ours: Ours) -> Cell:
    """Return a published number with ours, and what to make of both."""
    if not ours.n_splits:
        return Cell(one, 0, math.nan, math.nan, math.nan, ours.lacking)
    difference = ours.mean - one.mean
    if not one.sd > 0.0:
        verdict = f"{difference:+.3g}; no standard deviation is published"
        return Cell(one, ours.n_splits, ours.mean, ours.sd, math.nan, verdict)
    distance = difference / one.sd
    size = abs(distance)
    if size <= CLOSE:
        verdict = "agrees, within 1 sd"
    elif size <= FAR:
        verdict = "within 2 sd"
    else:
        verdict = f"{'higher' if distance > 0 else 'lower'} by {size:.1f} sd"
    return Cell(one, ours.n_splits, ours.mean, ours.sd, distance, verdict)
