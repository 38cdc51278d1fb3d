"""Test points: decision values from the active kernels alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floats, Ints
from mkldist.gram.predictor import RawPredictor
from mkldist.identity import array_id
from mkldist.kernels.evaluate import evaluate
from mkldist.worker.bank_inputs import BankInputs, TrainingView

GROUP_BYTES = 32 * 2**20


@dataclass(eq=False)
class TestPart:
    """The test points of one split, of which the bank knows nothing.

    Combinations of kernels with equal weights, such as those of a baseline along a grid of C,
    are computed once.

    Parameters
    ----------
    bank_inputs : BankInputs
        The bank's ingredients.
    training_view : TrainingView
        The split, and which of its rows predictors are expansions over.
    """

    __test__ = False

    bank_inputs: BankInputs
    training_view: TrainingView
    _key: str = field(init=False, default="")
    _combined: Floats | None = field(init=False, default=None)

    @property
    def rows(self) -> Ints:
        """Rows of the data set."""
        return self.bank_inputs.splits[self.training_view.split].test

    @property
    def n_bytes(self) -> int:
        """Bytes that are kept for the next run."""
        return 0 if self._combined is None else self._combined.nbytes

    def decision_values(self, predictor: RawPredictor) -> Floats:
        """Evaluate a decision function on the test points.

        Parameters
        ----------
        predictor : RawPredictor
            In terms of the bank's kernels as stored.

        Returns
        -------
        (t,) float64
        """
        if not len(predictor.kernels) or not len(self.rows):
            return np.full(len(self.rows), predictor.bias)
        if predictor.coefficients.ndim == 2:
            return self._sum_of_images(predictor)
        largest = float(np.abs(predictor.weights).max())
        weights = predictor.weights / largest
        key = array_id(predictor.kernels, weights)
        if self._combined is None or key != self._key:
            self._combined, self._key = self._combine(predictor.kernels, weights), key
        values: Floats = largest * (self._combined @ predictor.coefficients) + predictor.bias
        return values

    def _combine(self, kernels: Ints, weights: Floats) -> Floats:
        """Return the weighted sum of kernel values between test points and those learnt from."""
        combined = np.zeros((len(self.rows), len(self.bank_inputs.learnt_rows(self.training_view))))
        step = max(1, GROUP_BYTES // max(1, combined.nbytes))
        for start in range(0, len(kernels), step):
            some = slice(start, start + step)
            for weight, values in zip(weights[some], self._values(kernels[some]), strict=True):
                combined += weight * values
        return combined

    def _sum_of_images(self, predictor: RawPredictor) -> Floats:
        """Add up what each kernel gives with coefficients of its own."""
        total = np.full(len(self.rows), predictor.bias)
        parts = zip(
            predictor.weights,
            self._values(predictor.kernels),
            predictor.coefficients,
            strict=True,
        )
        for weight, values, coefficients in parts:
            total += weight * (values @ coefficients)
        return total

    def _values(self, kernels: Ints) -> Iterator[Floats]:
        """Yield the (n_test, n) values of each kernel."""
        given, learnt = self.bank_inputs, self.bank_inputs.learnt_rows(self.training_view)
        if given.points is not None and given.kernels is not None:
            test, train = given.points[self.rows], given.points[learnt]
            yield from evaluate(given.kernels.select(kernels), test, train, cosine=given.cosine)
            return
        grams = given.dataset.grams
        if grams is None:
            return
        for kernel in kernels:
            yield _part_of_gram(grams[kernel], self.rows, learnt, cosine=given.cosine)


def _part_of_gram(
    gram: npt.NDArray[np.floating], rows: Ints, columns: Ints, *, cosine: bool
) -> Floats:
    """Return some rows and columns of a Gram matrix, as cosines if asked for."""
    values = np.asarray(gram[rows[:, None], columns], dtype=np.float64)
    if cosine:
        roots = np.sqrt(np.maximum(np.diagonal(gram).astype(np.float64), 0.0))
        inverse = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
        values = values * inverse[rows, None] * inverse[columns]
    return values
