"""Tables of results for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from mkldist.analysis.summary import loss_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Group, RenderableType
    from rich.table import Table

ROW_LIMIT = 60
USUAL_WIDTH = 80
_MEASURES = frozenset(
    ("complete", "failed", "waiting", "early", "test_error_mean", "test_error_sd",
     "unlabelled_error_mean", "unlabelled_error_sd", "rmse_mean", "rmse_sd", "r2_mean", "r2_sd",
     "active_mean", "active_sd", "seconds_mean", "seconds_sd", "gap_max", "task", "best")
)  # fmt: skip
_IDENTITY = ("dataset", "bank", "method")
_ERRORS = {"test_error": "test error %", "unlabelled_error": "unlabelled\nerror %"}
_HEADINGS = ("active\nkernels", "seconds", "largest\ngap", "failed\nruns")
_NOTHING = "–"  # noqa: RUF001, the dash that stands for a missing number


def summary_table(summary: pd.DataFrame, *, row_limit: int = ROW_LIMIT) -> Group:
    """Return the summary of a sweep for a terminal of 80 columns or more.

    Data sets of classification and of regression have headings of their own.

    Parameters
    ----------
    summary : pandas.DataFrame
        As :func:`mkldist.analysis.summary.summary` returns it.
    row_limit : int, optional
        A longer table shows each method only at its best value on each data set and bank.

    Returns
    -------
    rich.console.Group
        To be printed by a :class:`rich.console.Console`.
    """
    from rich.console import Group
    from rich.text import Text

    shown = summary if len(summary) <= row_limit else _best_of_each(summary)
    names = [str(n) for n in summary.columns if n not in _MEASURES and n not in _IDENTITY]
    parts: list[RenderableType] = []
    for task in dict.fromkeys(shown["task"]):
        parts += _tables_of(shown[shown["task"] == task], task, names)
    return Group(*parts, Text(_caption(summary, shown), style="dim"))


def _tables_of(shown: pd.DataFrame, task: str, names: list[str]) -> list[RenderableType]:
    """Return headings and the rows of each data set of one task."""
    from rich.text import Text

    errors = _errors_of(shown)
    scores = ("RMSE", "R²") if task == "regression" else tuple(_ERRORS[name] for name in errors)
    measures = [*scores, *_HEADINGS]
    headings = ["method", *_hyperparameter_heading(names), *measures]
    rows = [_cells(row, names, errors) for row in shown.to_dict("records")]
    # Equal widths in every cell of a column give the tables of all data sets the same columns.
    widths = [max(map(_width, column)) for column in zip(headings, *rows, strict=True)]
    n_left = len(headings) - len(measures)
    parts: list[RenderableType] = [_table(headings, [], widths, n_left)]
    several = shown["bank"].nunique() > 1
    marked = list(zip(rows, shown["best"], strict=True))
    titles = [
        f"{dataset} · {bank}" if several else str(dataset)
        for dataset, bank in zip(shown["dataset"], shown["bank"], strict=True)
    ]
    for title in dict.fromkeys(titles):
        own = [row for row, of in zip(marked, titles, strict=True) if of == title]
        parts += [Text(title, style="bold"), _table(None, own, widths, n_left), Text()]
    return parts


def _errors_of(summary: pd.DataFrame) -> list[str]:
    """Return the errors that some row of classification has; the test error if none has any."""
    return [n for n in _ERRORS if summary[f"{n}_mean"].notna().any()] or ["test_error"]


def _table(
    headings: Sequence[str] | None,
    rows: Sequence[tuple[list[str], bool]],
    widths: Sequence[int],
    n_left: int,
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
        padding=(0, 1 if sum(widths) + 2 * len(widths) <= USUAL_WIDTH else 0, 0, 0),
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
        if not cells[-1].startswith("0/"):
            texts[-1].stylize("bold red")
        table.add_row(*texts, style="green" if best else "")
    return table


def _hyperparameter_heading(names: Sequence[str]) -> list[str]:
    """Return the heading of the column of hyperparameters; none when no method has any."""
    if not names:
        return []
    return [names[0] if len(names) == 1 else "parameters"]


def _width(cell: str) -> int:
    return max(map(len, cell.split("\n")))


def _best_of_each(summary: pd.DataFrame) -> pd.DataFrame:
    """Return the row of the smallest loss of each method and bank."""
    errors = loss_of(summary).fillna(float("inf"))
    chosen = errors.groupby([summary[name] for name in _IDENTITY], sort=False).idxmin()
    return summary.loc[sorted(chosen)]


def _cells(row: dict[Any, Any], names: list[str], errors: Sequence[str]) -> list[str]:
    failed = int(row["failed"])
    runs = failed + int(row["complete"]) + int(row["waiting"])
    return [
        f" {row['method']}",
        *([_parameters(row, names)] if names else []),
        *_scores(row, errors),
        _mean_sd(row["active_mean"], row["active_sd"], 1),
        _seconds(row["seconds_mean"]),
        _gap(row["gap_max"]) + ("!" if row["early"] else ""),
        f"{failed}/{runs}",
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
    """Return a number with some significant digits, zeros among them."""
    return f"{number:#.{digits}g}".rstrip(".")


def _parameters(row: dict[Any, Any], names: list[str]) -> str:
    """Return the values of the hyperparameters that the row's method has; words need no name."""
    given = [(name, row[name]) for name in names if not pd.isna(row[name])]
    if len(names) == 1:
        return "".join(_value(value) for _, value in given)
    return " ".join(v if isinstance(v, str) else f"{name}={_value(v)}" for name, v in given)


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
    """Return the name of what is to be small in a row."""
    if row["task"] == "regression":
        return "RMSE"
    without_test = pd.isna(row["test_error_mean"]) and not pd.isna(row["unlabelled_error_mean"])
    return "unlabelled error" if without_test else "test error"


def _caption(summary: pd.DataFrame, shown: pd.DataFrame) -> str:
    """Return what the numbers mean, and what is not shown."""
    lowest = " or ".join(dict.fromkeys(map(_loss, summary.to_dict("records"))))
    lines = [
        f"Mean ± sd over splits; * lowest mean {lowest} of its data set.",
        "Seconds: own time and share of the passes. Gap: certified, relative.",
    ]
    early = int(summary["early"].sum())
    if early:
        lines.append(f"! {early} runs stopped before their tolerance; see stop_reason.")
    if len(shown) < len(summary):
        lines.append(f"Each method where its mean {lowest} is lowest, of {len(summary)} rows.")
    waiting = int(summary["waiting"].sum())
    if waiting:
        lines.append(f"{waiting} runs have no outcome yet.")
    return "\n".join(lines)
