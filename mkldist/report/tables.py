"""Tables of the report: data, and rows of cells with a text to read and a number to sort by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from mkldist.analysis.losses import SIGNIFICANCE, RanksOverDataSets
from mkldist.analysis.pairing import Chosen
from mkldist.analysis.summary import loss_of
from mkldist.core.durable import write_file
from mkldist.core.metrics import (
    BESIDE,
    METRICS,
    NOTHING,
    PARTS,
    metric_of_variable,
    p_value_text,
    part_of_variable,
)
from mkldist.report.charts import slug
from mkldist.report.facts import Facts, records
from mkldist.results.rows import hyperparameters, method_nodes, place_of, selected, settings_of
from mkldist.results.schema import CLASS, PREDICTED, SPLIT, RunState
from mkldist.solvers.progress import STATIONARITY, StopReason

MOST_COUNTS = 12  # classes that a cell names
CONFUSIONS = ("confusion", "unlabelled_confusion")
RECALL = "of these right"
MINUS = "\u2212"  # the sign of a difference
MOST_ROWS = 500  # of a table, in the page
Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A text, and the number by which its column sorts; None to sort by the text."""

    text: str
    key: float | None = None


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to read, and the data that they show."""

    name: str  # Name of the element, and of the file of the data
    data: pd.DataFrame  # A row for each row to read, whose numbers are numbers
    # For each heading, the function that makes a cell of a row of `data`
    columns: Mapping[str, Callable[[Row], Cell]]
    # Function that tells of a row of `data` if it stands out
    marked: Callable[[Row], bool] = lambda row: False
    caption: str = ""  # What a reader needs to know of the columns

    @property
    def headings(self) -> tuple[str, ...]:
        """One for each column."""
        return tuple(self.columns)

    @cached_property
    def rows(self) -> list[list[Cell]]:
        """The rows to read."""
        return [[cell(row) for cell in self.columns.values()] for row in records(self.data)]

    @cached_property
    def marks(self) -> list[bool]:
        """True for each row that stands out."""
        return [bool(self.marked(row)) for row in records(self.data)]

    @cached_property
    def numeric(self) -> tuple[bool, ...]:
        """True for columns of numbers, which align to the right."""
        columns = zip(*self.rows, strict=True)
        return tuple(any(cell.key is not None for cell in column) for column in columns)

    @property
    def shown(self) -> list[int]:
        """Positions of the rows in the page; of too many, the marked ones before others."""
        places = sorted(range(len(self.rows)), key=lambda place: not self.marks[place])
        return sorted(places[:MOST_ROWS])

    def write(self, folder: Path) -> None:
        """Write the data, without empty columns, to ``NAME.csv`` in a folder, which is there."""
        known = self.data.dropna(axis="columns", how="all")
        write_file(self.file(folder), [known.to_csv(index=False).encode()])

    def file(self, folder: Path) -> Path:
        """Return the file in a folder that :meth:`write` writes."""
        return folder / f"{self.name}.csv"


def identity_columns(data: pd.DataFrame) -> dict[str, Callable[[Row], Cell]]:
    """Return the columns that tell a method's row from the others, of those that differ."""
    names = [name for name in ("dataset", "bank") if data[name].nunique() > 1]
    return {name: text(name) for name in (*names, "method")}


def text(name: str) -> Callable[[Row], Cell]:
    """Return a function that makes the cell of a text."""
    return lambda row: Cell(str(row[name]))


def numbers(name: str, form: str = "{:,}") -> Callable[[Row], Cell]:
    """Return a function that makes the cell of a number in a format."""
    return lambda row: number(row[name], form)


def number(value: float, form: str) -> Cell:
    """Return the cell of a number in a format, such as ``"{:.2f}"``; a dash for NaN."""
    if value is None or np.isnan(value):
        return Cell(NOTHING)
    return Cell(form.format(value) if value else "0", float(value))


def p_value(value: float) -> Cell:
    """Return the cell of a p-value, see :func:`mkldist.analysis.summary.p_value_text`."""
    return Cell(p_value_text(value), None if np.isnan(value) else float(value))


def interval(mean: float, low: float, high: float) -> Cell:
    """Return the cell of a number and its interval, which is left out where its ends are NaN."""
    if np.isnan(mean):
        return Cell(NOTHING)
    ends = "" if np.isnan(low) else f" [{low:.2f}, {high:.2f}]"
    return Cell(f"{mean:.2f}{ends}", float(mean))


