"""The weight step of LapMKL: gradient and second-order model by differences."""

from __future__ import annotations

import numpy as np
import pytest

from mkldist.core.counters import Counters
from mkldist.methods.deformed import Deformation
from mkldist.methods.lapmkl import SharedMachine, kernel_forms, value_model
from mkldist.solvers.squared_losses import squared_hinge
from tests.methods import instances, plain_bank
from tests.methods.references.manifold import heat_laplacian, some_labels


def visited(instance, d):
    """Return the machine, its point at weights d, and the pass over all kernels there."""
    y, L = some_labels(instance), heat_laplacian(instance.grams)
    labelled = np.flatnonzero(y)
    norms = Deformation(L, 0.5, 2e-2, labelled)
    machine = SharedMachine(norms, squared_hinge(y[labelled]), 1e-20, Counters())
    K, R = plain_bank.run(machine.matrices(d, len(y)), instance.grams)
    at = machine.minimum(d, K, R, np.zeros(len(labelled)))
    r = machine.loss.feasible(at.r)
    return machine, at, plain_bank.run(kernel_forms(at, r, norms), instance.grams)


def test_model_of_the_weights_is_the_second_derivative_of_the_value_function():
    instance = instances.not_normalised()
    d = np.array([0.4, 0.3, 0.2, 0.1])
    machine, at, forms = visited(instance, d)
    assert len(forms.columns.kernels) == 4
    step, slopes = 1e-5, []
    for m, unit in enumerate(np.eye(4)):
        up, down = (visited(instance, d + s * unit) for s in (step, -step))
        slope = (up[1].value - down[1].value) / (2 * step)
        assert forms.gradient[m] == pytest.approx(slope, rel=1e-5)
        slopes.append((up[2].gradient - down[2].gradient) / (2 * step))
    model = plain_bank.run(value_model(at, forms.columns, machine), instance.grams)
    # W from its definition, for the part of the Hessian that the model leaves out.
    right = machine.norms.spread(at.r, 30)
    L = 2e-2 * heat_laplacian(instance.grams)
    W = np.array([K @ (0.5 * at.alpha + L @ K @ at.alpha - right) for K in instance.grams])
    left_out = W @ np.linalg.pinv(at.R, rcond=1e-13) @ W.T
    np.testing.assert_allclose(model.B.T @ model.B - left_out, slopes, rtol=1e-3, atol=1e-5)
