"""Tables of the report: rows of cells with a value to sort by and a text to read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mkldist.analysis.cell_texts import NOTHING, p_value_text
from mkldist.analysis.comparison import OverDataSets
from mkldist.analysis.paired_losses import SIGNIFICANCE
from mkldist.durable import write_file
from mkldist.report.facts import LOSS_WORDS, Facts, records
from mkldist.results.rows import hyperparameters, method_nodes, place_of
from mkldist.results.schema import SPLIT
from mkldist.results.selected import selected
from mkldist.results.state import RunState
from mkldist.solvers.outcome import STATIONARITY, StopReason

MINUS = "\u2212"  # the sign of a difference
MOST_ROWS = 500  # of a table, in the page


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

    @property
    def shown(self) -> list[int]:
        """Positions of the rows in the page; of too many, the marked ones before others."""
        places = sorted(range(len(self.rows)), key=lambda place: not self.marks[place])
        return sorted(places[:MOST_ROWS])

    def write(self, folder: Path) -> None:
        """Write all rows to ``NAME.csv`` in a folder, which is there."""
        import pandas as pd

        texts = [[cell.text for cell in row] for row in self.rows]
        table = pd.DataFrame(texts, columns=list(self.headings))
        write_file(self.file(folder), [table.to_csv(index=False).encode()])

    def file(self, folder: Path) -> Path:
        """Return the file in a folder that :meth:`write` writes."""
        return folder / f"{self.name}.csv"


def identity_of(banks: Iterable[str]) -> list[str]:
    """Return the names that tell a method's row from the others; the bank if there are several."""
    return ["dataset", *(["bank"] if len(set(banks)) > 1 else []), "method"]


def number(value: float, form: str) -> Cell:
    """Return the cell of a number in a format, such as ``"{:.2f}"``; a dash for NaN."""
    if value is None or np.isnan(value):
        return Cell(NOTHING)
    return Cell(form.format(value) if value else "0", float(value))


def p_value(value: float) -> Cell:
    """Return the cell of a p-value, see :func:`mkldist.analysis.cell_texts.p_value_text`."""
    return Cell(p_value_text(value), None if np.isnan(value) else float(value))


def interval(mean: float, low: float, high: float, form: str = "{:.2f}") -> Cell:
    """Return the cell of a number and its interval, which is left out where its ends are NaN."""
    if np.isnan(mean):
        return Cell(NOTHING)
    ends = "" if np.isnan(low) else f" [{form.format(low)}, {form.format(high)}]"
    return Cell(form.format(mean) + ends, float(mean))


def results_table(facts: Facts) -> Table:
    """Return a row for each data set, bank, method and setting."""
    rows = facts.summary
    axes = list(dict.fromkeys(n for _, node in facts.nodes for n in hyperparameters(node)))
    losses = [
        name for name in LOSS_WORDS if f"{name}_mean" in rows and rows[f"{name}_mean"].notna().any()
    ]
    identity = identity_of(rows["bank"])
    headings = [
        *identity,
        *axes,
        *(LOSS_WORDS[n] for n in losses),
        "kernels",
        "seconds",
        "runs",
    ]
    left = _proximities(rows, "gap_max", "stationarity_max")
    headings[-1:-1] = left.values()
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
                number(row["seconds_mean"], "{:.3g}"),
                *(number(row[name], "{:.1e}") for name in left),
                _runs(row),
            ]
        )
        marks.append(bool(row["best"]))
    return Table("results", tuple(headings), tuple(numeric), cells, marks)


