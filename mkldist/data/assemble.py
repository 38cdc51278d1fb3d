"""Turn the raw data of a reader into a data set: labels as numbers, features checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.core.wording import FROM_ZERO, RowLabels, pluralize, truncate
from mkldist.data.dataset import Dataset, GivenGrams, Split, View, absent_of, lacking_rows
from mkldist.data.labels import class_labels, class_notes, real_values
from mkldist.data.missing import check_values
from mkldist.data.partitions import group_numbers, partition_of_column, restricted
from mkldist.data.raw import RawData
from mkldist.data.row_blocks import moved_up, row_blocks
from mkldist.data.row_weights import check_class_weight, row_weights
from mkldist.data.source_columns import SourceColumns
from mkldist.data.sparse_features import check_sparse, sparse_said, varying
from mkldist.data.summary import ImportSummary
from mkldist.data.texts import TextColumns
from mkldist.data.times import rows_in_order
from mkldist.errors import DataError, nearest
from mkldist.spec.datasets import DatasetSpec, SplitsSpec

MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


def identical_lines(
    x: Floats,
    texts: TextColumns | None = None,
    groups: Ints | None = None,
    row_labels: RowLabels = FROM_ZERO,
) -> tuple[str, ...]:
    """Return a line about rows that are equal to another one, if there are any.

    It takes one pass over the features and a sort of n numbers.

    Parameters
    ----------
    x : (n, d) float64
        Features; missing values, as NaN, are equal.
    texts : TextColumns, optional
        Texts of the rows, which then must be equal too.
    groups : (n,) intp, optional
        Rows that stay in one part: equal rows of one group do no harm, and do not count.
    row_labels : RowLabels
        How a message names a row.

    Examples
    --------
    >>> identical_lines(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))[0][:51]
    '2 rows are equal to others in all features, such as'
    """
    if len(x) < 2 or not x.shape[1]:
        return ()
    keys = _keys(x)
    order = np.argsort(keys, kind="stable")
    near = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    first, second = order[near], order[near + 1]
    same = _equal(x, first, second)
    if texts is not None:
        same &= (texts.values[first] == texts.values[second]).all(axis=1)
    if groups is not None:
        same &= groups[first] != groups[second]
    if not same.any():
        return ()
    count = len(np.unique(np.concatenate([first[same], second[same]])))
    one, other = first[same][0], second[same][0]
    return (
        f"{pluralize(count, 'row')} are equal to others in all features, such as "
        f"{row_labels.of(one)} and {row_labels.of(other)}; a test point that equals a training "
        "point is no new one",
    )


def _keys(x: Floats) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return a number for each row, (n,), that is the same for equal rows and hardly for others."""
    keys = np.empty(len(x), dtype=np.uint64)
    weights = np.random.default_rng(0).integers(0, 2**63, x.shape[1], dtype=np.uint64) * 2 + 1
    for rows in row_blocks(len(x), 2 * x.itemsize * x.shape[1]):
        bits = np.ascontiguousarray(x[rows] + 0.0).view(np.uint64)  # -0.0 becomes 0.0
        mixed = (bits ^ (bits >> np.uint64(32))) * MULTIPLIER
        keys[rows] = ((mixed ^ (mixed >> np.uint64(32))) * weights).sum(axis=1)
    return keys


