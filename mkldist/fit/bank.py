"""Banks of kernels for Python: made, checked and packed once, then solved many times."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args

import numpy as np
import numpy.typing as npt

from mkldist.bank.bank import Bank, MemoryBank, MemoryBudget, PartBank, TileLayout
from mkldist.bank.bank_kernels import BankKernels, GivenKernel
from mkldist.bank.cache import default_directory
from mkldist.bank.factored_kernels import FactoredKernels, FactorLimits, begin_factors, least_bytes
from mkldist.bank.recomputed import RecomputedBank
from mkldist.bank.sources import ArraySource, BankSource, PlainSource, compute
from mkldist.bank.view import BankView, make_views
from mkldist.core.arrays import LARGEST, Array, Bools, Floating, Floats, Ints
from mkldist.core.devices import CPU
from mkldist.core.memory import (
    GIB,
    SHARE_OF_MEMORY,
    at_most_half,
    kept_arrays_bytes,
    physical_memory,
    row_cache_bytes,
    view_cache_bytes,
)
from mkldist.core.threads import load_for, n_processors, single_threaded, threads_for
from mkldist.core.wording import FROM_ZERO, html_of, pluralize, truncate
from mkldist.data.checks import common_rows, gram_indexes, group_columns
from mkldist.data.dataset import Dataset, GramView, View
from mkldist.data.grams import LARGEST_SINGLE, Repairs, semidefinite, symmetric, tolerance_of
from mkldist.data.grams import check_finite as check_finite_matrix
from mkldist.errors import DataError, GramError, SpecError, nearest
from mkldist.fit.decision import BankFunctions, Expansion, NewPoints, TextSupport
from mkldist.fit.inputs import (
    SHOWN,
    Features,
    check_word,
    gram_stack,
    kernel_values,
    text_names,
    whole_number,
)
from mkldist.kernel_functions.bases import is_sparse
from mkldist.kernels.evaluate import check_custom, check_points
from mkldist.kernels.families import kernel_choice
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.objects import Kernel, Precomputed
from mkldist.solvers.base import ArrayCache, Solution
from mkldist.spec.banks import FACTORS, PRECOMPUTED, Normalisation
from mkldist.spec.kinds import Indefinite

if TYPE_CHECKING:
    import pandas as pd


Backend = Literal["memory", "recompute"]
DTYPES = ("auto", "float32", "float64")


def normalisation_steps(normalisation: Any) -> tuple[str, ...]:
    """Return the normalisations that a user names, checked, as :func:`make_views` takes them."""
    several = isinstance(normalisation, list | tuple | np.ndarray)
    names = list(normalisation) if several else [normalisation]
    for name in names:
        check_word("normalisation", name, get_args(Normalisation))
    steps = tuple(name.split()[-1] for name in names if name != "none")
    if "cosine" in steps[1:]:
        raise SpecError("normalisation", "'cosine' after another one", "it first")
    return steps


def factor_limits(
    backend: str, rank: Any, tolerance: Any, device: Any, dtype: str, steps: Sequence[str]
) -> FactorLimits:
    """Return the limits of factors, unless settings do not fit the backend."""
    factors, in_passes = backend == FACTORS, backend in ("recompute", FACTORS)
    double = "'float64', in which kernels are computed: none is stored"
    of_passes = f"{CPU!r}, or a device's name and backend 'recompute' or {FACTORS!r}"
    known_device = isinstance(device, str) and (in_passes or device == CPU)
    for name, value, fits, expected in (
        ("rank", rank, factors or rank is None, f"no rank, or backend {FACTORS!r}"),
        ("tolerance", tolerance, factors or tolerance is None, f"none, or backend {FACTORS!r}"),
        ("device", device, known_device, of_passes),
        ("dtype", dtype, backend != "recompute" or dtype != "float32", double),
        ("normalisation", "centre", not (factors and "centre" in steps), "other ones, or 'none'"),
    ):
        if not fits:
            raise SpecError(name, f"{value!r:.60} for backend {backend!r}", expected)
    real = tolerance is None or isinstance(tolerance, int | float | np.floating)
    if not real or not 0 <= (tolerance or 0) < 1:
        raise SpecError("tolerance", f"{tolerance!r:.60}", "a number of at least 0, below 1")
    return FactorLimits.of(None if rank is None else whole_number("rank", rank, 1), tolerance)


def check_groups(groups: Mapping[str, Any], where: str) -> None:
    """Refuse groups that are no lists of features, by the parameter `where` that gave them."""
    expected = "features in lists, by the names of their groups"
    if not isinstance(groups, Mapping):
        raise SpecError(where, f"{groups!r:.60}", expected)
    for name, members in groups.items():
        if isinstance(members, str) or not isinstance(members, Iterable):
            raise SpecError(f"{where}[{name!r}]", f"{members!r:.60}", expected)
        if any(isinstance(member, bool | np.bool_) for member in members):
            hint = "Give the numbers of the columns of a mask: np.flatnonzero(mask).tolist()"
            raise SpecError(f"{where}[{name!r}]", f"{members!r:.60}", expected, hint)


def as_dataset(
    features: Features,
    groups: Mapping[str, Sequence[int | str]],
    views: Mapping[str, Sequence[int | str]],
    given: dict[str, GramView],
) -> Dataset:
    """Return features, and views that are Gram matrices, as a data set of which kernels are made.

    Groups and views name features, by name or by number from 0.  Views may name columns of texts
    too, and stand besides those that the features were given in.
    """
    for kind, named in (("groups", groups), ("views", views)):
        check_groups(named, kind)
    columns: dict[str, tuple[int, ...]] = {}
    first = 0
    for name, view in features.views.items():
        columns[name] = tuple(range(first, first := first + len(view.names)))
    _check_apart(columns, views, "views")
    texts = features.texts
    if texts is not None:
        positions = {name: place for place, name in enumerate(texts.names)}
        own = {v: tuple(positions[m] for m in some if m in positions) for v, some in views.items()}
        texts = replace(texts, views={v: View(some) for v, some in own.items() if some})
        others = {v: [m for m in some if m not in positions] for v, some in views.items()}
        views = {v: some for v, some in others.items() if some or not own[v]}
    columns |= group_columns(views, features.names, "X")
    of_views = {name: View(members) for name, members in columns.items()}
    _check_apart(of_views, groups, "groups")
    points, sparse = features.points, is_sparse(features.points)
    return Dataset(
        name="X",
        x=points if features.names and not sparse else None,
        sparse=points if sparse else None,
        y=np.zeros(features.n_points),
        classes=None,
        feature_names=features.names,
        weights=features.weights,
        groups=columns | group_columns(groups, features.names, "X"),
        views=of_views,
        given=given,
        texts=texts,
    )


def _check_apart(known: Mapping[str, Any], names: Iterable[str], where: str) -> None:
    """Refuse groups or views that have the name of a view."""
    both = [repr(name) for name in names if name in known]
    if both:
        found, expected = truncate(both, SHOWN), "a name of its own for each group and view"
        raise SpecError(where, f"{found}, the name of a view too", expected, "Rename one of them")


FEW_ENTRIES = 2**20  # entries of matrices that one thread has done before others have started
PART_ENTRIES = 2**19
MOST_THREADS = 8


def parallel_map(work: Callable[[slice], None], n_kernels: int, entries: int) -> None:
    """Call ``work(kernels)``, which releases the interpreter's lock, for slices of all kernels.

    Of several threads each has one thread of linear algebra.  The first exception in the order of
    the kernels is raised; parts that have not begun are dropped.  `entries` are those of a kernel.
    """
    step = max(1, PART_ENTRIES // entries)
    parts = [slice(at, min(at + step, n_kernels)) for at in range(0, n_kernels, step)]
    threads = min(n_processors(), MOST_THREADS, len(parts))
    if threads == 1 or n_kernels * entries < FEW_ENTRIES:
        for part in parts:
            work(part)
        return
    with single_threaded(), ThreadPoolExecutor(threads, "mkldist-grams") as pool:
        list(pool.map(work, parts))


Check = Literal["full", "none"]


@dataclass(frozen=True)
class Inspection:
    """Checks of single Gram matrices before a solver sees them.

    ``"full"`` requires finite, symmetric and positive semi-definite matrices, averages triangles
    that differ by rounding, and sets eigenvalues slightly below zero to zero.  ``"none"`` requires
    finite ones.  The tolerance is that of asymmetry relative to the largest entry, and of negative
    eigenvalues relative to the trace; `where` is the place to name in a message.
    """

    check: Check
    tolerance: float
    where: str = "grams"
    repairs: Repairs | None = None  # of matrices that are not, in place of a refusal

    @classmethod
    def of(
        cls, check: str, dtype: np.dtype[Any], where: str = "grams", indefinite: str | None = None
    ) -> Inspection:
        """Return the checks of this name for matrices that were stored in a type."""
        check_word("check", check, get_args(Check))
        repairs = None
        if indefinite is not None:
            check_word("indefinite", indefinite, get_args(Indefinite))
            if check != "full":
                raise SpecError("indefinite", f"check={check!r}", "check='full', which finds such")
            repairs = Repairs(cast(Indefinite, indefinite))
        return cls(cast(Check, check), tolerance_of(dtype), where, repairs)

    def sound(self, stack: Floats, largest: float) -> npt.NDArray[np.bool_]:
        """Return which of some matrices are finite and, unless unchecked, equal their transpose.

        No entry of their diagonals is negative, or larger than `largest`.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            found: npt.NDArray[np.bool_] = np.isfinite(stack.sum(axis=(1, 2)))
        diagonals = np.einsum("mii->mi", stack)
        found &= (diagonals >= 0.0).all(axis=1) & (diagonals <= largest).all(axis=1)
        if self.check != "none":
            found &= (stack == stack.swapaxes(1, 2)).all(axis=(1, 2))
        return found

    def inspected(
        self, matrix: Floats, kernel: int, largest: float = LARGEST, *, sound: bool = False
    ) -> Floats:
        """Return an (n, n) matrix that passes, itself or as the check changes it."""
        place = f"{self.where}: kernel {kernel}"
        if not sound and (self.check == "none" or largest < LARGEST):
            check_finite_matrix(matrix, place, largest)
        if self.check == "none":
            return matrix
        if not sound:
            matrix = symmetric(matrix, self.tolerance, place)
        return semidefinite(matrix, self.tolerance, place, self.repairs, kernel)

    def map(self, work: Callable[[slice], None], stack: npt.NDArray[Any]) -> None:
        """Call ``work(kernels)`` for slices of a stack, with what factorises matrices loaded."""
        if self.check == "full":
            load_for(stack.shape[1])  # before threads begin, which would not limit its threads
        parallel_map(work, len(stack), stack.shape[1] ** 2)


