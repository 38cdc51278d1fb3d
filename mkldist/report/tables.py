"""Tables of the report: data, and rows of cells with a text to read and a number to sort by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from mkldist.analysis.comparison import Chosen
from mkldist.analysis.explanation import LEVELS, Explanation
from mkldist.analysis.losses import SIGNIFICANCE, RanksOverDataSets
from mkldist.analysis.statistics import Interval
from mkldist.analysis.summary import columns_of, is_missing, loss_of
from mkldist.core.durable import write_file
from mkldist.core.metrics import METRICS, NOTHING, p_value_text
from mkldist.core.terminal import plain_table
from mkldist.report.sentences import (
    SHOWN_LEVELS,
    Facts,
    captions,
    difference,
    name_of,
    others_words,
    percent,
    records,
    slug,
    value_text,
    worse,
)
from mkldist.results.rows import method_nodes, place_of, selected, settings_of
from mkldist.results.schema import CLASS, PREDICTED, SPLIT, RunState
from mkldist.solvers.progress import STATIONARITY, StopReason

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST_COUNTS = 12  # classes that a cell names
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

    name: str  # of the element, and of the file of the data
    data: pd.DataFrame  # a row for each row to read, whose numbers are numbers
    columns: Mapping[str, Callable[[Row], Cell]]  # what makes the cell of a row, by heading
    marked: Callable[[Row], bool] = lambda row: False  # whether a row stands out
    caption: str = ""
    section: str = ""  # heading of a column whose texts stand above their rows in a terminal

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

    def for_terminal(self) -> RenderableType:
        """Return headings and rows for a terminal; an asterisk follows the marked rows."""
        from rich.text import Text

        texts = pd.DataFrame([[cell.text for cell in cells] for cells in self.rows],
                             columns=self.headings)  # fmt: skip
        sections = texts.pop(self.section) if self.section else None
        marks = [" *" if mark else "  " * any(self.marks) for mark in self.marks]
        texts.iloc[:, -1] += marks
        headings = [
            "\n".join(wrap(heading, max(map(len, (*heading.split(), *texts[heading])))))
            for heading in map(str, texts)
        ]
        numeric = [self.numeric[self.headings.index(heading)] for heading in texts]
        left = numeric.index(True) if True in numeric else len(numeric)
        table = plain_table(headings, left=left, overflow="fold")
        for column in table.columns[left:] if self.section else table.columns[:left]:
            column.no_wrap = True  # numbers fold before names do, unless names are many
        for place, row in enumerate(texts.itertuples(index=False)):
            if sections is not None and (place == 0 or sections[place] != sections[place - 1]):
                table.add_row(Text(sections[place], "bold"))
            table.add_row(*(Text(" " * (sections is not None) + row[0]), *row[1:]))
        return table

    def file(self, folder: Path) -> Path:
        """Return the file in a folder that :meth:`write` writes."""
        return folder / f"{self.name}.csv"

    def write(self, folder: Path) -> None:
        """Write the data, without empty columns, to ``NAME.csv`` in a folder, which is there."""
        known = self.data.dropna(axis="columns", how="all")
        write_file(self.file(folder), [known.to_csv(index=False).encode()])


# Makers of cells.


def text(name: str) -> Callable[[Row], Cell]:
    """Return what makes the cell of a text."""
    return lambda row: Cell(str(row[name]))


def keyed(name: str, words: Callable[[Row], str]) -> Callable[[Row], Cell]:
    """Return what makes a cell of words that sorts by a column; a dash where that is missing."""

    def cell(row: Row) -> Cell:
        value = row.get(name)
        return Cell(NOTHING) if is_missing(value) else Cell(words(row), float(value or 0))

    return cell


def numbers(name: str, form: str = "{:,}") -> Callable[[Row], Cell]:
    """Return what makes the cell of a number in a format; a dash for NaN."""
    return keyed(name, lambda row: form.format(row[name]) if row[name] else "0")


def p_values(name: str) -> Callable[[Row], Cell]:
    """Return what makes the cell of a p-value."""
    return keyed(name, lambda row: p_value_text(row[name]))


def with_ends(
    name: str, form: Callable[[Row], Callable[[float], str]], low: str, high: str
) -> Callable[[Row], Cell]:
    """Return what makes the cell of a number with its interval, if the ends are known."""

    def words(row: Row) -> str:
        shown = form(row)
        ends = f" [{shown(row[low])}, {shown(row[high])}]" if not is_missing(row[low]) else ""
        return shown(row[name]) + ends

    return keyed(name, words)


def settings(names: Iterable[str]) -> dict[str, Callable[[Row], Cell]]:
    """Return the columns of hyperparameters, empty where a method has none of a name."""

    def cell(name: str) -> Callable[[Row], Cell]:
        def made(row: Row) -> Cell:
            value = row.get(name)
            if is_missing(value):
                return Cell("")
            return Cell(value_text(value), value if isinstance(value, int | float) else None)

        return made

    return {name: cell(name) for name in names}


def identity(data: pd.DataFrame) -> dict[str, Callable[[Row], Cell]]:
    """Return the columns that tell a method's row from the others, of those that differ."""
    names = [n for n in ("dataset", "bank") if n in data and data[n].nunique() > 1]
    return {name: text(name) for name in (*names, "method")}


