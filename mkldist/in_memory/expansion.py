"""Decision functions apart from the bank that they were solved on: all that predictions need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.gram.cross_values import GROUP_BYTES
from mkldist.gram.predictor import RawPredictor
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.expansion_sums import expansion_sums, takes
from mkldist.kernels.kernel_list import KernelList

PART_BYTES = 2**20  # of the values of one kernel that are computed together
KERNELS_AT_ONCE = 16
MANY_VALUES = 2**26  # of kernels, beyond which loading compiled code costs less than it saves


@dataclass(frozen=True, eq=False)
class Expansion:
    """k decision functions on S kernels and s support points.

    ``f_c(x) = sum_m weights[m] sum_i coefficients[(m,) i, c] k_m(x, points[i]) + bias[c]``, with
    kernels as their functions define them: the weights contain the normalisation, the coefficients
    and the bias the centring.

    Parameters
    ----------
    kernels : KernelList
        The S kernels.
    index : (S,) intp
        Their places in the bank.
    cosine : bool
        True if kernels are scaled to unit self-similarities.
    points : (s, d) float64
        Support points, those whose coefficients are not all zero.
    weights : (S,) float64
        Weights of the kernels.
    coefficients : (s, k) or (S, s, k) float64
        Coefficients, shared by all kernels or of each kernel's own.
    bias : (k,) float64
        Intercepts.
    """

    kernels: KernelList
    index: Ints
    cosine: bool
    points: Floats
    weights: Floats
    coefficients: Floats
    bias: Floats

    @classmethod
    def of(
        cls, kernels: KernelList, cosine: bool, points: Floats, predictors: list[RawPredictor]
    ) -> Expansion:
        """Return the functions of a bank's predictors, which share kernels and weights.

        Parameters
        ----------
        kernels : KernelList
            All kernels of the bank.
        cosine : bool
            As above.
        points : (n, d) float64
            All points of the bank.
        predictors : list of RawPredictor
            The functions.
        """
        first = predictors[0]
        coefficients = np.stack([predictor.coefficients for predictor in predictors], axis=-1)
        used = coefficients.any(axis=-1)
        support = np.flatnonzero(used if used.ndim == 1 else used.any(axis=0))
        return cls(
            kernels.select(first.kernels),
            first.kernels,
            cosine,
            np.ascontiguousarray(points[support]),
            first.weights,
            np.ascontiguousarray(coefficients[..., support, :]),
            np.array([predictor.bias for predictor in predictors]),
        )

    def by_kernel(self, X: Floats) -> Floats:
        """Return the share of each kernel in the functions at points, without the bias.

        Parameters
        ----------
        X : (t, d) float64
            Points.

        Returns
        -------
        (t, S, k) float64
        """
        t, n_kernels, support = len(X), len(self.kernels), len(self.points)
        found = np.zeros((t, n_kernels, len(self.bias)))
        if n_kernels == 0 or support == 0:
            return found
        step = max(1, GROUP_BYTES // (8 * n_kernels * support))
        for start in range(0, t, step):
            rows = slice(start, start + step)
            values = evaluate(self.kernels, X[rows], self.points, cosine=self.cosine)
            shares = self.weights[:, None, None] * (values @ self.coefficients)
            found[rows] = shares.transpose(1, 0, 2)
        return found

    def in_units(self, centre: float, spread: float) -> Expansion:
        """Return the functions in other units: ``centre + spread * f``."""
        bias = centre + spread * self.bias
        return replace(self, coefficients=spread * self.coefficients, bias=bias)

    def values(self, X: Floats) -> Floats:
        """Return the functions at points (t, d), as (t, k).

        Many values are computed by a compiled loop.  Otherwise points are taken a few at a time, so
        that the kernels of one feature subset stay in the processor's cache between their
        evaluation and their products with the coefficients.
        """
        found = np.tile(self.bias, (len(X), 1))
        support = len(self.points)
        if not len(self.kernels) or not support:
            return found
        if len(X) * support * len(self.kernels) >= MANY_VALUES and self._suits_loop(X):
            found += expansion_sums(self.kernels, self.points, self.weights, self.coefficients, X)
            return found
        parts = self._parts
        largest = max(part.stop - part.start for part, _ in parts)
        rows_at_once = min(len(X), max(1, PART_BYTES // (8 * support)))
        memory = np.empty((largest, rows_at_once, support))
        for start in range(0, len(X), rows_at_once):
            rows = slice(start, min(start + rows_at_once, len(X)))
            for part, kernels in parts:
                out = memory[: len(kernels), : rows.stop - rows.start]
                values = evaluate(kernels, X[rows], self.points, cosine=self.cosine, out=out)
                for m, of_kernel in zip(range(part.start, part.stop), values, strict=True):
                    found[rows] += self.weights[m] * (of_kernel @ self._coefficients(m))
        return found

    def _suits_loop(self, X: Floats) -> bool:
        """Return True if the compiled loop evaluates these kernels at these points."""
        finite = bool(np.isfinite(X).all() and np.isfinite(self.points).all())
        return finite and not self.cosine and takes(self.kernels)

    @cached_property
    def _parts(self) -> tuple[tuple[slice, KernelList], ...]:
        """Kernels of one feature subset, which share their distances, a few at a time."""
        cut = [
            slice(start, min(start + KERNELS_AT_ONCE, run.stop))
            for run in self.kernels.runs()
            for start in range(run.start, run.stop, KERNELS_AT_ONCE)
        ]
        return tuple((part, self.kernels.select(part)) for part in cut)

    def _coefficients(self, kernel: int) -> Floats:
        """Return the coefficients (s, k) of a kernel."""
        return self.coefficients if self.coefficients.ndim == 2 else self.coefficients[kernel]