def inspected_stack(stack: npt.NDArray[Any], inspection: Inspection) -> npt.NDArray[Any]:
    """Return matrices that pass; `stack` itself where no matrix changes, else a copy."""
    changed: dict[int, Floats] = {}

    def work(kernels: slice) -> None:
        for m in range(kernels.start, kernels.stop):
            matrix = np.asarray(stack[m], dtype=np.float64)
            passed = inspection.inspected(matrix, m)
            if passed is not matrix:
                changed[m] = passed

    inspection.map(work, stack)
    if not changed:
        return stack
    result = np.array(stack, dtype=np.float64)
    for m, matrix in changed.items():
        result[m] = matrix
    return result


def packed_bank(
    stack: npt.NDArray[Any], inspection: Inspection, dtype: npt.DTypeLike = np.float64
) -> MemoryBank:
    """Check matrices (M, n, n) of numbers and pack them, a few at a time, several side by side."""
    layout = TileLayout.for_points(stack.shape[1])
    values: Floating = np.empty((len(stack), layout.n_entries), dtype=dtype)
    largest = LARGEST_SINGLE if values.dtype == np.float32 else LARGEST

    def work(kernels: slice) -> None:
        part = np.asarray(stack[kernels], dtype=np.float64)
        changed: dict[int, Floats] = {}
        sound = inspection.sound(part, largest).tolist()
        for m, matrix in enumerate(part, kernels.start):
            passed = inspection.inspected(matrix, m, largest, sound=sound[m - kernels.start])
            if passed is not matrix:
                changed[m] = passed
        layout.pack(part, out=values[kernels])
        for m, passed in changed.items():
            layout.pack(passed, out=values[m])

    inspection.map(work, stack)
    return MemoryBank(values, layout)


