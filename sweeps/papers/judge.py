"""Hold results of the papers' sweeps to the numbers and the conclusions of the papers.

    python -m sweeps.papers.judge results/level_table1       # its numbers beside the published ones

The folder ``published`` has the papers' numbers, a CSV file an experiment, ``conclusions.toml``,
texts on numbers that differ, and ``outcomes``: what results said.  Results that repeat an
experiment take hours to compute and gigabytes to keep, and :mod:`sweeps.papers.reproduced`, which
writes the page of all papers, needs little of them: ours of each published number, the figures that
decide each conclusion, and what ran where.  ``docs/explanation/papers.md`` describes the files.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import binomtest, ttest_1samp

import mkldist
from mkldist import analysis
from mkldist.analysis.comparison import Chosen, methods_by_data_set
from mkldist.analysis.comparison import Results as Opened
from mkldist.core.metrics import metric_of_variable
from mkldist.errors import MkldistError
from mkldist.results.schema import STATE, RunState
from mkldist.scores import predicted_classes
from mkldist.spec.load import load_sweep

HERE = Path(__file__).resolve().parent
OUTCOMES, CONCLUSIONS = "outcomes", "conclusions.toml"
CAUSES = ("data", "reading", "selection", "solver", "unknown")
KINDS = ("surrogate", "unstated", "other")
TEXTS = {"explanations.csv": ("cause", CAUSES), "data.csv": ("kind", KINDS)}
NOTHING = "\N{EN DASH}"
NUMBER_COLUMNS = ("experiment", "data set", "method", "setting", "metric", "mean", "sd", "source")
TEXT_COLUMNS = ("experiment", "data set", "method", "metric", "explanation")

LEVEL = 0.05  # of McNemar's test
POINTS, PROCESSOR, CHANGE = "mcnemar_points", "processor_seconds", "weight_change"
OF_PROCESSOR, OF_WALL = ["cpu_seconds", "pass_cpu_seconds"], ["own_seconds", "pass_seconds"]
TIMES = frozenset(("seconds", "wall_seconds", PROCESSOR, *OF_PROCESSOR, *OF_WALL))
GROWING = TIMES | frozenset(
    ("outer_iterations", "svm_solves", "svm_iterations", "newton_steps", "cg_steps", "passes",
     "combines")
)  # fmt: skip
"""What grows as long as a solver works."""
VALIDATION = "validation_error"
EVERY, LEAST = "*", "least"
RELATIONS = ("less", "more", "alike")
SCOPES = ("every", "most", "total", "average", "t-test")
SIGNIFICANCE = 0.05
MARGIN = 1.1  # by which a time must differ from the bound that a conclusion draws
BUSY_MARGIN = 2.0  # the same, of runs that had less than half of a processor
NOT_HELD = "not asked for when the results were read"

Outcome: TypeAlias = dict[str, Any]
"""What the results of a sweep say of published numbers and conclusions, as its file has it."""
Verdict = Literal["reproduced", "not reproduced", "not decided", "not testable"]


# --- what the papers say ---------------------------------------------------------------------


@dataclass(frozen=True)
class Published:
    """A number of a paper, a row of a file; docs/explanation has its columns; `sd` may be NaN."""

    experiment: str
    dataset: str
    method: str
    setting: str
    metric: str
    mean: float
    sd: float
    source: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What names it in an experiment."""
        return self.dataset, self.method, self.setting, self.metric


@dataclass(frozen=True)
class Text:
    """Words on the published numbers that its patterns match, a row of a file.

    `kind` is the cause of a difference, or how data are not the paper's, in one word; `ours` is
    ``"higher"`` or ``"lower"`` where they explain why ours is so.
    """

    experiment: str
    dataset: str
    method: str
    metric: str
    words: str
    kind: str
    ours: str = ""

    def covers(self, number: Published, mean: float = math.nan) -> bool:
        """Return True if it is about a published number, and the direction of our mean if given."""
        opposite = {"higher": mean < number.mean, "lower": mean > number.mean}
        return not opposite.get(self.ours, False) and all(
            fnmatchcase(getattr(number, name), getattr(self, name))
            for name in ("experiment", "dataset", "method", "metric")
        )


class Means(NamedTuple):
    """Means of the two methods of a conclusion, or their points.

    One grows if a limit of time ended a run of it, so that it is a lower bound.
    """

    first: float
    second: float
    first_grows: bool = False
    second_grows: bool = False


