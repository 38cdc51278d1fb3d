"""Features that a user gives :class:`mkldist.KernelBank`: conversion and checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from mkldist.arrays import Array, Floats
from mkldist.counted import counted
from mkldist.data.frames import frame_features
from mkldist.data.missing import check_values
from mkldist.data.raw import as_features
from mkldist.data.sparse_features import canonical, check_sparse
from mkldist.data.texts import TextColumns
from mkldist.errors import DataError, GramError, nearest
from mkldist.in_memory.given_arrays import real_array
from mkldist.in_memory.given_texts import check_texts, divided
from mkldist.kernel_functions.sparse_points import is_sparse

ALLOW_GAPS = 'Fill them, or set missing="zero": kernels are zero where a point lacks a text'


@dataclass(frozen=True, eq=False)
class Features:
    """Points with the names of their features.

    Parameters
    ----------
    points : (n, d) float64 array or csr_array
        The points, finite; NaN where a point lacks a feature, if it may.
    names : tuple of str
        d names; ``x0``, ``x1`` and so on for an array.
    named : bool
        True if the user gave the names: the columns of a DataFrame.
    gaps : bool
        True if points may lack features.
    views : dict of str to Features
        The blocks that the features were given in, by name; empty for a single block.
    texts : TextColumns, or None
        Columns of texts beside the features; None without any.
    """

    points: Floats
    names: tuple[str, ...]
    named: bool
    gaps: bool = False
    views: dict[str, Features] = field(default_factory=dict)
    texts: TextColumns | None = None

    @property
    def n_points(self) -> int:
        """Number of points n."""
        return int(self.points.shape[0])

    @property
    def columns_of_views(self) -> dict[str, tuple[int, ...]]:
        """The columns of each view."""
        found, first = {}, 0
        for name, view in self.views.items():
            found[name] = tuple(range(first, first + len(view.names)))
            first += len(view.names)
        return found

    @classmethod
    def of(
        cls, given: Any, where: str = "X", *, gaps: bool = False, texts: Sequence[str] = ()
    ) -> Features:
        """Return a DataFrame or an array-like (n, d) of numbers, or views of these, checked.

        Parameters
        ----------
        given : array-like, sparse array, DataFrame, or mapping of str to these
            The features, or blocks of them by name.  A feature ``a`` of a view ``v`` is called
            ``v.a``.
        where : str
            The place to name in a message.
        gaps : bool
            True to permit NaN for features that a point lacks, and missing texts.
        texts : sequence of str
            Columns of a DataFrame that are texts.

        Raises
        ------
        mkldist.errors.DataError
            For other shapes, texts, missing or infinite values, and columns of the same name.
        """
        given, of_texts = divided(given, texts, where)
        if of_texts is not None:
            check_texts(of_texts, range(len(texts) if gaps else 0), where, ALLOW_GAPS)
            if not len(given.columns) and len(given):
                return cls(np.empty((len(given), 0)), (), named=True, gaps=gaps, texts=of_texts)
            return replace(cls.of(given, where, gaps=gaps), texts=of_texts)
        if isinstance(given, Mapping):
            return _joined(
                {str(n): cls.of(x, f"{where}[{n!r}]", gaps=gaps) for n, x in given.items()}, where
            )
        if hasattr(given, "tocsr"):
            return cls._of_sparse(given, where)
        named = hasattr(given, "columns") and hasattr(given, "to_numpy")
        if named:
            names = tuple(map(str, given.columns))
            twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
            if twice is not None:
                raise DataError(
                    where, f"two columns {twice!r}", "a name of its own for every column"
                )
            points = frame_features(given, where)
        else:
            points = _array(given, where)
            names = tuple(f"x{j}" for j in range(points.shape[1]))
        if not len(points):
            raise DataError(where, "no rows", "at least one point")
        if gaps:
            _check_known(points, names, where)
            return cls(points, names, named, gaps=True)
        return cls(_finite(points, names, where), names, named)

    def apart_from(self, given: Any) -> Features:
        """Return features that stay as they are when the array-like that gave them is changed."""
        own = is_sparse(self.points) or (self.points is not given and self.points.base is None)
        return self if own else replace(self, points=self.points.copy())

    @classmethod
    def _of_sparse(cls, given: Any, where: str) -> Features:
        """Return a sparse array or matrix of numbers, checked and not made dense."""
        if given.dtype.kind not in "fiub" or given.ndim != 2 or 0 in given.shape:
            found = f"a sparse array of {given.dtype}, shape {given.shape}"
            raise DataError(where, found, "(n, d) real numbers, at least one")
        from scipy.sparse import csr_array

        points = canonical(csr_array(given))
        check_sparse(points, where)
        return cls(points, tuple(f"x{j}" for j in range(points.shape[1])), named=False)

    def like(self, given: Any, where: str = "X_new") -> Floats:
        """Return new points with the same features, (t, d), columns of a DataFrame by their names.

        Raises
        ------
        mkldist.errors.DataError
            For other columns, and as :meth:`of`.
        """
        if self.views:
            return self._like_views(given, where)
        new = self._new(given, where)
        if new.named and self.named:
            missing = [name for name in self.names if name not in new.names]
            others = [name for name in new.names if name not in self.names]
            if missing or others:
                found = f"no column {missing[0]!r}" if missing else f"a column {others[0]!r}"
                hint = nearest(missing[0], others) if missing else "Leave it out"
                raise DataError(
                    where, found, f"the {len(self.names)} columns that the bank was made of", hint
                )
            return np.ascontiguousarray(
                new.points[:, [new.names.index(name) for name in self.names]]
            )
        if len(new.names) != len(self.names):
            raise DataError(
                where,
                counted(len(new.names), "column"),
                f"{len(self.names)}, as the bank was made of",
            )
        if is_sparse(self.points) and not is_sparse(new.points):
            from scipy.sparse import csr_array

            return cast("Floats", csr_array(new.points))
        if is_sparse(new.points) and not is_sparse(self.points):
            hint = "Call X_new.toarray(), or make the bank of sparse features"
            raise DataError(where, "sparse features", "dense ones, as the bank was made of", hint)
        return new.points

    def texts_like(self, given: Any, where: str = "X_new") -> Array:
        """Return the texts of new points in the same columns, (t, c) str objects.

        Raises
        ------
        mkldist.errors.DataError
            For columns that are absent, and for missing texts unless points may lack them.
        """
        texts = self._new(given, where).texts
        return np.empty((0, 0), dtype=object) if texts is None else texts.values

    def _new(self, given: Any, where: str) -> Features:
        names = () if self.texts is None else self.texts.names
        return Features.of(given, where, gaps=self.gaps, texts=names)

    def _like_views(self, given: Any, where: str) -> Floats:
        """Return new points with the same views."""
        expected = f"a mapping of the views {', '.join(map(repr, self.views))}"
        if not isinstance(given, Mapping):
            raise DataError(where, f"one {type(given).__name__}", expected)
        names = [str(name) for name in given]
        lacking = [name for name in self.views if name not in names]
        if lacking:
            found = f"no view{'s' * (len(lacking) > 1)} {', '.join(map(repr, lacking))}"
            raise DataError(where, found, expected, nearest(lacking[0], names))
        for name in names:
            if name not in self.views:
                raise DataError(where, f"a view {name!r}", expected, nearest(name, self.views))
        by_name = {str(name): x for name, x in given.items()}
        blocks = {n: v.like(by_name[n], f"{where}[{n!r}]") for n, v in self.views.items()}
        _check_sizes({name: len(block) for name, block in blocks.items()}, where)
        return np.hstack(list(blocks.values()))


def _joined(views: dict[str, Features], where: str) -> Features:
    """Return the features of several views side by side."""
    if not views:
        raise DataError(where, "no view", "at least one block of features")
    for name, view in views.items():
        if is_sparse(view.points):
            hint = "Call toarray() first"
            raise DataError(f"{where}[{name!r}]", "sparse features", "dense ones in views", hint)
    _check_sizes({name: view.n_points for name, view in views.items()}, where)
    return Features(
        np.hstack([view.points for view in views.values()]),
        tuple(f"{name}.{feature}" for name, view in views.items() for feature in view.names),
        named=True,
        gaps=any(view.gaps for view in views.values()),
        views=views,
    )


def _check_sizes(sizes: Mapping[str, int], where: str) -> None:
    """Refuse views of different numbers of points."""
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{count} of {name!r}" for name, count in sizes.items())
        hint = 'Give a row of NaN to a point that lacks a view, and missing="zero" to the bank'
        raise DataError(where, f"rows that differ: {found}", "the same points in each view", hint)


def _check_known(points: Floats, names: Sequence[str], where: str) -> None:
    """Refuse infinite values, and features that no point has."""
    check_values(np.where(np.isnan(points), 0.0, points), names, None, where)
    empty = np.flatnonzero(np.isnan(points).all(axis=0))
    if len(empty) == len(names):
        raise DataError(where, "no value at all", "points with features", "Leave the view out")


def _array(given: Any, where: str) -> Floats:
    """Return an array-like as (n, d) float64."""
    try:
        return as_features(real_array(given, where, "(n, d) numbers"), where)
    except GramError as error:
        raise DataError(error.where, error.found, error.expected, error.hint) from None


def _finite(points: Floats, names: Sequence[str], where: str) -> Floats:
    """Return points without missing values; the hint is one for arrays, not for sweep files."""
    try:
        check_values(points, names, None, where)
    except DataError as error:
        hint = 'Fill them, or set missing="zero": kernels are zero where a point lacks a feature'
        if "infinite" in error.found:
            hint = "Correct them in the data"
        raise DataError(where, error.found, error.expected, hint) from None
    return points
