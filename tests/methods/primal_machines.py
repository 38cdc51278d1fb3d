"""Losses and machines of PrimalMKL on small instances, for its tests."""

import numpy as np
import pytest

from mkldist.methods.primalmkl import PrimalMKLParams, squared_loss
from mkldist.solvers.base import Counters
from mkldist.solvers.primal_newton import PrimalMachine
from mkldist.solvers.squared_losses import SquaredLoss
from tests.methods import instances
from tests.methods.references import real_values

LOSSES = ("squared-hinge", "squared", "epsilon-squared", "one-class")
INNERS = ("truncated-newton", "pcg", "newton")
every_loss = pytest.mark.parametrize("name", LOSSES)


def targets(name: str, instance: instances.Instance) -> np.ndarray:
    regression = name in ("squared", "epsilon-squared")
    return real_values(instance) if regression else instance.y


def loss_of(name: str, y: np.ndarray) -> SquaredLoss:
    return squared_loss(PrimalMKLParams(loss=name), y)


def machine(loss: SquaredLoss, lam: float, inner="newton", share=1e-20) -> PrimalMachine:
    return PrimalMachine(loss, lam, inner, share, Counters())


def differences(function, point: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Return central differences of a scalar or vector function, one row a coordinate."""
    rows = []
    for unit in np.eye(len(point)):
        up, down = function(point + step * unit), function(point - step * unit)
        rows.append((up - down) / (2 * step))
    return np.array(rows)
