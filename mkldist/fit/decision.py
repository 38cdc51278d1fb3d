"""Decision functions: in terms of a bank's kernels, at new points, and apart from the bank.

All are ``f_c(x) = sum_m weights[m] sum_i coefficients[(m,) i, c] k_m(x, x_i) + bias[c]``, with
coefficients (n, k) that all kernels share, or (S, n, k) of each kernel's own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mkldist.bank.bank_kernels import GivenKernel
from mkldist.bank.passes import answered
from mkldist.bank.requests import Combine, Matvec, Request
from mkldist.bank.view import BankView
from mkldist.core.arrays import Array, Bools, Floats, Ints
from mkldist.core.checksums import array_id
from mkldist.data.dataset import Dataset
from mkldist.data.labels import name_of_number, number_name, number_of_name
from mkldist.errors import GramError, SpecError
from mkldist.kernel_functions.bases import is_sparse
from mkldist.kernels.evaluate import Presence, evaluate, without_gaps
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.loops import expansion_sums, takes
from mkldist.scores import constant_answers, predicted_classes

if TYPE_CHECKING:
    import pandas as pd

    from mkldist.calibration import Calibrated

Labels = npt.NDArray[Any]

BLOCK_BYTES = 2**25  # of kernel values that are in memory together
KERNELS_AT_ONCE = 16  # which share the distances of a feature subset
MANY_ROWS = 1024  # new points that are better taken together than kernels
PART_BYTES = 2**20  # of the values of one kernel that are computed together
MANY_VALUES = 2**26  # of kernels, beyond which loading compiled code costs less than it saves
ALL = slice(None)


@dataclass(frozen=True, eq=False)
class BankFunctions:
    """k decision functions on kernels as the bank stores them, without any normalisation."""

    kernels: Ints  # (S,), indices of those of non-zero weight
    weights: Floats  # (S,), which the functions share
    coefficients: Floats  # (n, k) of the view's points, or (S, n, k) of each kernel's own
    bias: Floats  # (k,)

    @classmethod
    def of(
        cls, view: BankView, kernel_weights: Floats, coefficients: Floats, bias: float | Floats
    ) -> BankFunctions:
        """Return the decision functions of a solver in terms of the kernels as stored.

        Centring is linear in a row of kernel values.  It is therefore moved into the coefficients,
        ``c -> H'c``, and into the bias, for which the active kernels are combined.

        `kernel_weights` are (M,); `coefficients` (n,), or (S, n) of each kernel's own, of one
        number `bias`, and with a last axis k of an array `bias` (k,).
        """
        if np.ndim(bias) == 0:
            coefficients = coefficients[..., None]
        if coefficients.ndim == 3:  # kernels that vanish on the view's points are dropped
            coefficients = coefficients[view.scale[np.flatnonzero(kernel_weights)] != 0.0]
        weights = kernel_weights * view.scale
        kernels = np.flatnonzero(weights)
        made = cls(kernels, weights[kernels], coefficients, np.atleast_1d(np.float64(bias)))
        if not view.centred:
            return made
        by_point = view.from_centred(np.moveaxis(coefficients, -2, 0))
        centred = np.moveaxis(by_point, 0, -2)
        made = replace(made, coefficients=centred, bias=np.zeros(len(made.bias)))
        points = slice(None) if view.index is None else view.index
        values = answered(view.bank, bank_values(view, made))
        means = [float(np.average(row[points], weights=view.shares)) for row in values]
        return replace(made, bias=bias - np.array(means))

    def part(self, some: Ints) -> BankFunctions:
        """Return what some of the kernels, by their places, and the bias make of the functions."""
        weights, own = self.weights[some], self.coefficients
        own = own if own.ndim == 2 else own[some]
        return BankFunctions(self.kernels[some], weights, own, self.bias)


def bank_values(view: BankView, functions: BankFunctions) -> Generator[Request, Any, Floats]:
    """Request the values (k, N) of functions of a view at all points of its bank."""
    found = np.repeat(functions.bias[:, None], view.bank.n_points, axis=1)
    columns = np.moveaxis(functions.coefficients, -1, 0)
    if functions.coefficients.ndim == 3:
        for row, own in zip(found, columns, strict=True):
            for s, kernel in enumerate(functions.kernels):
                vector = np.ascontiguousarray(view.padded(own[s]))
                product = yield Matvec(np.array([kernel]), vector)
                row += functions.weights[s] * product[0]
    elif len(functions.kernels):
        weights = np.zeros(view.n_kernels)
        weights[functions.kernels] = functions.weights
        combined = yield Combine(weights, thin=True)
        for row, own in zip(found, columns, strict=True):
            row += combined @ view.padded(own)
    return found


Values = Callable[[Ints, slice, Ints | slice], Iterator[Floats]]
"""Function that yields the (t, s) values of each of the given kernels, in order.

