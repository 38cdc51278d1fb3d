"""A sweep over views of three files, which points may lack, against matrices made by hand."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.data.snapshot import load_snapshot
from tests.methods.instances import Instance
from tests.methods.references.simplex_svm import simplex_optimum
from tests.run.sweeps import records, run_here

N = 60
SWEEP = """
name = "views"
tol = 1e-6
[[datasets]]
name = "patients"
file = "clinical.csv"
label = "ill"
id = "patient"
impute = "mean"
[[datasets.views]]
name = "clinical"
[[datasets.views]]
name = "genes"
file = "genes.csv"
missing = "zero"
[[datasets.views]]
name = "strings"
grams = "strings.npz"
missing = "zero"
[splits]
repeats = 2
[[banks]]
name = "mine"
normalisation = "{normalisation}"
backend = "{backend}"
[[banks.kernels]]
function = "gaussian"
widths = [1, 3]
features = "views"
[[banks.kernels]]
function = "precomputed"
features = "strings"
[[methods]]
name = "level"
C = {C}
[outputs]
predictions = true
coefficients = true
"""


def write_views(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Write three views in different orders; return their values in the order of the patients.

    A quarter of the patients have no genes and another quarter no string; some cells are missing.
    """
    rng = np.random.default_rng(11)
    y = np.where(rng.random(N) < 0.5, 1.0, -1.0)
    names = np.array([f"p{i:02d}" for i in range(N)])
    clinical = np.round(rng.normal(size=(N, 2)) + 0.5 * y[:, None], 2)
    clinical[[3, 30], 1] = np.nan
    genes = np.round(rng.normal(size=(N, 5)), 2)
    genes[:, 0] += y
    genes[4, 2] = np.nan
    genes[rng.permutation(N)[:15]] = np.nan
    factors = rng.normal(size=(N, 3))
    factors[:, 0] += y
    has_string = np.ones(N, dtype=bool)
    has_string[rng.permutation(N)[:15]] = False
    strings = (factors @ factors.T) * np.outer(has_string, has_string)

    def line(*values: object) -> str:
        return ",".join("" if str(value) == "nan" else str(value) for value in values)

    words = np.where(y > 0, "yes", "no")
    lines = [line(*row) for row in zip(names, *clinical.T, words, strict=True)]
    (folder / "clinical.csv").write_text("\n".join(["patient,age,bmi,ill", *lines, ""]))
    order = [i for i in rng.permutation(N) if not np.isnan(genes[i]).all()]
    lines = [line(names[i], *genes[i]) for i in order]
    (folder / "genes.csv").write_text(
        "\n".join(["patient,a,b,c,d,e", *lines, "other,1,2,3,4,5", ""])
    )
    own = rng.permutation(np.flatnonzero(has_string))
    np.savez(folder / "strings.npz", grams=strings[np.ix_(own, own)], ids=names[own])
    return clinical, genes, strings


def prepared(x: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Impute single cells by the mean and scale, by the training points that have the view."""
    absent = np.isnan(x).all(axis=1)
    x = np.where(np.isnan(x) & ~absent[:, None], np.nanmean(x[train], axis=0), x)
    own = x[train][~absent[train]]
    return (x - own.mean(axis=0)) / own.std(axis=0)


def grams_by_hand(
    views: tuple[np.ndarray, ...], train: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the five Gram matrices of all patients, and which patients have which."""
    clinical, genes, strings = views
    grams, has = [], []
    for x in (clinical, genes):
        points = prepared(x, train)
        present = ~np.isnan(points).any(axis=1)
        for width in (1.0, 3.0):
            gram = rbf_kernel(np.nan_to_num(points), gamma=0.5 / width**2)
            grams.append(gram * np.outer(present, present))
            has.append(present)
    return np.array([*grams, strings]), np.array([*has, np.diag(strings) > 0])


def normalised(
    grams: np.ndarray, has: np.ndarray, train: np.ndarray, how: str
) -> tuple[np.ndarray, np.ndarray]:
    """Fix the mean of k(x, x), or the variance, over training patients who have the view."""
    factors = []
    for gram, present in zip(grams, has, strict=True):
        own = train[present[train]]
        mean = np.diag(gram)[own].mean()
        if how == "variance":
            factors.append(1.0 / (mean - gram[np.ix_(own, own)].mean()))
        else:
            factors.append(1.0 / (len(train) * mean))
    return np.array(factors)[:, None, None] * grams, np.array(factors)


@pytest.mark.parametrize(
    ("normalisation", "backend", "C"), [("trace", "auto", 50.0), ("variance", "recompute", 1.0)]
)
def test_a_sweep_over_views_solves_the_problem_of_explicit_matrices(
    normalisation, backend, C, tmp_path, scheduler
):
    views, said = write_views(tmp_path), StringIO()
    text = SWEEP.format(normalisation=normalisation, backend=backend, C=C)
    outcome = run_here(
        text, tmp_path / "out", scheduler, console=lambda: Console(file=said, width=200)
    )
    assert (
        "genes, 5 features; 15 of 60 points lack it: its kernels are zero there" in said.getvalue()
    )
    assert "1 of its 46 rows are not in the data set and left out (other)" in said.getvalue()
    [path] = (outcome.path / "snapshots").iterdir()
    dataset, splits = load_snapshot(path)
    found = records(outcome.path).values()
    assert len(found) == 2
    for record in found:
        train, test = splits[record.split].train, splits[record.split].test
        grams, has = grams_by_hand(views, train)
        scaled, _ = normalised(grams, has, train, normalisation)
        own = scaled[:, train[:, None], train]
        y = dataset.y[train]
        optimum = simplex_optimum(Instance("views", own, y, C), y, {"C": C})
        assert record.dual_objective <= optimum * (1 + 1e-6)
        assert record.objective == pytest.approx(optimum, rel=1e-5)
        weights = np.zeros(5)
        weights[record.kernels] = record.weights
        between = np.einsum("m,mij->ij", weights, scaled[:, test[:, None], train])
        values = between @ record.coefficients + record.bias
        np.testing.assert_allclose(record.decision_values, values, rtol=1e-8, atol=1e-10)
        assert (~has[:, test]).any()