def _proximities(rows: pd.DataFrame, gap: str, stationarity: str) -> dict[str, Any]:
    """Return the columns that say what is left to gain: the gap, and others that are known."""
    words = {gap: "largest gap", f"exact_{gap}": "largest exact gap",
             stationarity: "largest stationarity"}  # fmt: skip
    known = [name for name in words if name in rows and (name == gap or rows[name].notna().any())]
    return {words[name]: numbers(name, "{:.1e}") for name in known}


# The tables.


def answers_table(answers: pd.DataFrame) -> Table:
    """Return the best method of each data set, with its interval, beside constant and next."""
    columns = {
        "dataset": text("dataset"),
        "best": text("name"),
        "score": keyed("mean", lambda row: METRICS[row["metric"]].text(
            *(row[end] for end in ("mean", "low", "high")))),
        "metric": lambda row: Cell(METRICS[row["metric"]].words),
        "setting": text("setting"),
        "constant": keyed("constant", lambda row: METRICS[row["metric"]].text(row["constant"])),
        "next": text("second"),
        "difference": keyed("difference", difference),
        "p (Holm)": p_values("p_holm"),
    }  # fmt: skip
    known = answers if "second" in answers else answers.assign(second=NOTHING)
    return Table(
        "answers", known.fillna({"second": NOTHING}), columns, lambda row: not row["no_better"],
        "Scores of the best method and of the best constant prediction, and differences from the "
        "next method, with 95 % intervals. Rows where a test finds a gain on the constant are "
        "marked.",
    )  # fmt: skip


