"""Sweeps over numbers and texts in one bank, against scikit-learn's counts and a conic optimum."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import rbf_kernel

from tests.methods.instances import Instance
from tests.methods.references.simplex_svm import simplex_optimum
from tests.run.sweeps import records, run_here

N = 48
SWEEP = """
name = "texts"
tol = 1e-6
[[datasets]]
name = "proteins"
file = "t.csv"
texts = ["chain"]
[[datasets.views]]
name = "dna"
columns = ["chain"]
missing = "zero"
[splits]
repeats = 2
[preprocessing]
scale = "none"
[[banks]]
name = "mine"
normalisation = "none"
backend = "{backend}"
[[banks.kernels]]
function = "gaussian"
widths = 1
[[banks.kernels]]
function = "spectrum"
length = [1, 2]
features = "dna"
[[methods]]
name = "level"
C = 1
[outputs]
predictions = true
coefficients = true
"""


def write_table(folder: Path) -> np.ndarray:
    """Write points of a number and a text, which two lack; return their kernels, (3, n, n)."""
    rng = np.random.default_rng(5)
    y = rng.permutation(N) % 2
    x = np.round(rng.normal(size=N) + 0.5 * y, 3)
    chains = ["".join(rng.choice(list("abc"), 5)) + "ab" * 2 * one for one in y]
    chains[3] = chains[20] = ""
    rows = [f"{a},{b},{c}" for a, b, c in zip(x, chains, y, strict=True)]
    (folder / "t.csv").write_text("\n".join(["x,chain,label", *rows]) + "\n")
    grams = [rbf_kernel(x[:, None], gamma=0.5)]
    for length in (1, 2):
        counter = CountVectorizer(analyzer="char", ngram_range=(length, length))
        counts = counter.fit_transform(chains)
        grams.append((counts @ counts.T).toarray())
    return np.array(grams)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["memory", "mmap", "stream", "recompute"])
def test_a_bank_of_numbers_and_texts_is_learnt_from_and_predicts(
    backend: str, tmp_path: Path, scheduler: str | None
) -> None:
    grams = write_table(tmp_path)
    outcome = run_here(SWEEP.format(backend=backend), tmp_path / "results", scheduler)
    found = list(records(outcome.path).values())
    assert len(found) == 2
    for record in found:
        assert record.state == "complete"
        train, test = record.train_rows, record.test_rows
        own = grams[:, train[:, None], train]
        combined = np.einsum("m,mij->ij", record.kernel_weights, grams)
        values = combined[test[:, None], train] @ record.coefficients + record.bias
        np.testing.assert_allclose(record.decision_values, values, rtol=1e-8, atol=1e-8)
        labels = np.loadtxt(tmp_path / "t.csv", delimiter=",", skiprows=1, usecols=2)
        signs = np.where(labels[train] > 0, 1.0, -1.0)
        optimum = simplex_optimum(Instance("texts", own, signs, 1.0), signs, {"C": 1.0})
        assert record.dual_objective <= optimum * (1 + 1e-6)
        assert record.objective >= optimum * (1 - 1e-6)
        assert record.gap <= 1e-6
