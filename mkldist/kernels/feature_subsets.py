"""Feature subsets that a sweep file names: all features, each feature, groups, random subsets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Floats
from mkldist.errors import SpecError, nearest
from mkldist.spec.kernel_entries import Features, KernelSpec, RandomSubsets
from mkldist.spec.sizes import check_fits

# Sizes, columns and widths are drawn from separate streams, subset by subset, so that a larger
# number of random subsets begins with the same ones.
SIZE_STREAM, COLUMN_STREAM, WIDTH_STREAM = 0, 1, 2
COLUMN_DRAWS_AT_ONCE = 4_000_000  # of 8 bytes each
COLUMN_BYTES = 8  # of a column of a subset: once while it is drawn, once in the list of all
SUBSET_BYTES = 32  # of a subset besides
SHOWN = 8


@dataclass(frozen=True)
class FeatureSubsets:
    """S feature subsets that one word of a sweep file stands for.

    Parameters
    ----------
    rank : int
        Place of the word among the kinds of words: all, each, named, random.
    key : str
        Distinguishes words of the same rank.
    indptr : (S + 1,) int64
        Subset s is ``indices[indptr[s]:indptr[s + 1]]``.
    indices : (nnz,) int32
        Columns of the feature matrix.
    label : str or None
        Name of a single subset in the names of kernels.
    random : bool
        True if the subsets are random.
    """

    rank: int
    key: str
    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    label: str | None = None
    random: bool = False

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def spreads(self, deviations: Floats, norm: float) -> Floats:
        """Return the norm of the standard deviations of each subset's features, (S,); 1 for 0."""
        own, first = deviations[self.indices], self.indptr[:-1]
        if math.isinf(norm):
            found = np.maximum.reduceat(own, first)
        else:
            found = np.add.reduceat(own**norm, first) ** (1.0 / norm)
        return np.where(found > 0.0, found, 1.0)


@dataclass(frozen=True)
class SubsetWords:
    """The features and groups of a data set, by which words for feature sets are resolved.

    Parameters
    ----------
    n_features : int
        Number d of features.
    names : tuple of str
        d names.
    groups : mapping of str to tuple of int
        Column indices of the named groups.
    seed : int
        Seed of random subsets.
    views : tuple of str
        The groups that are views.
    """

    n_features: int
    names: tuple[str, ...]
    groups: Mapping[str, tuple[int, ...]]
    seed: int
    views: tuple[str, ...] = ()

    def feature_sets(self, entry: KernelSpec, place: str) -> list[str | RandomSubsets]:
        """Return the words for feature sets of an entry, from nested lists, without repeats.

        ``"views"`` and ``"groups"`` stand for the name of each view and of each other group, unless
        a group or a feature is called so.

        Raises
        ------
        SpecError
            If there are no views or groups.
        """
        flat: dict[str | RandomSubsets, None] = {}
        given = entry.features
        pending: Sequence[Features | str] = given if isinstance(given, list) else [given]
        for item in pending:
            for word in item if isinstance(item, list) else [item]:
                flat |= dict.fromkeys(self._named(word, place))
        return list(flat)

    def _named(self, word: str | RandomSubsets, place: str) -> Sequence[str | RandomSubsets]:
        """Return the names that a word stands for, by default itself."""
        if word not in ("views", "groups") or word in self.groups or word in self.names:
            return [word]
        found = self.views
        if word == "groups":
            found = tuple(name for name in self.groups if name not in self.views)
        if not found:
            what = "[[datasets.views]]" if word == "views" else "groups = { name = [features] }"
            raise SpecError(
                f"{place}.features", f"{word!r} of data without {word}", f"{what} of the data set"
            )
        return found

    def _names_known(self) -> str:
        """Return a hint that lists the first groups and features."""
        known = [*self.groups, *self.names]
        rest = f", … {len(known) - SHOWN} more" if len(known) > SHOWN else ""
        return f"Choose from {', '.join(known[:SHOWN])}{rest}" if known else ""

    def resolve(self, features: str | RandomSubsets, place: str) -> FeatureSubsets:
        """Return the subsets that a word stands for.

        Raises
        ------
        SpecError
            For an unknown word, an empty group, random subsets of more than d features, or more of
            them than memory holds.
        """
        d = self.n_features
        if isinstance(features, RandomSubsets):
            return self._random(features, place)
        if features == "all":
            return FeatureSubsets(
                0, "", np.array([0, d]), np.arange(d, dtype=np.int32), label="all"
            )
        if features == "each":
            return FeatureSubsets(1, "", np.arange(d + 1), np.arange(d, dtype=np.int32))
        if features in self.groups:
            chosen = np.array(self.groups[features], dtype=np.int32)
        elif features in self.names:
            chosen = np.array([self.names.index(features)], dtype=np.int32)
        else:
            known = ["all", "each", "views", "groups", *self.groups, *self.names]
            raise SpecError(
                f"{place}.features",
                f"{features!r}",
                "'all', 'each', 'views', 'groups', {count = …}, or the name of a group or feature",
                nearest(features, known) or self._names_known(),
            )
        if not len(chosen):
            raise SpecError(
                f"{place}.features", f"group {features!r} of no features", "at least one"
            )
        return FeatureSubsets(2, features, np.array([0, len(chosen)]), chosen, label=features)

    def _random(self, wanted: RandomSubsets, place: str) -> FeatureSubsets:
        """Draw random subsets; their sizes are uniform on 1, …, d unless given.

        The columns of a subset of k features are those of the k smallest among d random keys.
        """
        d, count = self.n_features, wanted.count
        if wanted.size is not None and wanted.size > d:
            raise SpecError(f"{place}.features.size", f"{wanted.size}", f"at most {d} features")
        n_columns = (d + 1) / 2 if wanted.size is None else wanted.size
        n_bytes = SUBSET_BYTES + COLUMN_BYTES * n_columns
        check_fits(count, n_bytes, f"{place}.features.count", "subsets", "Draw fewer")
        sizes = np.random.default_rng([self.seed, SIZE_STREAM]).integers(1, d + 1, count)
        if wanted.size is not None:
            sizes[:] = wanted.size
        rng = np.random.default_rng([self.seed, COLUMN_STREAM])
        chosen = []
        step = max(1, COLUMN_DRAWS_AT_ONCE // d)
        for start in range(0, count, step):
            part = sizes[start : start + step]
            keys = rng.random((len(part), d))
            bound = np.take_along_axis(np.sort(keys, axis=1), part[:, None] - 1, axis=1)
            chosen.append(np.nonzero(keys <= bound)[1].astype(np.int32))
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        key = f"{count} {wanted.size}"
        return FeatureSubsets(3, key, indptr, np.concatenate(chosen), random=True)
