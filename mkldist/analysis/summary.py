"""The results of a sweep in one table, averaged over the splits, and as a terminal shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mkldist.analysis.losses import TO_TRY, Standing, constant_words, scored_part
from mkldist.core.arrays import Array, Bools, Floats, Ints
from mkldist.core.compiled import without_garbage_collection
from mkldist.core.metrics import (
    BESIDE,
    METRICS,
    NOTHING,
    PARTS,
    Metric,
    part_of_variable,
    pooled_words,
)
from mkldist.core.terminal import ENDLESS
from mkldist.core.wording import pluralize
from mkldist.results.rows import (
    MethodRuns,
    hyperparameters,
    is_validated,
    method_nodes,
    place_of,
    selected,
    selecting_losses,
    settings_of,
)
from mkldist.results.schema import RUN_ID, STATE, RunState, metric_of, task_of
from mkldist.results.tree import Snapshot
from mkldist.solvers.progress import SAMPLED, STATIONARITY, StopReason
from mkldist.spec.kinds import TRIAL

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table


Row = dict[str, Any]
ROUNDING = 1.0 + 1e-12  # of means that are equal but for the order of their sums
EARLY = tuple(reason for reason in StopReason if reason is not StopReason.CONVERGED)
IDENTITY_COLUMNS = 3  # data set, bank and method


def summary(tree: xr.DataTree) -> pd.DataFrame:
    """Return the results of a sweep, a row for each data set, bank, method and setting.

    Means, standard deviations (with ``n - 1`` in the denominator) and 95 % intervals are over the
    splits whose run is complete, in columns that end with ``_mean``, ``_sd``, ``_low``, ``_high``:
    of every metric of test, unlabelled and inner parts, of active kernels and of seconds.  Beside
    them stand the numbers of runs by state, and of those that stopped early by reason; the
    ``metric`` that ranks the rows; ``pooled``, the number of test parts that lack a class;
    ``constant_mean``, the metric of the best constant prediction, and ``no_better`` than it by a
    test; the largest gaps and stationarity; ``lacking``, the number of splits on which another row
    of the data set has a complete run and this has none; ``best``, true in the rows of the smallest
    :func:`loss_of` their data set among those that lack no split and are not ``no_better``; and
    ``edge``, the hyperparameters whose value in a method's best row is at an end of its grid.
    """
    import pandas as pd

    rows = summary_rows([*map(MethodRuns.of, method_nodes(tree))])
    return pd.DataFrame(rows, columns=None if rows else [*_IDENTITY, "task"])


def selected_summary(tree: xr.DataTree) -> pd.DataFrame:
    """Return the table of a sweep: a row for each method at the setting selected in each split.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it, of a sweep with inner folds.

    Returns
    -------
    DataFrame
        ``dataset``, ``bank``, ``method``, and hyperparameters as text: the value, or the least and
        the greatest one if splits differ.  Means, standard deviations and 95 % intervals over the
        splits end with ``_mean``, ``_sd``, ``_low`` and ``_high``, such as ``test_error_low``.
        ``best`` is true for the method of the least validation loss, ``no_better`` for one that no
        test finds better than a constant, and ``edge`` names hyperparameters at an end of their
        grid in most splits.

    Raises
    ------
    mkldist.errors.InputError
        If the sweep has no inner folds.

    Examples
    --------
    >>> import mkldist  # doctest: +SKIP
    >>> tree = mkldist.open_results("results/selected")  # doctest: +SKIP
    >>> table = mkldist.analysis.selected_summary(tree)  # doctest: +SKIP
    >>> columns = ["method", "test_error_mean", "test_error_low", "test_error_high"]
    >>> table[columns].to_latex("table.tex", float_format="%.3f")  # doctest: +SKIP
    """
    chosen = selected(tree)
    table = summary(chosen)
    names = dict.fromkeys(name for node in method_nodes(tree) for name in settings_of(node))
    values: dict[tuple[str, ...], dict[str, Array]] = {}
    for node in method_nodes(chosen):  # of the splits that have a complete run
        done = node[STATE.name].to_numpy() == RunState.COMPLETE.value
        own = {name: node[name].to_numpy()[done] for name in names if name in node.ds}
        values[tuple(place_of(node).values())] = own
    keys = list(zip(table["dataset"], table["bank"], table["method"], strict=True))
    for place, name in enumerate(names):
        column = [_span(values[key][name]) if name in values[key] else None for key in keys]
        table.insert(IDENTITY_COLUMNS + place, name, column)
    edges = {
        tuple(place_of(node).values()): _selected_edge(node, chosen[node.path].to_dataset())
        for node in method_nodes(tree)
    }
    table["edge"] = [edges[key] for key in keys]
    return table


def _selected_edge(node: xr.DataTree, chosen: xr.Dataset) -> str:
    """Return the hyperparameters that most splits select at an end of their grid.

    A split counts if no setting with another value has the same loss.
    """
    dims = hyperparameters(node)
    losses = selecting_losses(node)
    least = np.fmin.reduce(losses.reshape(len(losses), -1), axis=1)
    tied = losses <= least.reshape(-1, *[1] * len(dims)) * ROUNDING
    n_splits = int((chosen[STATE.name] == RunState.COMPLETE.value).sum())
    found = []
    for axis, name in enumerate(dims, start=1):
        values = node[name].to_numpy() if name in settings_of(node) else np.empty(0)
        others = tuple(other for other in range(1, losses.ndim) if other != axis)
        shared = tied.any(axis=others)
        alone = shared.sum(axis=1) == 1
        for end in _ends(values):
            count = int((alone & shared[:, values == end].any(axis=1)).sum())
            if 2 * count > n_splits:
                found.append(f"{name} = {end:g} in {count} of {n_splits} splits")
    return ", ".join(found)


def _ends(values: Array) -> tuple[float, ...]:
    """Return the least and the greatest of several numbers; nothing for one value or for text."""
    if values.dtype.kind not in "fi" or len(values) < 2:
        return ()
    return float(values.min()), float(values.max())


def _span(values: np.ndarray[Any, Any]) -> str | None:
    """Return the values of some splits as a text; None without any."""
    if not len(values):
        return None
    if values.dtype.kind in "fiu":
        low, high = f"{values.min():g}", f"{values.max():g}"
        return low if low == high else f"{low}…{high}"
    return "|".join(dict.fromkeys(map(str, values)))


def loss_of(row: Row) -> float:
    """Return the loss of a row, by which the best one is found; NaN without one."""
    name = ranked_by(row)
    return float(METRICS[row["metric"]].loss(row[f"{name}_mean"])) if name else np.nan


def ranked_by(row: Row) -> str:
    """Return the name of the variable by which a row is ranked; empty without one.

    It is that of the sweep's metric on the inner folds, where there are any; else on the test part,
    or on the unlabelled points without a test part.
    """
    names = (METRICS[row["metric"]].variable(part) for part in PARTS)
    return next((name for name in names if not is_missing(row.get(f"{name}_mean"))), "")


def is_missing(value: Any) -> bool:
    """Return True for None and NaN."""
    return value is None or bool(value != value)


_DONE = "done"  # of a row, until it is returned: whether its run on each split is complete
_IDENTITY = ("dataset", "bank", "method")
SCORES = {m.variable(part): (m, part) for m in METRICS.values() for part in PARTS}
"""Metric and part of the split of every score of a row."""


def summary_rows(methods: Sequence[MethodRuns]) -> list[Row]:
    """Return the rows of :func:`summary` of the runs of some methods."""
    names = dict.fromkeys(name for one in methods for name in one.grid)
    held = {metric_of(one.attributes).variable() for one in methods}
    held |= {name for one in methods for name in one.values}
    scores = [name for name in SCORES if name in held]
    rows = []
    for runs in methods:
        own = list(_rows_of(runs, names, scores))
        if own:
            _mark_edges(own, {} if TRIAL in runs.grid else runs.grid)
        rows += own
    for dataset in {row["dataset"] for row in rows}:
        own = [row for row in rows if row["dataset"] == dataset]
        able, whole = np.array([not row["no_better"] for row in own]), _lacking(own) == 0
        # Marks are of the test parts, which must not choose another row where inner folds choose.
        validated = any(part_of_variable(ranked_by(row)) == "validation" for row in own)
        best = able & _are_best(own, whole if validated else able & whole)
        for row, lacking, is_best in zip(own, _lacking(own).tolist(), best.tolist(), strict=True):
            row["lacking"], row["best"] = lacking, is_best
    for row in rows:
        del row[_DONE]
    return rows


def _lacking(rows: Sequence[Row]) -> Ints:
    """Return on how many splits others of the rows have a complete run and a row has none, (R,)."""
    done = np.array([row[_DONE] for row in rows])
    lacking: Ints = (done.any(axis=0) & ~done).sum(axis=1)
    return lacking


def _are_best(rows: Sequence[Row], able: Bools) -> Bools:
    """Return whether each row has the least loss, but for rounding, of those that are able to.

    The mean of a row that lacks splits is one of other points, perhaps of easier ones.
    """
    losses = np.where(able, [loss_of(row) for row in rows], np.nan)
    best: Bools = losses <= np.fmin.reduce(losses) * ROUNDING
    return best


def _rows_of(runs: MethodRuns, names: Iterable[str], scores: Sequence[str]) -> Iterator[Row]:
    """Yield the row of each setting of a method, in the order of their first runs."""
    grid, splits, metric = runs.grid, runs.splits, metric_of(runs.attributes)
    shape = [*map(len, grid.values())]
    planned = runs.values[RUN_ID.name].astype(object) != ""
    state, reason = runs.values["state"], runs.values["stop_reason"]
    complete = planned & (state == RunState.COMPLETE.value)
    failed = planned & (state == RunState.FAILED.value)

    def of_complete(name: str) -> Floats:
        """Return a variable, NaN for runs that are not complete or where there is none."""
        return np.where(complete, runs.values.get(name, np.nan), np.nan)

    averaged = {name: name for name in scores} | {"active": "active_kernels", "seconds": "seconds"}
    values = {short: of_complete(name) for short, name in averaged.items()}
    largest = {"gap_max": "gap", "exact_gap_max": "exact_gap", "stationarity_max": STATIONARITY}
    table: dict[str, Array] = {
        "complete": complete.sum(axis=0),
        "failed": failed.sum(axis=0),
        "waiting": (planned & ~complete & ~failed).sum(axis=0),
        "early": (complete & (reason != StopReason.CONVERGED.value)).sum(axis=0),
        **{f"early_{one}": (complete & (reason == one.value)).sum(axis=0) for one in EARLY},
    }
    for name, own_values in values.items():
        table[f"{name}_mean"], table[f"{name}_sd"] = _mean_and_sd(own_values)
    table |= {name: np.fmax.reduce(of_complete(of)) for name, of in largest.items()}
    table["sampled"] = (~np.isnan(of_complete(SAMPLED))).sum(axis=0)
    constants = splits.get("constant_score", np.full(len(complete), np.nan))
    table["constant_mean"], _ = _mean_and_sd(np.where(complete, constants[:, None], np.nan))
    table["pooled"] = np.full(complete.shape[1], runs.n_pooled)
    table["no_better"] = np.zeros(complete.shape[1], dtype=np.bool_)
    for name in scores:
        own, part = SCORES[name]
        if part == scored_part(splits):
            found = [Standing.of(of_split, own, splits, part) for of_split in values[name].T]
            for end in ("low", "high"):
                table[f"{name}_{end}"] = np.array([getattr(one, end, np.nan) for one in found])
            if own is metric:
                table["no_better"] = np.array([bool(one and one.no_better) for one in found])
    settings = np.flatnonzero(planned.any(axis=0)).tolist()
    for number in sorted(settings, key=lambda setting: planned[:, setting].argmax()):
        at = dict(zip(grid, np.unravel_index(number, shape) if grid else (), strict=True))
        yield {
            **runs.place,
            **{name: grid[name][at[name]].item() if name in at else np.nan for name in names},
            "task": task_of(runs.attributes),
            "metric": metric.name,
            _DONE: complete[:, number],
            **{name: column[number].item() for name, column in table.items()},
        }


def _mean_and_sd(values: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of the known values of each column; NaN without any."""
    count = (~np.isnan(values)).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.nansum(values, axis=0) / count
        squares = np.nansum((values - mean) ** 2, axis=0)
        return mean, np.sqrt(np.where(count > 1, squares / (count - 1), np.nan))


