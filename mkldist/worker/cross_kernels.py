"""Kernel values between test points and training points, and decision values at the test points.

A bank holds no test points, so their kernel values are computed here, for the active kernels alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.gram.bank_kernels import part_of_gram
from mkldist.gram.cross_values import combined, sum_of_expansions
from mkldist.gram.predictor import RawPredictor
from mkldist.identity import array_id
from mkldist.worker.bank_inputs import BankInputs, TrainingView

LARGEST_BYTES = 2**28  # of a combination of kernels between all test points and all training rows
BLOCK_BYTES = 2**25  # of the values of a kernel, where no combination is made


@dataclass(eq=False)
class CrossKernels:
    """Kernels between the test points of a split and the training rows of a view of it.

    The last combination of kernels is kept: runs of equal kernel weights, such as those of a
    baseline along a grid of C, compute it once.  One that is too large is never made.

    Parameters
    ----------
    inputs : BankInputs
        Points and kernels of the bank.
    training_view : TrainingView
        The split, and the rows that decision functions are expansions over.
    """

    inputs: BankInputs
    training_view: TrainingView
    _key: str = field(init=False, default="")
    _combined: Floats | None = field(init=False, default=None)

    @property
    def test_rows(self) -> Ints:
        """Rows of the data set that are test points, (t,)."""
        return self.inputs.splits[self.training_view.split].test

    @property
    def training_rows(self) -> Ints:
        """Rows of the data set that are training points, (n,)."""
        return self.inputs.training_rows(self.training_view)

    @property
    def _shape(self) -> tuple[int, int]:
        """Numbers of test points and of training rows."""
        return len(self.test_rows), len(self.training_rows)

    @property
    def n_bytes(self) -> int:
        """Bytes of the combination that is kept for the next run."""
        return 0 if self._combined is None else self._combined.nbytes

    def decision_values(self, predictor: RawPredictor) -> Floats:
        """Evaluate a decision function at the test points.

        Parameters
        ----------
        predictor : RawPredictor
            The function, in terms of the bank's kernels as stored.

        Returns
        -------
        (t,) float64
        """
        if not len(predictor.kernels) or not len(self.test_rows):
            return np.full(len(self.test_rows), predictor.bias)
        if predictor.coefficients.ndim == 2 or 8 * math.prod(self._shape) > LARGEST_BYTES:
            return self._sum_in_blocks(predictor)
        # Weights that are multiples of each other share one combination.
        largest = float(np.abs(predictor.weights).max())
        weights = predictor.weights / largest
        key = array_id(predictor.kernels, weights)
        if self._combined is None or key != self._key:
            values = partial(self._values, self.test_rows)
            self._combined = combined(values, predictor.kernels, weights, self._shape)
            self._key = key
        values_there: Floats = largest * (self._combined @ predictor.coefficients) + predictor.bias
        return values_there

    def _sum_in_blocks(self, predictor: RawPredictor) -> Floats:
        """Evaluate a decision function at some test points at a time."""
        coefficients = predictor.coefficients
        if coefficients.ndim == 1:
            coefficients = np.broadcast_to(coefficients, (len(predictor.kernels), self._shape[1]))
        of_each = replace(predictor, coefficients=coefficients)
        n_used = max(1, int(coefficients.any(axis=0).sum()))
        found = np.empty(len(self.test_rows))
        step = max(1, BLOCK_BYTES // (8 * n_used))
        for start in range(0, len(found), step):
            rows = self.test_rows[start : start + step]
            shape = len(rows), self._shape[1]
            values = partial(self._values, rows)
            found[start : start + step] = sum_of_expansions(values, of_each, shape)
        return found

    def _values(self, test_rows: Ints, kernels: Ints, support: Ints | slice) -> Iterator[Floats]:
        """Yield the (t, s) values of each kernel between test points and some training rows."""
        inputs, training_rows = self.inputs, self.training_rows[support]
        if inputs.kernels is not None:
            yield from inputs.kernels.cross_values(
                inputs.dataset,
                inputs.points,
                kernels,
                test_rows,
                training_rows,
                cosine=inputs.cosine,
            )
            return
        grams = inputs.dataset.grams
        if grams is None:
            return
        for kernel in kernels:
            yield part_of_gram(grams[kernel], test_rows, training_rows, cosine=inputs.cosine)
