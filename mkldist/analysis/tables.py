"""Tables of results for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mkldist.analysis.cell_texts import NOTHING
from mkldist.analysis.paired_losses import TO_TRY, constant_words
from mkldist.analysis.summary import (
    EARLY,
    SCORES,
    Row,
    arrays_of,
    is_missing,
    loss_of,
    ranked_by,
    recorded_arrays,
    selected_summary,
    summary,
    summary_rows,
)
from mkldist.core.consoles import ENDLESS
from mkldist.core.metrics import BESIDE, METRICS, PARTS, Metric, part_of_variable
from mkldist.core.wording import pluralize
from mkldist.results.rows import is_validated, method_nodes
from mkldist.results.schema import STATE, RunState, metric_of
from mkldist.results.tree import Snapshot
from mkldist.solvers.outcome import StopReason

if TYPE_CHECKING:
    from collections.abc import Iterator
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
    nodes = arrays_of(tree, [STATE.name])
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
    losses = list(dict.fromkeys(map(_ranking, summary)))
    best = " or ".join(losses)
    lines = ["Mean [95 % interval by the splits].", f"* best mean {best} of its data set."]
    parts = {loss.partition(" ")[0] for loss in losses}
    if parts != {"validation"}:
        part = "unlabelled" if parts == {"unlabelled"} else "test"
        lines.append(f"* is the best on the {part} part; inner folds select without its labels.")
    lines += _no_better(summary)
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
        told = f"A sample of the points tells the exact gaps of {pluralize(sampled, 'run')}"
        lines.append(f"{told}, which are statistical.")
    lines += [*_edges(summary), *_early(summary)]
    own = RunCounts(*(sum(row[n] for row in summary) for n in RunCounts._fields))
    of_all = counts or own
    if not (runs or of_all.failed or of_all.waiting):
        selected = f", {own.complete} of them at selected settings" if of_all != own else ""
        lines.append(f"All {of_all.complete} runs ended{selected}; none failed.")
    if of_all.failed > own.failed:
        left = of_all.failed - own.failed
        lines.append(f"{pluralize(left, 'run')} failed at settings that are not selected.")
    if len(shown) < len(summary):
        lines.append(f"Each method where its mean {best} is best, of {len(summary)} rows.")
        if lacking:
            lines.append(
                "A row that lacks splits stands for its method only if all of its rows do."
            )
    if of_all.waiting:
        lines.append(f"{pluralize(of_all.waiting, 'run')} without an outcome yet.")
    return "\n".join(lines)


def _ranking(row: Row) -> str:
    """Return what a row is ranked by, such as ``test error``."""
    name = ranked_by(row) or METRICS[row["metric"]].variable()
    return METRICS[row["metric"]].heading(part_of_variable(name))


def _no_better(summary: Sequence[Row]) -> list[str]:
    """Return lines on the rows that are no better than a constant prediction."""
    found: dict[str, dict[str, None]] = {}
    for row in (row for row in summary if row.get("no_better")):
        words = constant_words(METRICS[row["metric"]], row["constant_mean"])
        found.setdefault(words, {})[str(row["dataset"])] = None
    several = len({row["dataset"] for row in summary}) > 1

    def on(names: Iterable[str]) -> str:
        return f" on {', '.join(names)}" if several else ""

    lines = [
        f"~ no better than {words}{on(names)}, by a one-sided test."
        for words, names in found.items()
    ]
    starred = {row["dataset"] for row in summary if row.get("best")}
    names = dict.fromkeys(name for own in found.values() for name in own if name not in starred)
    if not names:
        return lines
    ranked = [
        row
        for row in summary
        if row["dataset"] in names and row["metric"] != "auc" and row.get("auc_low", 0.0) > 0.5
    ]
    aucs = {row["dataset"]: row["auc_mean"] for row in sorted(ranked, key=itemgetter("auc_mean"))}
    lines += [
        f"Yet an AUC of {auc:.3f}{on([name])} tells the classes apart: weigh them."
        for name, auc in aucs.items()
    ]
    return [*lines, f"So nothing is starred{on(names)}: the best row is marked.", *TO_TRY]


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
        f"! {pluralize(early, 'run')} stopped before the tolerance:",
        *(f"  {one} ({count}): {_REMEDIES[one]}" for one, count in counts.items() if count),
    ]


ROW_LIMIT = 60
_MEASURES = frozenset(
    ("complete", "failed", "waiting", "early", "gap_max", "exact_gap_max", "sampled",
     "stationarity_max", "task", "metric", "constant_mean", "no_better", "lacking", "best", "edge",
     *(f"early_{one}" for one in EARLY),
     *(f"{name}_{of}" for name in ("active", "seconds") for of in ("mean", "sd")),
     *(f"{name}_{of}" for name in SCORES for of in ("mean", "sd", "low", "high")))
)  # fmt: skip
_IDENTITY = ("dataset", "bank", "method")
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
    beside: bool = True  # metrics other than the sweep's
    intervals: bool = True  # of the sweep's metric,
    all_intervals: bool = True  # and of the others


def _details(summary: Sequence[Row]) -> Iterator[_Detail]:
    """Yield levels of detail, the fullest first.  Failed or waiting runs always have a column."""
    clean = not any(row["failed"] or row["waiting"] for row in summary)
    levels = [(True, True, True), (False, True, True), (False, False, True), (False, False, False)]
    yield _Detail()
    for beside, intervals in ((True, True), (False, True), (False, False)):
        for spread, runs, gaps in levels:
            yield _Detail(spread, runs or not clean, gaps, beside, intervals, all_intervals=False)


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
    words = " or ".join(dict.fromkeys(metric_of(node).words for node in method_nodes(tree)))
    return replace(
        summary_table(selected_summary(tree)),
        note=f"Settings of best validation {words} in each split, by mkldist.selected.",
        counts=run_counts(tree),
    )


def recorded_table(path: Path, held: Snapshot | None = None) -> SummaryTable:
    """Return the results in a sweep's output folder for a terminal, as :func:`results_table` does.

    They are read without pandas and xarray unless the sweep selects settings.

    Parameters
    ----------
    path : Path
        The sweep's output folder.
    held : Snapshot, optional
        What the folder holds, if that is known.

    Raises
    ------
    mkldist.errors.StoreError
        If there are no results or they are damaged.
    """
    held = held or Snapshot.of(path)
    arrays = recorded_arrays(held)
    if arrays and all(one.metric.variable("validation") in one.values for one in arrays):
        return results_table(held.tree(vectors=False))
    return table_of(summary_rows(arrays))


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

    scores = _scores_of(shown, task, detail)
    early = any(row["early"] for row in shown)
    left = _proximities_of(shown)
    mark = _MET if early else ""
    headed = [_PROXIMITIES[name].replace("\n", f"{mark}\n") + mark for name in left]
    measures = [
        *map(_heading, scores),
        "active\nkernels",
        "seconds",
        *headed,
        *(["failed\nruns"] * detail.runs),
    ]
    headings = ["method", *_hyperparameter_heading(names), *measures]
    rows = [_cells(row, names, scores, left, detail, early=early) for row in shown]
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


@dataclass(frozen=True)
class _Score:
    """A column of a metric: its variable, and whether it ranks rows or shows intervals."""

    name: str
    metric: Metric
    part: str
    alone: bool  # True if the heading need not say the part
    interval: bool


def _scores_of(rows: Sequence[Row], task: str, detail: _Detail) -> list[_Score]:
    """Return the columns of metrics that any row has: the sweep's, and others of the same part."""
    metric = METRICS[rows[0]["metric"]]

    def known(name: str) -> bool:
        return not all(is_missing(row.get(f"{name}_mean")) for row in rows)

    parts = [part for part in PARTS if known(metric.variable(part))] or ["test"]
    scored = next((part for part in parts if part != "validation"), "test")
    found = [
        _Score(
            metric.variable(part), metric, part, alone=False,
            interval=detail.intervals and part != "validation",
        )
        for part in parts
    ]  # fmt: skip
    others = (METRICS[name] for name in BESIDE[task] if detail.beside)
    return found + [
        _Score(other.variable(scored), other, scored, alone=True, interval=detail.all_intervals)
        for other in others
        if other is not metric and known(other.variable(scored))
    ]