They are those between some of the new points and some of the view's points, as the bank stores
them: without the normalisation of the view.
"""


@dataclass(eq=False)
class NewPoints:
    """Points outside a bank, at which decision functions are evaluated.

    Kernels are evaluated where their coefficients are not zero, a few kernels and points at a time.

    `values` yields kernels between the new points and those of the view.  Where a whole combination
    of kernels, (t, n), takes at most `cached_bytes`, the last one is cached: functions of equal
    kernel weights, such as those of a baseline along a grid of C, compute it once.
    """

    view: BankView
    n_points: int
    values: Values
    cached_bytes: int = 0
    block_bytes: int = BLOCK_BYTES
    _combined: tuple[str, Floats] | None = field(init=False, default=None)

    def __len__(self) -> int:
        return self.n_points

    def __repr__(self) -> str:
        """Return the numbers of points and kernels, without arrays."""
        return f"<{self.n_points} new points, {self.view.n_kernels} kernels>"

    @property
    def n_bytes(self) -> int:
        """Bytes of the combination that is cached."""
        return 0 if self._combined is None else self._combined[1].nbytes

    def decision_values(
        self, kernel_weights: Floats, coefficients: Floats, bias: float | Floats
    ) -> Floats:
        """Evaluate the decision functions of a solver, whose parameters are as it returned them.

        They are as for :meth:`BankFunctions.of`; the values are (t,), or (t, k).  A GramError
        refuses functions of another bank.
        """
        n = self.view.n_points
        points = coefficients.shape[-1 - np.ndim(bias)]
        if len(kernel_weights) != self.view.n_kernels or points != n:
            raise GramError(
                "grams_test",
                f"points for a bank of {self.view.n_kernels} kernels on {n} points",
                f"points for the {len(kernel_weights)} kernels of the solution",
                "Call the method on() of the bank that was solved",
            )
        functions = BankFunctions.of(self.view, kernel_weights, coefficients, bias)
        found = np.tile(functions.bias, (self.n_points, 1))
        shared = functions.coefficients.ndim == 2
        if shared and len(functions.kernels) and 8 * self.n_points * n <= self.cached_bytes:
            # Weights that are multiples of each other share one combination.
            largest = float(np.abs(functions.weights).max())
            combined = self._combination(functions.kernels, functions.weights / largest)
            for column, own in zip(found.T, functions.coefficients.T, strict=True):
                column += largest * (combined @ own)
        else:
            for rows, _, shares in self._shares(functions):
                found[rows] += shares
        return found if np.ndim(bias) else found[:, 0]

    def grams(self) -> Floats:
        """Return all kernel values (M, n_new, n) between the new points and those of the bank.

        They are normalised as those of the bank are; at its own points they are its Gram matrices.

        >>> import numpy as np, mkldist
        >>> x = np.array([[0.0], [1.0]])
        >>> bank = mkldist.KernelBank(x, [mkldist.kernels.Polynomial([1, 2])], normalisation="none")
        >>> bank.on(x).grams().tolist()
        [[[1.0, 1.0], [1.0, 2.0]], [[1.0, 1.0], [1.0, 4.0]]]
        """
        n = self.view.n_points
        own = np.eye(self.view.n_kernels)
        return np.array([self.decision_values(one, np.eye(n), np.zeros(n)) for one in own])

    def by_kernel(self, functions: BankFunctions) -> Floats:
        """Return the share of each kernel in functions of the bank, without the bias, (t, S, k)."""
        found = np.zeros((self.n_points, len(functions.kernels), len(functions.bias)))
        for rows, m, shares in self._shares(functions):
            found[rows, m] = shares
        return found

    def _combination(self, kernels: Ints, weights: Floats) -> Floats:
        """Return the weighted sum of kernels (t, n), the cached one if it is the same."""
        key = array_id(kernels, weights)
        if self._combined is None or self._combined[0] != key:
            self._combined = None  # its memory is that of the next one
            total = np.zeros((self.n_points, self.view.n_points))
            for rows, m, values in self._blocks(kernels, ALL, self.view.n_points):
                total[rows] += weights[m] * values
            self._combined = key, total
        return self._combined[1]

    def _shares(self, functions: BankFunctions) -> Iterator[tuple[slice, int, Floats]]:
        """Yield the shares of kernels in functions: rows, number of the kernel, (r, k) values."""
        shared = functions.coefficients.ndim == 2
        coefficients = functions.coefficients[None] if shared else functions.coefficients
        for run, support in _runs_of_equal_support(np.asarray(coefficients.any(axis=-1))):
            kernels = functions.kernels if shared else functions.kernels[run]
            size = coefficients[run.start, support].shape[0]
            for rows, m, values in self._blocks(kernels, support, size):
                kernel = run.start + m
                own = coefficients[0 if shared else kernel, support]
                yield rows, kernel, functions.weights[kernel] * (values @ own)

    def _blocks(
        self, kernels: Ints, support: Ints | slice, size: int
    ) -> Iterator[tuple[slice, int, Floats]]:
        """Yield values of kernels at `size` points: rows, number of the kernel, (r, s) values."""
        most = max(1, self.block_bytes // (8 * size))
        # What kernels share is computed for each block of rows, so that these come first.
        rows_first = max(1, min(self.n_points, MANY_ROWS))
        at_once = min(KERNELS_AT_ONCE, max(1, len(kernels)), max(1, most // rows_first))
        step = most // at_once
        for start in range(0, self.n_points, step):
            rows = slice(start, min(start + step, self.n_points))
            for first in range(0, len(kernels), at_once):
                group = kernels[first : first + at_once]
                numbers = range(first, first + len(group))
                for m, values in zip(numbers, self.values(group, rows, support), strict=True):
                    yield rows, m, values


def _runs_of_equal_support(used: Bools) -> Iterator[tuple[slice, Ints | slice]]:
    """Yield successive kernels, rows of `used`, that use the same points, and these points."""
    ends = np.flatnonzero((used[1:] != used[:-1]).any(axis=1)) + 1
    for start, stop in pairwise([0, *ends.tolist(), len(used)]):
        if stop > start and used[start].any():
            yield slice(start, stop), ALL if used[start].all() else np.flatnonzero(used[start])


@dataclass(frozen=True, eq=False)
class TextSupport:
    """Kernels of texts, and the texts (s, t) of the support points, empty where one has none."""

    kernels: KernelList
    points: Array

    def on_columns(self, columns: Ints) -> TextSupport:
        """Return the same of some columns alone, ascending, which hold all that kernels use."""
        indices = np.searchsorted(columns, self.kernels.subset_indices).astype(np.int32)
        return TextSupport(replace(self.kernels, subset_indices=indices), self.points[:, columns])


Between = Mapping[str, Floats]
"""Kernel values (M, t, n) of each view between t points and those that its matrices are over."""


@dataclass(frozen=True, eq=False)
class Expansion:
    """k decision functions on S kernels and s support points, apart from a bank.

    Kernels are as their functions define them: the weights contain the normalisation, the
    coefficients and the bias the centring.
    """

    kernels: KernelList  # the first of the S kernels: those that are functions of features
    index: Ints  # (S,), places of all kernels in the bank
    cosine: bool  # True if kernels are scaled to unit self-similarities
    # (s, d) array or csr_array: points whose coefficients are not all 0; NaN for missing features
    points: Floats
    weights: Floats  # (S,)
    coefficients: Floats  # (s, k), shared by all kernels, or (S, s, k) of each kernel's own
    bias: Floats  # (k,)
    given: tuple[GivenKernel, ...] = ()  # the last kernels: Gram matrices
    rows: Ints | None = None  # (s,), places of the support points among the points of these
    texts: TextSupport | None = None  # kernels of texts, between those of features and the given

    @classmethod
    def of(
        cls,
        kernels: KernelList,
        cosine: bool,
        points: Floats,
        functions: BankFunctions,
        given: tuple[GivenKernel, ...] = (),
        texts: TextSupport | None = None,
        index: Ints | None = None,
    ) -> Expansion:
        """Return functions of a bank on its support points and active kernels alone.

        `kernels`, `points`, `given` and `texts` are all of the bank's, in this order; or more, of
        which `index`, (M,) intp, says which are the bank's, in which order.
        """
        places = functions.kernels if index is None else index[functions.kernels]
        order = np.argsort(places)
        n_texts = 0 if texts is None else len(texts.kernels)
        ends = np.cumsum([len(kernels), n_texts])
        own, of_texts, others_of = np.split(places[order], np.searchsorted(places[order], ends))
        others = tuple(given[m - int(ends[-1])] for m in others_of.tolist())
        coefficients = functions.coefficients
        used = coefficients.any(axis=-1)
        support = np.flatnonzero(used if used.ndim == 1 else used.any(axis=0))
        if used.ndim == 2:
            coefficients = coefficients[order]
        if texts is not None:
            chosen = texts.kernels.select(of_texts - len(kernels))
            texts = TextSupport(chosen, texts.points[support]) if len(of_texts) else None
        kept = points[support]
        return cls(
            kernels.select(own),
            functions.kernels[order],
            cosine,
            kept if is_sparse(kept) else np.ascontiguousarray(kept),
            functions.weights[order],
            np.ascontiguousarray(coefficients[..., support, :]),
            functions.bias,
            others,
            support if others else None,
            texts,
        )

    @property
    def n_kernels(self) -> int:
        """Number S of kernels."""
        return len(self.weights)

    @property
    def n_support(self) -> int:
        """Number s of support points."""
        return int(self.points.shape[0])

    def names(self, feature_names: tuple[str, ...], text_names: tuple[str, ...] = ()) -> list[str]:
        """Return one name per kernel, (S,)."""
        of_texts = [] if self.texts is None else self.texts.kernels.names(text_names)
        of_features = self.kernels.names(feature_names)
        return of_features + of_texts + [kernel.name for kernel in self.given]

    def in_units(self, centre: float, spread: float) -> Expansion:
        """Return the functions in other units: ``centre + spread * f``."""
        bias = centre + spread * self.bias
        return replace(self, coefficients=spread * self.coefficients, bias=bias)

    def of_single_features(self) -> Expansion:
        """Return the same functions, every additive kernel as one on each of its features."""
        kernels, origin = self.kernels.of_single_features()
        counts = np.bincount(origin, minlength=len(self.kernels))
        rest = np.arange(len(self.kernels), self.n_kernels)
        every = np.concatenate([origin, rest])
        own = self.coefficients
        return replace(
            self,
            kernels=kernels,
            index=self.index[every],
            weights=self.weights[every] / np.concatenate([counts[origin], np.ones(len(rest))]),
            coefficients=own if own.ndim == 2 else own[every],
        )

    def contributions(
        self,
        parts: Sequence[str],
        X: Floats,
        between: Between | None = None,
        texts: Array | None = None,
    ) -> Floats:
        """Return the sums (t, P + 1, k) of the kernels of each part at points, then the intercept.

        `parts` (S,) name the part of each kernel, and the P of the result are in order of
        appearance.  The other arguments are as for :meth:`values`, and so is the sum over parts.
        """
        place = {name: number for number, name in enumerate(dict.fromkeys(parts))}
        number = [place[name] for name in parts]
        found = np.zeros((X.shape[0], len(place) + 1, len(self.bias)))
        found[:, -1] = self.bias
        given, of_texts = self._of_given(between or {}), self._of_texts(texts)
        for rows, m, shares in chain(given, of_texts, self._of_features(X)):
            found[rows, number[m]] += shares
        return found

    def values(
        self,
        X: Floats,
        between: Between | None = None,
        texts: Array | None = None,
        *,
        many_values: int = MANY_VALUES,
    ) -> Floats:
        """Return the functions at points, as (t, k).

        Kernel values from `many_values` on are computed by a compiled loop.  Otherwise points are
        taken a few at a time, so that the kernels of one feature subset stay in the processor's
        cache between their evaluation and their products with the coefficients.  Points are of the
        kind of the support points, NaN where they lack a feature; `between` holds the kernel values
        of the views that :attr:`given` names; `texts` (t, c) are empty where a point has none.
        """
        t, own = X.shape[0], len(self.kernels)
        found = np.tile(self.bias, (t, 1))
        for rows, _, shares in chain(self._of_given(between or {}), self._of_texts(texts)):
            found[rows] += shares
        n_values = t * self.n_support * own
        if n_values >= many_values and self._suits_loop(X):
            shared = self.coefficients.ndim == 2
            coefficients = self.coefficients if shared else self.coefficients[:own]
            found += expansion_sums(self.kernels, self.points, self.weights[:own], coefficients, X)
            return found
        for rows, _, shares in self._of_features(X):
            found[rows] += shares
        return found

    def _of_given(self, between: Between) -> Iterator[tuple[slice, int, Floats]]:
        """Yield the shares of the given kernels at t points: rows, the kernel, and (r, k)."""
        first = self.n_kernels - len(self.given)
        for m, kernel in enumerate(self.given if self.n_support else (), start=first):
            values = between[kernel.view][kernel.number][:, self.rows]
            yield ALL, m, self.weights[m] * (values @ self._coefficients(m))

    def _of_texts(self, texts: Array | None) -> Iterator[tuple[slice, int, Floats]]:
        """Yield the shares of the kernels of texts, as above."""
        if self.texts is None or not self.n_support:
            return
        if texts is None:
            raise ValueError("kernels of texts need texts")
        step = max(1, BLOCK_BYTES // (8 * self.n_support))
        for start in range(0, len(texts), step):
            rows = slice(start, min(start + step, len(texts)))
            for number in range(len(self.texts.kernels)):
                one, m = self.texts.kernels.select([number]), len(self.kernels) + number
                [values] = evaluate(one, texts[rows], self.texts.points, cosine=self.cosine)
                yield rows, m, self.weights[m] * (values @ self._coefficients(m))

    def _of_features(self, X: Floats) -> Iterator[tuple[slice, int, Floats]]:
        """Yield the shares of the kernels of features, as above."""
        t, support, parts = X.shape[0], self.n_support, self._parts
        if not (support and parts):
            return
        of_rows, X = Presence.of(self.kernels, X), without_gaps(X)
        points, presence = self._known
        largest = max(part.stop - part.start for part, _ in parts)
        rows_at_once = max(1, min(t, PART_BYTES // (8 * support)))
        memory = np.empty((largest, rows_at_once, support))
        for start in range(0, t, rows_at_once):
            rows = slice(start, min(start + rows_at_once, t))
            for part, kernels in parts:
                out = memory[: len(kernels), : rows.stop - rows.start]
                values = evaluate(kernels, X[rows], points, cosine=self.cosine, out=out)
                for m, of_kernel in zip(range(part.start, part.stop), values, strict=True):
                    coefficients = self._coefficients(m)
                    if presence is not None:  # kernels are zero where features are missing
                        coefficients = coefficients * presence[m][:, None]
                    shares = self.weights[m] * (of_kernel @ coefficients)
                    if of_rows is not None:
                        shares[~of_rows[m][rows]] = 0.0
                    yield rows, m, shares

    def _suits_loop(self, X: Floats) -> bool:
        """Return True if the compiled loop evaluates these kernels at these points."""
        if is_sparse(X) or self.cosine or not takes(self.kernels):
            return False
        return bool(np.isfinite(X).all() and np.isfinite(self.points).all())

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
    def _known(self) -> tuple[Floats, Presence | None]:
        """Support points, with 0 for features that they lack, and which have all of a kernel."""
        return without_gaps(self.points), Presence.of(self.kernels, self.points)

    def _coefficients(self, kernel: int) -> Floats:
        """Return the coefficients (s, k) of a kernel."""
        return self.coefficients if self.coefficients.ndim == 2 else self.coefficients[kernel]


BY = ("views", "features", "kernels")
INTERCEPT = "intercept"


def _parts_of(
    function: Expansion,
    by: str,
    feature_names: tuple[str, ...],
    text_names: tuple[str, ...],
    views: Mapping[str, Collection[str]],
) -> list[str]:
    """Return the part of a decision function that each of its S kernels belongs to."""
    if by == "kernels":
        return function.names(feature_names, text_names)
    lists = [(function.kernels, feature_names)]
    if function.texts is not None:
        lists.append((function.texts.kernels, text_names))
    found = []
    for kernels, names in lists:
        places = kernels.subset_names(names)
        for m in range(len(kernels)):
            own, place = {names[c] for c in kernels.features_of(m)}, places[kernels.subset[m]]
            of_view = (view for view, columns in views.items() if own <= {*columns})
            found.append(place if by == "features" else next(of_view, place))
    return found + [kernel.view for kernel in function.given]


@dataclass(frozen=True, eq=False)
class Contributions:
    """Decision functions divided among parts: views, features or kernels."""

    functions: list[tuple[Expansion, list[str]]]  # each with the part of each of its kernels
    columns: list[tuple[Hashable, str | None]]
    """Class and part of each column of the values.

    The class is None for a single function; the last part of a class is its intercept, None.
    """

    @classmethod
    def of(
        cls,
        functions: Sequence[Expansion],
        by: str,
        feature_names: tuple[str, ...],
        text_names: tuple[str, ...],
        views: Mapping[str, Collection[str]],
        classes: Sequence[Hashable] | None,
    ) -> Contributions:
        """Divide functions; by features, additive kernels are divided among theirs."""
        if by not in BY:
            raise SpecError("by", f"{by!r:.60}", f"one of {', '.join(map(repr, BY))}")
        if by == "features":
            functions = [one.of_single_features() for one in functions]
        found = [(one, _parts_of(one, by, feature_names, text_names, views)) for one in functions]
        named: list[list[str | None]] = [[*dict.fromkeys(own), None] for _, own in found]
        if not classes:
            return cls(found, [(None, name) for name in named[0]])
        if len(named) < len(classes):  # which share their kernels
            named = named * len(classes)
        pairs = zip(classes, named, strict=True)
        return cls(found, [(c, name) for c, own in pairs for name in own])

    def values(
        self, points: Floats, between: Between | None = None, texts: Array | None = None
    ) -> Floats:
        """Return contributions at points, (t, c), class after class."""
        found = [one.contributions(own, points, between, texts) for one, own in self.functions]
        return np.hstack([np.moveaxis(one, 2, 1).reshape(len(one), -1) for one in found])

    def table(self, values: Floats) -> pd.DataFrame:
        """Return contributions (t, c) as a table, with levels ``class`` and ``part`` of classes."""
        import pandas as pd

        named = [(c, INTERCEPT if part is None else part) for c, part in self.columns]
        if named[0][0] is None:
            return pd.DataFrame(values, columns=[part for _, part in named])
        names = ["class", "part"]
        return pd.DataFrame(values, columns=pd.MultiIndex.from_tuples(named, names=names))


@dataclass(frozen=True, eq=False)
class LabelCoding:
    """The step from decision values to predictions."""

    classes: Labels | None
    answers: tuple[float, ...]
    positive_at_zero: bool = True

    @classmethod
    def of_dataset(cls, dataset: Dataset, rows: Ints) -> LabelCoding:
        """Return the coding of the labels of some rows of a data set."""
        if dataset.classes is None:
            return cls(None, constant_answers(dataset.y[rows], 0))
        answers = constant_answers(dataset.class_numbers[rows], len(dataset.classes))
        return cls(_typed(dataset.classes), answers)

    @property
    def order(self) -> Ints:
        """Positions of the classes by precedence: a tie of several goes to the most frequent."""
        return np.argsort(-np.array(self.answers), kind="stable")

    @property
    def function_names(self) -> tuple[str, ...]:
        """Names of the decision functions: those of more than two classes, else empty."""
        if self.classes is None or len(self.classes) <= 2:
            return ()
        return tuple(map(str, self.classes.tolist()))

    def predictions(self, values: Floats, calibration: Calibrated | None = None) -> Labels:
        """Return the predictions of decision values (t, k), (t,): labels, or real values."""
        if self.classes is None:
            return values[:, 0]
        if calibration is not None:
            return self.classes[calibration.predicted(values, self.order)]
        if len(self.classes) > 2:
            return self.classes[predicted_classes(values.T, self.order)]
        positive = values[:, 0] >= 0.0 if self.positive_at_zero else values[:, 0] > 0.0
        return self.classes[positive.astype(np.intp)]

    @classmethod
    def of_names(cls, classes: Any, kind: str, **others: Any) -> LabelCoding:
        """Return the coding of classes, a list or None, in a type of numpy."""
        if classes is not None:
            classes = np.array(classes, dtype=object if kind.endswith("O") else kind)
        return cls(classes, **others)


def _typed(names: tuple[str, ...]) -> Labels:
    """Return names of classes as whole numbers or numbers where all are, else as text.

    A text such as ``01`` or ``1_2`` names no number: written as one, it would read otherwise.
    """
    if not all(name_of_number(name) == name for name in names):
        return np.array(names)
    numbers = [number_of_name(name) for name in names]
    if all(isinstance(number, int) for number in numbers):
        whole = np.array(numbers)
        return whole if whole.dtype.kind in "iu" else np.array(numbers, dtype=object)
    exact = all(
        number_name(float(number)) == name for number, name in zip(numbers, names, strict=True)
    )
    return np.array(numbers, dtype=np.float64) if exact else np.array(names)