def _equal(x: Floats, first: Ints, second: Ints) -> Bools:
    """Return which pairs of rows are equal, (p,)."""
    same = np.zeros(len(first), dtype=bool)
    for pairs in row_blocks(len(first), 2 * x.itemsize * x.shape[1]):
        a, b = x[first[pairs]], x[second[pairs]]
        same[pairs] = ((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
    return same


def drawn_per_class(y: Floats, count: int, seed: int, classes: tuple[str, ...], where: str) -> Ints:
    """Return the rows of `count` random points of each class, ascending.

    Parameters
    ----------
    y : (n,) float64
        Labels, one number per class.
    count : int
        Number of points of each class.
    seed : int
        Seed of the sweep.
    classes : tuple of str
        Names of the classes in the order of their numbers.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If a class has fewer points.

    Examples
    --------
    >>> y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    >>> len(drawn_per_class(y, 2, 0, ("no", "yes"), "t.csv"))
    4
    """
    rng = np.random.default_rng([seed, count])
    drawn = []
    for number, name in zip(np.unique(y), classes, strict=True):
        members = np.flatnonzero(y == number)
        if len(members) < count:
            raise DataError(
                f"{where}: per_class",
                f"{pluralize(len(members), 'point')} of class {name!r}",
                f"at least {count} of each class",
                f"Set per_class to at most {len(members)}, or remove it",
            )
        drawn.append(rng.choice(members, count, replace=False))
    return np.sort(np.concatenate(drawn)).astype(np.intp)


def drawn_points(y: Floats, count: int, seed: int, *, stratified: bool, where: str) -> Ints:
    """Return the rows of `count` random points, ascending.

    Parameters
    ----------
    y : (n,) float64
        Labels, one number per class, or real values.
    count : int
        Number of points.
    seed : int
        Seed of the sweep.
    stratified : bool
        Whether classes keep their proportions, and at least one point each.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If there are fewer points, or fewer are asked for than there are classes.

    Examples
    --------
    >>> y = np.array([1.0, 1.0, -1.0, 1.0, 1.0, -1.0])
    >>> y[drawn_points(y, 3, 0, stratified=True, where="t.csv")].sum()
    np.float64(1.0)
    """
    members = np.unique(y, return_inverse=True)[1] if stratified else np.zeros(len(y), np.intp)
    n_classes = int(members.max()) + 1
    if not n_classes <= count <= len(y):
        few = count < n_classes
        raise DataError(
            f"{where}: n_points",
            f"{count} of {pluralize(len(y), 'point')}",
            f"at least one of each of {n_classes} classes" if few else f"at most {len(y)}",
            "Raise n_points" if few else "Lower n_points, or remove it",
        )
    rng = np.random.default_rng([seed, count])
    order = rng.permutation(len(y))
    # Points of each class stand at equal distances in (0, 1]; the first so many of all are taken.
    places = np.empty(len(y))
    first = np.zeros(len(y), dtype=np.bool_)
    for number in range(n_classes):
        own = order[members[order] == number]
        places[own] = (np.arange(len(own)) + 0.5) / len(own)
        first[own[0]] = True
    ranked = order[np.lexsort((places[order], ~first[order]))]
    return np.sort(ranked[:count]).astype(np.intp)


SHOWN = 5


def check_views(
    x: Floats,
    views: Mapping[str, View],
    given: Mapping[str, GivenGrams],
    ids: npt.NDArray[np.str_] | None,
    where: str,
    row_labels: RowLabels = FROM_ZERO,
) -> None:
    """Refuse views that points lack, or that all points lack, unless they say what then holds.

    Parameters
    ----------
    x : (n, d) float64
        Features; NaN where a value is missing.
    views, given : mapping
        Views of the features, and views that are Gram matrices, by their names.
    ids : (n,) array of str, or None
        Names of the points.
    where : str
        The place to name in a message.
    row_labels : RowLabels
        How a message names points without ids.

    Raises
    ------
    DataError
        Naming the first such view and some of the points.
    """
    for name, missing, lacking in _lacking(x, views, given):
        rows = np.flatnonzero(lacking).tolist()
        if not rows or (missing is not None and len(rows) < len(lacking)):
            continue
        names = row_labels.names(rows, ids)
        remedy = "" if name in given else ', or missing = "impute" to fill its features'
        raise DataError(
            f"{where}: view {name!r}",
            f"no value for {len(rows)} of {len(lacking)} points ({truncate(names, SHOWN)})",
            "a value of the view for each point, or missing, which says what holds without",
            f'Set missing = "zero" for its kernels to be zero at these points{remedy}'
            if len(rows) < len(lacking)
            else "Leave the view out",
        )


def view_lines(
    x: Floats, views: Mapping[str, View], given: Mapping[str, GivenGrams]
) -> tuple[str, ...]:
    """Return each view in words: its size, and how many points lack it."""
    lines = []
    for name, missing, lacking in _lacking(x, views, given):
        if name in given:
            n_grams = len(given[name].grams)
            size = pluralize(n_grams, "Gram matrix", "Gram matrices")
        else:
            n_features = len(views[name].columns)
            size = pluralize(n_features, "feature")
        line = f"{name}, {size}"
        if lacking.any():
            then = "its kernels are zero there" if missing == "zero" else "filled"
            line += f"; {int(lacking.sum())} of {len(lacking)} points lack it: {then}"
        lines.append(line)
    return tuple(lines)


def _lacking(
    x: Floats, views: Mapping[str, View], given: Mapping[str, GivenGrams]
) -> Iterator[tuple[str, str | None, Bools]]:
    """Yield the name of each view, what it says of points that lack it, and these points, (n,)."""
    for name, view in views.items():
        yield name, view.missing, lacking_rows(x, view)
    for name, one in given.items():
        yield name, one.missing, ~one.present


NO_COLUMNS = SplitsSpec()

Groups = dict[str, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class _Labelled:
    """Kept rows of the source, and their labels."""

    rows: Ints
    y: Floats
    classes: tuple[str, ...] | None


def assemble(
    spec: DatasetSpec,
    raw: RawData,
    where: str,
    seed: int = 0,
    splits: SplitsSpec = NO_COLUMNS,
) -> Dataset:
    """Return the data set that a sweep file describes, given the raw data of its source.

    Labels become numbers, and rows of other classes are left out; a random part of the rows is
    drawn if the sweep file sets `per_class` or `n_points`; missing values are refused unless they
    are to be filled; constant features are dropped; feature groups become column indices.

    Parameters
    ----------
    spec : DatasetSpec
        The entry of the sweep file.
    raw : RawData
        Features (or Gram matrices) and labels of the source.
    where : str
        The place to name in a message.
    seed : int
        Seed of the sweep, for a random part of the points.
    splits : SplitsSpec
        How the data set is to be divided, for the columns that this takes.

    Raises
    ------
    DataError
        If labels, features or groups cannot be used as asked.
    """
    labelled = _checked_labels(spec, raw, where)
    check_class_weight(spec.class_weight, labelled.classes, where)
    if spec.per_class is not None:
        labelled = _part(labelled, spec.per_class, seed, where)
    if spec.n_points is not None:
        stratified = labelled.classes is not None
        drawn = drawn_points(labelled.y, spec.n_points, seed, stratified=stratified, where=where)
        labelled = _Labelled(labelled.rows[drawn], labelled.y[drawn], labelled.classes)
    if raw.sparse is not None:
        found = _of_sparse(spec, raw, labelled, where)
    elif raw.x is None:
        found = _of_grams(spec, raw, labelled, where, splits)
    else:
        found = _of_features(spec, raw, raw.x, labelled, where, splits)
    if raw.weights is None:
        return found
    weights, places = raw.weights[labelled.rows], raw.row_labels.chosen(labelled.rows)
    place = f"{where}, weights {spec.weights!r}"
    return replace(found, weights=row_weights(weights, place, places))


def _of_features(
    spec: DatasetSpec,
    raw: RawData,
    all_rows: Floats,
    labelled: _Labelled,
    where: str,
    splits: SplitsSpec,
) -> Dataset:
    """Return a data set of dense features, restricted to the kept rows and columns."""
    whole = len(labelled.rows) == len(all_rows)
    x = all_rows if whole else _taken(raw, all_rows, labelled.rows, None)
    given = {name: one if whole else one.of(labelled.rows) for name, one in raw.given.items()}
    ids = None if raw.ids is None else raw.ids[labelled.rows]
    row_labels = raw.row_labels if whole else raw.row_labels.chosen(labelled.rows)
    check_views(x, raw.views, given, ids, where, row_labels)
    texts = None if raw.texts is None else raw.texts.of_rows(labelled.rows)
    if texts is not None:
        texts.check(ids, where, row_labels)
    absent = absent_of(x, raw.views)
    missing = check_values(x, raw.feature_names, spec.impute, where, absent, row_labels)
    groups = {**raw.groups, **group_columns(spec.groups, raw.feature_names, where)}
    kept = _varying(x, where) if spec.drop_constant and x.shape[1] else np.arange(x.shape[1])
    views = _renumbered({name: view.columns for name, view in raw.views.items()}, kept, where)
    columns, view_columns = _columns(raw, kept)
    said_of_views = view_lines(x, raw.views, given)
    row_groups = _row_groups(raw, splits, labelled.rows, where)
    same = () if given else identical_lines(x, texts, row_groups, row_labels)
    return Dataset(
        name=spec.name,
        x=_kept_columns(raw, x, kept),
        y=labelled.y,
        classes=labelled.classes,
        feature_names=tuple(raw.feature_names[column] for column in kept),
        predefined=restricted(_partitions(raw, splits, where), labelled.rows, len(raw.labels)),
        row_groups=row_groups,
        row_order=_row_order(raw, splits, labelled.rows, where),
        groups={**_renumbered(groups, kept, where), **_left(raw.file_groups, kept)},
        views={name: View(columns, raw.views[name].missing) for name, columns in views.items()},
        given=given,
        origin=raw.origin,
        impute=spec.impute if any(missing) else None,
        summary=replace(
            _summary(raw, labelled, same),
            constant=_others(raw.feature_names, kept),
            missing=missing,
            views=said_of_views,
            texts=() if texts is None else tuple(texts.lines()),
        ),
        columns=columns,
        view_columns=view_columns,
        ids=ids if given else None,
        texts=texts,
        row_labels=row_labels,
    )


def _columns(raw: RawData, kept: Ints) -> tuple[SourceColumns, dict[str, SourceColumns]]:
    """Return the columns of the source and of each view's file, and which features are kept."""
    own = raw.columns or SourceColumns.of_features(raw.feature_names)
    found, first = [], 0
    for columns in (own, *raw.view_columns.values()):
        stop = first + columns.n_features
        here = kept[(first <= kept) & (kept < stop)] - first
        whole = len(here) == columns.n_features
        found.append(columns if whole else replace(columns, kept=tuple(here.tolist())))
        first = stop
    return found[0], dict(zip(raw.view_columns, found[1:], strict=True))


def _kept_columns(raw: RawData, x: Floats, kept: Ints) -> Floats | None:
    """Return the kept columns; None if there is none, since views hold Gram matrices alone."""
    if not len(kept):
        return None
    if len(kept) == x.shape[1]:
        return np.ascontiguousarray(x)
    return _taken(raw, x, None, kept)


def _taken(raw: RawData, x: Floats, rows: Ints | None, columns: Ints | None) -> Floats:
    """Return ascending rows or columns of features, in their own memory if the reader gave it."""
    if raw.own_memory:
        return moved_up(x, rows, columns)
    return np.ascontiguousarray(x[rows] if columns is None else x.take(columns, axis=1))


def _partitions(raw: RawData, splits: SplitsSpec, where: str) -> tuple[Split, ...]:
    """Return the partitions that came with the data, as arrays or as a column of a table."""
    if splits.column is None:
        return raw.partitions
    return (partition_of_column(raw.of_splits[splits.column], f"{where}: {splits.column}"),)


def _row_groups(raw: RawData, splits: SplitsSpec, rows: Ints, where: str) -> Ints | None:
    """Return the number of each kept row's group; None without groups."""
    if splits.groups is None:
        return None
    place = f"{where}, column {splits.groups!r}"
    return group_numbers(raw.of_splits[splits.groups][rows], place, raw.row_labels.chosen(rows))


def _row_order(raw: RawData, splits: SplitsSpec, rows: Ints, where: str) -> Ints | None:
    """Return the kept rows in the order of time; None if the file has them so."""
    if splits.order is None:
        return None
    place = f"{where}, column {splits.order!r}"
    return rows_in_order(raw.of_splits[splits.order][rows], place, raw.row_labels.chosen(rows))


def _summary(raw: RawData, labelled: _Labelled, same: tuple[str, ...] = ()) -> ImportSummary:
    """Return the summary of the reader, with notes on the classes and on equal rows."""
    notes = (*raw.summary.notes, *class_notes(labelled.y, labelled.classes), *same)
    return replace(raw.summary, n_rows=len(raw.labels), notes=notes)


def _others(names: Sequence[str], kept: Ints) -> tuple[str, ...]:
    """Return the names of the columns that are not kept."""
    return tuple(np.delete(np.array(names, dtype=object), kept).tolist())


def _checked_labels(spec: DatasetSpec, raw: RawData, where: str) -> _Labelled:
    """Return the labels; if they are refused, so are missing values, in the same message."""
    try:
        return _labelled(spec, raw, where)
    except DataError as error:
        try:
            if raw.x is not None:
                absent = absent_of(raw.x, raw.views)
                names, rows = raw.feature_names, raw.row_labels
                check_values(raw.x, names, spec.impute, where, absent, rows)
        except DataError as other:
            raise DataError(
                where,
                f"{error.found}; {other.found}",
                f"{error.expected}; {other.expected}",
                f"{error.hint}. {other.hint}",
            ) from None
        raise


def _labelled(spec: DatasetSpec, raw: RawData, where: str) -> _Labelled:
    """Return labels as classes or as real values; the user's task precedes the source's."""
    task = raw.task if spec.task is None else spec.task
    if task == "classification":
        labels = class_labels(raw.labels, where, spec.classes, spec.positive, raw.row_labels)
        return _Labelled(labels.rows, labels.y, labels.classes)
    if spec.classes or spec.positive is not None:
        raise DataError(
            where,
            f"{'classes' if spec.classes else 'positive'} for a data set of regression",
            "real values",
            'Remove this key, or set task = "classification"',
        )
    y = real_values(raw.labels, where, raw.row_labels)
    return _Labelled(np.arange(len(y)), y, None)


def _part(labelled: _Labelled, count: int, seed: int, where: str) -> _Labelled:
    """Return a random part of the points, `count` of each class."""
    if labelled.classes is None:
        raise DataError(
            f"{where}: per_class", "a data set of regression", "one of classes", "Remove per_class"
        )
    drawn = drawn_per_class(labelled.y, count, seed, labelled.classes, where)
    return _Labelled(labelled.rows[drawn], labelled.y[drawn], labelled.classes)


def _of_sparse(spec: DatasetSpec, raw: RawData, labelled: _Labelled, where: str) -> Dataset:
    """Return a data set of sparse features, restricted to the kept rows."""
    check_sparse(raw.sparse, where, raw.row_labels)
    whole = len(labelled.rows) == raw.sparse.shape[0]
    matrix = raw.sparse if whole else raw.sparse[labelled.rows]
    kept = np.arange(matrix.shape[1])
    if spec.drop_constant:
        kept = varying(matrix)
        if not len(kept):
            raise _all_constant(matrix.shape[1], where)
        matrix = matrix if len(kept) == matrix.shape[1] else matrix[:, kept]
    groups = group_columns(spec.groups, raw.feature_names, where)
    summary = _summary(raw, labelled)
    constant = _others(raw.feature_names, kept)
    return Dataset(
        name=spec.name,
        x=None,
        y=labelled.y,
        classes=labelled.classes,
        feature_names=tuple(raw.feature_names[column] for column in kept),
        predefined=restricted(raw.partitions, labelled.rows, len(raw.labels)),
        groups=_renumbered(groups, kept, where),
        origin=raw.origin,
        sparse=matrix,
        summary=replace(summary, constant=constant, sparse=sparse_said(matrix)),
        columns=_columns(raw, kept)[0],
    )


def _of_grams(
    spec: DatasetSpec, raw: RawData, labelled: _Labelled, where: str, splits: SplitsSpec
) -> Dataset:
    """Return a data set of precomputed Gram matrices, restricted to the kept rows."""
    for option, given in (("groups", spec.groups), ("impute", spec.impute)):
        if given:
            raise DataError(
                where,
                f"{option} with precomputed Gram matrices",
                f"no {option}, which need features",
                f"Remove {option}",
            )
    grams, n_points = raw.grams, len(raw.labels)
    if grams is not None and len(labelled.rows) < n_points:
        grams = grams[:, labelled.rows[:, None], labelled.rows]
    return Dataset(
        name=spec.name,
        x=None,
        y=labelled.y,
        classes=labelled.classes,
        predefined=restricted(raw.partitions, labelled.rows, n_points),
        row_groups=_row_groups(raw, splits, labelled.rows, where),
        row_order=_row_order(raw, splits, labelled.rows, where),
        grams=grams,
        origin=raw.origin,
        summary=_summary(raw, labelled),
    )


def _varying(x: Floats, where: str) -> Ints:
    """Return the columns whose known values are not all the same."""
    kept = np.flatnonzero(np.fmin.reduce(x) != np.fmax.reduce(x))
    if not len(kept):
        raise _all_constant(x.shape[1], where)
    return kept


def _all_constant(n_features: int, where: str) -> DataError:
    return DataError(
        where,
        f"{pluralize(n_features, 'feature')}, {'all of them ' * (n_features > 1)}constant",
        "at least one feature that varies",
        "Check that the label column is the right one (label = …)",
    )


def group_columns(
    groups: Mapping[str, Sequence[int | str]], names: Sequence[str], where: str
) -> Groups:
    """Return groups as column indices among all features; the label column does not count."""
    positions = {name: position for position, name in enumerate(names)}
    return {
        group: tuple(feature_position(m, positions, f"{where}: groups.{group}") for m in members)
        for group, members in groups.items()
    }


def feature_position(member: int | str, positions: Mapping[str, int], where: str) -> int:
    """Return the column of a feature that is named, or numbered from 0.

    Raises
    ------
    DataError
        If there is no such feature.
    """
    if isinstance(member, int):
        if not 0 <= member < len(positions):
            raise DataError(
                where,
                f"feature {member}",
                f"a number from 0 to {len(positions) - 1}, or a name",
                "Count features from 0, without the label column",
            )
        return member
    if member not in positions:
        hint = nearest(member, positions) or "Name features as in the header"
        raise DataError(where, f"no feature {member!r}", "names or numbers of features", hint)
    return positions[member]


def _renumbered(groups: Groups, kept: Ints, where: str) -> Groups:
    """Return groups as positions among the `kept` features; dropped features leave their groups."""
    place = {int(column): position for position, column in enumerate(kept)}
    renumbered: Groups = {}
    for group, members in groups.items():
        left = tuple(place[m] for m in members if m in place)
        if len(set(members)) < len(members):
            raise DataError(
                f"{where}: groups.{group}", "a feature twice", "every feature once", "Name it once"
            )
        if not left:
            raise DataError(
                f"{where}: groups.{group}",
                "only constant features" if members else "no features",
                "at least one feature that varies",
                "Set drop_constant = false to keep constant features"
                if members
                else "Name at least one feature",
            )
        renumbered[group] = left
    return renumbered


def _left(groups: Groups, kept: Ints) -> Groups:
    """Return the groups of files as positions among the `kept` features, without empty ones."""
    place = {int(column): position for position, column in enumerate(kept)}
    left = {
        group: tuple(place[m] for m in members if m in place) for group, members in groups.items()
    }
    return {group: members for group, members in left.items() if members}
