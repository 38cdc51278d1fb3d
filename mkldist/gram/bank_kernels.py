"""The kernels of a bank on a data set: functions of its features, then given Gram matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mkldist.arrays import Floating, Floats, Ints
from mkldist.data.dataset import Dataset
from mkldist.errors import SpecError, nearest
from mkldist.gram.sources import ArraySource, BankSource, FeatureSource, JoinedSource
from mkldist.gram.sparse_source import SparseSource
from mkldist.identity import content_id
from mkldist.kernel_functions.bases import INNER_PRODUCT, SQUARED_DISTANCE
from mkldist.kernel_functions.lengths import inverse_lengths
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.families import kernel_list
from mkldist.kernels.gaps import Presence
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.banks import PRECOMPUTED, BankSpec, KernelSpec


@dataclass(frozen=True)
class GivenKernel:
    """A Gram matrix of a view.

    Parameters
    ----------
    view : str
        The view.
    number : int
        The matrix among those of the view.
    alone : bool
        True if the view has no other.
    """

    view: str
    number: int
    alone: bool

    @property
    def name(self) -> str:
        """The name in results.

        Examples
        --------
        >>> GivenKernel("strings", 0, True).name, GivenKernel("strings", 2, False).name
        ('precomputed[strings]', 'precomputed(2)[strings]')
        """
        return f"{PRECOMPUTED}{'' if self.alone else f'({self.number})'}[{self.view}]"


@dataclass(frozen=True, eq=False)
class BankKernels:
    """The kernels of a bank.

    Parameters
    ----------
    of_features : KernelList or None
        Kernel functions on features, the first of the bank.
    given : tuple of GivenKernel
        Gram matrices of views, the others: all matrices of one view after the other.
    """

    of_features: KernelList | None
    given: tuple[GivenKernel, ...] = ()

    @classmethod
    def of(cls, spec: BankSpec, dataset: Dataset, seed: int) -> BankKernels:
        """Return the kernels of a bank on a data set of features, of views, or of both.

        Parameters
        ----------
        spec : BankSpec
            The bank.
        dataset : Dataset
            The data set.
        seed : int
            Seed of random subsets and widths.

        Raises
        ------
        SpecError
            For kernels that do not fit the features or the views.
        """
        if spec.family == PRECOMPUTED and dataset.given:
            return cls(
                None, tuple(kernel for view in dataset.given for kernel in _of(view, dataset))
            )
        given: dict[GivenKernel, None] = {}
        for i, entry in enumerate(spec.kernels):
            place = f"banks.{spec.label}.kernels[{i}]"
            if entry.function == PRECOMPUTED:
                given |= dict.fromkeys(_given(entry, dataset, place))
            else:
                _check_features(entry, dataset, place)
        if spec.kernels and all(entry.function == PRECOMPUTED for entry in spec.kernels):
            return cls(None, tuple(given))
        of_features = kernel_list(
            spec, dataset.n_features, dataset.feature_names, dataset.groups, seed, dataset.views
        )
        if dataset.sparse is not None:
            _check_sparse(of_features, dataset, f"banks.{spec.label}")
        return cls(of_features, tuple(given))

    def __len__(self) -> int:
        return len(self.given) + (0 if self.of_features is None else len(self.of_features))

    @property
    def fingerprint(self) -> str:
        """Content hash of the kernels."""
        given = [[kernel.view, kernel.number] for kernel in self.given]
        own = None if self.of_features is None else self.of_features.fingerprint
        return own if own is not None and not given else content_id(of_features=own, given=given)

    @property
    def groups(self) -> Ints:
        """Group of each kernel, (M,): those on one feature subset, or of one view, form one."""
        own = np.empty(0, dtype=np.intp) if self.of_features is None else self.of_features.groups
        views = list(dict.fromkeys(kernel.view for kernel in self.given))
        first = 1 + int(own.max(initial=-1))
        given = [first + views.index(kernel.view) for kernel in self.given]
        return np.concatenate([own, np.array(given, dtype=np.intp)])

    def names(self, feature_names: Sequence[str]) -> list[str]:
        """Return one name per kernel."""
        own = [] if self.of_features is None else self.of_features.names(feature_names)
        return own + [kernel.name for kernel in self.given]

    def source(
        self, dataset: Dataset, points: Floats | None, rows: Ints | None, *, cosine: bool
    ) -> BankSource:
        """Return the source of the bank's values.

        Parameters
        ----------
        dataset : Dataset
            The data set.
        points : (N, d) float64 or None
            All of its rows, preprocessed; None without kernels of features.
        rows : (n,) intp or None
            Rows that are the bank's points; None for all of them.
        cosine : bool
            True if kernels are scaled to unit self-similarities.
        """
        parts: list[BankSource] = []
        if self.of_features is not None and points is not None:
            own = points if rows is None else points[rows]
            source = SparseSource if is_sparse(own) else FeatureSource
            parts.append(source(own, self.of_features, cosine))
        for view in dict.fromkeys(kernel.view for kernel in self.given):
            one = dataset.given[view]
            present = one.present if rows is None else one.present[rows]
            presence = None
            if not present.all():
                presence = Presence(present[None], np.zeros(len(one.grams), dtype=np.intp))
            names = tuple(kernel.name for kernel in self.given if kernel.view == view)
            parts.append(ArraySource(one.grams, cosine, rows, presence, names))
        return parts[0] if len(parts) == 1 else JoinedSource(tuple(parts))

    def cross_values(
        self,
        dataset: Dataset,
        points: Floats | None,
        kernels: Ints,
        rows: Ints,
        cols: Ints,
        *,
        cosine: bool,
    ) -> Iterator[Floats]:
        """Yield the values of each of some kernels between two sets of rows of the data set.

        Parameters
        ----------
        dataset, points, cosine
            As for :meth:`source`.
        kernels : (S,) intp
            The kernels, at least one.
        rows, cols : (r,), (c,) intp
            Rows of the data set.
        """
        first = 0 if self.of_features is None else len(self.of_features)
        ends = np.flatnonzero(np.diff(kernels < first)) + 1
        for some in np.split(kernels, ends):
            if self.of_features is not None and points is not None and some[0] < first:
                chosen = self.of_features.select(some)
                yield from evaluate(chosen, points[rows], points[cols], cosine=cosine)
                continue
            for kernel in some.tolist():
                given = self.given[kernel - first]
                gram = dataset.given[given.view].grams[given.number]
                yield part_of_gram(gram, rows, cols, cosine=cosine)


def part_of_gram(gram: Floating, rows: Ints, columns: Ints, *, cosine: bool) -> Floats:
    """Return some rows and columns of a Gram matrix, as cosines if asked for."""
    values = np.asarray(gram[rows[:, None], columns], dtype=np.float64)
    if cosine:
        inverse = inverse_lengths(np.diagonal(gram).astype(np.float64))
        values = values * inverse[rows, None] * inverse[columns]
    return values


def _check_sparse(kernels: KernelList, dataset: Dataset, where: str) -> None:
    """Refuse kernels that would make sparse features dense."""
    for m in np.unique(kernels.function, return_index=True)[1].tolist():
        function = kernels.function_of(m)
        if function.base not in (INNER_PRODUCT, SQUARED_DISTANCE):
            n_bytes = 8 * dataset.n_points * dataset.n_features
            raise SpecError(
                where,
                f"a {function.label} kernel of sparse features, dense {n_bytes / 2**20:.1f} MiB",
                "gaussian, polynomial or linear kernels, which sparse products give",
                "Use dense features for it",
            )


def _given(entry: KernelSpec, dataset: Dataset, place: str) -> Iterator[GivenKernel]:
    """Yield the matrices that an entry names."""
    for key in ("widths", "degrees", "offset"):
        if key in entry.model_fields_set and getattr(entry, key) is not None:
            raise SpecError(f"{place}.{key}", f"{key} of a {PRECOMPUTED} kernel", "none")
    known = list(dataset.given)
    listed = f"one of {', '.join(map(repr, known))}" if known else "a view with grams = a file"
    for word in _words(entry):
        if not isinstance(word, str) or word not in dataset.given:
            found = "no view" if "features" not in entry.model_fields_set else f"{word!r}"
            hint = nearest(word, known) if isinstance(word, str) else ""
            if word in dataset.groups or word in dataset.feature_names:
                hint = 'Set function = "gaussian" or the like for kernels of features'
            raise SpecError(
                f"{place}.features",
                f"{found} for a {PRECOMPUTED} kernel on data set {dataset.name!r}",
                f"the name of a view of Gram matrices: {listed}",
                hint,
            )
        yield from _of(word, dataset)


def _of(view: str, dataset: Dataset) -> Iterator[GivenKernel]:
    """Yield the matrices of a view."""
    count = len(dataset.given[view].grams)
    for number in range(count):
        yield GivenKernel(view, number, count == 1)


def _words(entry: KernelSpec) -> Sequence[object]:
    """Return the words for features of an entry."""
    return entry.features if isinstance(entry.features, list) else [entry.features]


def _check_features(entry: KernelSpec, dataset: Dataset, place: str) -> None:
    """Refuse kernel functions on a view of Gram matrices."""
    for word in _words(entry):
        if word in dataset.given and word not in (*dataset.groups, *dataset.feature_names):
            raise SpecError(
                f"{place}.features",
                f"{word!r}, a view of Gram matrices, for a {entry.label} kernel",
                "features",
                f'Set function = "{PRECOMPUTED}" for this view, in an entry of its own',
            )
