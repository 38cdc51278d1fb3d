"""Decision functions: in terms of a bank's kernels, at new points, and apart from the bank."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from mkldist.arrays import Array, Floats, Ints
from mkldist.errors import GramError
from mkldist.gram.bank_kernels import GivenKernel
from mkldist.gram.passes import answered
from mkldist.gram.requests import Combine, Matvec, Request
from mkldist.gram.view import BankView
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.expansion_sums import expansion_sums, takes
from mkldist.kernels.gaps import Presence, without_gaps
from mkldist.kernels.kernel_list import KernelList
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


@dataclass(frozen=True, eq=False)
class TextSupport:
    """Kernels of texts, and the texts of the support points.

    Parameters
    ----------
    kernels : KernelList
        The kernels.
    points : (s, t) array of str objects
        The texts; empty where a point has none.
    """

    kernels: KernelList
    points: Array

    def select(self, kernels: Ints, points: Ints) -> TextSupport:
        """Return some of the kernels at some of the points."""
        return TextSupport(self.kernels.select(kernels), self.points[points])

    def on_columns(self, columns: Ints) -> TextSupport:
        """Return the same of some columns of texts alone, which contain all that kernels use.

        Parameters
        ----------
        columns : (c,) intp
            The columns, ascending.
        """
        indices = np.searchsorted(columns, self.kernels.subset_indices).astype(np.int32)
        return TextSupport(replace(self.kernels, subset_indices=indices), self.points[:, columns])

    def values(self, texts: Array, *, cosine: bool) -> Iterator[tuple[slice, int, Floats]]:
        """Yield the values of each kernel between some texts and the support points.

        Parameters
        ----------
        texts : (n, t) array of str objects
            The texts; kernels are zero where one is empty.
        cosine : bool
            True if kernels are scaled to unit self-similarities.

        Yields
        ------
        slice, int, and (r, s) float64
            Rows of `texts`, the kernel, and its values.
        """
        step = max(1, GROUP_BYTES // (8 * max(1, len(self.points))))
        for start in range(0, len(texts), step):
            rows = slice(start, min(start + step, len(texts)))
            for m in range(len(self.kernels)):
                one = self.kernels.select([m])
                yield rows, m, evaluate(one, texts[rows], self.points, cosine=cosine)[0]


PART_BYTES = 2**20  # of the values of one kernel that are computed together
KERNELS_AT_ONCE = 16
MANY_VALUES = 2**26  # of kernels, beyond which loading compiled code costs less than it saves

Between = Mapping[str, Floats]
"""Kernel values (M, t, n) of each view between t points and those that its matrices are over."""


@dataclass(frozen=True, eq=False)
class Expansion:
    """k decision functions on S kernels and s support points.

    ``f_c(x) = sum_m weights[m] sum_i coefficients[(m,) i, c] k_m(x, points[i]) + bias[c]``, with
    kernels as their functions define them: the weights contain the normalisation, the coefficients
    and the bias the centring.

    Parameters
    ----------
    kernels : KernelList
        Those of the S kernels that are functions of features, the first.
    index : (S,) intp
        The places of all in the bank.
    cosine : bool
        True if kernels are scaled to unit self-similarities.
    points : (s, d) float64 array or csr_array
        Support points, those whose coefficients are not all zero; NaN where they lack a feature.
    weights : (S,) float64
        Weights of the kernels.
    coefficients : (s, k) or (S, s, k) float64
        Coefficients, shared by all kernels or of each kernel's own.
    bias : (k,) float64
        Intercepts.
    given : tuple of GivenKernel
        The last kernels: Gram matrices that were given.
    rows : (s,) intp, or None
        Places of the support points among the points of these matrices; None without any.
    texts : TextSupport, or None
        The kernels of texts, between those of features and the given ones; None without any.
    """

    kernels: KernelList
    index: Ints
    cosine: bool
    points: Floats
    weights: Floats
    coefficients: Floats
    bias: Floats
    given: tuple[GivenKernel, ...] = ()
    rows: Ints | None = None
    texts: TextSupport | None = None

    @classmethod
    def of(
        cls,
        kernels: KernelList,
        cosine: bool,
        points: Floats,
        predictors: list[RawPredictor],
        given: tuple[GivenKernel, ...] = (),
        texts: TextSupport | None = None,
    ) -> Expansion:
        """Return the functions of a bank's predictors, which share kernels and weights.

        Parameters
        ----------
        kernels : KernelList
            All kernels of the bank that are functions of features.
        cosine : bool
            As above.
        points : (n, d) float64 array or csr_array
            All points of the bank.
        predictors : list of RawPredictor
            The functions.
        given : tuple of GivenKernel
            The bank's Gram matrices.
        texts : TextSupport, optional
            The bank's kernels of texts, on all points.
        """
        first = predictors[0]
        n_texts = 0 if texts is None else len(texts.kernels)
        sizes = np.cumsum([len(kernels), n_texts])
        own, of_texts, others_of = np.split(first.kernels, np.searchsorted(first.kernels, sizes))
        others = tuple(given[m - int(sizes[-1])] for m in others_of.tolist())
        coefficients = np.stack([predictor.coefficients for predictor in predictors], axis=-1)
        used = coefficients.any(axis=-1)
        support = np.flatnonzero(used if used.ndim == 1 else used.any(axis=0))
        kept = points[support]
        return cls(
            kernels.select(own),
            first.kernels,
            cosine,
            kept if is_sparse(kept) else np.ascontiguousarray(kept),
            first.weights,
            np.ascontiguousarray(coefficients[..., support, :]),
            np.array([predictor.bias for predictor in predictors]),
            others,
            support if others else None,
            texts.select(of_texts - len(kernels), support)
            if texts is not None and len(of_texts)
            else None,
        )

    @property
    def n_kernels(self) -> int:
        """Number S of kernels."""
        return len(self.weights)

    @property
    def n_support(self) -> int:
        """Number s of support points."""
        return int(self.points.shape[0])

    @property
    def n_of_functions(self) -> int:
        """Number of kernels that are functions of features or of texts."""
        return self.n_kernels - len(self.given)

    def names(self, feature_names: tuple[str, ...], text_names: tuple[str, ...] = ()) -> list[str]:
        """Return one name per kernel, (S,)."""
        of_texts = [] if self.texts is None else self.texts.kernels.names(text_names)
        of_features = self.kernels.names(feature_names)
        return of_features + of_texts + [kernel.name for kernel in self.given]

    def by_kernel(self, X: Floats, texts: Array | None = None) -> Floats:
        """Return the share of each kernel function in the decision, without the bias.

        Parameters
        ----------
        X : (t, d) float64 array or csr_array
            Points.
        texts : (t, c) array of str objects, optional
            Texts of the points in the columns of :attr:`texts`.

        Returns
        -------
        (t, S, k) float64, S the number of functions of features, then of texts
        """
        t, n_kernels, support = X.shape[0], len(self.kernels), self.n_support
        found = np.zeros((t, self.n_of_functions, len(self.bias)))
        if support == 0:
            return found
        for rows, m, share in self._shares_of_texts(texts):
            found[rows, m] = share
        if n_kernels == 0:
            return found
        step = max(1, GROUP_BYTES // (8 * n_kernels * support))
        for start in range(0, t, step):
            rows = slice(start, start + step)
            values = evaluate(self.kernels, X[rows], self.points, cosine=self.cosine)
            shares = self.weights[:n_kernels, None, None] * (values @ self.coefficients)
            found[rows, :n_kernels] = shares.transpose(1, 0, 2)
        return found

    def in_units(self, centre: float, spread: float) -> Expansion:
        """Return the functions in other units: ``centre + spread * f``."""
        bias = centre + spread * self.bias
        return replace(self, coefficients=spread * self.coefficients, bias=bias)

    def values(
        self, X: Floats, between: Between | None = None, texts: Array | None = None
    ) -> Floats:
        """Return the functions at points, as (t, k).

        Many values are computed by a compiled loop.  Otherwise points are taken a few at a time, so
        that the kernels of one feature subset stay in the processor's cache between their
        evaluation and their products with the coefficients.

        Parameters
        ----------
        X : (t, d) float64 array or csr_array
            Points, of the kind of the support points; NaN where they lack a feature.
        between : mapping of str to (M, t, n) float64, optional
            Kernel values of the views that :attr:`given` names.
        texts : (t, c) array of str objects, optional
            Texts of the points in the columns of :attr:`texts`, empty where they have none.
        """
        t, support = X.shape[0], self.n_support
        found = np.tile(self.bias, (t, 1))
        if not support:
            return found
        if self.given:
            self._add_given(between or {}, found)
        for rows, _, share in self._shares_of_texts(texts):
            found[rows] += share
        if not len(self.kernels):
            return found
        if t * support * len(self.kernels) >= MANY_VALUES and self._suits_loop(X):
            own, shared = len(self.kernels), self.coefficients.ndim == 2
            coefficients = self.coefficients if shared else self.coefficients[:own]
            found += expansion_sums(self.kernels, self.points, self.weights[:own], coefficients, X)
            return found
        of_rows, X = Presence.of(self.kernels, X), without_gaps(X)
        parts = self._parts
        largest = max(part.stop - part.start for part, _ in parts)
        rows_at_once = min(t, max(1, PART_BYTES // (8 * support)))
        memory = np.empty((largest, rows_at_once, support))
        for start in range(0, t, rows_at_once):
            rows = slice(start, min(start + rows_at_once, t))
            for part, kernels in parts:
                out = memory[: len(kernels), : rows.stop - rows.start]
                values = evaluate(kernels, X[rows], self._filled, cosine=self.cosine, out=out)
                for m, of_kernel in zip(range(part.start, part.stop), values, strict=True):
                    shares = self.weights[m] * (of_kernel @ self._known_coefficients(m))
                    if of_rows is not None:
                        shares[~of_rows[m][rows]] = 0.0
                    found[rows] += shares
        return found

    def _add_given(self, between: Between, out: Floats) -> None:
        """Add the shares of the given kernels at t points to `out`, (t, k)."""
        for m, kernel in enumerate(self.given, start=self.n_of_functions):
            values = between[kernel.view][kernel.number][:, self.rows]
            out += self.weights[m] * (values @ self._coefficients(m))

    def _shares_of_texts(self, texts: Array | None) -> Iterator[tuple[slice, int, Floats]]:
        """Yield the shares of the kernels of texts at some of t points: rows, kernel, (r, k)."""
        if self.texts is None:
            return
        if texts is None:
            raise ValueError("kernels of texts need texts")
        for rows, m, values in self.texts.values(texts, cosine=self.cosine):
            place = len(self.kernels) + m
            yield rows, place, self.weights[place] * (values @ self._coefficients(place))

    def _suits_loop(self, X: Floats) -> bool:
        """Return True if the compiled loop evaluates these kernels at these points."""
        if is_sparse(X):
            return False
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

    @cached_property
    def _filled(self) -> Floats:
        """Support points, 0 in the place of features that they lack."""
        return without_gaps(self.points)

    @cached_property
    def _presence(self) -> Presence | None:
        """Which support points have all features of which kernels; None if all have all."""
        return Presence.of(self.kernels, self.points)

    def _known_coefficients(self, kernel: int) -> Floats:
        """Return the coefficients (s, k) of a kernel, 0 for points where it is zero."""
        found = self._coefficients(kernel)
        return found if self._presence is None else found * self._presence[kernel][:, None]

    def _coefficients(self, kernel: int) -> Floats:
        """Return the coefficients (s, k) of a kernel."""
        return self.coefficients if self.coefficients.ndim == 2 else self.coefficients[kernel]
