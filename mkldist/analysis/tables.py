"""Tables of results for a terminal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from mkldist.analysis.summary import loss_of, selected_summary, summary
from mkldist.results.selected import is_validated

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import xarray as xr
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table

ROW_LIMIT = 60
_ENDLESS = 10_000
_MEASURES = frozenset(
    ("complete", "failed", "waiting", "early", "test_error_mean", "test_error_sd",
     "unlabelled_error_mean", "unlabelled_error_sd", "rmse_mean", "rmse_sd", "r2_mean", "r2_sd",
     "active_mean", "active_sd", "seconds_mean", "seconds_sd", "gap_max", "task", "best")
)  # fmt: skip
_IDENTITY = ("dataset", "bank", "method")
_ERRORS = {"test_error": "test error %", "unlabelled_error": "unlabelled\nerror %"}
_MISSED, _MET = " !", "  "  # marks of runs that missed or met their tolerance
_NOTHING = "–"  # noqa: RUF001, the dash that stands for a missing number


@dataclass(frozen=True)
class _Detail:
    """Columns and spreads that a table shows beside the scores.

    Parameters
    ----------
    spread : bool
        Show the standard deviation of the numbers of active kernels.
    runs : bool
        Show how many runs failed.
    gaps : bool
        Leave a blank between columns.
    """

    spread: bool = True
    runs: bool = True
    gaps: bool = True


def _details(summary: pd.DataFrame) -> Iterator[_Detail]:
    """Yield levels of detail, the fullest first.  Failed or waiting runs always have a column."""
    clean = not summary["failed"].any() and not summary["waiting"].any()
    for spread, runs in ((True, True), (False, True), (False, False)):
        if runs or clean:
            yield _Detail(spread, runs)
            yield _Detail(spread, runs, gaps=False)


@dataclass(frozen=True, eq=False)
class SummaryTable:
    """The summary of a sweep, as detailed as the width of the console allows.

    Parameters
    ----------
    summary : pandas.DataFrame
        As :func:`mkldist.analysis.summary.summary` returns it.
    shown : pandas.DataFrame
        The rows to show.
    note : str
        First line of the caption.
    """

    summary: pd.DataFrame
    shown: pd.DataFrame
    note: str = ""

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yield headings, rows and caption."""
        from rich.text import Text

        parts: list[RenderableType] = []
        unbounded = options.update(max_width=_ENDLESS)
        for detail in _details(self.summary):
            parts = list(self._parts(detail))
            widths = [console.measure(part, options=unbounded).maximum for part in parts]
            if max(widths) <= options.max_width:
                break
        yield from parts
        note = f"{self.note}\n" * bool(self.note)
        yield Text(note + _caption(self.summary, self.shown, detail), style="dim")

    def _parts(self, detail: _Detail) -> Iterator[RenderableType]:
        columns = self.summary.columns
        names = [str(n) for n in columns if n not in _MEASURES and n not in _IDENTITY]
        for task in dict.fromkeys(self.shown["task"]):
            yield from _tables_of(self.shown[self.shown["task"] == task], task, names, detail)


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
    )


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
    shown = summary if len(summary) <= row_limit else _best_of_each(summary)
    return SummaryTable(summary, shown)


def _tables_of(
    shown: pd.DataFrame, task: str, names: list[str], detail: _Detail
) -> list[RenderableType]:
    """Return headings and the rows of each data set of one task."""
    from rich.text import Text

    errors = _errors_of(shown)
    scores = ("RMSE", "R²") if task == "regression" else tuple(_ERRORS[name] for name in errors)
    early = bool(shown["early"].any())
    gap = "largest  \ngap  " if early else "largest\ngap"
    measures = [*scores, "active\nkernels", "seconds", gap, *(["failed\nruns"] * detail.runs)]
    headings = ["method", *_hyperparameter_heading(names), *measures]
    rows = [_cells(row, names, errors, detail, early=early) for row in shown.to_dict("records")]
    # Equal widths in every cell of a column give the tables of all data sets the same columns.
    widths = [max(map(_width, column)) for column in zip(headings, *rows, strict=True)]
    n_left = len(headings) - len(measures)
    parts: list[RenderableType] = [_table(headings, [], widths, n_left, detail)]
    several = shown["bank"].nunique() > 1
    marked = list(zip(rows, shown["best"], strict=True))
    titles = [
        f"{dataset} · {bank}" if several else str(dataset)
        for dataset, bank in zip(shown["dataset"], shown["bank"], strict=True)
    ]
    for title in dict.fromkeys(titles):
        own = [row for row, of in zip(marked, titles, strict=True) if of == title]
        parts += [Text(title, style="bold"), _table(None, own, widths, n_left, detail), Text()]
    return parts