def _mark_edges(rows: Sequence[Row], grid: Mapping[str, Array]) -> None:
    """Set in the rows of least loss which hyperparameters lie at an end of their grid."""
    are_best = _are_best(rows, _lacking(rows) == 0)
    best = [row for row, is_best in zip(rows, are_best, strict=True) if is_best]
    for row in rows:
        row["edge"] = ""
    for row in best:
        at_end = {
            name: f"{name} = {row[name]:g}"
            for name, values in grid.items()
            if row[name] in _ends(values) and all(other[name] == row[name] for other in best)
        }
        row["edge"] = ", ".join(at_end.values())


EDGES_SHOWN, ROW_LIMIT = 6, 60
_REMEDIES = {
    StopReason.MAX_ITER: "raise max_iter",
    StopReason.TIME_LIMIT: "raise time_limit",
    StopReason.STALLED: "rounding allows no further gain, or chi_2 ended it; raise tol",
    StopReason.RANK_LIMIT: "raise rank of the bank, or tol",
    StopReason.MEMORY_LIMIT: "no memory holds longer factors; raise memory or tol",
}
_PROXIMITIES = {
    "gap_max": (
        "largest\ngap",
        "Largest gap: the relative duality gap of the run furthest from proven optimal.",
    ),
    "exact_gap_max": (
        "largest\nexact gap",
        "Exact gap: the largest gap to the kernels that factors stand for.",
    ),
    "stationarity_max": (
        "station-\narity",
        "Stationarity: the largest relative gain left where no gap proves more.",
    ),
}
"""Headings and meanings of the measures of what is left to gain."""