def data_table(facts: Facts) -> Table:
    """Return what each data set holds; columns that none has are left out."""
    data = pd.DataFrame([{"dataset": name, **_flat(of)} for name, of in facts.data.items()])
    headings = {"missing": "missing cells", "groups": "groups of rows"}
    order = ("dataset", "rows", "features", "classes", "missing", "views", "groups", "weights")
    columns = {
        headings.get(name, name): numbers(name) if is_numeric_dtype(data[name]) else text(name)
        for name in order
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
    classes = classes[:MOST_COUNTS] + [f"{left} more"] * (left > 0)
    texts = {"classes": ", ".join(classes), "views": ", ".join(views)}
    others = {
        key: value for key, value in found.items() if key not in (*texts, "matrices", "kernels")
    }
    return others | {key: words for key, words in texts.items() if words}


def confusion_table(side: Chosen) -> Table | None:
    """Return the test rows of each class by predicted class, of all splits; None without any."""
    runs, dataset, method = side.data, side.place["dataset"], side.place["method"]
    name = next((one for one in ("confusion", "unlabelled_confusion") if one in runs), None)
    if name is None:
        return None
    counts = runs[name].sum(SPLIT).transpose(CLASS, PREDICTED).to_numpy()
    classes = [str(one) for one in runs[CLASS].to_numpy().tolist()]
    predicted, recall = [f"predicted {one}" for one in classes], "of these right"
    data = pd.DataFrame(counts.astype(int), columns=predicted)
    data.insert(0, "class", classes)
    data[recall] = np.diagonal(counts) / np.maximum(counts.sum(axis=1), 1)
    columns = {
        "class": text("class"),
        **{one: numbers(one) for one in predicted},
        recall: keyed(recall, lambda row: f"{100 * row[recall]:.1f} %"),
    }
    caption = f"Scored rows by class and prediction, {method} on {dataset}, summed over the splits."
    return Table(f"confusion-{slug(dataset)}", data, columns, caption=caption)


def explanation_table(found: Sequence[Explanation]) -> Table:
    """Return the rows that matter of the best method on each data set."""
    tables = []
    for one in found:
        rows = one.table.assign(dataset=one.dataset, method=one.method, n_splits=one.n_splits)
        for level in SHOWN_LEVELS:
            (matter, others), same = one.shown(level), one.of(level)
            own = rows[[any(share is other for other in matter) for share in one.shares]]
            left = f", {others_words(others)}" if others and level != "kernel" else ""
            names = [name_of(share, same) for share in matter]
            tables.append(own.assign(set=f"{LEVELS[level]}{left}", shown=names))
    metrics = {one.dataset: one.metric for one in found}

    def interval(name: str, words: Callable[[Interval, Row], str]) -> Callable[[Row], Cell]:
        ends = (name, f"{name}_low", f"{name}_high")
        return keyed(name, lambda row: words(Interval(*(row[end] for end in ends)), row))

    data = pd.concat(tables, ignore_index=True)
    columns: dict[str, Callable[[Row], Cell]] = {
        **({"data set": text("dataset"), "method": text("method")} if len(found) > 1 else {}),
        "set": text("set"),
        "name": text("shown"),
        "decision %": interval("decision", lambda own, _: percent(own)),
        "weights %": interval("weight", lambda own, _: percent(own)),
        "left out": interval("left_out", lambda own, row: worse(own, metrics[row["dataset"]])),
        "active": keyed(
            "selected", lambda row: f"{row['selected'] * row['n_splits']:.0f}/{row['n_splits']}"
        ),
        **({"p": p_values("p_value")} if any(one.n_permutations for one in found) else {}),
    }
    return Table("explanation", data, columns, caption=" ".join(captions(found[0])), section="set")


def results_tables(facts: Facts) -> list[Table]:
    """Return a row for each data set, bank, method and setting, the best first, by task."""
    order = {name: place for place, name in enumerate(facts.datasets)}
    losses = [(order[row["dataset"]], loss_of(row)) for row in records(facts.summary)]
    ranks = pd.DataFrame(losses, columns=["dataset", "loss"], index=facts.summary.index)
    ordered = ranks.sort_values(["dataset", "loss"], kind="stable").index
    summary, tables = facts.summary.loc[ordered], []
    chosen = "inner folds" if facts.validated else "test parts"
    caption = (
        "Means over the splits, with 95 % intervals in brackets. Of each data set, the rows of the "
        f"best mean on the {chosen} have an asterisk, of those that lack no split and beat a "
        "constant answer; ~ is no better than that, such as always the majority, by a one-sided "
        "test of each row alone. Kernels are those of more than 0.001 of the largest weight; ± is "
        "one standard deviation; ! follows a gap where runs stopped before their tolerance."
    )
    for task in summary["task"].unique():
        rows = summary[summary["task"] == task].reset_index(drop=True)
        found = columns_of(records(rows), task)
        del found["method"]  # which tells rows apart, as data set and bank do
        columns = {
            " ".join(heading.split()): _sorted(words, key)
            for heading, (words, key) in sorted(found.items(), key=lambda one: one[1][1] is None)
        }
        name = "results" if task == summary["task"].iloc[0] else f"results-{task}"
        columns = {**identity(rows), **columns}
        tables.append(Table(name, rows, columns, lambda row: row["best"], caption))
    return tables


def _sorted(words: Callable[[Row], str], key: str | None) -> Callable[[Row], Cell]:
    """Return what makes a cell of words, which sorts by a number or as text."""
    return keyed(key, words) if key else lambda row: Cell(words(row).strip())


def certificates_table(facts: Facts) -> Table:
    """Return how many runs of each method reached their tolerance."""
    runs = facts.runs
    complete = runs["state"] == RunState.COMPLETE.value
    met = complete & (runs["stop_reason"] == StopReason.CONVERGED.value)
    counts = runs.assign(
        runs=1, complete=complete, met=met, early=complete & ~met,
        failed=runs["state"] == RunState.FAILED.value,
    )  # fmt: skip
    left = [name for name in ("gap", "exact_gap", STATIONARITY) if name in runs]
    counts[left] = runs[left].where(complete)
    groups = counts.groupby(["dataset", "method"], sort=False)
    numbers_of = ["runs", "complete", "met", "early", "failed"]
    data = groups[numbers_of].sum().join(groups[left].max()).reset_index()
    columns = {
        **identity(data),
        "complete": keyed("complete", lambda row: f"{row['complete']} of {row['runs']}"),
        "reached tol": numbers("met"),
        "stopped before": numbers("early"),
        "failed": numbers("failed"),
        **_proximities(data, "gap", STATIONARITY),
    }
    return Table(
        "certificates", data, columns, lambda row: row["early"] > 0 or row["failed"] > 0,
        "Each run returns its objective and a lower bound of the optimum; their relative distance "
        "is the duality gap. Where the problem is not convex, a stationarity takes its place. Rows "
        "with runs that failed or stopped before their tolerance are marked.",
    )  # fmt: skip


def pairs_table(pairs: pd.DataFrame) -> Table:
    """Return the comparison of every two methods on each data set."""
    columns = {
        **({"dataset": text("dataset")} if pairs["dataset"].nunique() > 1 else {}),
        "pair": _pair,
        "mean difference": numbers("difference", "{:+.4f}"),
        "splits": numbers("n_splits"),
        "p": p_values("p_value"),
        "p (Holm)": p_values("p_holm"),
        "P(first better)": numbers("first_better", "{:.2f}"),
        "P(equivalent)": numbers("equivalent", "{:.2f}"),
        "P(second better)": numbers("second_better", "{:.2f}"),
    }
    return Table(
        "pairs", pairs, columns, _differs,
        "Training parts overlap, so plain t-tests are too sure of themselves. The p-values are of "
        "the corrected resampled t-test (Nadeau & Bengio 2003), with Holm's correction over the "
        "pairs of a data set; the probabilities are of the Bayesian correlated t-test with a "
        "region of practical equivalence of 0.01 of an error, or 1 % of another loss (Benavoli et "
        "al. 2017). A pair of equal differences on all splits has no test. Marked pairs differ at "
        f"the level {SIGNIFICANCE}.",
    )  # fmt: skip


def over_table(over: RanksOverDataSets) -> Table:
    """Return the comparison of every two methods over the data sets."""
    columns = {
        "pair": _pair,
        "median difference": numbers("median_difference", "{:+.4f}"),
        "p": p_values("p_value"),
        "p (Holm)": p_values("p_holm"),
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
        **identity(stability),
        "kernels selected": numbers("selected_mean", "{:.1f}"),
        "in every split": keyed("always", lambda row: f"{row['always']} of {row['n_kernels']}"),
        "stability (95 %)": with_ends(
            "stability", lambda _: lambda value: f"{min(value, 1.0):.2f}",
            "stability_low", "stability_high"),
    }  # fmt: skip
    return Table(
        "stability", stability, columns,
        caption="At each method's chosen setting. Stability is 1 if all splits select the same "
        "kernels and 0 if they agree as by chance (Nogueira et al. 2018).",
    )  # fmt: skip


def chosen_table(facts: Facts) -> Table | None:
    """Return the setting of each split that validation selected; None without a selection."""
    if not facts.validated:
        return None
    found: list[Row] = []
    names_of = {tuple(place.values()): settings_of(node) for place, node in facts.nodes}
    for node in method_nodes(selected(facts.tree)):
        place = place_of(node)
        names = [n for n in names_of[tuple(place.values())] if n in node.ds.coords]
        for split in node.ds[SPLIT].to_numpy().tolist():
            run = node.ds.sel({SPLIT: split})
            found.append({**place, "split": split, **{n: run[n].item() for n in names}})
    data = pd.DataFrame(found)
    axes = [str(name) for name in data if name not in ("dataset", "bank", "method", "split")]
    columns = {**identity(data), "split": numbers("split"), **settings(axes)}
    return Table("chosen", data, columns, caption="Settings selected on the inner folds.")


def failures_table(facts: Facts) -> Table:
    """Return the failed runs with their reasons."""
    data = pd.DataFrame(
        [
            {
                "run": run.node.strip("/"),
                "split": run.split,
                "setting": ", ".join(f"{n} = {value_text(v)}" for n, v in run.params.items()),
                "reason": run.error,
            }
            for run in facts.status.failed
        ]
    )
    columns = {name: text(name) for name in ("run", "split", "setting", "reason")}
    columns["split"] = numbers("split")
    caption = "The command below repeats them; give it the same options as before, such as --set."
    return Table("failed", data, columns, caption=caption)
