"""Predictions of the rows of a file: written, explained, scored, and what is odd about them."""

from __future__ import annotations

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.calibration import Calibrated
from mkldist.core.arrays import Array, Bools, Floats, Ints
from mkldist.core.durable import check_free, replacing, writing
from mkldist.core.metrics import metrics_of
from mkldist.core.threads import single_threaded
from mkldist.core.wording import pluralize, truncate
from mkldist.data.dataset import lacking_rows
from mkldist.data.labels import REST, finite_number, name_among
from mkldist.errors import DataError, OutputError, ending_words
from mkldist.fit.decision import INTERCEPT, Between, Contributions, Labels
from mkldist.fit.inputs import SHOWN
from mkldist.fit.model import Model
from mkldist.fit.new_rows import Block, opened_rows
from mkldist.kernel_functions.bases import is_sparse
from mkldist.scores import constant_score, pooled_scores, probability_scores, regression_scores

PREDICTION = "prediction"
MOST_CHARACTERS = 10_000  # of a header that is looked at
CORRECT = "Correct these labels, or leave these rows out, or the column if it holds no labels"


@dataclass(frozen=True)
class Score:
    """Metrics of predictions for labelled rows, beside those of a constant prediction."""

    values: dict[str, float]
    of_constant: dict[str, float]
    confusion: dict[str, dict[str, int]]


@dataclass(frozen=True)
class Predicted:
    """Account of predictions: rows of each class, what is odd about them, and their score."""

    n_rows: int
    counts: Counter[Any]
    unseen: Counter[tuple[str, str]]  # rows of unknown categories, by column and category
    notes: tuple[str, ...] = ()
    score: Score | None = None


def write_predictions(
    model: Model,
    data: Path,
    target: Path | None,
    *,
    views: Mapping[str, Path] | None = None,
    ignored: Collection[str] = (),
    overwrite: bool = False,
    n_threads: int | None = None,
    rows_at_once: int | None = None,
    explained_by: str | None = None,
    scored: bool = False,
    inputs: Sequence[Path] = (),
) -> Predicted:
    """Predict the rows of a file and write a CSV file, whole or not at all.

    The columns are that of the row names where the model knows one, ``prediction``, and for classes
    ``decision``, or ``decision[CLASS]`` of each of several classes.  A calibrated model adds
    ``probability`` of the second of two classes, or ``probability[CLASS]``.  The file replaces
    none of those that are read, nor other `inputs`, such as that of the model.
    """
    views = {} if views is None else views
    if target is not None:
        if target.suffix != ".csv":
            raise OutputError(str(target), ending_words(target.suffix), "a name ending in '.csv'")
        check_free(target, overwrite=overwrite, inputs=[data, *views.values(), *inputs])
        _check_predictions(target)
    joined = model.join(views, "--view", ignored)
    starts = tuple(f"{view}." for view in model.view_columns)
    own = [name for name in ignored if not name.startswith(starts)] if starts else ignored
    step, parts = rows_at_once or model.rows_at_once(), None
    decide, account = None, _Account(model)
    if explained_by is not None:
        parts = model.parts(explained_by)
        decide = partial(_explained, model, parts)
    with (
        opened_rows(
            data, model.columns, step, ignored=own, sparse=model.is_sparse, labelled=scored
        ) as rows,
        single_threaded(),
        _writer(target) as write,
    ):
        write([[name] for name in _columns(model, rows.id, parts)])
        for block, values in model.joined(rows, joined, n_threads, decide):
            write(account.add(block, values))
        if not account.n_rows:
            raise DataError(str(data), "no rows", "at least one row to predict")
        unread = [name for name in views if name not in model.needed_views]
        notes = [
            rows.note,
            *(view.note for view in joined),
            *(f"view {n!r}: no active kernel uses it, and it is not read" for n in unread),
            *(view.check_end() for view in joined),
            *account.notes({v.name: v.n_lacking for v in joined}),
        ]
        place = f"{rows.where}, column {rows.label!r}, by its place"
        if rows.by_place and not scored:
            account.label_numbers([label for label in account.labels if label], place)
        score = account.score(place if rows.by_place else rows.where) if scored else None
    unseen = sum((view.unseen for view in joined), rows.unseen)
    return Predicted(account.n_rows, account.counts, unseen, tuple(filter(None, notes)), score)


