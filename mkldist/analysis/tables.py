"""Tables of results for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mkldist.analysis.cell_texts import NOTHING
from mkldist.analysis.summary import (
    EARLY,
    ERRORS,
    INPUTS,
    Row,
    loss_of,
    selected_summary,
    summary,
    summary_rows,
)
from mkldist.consoles import ENDLESS
from mkldist.counted import counted
from mkldist.results import node_arrays
from mkldist.results.newest import later_words, with_newest
from mkldist.results.node_arrays import nodes_of
from mkldist.results.schema import STATE
from mkldist.results.selected import is_validated
from mkldist.results.snapshot import Snapshot
from mkldist.results.state import RunState
from mkldist.results.tree import current, read_tree
from mkldist.solvers.outcome import StopReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import pandas as pd
    import xarray as xr
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table


class RunCounts(NamedTuple):
    """Numbers of runs by state."""

    complete: int
    failed: int
    waiting: int


def run_counts(tree: xr.DataTree) -> RunCounts:
    """Return how many runs of a tree have which state."""
    nodes = nodes_of(tree, [STATE.name])
    states = np.concatenate([node.values[STATE.name][node.planned] for node in nodes])
    complete, failed = ((states == s.value).sum() for s in (RunState.COMPLETE, RunState.FAILED))
    return RunCounts(int(complete), int(failed), int(len(states) - complete - failed))


EDGES_SHOWN = 6
_REMEDIES = {
    StopReason.MAX_ITER: "raise max_iter",
    StopReason.TIME_LIMIT: "raise time_limit",
    StopReason.STALLED: "rounding allows no further gain, or chi_2 ended it; raise tol",
    StopReason.RANK_LIMIT: "raise rank of the bank, or tol",
    StopReason.MEMORY_LIMIT: "no memory holds longer factors; raise memory or tol",
}
_MEANINGS = {
    "gap_max": "Largest gap: the relative duality gap of the run furthest from proven optimal.",
    "exact_gap_max": "Exact gap: the largest gap to the kernels that factors stand for.",
    "stationarity_max": "Stationarity: the largest relative gain left where no gap proves more.",
}


def caption(
    summary: Sequence[Row], shown: Sequence[Row], *, runs: bool, counts: RunCounts | None = None
) -> str:
    """Return lines that explain the numbers of a table and name what is left out.

    Parameters
    ----------
    summary : sequence of dict
        Rows of :func:`mkldist.analysis.summary.summary`.
    shown : sequence of dict
        The rows that the table shows.
    runs : bool
        True if the table says how many runs failed.
    counts : RunCounts, optional
        All runs of the sweep, where the summary is of those at selected settings.
    """
    losses = list(dict.fromkeys(map(_loss, summary)))
    lowest = " or ".join(losses)
    lines = [f"Mean ± sd over splits; * lowest mean {lowest} of its data set."]
    if not all(loss.startswith("validation") for loss in losses):
        part = "unlabelled" if losses == ["unlabelled error"] else "test"
        lines.append(f"* is the best on the {part} part; [selection] selects without its labels.")
    lacking = any(row["lacking"] and row["complete"] for row in summary)
    if lacking:
        lines.append("Rows that lack a split that others of their data set have are not marked.")
    lines += [
        "Active: > 0.001 of the largest weight. Seconds: own time and share of passes.",
        *(
            words
            for name, words in _MEANINGS.items()
            if not all(is_missing(row.get(name)) for row in summary)
        ),
    ]
    sampled = sum(row.get("sampled", 0) for row in summary)
    if sampled:
        told = f"A sample of the points tells the exact gaps of {counted(sampled, 'run')}"
        lines.append(f"{told}, which are statistical.")
    lines += [*_edges(summary), *_early(summary)]
    own = RunCounts(*(sum(row[n] for row in summary) for n in RunCounts._fields))
    of_all = counts or own
    if not (runs or of_all.failed or of_all.waiting):
        selected = f", {own.complete} of them at selected settings" if of_all != own else ""
        lines.append(f"All {of_all.complete} runs ended{selected}; none failed.")
    if of_all.failed > own.failed:
        left = of_all.failed - own.failed
        lines.append(f"{counted(left, 'run')} failed at settings that are not selected.")
    if len(shown) < len(summary):
        lines.append(f"Each method where its mean {lowest} is lowest, of {len(summary)} rows.")
        if lacking:
            lines.append(
                "A row that lacks splits stands for its method only if all of its rows do."
            )
    if of_all.waiting:
        lines.append(f"{counted(of_all.waiting, 'run')} without an outcome yet.")
    return "\n".join(lines)


def _loss(row: Row) -> str:
    """Return the name of the loss by which a row is ranked."""
    named = {"validation_rmse": "validation RMSE", "rmse": "RMSE"}
    if row["task"] != "regression":
        named = {name: name.replace("_", " ") for name in ERRORS}
    known = (words for name, words in named.items() if not is_missing(row[f"{name}_mean"]))
    return next(known, "RMSE" if row["task"] == "regression" else "test error")


def _edges(summary: Sequence[Row]) -> list[str]:
    """Return lines that say which best values lie at an end of their grid."""
    places: dict[str, list[str]] = {}
    several = {name for name in ("dataset", "bank") if len({row[name] for row in summary}) > 1}
    for row in summary:
        if row["edge"]:
            place = " · ".join(str(row[name]) for name in ("dataset", "bank") if name in several)
            places.setdefault(f"{row['method']} {row['edge']}", []).append(place)
    if not places:
        return []
    found = [what + f" ({', '.join(own)})" * any(own) for what, own in places.items()]
    left = len(found) - EDGES_SHOWN
    more = [f"{left} more"] if left > 0 else []
    return [
        "Best at the end of its grid, so a wider grid may do better:",
        *(f"  {line}" for line in [*found[:EDGES_SHOWN], *more]),
    ]


def _early(summary: Sequence[Row]) -> list[str]:
    """Return lines that say how many runs stopped before their tolerance, why, and what helps."""
    early = sum(row["early"] for row in summary)
    if not early:
        return []
    counts = {one: sum(row.get(f"early_{one}", 0) for row in summary) for one in _REMEDIES}
    return [
        f"! {counted(early, 'run')} stopped before the tolerance:",
        *(f"  {one} ({count}): {_REMEDIES[one]}" for one, count in counts.items() if count),
    ]


def is_missing(value: Any) -> bool:
    """Return True for None and NaN."""
    return value is None or bool(value != value)


ROW_LIMIT = 60
_AVERAGED = ("test_error", "unlabelled_error", "validation_error", "rmse", "validation_rmse", "r2",
             "active", "seconds")  # fmt: skip
_MEASURES = frozenset(
    ("complete", "failed", "waiting", "early", "gap_max", "exact_gap_max", "sampled",
     "stationarity_max", "task", "lacking", "best", "edge", *(f"early_{one}" for one in EARLY),
     *(f"{name}_{of}" for name in _AVERAGED for of in ("mean", "sd")))
)  # fmt: skip
_IDENTITY = ("dataset", "bank", "method")
_ERRORS = {
    "validation_error": "validation\nerror %",
    "test_error": "test error %",
    "unlabelled_error": "unlabelled\nerror %",
}
_LOSSES = {"validation_rmse": "validation\nRMSE", "rmse": "RMSE"}
_PROXIMITIES = {
    "gap_max": "largest\ngap",
    "exact_gap_max": "largest\nexact gap",
    "stationarity_max": "station-\narity",
}
_MISSED, _MET = " !", "  "  # marks of runs that missed or met their tolerance


@dataclass(frozen=True)
class _Detail:
    """Columns and spreads that a table shows beside the scores."""

    spread: bool = True  # the standard deviation of the numbers of active kernels
    runs: bool = True  # how many runs failed
    gaps: bool = True  # a blank between columns


def _details(summary: Sequence[Row]) -> Iterator[_Detail]:
    """Yield levels of detail, the fullest first.  Failed or waiting runs always have a column."""
    clean = not any(row["failed"] or row["waiting"] for row in summary)
    for spread, runs in ((True, True), (False, True), (False, False)):
        if runs or clean:
            yield _Detail(spread, runs)
            yield _Detail(spread, runs, gaps=False)


@dataclass(frozen=True, eq=False)
class SummaryTable:
    """The summary of a sweep, as detailed as the width of the console allows.

    Parameters
    ----------
    summary : list of dict
        Rows of :func:`mkldist.analysis.summary.summary`.
    shown : list of dict
        The rows to show.
    note : str
        First line of the caption.
    counts : RunCounts, optional
        All runs, where rows are selected.
    """

    summary: list[Row]
    shown: list[Row]
    note: str = ""
    counts: RunCounts | None = None

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yield headings, rows and caption."""
        from rich.text import Text

        parts: list[RenderableType] = []
        unbounded = options.update(max_width=ENDLESS)
        for detail in _details(self.summary):
            parts = list(self._parts(detail))
            widths = [console.measure(part, options=unbounded).maximum for part in parts]
            if max(widths) <= options.max_width:
                break
        yield from parts
        words = caption(self.summary, self.shown, runs=detail.runs, counts=self.counts)
        yield Text(f"{self.note}\n" * bool(self.note) + words, style="dim")

    def _parts(self, detail: _Detail) -> Iterator[RenderableType]:
        columns = self.summary[0] if self.summary else ()
        names = [str(n) for n in columns if n not in _MEASURES and n not in _IDENTITY]
        for task in dict.fromkeys(row["task"] for row in self.shown):
            shown = [row for row in self.shown if row["task"] == task]
            yield from _tables_of(shown, task, names, detail)