def precomputed_views(
    kernels: Any, features: Features
) -> tuple[dict[str, GramView], dict[str, Repairs]]:
    """Return the Gram matrices among the kernels of a bank, checked, by names of their views."""
    found: dict[str, GramView] = {}
    repairs: dict[str, Repairs] = {}
    for kernel in () if isinstance(kernels, str | Mapping) else kernels:
        if not isinstance(kernel, Precomputed):
            continue
        where, n, gaps = f"Precomputed {kernel.name!r}", features.n_points, features.gaps
        if kernel.name in found or kernel.name in features.views:
            raise SpecError(where, "two views of this name", "a name for each", "Set name = …")
        common_rows(where, {"X": features.rows} | gram_indexes("grams", kernel.grams))
        stack = gram_stack(_stacked(kernel.grams, where, "(n, n) or (M, n, n) numbers"), where)
        if stack.shape[1] != n:
            raise GramError(where, f"shape {stack.shape}", f"matrices of the {n} points of X")
        missing = _missing_rows(stack, where) if gaps else np.zeros(n, dtype=bool)
        if missing.any():
            stack = np.where(~missing[:, None] & ~missing, stack, 0.0)
        inspection = Inspection.of("full", stack.dtype, where, kernel.indefinite)
        grams = np.asarray(inspected_stack(stack, inspection), dtype=np.float64)
        if missing.any() and inspection.repairs is not None:  # a shift changed their diagonal
            grams = np.where(~missing[:, None] & ~missing, grams, 0.0)
        found[kernel.name] = GramView(grams, ~missing, "zero" if gaps else None)
        if inspection.repairs is not None:
            repairs[kernel.name] = inspection.repairs
    return found, repairs


def _stacked(value: Any, where: str, expected: str) -> Array:
    """Return one matrix or several as (M, r, c)."""
    array = kernel_values(value, where, expected)
    return array[None] if array.ndim == 2 else array


def _missing_rows(stack: Array, where: str) -> Bools:
    """Return which points lack the view: NaN in their whole row and column, in all matrices."""
    if stack.dtype.kind != "f":
        return np.zeros(stack.shape[1], dtype=bool)
    of_each = np.isnan(stack).all(axis=2)
    missing = np.asarray(of_each.all(axis=0))
    if (of_each.any(axis=0) != missing).any():
        found = "points that lack some of the matrices"
        expected = "points that have all matrices of a view or none"
        raise GramError(where, found, expected, "Give a Precomputed of its own for each matrix")
    if np.isfinite(stack[:, missing[:, None] | missing]).any():
        row = FROM_ZERO.of(int(np.flatnonzero(missing)[0]))
        found = f"{row} of NaN beside other values of that point"
        expected = "NaN in the whole row and column of a point that lacks the view"
        raise GramError(where, found, expected)
    return missing