@dataclass(frozen=True)
class Conclusion:
    """Conclusion of a paper on two methods, or one at two settings; docs/explanation has keys."""

    paper: str
    words: str
    experiment: str = ""
    metric: str = ""
    second_metric: str = ""
    first: str = ""
    relation: str = "less"
    second: str = ""
    rivals: list[str] = field(default_factory=list)
    first_over: str = ""
    second_over: str = ""
    setting: str = ""
    second_setting: str = ""
    factor: float = 1.0
    within: float = 0.0
    within_factor: float = 1.0
    scope: str = "every"
    wins: int = 0
    datasets: list[str] = field(default_factory=list)
    ending: str = ""
    second_ending: str = ""
    untestable: str = ""
    cause: str = ""
    rank: int = 0

    def __post_init__(self) -> None:
        """Refuse a conclusion that names neither a test nor why there is none."""
        one = bool(self.second) != bool(self.rivals)
        named = [bool(self.experiment), bool(self.metric), bool(self.first), one]
        if not all(named) and (any(named) or not self.untestable):
            wanted = "experiment, metric, first and second, or untestable alone"
            raise ValueError(f"{self.words!r}: found a part of a test; expected {wanted}")
        if self.wins and self.scope != "every":
            raise ValueError(f"{self.words!r}: found wins beside scope; expected one of them")
        if self.relation not in RELATIONS or self.scope not in SCOPES:
            wanted = f"one of {', '.join(RELATIONS)} and one of {', '.join(SCOPES)}"
            found = f"{self.relation!r} and {self.scope!r}"
            raise ValueError(f"{self.words!r}: found {found}; expected {wanted}")
        if self.cause not in ("", *CAUSES):
            wanted = f"one of {', '.join(CAUSES)}"
            raise ValueError(f"{self.words!r}: found the cause {self.cause!r}; expected {wanted}")

    @property
    def test(self) -> dict[str, Any]:
        """What it compares, and how: all that decides its verdict."""
        about = ("paper", "words", "untestable", "cause", "rank")
        return {name: value for name, value in asdict(self).items() if name not in about}

    @property
    def is_summed(self) -> bool:
        """True if one figure of all data sets decides."""
        return self.scope in ("total", "average", "t-test")

    @property
    def others(self) -> list[str]:
        """The methods that `first` is held to."""
        return self.rivals or [self.second]

    def covers(self, dataset: str) -> bool:
        """Return True if it is about a data set; several sizes of one go by one name."""
        known = not self.datasets or any(fnmatchcase(dataset, name) for name in self.datasets)
        return known and dataset.endswith(self.ending)

    def holds(self, means: Means, margin: float = 1.0) -> bool | None:
        """Return True if two means relate as the paper says; None if they cannot tell.

        They cannot where they are not known, or nearer to the bound than a factor `margin`, unless
        they are alike by their difference; nor where the growth of a mean may turn the answer.
        """
        first, second, first_grows, second_grows = means
        grown = max(first, second), math.inf
        found = {
            self._compare(one, other, margin)
            for one in (first, *grown * first_grows)
            for other in (second, *grown * second_grows)
        }
        return found.pop() if len(found) == 1 else None

    def _compare(self, first: float, second: float, margin: float) -> bool | None:
        """Return True if two numbers relate as the paper says."""
        if math.isnan(first) or math.isnan(second):
            return None
        if self.relation == "alike" and self.within_factor == 1.0:
            return abs(first - second) <= self.within
        if self.relation == "alike":
            low, high = sorted((first, second))
            return _is_less(high, self.within_factor * low, margin)
        less = _is_less(first, self.factor * second, margin)
        return less if self.relation == "less" or less is None else first > self.factor * second


def _is_less(value: float, bound: float, margin: float) -> bool | None:
    """Return True if a value is below a bound; None if it is within a factor above 1 of it."""
    if margin > 1.0 and bound / margin < value < bound * margin:
        return None
    return value < bound


def read_published(file: Path) -> list[Published]:
    """Read published numbers from a CSV file; raise a ValueError with the line of a mistake."""
    found = []
    for line, row in _rows(file, NUMBER_COLUMNS):
        try:
            settings_in(row["setting"])
            mean, sd = float(row["mean"]), float(row["sd"] or math.nan)
        except ValueError as error:
            raise ValueError(f"{line}: {error}") from None
        experiment, dataset, method, setting, metric = (row[name] for name in NUMBER_COLUMNS[:5])
        number = Published(experiment, dataset, method, setting, metric, mean, sd, row["source"])
        found.append(number)
    return found


def read_texts(file: Path, published: Sequence[Published]) -> list[Text]:
    """Read texts on numbers from one of the files `TEXTS`; none without it.

    A column ``ours`` may say for which deviation: ``higher``, ``lower``, or empty for both.
    """
    column, kinds = TEXTS[file.name]
    found = []
    for line, row in _rows(file, (*TEXT_COLUMNS, column)) if file.exists() else ():
        experiment, dataset, method, metric, words = (row[name] for name in TEXT_COLUMNS)
        one = Text(experiment, dataset, method, metric, words, row[column], row.get("ours", ""))
        if one.ours not in ("", "higher", "lower"):
            raise ValueError(f"{line}: found {one.ours!r}; expected higher, lower or nothing")
        if one.kind not in kinds:
            raise ValueError(f"{line}: found {one.kind!r}; expected one of {', '.join(kinds)}")
        if not one.words or not any(map(one.covers, published)):
            raise ValueError(f"{line}: expected a text on a published number; * stands for any")
        found.append(one)
    return found


def text_on(number: Published, texts: Iterable[Text], mean: float = math.nan) -> Text | None:
    """Return the first text that is about a number, and the direction of our mean if given."""
    return next((one for one in texts if one.covers(number, mean)), None)


