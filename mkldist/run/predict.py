"""Points that a run does not learn from: decision values from the active kernels alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from mkldist.gram.passes import answer
from mkldist.gram.requests import Combine, Matvec
from mkldist.gram.view import BankView, RawPredictor
from mkldist.identity import array_id
from mkldist.kernels.evaluate import evaluate
from mkldist.run.materials import Materials, Sight

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]

GROUP_BYTES = 32 * 2**20


@dataclass(eq=False)
class Part(ABC):
    """Some points of one split, with labels to score by.

    Combinations of kernels with equal weights, such as those of a baseline along a grid of C,
    are computed once.

    Parameters
    ----------
    materials : Materials
        The bank's ingredients.
    sight : Sight
        The split, and which of its rows predictors are expansions over.
    """

    materials: Materials
    sight: Sight
    _key: str = field(init=False, default="")
    _combined: Floats | None = field(init=False, default=None)

    @property
    @abstractmethod
    def rows(self) -> Ints:
        """Rows of the data set."""

    @property
    def y(self) -> Floats:
        """Labels of the points, (t,)."""
        return self.materials.dataset.y[self.rows]

    @property
    def n_bytes(self) -> int:
        """Bytes that are kept for the next run."""
        return 0 if self._combined is None else self._combined.nbytes

    def decision_values(self, predictor: RawPredictor) -> Floats:
        """Evaluate a decision function on the points.

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
            return self._sum_of_images(predictor) + predictor.bias
        largest = float(np.abs(predictor.weights).max())
        weights = predictor.weights / largest
        key = array_id(predictor.kernels, weights)
        if self._combined is None or key != self._key:
            self._combined, self._key = self._combine(predictor.kernels, weights), key
        values: Floats = largest * (self._combined @ predictor.coefficients) + predictor.bias
        return values

    @abstractmethod
    def _combine(self, kernels: Ints, weights: Floats) -> Floats:
        """Return the weighted sum of kernel values between the points and those learnt from."""

    @abstractmethod
    def _sum_of_images(self, predictor: RawPredictor) -> Floats:
        """Add up what each kernel gives with coefficients of its own."""


class TestPart(Part):
    """The test points of one split, of which the bank knows nothing."""

    __test__ = False

    @property
    def rows(self) -> Ints:
        """Rows of the data set."""
        return self.materials.splits[self.sight.split].test

    def _combine(self, kernels: Ints, weights: Floats) -> Floats:
        combined = np.zeros((len(self.rows), len(self.materials.learnt_rows(self.sight))))
        step = max(1, GROUP_BYTES // max(1, combined.nbytes))
        for start in range(0, len(kernels), step):
            some = slice(start, start + step)
            for weight, values in zip(weights[some], self._values(kernels[some]), strict=True):
                combined += weight * values
        return combined

    def _sum_of_images(self, predictor: RawPredictor) -> Floats:
        total = np.zeros(len(self.rows))
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
        given, learnt = self.materials, self.materials.learnt_rows(self.sight)
        if given.points is not None and given.kernels is not None:
            test, train = given.points[self.rows], given.points[learnt]
            yield from evaluate(given.kernels.select(kernels), test, train, cosine=given.cosine)
            return
        grams = given.dataset.grams
        if grams is None:
            return
        for kernel in kernels:
            yield _part_of_gram(grams[kernel], self.rows, learnt, cosine=given.cosine)


@dataclass(eq=False)
class UnlabelledPart(Part):
    """The unlabelled points of one split, which are among the bank's: a pass over it suffices.

    Parameters
    ----------
    materials, sight
        As for every part.
    view : BankView
        What runs of that sight see of the bank.
    """

    view: BankView

    @property
    def rows(self) -> Ints:
        """Rows of the data set."""
        return self.materials.splits[self.sight.split].unlabelled

    def _combine(self, kernels: Ints, weights: Floats) -> Floats:
        dense = np.zeros(self.view.n_kernels)
        dense[kernels] = weights
        (combined,) = answer(self.view.bank, [Combine(dense)])
        points = self.materials.bank_points(self.rows)
        values: Floats = combined[points[:, None], self._learnt()]
        return values

    def _sum_of_images(self, predictor: RawPredictor) -> Floats:
        spread = np.zeros((self.view.bank.n_points, len(predictor.kernels)))
        spread[self._learnt()] = predictor.coefficients.T
        requests = [
            Matvec(predictor.kernels[s : s + 1], spread[:, s])
            for s in range(len(predictor.kernels))
        ]
        images = np.concatenate(answer(self.view.bank, requests))
        points = self.materials.bank_points(self.rows)
        total: Floats = predictor.weights @ images[:, points]
        return total

    def _learnt(self) -> Ints:
        """Return the bank's points that predictors are expansions over."""
        return self.materials.bank_points(self.materials.learnt_rows(self.sight))


def parts_of(materials: Materials, sight: Sight, view: BankView) -> dict[str, Part]:
    """Return the parts of a split that runs are scored on, by name; parts without points are out.

    Parameters
    ----------
    materials : Materials
        The bank's ingredients.
    sight : Sight
        What the runs see of the split.
    view : BankView
        The same as a view of the bank.

    Returns
    -------
    dict of str to Part
        ``test`` and ``unlabelled``.
    """
    parts = {
        "test": TestPart(materials, sight),
        "unlabelled": UnlabelledPart(materials, sight, view),
    }
    return {name: part for name, part in parts.items() if len(part.rows)}


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