def results_table(tree: xr.DataTree) -> SummaryTable:
    """Return the results of a sweep for a terminal, at selected settings if the sweep selects.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it.
    """
    if not is_validated(tree):
        return summary_table(summary(tree))
    return replace(
        summary_table(selected_summary(tree)),
        note="Settings of least validation error in each split, by mkldist.selected.",
        counts=run_counts(tree),
    )


def recorded_table(path: Path, held: Snapshot | None = None) -> SummaryTable:
    """Return the results in a sweep's output folder for a terminal, as :func:`results_table` does.

    They are read without pandas and xarray, and with the records that the tree does not hold yet,
    unless the sweep selects settings.

    Parameters
    ----------
    path : Path
        The sweep's output folder, or the ``results.zarr`` in it.
    held : Snapshot, optional
        What the folder holds, if that is known.

    Raises
    ------
    mkldist.errors.StoreError
        If there are no results or they are damaged.
    """
    tree = current(path)
    held = held or Snapshot.of(tree)
    if node_arrays.is_validated(held.index):
        table, later = results_table(read_tree(path)), later_words(held.n_behind)
        return replace(table, note=f"{table.note}\n{later}") if later else table
    return table_of(summary_rows(with_newest(node_arrays.nodes_in(held.index, INPUTS), held)))


