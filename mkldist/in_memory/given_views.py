"""Gram matrices that a user gives beside kernel functions: checked, and met by new points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.arrays import Array, Bools, Floats, Ints
from mkldist.data.dataset import Dataset, GivenGrams
from mkldist.errors import DataError, GramError, SpecError, nearest
from mkldist.gram.bank_kernels import BankKernels
from mkldist.gram.cross_values import NewPoints
from mkldist.gram.predictor import RawPredictor
from mkldist.gram.sources import BankSource
from mkldist.gram.view import BankView
from mkldist.in_memory.expansion import Expansion
from mkldist.in_memory.feature_origin import FeatureOrigin, function_table
from mkldist.in_memory.given_arrays import real_array
from mkldist.in_memory.gram_stack import Inspection, gram_stack, inspected_stack
from mkldist.in_memory.origins import no_points
from mkldist.in_memory.text_support import TextSupport
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.precomputed import Precomputed
from mkldist.row_places import FROM_ZERO
from mkldist.spec.kernel_entries import PRECOMPUTED

if TYPE_CHECKING:
    import pandas as pd

    from mkldist.in_memory.given_features import Features


def given_views(kernels: Any, features: Features) -> dict[str, GivenGrams]:
    """Return the Gram matrices among the kernels of a bank by the names of their views.

    Parameters
    ----------
    kernels : str or sequence of mappings and kernels
        The kernels as the user gave them.
    features : Features
        The points, which say whether they may lack a view.

    Raises
    ------
    mkldist.errors.SpecError
        For two views of one name.
    mkldist.errors.GramError
        For matrices of another number of points, and for such that are no Gram matrices.
    """
    found: dict[str, GivenGrams] = {}
    listed = [] if isinstance(kernels, str | Mapping) else list(kernels)
    for kernel in listed:
        if not isinstance(kernel, Precomputed):
            continue
        where = f"Precomputed {kernel.name!r}"
        if kernel.name in found or kernel.name in features.views:
            raise SpecError(where, "two views of this name", "a name for each", "Set name = …")
        found[kernel.name] = _checked(kernel.grams, features.n_points, features.gaps, where)
    return found


def _checked(given: Any, n_points: int, gaps: bool, where: str) -> GivenGrams:
    """Return matrices over n points, checked where the points have them."""
    stack = gram_stack(_stacked(given, where, "(n, n) or (M, n, n) numbers"), where)
    if stack.shape[1] != n_points:
        raise GramError(where, f"shape {stack.shape}", f"matrices of the {n_points} points of X")
    lacking = _lacking(stack, where) if gaps else np.zeros(n_points, dtype=bool)
    if lacking.any():
        known = ~lacking[:, None] & ~lacking
        if np.isfinite(stack[:, ~known]).any():
            row = int(np.flatnonzero(lacking)[0])
            raise GramError(
                where,
                f"{FROM_ZERO.of(row)} of NaN beside other values of that point",
                "NaN in the whole row and column of a point that lacks the view",
            )
        stack = np.where(known, stack, 0.0)
    inspection = Inspection.of("full", stack.dtype)
    passed = inspected_stack(stack, replace(inspection, where=where))
    return GivenGrams(np.asarray(passed, dtype=np.float64), ~lacking, "zero" if gaps else None)


def _stacked(given: Any, where: str, expected: str) -> Array:
    """Return one matrix or several as (M, r, c)."""
    array: Array = given if isinstance(given, np.ndarray) else real_array(given, where, expected)
    return array[None] if array.ndim == 2 else array


def _lacking(stack: Array, where: str) -> Bools:
    """Return which points have NaN in every entry of their row, in all of the matrices."""
    if stack.dtype.kind != "f":
        return np.zeros(stack.shape[1], dtype=bool)
    missing = np.isnan(stack).all(axis=2)
    if (missing.any(axis=0) != missing.all(axis=0)).any():
        raise GramError(
            where,
            "points that lack some of the matrices",
            "points that have all matrices of a view or none",
            "Give a Precomputed of its own for each matrix",
        )
    return np.asarray(missing.all(axis=0))


@dataclass(frozen=True, eq=False)
class MixedOrigin:
    """Kernel functions on features and on texts, and Gram matrices that were given.

    Parameters
    ----------
    own : FeatureOrigin or None
        The kernel functions on features, the first kernels; None without any.
    features : Features
        The points.
    kernels : BankKernels
        All kernels.
    dataset : Dataset
        The points and the matrices.
    index : (M,) intp
        The kernels of the bank among all.
    cosine : bool
        True if kernels are scaled to unit self-similarities.
    """

    own: FeatureOrigin | None
    features: Features
    kernels: BankKernels
    dataset: Dataset
    index: Ints
    cosine: bool = False

    @property
    def source(self) -> BankSource:
        """Source of the values of all kernels."""
        return self.kernels.source(self.dataset, self.features.points, None, cosine=self.cosine)

    def select(self, kernels: Ints) -> MixedOrigin:
        """See :meth:`mkldist.in_memory.origins.Origin.select`."""
        return replace(self, index=self.index[kernels])

    def table(self) -> pd.DataFrame:
        """See :meth:`mkldist.in_memory.origins.Origin.table`."""
        import pandas as pd

        given = pd.DataFrame(
            {
                "function": [PRECOMPUTED] * len(self.kernels.given),
                "features": [(kernel.view,) for kernel in self.kernels.given],
                "name": [kernel.name for kernel in self.kernels.given],
            }
        )
        tables = [] if self.own is None else [self.own.table()]
        if self.kernels.of_texts is not None:
            tables.append(function_table(self.kernels.of_texts, self.kernels.text_names))
        tables += [given] if len(given) else []
        return pd.concat(tables, ignore_index=True).iloc[self.index].reset_index(drop=True)

    def groups(self) -> Ints:
        """See :meth:`mkldist.in_memory.origins.Origin.groups`."""
        return self.kernels.groups[self.index]

    def at(self, new: Any, view: BankView, grams: Mapping[str, Any] | None = None) -> NewPoints:
        """Return new points, given by features, texts and their kernel values of each view."""
        rows = self.features.like(new)
        between = self._between(grams or {}, rows.shape[0])
        texts = None if self.features.texts is None else self.features.texts_like(new)
        n_own = 0 if self.own is None else len(self.own.kernels)
        first = len(self.kernels) - len(self.kernels.given)

        def values(kernels: Ints, points: slice, support: Ints | slice) -> Iterator[Floats]:
            for kernel in self.index[kernels].tolist():
                if kernel < n_own and self.own is not None:
                    chosen = self.own.kernels.select([kernel])
                    known = self.features.points[support]
                    yield from evaluate(chosen, rows[points], known, cosine=self.cosine)
                elif kernel < first:
                    yield from self._of_texts(kernel - n_own, texts, points, support)
                else:
                    given = self.kernels.given[kernel - first]
                    yield between[given.view][given.number][points][:, support]

        return NewPoints(view, rows.shape[0], values)

    def expansion(self, predictors: list[RawPredictor]) -> Expansion:
        """See :meth:`mkldist.in_memory.origins.Origin.expansion`."""
        of_texts, texts = self.kernels.of_texts, self.features.texts
        if self.kernels.given or of_texts is None or texts is None:
            raise no_points()
        own = self.kernels.of_features or of_texts.select(np.zeros(0, dtype=np.intp))
        order = np.argsort(self.index[predictors[0].kernels])
        placed = [self._placed(predictor, order) for predictor in predictors]
        support = TextSupport(of_texts, texts.values)
        made = Expansion.of(own, self.cosine, self.features.points, placed, texts=support)
        return replace(made, index=predictors[0].kernels[order])

    def _placed(self, predictor: RawPredictor, order: Ints) -> RawPredictor:
        """Return a decision function whose kernels are places among all, in this order."""
        coefficients = predictor.coefficients
        return replace(
            predictor,
            kernels=self.index[predictor.kernels[order]],
            weights=predictor.weights[order],
            coefficients=coefficients if coefficients.ndim == 1 else coefficients[order],
        )

    def _of_texts(
        self, kernel: int, texts: Array | None, points: slice, support: Ints | slice
    ) -> Floats:
        """Return the values of a kernel of texts between new points and some of the bank's."""
        known = self.features.texts
        if self.kernels.of_texts is None or known is None or texts is None:
            raise ValueError("kernels of texts need texts")
        chosen = self.kernels.of_texts.select([kernel])
        return evaluate(chosen, texts[points], known.values[support], cosine=self.cosine)

    def _between(self, given: Mapping[str, Any], n_new: int) -> dict[str, Floats]:
        """Return the kernel values of each view between new points and those of the bank."""
        known = self.dataset.given
        for name in (*known, *given):
            if name not in given or name not in known:
                found = f"no matrices of {name!r}" if name in known else f"matrices of {name!r}"
                wanted = ", ".join(f"{view!r}: (n_new, n)" for view in known)
                raise DataError(
                    "grams",
                    found,
                    f"kernel values between new points and those of the bank, {{{wanted}}}",
                    nearest(name, given) or "Call bank.on(X_new, grams={name: values})",
                )
        return {name: self._checked_between(name, values, n_new) for name, values in given.items()}

    def _checked_between(self, name: str, values: Any, n_new: int) -> Floats:
        """Return (M, n_new, n) kernel values, zero for new points that lack the view."""
        one, where = self.dataset.given[name], f"grams[{name!r}]"
        shape = (len(one.grams), n_new, len(one.present))
        expected = f"(M, n_new, n) = {shape}"
        stack = np.asarray(_stacked(values, where, expected), dtype=np.float64)
        if stack.shape != shape:
            raise GramError(where, f"shape {stack.shape}", expected)
        stack = np.where(one.present, stack, 0.0)
        if one.missing == "zero":
            lacking = np.asarray(np.isnan(stack[:, :, one.present]).all(axis=(0, 2)))
            stack = np.where(lacking[:, None], 0.0, stack)
        if not np.isfinite(stack).all():
            raise GramError(where, "values that are not finite", "finite numbers")
        return stack