def _errors_of(summary: pd.DataFrame) -> list[str]:
    """Return the errors that any row has, or else the test error."""
    return [n for n in _ERRORS if summary[f"{n}_mean"].notna().any()] or ["test_error"]


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


def _best_of_each(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the row of the smallest loss for each data set, bank and method."""
    errors = loss_of(summary).fillna(float("inf"))
    chosen = errors.groupby([summary[name] for name in _IDENTITY], sort=False).idxmin()
    return summary.loc[sorted(chosen)]


def _cells(
    row: dict[Any, Any], names: list[str], errors: Sequence[str], detail: _Detail, *, early: bool
) -> list[str]:
    failed = int(row["failed"])
    runs = failed + int(row["complete"]) + int(row["waiting"])
    return [
        f" {row['method']}",
        *([_parameters(row, names)] if names else []),
        *_scores(row, errors),
        _mean_sd(row["active_mean"], row["active_sd"] if detail.spread else float("nan"), 1),
        _seconds(row["seconds_mean"]),
        _gap(row["gap_max"]) + (_MISSED if row["early"] else _MET if early else ""),
        *([f"{failed}/{runs}"] * detail.runs),
    ]


def _scores(row: dict[Any, Any], errors: Sequence[str]) -> list[str]:
    mark = " *" if row["best"] else "  "
    if row["task"] == "regression":
        rmse, r2 = row["rmse_mean"], row["r2_mean"]
        spread = "" if pd.isna(row["rmse_sd"]) else f" ± {_digits(row['rmse_sd'], 2)}"
        shown = _NOTHING if pd.isna(rmse) else f"{_digits(rmse, 4)}{spread}"
        return [shown + mark, _NOTHING if pd.isna(r2) else f"{r2:.3f}"]
    cells = [_mean_sd(100 * row[f"{n}_mean"], 100 * row[f"{n}_sd"], 2) for n in errors]
    ranking = 1 if len(errors) > 1 and pd.isna(row["test_error_mean"]) else 0
    cells[ranking] += mark
    return [cell if n == ranking else f"{cell}  " for n, cell in enumerate(cells)]


def _digits(number: float, digits: int) -> str:
    """Return a number with this many significant digits, trailing zeros included."""
    return f"{number:#.{digits}g}".rstrip(".")


def _parameters(row: dict[Any, Any], names: list[str]) -> str:
    """Return names and values of the hyperparameters of the row's method."""
    given = [(name, row[name]) for name in names if not pd.isna(row[name])]
    if len(names) == 1:
        return "".join(_value(value) for _, value in given)
    return " ".join(f"{name}={_value(value)}" for name, value in given)


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _mean_sd(mean: float, sd: float, digits: int) -> str:
    if pd.isna(mean):
        return _NOTHING
    return f"{mean:.{digits}f}" + ("" if pd.isna(sd) else f" ± {sd:.{digits}f}")


def _seconds(seconds: float) -> str:
    if pd.isna(seconds):
        return _NOTHING
    if seconds >= 100:
        return f"{seconds:.0f}"
    return f"{seconds:.1f}" if seconds >= 10 else f"{seconds:.2f}"


def _gap(gap: float) -> str:
    if pd.isna(gap):
        return _NOTHING
    return f"{gap:.1e}" if gap else "0"


def _loss(row: dict[Any, Any]) -> str:
    """Return the name of the loss of a row."""
    if row["task"] == "regression":
        return "RMSE"
    without_test = pd.isna(row["test_error_mean"]) and not pd.isna(row["unlabelled_error_mean"])
    return "unlabelled error" if without_test else "test error"


def _caption(summary: pd.DataFrame, shown: pd.DataFrame, detail: _Detail) -> str:
    """Return lines that explain the numbers and name what is left out."""
    lowest = " or ".join(dict.fromkeys(map(_loss, summary.to_dict("records"))))
    lines = [
        f"Mean ± sd over splits; * lowest mean {lowest} of its data set.",
        "Active kernels have a weight above 0.001. Seconds: own time and share of passes.",
        "Largest gap: the relative duality gap of the run furthest from proven optimal.",
    ]
    early = int(summary["early"].sum())
    if early:
        lines.append(f"! {early} runs stopped before their tolerance; stop_reason says why.")
    if not detail.runs:
        lines.append(f"All {int(summary['complete'].sum())} runs ended; none failed.")
    if len(shown) < len(summary):
        lines.append(f"Each method where its mean {lowest} is lowest, of {len(summary)} rows.")
    waiting = int(summary["waiting"].sum())
    if waiting:
        lines.append(f"{waiting} runs have no outcome yet.")
    return "\n".join(lines)