def _rows(file: Path, columns: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the place and the fields of each row of a CSV file."""
    with file.open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines, strict=True)
        if missing := [name for name in columns if name not in (reader.fieldnames or ())]:
            raise ValueError(f"{file}: found no column {', '.join(missing)}")
        for row in reader:
            line = f"{file}, line {reader.line_num}"
            if None in row or None in row.values():
                raise ValueError(f"{line}: found {len(row)} fields; expected as in the header")
            yield line, {name: text.strip() for name, text in row.items()}


def read_conclusions(file: Path) -> list[Conclusion]:
    """Read the list ``[[conclusions]]`` of a TOML file."""
    try:
        return [Conclusion(**row) for row in tomllib.loads(file.read_text())["conclusions"]]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{file}: {error}") from None


@dataclass(frozen=True)
class Papers:
    """What papers say: numbers, conclusions, and texts on numbers.

    `explanations` are of numbers outside of ±, `data` of numbers whose data are not the papers'.
    """

    published: Sequence[Published]
    conclusions: Sequence[Conclusion] = ()
    explanations: Sequence[Text] = ()
    data: Sequence[Text] = ()

    @classmethod
    def read(cls, folder: Path) -> Papers:
        """Read the files of a folder; raise a ValueError or an OSError for a mistake in one."""
        files = [file for file in sorted(folder.glob("*.csv")) if file.name not in TEXTS]
        published = [one for file in files for one in read_published(file)]
        if not published:
            raise ValueError(f"{folder}: found no CSV file of published numbers")
        texts = (read_texts(folder / name, published) for name in TEXTS)
        conclusions = folder / CONCLUSIONS
        return cls(published, read_conclusions(conclusions) if conclusions.exists() else (), *texts)


def settings_in(text: str) -> dict[str, Any]:
    """Return the hyperparameters of ``C=100, p=2``."""
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (text.strip() for text in part.partition("="))
        if not equals or not name:
            raise ValueError(f"found the setting {text!r}; expected C=100 or C=100, p=2")
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name] = value
    return found


# --- what results say of them ----------------------------------------------------------------


class Results:
    """Results of a sweep in a folder, or in a tree that is read already."""

    def __init__(self, folder: str | Path, tree: xr.DataTree | None = None) -> None:
        self.folder = folder
        self.tree = mkldist.open_results(folder) if tree is None else tree
        self.sweep = str(self.tree.attrs["sweep"])
        self.spec: dict[str, Any] = json.loads(str(self.tree.attrs["spec"]))
        self.is_isolated = self.spec.get("execution") == "isolated"
        self.nodes = {
            (node.path.split("/")[1], str(node.attrs.get("bank", "")), str(node.name)): node
            for node in self.tree.subtree
            if "run_id" in node.variables
        }
        self.runs = mkldist.to_frame(self.tree)

    @cached_property
    def chosen(self) -> pd.DataFrame:
        """The runs at chosen settings: by validation, else of least mean loss on the test parts."""
        if all(VALIDATION in node.data_vars for node in self.nodes.values()):
            return mkldist.to_frame(mkldist.selected(self.tree))
        settings = {
            (one.dataset, name): setting
            for one in analysis.compared_losses(self.tree)
            for name, setting in one.settings.items()
        }
        several = len({bank for _, bank, _ in self.nodes}) > 1
        names = {(d, b, m): (d, f"{m} ({b})" if several else m) for d, b, m in self.nodes}
        return pd.concat(
            [_at(_of(self.runs, place), settings.get(name)) for place, name in names.items()]
        )

    @cached_property
    def series(self) -> dict[str, str]:
        """Name that each data set shares with other sizes of it."""
        return {
            dataset: str(node.attrs.get("dataset_series", dataset))
            for (dataset, _, _), node in self.nodes.items()
        }

    @cached_property
    def share(self) -> float:
        """Processor time of all runs by their time, passes included; NaN without any."""
        wall = float(self.runs[OF_WALL].sum().sum())
        return float(self.runs[OF_PROCESSOR].sum().sum()) / wall if wall > 0.0 else math.nan

    def place(self, one: Published) -> tuple[str, str, str]:
        """Return the data set, bank and method of a number; raise a LookupError without one."""
        own = [place for place in self.nodes if place[0] == one.dataset]
        found = [place for place in own if one.method in (place[2], "/".join(place[1:]))]
        if len(found) != 1:
            several = "in several banks: name it BANK/METHOD"
            raise LookupError(several if found else "not in the results")
        return found[0]

    def rows(self, one: Published) -> pd.DataFrame:
        """Return the runs that a number is of, one a split; raise a LookupError without any."""
        place = self.place(one)
        if not one.setting:
            return _of(self.chosen, place).set_index("split")
        setting = settings_in(one.setting)
        own = _of(self.runs, place)
        open_names = [name for name, value in setting.items() if value == LEAST]
        given = {name: value for name, value in setting.items() if name not in open_names}
        if {*setting} <= {*self.dims(place)}:
            own = _least(_at(own, given), open_names, one.metric)
            if len(own) and own["split"].is_unique:
                return own.set_index("split")
        raise LookupError("setting not in the results")

    def dims(self, place: tuple[str, str, str]) -> list[str]:
        """Return the names of the hyperparameters of a method."""
        return [str(name) for name in self.nodes[place]["run_id"].dims if name != "split"]

    def values(self, one: Published) -> pd.Series[float]:
        """Return our value on each split, NaN without a complete run; of ``*``, on each data set.

        Raise a LookupError with the reason for which there are none.
        """
        if one.dataset == EVERY:
            names = dict.fromkeys(dataset for dataset, _, _ in self.nodes)
            means = {name: self.known(replace(one, dataset=name)).mean() for name in names}
            return pd.Series(means)
        metric, _, rival = one.metric.partition("/")
        if rival:
            if metric in TIMES and not self.is_isolated:
                raise LookupError("runs share passes, so that their times do not compare")
            other = self.values(replace(one, metric=metric, method=rival))
            return self.values(replace(one, metric=metric)) / other.replace(0.0, math.nan)
        rows = self.rows(one)
        if metric == CHANGE:
            found = self._weight_changes(one, rows)
        elif metric == PROCESSOR:
            found = rows[OF_PROCESSOR].sum(axis=1, skipna=False)
        elif metric in rows and pd.api.types.is_numeric_dtype(rows[metric]):
            found = rows[metric].astype(float)
        else:
            raise LookupError(f"no {metric} in the results")
        return found.where(rows["state"] == "complete")

    def known(self, one: Published) -> pd.Series[float]:
        """Return our values on the splits with complete runs; raise a LookupError without any."""
        found = self.values(one).dropna()
        if found.empty:
            raise LookupError("no complete run")
        return found

    def _weight_changes(self, one: Published, rows: pd.DataFrame) -> pd.Series[float]:
        """Return how much the largest weights change in an iteration, of runs at one setting."""
        place = self.place(one)
        at = {name: rows[name].unique() for name in self.dims(place)}
        if "convergence" not in self.nodes[place].children or any(len(v) > 1 for v in at.values()):
            raise LookupError("no trace of one setting in the results")
        trace = self.nodes[place]["convergence"].to_dataset()
        trace = trace.sel({name: values[0] for name, values in at.items()})
        return pd.Series(weight_changes(trace), index=rows.index)

    def is_cut_short(self, one: Published) -> bool:
        """Return True if the limit of time ended a run that a time or a count is of."""
        if one.metric not in GROWING:
            return False
        rows = self.rows(one)
        return bool(((rows["stop_reason"] == "time_limit") & (rows["state"] == "complete")).any())


def _of(runs: pd.DataFrame, place: tuple[str, str, str]) -> pd.DataFrame:
    """Return the runs of a data set, bank and method."""
    dataset, bank, method = place
    is_own = (runs["dataset"] == dataset) & (runs["bank"] == bank) & (runs["method"] == method)
    return runs[is_own]


def _at(runs: pd.DataFrame, setting: Mapping[str, Any] | None) -> pd.DataFrame:
    """Return the runs of a setting; none of None."""
    if setting is None:
        return runs.iloc[:0]
    for name, value in setting.items():
        runs = runs[[_equal(one, value) for one in runs[name]]]
    return runs


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9)
    return str(one) == str(other)


def _least(runs: pd.DataFrame, names: list[str], metric: str) -> pd.DataFrame:
    """Return the runs where a metric has its least mean, of settings complete on all splits."""
    if not names:
        return runs
    if metric not in runs:
        return runs.iloc[:0]
    of_settings = runs.assign(done=runs["state"] == "complete").groupby(names)
    means = of_settings[metric].mean().where(of_settings["done"].all()).dropna()
    if means.empty:
        return runs.iloc[:0]
    best = means.idxmin()
    return _at(runs, dict(zip(names, best if isinstance(best, tuple) else (best,), strict=True)))


def weight_changes(trace: xr.Dataset) -> list[float]:
    """Return the mean change of the largest kernel weights between two iterations of each run.

    A change is the sum of ``|d_m(t) - d_m(t - 1)|`` over the kernels that the trace has in one of
    the two iterations, the five largest; one that is not among them counts as 0.
    """
    names, weights = (
        trace[name].transpose("split", "iteration", "rank").to_numpy().tolist()
        for name in ("largest_kernels", "largest_weights")
    )
    found = []
    for run in zip(names, weights, strict=True):
        steps = [{n: d for n, d in zip(*both, strict=True) if n} for both in zip(*run, strict=True)]
        changes = [
            math.fsum(abs(now.get(n, 0.0) - before.get(n, 0.0)) for n in {*now, *before})
            for before, now in pairwise(filter(None, steps))
        ]
        found.append(float(np.mean(changes)) if changes else math.nan)
    return found


class SettingRange(NamedTuple):
    """Means of a metric over the splits on which all settings are complete, of the chosen metric.

    `least` and `most` are those of a setting; `n_tied` says how many settings share the best
    validation error on each split, with the mean of the best and of the worst of these.
    """

    n_settings: int = 0
    least: float = 0.0
    most: float = 0.0
    n_tied: Sequence[int] = ()
    tied_least: float = 0.0
    tied_most: float = 0.0


NO_RANGE = SettingRange()  # nothing was chosen


def setting_range(results: Results, one: Published) -> SettingRange:
    """Return what all settings give for a number that is published for a chosen one."""
    try:
        place = results.place(one)
    except LookupError:
        return NO_RANGE
    data, dims = results.nodes[place].to_dataset(), results.dims(place)
    if one.setting or not dims or not {one.metric, VALIDATION} <= {*data.data_vars}:
        return NO_RANGE
    both = data[[one.metric, VALIDATION]].stack(setting=dims).transpose("split", "setting", ...)
    values, errors = both[one.metric].to_numpy(), both[VALIDATION].to_numpy()
    if values.ndim != 2 or values.shape[1] < 2:
        return NO_RANGE
    whole = np.isfinite(values).all(axis=1) & np.isfinite(errors).all(axis=1)
    if not whole.any():
        return NO_RANGE
    values, errors = values[whole].astype(float), errors[whole]
    tied = errors == errors.min(axis=1, keepdims=True)
    means = values.mean(axis=0)
    most, least = np.where(tied, values, -np.inf).max(axis=1), np.where(tied, values, np.inf)
    tied_least, tied_most = float(least.min(axis=1).mean()), float(most.mean())
    ends = float(means.min()), float(means.max())
    return SettingRange(values.shape[1], *ends, tied.sum(axis=1).tolist(), tied_least, tied_most)


@dataclass(frozen=True)
class Cell:
    """A published number and ours over the splits, or why there is none; `sd` is NaN of one."""

    published: Published
    n_splits: int
    mean: float
    sd: float
    lacking: str = ""
    settings: SettingRange = NO_RANGE

    @property
    def is_within(self) -> bool:
        """True if our mean is the published one, or within its ±, or ours where it has none."""
        sd = self.published.sd if self.published.sd > 0.0 else self.sd
        return self.mean == self.published.mean or abs(self.mean - self.published.mean) <= sd

    @property
    def has_verdict(self) -> bool:
        """True if it can be within ± or outside, unlike one of a single split without any ±."""
        return self.published.sd > 0.0 or self.n_splits > 1 or self.is_within


def our_number(results: Results, one: Published) -> Cell:
    """Return a published number with ours."""
    try:
        found = results.known(one)
    except LookupError as error:
        return Cell(one, 0, math.nan, math.nan, str(error))
    return Cell(one, len(found), float(found.mean()), float(found.std(ddof=1)))


# --- whether they bear out a conclusion ------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Means of both methods on a data set, and whether they relate as the paper says.

    Without a data set it is the sum of all, the mean of their ratios and 1, or p and its level.
    """

    dataset: str
    first: float
    second: float
    holds: bool | None


@dataclass(frozen=True)
class Judged:
    """A conclusion with the figures that its verdict rests on."""

    conclusion: Conclusion
    verdict: Verdict
    cases: Sequence[Case] = ()
    note: str = ""


def judge(conclusion: Conclusion, results: Results | None, datasets: Iterable[str] = ()) -> Judged:
    """Hold a conclusion to the results of its sweep, by the rules that the page states.

    `datasets` are those of the sweep's file, of which results may have a part.  One of several
    training sizes counts once.
    """
    if not conclusion.experiment:
        return Judged(conclusion, "not testable", note=conclusion.untestable)
    reason, cases = f"{conclusion.experiment} was not run", []
    if results is not None:
        timed = conclusion.metric in TIMES
        if timed and not results.is_isolated:
            reason = f"runs of {results.sweep} share passes, so that their times do not compare"
        else:
            cases = _cases(conclusion, results)
            methods = " and ".join((conclusion.first, *conclusion.others))
            reason = f"no data set has results of {methods}"
    if results is None or not cases:
        return Judged(conclusion, "not testable", note=conclusion.untestable or reason)
    notes = []
    series = results.series
    compared = len({series.get(case.dataset, case.dataset) for case in cases if case.dataset})
    n_all = sum(map(conclusion.covers, datasets))
    verdict = verdict_of(conclusion, cases, max(0, n_all - compared))
    if 2 * compared < n_all:
        verdict = "not decided"
        notes.append(f"{compared} of {n_all} data sets")
    if conclusion.untestable:
        verdict = "not testable"
    if timed and not math.isnan(results.share):
        notes.append(f"runs had {results.share:.0%} of a processor")
    return Judged(conclusion, verdict, cases, "; ".join(notes))


def verdict_of(conclusion: Conclusion, cases: Sequence[Case], missing: int = 0) -> Verdict:
    """Return whether a conclusion holds on as many data sets as it says, if these can tell.

    Of data sets that are missing any may hold where the paper counts them.
    """
    if conclusion.is_summed:
        cases = cases[-1:]
    needed = len(cases) // 2 + 1 if conclusion.scope == "most" else len(cases)
    needed = conclusion.wins or needed
    held = sum(case.holds is True for case in cases)
    failed = sum(case.holds is False for case in cases)
    if held >= needed:
        return "reproduced"
    open_ = len(cases) - failed + (missing if conclusion.wins else 0)
    return "not reproduced" if open_ < needed else "not decided"


def _cases(conclusion: Conclusion, results: Results) -> list[Case]:
    """Return the figures of both methods on each data set, and one of all where it decides."""
    figures = (_points if conclusion.metric == POINTS else _means)(conclusion, results)
    means = list(figures.values())
    if figures and conclusion.scope in ("total", "average"):
        figures[""] = _of_all(conclusion, means)
    margin = 1.0
    if conclusion.metric in TIMES:
        margin = BUSY_MARGIN if results.share < 0.5 else MARGIN
    cases = [
        Case(dataset, own.first, own.second, conclusion.holds(own, margin))
        for dataset, own in figures.items()
    ]
    if cases and conclusion.scope == "t-test":
        cases.append(_by_t_test(conclusion, means))
    return cases


def _by_t_test(conclusion: Conclusion, means: Sequence[Means]) -> Case:
    """Return p of the paired t-test over data sets, and whether the paper's relation holds by it.

    Methods are alike where the test finds no difference.  Lower bounds decide nothing.
    """
    both = pd.DataFrame([(one.first, conclusion.factor * one.second) for one in means])
    p = _paired_p_value((both[0] - both[1]).to_numpy())
    if math.isnan(p) or any(one.first_grows or one.second_grows for one in means):
        return Case("", p, SIGNIFICANCE, None)
    first, second = both.mean()
    relation = "alike" if p >= SIGNIFICANCE else "less" if first < second else "more"
    return Case("", p, SIGNIFICANCE, relation == conclusion.relation)


def _paired_p_value(differences: np.ndarray) -> float:
    """Return p of the paired t-test; NaN where a difference is missing, or all are one shift."""
    if len(differences) < 2 or np.isnan(differences).any():
        return math.nan
    if np.ptp(differences) <= 1e-12 * np.abs(differences).max():
        return math.nan if differences.any() else 1.0
    return float(ttest_1samp(differences, 0.0).pvalue)


def _of_all(conclusion: Conclusion, means: Sequence[Means]) -> Means:
    """Return the sums over all data sets, or the mean of their ratios and 1."""
    firsts, seconds, first_grows, second_grows = zip(*means, strict=True)
    if conclusion.scope == "total":
        first, second = math.fsum(firsts), math.fsum(seconds)
    else:
        first, second = math.fsum(map(_ratio, firsts, seconds)) / len(means), 1.0
    return Means(first, second, any(first_grows), any(second_grows))


def _means(conclusion: Conclusion, results: Results) -> dict[str, Means]:
    """Return the means of both methods on each data set, the best of several rivals."""
    best = max if conclusion.relation == "more" else min
    found = {}
    for dataset, series in results.series.items():
        if not conclusion.covers(series):
            continue
        try:
            pairs = [_pair(conclusion, results, dataset, other) for other in conclusion.others]
        except LookupError:
            continue
        unknown = [pair for pair in pairs if math.isnan(pair.second)]
        chosen = best(unknown or pairs, key=lambda pair: pair.second)
        if conclusion.relation == "more":  # any rival that grows may become the largest
            chosen = chosen._replace(second_grows=any(pair.second_grows for pair in pairs))
        found[dataset.removesuffix(conclusion.ending)] = chosen
    return found


def _pair(conclusion: Conclusion, results: Results, dataset: str, other: str) -> Means:
    """Return the means of two methods over the splits with runs of both."""
    ending = conclusion.second_ending or conclusion.ending
    place = dataset.removesuffix(conclusion.ending) + ending
    setting = conclusion.second_setting or conclusion.setting
    one = (conclusion.setting, conclusion.metric)
    two = (setting, conclusion.second_metric or conclusion.metric)
    asked = [(dataset, conclusion.first, *one), (place, other, *two)]
    asked += [(dataset, conclusion.first_over, *one)] * bool(conclusion.first_over)
    asked += [(place, conclusion.second_over, *two)] * bool(conclusion.second_over)
    rows = [Published("", *each, math.nan, math.nan, "") for each in asked]
    values = pd.concat([results.values(row) for row in rows], axis=1)
    first, last, *over = values.dropna().mean()
    if values.isna().any(axis=1).all():
        raise LookupError("no split has runs of both")
    first = _ratio(first, over.pop(0) if conclusion.first_over else 1.0)
    last = _ratio(last, over[0] if over else 1.0)
    grow = [results.is_cut_short(row) for row in rows]
    return Means(first, last, *(grows or any(grow[2:]) for grows in grow[:2]))


def _ratio(one: float, other: float) -> float:
    """Return how many times one number is another; NaN if the other is 0."""
    return one / other if other else math.nan


def _points(conclusion: Conclusion, results: Results) -> dict[str, Means]:
    """Return the points of the methods on each data set that has some of all, the best rival's."""
    names = [conclusion.first, *conclusion.others]
    table = mcnemar_points(Path(results.folder), names).reindex(columns=names).dropna()
    best = max if conclusion.relation == "more" else min
    return {
        str(dataset): Means(float(first), float(best(others)))
        for dataset, first, *others in table.itertuples(name=None)
        if conclusion.covers(results.series.get(str(dataset), str(dataset)))
    }


def mcnemar_points(folder: Path, methods: Collection[str] = ()) -> pd.DataFrame:
    """Return the points of each method on each data set (Do, Kalousis, Woznica & Hilario 2009).

    Every two methods share one point: the better one by McNemar's test at the level 0.05 has it,
    and each has ½ where the test tells no difference.  The test is on all scored points of a
    repetition, whose folds are disjoint; points are averaged over the repetitions.  A method of
    which every run failed loses its point to one that has results.

    A row a data set of classes, a column a method: its points, summed over the others on the same
    bank; NaN where it was compared with none.
    """
    of_sets = methods_by_data_set(Opened.of(folder), methods)
    rows = {dataset: _of_data_set(own) for dataset, own in of_sets}
    table = pd.DataFrame.from_dict(rows, orient="index", dtype=float)
    return table.rename_axis(index="dataset").dropna(how="all")


def pair_points(first: Chosen, second: Chosen) -> tuple[float, float] | None:
    """Return the points of two methods on one data set, which add up to 1, by repetitions' mean.

    None where no split has predictions of both, unless every run of one has failed.
    """
    pooled: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
    for split, repeat in enumerate(first.data["repeat"].to_numpy().tolist()):
        one, two = right_points(first, split), right_points(second, split)
        if one is not None and two is not None:
            pooled.setdefault(repeat, []).append((one, two))
    if not pooled:
        return _by_failure(first, second)
    points = []
    for folds in pooled.values():
        one, two = (np.concatenate(side) for side in zip(*folds, strict=True))
        counts = int((one & ~two).sum()), int((two & ~one).sum())
        if sum(counts) and binomtest(counts[0], sum(counts)).pvalue < LEVEL:
            points.append(float(counts[0] > counts[1]))
        else:
            points.append(0.5)
    of_first = float(np.mean(points))
    return of_first, 1.0 - of_first


def right_points(side: Chosen, split: int) -> np.ndarray | None:
    """Return which scored points of a split a method predicts right; None without predictions.

    In the order of the test rows; of the unlabelled ones where the loss is theirs.
    """
    record = side.records[split]
    if record is None or not len(record.decision_values) or "label" not in side.data.coords:
        return None
    labels, values = side.data["label"].to_numpy(), record.decision_values
    n_test = int(side.data["n_test"].to_numpy()[split])
    scored = slice(n_test, None) if side.loss.startswith("unlabelled") else slice(n_test)
    own = labels[record.test_rows][scored]
    known = ~np.isnan(own)
    if values.ndim == 1:
        return np.asarray((values >= 0.0)[scored][known] == (own > 0)[known])
    training = np.delete(labels, record.test_rows)
    counts = np.bincount(training[~np.isnan(training)].astype(np.intp), minlength=len(values))
    found = predicted_classes(values, np.argsort(-counts, kind="stable"))
    return np.asarray(found[scored][known] == own[known])


def _of_data_set(methods: Mapping[str, Chosen]) -> dict[str, float]:
    """Return the points of each method of a data set, summed over the others on its bank."""
    points: dict[str, float] = {}
    for first, second in combinations(methods, 2):
        one, two = methods[first], methods[second]
        if (
            metric_of_variable(one.loss).task == "regression"
            or one.place["bank"] != two.place["bank"]
        ):
            continue
        for name, own in zip((first, second), pair_points(one, two) or (), strict=False):
            points[name] = points.get(name, 0.0) + own
    return points


def _by_failure(first: Chosen, second: Chosen) -> tuple[float, float] | None:
    """Return the points of two methods of which one alone has failed; None for others."""
    failed = [bool((side.data[STATE.name] == RunState.FAILED).all()) for side in (first, second)]
    if failed[0] and second.complete.any():
        return 0.0, 1.0
    if failed[1] and first.complete.any():
        return 1.0, 0.0
    return None


# --- outcomes, which are kept ----------------------------------------------------------------


def outcome_of(
    results: Results,
    published: Iterable[Published],
    conclusions: Iterable[Conclusion],
    file: Mapping[str, Any] | None = None,
) -> Outcome:
    """Return what results say of published numbers and conclusions, other experiments' left out.

    `file` is the sweep's file, of whose data sets and values results may have others.
    """
    complete = int((results.runs["state"] == "complete").sum())
    datasets = [one["name"] for one in file["datasets"]] if file else []
    numbers = []
    for one in published:
        if one.experiment in ("", results.sweep):
            own = asdict(replace(our_number(results, one), settings=setting_range(results, one)))
            del own["published"]
            numbers.append(dict(zip(NUMBER_COLUMNS[1:5], one.key, strict=True)) | own)
    answers = []
    for said in conclusions:
        if said.experiment == results.sweep:
            judged = asdict(judge(replace(said, untestable=""), results, datasets))
            del judged["conclusion"]
            answers.append({"test": said.test, **judged})
    made_by = json.loads(str(results.tree.attrs["provenance"]))
    origin = {
        "description": _description(made_by),
        "commits": {made_by.get("commit", ""): complete},
    }
    return {
        "sweep": results.sweep,
        "created": str(results.tree.attrs["created"])[:10],
        "complete": complete,
        "n_runs": len(results.runs),
        "changes": changes(file, results.spec) if file else [],
        "origins": [origin],
        "numbers": numbers,
        "answers": answers,
    }


def _description(facts: Mapping[str, Any]) -> str:
    """Return versions, Python and machine in words."""
    versions = ", ".join(
        f"{name} {text}" for name, text in sorted(facts.get("versions", {}).items())
    )
    system = f"{str(facts.get('platform', 'unknown')).partition('-')[0]} {facts.get('machine', '')}"
    machine = [f"{facts.get('processors', '?')} processors", system.strip(), facts.get("processor")]
    return (
        f"{versions}; Python {facts.get('python', 'unknown')}; {', '.join(filter(None, machine))}"
    )


def write_outcome(folder: Path, outcome: Outcome) -> None:
    """Write an outcome to the file of its sweep in a folder, in place of an earlier one."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(outcome, indent=1, ensure_ascii=False) + "\n"
    (folder / f"{outcome['sweep']}.json").write_text(text, encoding="utf-8")


def read_outcomes(folder: Path) -> dict[str, Outcome]:
    """Return the outcomes of a folder by the names of their sweeps; none without the folder."""
    return {
        file.stem: json.loads(file.read_text("utf-8")) for file in sorted(folder.glob("*.json"))
    }


def cell_of(outcome: Outcome, one: Published) -> Cell:
    """Return a published number with ours of an outcome."""
    for known in outcome["numbers"]:
        if tuple(known[name] for name in NUMBER_COLUMNS[1:5]) == one.key:
            mean, sd, settings = known["mean"], known["sd"], SettingRange(*known["settings"])
            return Cell(one, known["n_splits"], mean, sd, known["lacking"], settings)
    return Cell(one, 0, math.nan, math.nan, NOT_HELD)


def judged_by(conclusion: Conclusion, outcome: Outcome | None) -> Judged:
    """Return the verdict on a conclusion by the outcome of the sweep that tests it."""
    if outcome is None:
        return judge(conclusion, None)
    defaults = Conclusion("", "", untestable="x").test
    for known in outcome["answers"]:
        if {**defaults, **known["test"]} == conclusion.test:  # a key that is newer than the answer
            verdict: Verdict = "not testable" if conclusion.untestable else known["verdict"]
            cases = [Case(**one) for one in known["cases"]]
            return Judged(conclusion, verdict, cases, known["note"])
    return Judged(conclusion, "not testable", note=NOT_HELD)


# --- how a sweep differs from its file -------------------------------------------------------

NAMES = ("label", "name", "family")  # keys that tell entries of a list apart, the first that is set
NO_RESULT = ("description", "outputs", "wall_time")  # keys on which no result depends


def changes(file: Mapping[str, Any], run: Mapping[str, Any]) -> list[str]:
    """Return what a sweep has other than its file, where results depend on it.

    Phrases such as ``"splits.repeats = 5, not 20"`` and ``"datasets: 7 of 10"``.
    """
    both = (load_sweep(one).model_dump(mode="json", exclude={*NO_RESULT}) for one in (file, run))
    return list(_differences("", *both))


def _differences(place: str, file: Any, run: Any) -> Iterator[str]:
    """Yield how two values differ, by their parts where both have such."""
    if file == run:
        return
    if isinstance(file, dict) and isinstance(run, dict):
        for key in dict.fromkeys((*file, *run)):
            yield from _differences(f"{place}.{key}".lstrip("."), file.get(key), run.get(key))
    elif (theirs := _by_name(file)) and (ours := _by_name(run)):
        if not ours.keys() >= theirs.keys():
            yield f"{place}: {len(ours.keys() & theirs.keys())} of {len(theirs)}"
        for name in sorted(ours.keys() - theirs.keys()):
            yield f"{place}: {name} besides"
        for name in filter(ours.get, theirs):
            yield from _differences(f"{place}.{name}", theirs[name], ours[name])
    else:
        yield f"{place} = {json.dumps(run)}, not {json.dumps(file)}"


def _by_name(value: Any) -> dict[str, Any]:
    """Return the entries of a list of tables by their names; none of another value."""
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        return {}
    named = {next((str(e[key]) for key in NAMES if e.get(key)), ""): e for e in value}
    return {} if "" in named else named


# --- the command -----------------------------------------------------------------------------


def sweep_files() -> dict[str, dict[str, Any]]:
    """Return the sweep files of the papers and those beside them, by the names of their sweeps."""
    files = (*HERE.parent.glob("*.toml"), *HERE.glob("*.toml"))
    return {file.stem: tomllib.loads(file.read_text(encoding="utf-8")) for file in files}


def mean_sd(mean: float, sd: float) -> str:
    """Return a mean and its standard deviation in few digits; the latter only where it is known."""
    if math.isnan(mean):
        return NOTHING
    return f"{mean:.4g}" + ("" if math.isnan(sd) else f" ± {sd:.2g}")


def number_table(results: Results, published: Iterable[Published]) -> pd.DataFrame:
    """Return the published numbers of a sweep with ours, and how many published sd these are apart.

    No test is made: a paper's splits are not ours, and its standard deviation is that of its own.
    """
    rows = []
    for one in published:
        if one.experiment in ("", results.sweep):
            cell = our_number(results, one)
            apart = (cell.mean - one.mean) / (one.sd or math.nan)
            both = mean_sd(one.mean, one.sd), mean_sd(cell.mean, cell.sd)
            rows.append((*one.key, *both, apart, cell.lacking))
    return pd.DataFrame(rows, columns=[*NUMBER_COLUMNS[1:5], "published", "ours", "in sd", ""])


def main(words: Sequence[str] | None = None) -> None:
    """Print published numbers beside ours."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", nargs="+", help="folders of results of the papers' sweeps")
    parser.add_argument("--published", type=Path, default=HERE / "published", metavar="FOLDER",
                        help="the papers' numbers and conclusions")  # fmt: skip
    given = parser.parse_args(words)
    try:
        papers = Papers.read(given.published)
        for one in map(Results, given.results):
            table = number_table(one, papers.published)
            if table.empty:
                raise ValueError(f"{one.folder}: found no published number of {one.sweep}")
            text = table.to_string(index=False, float_format="%+.1f", na_rep=NOTHING)
            print(one.sweep, text, "", sep="\n")
    except (ValueError, OSError, MkldistError) as error:
        parser.exit(2, f"{parser.prog}: {error}\n")


if __name__ == "__main__":
    main()
