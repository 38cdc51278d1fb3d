"""Tables of the report: rows of cells with a value to sort by and a text to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mkldist.analysis.comparison import OverDataSets
from mkldist.report.facts import LOSS_WORDS, Facts, records
from mkldist.results.rows import hyperparameters, method_nodes, place_of
from mkldist.results.schema import SPLIT
from mkldist.results.selected import selected
from mkldist.results.state import RunState
from mkldist.solvers.base import StopReason

NOTHING, MINUS = "\u2013", "\u2212"  # a dash for a missing number; the sign of a difference
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Cell:
    """A text, and the number by which its column sorts; None to sort by the text."""

    text: str
    key: float | None = None


@dataclass(frozen=True)
class Table:
    """Headings and rows.

    Parameters
    ----------
    name : str
        Name of the element, and of the file that a copy suggests.
    headings : tuple of str
        One for each column.
    numeric : tuple of bool
        True for columns of numbers, which align to the right.
    rows : list of list of Cell
        The rows; those with `marks` true stand out.
    marks : list of bool
        One for each row.
    """

    name: str
    headings: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: list[list[Cell]]
    marks: list[bool]


def results_table(facts: Facts) -> Table:
    """Return a row for each data set, bank, method and setting."""
    rows = facts.summary
    axes = list(dict.fromkeys(n for _, node in facts.nodes for n in hyperparameters(node)))
    losses = [
        name for name in LOSS_WORDS if f"{name}_mean" in rows and rows[f"{name}_mean"].notna().any()
    ]
    several = rows["bank"].nunique() > 1
    identity = ["dataset", *(["bank"] if several else []), "method"]
    headings = [
        *identity,
        *axes,
        *(LOSS_WORDS[n] for n in losses),
        "kernels",
        "seconds",
        "largest gap",
        "runs",
    ]
    numeric = [False] * len(identity) + [True] * (len(headings) - len(identity))
    cells, marks = [], []
    for row in records(rows):
        cells.append(
            [
                *(Cell(str(row[name])) for name in identity),
                *(_setting(row.get(name)) for name in axes),
                *(
                    _mean_sd(row[f"{n}_mean"], row[f"{n}_sd"], percent=n.endswith("error"))
                    for n in losses
                ),
                _mean_sd(row["active_mean"], row["active_sd"], digits=1),
                _plain(row["seconds_mean"], "{:.3g}"),
                _plain(row["gap_max"], "{:.1e}"),
                _runs(row),
            ]
        )
        marks.append(bool(row["best"]))
    return Table("results", tuple(headings), tuple(numeric), cells, marks)


def certificates_table(facts: Facts) -> Table:
    """Return how many runs of each method reached their tolerance."""
    rows = facts.runs
    cells = []
    for (dataset, method), some in rows.groupby(["dataset", "method"], sort=False):
        complete = some[some["state"] == RunState.COMPLETE.value]
        met = int((complete["stop_reason"] == StopReason.CONVERGED.value).sum())
        gaps = complete["gap"].dropna() if "gap" in complete else pd.Series(dtype=float)
        failed = int((some["state"] == RunState.FAILED.value).sum())
        cells.append(
            [
                Cell(str(dataset)),
                Cell(str(method)),
                Cell(f"{len(complete)} of {len(some)}", len(complete)),
                Cell(str(met), met),
                Cell(str(len(complete) - met), len(complete) - met),
                Cell(str(failed), failed),
                _plain(gaps.max() if len(gaps) else np.nan, "{:.1e}"),
            ]
        )
    headings = (
        "dataset",
        "method",
        "complete",
        "reached tol",
        "stopped before",
        "failed",
        "largest gap",
    )
    marks = [row[4].key > 0 or row[5].key > 0 for row in cells]  # type: ignore[operator]
    return Table("certificates", headings, (False, False, *(True,) * 5), cells, marks)


def pairs_table(pairs: pd.DataFrame) -> Table:
    """Return the comparison of every two methods on each data set."""
    cells = [
        [
            Cell(str(row["dataset"])),
            Cell(f"{row['first']} {MINUS} {row['second']}"),
            _plain(row["difference"], "{:+.4f}"),
            Cell(str(row["n_splits"]), row["n_splits"]),
            _plain(row["p_value"], "{:.3f}"),
            _plain(row["p_holm"], "{:.3f}"),
            _plain(row["first_better"], "{:.2f}"),
            _plain(row["equivalent"], "{:.2f}"),
            _plain(row["second_better"], "{:.2f}"),
        ]
        for row in records(pairs)
    ]
    headings = ("dataset", "pair", "mean difference", "splits", "p", "p (Holm)",
                "P(first better)", "P(equivalent)", "P(second better)")  # fmt: skip
    marks = [row["p_holm"] < SIGNIFICANCE for row in records(pairs)]
    return Table("pairs", headings, (False, False, *(True,) * 7), cells, marks)


def over_table(over: OverDataSets) -> Table:
    """Return the comparison of every two methods over the data sets."""
    cells = [
        [
            Cell(f"{row['first']} {MINUS} {row['second']}"),
            _plain(row["median_difference"], "{:+.4f}"),
            _plain(row["p_value"], "{:.3f}"),
            _plain(row["p_holm"], "{:.3f}"),
        ]
        for row in records(over.pairs)
    ]
    headings = ("pair", "median difference", "p", "p (Holm)")
    marks = [row["p_holm"] < SIGNIFICANCE for row in records(over.pairs)]
    return Table("over-data-sets", headings, (False, True, True, True), cells, marks)


def stability_table(stability: pd.DataFrame) -> Table:
    """Return numbers and stability of the kernels that each method selects."""
    cells = [
        [
            Cell(str(row["dataset"])),
            Cell(str(row["method"])),
            _plain(row["selected_mean"], "{:.1f}"),
            Cell(f"{row['always']} of {row['n_kernels']}", row["always"]),
            _interval(row["stability"], row["stability_low"], row["stability_high"]),
        ]
        for row in records(stability)
    ]
    headings = ("dataset", "method", "kernels selected", "in every split", "stability (95 %)")
    marks = [False] * len(cells)
    return Table("stability", headings, (False, False, True, True, True), cells, marks)


def chosen_table(facts: Facts) -> Table | None:
    """Return the setting of each split that validation selected; None without a selection."""
    if not facts.validated:
        return None
    cells = []
    for node in method_nodes(selected(facts.tree)):
        place = place_of(node)
        names = [
            name
            for name in node.ds.coords
            if node.ds[name].dims == (SPLIT,) and name in _axes(facts, place)
        ]
        for split in node.ds[SPLIT].to_numpy().tolist():
            run = node.ds.sel({SPLIT: split})
            said = ", ".join(f"{name} = {_text(run[name].item())}" for name in names)
            cells.append(
                [
                    Cell(place["dataset"]),
                    Cell(place["method"]),
                    Cell(str(split), split),
                    Cell(said or NOTHING),
                ]
            )
    headings = ("dataset", "method", "split", "selected setting")
    return Table("chosen", headings, (False, False, True, False), cells, [False] * len(cells))


def failures_table(facts: Facts) -> Table:
    """Return the failed runs with their reasons."""
    cells = [
        [
            Cell(run.node.strip("/")),
            Cell(str(run.split), run.split),
            Cell(", ".join(f"{name} = {_text(value)}" for name, value in run.params.items())),
            Cell(run.error),
        ]
        for run in facts.status.failed
    ]
    return Table(
        "failed",
        ("run", "split", "setting", "reason"),
        (False, True, False, False),
        cells,
        [False] * len(cells),
    )


def _axes(facts: Facts, place: dict[str, str]) -> list[str]:
    return next(hyperparameters(node) for known, node in facts.nodes if known == place)


def _setting(value: Any) -> Cell:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return Cell("")
    return Cell(_text(value), float(value)) if isinstance(value, int | float) else Cell(str(value))


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _plain(value: float, form: str) -> Cell:
    return (
        Cell(NOTHING)
        if value is None or np.isnan(value)
        else Cell(form.format(value), float(value))
    )


def _mean_sd(mean: float, sd: float, *, percent: bool = False, digits: int = 2) -> Cell:
    if np.isnan(mean):
        return Cell(NOTHING)
    factor = 100.0 if percent else 1.0
    unit = " %" if percent else ""
    spread = "" if np.isnan(sd) else f" ± {factor * sd:.{digits}f}"
    return Cell(f"{factor * mean:.{digits}f}{spread}{unit}", float(mean))


def _interval(mean: float, low: float, high: float) -> Cell:
    return (
        Cell(NOTHING)
        if np.isnan(mean)
        else Cell(f"{mean:.2f} [{low:.2f}, {high:.2f}]", float(mean))
    )


def _runs(row: dict[str, Any]) -> Cell:
    total = row["complete"] + row["failed"] + row["waiting"]
    flags = "".join(f", {row[name]} {name}" for name in ("failed", "waiting", "early") if row[name])
    return Cell(f"{row['complete']}/{total}{flags}", float(row["complete"]))
