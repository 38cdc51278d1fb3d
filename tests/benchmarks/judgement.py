"""Errors, AUC and processor time of the defaults beside those of scikit-learn, on public tables.

``python -m tests.benchmarks judgement judgement-sweep --data-dir DIR``.  Without a folder, the
tables are those of scikit-learn alone.
"""

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    ShuffleSplit,
    StratifiedShuffleSplit,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import mkldist
from tests.benchmarks.measuring import Measured, named

ROWS_OF_LARGE = 1000  # drawn in proportion, of tables that have more
BUNDLED = {
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
}
FILES = (
    "german", "heart", "ionosphere", "liver", "pima", "sonar", "spambase", "splice_dna180",
    "thyroid", "vote",
)  # fmt: skip
SPLITS, SPLITS_OF_SWEEPS = 10, 2
PR_SET_CHILD_SUBREAPER = 36  # of <linux/prctl.h>
CV, GRID, SWEEP = "MKLClassifierCV", "SVC, grid", "init, sweep, fit"
NESTED = "SVC, nested grid"  # what a sweep answers too: a model, and its error on five test parts


@dataclass(frozen=True)
class Outcome:
    """Error and AUC on the test part, in percent, and seconds of processors."""

    error: float
    auc: float
    cpu: float


Fitted = tuple[np.ndarray, np.ndarray]  # classes (t,), and decision values (t,) or (t, k)
Model = Callable[[np.ndarray, np.ndarray, np.ndarray], Fitted]
"""Learns from rows and labels; returns what it says of other rows."""


def tables(data_dir: Path | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the name, features and labels of each table."""
    for name, load in BUNDLED.items():
        yield name, *_part(*load(return_X_y=True))
    for name in FILES if data_dir else ():
        [file] = [f for f in data_dir.iterdir() if f.name.split(".")[0] == name]
        table = pd.read_csv(file)
        yield name, *_part(table.drop(columns="label").to_numpy(float), table["label"].to_numpy())


def _part(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if len(y) > ROWS_OF_LARGE:
        x, _, y, _ = train_test_split(x, y, train_size=ROWS_OF_LARGE, stratify=y, random_state=0)
    return x, np.array([f"c{label}" for label in np.unique(y, return_inverse=True)[1]])


def estimator(make: Callable[[int], Any]) -> Model:
    """Return the model of an estimator, made for a number of features."""

    def learn(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> Fitted:
        model = make(x.shape[1]).fit(x, y)
        decide = getattr(model, "decision_function", None) or model.predict_proba
        return model.predict(new), decide(new)

    return learn


def swept(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> Fitted:
    """Learn by the commands that a beginner calls: init, sweep and fit."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "d.model"
        table = pd.DataFrame(x).add_prefix("x").assign(label=y)
        table.to_csv(model.with_suffix(".csv"), index=False)
        adopt_orphans()  # the workers of a sweep, so that their time counts
        for words in ("init d.csv --label label", "sweep d.toml", "fit d.toml"):
            command = [sys.executable, "-m", "mkldist", *words.split()]
            subprocess.run(command, check=True, cwd=folder, capture_output=True)
        with suppress(ChildProcessError):
            while True:
                os.wait()
        fitted = mkldist.load_model(model)
        decided = fitted.decision_function(new)
        order = np.argsort(fitted.labels.classes)  # the model's second class is the rarer one
        decided = decided * (order[1] - order[0]) if decided.ndim == 1 else decided[:, order]
        return fitted.predict(new), decided


def adopt_orphans() -> None:
    """Become the parent of the processes whose own parents end before them, on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def grid(d: int) -> GridSearchCV:
    """Return a support vector machine with 36 pairs of a width and a C, and five folds."""
    pairs = {"svc__gamma": np.geomspace(0.01, 10.0, 6) / d, "svc__C": np.geomspace(0.1, 1000.0, 6)}
    return GridSearchCV(make_pipeline(StandardScaler(), SVC()), pairs)


def nested(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> Fitted:
    """Learn by a grid on all rows, after grids on the training parts of five splits."""
    cross_val_score(grid(x.shape[1]), x, y, cv=ShuffleSplit(5, test_size=0.3, random_state=0))
    return MODELS[GRID](x, y, new)


def logistic(_: int) -> Any:
    """Return a logistic regression with a C of its own choice."""
    own = {"l1_ratios": (0.0,), "scoring": "accuracy", "use_legacy_attributes": False}
    return make_pipeline(StandardScaler(), LogisticRegressionCV(max_iter=1000, **own))


MODELS: dict[str, Model] = {
    "MKLClassifier": estimator(lambda _: mkldist.MKLClassifier()),
    CV: estimator(lambda _: mkldist.MKLClassifierCV()),
    GRID: estimator(grid),
    "HistGradientBoosting": estimator(lambda _: HistGradientBoostingClassifier(random_state=0)),
    "LogisticRegressionCV": estimator(logistic),
}


def outcome(
    model: Model, x: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray
) -> Outcome:
    """Return what a model reaches on the test part of a split."""
    started = _seconds()
    classes, values = model(x[train], y[train], x[test])
    cpu = _seconds() - started
    truth = y[test][:, None] == np.unique(y)
    if values.ndim == 1:
        values = np.stack([-values, values], axis=1)
    auc = roc_auc_score(truth[:, 1] if truth.shape[1] == 2 else truth,
                        values[:, 1] if truth.shape[1] == 2 else values)  # fmt: skip
    return Outcome(100.0 * float((classes != y[test]).mean()), 100.0 * float(auc), cpu)


def _seconds() -> float:
    """Return the seconds of processors of this process and its children so far."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def compared(
    models: Mapping[str, Model], data_dir: Path | None, n_splits: int
) -> Iterator[tuple[str, int, str, Outcome]]:
    """Yield the outcome of each model on each split of each table."""
    for name, x, y in tables(data_dir):
        splits = StratifiedShuffleSplit(n_splits, test_size=0.3, random_state=0).split(x, y)
        for number, (train, test) in enumerate(splits):
            for label, model in models.items():
                with mkldist.set_bank_cache(0):  # each makes its own kernels
                    found = outcome(model, x, y, train, test)
                yield name, number, label, found