def _known(rows: Iterable[Row], name: str) -> bool:
    return not all(is_missing(row.get(name)) for row in rows)


def caption(summary: Sequence[Row], shown: Sequence[Row], *, selected: bool = False) -> str:
    """Return lines that explain the numbers of a table and name what is left out.

    `selected` rows are of settings that inner folds chose, which are some of the runs alone.
    """
    ranked = [(METRICS[row["metric"]], ranked_by(row)) for row in summary]
    losses = {m.heading(part_of_variable(name or m.variable())): None for m, name in ranked}
    best, parts = " or ".join(losses), {loss.partition(" ")[0] for loss in losses}
    part = "unlabelled" if parts == {"unlabelled"} else "test"
    lacking = any(row["lacking"] and row["complete"] for row in summary)
    sampled = sum(row.get("sampled", 0) for row in summary)
    waiting = 0 if selected else sum(row["waiting"] for row in summary)
    cut, at_end, early = len(shown) < len(summary), edges_of(summary), early_of(summary)
    if len(at_end) > EDGES_SHOWN:
        at_end = [*at_end[:EDGES_SHOWN], f"{len(at_end) - EDGES_SHOWN} more"]
    n_early = sum(row["early"] for row in summary)
    lines = [
        (True, f"Mean [95 % interval by the splits].\n* best mean {best} of its data set."),
        (parts != {"validation"},
         f"* is the best on the {part} part; inner folds select without its labels."),
        *((True, line) for line in _no_better(summary)),
        (lacking, "Rows that lack a split that others of their data set have are not marked."),
        *((True, f"{line}.") for line in pooled_of(summary)),
        (True, "Active: > 0.001 of the largest weight. Seconds: own time and share of passes."),
        *((_known(summary, name), words) for name, (_, words) in _PROXIMITIES.items()),
        (sampled, f"A sample of the points tells the exact gaps of {pluralize(sampled, 'run')}, "
         "which are statistical."),
        (at_end, "Best at the end of its grid, so a wider grid may do better:"),
        *((True, f"  {line}") for line in at_end),
        (n_early, f"! {pluralize(n_early, 'run')} stopped before the tolerance:"),
        *((True, f"  {line}") for line in early),
        (cut, f"Each method where its mean {best} is best, of {len(summary)} rows."),
        (cut and lacking,
         "A row that lacks splits stands for its method only if all of its rows do."),
        (waiting, f"{pluralize(waiting, 'run')} without an outcome yet."),
    ]  # fmt: skip
    return "\n".join(line for holds, line in lines if holds)