@dataclass(frozen=True)
class BankSize:
    """Size of a bank before it is made: its numbers of kernels and points, and its type."""

    n_kernels: int
    n_points: int
    dtype: np.dtype[np.floating]

    @classmethod
    def of(cls, n_kernels: int, n_points: int, dtype: str) -> BankSize:
        """Return the size of a bank in the type of a name, which ``"auto"`` leaves to it."""
        return cls(n_kernels, n_points, np.dtype("f8" if dtype == "auto" else dtype))

    @property
    def n_bytes(self) -> int:
        """Bytes of all stored entries."""
        layout = TileLayout.for_points(self.n_points)
        return self.n_kernels * layout.n_entries * self.dtype.itemsize

    @property
    def fits(self) -> bool:
        """True if half of this machine's memory holds the bank."""
        return self.n_bytes <= SHARE_OF_MEMORY * physical_memory()

    def backend(self, asked: str) -> Backend:
        """Return the backend asked for; for ``"auto"`` memory if the bank fits there."""
        if asked == "auto":
            return "memory" if self.fits else "recompute"
        if asked == "memory" and not self.fits:
            found = f"'memory' for {self.n_kernels} kernels on {self.n_points} points, which take "
            found += f"{self.n_bytes / GIB:.1f} GiB as {self.dtype.name}"
            limit = at_most_half(SHARE_OF_MEMORY * physical_memory())
            raise DataError("backend", found, limit, "Choose backend='recompute'")
        return cast(Backend, asked)


def loaded(source: BankSource, dtype: np.dtype[np.floating]) -> MemoryBank:
    """Compute a bank into memory, several kernels side by side."""
    layout = TileLayout.for_points(source.n_points)
    values: Floating = np.empty((source.n_kernels, layout.n_entries), dtype=dtype)

    def work(kernels: slice) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            compute(source, kernels, slice(0, layout.n_entries), layout, values[kernels])

    with single_threaded():
        parallel_map(work, len(values), layout.n_entries)
    return MemoryBank(values, layout)


def recomputed(source: BankSource) -> RecomputedBank:
    """Return a bank whose kernels are computed in every pass."""
    return RecomputedBank(source, row_cache_bytes(None), n_processors())


def factored(
    source: BankSource,
    limits: FactorLimits,
    dtype: str,
    seed: int,
    folder: str | Path | None = None,
) -> FactoredKernels:
    """Factorise all kernels to few columns, several side by side, in half of the memory."""
    most = int(SHARE_OF_MEMORY * physical_memory())
    limits = replace(limits, n_bytes=most)
    n, threads = source.n_points, min(n_processors(), MOST_THREADS)
    needed = least_bytes(n, limits)
    if needed > most:
        found = (
            f"'factors' of rank {limits.first(n)} on {pluralize(n, 'point')}, of which one takes "
        )
        found += f"up to {needed / GIB:.1f} GiB while it is made"
        raise DataError("backend", found, at_most_half(most), "Lower rank")
    place = default_directory() if folder is None else Path(folder)
    dtype = "float64" if dtype == "auto" else dtype
    return begin_factors(source, limits, seed, threads, folder=place, dtype=dtype)