def _check_predictions(target: Path) -> None:
    """Refuse to replace a file that is none of predictions, such as the data of the sweep."""
    if not target.exists():
        return
    with target.open(encoding="utf-8", errors="replace") as stream:
        header = stream.readline(MOST_CHARACTERS).strip()
    if header and PREDICTION not in header.split(","):
        found, hint = f"a file of other data ({header!r:.60})", "Choose another name"
        raise OutputError(str(target), found, "predictions, which new ones may replace", hint)


@contextmanager
def _writer(target: Path | None) -> Iterator[Any]:
    """Give a function that writes columns to a CSV file, which appears whole; None writes none."""
    if target is None:
        yield lambda columns: None
        return
    with (
        writing(target),
        replacing(target) as temporary,
        temporary.open("x", newline="", encoding="utf-8") as stream,
    ):
        rows = csv.writer(stream)
        yield lambda columns: rows.writerows(zip(*columns, strict=True))


def _columns(model: Model, id: str, parts: Contributions | None) -> list[str]:
    """Return the names of the columns of a file of predictions."""
    named = [] if model.labels.classes is None else ["decision"]
    named += [] if model.calibration is None else ["probability"]
    names = model.labels.function_names
    found = [f"{name}[{one}]" for name in named for one in names] if names else named
    found = [*([id] if id else []), PREDICTION, *found]
    for c, part in [] if parts is None else parts.columns:
        of_class = "" if c is None else f"[{c}]"
        found.append(
            f"{INTERCEPT}{of_class}" if part is None else f"contribution{of_class}[{part}]"
        )
    return found


def _explained(
    model: Model, parts: Contributions, points: Floats, between: Between | None, texts: Array | None
) -> Floats:
    """Return decision values at prepared points, and then contributions."""
    values = model.decision_values(points, between, texts)
    return np.concatenate([values, parts.values(points, between, texts)], axis=1)


def _words(counts: Counter[Any]) -> str:
    """Return numbers of predictions of each class in words."""
    return ", ".join(f"{name}: {n}" for name, n in counts.most_common()) or "none"