def recorded_rows(path: Path, held: Snapshot | None = None) -> list[Row]:
    """Return the rows of :func:`recorded_table`, for other programs."""
    return recorded_table(path, held).summary


def summary_table(summary: pd.DataFrame, *, row_limit: int = ROW_LIMIT) -> SummaryTable:
    """Return the summary of a sweep for a terminal of 80 columns or more.

    Data sets of classification and of regression have headings of their own.

    Parameters
    ----------
    summary : pandas.DataFrame
        As :func:`mkldist.analysis.summary.summary` returns it.
    row_limit : int, optional
        Longer tables show each method only at its best setting on each data set and bank.

    Returns
    -------
    SummaryTable
        For the ``print`` of a :class:`rich.console.Console`.
    """
    rows = [{str(name): value for name, value in row.items()} for row in summary.to_dict("records")]
    return table_of(rows, row_limit=row_limit)


def table_of(rows: list[Row], *, row_limit: int = ROW_LIMIT) -> SummaryTable:
    """Return the rows of a summary for a terminal; see :func:`summary_table`."""
    return SummaryTable(rows, rows if len(rows) <= row_limit else _best_of_each(rows))


def _tables_of(
    shown: list[Row], task: str, names: list[str], detail: _Detail
) -> list[RenderableType]:
    """Return headings and the rows of each data set of one task."""
    from rich.text import Text

    losses = _losses_of(shown, _LOSSES if task == "regression" else _ERRORS)
    scores = [*losses.values(), *(["R²"] if task == "regression" else [])]
    early = any(row["early"] for row in shown)
    left = _proximities_of(shown)
    mark = _MET if early else ""
    headed = [_PROXIMITIES[name].replace("\n", f"{mark}\n") + mark for name in left]
    measures = [*scores, "active\nkernels", "seconds", *headed, *(["failed\nruns"] * detail.runs)]
    headings = ["method", *_hyperparameter_heading(names), *measures]
    rows = [_cells(row, names, [*losses], left, detail, early=early) for row in shown]
    # Equal widths in every cell of a column give the tables of all data sets the same columns.
    widths = [max(map(_width, column)) for column in zip(headings, *rows, strict=True)]
    n_left = len(headings) - len(measures)
    parts: list[RenderableType] = [_table(headings, [], widths, n_left, detail)]
    several = len({row["bank"] for row in shown}) > 1
    marked = [(cells, bool(row["best"])) for cells, row in zip(rows, shown, strict=True)]
    titles = [f"{r['dataset']} · {r['bank']}" if several else str(r["dataset"]) for r in shown]
    for title in dict.fromkeys(titles):
        own = [row for row, of in zip(marked, titles, strict=True) if of == title]
        parts += [Text(title, style="bold"), _table(None, own, widths, n_left, detail), Text()]
    return parts


