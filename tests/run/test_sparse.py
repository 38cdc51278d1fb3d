"""A sweep over sparse features, against the same sweep over dense ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.datasets import dump_svmlight_file

from tests.run.sweeps import records, run_here

POINTS = csr_array(random_array((60, 40), density=0.1, rng=np.random.default_rng(0)))
SWEEP = """
name = "sparse"
tol = 1e-6
[[datasets]]
name = "wide"
file = "wide.svm"
{sparse}
[preprocessing]
scale = "none"
[splits]
repeats = 2
[[banks]]
normalisation = "cosine"
kernels = [{{ function = "gaussian", widths = [1, 3], features = ["all", "f1"] }},
           {{ function = "polynomial", degrees = 2 }}, {{ function = "linear" }}]
[[methods]]
name = "level"
C = 1
[outputs]
predictions = true
"""


@pytest.mark.parametrize("scale", ["none", "tfidf"])
@pytest.mark.slow
def test_a_sweep_over_sparse_features_equals_one_over_dense_ones(
    scale: str, tmp_path: Path, scheduler
):
    y = np.where(POINTS.sum(axis=1) > np.median(POINTS.sum(axis=1)), 1, -1)
    dump_svmlight_file(POINTS, y, str(tmp_path / "wide.svm"), zero_based=False)
    found = {}
    for key in ("sparse = true", ""):
        text = SWEEP.format(sparse=key).replace('scale = "none"', f'scale = "{scale}"')
        outcome = run_here(text, tmp_path / (key[:6] or "dense"), scheduler)
        found[key] = sorted(records(outcome.path).values(), key=lambda record: record.split)
    for sparse, dense in zip(*found.values(), strict=True):
        assert sparse.objective == pytest.approx(dense.objective, rel=1e-6)
        np.testing.assert_array_equal(sparse.test_rows, dense.test_rows)
        np.testing.assert_allclose(sparse.decision_values, dense.decision_values, atol=1e-3)