def _no_better(summary: Sequence[Row]) -> Iterator[str]:
    """Yield lines on the rows that are no better than a constant prediction."""
    found: dict[str, dict[str, None]] = {}
    for row in (row for row in summary if row.get("no_better")):
        words = constant_words(METRICS[row["metric"]], row["constant_mean"])
        found.setdefault(words, {})[str(row["dataset"])] = None
    for words, datasets in found.items():
        on = ", ".join(datasets)
        yield f"~ no better than {words} on {on}, by a one-sided test of each row alone."
    starred = {row["dataset"] for row in summary if row.get("best")}
    names = dict.fromkeys(name for own in found.values() for name in own if name not in starred)
    if names:
        yield f"So nothing is starred on {', '.join(names)}: the best row is marked."
        marked = [METRICS[row["metric"]] for row in summary if row["dataset"] in names]
        for task in dict.fromkeys(metric.task for metric in marked):
            yield from TO_TRY[task]


def pooled_of(rows: Sequence[Row]) -> list[str]:
    """Return words on each data set whose folds lack classes."""
    found = dict.fromkeys((r["dataset"], r.get("pooled"), r["task"]) for r in rows)
    return [f"{name}: {pooled_words(count, task)}" for name, count, task in found if count]


def edges_of(rows: Sequence[Row]) -> list[str]:
    """Return words on the best values that lie at an end of their grid."""
    places: dict[str, list[str]] = {}
    several = [name for name in ("dataset", "bank") if len({row[name] for row in rows}) > 1]
    for row in (row for row in rows if row["edge"]):
        place = " · ".join(str(row[name]) for name in several)
        places.setdefault(f"{row['method']} {row['edge']}", []).append(place)
    return [what + f" ({', '.join(own)})" * any(own) for what, own in places.items()]