class KernelBank:
    """M kernels on n points: made, checked and packed once, then solved many times.

    ``KernelBank(X, kernels)`` evaluates kernel functions on features;
    :meth:`KernelBank.from_grams` takes Gram matrices.  ``mkldist.solve(method, bank, y)`` and
    ``mkldist.solve_path`` take the bank where they take Gram matrices.

    Features are taken as they are.  Unlike a sweep, a bank does not scale them (``zscore`` by
    default there), drop constant ones, fill missing values, or set points aside.  What is fitted
    is the normalisation: on X, and :meth:`on` applies it to new points.

    Parameters
    ----------
    X : (n, d) array-like, sparse array or DataFrame, or mapping of str to array-likes
        Features of the training points, finite; or views, blocks of features by name, which
        `features` of a kernel may use.  A feature ``a`` of a view ``v`` is called ``v.a``.  Sparse
        features stay sparse: Gaussian, polynomial and linear kernels come from sparse products.
        The index of a frame names the points unless it is a plain range: other views, labels in
        :func:`mkldist.solve` and kernel values in :meth:`on` must then have the same one.
    kernels : str or list of dict and kernels
        Name of a family, see ``mkldist list kernels``; or entries with the keys of
        ``[[banks.kernels]]`` in a sweep file (such as ``function``, ``widths`` and ``features``),
        objects such as ``mkldist.kernels.Gaussian(widths=0.5)``, and functions of one's own, see
        ``mkldist.kernels.Custom``.  The columns of a DataFrame are features by name, those of an
        array are ``x0``, ``x1`` and so on.  ``mkldist.kernels.Precomputed(grams, name="strings")``
        puts Gram matrices beside them.
    normalisation : str or list of str
        As in a sweep file: ``"trace"``, ``"cosine"``, ``"centre"``, ``"variance"``, ``"none"``, or
        several in order.
    backend : {"auto", "memory", "recompute", "factors"}
        As in a sweep file: loaded into memory, or computed in every pass.  ``"auto"`` loads a bank
        that half of this machine's memory holds, and computes any other in every pass.
        ``"factors"``, for many points or linear kernels of few features, keeps of each kernel a
        thin factor G with ``G G' <= K``.  Some methods solve on these, which go on until
        :attr:`mkldist.Solution.exact_gap` reaches `tol`.  ``"auto"`` takes none.
    dtype : {"auto", "float32", "float64"}
        Precision of stored kernels or factors; ``"auto"`` is float64.  Arithmetic is in float64.
    groups : mapping of str to list of str or int, optional
        Names for groups of features, which ``features`` of a kernel may use.
    views : mapping of str to list of str or int, optional
        Groups that are views: ``features="views"`` stands for each of them.  Those of `texts` may
        be among their columns, by name.
    missing : {"error", "zero"}
        What NaN means: a mistake, or a feature that the point lacks.  A kernel is zero between any
        point and one that lacks one of the kernel's features, here and at new points; so it is
        for texts.
    texts : list of str, optional
        Columns of a DataFrame `X` that are texts.  ``mkldist.kernels.Spectrum`` and functions of
        one's own name them by `features`; other kernels do not see them.
    seed : int
        Seed of random feature subsets and random widths.
    folder : str or Path, optional
        Folder of a file for factors that memory does not hold; by default the node cache.
    rank : int, optional
        Most columns of a factor; by default as many as can be made in half of this machine's
        memory, which the factors share.  Factors begin with 100, and those that a solution is found
        to lack go on.
    tolerance : float, optional
        Share of a kernel's trace with which a factor ends before, by default 0.001.
    device : str
        What computes kernels in passes, and those of factors: ``"cpu"``, or a device of PyTorch
        such as ``"cuda"``, as in a sweep file.

    Raises
    ------
    mkldist.errors.SpecError
        For unknown families, keys, features or settings.
    mkldist.errors.DataError
        For features that cannot be used, and for a bank that does not fit where it is to be kept.

    Examples
    --------
    >>> import numpy as np, mkldist
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> y = np.sign(X[:, 0] * X[:, 1])
    >>> bank = mkldist.KernelBank(X[:40], [
    ...     {"function": "gaussian", "widths": [0.5, 1, 2], "features": ["all", "each"]},
    ...     {"function": "polynomial", "degrees": [2]},
    ... ])
    >>> len(bank), bank.kernels.function[3]
    (13, 'polynomial')
    >>> solution = mkldist.solve("level", bank, y[:40], C=10.0)
    >>> solution.decision_function(bank.on(X[40:])).shape
    (20,)
    """

    view: BankView
    """The bank as solvers see it."""
    factored: FactoredKernels | None = None
    """The kernels beside their factors, of a bank of factors; None for other banks."""
    rows: pd.Index[Any] | None = None
    """The index of the frames that the bank was made of, which names the points; or None."""
    __iter__ = None  # a bank is no sequence of kernels: bank[0] is refused

    _backend: str
    _normalisations: tuple[str, ...]
    _index: Ints  # the kernels among those of _kernels or _names
    _names: tuple[str, ...] = ()  # of Gram matrices, in a bank of these alone
    _kernels: BankKernels | None = None  # of other banks, as are the next three
    _features: Features
    _dataset: Dataset
    _source: BankSource
    _repairs: Mapping[str, Repairs] = MappingProxyType({})
    """What changed indefinite matrices, by view, or as "grams" in a bank of these alone."""

    def __init__(
        self,
        X: Any,
        kernels: str | Sequence[Mapping[str, Any] | Kernel | Callable[..., Any]],
        *,
        normalisation: str | Sequence[str] = "variance",
        backend: str = "auto",
        dtype: str = "auto",
        groups: Mapping[str, Sequence[int | str]] | None = None,
        views: Mapping[str, Sequence[int | str]] | None = None,
        missing: str = "error",
        texts: Sequence[str] = (),
        seed: int = 0,
        folder: str | Path | None = None,
        rank: int | None = None,
        tolerance: float | None = None,
        device: str = "cpu",
    ) -> None:
        check_word("missing", missing, ("error", "zero"))
        check_word("backend", backend, ("auto", *get_args(Backend), FACTORS))
        check_word("dtype", dtype, DTYPES)
        steps, seed = normalisation_steps(normalisation), whole_number("seed", seed, 0)
        limits = factor_limits(backend, rank, tolerance, device, dtype, steps)
        gaps = missing == "zero"
        features = Features.of(X, gaps=gaps, texts=text_names(texts)).apart_from(X)
        choice = kernel_choice(kernels)
        precomputed, self._repairs = precomputed_views(kernels, features)
        if choice.family == PRECOMPUTED:
            hint = "Or call KernelBank.from_grams for Gram matrices"
            raise SpecError("kernels", "'precomputed' for features", "another family", hint)
        self._normalisations, self._features, self.rows = steps, features, features.rows
        self._dataset = as_dataset(features, groups or {}, views or {}, precomputed)
        made = self._kernels = BankKernels.of(choice, self._dataset, seed)
        self._index = np.arange(len(made))
        if made.of_features is not None:
            check_points(made.of_features, features.points, features.names, "X")
            check_custom(made.of_features, features.points)
        if made.of_texts is not None and features.texts is not None:
            check_custom(made.of_texts, features.texts.values)
        if made.given:
            _refuse_cosines(steps)
        cosine = "cosine" in steps
        self._source = made.source(
            self._dataset, features.points, None, cosine=cosine, device=device
        )
        steps = tuple(step for step in steps if step != "cosine")
        if backend == FACTORS:
            self._backend = FACTORS
            factors = factored(self._source, limits, dtype, seed, folder)
            [view] = factors.views([None], steps, features.weights)
            self.factored = replace(factors, scale=view.scale)
            self.view = self.factored.view
            return
        size = BankSize.of(len(made), features.n_points, dtype)
        self._backend = size.backend(backend)
        bank: Bank = recomputed(self._source)
        if self._backend == "memory":
            bank = loaded(self._source, size.dtype)
        weights = features.weights
        [self.view] = make_views(bank, [None], steps, None, self._source.presence, weights)

    @classmethod
    def from_grams(
        cls,
        grams: npt.ArrayLike,
        *,
        normalisation: str | Sequence[str] = "none",
        check: Literal["full", "none"] = "full",
        backend: str = "auto",
        dtype: str = "auto",
        names: Sequence[str] | None = None,
        indefinite: Literal["clip", "flip", "shift"] | None = None,
    ) -> Self:
        """Return a bank of given Gram matrices, checked.

        Parameters
        ----------
        grams : (M, n, n) array-like
            Gram matrices, possibly memory-mapped; they are read one at a time.
        normalisation : str or list of str
            As in a sweep file, without ``"cosine"``; by default none.
        check : {"full", "none"}
            ``"full"`` requires finite, symmetric and positive semi-definite matrices.  It takes
            one factorisation a matrix.  Eigenvalues from -1e-8 of the trace (-1e-6 in single
            precision) to 0 are set to zero; a matrix with smaller ones is refused.

            ``"none"`` requires finite entries alone.  A certificate then holds if the matrices are
            symmetric and positive semi-definite.
        backend : {"auto", "memory", "recompute"}
            As for :class:`KernelBank`; ``"recompute"`` reads the given array in every pass.
        dtype
            As for :class:`KernelBank`.
        names : sequence of str, optional
            Names of the M kernels.
        indefinite : {"clip", "flip", "shift"}, optional
            What becomes of matrices with smaller eigenvalues, which are refused by default:
            negative ones are set to zero; lose their signs; or the most negative one is taken from
            the diagonal.  The bank's representation counts such matrices.  :meth:`on` changes
            kernel values of new points by the same projection, and not for ``"shift"``.

        Raises
        ------
        mkldist.errors.GramError
            For matrices that fail the check; the message names the first such kernel.
        """
        bank = cls.__new__(cls)
        check_word("backend", backend, ("auto", *get_args(Backend)))
        check_word("dtype", dtype, DTYPES)
        bank.rows = common_rows("", gram_indexes("grams", grams))
        steps, stack = normalisation_steps(normalisation), gram_stack(grams)
        _refuse_cosines(steps)
        inspection = Inspection.of(check, stack.dtype, indefinite=indefinite)
        if inspection.repairs is not None:
            bank._repairs = {"grams": inspection.repairs}
        bank._normalisations = steps
        bank._names, bank._index = _gram_names(names, len(stack)), np.arange(len(stack))
        size = BankSize.of(len(stack), stack.shape[1], dtype)
        bank._backend = size.backend(backend)
        with threads_for(size.n_points):
            if bank._backend == "memory":
                packed: Bank = packed_bank(stack, inspection, size.dtype)
            else:
                packed = recomputed(ArraySource(inspected_stack(stack, inspection), symmetric=True))
            [bank.view] = make_views(packed, [None], steps)
        return bank

    def __len__(self) -> int:
        return self.view.n_kernels

    def _size(self) -> str:
        """Return where the kernels are, and how large they are there, in words."""
        if self._backend == "recompute":
            return "computed in every pass"
        bank, factored = self.view.bank, self.factored
        dtype = bank.dtype if factored is None else factored.factors.kept_type
        return f"{bank.n_bytes / 2**20:.1f} MiB of {dtype.name}, {self._backend}"

    def __repr__(self) -> str:
        """Return the sizes and settings in one line."""
        changed: list[str] = []
        for name, repairs in self._repairs.items():
            own = self._names if self._kernels is None else self._dataset.given[name].grams
            changed += repairs.notes(len(own))
        return (
            f"<KernelBank: {pluralize(len(self), 'kernel')} on "
            f"{pluralize(self.n_points, 'point')}, {self._size()}, "
            f"normalisation {', '.join(self._normalisations) or 'none'}"
            f"{''.join(f'; {one}' for one in changed)}>"
        )

    def _repr_html_(self) -> str:
        """Return the same, with the first kernels, for a notebook."""
        facts = {
            "kernels": len(self),
            "points": self.n_points,
            "size": self._size(),
            "normalisation": ", ".join(self._normalisations) or "none",
        }
        return html_of("KernelBank", facts, self[:10].kernels)

    def __getitem__(self, kernels: slice | Sequence[int] | npt.NDArray[Any]) -> KernelBank:
        """Return a bank of some kernels, which shares the memory of this one."""
        if isinstance(kernels, int | np.integer):
            raise IndexError(f"found kernel {kernels}; expected a list of kernels, or a slice")
        index: Ints = np.arange(len(self))[kernels]
        if index.ndim != 1 or not len(index):
            raise IndexError(f"found {index.size} kernels; expected at least one of {len(self)}")
        part, whole, made = copy.copy(self), self.view, self._kernels
        vars(part).pop("graph_arrays", None)  # of other kernels
        part._index = self._index[index]
        bank: Bank = PartBank(whole.bank, index)
        if made is not None and made.of_features is not None and made.are_of_features:
            part._kernels = BankKernels(made.of_features.select(index))
            part._index = np.arange(len(index))
            if isinstance(whole.bank, RecomputedBank):
                functions = cast("PlainSource", self._source)
                part._source = replace(functions, kernels=functions.kernels.select(index))
                bank = recomputed(part._source)
        if self.factored is not None:
            part.factored = self.factored.select(index)
            bank = part.factored.factors
        traces = None if whole.traces is None else whole.traces[index]
        scale, shares = whole.scale[index], whole.shares
        part.view = BankView(bank, None, scale, whole.centred, traces=traces, shares=shares)
        return part

    def __array__(self, *_: object, **__: object) -> npt.NDArray[Any]:
        """Refuse to be an array, which numpy would otherwise make of items."""
        expected = "an array, or the points bank.on(X)"
        raise GramError("grams", f"{self!r}", expected)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def n_points(self) -> int:
        """Number of training points n."""
        return self.view.n_points

    @cached_property
    def graph_arrays(self) -> ArrayCache:
        """What methods on a graph compute of kernels and graphs alone, up to 256 MiB."""
        return ArrayCache(kept_arrays_bytes(None))

    def views(self, points: Sequence[Ints]) -> list[BankView]:
        """Return the kernels on some of the points for each of several sets, normalised there."""
        steps = tuple(step for step in self._normalisations if step != "cosine")
        weights = None if self._kernels is None else self._features.weights
        if self.factored is not None:
            return self.factored.views(points, steps, weights)
        presence = None if self._kernels is None else self._source.presence
        budget = MemoryBudget(view_cache_bytes(None))
        return make_views(self.view.bank, points, steps, budget, presence, weights)

    @property
    def kernels(self) -> pd.DataFrame:
        """Description of the kernels, one row a kernel.

        The columns are function, width, degree, offset, other parameters that kernels have,
        features, as in the name, columns, the names of these features, and name; for Gram
        matrices the name alone.
        """
        import pandas as pd

        if self._kernels is None:
            return pd.DataFrame({"name": [self._names[m] for m in self._index.tolist()]})
        made, tables = self._kernels, []
        if made.of_features is not None:
            tables.append(_table(made.of_features, self._features.names))
        if made.of_texts is not None:
            tables.append(_table(made.of_texts, made.text_names))
        if made.given:
            given = [(PRECOMPUTED, one.view, (), one.name) for one in made.given]
            named = ["function", "features", "columns", "name"]
            tables.append(pd.DataFrame(given, columns=named))
        return pd.concat(tables, ignore_index=True).iloc[self._index].reset_index(drop=True)

    @property
    def groups(self) -> Ints | None:
        """Group of each kernel, (M,), for ``group_mkl``: kernels on the same features form one.

        It is None for Gram matrices.
        """
        return None if self._kernels is None else self._kernels.groups[self._index]

    def on(self, X_new: Any, *, grams: Mapping[str, Any] | None = None) -> NewPoints:
        """Return new points for :meth:`mkldist.Solution.decision_function`.

        Kernels are evaluated when a decision function is: only those of non-zero weight, and a few
        megabytes at a time.  The normalisation is that of the training points.

        Parameters
        ----------
        X_new : (n_new, d) array-like or DataFrame, or mapping of str to these
            Features in the units of the training points, columns and views by their names.  For a
            bank of Gram matrices (M, n_new, n): kernel values between new and training points,
            without the normalisation.
        grams : mapping of str to (n_new, n) or (M, n_new, n) array-like, optional
            For each ``Precomputed`` of the bank, by its name, kernel values between new points and
            training points.  A row of NaN is that of a point which lacks the view, if points may.
        """
        made, given = self._kernels, {} if grams is None else grams
        if given and (made is None or not made.given):
            found = f"matrices of {', '.join(map(repr, given))}"
            expected = "none: the bank has no kernel mkldist.kernels.Precomputed"
            raise GramError("grams", found, expected)
        if made is None:
            _check_cross_rows(self.rows, None, {"X_new": X_new})
            repairs = self._repairs.get("grams")
            between = _cross_grams(X_new, len(self), self.n_points)

            def stacked(kernels: Ints, points: slice, support: Ints | slice) -> Iterator[Floats]:
                for kernel in kernels.tolist():
                    found = np.asarray(between[kernel][points], dtype=np.float64)
                    if repairs is not None:
                        found = repairs.between(found, int(self._index[kernel]))
                    found = found[:, support]
                    if not np.isfinite(found).all():
                        where = f"X_new: kernel {kernel}"
                        raise GramError(where, "values that are not finite", "finite numbers")
                    yield found

            return NewPoints(self.view, between.shape[1], stacked)

        own, new = self._features, self._features.like(X_new)
        _check_cross_rows(self.rows, new.rows, {f"grams[{name!r}]": given[name] for name in given})
        cosine = "cosine" in self._normalisations
        if made.of_features is not None:
            check_points(made.of_features, new.points, own.names, "X_new")
        of_views = _cross_views(self._dataset.given, given, new.n_points, self._repairs)

        def values(kernels: Ints, points: slice, support: Ints | slice) -> Iterator[Floats]:
            def gram(kernel: GivenKernel) -> Floats:
                known: Floats = of_views[kernel.view][kernel.number][points][:, support]
                return known

            rows, columns = _rows_of(new, points), _rows_of(own, support)
            chosen = self._index[kernels]
            yield from made.values_between(chosen, rows, columns, gram, cosine=cosine)

        return NewPoints(self.view, new.n_points, values)

    def expansion(self, solution: Solution) -> Expansion:
        """Return the decision functions of a solution on this bank, apart from it.

        They hold the active kernels and the support points alone, so that they are small and can
        be pickled.  A bank with given Gram matrices knows no points, and is refused.
        """
        made = self._kernels
        if made is None or made.given:
            expected = "kernels of features and of texts alone"
            raise GramError("bank", "given Gram matrices", expected)
        own, texts = solution.kernel_coefficients, self._features.texts
        coefficients = solution.coefficients if own is None else own
        weights, bias = solution.kernel_weights, solution.bias
        functions = BankFunctions.of(self.view, weights, coefficients, bias)
        support = None
        if made.of_texts is not None and texts is not None:
            support = TextSupport(made.of_texts, texts.values)
        kernels, cosine = made.of_features or KernelList.empty(), "cosine" in self._normalisations
        points, index = self._features.points, self._index
        return Expansion.of(kernels, cosine, points, functions, texts=support, index=index)

    def close(self) -> None:
        """Give back memory; the bank must not be used afterwards."""
        self.view.bank.close()