@dataclass(eq=False)
class _Account:
    """What is counted while blocks are predicted."""

    model: Model
    n_rows: int = 0
    counts: Counter[Any] = field(default_factory=Counter)
    n_less_probable: int = 0
    lacking: Counter[str] = field(default_factory=Counter)  # rows, by view or column of texts
    # Predicted classes of the rows that lack a view
    of_lacking: defaultdict[str, Counter[Any]] = field(default_factory=lambda: defaultdict(Counter))
    n_filled: int = 0  # rows, and these by feature
    filled: Counter[int] = field(default_factory=Counter)
    n_far: int = 0
    far: Counter[int] = field(default_factory=Counter)
    values: list[Floats] = field(default_factory=list)  # of all rows, if they have labels
    labels: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        subsets = [function.kernels.subset_indices for function in self.model.functions]
        self._used: Ints = np.unique(np.concatenate(subsets)).astype(np.intp)

    def add(self, block: Block, found: Floats) -> list[Sequence[Any]]:
        """Count a block with its decision values (r, k) and contributions; return its columns."""
        model, calibration = self.model, self.model.calibration
        k, classes = sum(len(one.bias) for one in model.functions), model.labels.classes
        values, contributions = found[:, :k], found[:, k:]
        predictions = model.predictions(values)
        labels = predictions.tolist()
        columns: list[Sequence[Any]] = [labels] if block.ids is None else [block.ids, labels]
        if classes is not None:
            columns += values.T.tolist()  # written so that they read back unchanged
            self.counts.update(labels)
        if classes is not None and calibration is not None:
            probabilities = calibration.probabilities(values)
            columns += (probabilities[:, 1:] if k == 1 else probabilities).T.tolist()
            most = classes[probabilities.argmax(axis=1)]
            self.n_less_probable += int((most != predictions).sum())
        self.n_rows += len(labels)
        self._count_odd(block, predictions)
        if block.labels is not None:
            self.values.append(values)
            self.labels += block.labels
        columns += contributions.T.tolist()
        return columns

    def _count_odd(self, block: Block, predictions: Labels) -> None:
        """Count rows that lack a view, a text or values, or have some far outside those of the fit.

        Features and views that no kernel uses do not count.
        """
        model, x = self.model, block.x
        for column, (name, optional) in enumerate(model.texts.items()):
            if optional and block.texts is not None:
                self.lacking[name] += int((block.texts[:, column] == "").sum())
        if is_sparse(x):
            return
        filled = np.isnan(x)
        for name, view in model.views.items():
            if view.missing is not None and np.isin(view.columns, self._used).any():
                lacking = lacking_rows(x, view)
                self.lacking[name] += int(lacking.sum())
                if model.labels.classes is not None:
                    self.of_lacking[name].update(predictions[lacking].tolist())
                filled[np.ix_(lacking, np.array(view.columns))] = False
        self.n_filled += self._count(self.filled, filled[:, self._used])
        if model.ranges is not None:
            low, high = model.ranges[:, self._used]
            own = x[:, self._used]
            with np.errstate(over="ignore"):
                far = np.maximum(low - own, own - high) > high - low
            self.n_far += self._count(self.far, far)

    def _count(self, by_feature: Counter[int], found: Bools) -> int:
        """Count what was found by used feature, (r, u), and return in how many rows."""
        by_feature.update(dict(zip(self._used.tolist(), found.sum(axis=0).tolist(), strict=True)))
        return int(found.any(axis=1).sum())

    def notes(self, of_views: Mapping[str, int]) -> Iterator[str]:
        """Yield what is odd about the rows; `of_views` counts those without some views."""
        model, names = self.model, self.model.feature_names
        rows = pluralize(self.n_rows, "row")
        lacking = self.lacking | Counter(
            {name: of_views.get(name, 0) for name in (model.given.views if model.given else ())}
        )
        for name, count in lacking.items():
            if count:
                view = model.views.get(name)
                done = "its kernels are zero there"
                if view is not None and view.missing == "impute":
                    done = "its features are filled there, as in the fit"
                what, own = "column" if name in model.texts else "view", self.of_lacking[name]
                if own:
                    others = _words(self.counts - own)
                    done += f". Predicted there {_words(own)}; of the others {others}"
                yield f"{what} {name!r}: {count} of {rows} lack it; {done}"
        if self.n_filled:
            listed = [f"{names[c]!r} in {n}" for c, n in self.filled.most_common() if n]
            yield (
                f"{self.n_filled} of {rows} lack values, which are filled as in the fit: "
                f"{truncate(listed, SHOWN)}"
            )
        if self.n_far and model.ranges is not None:
            low, high = model.ranges
            listed = [
                f"{names[c]!r} in {n} ({low[c]:.4g} to {high[c]:.4g})"
                for c, n in self.far.most_common()
                if n
            ]
            yield (
                f"{self.n_far} of {rows} have values outside the range of the fit by more than its "
                f"width: {truncate(listed, SHOWN)}"
            )
        if self.n_less_probable and model.calibration is not None:
            found = f"{pluralize(self.n_less_probable, 'row')} predicted as another class than the"
            yield f"{found} most probable one: {_rule_of(model.calibration)}"

    def label_numbers(self, labels: Sequence[str], where: str) -> Array:
        """Return labels as real values or numbers of classes; refuse those that are none."""
        if self.model.labels.classes is None:
            return _real_values(labels, where)
        return _class_numbers(self.model, labels, where)

    def score(self, where: str) -> Score:
        """Return the score of all rows by their labels."""
        values, y = np.concatenate(self.values), self.label_numbers(self.labels, where)
        if self.model.labels.classes is None:
            return _score(self.model, regression_scores(values[:, 0], y), y, {})
        return _class_score(self.model, values, y)