def early_of(rows: Sequence[Row]) -> list[str]:
    """Return why runs stopped before their tolerance, how many, and what helps."""
    counts = {one: sum(row.get(f"early_{one}", 0) for row in rows) for one in _REMEDIES}
    return [f"{one} ({n}): {_REMEDIES[one]}" for one, n in counts.items() if n]


class Detail(NamedTuple):
    """What a table shows beside the scores; runs that failed or wait always have a column."""

    loose: bool  # The spread of active kernels, the column of failed runs, blanks between columns
    others: bool  # Metrics other than the sweep's
    intervals: bool  # Of the sweep's metric
    all_intervals: bool  # And of the others


_DETAILS = [
    Detail(*map(bool, level))
    for level in ((1, 1, 1, 1), (1, 1, 1, 0), (0, 1, 1, 0), (1, 0, 1, 0), (0, 0, 1, 0), (0,) * 4)
]
"""Levels of detail, the fullest first."""
FULL = _DETAILS[0]


@dataclass(frozen=True, eq=False)
class SummaryTable:
    """The summary of a sweep, as detailed as the width of the console allows."""

    summary: list[Row]
    shown: list[Row]  # its rows to show
    note: str = ""  # first line of the caption

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yield headings, rows and caption."""
        from rich.text import Text

        parts: list[RenderableType] = []
        unbounded = options.update(max_width=ENDLESS)
        for detail in _DETAILS:
            parts = [
                part
                for task in dict.fromkeys(row["task"] for row in self.shown)
                for part in _tables_of([r for r in self.shown if r["task"] == task], task, detail)
            ]
            widths = [console.measure(part, options=unbounded).maximum for part in parts]
            if max(widths) <= options.max_width:
                break
        yield from parts
        words = caption(self.summary, self.shown, selected=bool(self.note))
        if not (detail.others and detail.all_intervals):
            words += "\nA wider terminal shows more scores and intervals."
        yield Text(f"{self.note}\n" * bool(self.note) + words, style="dim")


def results_table(tree: xr.DataTree) -> SummaryTable:
    """Return the results of a sweep for a terminal, at selected settings if the sweep selects."""
    if not is_validated(tree):
        return summary_table(summary_rows([*map(MethodRuns.of, method_nodes(tree))]))
    words = " or ".join(dict.fromkeys(metric_of(node.attrs).words for node in method_nodes(tree)))
    note = f"Settings of best validation {words} in each split, by mkldist.selected."
    rows: list[Row] = selected_summary(tree).to_dict("records")  # type: ignore[assignment]
    return replace(summary_table(rows), note=note)


@without_garbage_collection()
def recorded_table(path: Path, held: Snapshot | None = None) -> SummaryTable:
    """Return :func:`results_table` of an output folder; `held` is what that holds, if known."""
    held = held or Snapshot.of(path)
    methods = held.runs_of_methods()
    validated = any(metric_of(m.attributes).variable("validation") in m.values for m in methods)
    if validated or any(one.n_pooled for one in methods):
        return results_table(held.tree(vectors=False))
    return summary_table(summary_rows(methods))


def summary_table(rows: list[Row], *, row_limit: int = ROW_LIMIT) -> SummaryTable:
    """Return the rows of a summary for a terminal; longer tables show each method at its best.

    That is the row of the smallest loss for each data set, bank and method, of those that lack the
    fewest splits: the mean of a row on fewer splits is one of other points.
    """
    if len(rows) <= row_limit:
        return SummaryTable(rows, rows)
    best: dict[tuple[Any, ...], int] = {}
    losses = [np.inf if is_missing(loss) else loss for loss in map(loss_of, rows)]
    order = [(row["lacking"], loss) for row, loss in zip(rows, losses, strict=True)]
    for number, row in enumerate(rows):
        place = tuple(row[name] for name in _IDENTITY)
        if order[number] < order[best.setdefault(place, number)]:
            best[place] = number
    return SummaryTable(rows, [rows[number] for number in sorted(best.values())])


def _tables_of(shown: list[Row], task: str, detail: Detail) -> Iterator[RenderableType]:
    """Yield headings and the rows of each data set of one task, in columns of equal widths."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    columns = columns_of(shown, task, detail)
    cells = [[words(row) for words, _ in columns.values()] for row in shown]
    left = [key is None for _, key in columns.values()]
    widths = [
        max(len(line) for text in (heading, *column) for line in text.split("\n"))
        for heading, column in zip(columns, zip(*cells, strict=True), strict=True)
    ]

    def padded(text: str, width: int, is_left: bool) -> str:
        lines = text.split("\n")
        return "\n".join(x.ljust(width) if is_left else x.rjust(width) for x in lines)

    def table(*, headings: bool) -> Table:
        found = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=headings,
                      padding=(0, int(detail.loose), 0, 0))  # fmt: skip
        for heading, width, is_left in zip(columns, widths, left, strict=True):
            found.add_column(padded(heading, width, is_left) if headings else "",
                             no_wrap=not is_left, overflow="fold",
                             min_width=width, vertical="bottom" if headings else "top")  # fmt: skip
        return found

    yield table(headings=True)
    several = len({row["bank"] for row in shown}) > 1
    titles = [f"{r['dataset']} · {r['bank']}" if several else str(r["dataset"]) for r in shown]
    for title in dict.fromkeys(titles):
        of_title = table(headings=False)
        for texts, row, of in zip(cells, shown, titles, strict=True):
            if of == title:
                own = [Text(padded(*cell)) for cell in zip(texts, widths, left, strict=True)]
                if row["failed"] or row["waiting"]:
                    own[-1].stylize("bold red")
                of_title.add_row(*own, style="green" if row["best"] else "")
        yield Text(title, style="bold")
        yield of_title
        yield Text()


