"""Decision values at points outside a bank, from kernels between them and the bank's points.

A bank holds no new points, so their kernel values are computed or read here, for the kernels of
non-zero weight alone, and a few megabytes at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.errors import GramError
from mkldist.gram.predictor import RawPredictor, raw_predictors
from mkldist.gram.view import BankView

GROUP_BYTES = 32 * 2**20  # of kernel values that are in memory together

Values = Callable[[Ints, Ints | slice], Iterator[Floats]]
"""Function that yields the (t, s) values of each of the given kernels, in order.

They are those between t new points and some of the n points of the bank.
"""

ALL = slice(None)


def combined(values: Values, kernels: Ints, weights: Floats, shape: tuple[int, int]) -> Floats:
    """Return the weighted sum of kernels between t new points and n points of the bank.

    Parameters
    ----------
    values : callable
        Source of the values of kernels.
    kernels : (S,) intp
        Indices of the kernels.
    weights : (S,) float64
        Their weights.
    shape : (int, int)
        Numbers t and n.
    """
    total = np.zeros(shape)
    for group in _groups(len(kernels), total.nbytes):
        for weight, of_kernel in zip(weights[group], values(kernels[group], ALL), strict=True):
            total += weight * of_kernel
    return total


def sum_of_expansions(values: Values, predictor: RawPredictor, shape: tuple[int, int]) -> Floats:
    """Return the sum of expansions with coefficients of each kernel's own, (t,).

    Kernels are evaluated at the points where their coefficients are not zero.

    Parameters
    ----------
    values : callable
        Source of the values of kernels.
    predictor : RawPredictor
        The function, whose coefficients are (S, n).
    shape : (int, int)
        Numbers t and n.
    """
    total = np.full(shape[0], predictor.bias)
    for run, support in _runs_of_equal_support(predictor.coefficients):
        own = predictor.coefficients[run, support]
        kernels, weights = predictor.kernels[run], predictor.weights[run]
        for group in _groups(len(kernels), 8 * shape[0] * own.shape[1]):
            parts = zip(weights[group], values(kernels[group], support), own[group], strict=True)
            for weight, of_kernel, coefficients in parts:
                total += weight * (of_kernel @ coefficients)
    return total


def _runs_of_equal_support(coefficients: Floats) -> Iterator[tuple[slice, Ints | slice]]:
    """Yield successive kernels that share the points of non-zero coefficients, and these points.

    Parameters
    ----------
    coefficients : (S, n) float64
        Coefficients of each kernel.
    """
    used = coefficients != 0.0
    ends = np.flatnonzero((used[1:] != used[:-1]).any(axis=1)) + 1
    for start, stop in pairwise([0, *ends.tolist(), len(used)]):
        if stop > start and used[start].any():
            yield slice(start, stop), ALL if used[start].all() else np.flatnonzero(used[start])


def _groups(n_kernels: int, bytes_each: int) -> Iterator[slice]:
    """Cut kernels into groups whose values fit in memory together."""
    step = max(1, GROUP_BYTES // max(1, bytes_each))
    for start in range(0, n_kernels, step):
        yield slice(start, start + step)


@dataclass(frozen=True, eq=False)
class NewPoints:
    """Points outside a bank, at which decision functions are evaluated.

    Parameters
    ----------
    view : BankView
        The bank as solvers saw it.
    n_points : int
        Number of the new points.
    values : callable
        Function that takes indices of kernels, a slice of the new points and some of the view's
        points, and yields the (t, s) values of each kernel between these, as stored in the bank:
        without the normalisation of the view.
    """

    view: BankView
    n_points: int
    values: Callable[[Ints, slice, Ints | slice], Iterator[Floats]]

    def __len__(self) -> int:
        return self.n_points

    def __repr__(self) -> str:
        """Return the numbers of points and kernels, without arrays."""
        return f"<{self.n_points} new points, {self.view.n_kernels} kernels>"

    def decision_values(
        self, kernel_weights: Floats, coefficients: Floats, bias: float | Floats
    ) -> Floats:
        """Evaluate decision functions, a few new points and kernels at a time.

        Parameters
        ----------
        kernel_weights : (M,) float64
            Weights of the view's kernels.
        coefficients : (n,), (n, k), (S, n) or (S, n, k) float64
            Expansion coefficients, shared by all kernels or of each kernel of non-zero weight.
        bias : float or (k,) float64
            Intercepts, one for each function.

        Returns
        -------
        (n_points,) or (n_points, k) float64

        Raises
        ------
        mkldist.errors.GramError
            If the functions are of another bank.
        """
        n = self.view.n_points
        if len(kernel_weights) != self.view.n_kernels or n not in coefficients.shape[:2]:
            raise GramError(
                "grams_test",
                f"points for a bank of {self.view.n_kernels} kernels on {n} points",
                f"points for the {len(kernel_weights)} kernels of the solution",
                "Call the method on() of the bank that was solved",
            )
        predictors = raw_predictors(self.view, kernel_weights, coefficients, bias)
        found = np.empty((self.n_points, len(predictors)))
        step = max(1, GROUP_BYTES // (8 * n))
        for start in range(0, self.n_points, step):
            points = slice(start, min(start + step, self.n_points))
            self._evaluate(predictors, points, found[points])
        return found if np.ndim(bias) else found[:, 0]

    def _evaluate(self, predictors: list[RawPredictor], points: slice, out: Floats) -> None:
        """Write the values of functions of equal kernel weights at some points to `out`, (t, k)."""

        def values(kernels: Ints, support: Ints | slice) -> Iterator[Floats]:
            return self.values(kernels, points, support)

        shape, first = (len(out), self.view.n_points), predictors[0]
        if first.coefficients.ndim == 1:
            sums = combined(values, first.kernels, first.weights, shape)
            for column, predictor in zip(out.T, predictors, strict=True):
                column[:] = sums @ predictor.coefficients + predictor.bias
        else:
            for column, predictor in zip(out.T, predictors, strict=True):
                column[:] = sum_of_expansions(values, predictor, shape)