def _refuse_cosines(steps: Sequence[str]) -> None:
    """Refuse cosines of given matrices, whose new points would lack k(x, x)."""
    if "cosine" in steps:
        expected = "'trace', 'centre', 'variance' or 'none'"
        hint = "Divide k(x, z) by the root of k(x, x) k(z, z) before"
        raise SpecError("normalisation", "'cosine' for given Gram matrices", expected, hint)


def _gram_names(names: Sequence[str] | None, n_kernels: int) -> tuple[str, ...]:
    """Return the names that a user gives Gram matrices; by default those that sweeps have."""
    if names is None:
        return tuple(f"gram[{m}]" for m in range(n_kernels))
    if isinstance(names, str) or not hasattr(names, "__len__"):
        raise GramError("names", f"{names!r:.60}", "a list of names, one a matrix")
    if len(names) != n_kernels:
        found = f"{pluralize(len(names), 'name')} for {pluralize(n_kernels, 'matrix', 'matrices')}"
        raise GramError("names", found, "one a matrix")
    return tuple(map(str, names))


def _rows_of(points: Features, rows: Ints | slice) -> tuple[Floats, Array | None]:
    """Return features and texts of some points."""
    return points.points[rows], None if points.texts is None else points.texts.values[rows]


def _table(kernels: KernelList, names: Sequence[str]) -> pd.DataFrame:
    """Return a description of kernel functions on features or texts of these names."""
    import pandas as pd

    ends = kernels.subset_indptr
    subsets = np.empty(len(ends) - 1, dtype=object)
    for s in range(len(subsets)):
        columns = kernels.subset_indices[ends[s] : ends[s + 1]]
        subsets[s] = tuple(names[column] for column in columns.tolist())
    missing = np.full(len(kernels), np.nan)
    usual = dict.fromkeys(("function", "width", "degree", "offset"), missing)
    places = np.array(kernels.subset_names(names), dtype=object)
    own = {
        "features": places[kernels.subset],
        "columns": subsets[kernels.subset],
        "name": kernels.names(names),
    }
    return pd.DataFrame({**(usual | kernels.columns()), **own})


