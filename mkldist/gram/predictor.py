"""Decision functions in terms of stored kernels, and their values at the points of a bank."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.gram.passes import answered
from mkldist.gram.requests import Combine, Matvec, Request
from mkldist.gram.view import BankView
from mkldist.optim.factored_matrix import FactoredMatrix


@dataclass(frozen=True, eq=False)
class RawPredictor:
    """A decision function on kernels as the bank stores them, without any normalisation.

    ``f(x) = sum_s weights[s] sum_i coefficients[i] k_kernels[s](x, x_i) + bias``

    Parameters
    ----------
    kernels : (S,) intp
        Indices of the kernels of non-zero weight.
    weights : (S,) float64
        Their weights.
    coefficients : (n,) or (S, n) float64
        Expansion coefficients of the view's points: one vector, or one per kernel.
    bias : float
        Intercept.
    """

    kernels: Ints
    weights: Floats
    coefficients: Floats
    bias: float


def raw_predictor(
    view: BankView, kernel_weights: Floats, coefficients: Floats, bias: float
) -> RawPredictor:
    """Return the decision function of a view's kernels in terms of the kernels as stored.

    Centring is linear in a row of kernel values.  It is therefore moved into the coefficients,
    ``c -> Hc``, and into the bias, for which the active kernels are combined.

    Parameters
    ----------
    view : BankView
        The view.
    kernel_weights : (M,) float64
        Weights of the view's kernels.
    coefficients : (n,) or (S, n) float64
        Expansion coefficients: one vector, or one per kernel of non-zero weight.
    bias : float
        Intercept.
    """
    kept = np.flatnonzero(kernel_weights)
    if coefficients.ndim == 2:  # kernels that vanish on the view's points are dropped
        coefficients = coefficients[view.scale[kept] != 0.0]
    weights = kernel_weights * view.scale
    kernels = np.flatnonzero(weights)
    raw = RawPredictor(kernels, weights[kernels], coefficients, bias)
    if not view.centred:
        return raw
    centred = coefficients - coefficients.mean(axis=-1, keepdims=True)
    raw = replace(raw, coefficients=centred, bias=0.0)
    points = slice(None) if view.index is None else view.index
    (values,) = answered(view.bank, bank_values(view, [raw]))
    return replace(raw, bias=bias - float(values[points].mean()))


def raw_predictors(
    view: BankView, kernel_weights: Floats, coefficients: Floats, bias: float | Floats
) -> list[RawPredictor]:
    """Return the decision functions of a solver in terms of the kernels as stored, one a class.

    Parameters
    ----------
    view : BankView
        The view that the solver was given.
    kernel_weights : (M,) float64
        Weights of the view's kernels.
    coefficients : (n,) or (S, n) float64; (n, k) or (S, n, k) for k classes
        Expansion coefficients, shared by all kernels or of each kernel of non-zero weight.
    bias : float or (k,) float64
        Intercepts.
    """
    if np.ndim(bias) == 0:
        return [raw_predictor(view, kernel_weights, coefficients, float(bias))]
    return [
        raw_predictor(view, kernel_weights, coefficients[..., c], float(of_class))
        for c, of_class in enumerate(np.asarray(bias))
    ]


def bank_values(
    view: BankView, predictors: Sequence[RawPredictor]
) -> Generator[Request, Any, Floats]:
    """Request from the bank the values of decision functions at all of its points.

    Parameters
    ----------
    view : BankView
        View over whose points the functions are expansions.
    predictors : sequence of RawPredictor
        The functions.  Neighbours with equal weights share a combination of kernels.

    Yields
    ------
    Combine, Matvec
        Requests for kernels as the bank stores them.

    Returns
    -------
    (len(predictors), N) float64
    """
    values = np.empty((len(predictors), view.bank.n_points))
    before: RawPredictor | None = None
    combined: Floats | FactoredMatrix = np.empty((0, 0))
    for row, predictor in zip(values, predictors, strict=True):
        row[:] = predictor.bias
        padded = view.padded(predictor.coefficients.T)
        if padded.ndim == 2:
            for s, kernel in enumerate(predictor.kernels):
                product = yield Matvec(np.array([kernel]), np.ascontiguousarray(padded[:, s]))
                row += predictor.weights[s] * product[0]
            continue
        if not len(predictor.kernels):
            continue
        if before is None or not _equal_weights(before, predictor):
            dense = np.zeros(view.n_kernels)
            dense[predictor.kernels] = predictor.weights
            combined, before = (yield Combine(dense, thin=True)), predictor
        row += combined @ padded
    return values


def _equal_weights(one: RawPredictor, other: RawPredictor) -> bool:
    return np.array_equal(one.kernels, other.kernels) and np.array_equal(one.weights, other.weights)
