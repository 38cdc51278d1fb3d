"""Banks of kernels for Python: made, checked and packed once, then solved many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Ints
from mkldist.counted import counted
from mkldist.errors import GramError, SpecError
from mkldist.gram.cross_values import NewPoints
from mkldist.gram.passes import answer
from mkldist.gram.predictor import raw_predictors
from mkldist.gram.requests import Combine
from mkldist.gram.view import BankView
from mkldist.in_memory.bank_content import BankContent
from mkldist.in_memory.bank_of_grams import bank_of_grams
from mkldist.in_memory.keeping import Keeping
from mkldist.memory import kept_arrays_bytes
from mkldist.solvers.kept_arrays import KeptArrays

if TYPE_CHECKING:
    import pandas as pd

    from mkldist.gram.factored_kernels import FactoredKernels
    from mkldist.in_memory.expansion import Expansion
    from mkldist.kernels.words import Kernel
    from mkldist.solvers.base import Solution


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
    kernels : str or list of dict and kernels
        Name of a family, see ``mkldist list kernels``; or entries with the keys of
        ``[[banks.kernels]]`` in a sweep file (such as ``function``, ``widths`` and ``features``),
        objects such as ``mkldist.kernels.Gaussian(width=0.5)``, and functions of one's own, see
        ``mkldist.kernels.Custom``.  The columns of a DataFrame are features by name, those of an
        array are ``x0``, ``x1`` and so on.  ``mkldist.kernels.Precomputed(grams, name="strings")``
        puts Gram matrices beside them.
    normalisation : str or list of str
        As in a sweep file: ``"trace"``, ``"cosine"``, ``"centre"``, ``"variance"``, ``"none"``, or
        several in order.
    backend : {"auto", "memory", "mmap", "stream", "recompute", "factors"}
        As in a sweep file: loaded into memory; mapped from a file; read from files in every pass;
        or never stored and computed in every pass.  ``"auto"`` loads a bank that half of this
        machine's memory holds, and computes any other in every pass.  ``"factors"``, for many
        points, keeps of each kernel a thin factor G with ``G G' <= K``.  Some methods solve on
        these, which go on until :attr:`mkldist.Solution.exact_gap` reaches `tol`.
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
        Folder for the files of ``"mmap"`` and ``"stream"``; the same kernels on the same points
        are found there again.  By default a temporary folder, deleted by :meth:`close`, at the end
        of a ``with`` block, or with the last bank that uses it.  Factors that memory does not hold
        lie in a file without a name there, by default in the node cache.
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

    _content: BankContent
    __iter__ = None  # a bank is no sequence of kernels: bank[0] is refused

    def __init__(
        self,
        X: Any,
        kernels: str | Sequence[Mapping[str, Any] | Kernel | Callable[..., Any]],
        *,
        normalisation: str | Sequence[str] = "trace",
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
        from mkldist.in_memory.bank_of_features import bank_of_features
        from mkldist.in_memory.given_features import Features
        from mkldist.in_memory.given_kernels import bank_spec, check_seed
        from mkldist.in_memory.given_texts import text_names
        from mkldist.in_memory.given_views import given_views

        if missing not in ("error", "zero"):
            raise SpecError("missing", f"{missing!r}", "'error' or 'zero'")
        check_seed(seed)
        features = Features.of(X, gaps=missing == "zero", texts=text_names(texts)).apart_from(X)
        settings = {"normalisation": normalisation, "backend": backend, "dtype": dtype}
        spec = bank_spec(kernels, **settings, rank=rank, tolerance=tolerance, device=device)
        given = given_views(kernels, features)
        self._content = bank_of_features(
            features, spec, groups or {}, seed, folder, given, views or {}
        )

    @classmethod
    def from_grams(
        cls,
        grams: npt.ArrayLike,
        *,
        normalisation: str | Sequence[str] = "none",
        check: Literal["full", "active", "none"] = "full",
        backend: str = "auto",
        dtype: str = "auto",
        names: Sequence[str] | None = None,
        folder: str | Path | None = None,
    ) -> Self:
        """Return a bank of given Gram matrices, checked.

        Parameters
        ----------
        grams : (M, n, n) array-like
            Gram matrices, possibly memory-mapped; they are read one at a time.
        normalisation : str or list of str
            As in a sweep file, without ``"cosine"``; by default none.
        check : {"full", "active", "none"}
            ``"full"`` requires finite, symmetric and positive semi-definite matrices.  It takes
            one factorisation a matrix.  Eigenvalues from -1e-8 of the trace (-1e-6 in single
            precision) to 0 are set to zero; a matrix with smaller ones is refused.

            ``"active"`` checks what a certificate rests on.  At once it requires finite, symmetric
            matrices without negative entries on the diagonal.  After a solution it requires that
            every kernel of positive weight is positive semi-definite, and with these their sum.
            Nothing is said about the definiteness of kernels of weight zero.

            ``"none"`` requires finite entries alone.  The upper triangle counts.  A certificate
            then holds if the matrices are positive semi-definite.
        backend : {"auto", "memory", "mmap", "stream"}
            As for :class:`KernelBank`.  ``"auto"`` streams a bank that does not fit in memory.
        dtype, folder
            As for :class:`KernelBank`.
        names : sequence of str, optional
            Names of the M kernels.

        Raises
        ------
        mkldist.errors.GramError
            For matrices that fail the check; the message names the first such kernel.
        """
        keeping = Keeping.of_grams(normalisation, backend, dtype)
        bank = cls.__new__(cls)
        bank._content = bank_of_grams(grams, keeping, check, names, folder)
        return bank

    def __len__(self) -> int:
        return self.view.n_kernels

    def __repr__(self) -> str:
        """Return the sizes and settings in one line."""
        content, bank = self._content, self.view.bank
        size = "computed in every pass"
        if content.backend != "recompute":
            dtype = bank.dtype if self.factored is None else self.factored.factors.kept_type
            size = f"{bank.n_bytes / 2**20:.1f} MiB of {dtype.name}, {content.backend}"
        return (
            f"<KernelBank: {counted(len(self), 'kernel')} on {counted(self.n_points, 'point')}, "
            f"{size}, normalisation {content.normalisation}>"
        )

    def __getitem__(self, kernels: slice | Sequence[int] | npt.NDArray[Any]) -> KernelBank:
        """Return a bank of some kernels, which shares the memory of this one.

        Parameters
        ----------
        kernels : slice, sequence of int or (M,) bool
            The kernels, in any order.

        Raises
        ------
        IndexError
            For kernels that the bank has not, and for none.
        """
        from mkldist.in_memory.some_kernels import some_kernels

        made = KernelBank.__new__(KernelBank)
        made._content = some_kernels(self._content, _indices(kernels, len(self)))
        return made

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

    @property
    def view(self) -> BankView:
        """The bank as solvers see it."""
        return self._content.view

    @property
    def factored(self) -> FactoredKernels | None:
        """The kernels beside their factors, of a bank of factors; None for other banks."""
        return self._content.factored

    @cached_property
    def graph_arrays(self) -> KeptArrays:
        """What methods on a graph compute of kernels and graphs alone, up to 256 MiB."""
        return KeptArrays(kept_arrays_bytes(None))

    @property
    def has_rounded_factors(self) -> bool:
        """True for a bank of factors in float32."""
        return self.factored is not None and self.factored.factors.kept_type == np.float32

    @property
    def kernels(self) -> pd.DataFrame:
        """Description of the kernels, one row a kernel.

        The columns are function, width, degree, offset, other parameters that kernels have,
        features and name; for Gram matrices the name alone.
        """
        return self._content.origin.table()

    @property
    def groups(self) -> Ints | None:
        """Group of each kernel, (M,), for ``group_mkl``: kernels on the same features form one.

        It is None for Gram matrices.
        """
        return self._content.origin.groups()

    def on(self, X_new: Any, *, grams: Mapping[str, Any] | None = None) -> NewPoints:
        """Return new points for :meth:`mkldist.Solution.decision_function`.

        Kernels are evaluated when a decision function is: only those of non-zero weight, and a few
        megabytes at a time.  The normalisation is that of the training points.

        Parameters
        ----------
        X_new : (n_new, d) array-like or DataFrame, or mapping of str to these
            Features in the units of the training points, the columns of a DataFrame and the views
            of a mapping by their names.  For a bank of Gram matrices (M, n_new, n): kernel values
            between new points and training points, without the normalisation.
        grams : mapping of str to (n_new, n) or (M, n_new, n) array-like, optional
            For each ``Precomputed`` of the bank, by its name, kernel values between new points and
            training points.  A row of NaN is that of a point which lacks the view, if points may.

        Raises
        ------
        mkldist.errors.DataError, mkldist.errors.GramError
            For other columns or another shape, and for features that are not finite.
        """
        return self._content.origin.at(X_new, self.view, grams)

    def expansion(self, solution: Solution) -> Expansion:
        """Return the decision functions of a solution apart from the bank.

        They hold the active kernels and the support points alone, so that they are small and can
        be pickled.

        Parameters
        ----------
        solution : Solution
            A solution on this bank.

        Raises
        ------
        mkldist.errors.GramError
            For a bank with given Gram matrices, which knows no points.
        """
        own = solution.kernel_coefficients
        coefficients = solution.coefficients if own is None else own
        predictors = raw_predictors(self.view, solution.kernel_weights, coefficients, solution.bias)
        return self._content.origin.expansion(predictors)

    def check_active(self, kernel_weights: npt.NDArray[np.float64]) -> None:
        """Check the kernels of positive weight, as ``check="active"`` asks after a solution.

        Each kernel is factorised once in the life of a bank.  Banks with another check do nothing.

        Parameters
        ----------
        kernel_weights : (M,) float64
            Weights of a solution.

        Raises
        ------
        mkldist.errors.GramError
            Naming the first kernel that is not positive semi-definite.
        """
        content, bank = self._content, self.view.bank
        if content.inspection is None:
            return
        for m in np.flatnonzero((kernel_weights > 0.0) & ~content.passed).tolist():
            [matrix] = answer(bank, [Combine(np.ones(1), np.array([m]))])
            content.inspection.require_semidefinite(matrix, m)
            content.passed[m] = True

    def close(self) -> None:
        """Give back memory and delete temporary files; the bank must not be used afterwards."""
        self.view.bank.close()
        if self._content.temporary is not None:
            self._content.temporary.delete()


def _indices(kernels: Any, n_kernels: int) -> Ints:
    """Return the kernels that a user names as indices from 0."""
    if isinstance(kernels, int | np.integer):
        raise IndexError(f"found kernel {kernels}; expected a list such as [{kernels}], or a slice")
    index: Ints = np.arange(n_kernels)[kernels]
    if index.ndim != 1 or not len(index):
        raise IndexError(f"found {index.size} kernels; expected at least one of {n_kernels}")
    return index