Column = tuple[Callable[[Row], str], str | None]
"""The words of a row, and the name of the number by which they sort; None for text."""


def columns_of(shown: Sequence[Row], task: str, detail: Detail = FULL) -> dict[str, Column]:
    """Return the columns of a table of results, by their headings."""
    keys = [*shown[0]]
    names = keys[IDENTITY_COLUMNS : keys.index("task")]
    some_runs = detail.loose or any(row["failed"] or row["waiting"] for row in shown)
    early = any(row["early"] for row in shown)

    def setting(row: Row) -> str:
        own = [(name, row[name]) for name in names if not is_missing(row[name])]
        texts = [(n, f"{v:g}" if isinstance(v, float) else str(v)) for n, v in own]
        return " ".join(text if len(names) == 1 else f"{name}={text}" for name, text in texts)

    def active(row: Row) -> str:
        spread = f" ± {row['active_sd']:.1f}" if detail.loose and row["active_sd"] >= 0.0 else ""
        return f"{row['active_mean']:.1f}{spread}"

    def seconds(row: Row) -> str:
        taken = row["seconds_mean"]
        return f"{taken:.{0 if taken >= 100 else 1 if taken >= 10 else 2}f}"

    def proximity(name: str) -> Callable[[Row], str]:
        def words(row: Row) -> str:
            mark = (" !" if row["early"] else "  ") * early  # missed or met the tolerance
            value = row.get(name)
            return (NOTHING if is_missing(value) else f"{value:.1e}" if value else "0") + mark

        return words

    def dashed(name: str, words: Callable[[Row], str]) -> Column:
        return lambda row: NOTHING if is_missing(row[name]) else words(row), name

    def runs(row: Row) -> str:
        return f"{row['failed']}/{row['failed'] + row['complete'] + row['waiting']}"

    left = [name for name in _PROXIMITIES if _known(shown, name)] or ["gap_max"]
    pad = "  " * early
    return {
        "method": (lambda row: f" {row['method']}", None),
        **({names[0] if len(names) == 1 else "parameters": (setting, None)} if names else {}),
        **_scores_of(shown, task, detail),
        "active\nkernels": dashed("active_mean", active),
        "seconds": dashed("seconds_mean", seconds),
        **{_PROXIMITIES[name][0].replace("\n", f"{pad}\n") + pad: (proximity(name), name)
           for name in left},
        **({"failed\nruns": (runs, "failed")} if some_runs else {}),
    }  # fmt: skip