def frame(found: Iterator[tuple[str, int, str, Outcome]]) -> pd.DataFrame:
    """Return outcomes as a table with a row for each."""
    rows = [(*place, one.error, one.auc, one.cpu) for *place, one in found]
    return pd.DataFrame(rows, columns=["table", "split", "model", "error", "auc", "cpu"])


def worse(found: pd.DataFrame, ours: str) -> list[str]:
    """Return the tables on which ours errs more than the grid by over a paired standard error."""
    errors = found.pivot(index=["table", "split"], columns="model", values="error")
    by_table = (errors[ours] - errors[GRID]).groupby("table", sort=False)
    means, sems = by_table.mean(), by_table.sem().fillna(0.0)
    return means.index[means > sems + 1e-9].tolist()


def report(found: pd.DataFrame) -> Iterator[Measured]:
    """Print means by table, and yield a line for each model."""
    nested_cpu = found.loc[found["model"] == NESTED, "cpu"].sum()
    found = found[found["model"] != NESTED]  # whose predictions are the grid's
    labels = list(dict.fromkeys(found["model"]))
    for measure, words in (("error", "error, %"), ("auc", "AUC, %"), ("cpu", "CPU, s")):
        means = found.pivot_table(measure, "table", "model", sort=False)[labels]
        click.echo(f"\n{words}, mean of {found['split'].nunique()} splits")
        click.echo(means.round(2).to_string())
    means = found.pivot_table("error", "table", "model", sort=False)[labels]
    ranks = rankdata(means.to_numpy().round(6), axis=1).mean(axis=0)
    of_auc = found.pivot_table("auc", "table", "model", sort=False)[labels]
    auc_ranks = rankdata(-of_auc.to_numpy().round(6), axis=1).mean(axis=0)
    cpu = found.groupby("model")["cpu"].sum()
    for label, rank, auc_rank in zip(labels, ranks, auc_ranks, strict=True):
        note = f"error {means[label].mean():.2f} %, AUC {of_auc[label].mean():.2f} %, rank by it "
        note += f"{auc_rank:.2f}, CPU {cpu[label] / cpu[GRID]:.2f} of the grid's"
        if nested_cpu and label == SWEEP:
            note += f", {cpu[label] / nested_cpu:.2f} of the nested grid's"
        if label != GRID:
            note += f"; behind the grid on {', '.join(worse(found, label)) or 'none'}"
        ours = label in (CV, SWEEP)
        reach = "the best" if ours else ""
        yield Measured(f"mean rank of {label}", rank, reach, unit="", note=note)


def judgement(data_dir: Path | None) -> Iterator[Measured]:
    """Compare the estimators on ten splits."""
    yield from report(frame(compared(MODELS, data_dir, SPLITS)))


def judgement_sweep(data_dir: Path | None) -> Iterator[Measured]:
    """Compare the sweep that ``mkldist init`` writes, and the model of its fit, on two splits."""
    models = {SWEEP: swept, CV: MODELS[CV], GRID: MODELS[GRID], NESTED: nested}
    yield from report(frame(compared(models, data_dir, SPLITS_OF_SWEEPS)))


ROWS = named(judgement, judgement_sweep)