def _class_score(model: Model, values: Floats, numbers: Ints) -> Score:
    """Return the score of decision values (n, k) for rows of these classes."""
    classes = [] if model.labels.classes is None else model.labels.classes.tolist()
    k = len(classes)
    place = {name: number for number, name in enumerate(classes)}
    predicted = np.array([place[one] for one in model.predictions(values).tolist()])
    found, arrays = pooled_scores([(values.T, numbers, predicted)], k)
    if model.calibration is not None:
        found |= probability_scores(model.calibration.probabilities(values), numbers)
    names = list(map(str, classes))
    table = arrays["confusion"].astype(int).tolist()
    confusion = {
        one: dict(zip(names, row, strict=True)) for one, row in zip(names, table, strict=True)
    }
    return _score(model, found, numbers, confusion)


def _score(
    model: Model, found: Mapping[str, float], labels: Array, confusion: dict[str, dict[str, int]]
) -> Score:
    """Return those of the scores that are metrics, beside those of a constant prediction."""
    classes, answers = model.labels.classes, model.labels.answers
    k, task = (0, "regression") if classes is None else (len(classes), "classification")
    values: dict[str, float] = {
        m.name: found[m.variable()] for m in metrics_of(task) if m.variable() in found
    }
    of_constant = {
        name: math.nan if math.isnan(value) else constant_score(name, answers, labels, k)
        for name, value in values.items()
    }
    return Score(values, of_constant, confusion)


def _class_numbers(model: Model, labels: Sequence[str], where: str) -> Ints:
    """Return the positions of labels among the classes of a model; refuse unknown ones."""
    classes = [] if model.labels.classes is None else model.labels.classes.tolist()
    place = {str(name): number for number, name in enumerate(classes)}
    called = {label: name_among(label, place) for label in set(labels)}
    texts = [called[label] for label in labels]
    others = place.get(REST) if len(classes) == 2 else None
    unknown = Counter(text for text in texts if text not in place)
    if unknown and (others is None or "" in unknown):
        listed = truncate([f"{text!r} in {n}" for text, n in unknown.most_common()], SHOWN)
        known = ", ".join(map(repr, map(str, classes)))
        rows = pluralize(sum(unknown.values()), "row")
        raise DataError(
            where, f"labels that the model does not know in {rows}: {listed}", known, CORRECT
        )
    return np.array([place.get(text, others) for text in texts], dtype=np.intp)


def _real_values(labels: Sequence[str], where: str) -> Floats:
    """Return labels as numbers; refuse others."""
    numbers = [finite_number(label) for label in labels]
    wrong = [label for label, number in zip(labels, numbers, strict=True) if number is None]
    if wrong:
        rows = pluralize(len(wrong), "row")
        listed = truncate([*dict.fromkeys(map(repr, wrong))], SHOWN)
        raise DataError(
            where, f"labels that are no numbers in {rows}: {listed}", "numbers", CORRECT
        )
    return np.array(numbers, dtype=np.float64)


def _rule_of(calibration: Calibrated) -> str:
    """Return what decides in place of the greatest probability."""
    if calibration.class_weights:
        weights = ", ".join(f"{one:.3g}" for one in calibration.class_weights)
        return f"the model multiplies the probabilities of the classes by {weights}"
    if len(calibration.curves) > 1:
        return "the greatest decision value decides"
    least = calibration.probability_at_threshold
    if math.isnan(least):
        return "the threshold of the model is beyond all decision values"
    return f"the threshold of the model is a probability of {least:.3g}, not 0.5"