def _heading(score: _Score) -> str:
    """Return the heading of a column, in two lines if it has several words."""
    unit = " %" * (score.metric.unit == "%")
    words = score.metric.words if score.alone else score.metric.heading(score.part)
    first, blank, last = f"{words}{unit}".partition(" ")
    ends = "  [95 %]" * score.interval
    return f"{first}\n{last}{ends}" if blank and last != "%" else f"{first}{blank}{last}{ends}"


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
    scores: Sequence[_Score],
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
        *(_score(row, score) for score in scores),
        _mean_sd(row["active_mean"], row["active_sd"] if detail.spread else float("nan"), 1),
        _seconds(row["seconds_mean"]),
        *(_gap(row.get(name)) + mark for name in proximities),
        *([f"{failed}/{runs}"] * detail.runs),
    ]


def _score(row: Row, score: _Score) -> str:
    """Return the cell of a metric, with the mark of the best row and of those that beat nothing."""
    mean = row.get(f"{score.name}_mean")
    if mean is None or is_missing(mean):
        return NOTHING + "  " * (not score.alone)
    ends = [row.get(f"{score.name}_{end}", np.nan) for end in ("low", "high") if score.interval]
    cell = score.metric.number(mean, *ends)
    if score.alone:
        return cell
    if score.part != "validation" and row.get("no_better"):
        return f"{cell} ~"
    return cell + (" *" if row["best"] and score.name == ranked_by(row) else "  ")


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