def certificates_table(facts: Facts) -> Table:
    """Return how many runs of each method reached their tolerance."""
    rows = facts.runs
    cells, left = [], _proximities(rows, "gap", STATIONARITY)
    for (dataset, method), some in rows.groupby(["dataset", "method"], sort=False):
        complete = some[some["state"] == RunState.COMPLETE.value]
        met = int((complete["stop_reason"] == StopReason.CONVERGED.value).sum())
        failed = int((some["state"] == RunState.FAILED.value).sum())
        cells.append(
            [
                Cell(str(dataset)),
                Cell(str(method)),
                Cell(f"{len(complete)} of {len(some)}", len(complete)),
                Cell(str(met), met),
                Cell(str(len(complete) - met), len(complete) - met),
                Cell(str(failed), failed),
                *(
                    number(complete[name].max() if name in complete else np.nan, "{:.1e}")
                    for name in left
                ),
            ]
        )
    headings = (
        "dataset",
        "method",
        "complete",
        "reached tol",
        "stopped before",
        "failed",
        *left.values(),
    )
    marks = [row[4].key > 0 or row[5].key > 0 for row in cells]  # type: ignore[operator]
    numeric = (False, False, *(True,) * (len(headings) - 2))
    return Table("certificates", headings, numeric, cells, marks)


def _proximities(rows: pd.DataFrame, gap: str, stationarity: str) -> dict[str, str]:
    """Return the columns that say what is left to gain, with headings: the gap, and others."""
    further = {f"exact_{gap}": "largest exact gap", stationarity: "largest stationarity"}
    known = {name for name in further if name in rows and rows[name].notna().any()}
    return {gap: "largest gap"} | {name: words for name, words in further.items() if name in known}


def pairs_table(pairs: pd.DataFrame) -> Table:
    """Return the comparison of every two methods on each data set."""
    cells = [
        [
            Cell(str(row["dataset"])),
            Cell(f"{row['first']} {MINUS} {row['second']}"),
            number(row["difference"], "{:+.4f}"),
            Cell(str(row["n_splits"]), row["n_splits"]),
            p_value(row["p_value"]),
            p_value(row["p_holm"]),
            number(row["first_better"], "{:.2f}"),
            number(row["equivalent"], "{:.2f}"),
            number(row["second_better"], "{:.2f}"),
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
            number(row["median_difference"], "{:+.4f}"),
            p_value(row["p_value"]),
            p_value(row["p_holm"]),
        ]
        for row in records(over.pairs)
    ]
    headings = ("pair", "median difference", "p", "p (Holm)")
    marks = [row["p_holm"] < SIGNIFICANCE for row in records(over.pairs)]
    return Table("over-data-sets", headings, (False, True, True, True), cells, marks)


def stability_table(stability: pd.DataFrame) -> Table:
    """Return numbers and stability of the kernels that each method selects."""
    identity = identity_of(stability["bank"])
    cells = [
        [
            *(Cell(str(row[name])) for name in identity),
            number(row["selected_mean"], "{:.1f}"),
            Cell(f"{row['always']} of {row['n_kernels']}", row["always"]),
            interval(row["stability"], row["stability_low"], min(row["stability_high"], 1.0)),
        ]
        for row in records(stability)
    ]
    headings = (*identity, "kernels selected", "in every split", "stability (95 %)")
    numeric = (*(False,) * len(identity), True, True, True)
    return Table("stability", headings, numeric, cells, [False] * len(cells))


def chosen_table(facts: Facts) -> Table | None:
    """Return the setting of each split that validation selected; None without a selection."""
    if not facts.validated:
        return None
    cells, identity = [], identity_of(place["bank"] for place, _ in facts.nodes)
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
                    *(Cell(place[name]) for name in identity),
                    Cell(str(split), split),
                    Cell(said or NOTHING),
                ]
            )
    headings = (*identity, "split", "selected setting")
    numeric = (*(False,) * len(identity), True, False)
    return Table("chosen", headings, numeric, cells, [False] * len(cells))


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


def _mean_sd(mean: float, sd: float, *, percent: bool = False, digits: int = 2) -> Cell:
    if np.isnan(mean):
        return Cell(NOTHING)
    factor = 100.0 if percent else 1.0
    unit = " %" if percent else ""
    spread = "" if np.isnan(sd) else f" ± {factor * sd:.{digits}f}"
    return Cell(f"{factor * mean:.{digits}f}{spread}{unit}", float(mean))


def _runs(row: dict[str, Any]) -> Cell:
    total = row["complete"] + row["failed"] + row["waiting"]
    flags = "".join(f", {row[name]} {name}" for name in ("failed", "waiting", "early") if row[name])
    return Cell(f"{row['complete']}/{total}{flags}", float(row["complete"]))
