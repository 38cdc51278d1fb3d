"""`skm` where a kernel is nearly constant: the bound is the value of the predictor returned."""

from __future__ import annotations

import numpy as np
import pytest

import mkldist


@pytest.mark.parametrize(("offset", "C"), [(30.0, 1e3), (30.0, 1e4), (100.0, 1e2)])
def test_the_objective_is_that_of_the_predictor(offset, C):
    rng = np.random.default_rng(0)
    X = offset + rng.normal(size=(20, 4))
    K = (X @ X.T + 1.0) ** 3  # its entries agree in two digits or more
    y = np.sign(rng.normal(size=20))
    found = mkldist.solve("skm", K[None], y, C=C, tol=1e-2)
    a = found.coefficients
    hinge = np.maximum(0.0, 1.0 - y * (K @ a + found.bias)).sum()
    assert 0.5 * a @ K @ a + C * hinge == pytest.approx(found.objective, rel=1e-3)
