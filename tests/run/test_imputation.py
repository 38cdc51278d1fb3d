"""Missing values in a sweep: filled from the rows that a method may see, and from no other."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from sklearn.impute import SimpleImputer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mkldist.data.snapshot import load_snapshot
from tests.run.sweeps import records, run_here
from tests.variants import quick

WIDTH = 1.5
SWEEP = f"""
name = "gaps"
[[datasets]]
name = "gaps"
file = "gaps.csv"
label = "ill"
impute = "{{impute}}"
[preprocessing]
fit = "{{fit}}"
[splits]
repeats = 2
[[banks]]
normalisation = "none"
kernels = [{{{{ function = "gaussian", widths = [{WIDTH}] }}}}]
[[methods]]
name = "uniform"
C = 10
[outputs]
predictions = true
coefficients = true
"""


def write_gaps(folder: Path) -> None:
    """Write 60 points of three skewed features, of which every seventh value is missing."""
    rng = np.random.default_rng(3)
    x = np.round(rng.exponential(size=(60, 3)), 1)
    ill = np.where(x.sum(axis=1) + rng.normal(size=60) > 3, "yes", "no")
    x.ravel()[::7] = np.nan
    rows = [",".join("" if np.isnan(v) else f"{v}" for v in row) for row in x]
    lines = [f"{row},{word}" for row, word in zip(rows, ill, strict=True)]
    (folder / "gaps.csv").write_text("\n".join(["a,b,c,ill", *lines]) + "\n")


@pytest.mark.parametrize("fit", ["train", "all"])
@pytest.mark.parametrize("impute", quick(["median", "mean", "most_frequent"]))
def test_decision_values_are_those_of_imputers_fitted_on_the_same_rows(
    fit, impute, tmp_path, scheduler
):
    write_gaps(tmp_path)
    text, said = SWEEP.format(fit=fit, impute=impute), StringIO()
    outcome = run_here(text, tmp_path / "out", scheduler, console=lambda: Console(file=said))
    assert "26 of 60 rows miss values in 3 columns: filled with the" in said.getvalue()
    [path] = (outcome.path / "snapshots").iterdir()
    x = np.genfromtxt(tmp_path / "gaps.csv", delimiter=",", skip_header=1, usecols=(0, 1, 2))
    _, splits = load_snapshot(path)
    found = records(outcome.path).values()
    assert sorted(record.split for record in found) == [0, 1]
    for record in found:
        fitted = splits[record.split].train if fit == "train" else slice(None)
        assert np.isnan(x[record.test_rows]).any()
        prepared = make_pipeline(SimpleImputer(strategy=impute), StandardScaler())
        points = prepared.fit(x[fitted]).transform(x)
        test, train = points[record.test_rows], points[record.train_rows]
        kernel = rbf_kernel(test, train, gamma=1 / (2 * WIDTH**2))
        values = kernel @ record.coefficients * record.kernel_weights[0] + record.bias
        np.testing.assert_allclose(record.decision_values, values, rtol=1e-10, atol=1e-10)