def _cross_grams(value: Any, n_kernels: int, n_points: int) -> Array:
    """Return kernel values between new points and those of a bank, possibly memory-mapped."""
    expected = f"(M, n_new, n) = ({n_kernels}, n_new, {n_points})"
    grams = kernel_values(value, "X_new", expected)
    if grams.ndim != 3 or (grams.shape[0], grams.shape[2]) != (n_kernels, n_points):
        raise GramError("X_new", f"shape {grams.shape}", expected)
    return grams


def _check_cross_rows(rows: Any, new_rows: Any, grams: Mapping[str, Any]) -> None:
    """Refuse kernel values in frames of other new points (rows) or training points (columns)."""
    for name, values in grams.items():
        indexes = gram_indexes(name, values)
        for side, first, known in (("rows", "X_new", new_rows), ("columns", "X", rows)):
            own = {part: index for part, index in indexes.items() if part.startswith(side)}
            common_rows("", {first: known, **own})


def _cross_views(
    known: Mapping[str, GramView],
    grams: Mapping[str, Any],
    n_new: int,
    repairs: Mapping[str, Repairs],
) -> dict[str, Floats]:
    """Return the kernel values (M, n_new, n) of each view between new points and those of a bank.

    They are zero for new points that lack the view.
    """
    for name in (*known, *grams):
        if name not in grams or name not in known:
            found = f"no matrices of {name!r}" if name in known else f"matrices of {name!r}"
            wanted = ", ".join(f"{view!r}: (n_new, n)" for view in known)
            expected = f"kernel values between new points and those of the bank, {{{wanted}}}"
            hint = nearest(name, grams) or "Call bank.on(X_new, grams={name: values})"
            raise DataError("grams", found, expected, hint)
    checked = {}
    for name, values in grams.items():
        one, where = known[name], f"grams[{name!r}]"
        shape = (len(one.grams), n_new, len(one.present))
        expected = f"(M, n_new, n) = {shape}"
        stack = np.asarray(_stacked(values, where, expected), dtype=np.float64)
        if stack.shape != shape:
            raise GramError(where, f"shape {stack.shape}", expected)
        stack = np.where(one.present, stack, 0.0)
        if one.missing == "zero":
            missing = np.asarray(np.isnan(stack[:, :, one.present]).all(axis=(0, 2)))
            stack = np.where(missing[:, None], 0.0, stack)
        if not np.isfinite(stack).all():
            raise GramError(where, "values that are not finite", "finite numbers")
        if name in repairs:
            stack = np.array([repairs[name].between(one, m) for m, one in enumerate(stack)])
        checked[name] = stack
    return checked