def data_table(facts: Facts) -> Table:
    """Return what each data set holds; columns that none has are left out."""
    data = pd.DataFrame([{"dataset": name, **_flat(of)} for name, of in facts.data.items()])
    headings = {"missing": "missing cells", "groups": "groups of rows"}
    columns = {
        headings.get(name, name): numbers(name) if is_numeric_dtype(data[name]) else text(name)
        for name in (
            "dataset",
            "rows",
            "features",
            "classes",
            "missing",
            "views",
            "groups",
            "weights",
        )
        if name in data
    }
    texts = data.select_dtypes(exclude="number").columns
    return Table("data", data.fillna(dict.fromkeys(texts, "")), columns)


def _flat(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts of a data set with one text for the numbers of classes, and one for views."""
    views = [
        f"{name}: {number:,} {unit}"
        for key, unit in (("views", "features"), ("matrices", "matrices"))
        for name, number in found.get(key, {}).items()
    ]
    classes = [f"{name}: {number:,}" for name, number in found.get("classes", {}).items()]
    left = len(classes) - MOST_COUNTS
    named = classes[:MOST_COUNTS] + [f"{left} more"] * (left > 0)
    texts = {"classes": ", ".join(named), "views": ", ".join(views)}
    others = {key: value for key, value in found.items() if key not in (*texts, "matrices")}
    return others | {key: said for key, said in texts.items() if said}


def confusion_table(side: Chosen) -> Table | None:
    """Return the test rows of each class by predicted class, of all splits; None without any."""
    runs, dataset, method = side.data, side.place["dataset"], side.place["method"]
    name = next((one for one in CONFUSIONS if one in runs), None)
    if name is None:
        return None
    counts = runs[name].sum(SPLIT).transpose(CLASS, PREDICTED).to_numpy()
    classes = [str(one) for one in runs[CLASS].to_numpy().tolist()]
    predicted = [f"predicted {one}" for one in classes]
    data = pd.DataFrame(counts.astype(int), columns=predicted)
    data.insert(0, "class", classes)
    data[RECALL] = np.diagonal(counts) / np.maximum(counts.sum(axis=1), 1)
    columns = {
        "class": text("class"),
        **{one: numbers(one) for one in predicted},
        RECALL: lambda row: Cell(f"{100 * row[RECALL]:.1f} %", row[RECALL]),
    }
    caption = f"Scored rows by class and prediction, {method} on {dataset}, summed over the splits."
    return Table(f"confusion-{slug(dataset)}", data, columns, caption=caption)


def results_table(facts: Facts) -> Table:
    """Return a row for each data set, bank, method and setting, the best first."""
    order = {name: place for place, name in enumerate(facts.datasets)}
    every = [(order[row["dataset"]], loss_of(row)) for row in records(facts.summary)]
    losses = pd.DataFrame(every, columns=["dataset", "loss"], index=facts.summary.index)
    ordered = losses.sort_values(["dataset", "loss"], kind="stable").index
    rows = facts.summary.loc[ordered].reset_index(drop=True)
    axes = list(dict.fromkeys(n for _, node in facts.nodes for n in hyperparameters(node)))
    columns = identity_columns(rows)
    columns |= _scores(rows)
    columns |= {name: _setting(name) for name in axes}
    columns["kernels"] = lambda row: _mean_sd(row["active_mean"], row["active_sd"], digits=1)
    columns["seconds"] = numbers("seconds_mean", "{:.3g}")
    columns |= _proximities(rows, "gap_max", "stationarity_max")
    columns["runs"] = _runs
    chosen = "inner folds" if facts.validated else "test parts"
    constant = (
        " Rows with ~ are no better than the best constant answer, such as always the majority, by "
        "a one-sided test."
    )
    caption = (
        "Means over the splits, with 95 % intervals in brackets. Of each data set, the rows of the "
        f"best mean on the {chosen} are marked, of those that lack no split and beat a constant "
        f"answer.{constant * bool(rows['no_better'].any())} Kernels are those of more than 0.001 "
        "of the largest weight; ± is one standard deviation."
    )
    return Table("results", rows, columns, lambda row: row["best"], caption)


def _scores(rows: pd.DataFrame) -> dict[str, Callable[[Row], Cell]]:
    """Return the columns of the sweep's metrics by part, then of others that readers know."""
    tasks = [task for task in BESIDE if (rows["task"] == task).any()]
    names = [
        METRICS[metric].variable(part) for metric in dict.fromkeys(rows["metric"]) for part in PARTS
    ]
    names += [METRICS[name].variable() for task in tasks for name in BESIDE[task]]
    held = [name for name in dict.fromkeys(names) if f"{name}_mean" in rows]
    return {_heading(n): _score(n) for n in held if rows[f"{n}_mean"].notna().any()}


def _heading(name: str) -> str:
    return metric_of_variable(name).heading(part_of_variable(name))


def _score(name: str) -> Callable[[Row], Cell]:
    """Return the function that makes the cell of a metric, with its interval if it has one."""
    metric = metric_of_variable(name)

    def cell(row: Row) -> Cell:
        mean = float(row[f"{name}_mean"])
        if np.isnan(mean):
            return Cell(NOTHING)
        ends = [float(row.get(f"{name}_{end}", np.nan)) for end in ("low", "high")]
        marked = row["no_better"] and row["metric"] == metric.name
        mark = " ~" * bool(marked and not name.startswith("validation"))
        return Cell(metric.text(mean, *ends) + mark, mean)

    return cell


def certificates_table(facts: Facts) -> Table:
    """Return how many runs of each method reached their tolerance."""
    rows, found = facts.runs, []
    left = [name for name in ("gap", "exact_gap", STATIONARITY) if name in rows]
    for (dataset, method), some in rows.groupby(["dataset", "method"], sort=False):
        complete = some[some["state"] == RunState.COMPLETE.value]
        met = int((complete["stop_reason"] == StopReason.CONVERGED.value).sum())
        found.append(
            {
                "dataset": dataset,
                "bank": "",
                "method": method,
                "runs": len(some),
                "complete": len(complete),
                "met": met,
                "early": len(complete) - met,
                "failed": int((some["state"] == RunState.FAILED.value).sum()),
                **{name: complete[name].max() for name in left},
            }
        )
    data = pd.DataFrame(found, columns=None if found else ["dataset", "bank", "method"])
    columns = {
        **identity_columns(data),
        "complete": lambda row: Cell(f"{row['complete']} of {row['runs']}", row["complete"]),
        "reached tol": numbers("met"),
        "stopped before": numbers("early"),
        "failed": numbers("failed"),
        **_proximities(data, "gap", STATIONARITY),
    }
    caption = (
        "Each run returns its objective and a lower bound of the optimum; their relative distance "
        "is the duality gap. Where the problem is not convex, a stationarity takes its place. Rows "
        "with runs that failed or stopped before their tolerance are marked."
    )
    return Table(
        "certificates",
        data.drop(columns="bank"),
        columns,
        lambda row: row["early"] > 0 or row["failed"] > 0,
        caption,
    )


def _proximities(
    rows: pd.DataFrame, gap: str, stationarity: str
) -> dict[str, Callable[[Row], Cell]]:
    """Return the columns that say what is left to gain: the gap, and others that are known."""
    further = {f"exact_{gap}": "largest exact gap", stationarity: "largest stationarity"}
    known = {name for name in further if name in rows and rows[name].notna().any()}
    named = {gap: "largest gap"} | {name: words for name, words in further.items() if name in known}
    return {words: numbers(name, "{:.1e}") for name, words in named.items()}


def pairs_table(pairs: pd.DataFrame) -> Table:
    """Return the comparison of every two methods on each data set."""
    columns = {
        **({"dataset": text("dataset")} if pairs["dataset"].nunique() > 1 else {}),
        "pair": _pair,
        "mean difference": numbers("difference", "{:+.4f}"),
        "splits": numbers("n_splits"),
        "p": lambda row: p_value(row["p_value"]),
        "p (Holm)": lambda row: p_value(row["p_holm"]),
        "P(first better)": numbers("first_better", "{:.2f}"),
        "P(equivalent)": numbers("equivalent", "{:.2f}"),
        "P(second better)": numbers("second_better", "{:.2f}"),
    }
    caption = (
        "Training parts overlap, so plain t-tests are too sure of themselves. The p-values are of "
        "the corrected resampled t-test (Nadeau & Bengio 2003), with Holm's correction over the "
        "pairs of a data set; the probabilities are of the Bayesian correlated t-test with a "
        "region of practical equivalence of 0.01 of an error, or 1 % of another loss (Benavoli et "
        "al. 2017). A pair of equal differences on all splits has no test. Marked pairs differ at "
        f"the level {SIGNIFICANCE}."
    )
    return Table("pairs", pairs, columns, _differs, caption)


def over_table(over: RanksOverDataSets) -> Table:
    """Return the comparison of every two methods over the data sets."""
    columns = {
        "pair": _pair,
        "median difference": numbers("median_difference", "{:+.4f}"),
        "p": lambda row: p_value(row["p_value"]),
        "p (Holm)": lambda row: p_value(row["p_holm"]),
    }
    caption = (
        f"Over {len(over.losses)} data sets, pairs are compared by Wilcoxon's signed-rank test "
        "with Holm's correction. Fewer than six data sets cannot make it significant."
    )
    if over.left_out:
        caption += f" Left out, for want of a split or a data set: {', '.join(over.left_out)}."
    return Table("over-data-sets", over.pairs, columns, _differs, caption)


def _pair(row: Row) -> Cell:
    return Cell(f"{row['first']} {MINUS} {row['second']}")


def _differs(row: Row) -> bool:
    return bool(row["p_holm"] < SIGNIFICANCE)


def stability_table(stability: pd.DataFrame) -> Table:
    """Return numbers and stability of the kernels that each method selects."""
    columns = {
        **identity_columns(stability),
        "kernels selected": numbers("selected_mean", "{:.1f}"),
        "in every split": lambda row: Cell(f"{row['always']} of {row['n_kernels']}", row["always"]),
        "stability (95 %)": lambda row: interval(
            row["stability"], row["stability_low"], min(row["stability_high"], 1.0)
        ),
    }
    caption = (
        "At each method's chosen setting. Stability is 1 if all splits select the same kernels and "
        "0 if they agree as by chance (Nogueira et al. 2018)."
    )
    return Table("stability", stability, columns, caption=caption)


def chosen_table(facts: Facts) -> Table | None:
    """Return the setting of each split that validation selected; None without a selection."""
    if not facts.validated:
        return None
    found: list[Row] = []
    names_of = {tuple(place.values()): settings_of(node) for place, node in facts.nodes}
    for node in method_nodes(selected(facts.tree)):
        place = place_of(node)
        own = {*names_of[tuple(place.values())]}
        names = [n for n in node.ds.coords if node.ds[n].dims == (SPLIT,) and n in own]
        for split in node.ds[SPLIT].to_numpy().tolist():
            run = node.ds.sel({SPLIT: split})
            found.append({**place, "split": split, **{n: run[n].item() for n in names}})
    data = pd.DataFrame(found)
    axes = [str(name) for name in data if name not in ("dataset", "bank", "method", "split")]
    columns = {
        **identity_columns(data),
        "split": numbers("split"),
        **{name: _setting(name) for name in axes},
    }
    return Table("chosen", data, columns, caption="Settings selected on the inner folds.")


def failures_table(facts: Facts) -> Table:
    """Return the failed runs with their reasons."""
    data = pd.DataFrame(
        [
            {
                "run": run.node.strip("/"),
                "split": run.split,
                "setting": ", ".join(f"{name} = {_plain(v)}" for name, v in run.params.items()),
                "reason": run.error,
            }
            for run in facts.status.failed
        ]
    )
    columns = {name: text(name) for name in ("run", "split", "setting", "reason")}
    columns["split"] = numbers("split")
    caption = "The command below repeats them; give it the same options as before, such as --set."
    return Table("failed", data, columns, caption=caption)


def _setting(name: str) -> Callable[[Row], Cell]:
    """Return a function that makes the cell of a hyperparameter, empty where it is missing."""

    def cell(row: Row) -> Cell:
        value = row.get(name)
        if value is None or (isinstance(value, float) and np.isnan(value)):
            return Cell("")
        is_number = isinstance(value, int | float)
        return Cell(_plain(value), float(value)) if is_number else Cell(str(value))

    return cell


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _mean_sd(mean: float, sd: float, *, percent: bool = False, digits: int = 2) -> Cell:
    if np.isnan(mean):
        return Cell(NOTHING)
    factor = 100.0 if percent else 1.0
    unit = " %" if percent else ""
    spread = "" if np.isnan(sd) else f" ± {factor * sd:.{digits}f}"
    return Cell(f"{factor * mean:.{digits}f}{spread}{unit}", float(mean))


def _runs(row: Row) -> Cell:
    total = row["complete"] + row["failed"] + row["waiting"]
    flags = "".join(f", {row[name]} {name}" for name in ("failed", "waiting", "early") if row[name])
    return Cell(f"{row['complete']}/{total}{flags}", float(row["complete"]))
