"""Decision functions apart from the bank that they were solved on: all that predictions need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mkldist.arrays import Array, Floats, Ints
from mkldist.gram.bank_kernels import GivenKernel
from mkldist.gram.cross_values import GROUP_BYTES
from mkldist.gram.predictor import RawPredictor
from mkldist.in_memory.text_support import TextSupport
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.expansion_sums import expansion_sums, takes
from mkldist.kernels.gaps import Presence, without_gaps
from mkldist.kernels.kernel_list import KernelList

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