def _scores_of(rows: Sequence[Row], task: str, detail: Detail) -> dict[str, Column]:
    """Return the columns of metrics that any row has: the sweep's, and others of the same part."""
    metric = METRICS[rows[0]["metric"]]
    parts = [part for part in PARTS if _known(rows, f"{metric.variable(part)}_mean")] or ["test"]
    scored = next((part for part in parts if part != "validation"), "test")
    others = [METRICS[name] for name in BESIDE[task] if detail.others]
    found = [(metric, part, detail.intervals and part != "validation") for part in parts]
    found += [
        (other, scored, detail.all_intervals)
        for other in others
        if other is not metric and _known(rows, f"{other.variable(scored)}_mean")
    ]
    columns: dict[str, Column] = {}
    for number, (of, part, interval) in enumerate(found):
        name, alone = of.variable(part), number >= len(parts)

        def score(
            row: Row, name: str = name, of: Metric = of, alone: bool = alone,
            ends: Sequence[str] = ("low", "high") * interval, part: str = part,
        ) -> str:  # fmt: skip
            mean, mark = row.get(f"{name}_mean"), "" if alone else "  "
            if mean is None or is_missing(mean):
                return NOTHING + mark
            if mark and part != "validation" and row.get("no_better"):
                mark = " ~"
            elif mark and row["best"] and name == ranked_by(row):
                mark = " *"
            return of.number(mean, *(row.get(f"{name}_{end}", np.nan) for end in ends)) + mark

        words = (of.words if alone else of.heading(part)) + " %" * (of.unit == "%")
        first, blank, last = words.partition(" ")
        lines = f"{first}\n{last}" if blank and last != "%" else words
        columns[lines + "  [95 %]" * interval] = score, f"{name}_mean"
    return columns