def _losses_of(rows: Sequence[Row], headings: Mapping[str, str]) -> dict[str, str]:
    """Return the losses that any row has, with their headings, or else that of the test part."""
    found = {n: h for n, h in headings.items() if not all(is_missing(r[f"{n}_mean"]) for r in rows)}
    test = "rmse" if "rmse" in headings else "test_error"
    return found or {test: headings[test]}


def _proximities_of(rows: Sequence[Row]) -> list[str]:
    """Return the measures of what is left to gain that any row has, or else the gap."""
    found = [name for name in _PROXIMITIES if not all(is_missing(row.get(name)) for row in rows)]
    return found or ["gap_max"]


def _table(
    headings: Sequence[str] | None,
    rows: Sequence[tuple[list[str], bool]],
    widths: Sequence[int],
    n_left: int,
    detail: _Detail,
) -> Table:
    """Return rows, or the headings alone, in columns of at least the given widths."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        show_header=headings is not None,
        padding=(0, 1 if detail.gaps else 0, 0, 0),
    )
    for index, width in enumerate(widths):
        left = index < n_left
        heading = "\n".join(
            line.ljust(width) if left else line.rjust(width)
            for line in (headings[index] if headings else "").split("\n")
        )
        table.add_column(
            heading,
            justify="left" if left else "right",
            no_wrap=not left,
            overflow="fold",
            vertical="bottom" if headings else "top",
        )
    for cells, best in rows:
        texts = [
            Text(cell.ljust(width) if index < n_left else cell.rjust(width))
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        if detail.runs and not cells[-1].startswith("0/"):
            texts[-1].stylize("bold red")
        table.add_row(*texts, style="green" if best else "")
    return table


def _hyperparameter_heading(names: Sequence[str]) -> list[str]:
    """Return the heading of the column of hyperparameters, none if no method has any."""
    if not names:
        return []
    return [names[0] if len(names) == 1 else "parameters"]


def _width(cell: str) -> int:
    return max(map(len, cell.split("\n")))


def _best_of_each(summary: Sequence[Row]) -> list[Row]:
    """Return the row of the smallest loss for each data set, bank and method.

    It is one of the rows that lack the fewest splits: the mean of a row on fewer splits is one of
    other points.
    """
    best: dict[tuple[Any, ...], int] = {}
    losses = [float("inf") if is_missing(loss) else loss for loss in map(loss_of, summary)]
    order = [(row["lacking"], loss) for row, loss in zip(summary, losses, strict=True)]
    for number, row in enumerate(summary):
        place = tuple(row[name] for name in _IDENTITY)
        if order[number] < order[best.setdefault(place, number)]:
            best[place] = number
    return [summary[number] for number in sorted(best.values())]


def _cells(
    row: Row,
    names: list[str],
    losses: Sequence[str],
    proximities: Sequence[str],
    detail: _Detail,
    *,
    early: bool,
) -> list[str]:
    mark = _MISSED if row["early"] else _MET if early else ""
    failed = int(row["failed"])
    runs = failed + int(row["complete"]) + int(row["waiting"])
    return [
        f" {row['method']}",
        *([_parameters(row, names)] if names else []),
        *_scores(row, losses),
        _mean_sd(row["active_mean"], row["active_sd"] if detail.spread else float("nan"), 1),
        _seconds(row["seconds_mean"]),
        *(_gap(row.get(name)) + mark for name in proximities),
        *([f"{failed}/{runs}"] * detail.runs),
    ]


def _scores(row: Row, losses: Sequence[str]) -> list[str]:
    """Return the cells of the losses, the best of them marked, and of R² for regression."""
    shown = _rmse if row["task"] == "regression" else _percent
    cells = [shown(row[f"{name}_mean"], row[f"{name}_sd"]) for name in losses]
    known = (n for n, name in enumerate(losses) if not is_missing(row[f"{name}_mean"]))
    ranking = next(known, 0)
    cells = [
        cell + (" *" if row["best"] and n == ranking else "  ") for n, cell in enumerate(cells)
    ]
    if row["task"] == "regression":
        cells.append(NOTHING if is_missing(row["r2_mean"]) else f"{row['r2_mean']:.3f}")
    return cells


def _percent(mean: float, sd: float) -> str:
    return _mean_sd(100 * mean, 100 * sd, 2)


def _rmse(mean: float, sd: float) -> str:
    if is_missing(mean):
        return NOTHING
    return _digits(mean, 4) + ("" if is_missing(sd) else f" ± {_digits(sd, 2)}")


def _digits(number: float, digits: int) -> str:
    """Return a number with this many significant digits, trailing zeros included."""
    return f"{number:#.{digits}g}".rstrip(".")


def _parameters(row: dict[Any, Any], names: list[str]) -> str:
    """Return names and values of the hyperparameters of the row's method."""
    given = [(name, row[name]) for name in names if not is_missing(row[name])]
    if len(names) == 1:
        return "".join(_value(value) for _, value in given)
    return " ".join(f"{name}={_value(value)}" for name, value in given)


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _mean_sd(mean: float, sd: float, digits: int) -> str:
    if is_missing(mean):
        return NOTHING
    return f"{mean:.{digits}f}" + ("" if is_missing(sd) else f" ± {sd:.{digits}f}")


def _seconds(seconds: float) -> str:
    if is_missing(seconds):
        return NOTHING
    if seconds >= 100:
        return f"{seconds:.0f}"
    return f"{seconds:.1f}" if seconds >= 10 else f"{seconds:.2f}"


def _gap(gap: float | None) -> str:
    if gap is None or is_missing(gap):
        return NOTHING
    return f"{gap:.1e}" if gap else "0"
