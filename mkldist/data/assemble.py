"""Turn the raw data of a reader into a data set: labels as numbers, features checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mkldist.arrays import Floats, Ints
from mkldist.counted import counted
from mkldist.data.account import Account
from mkldist.data.dataset import Dataset, Split, View, absent_of
from mkldist.data.identical_rows import identical_lines
from mkldist.data.labels import class_labels, class_notes, real_values
from mkldist.data.missing import check_values
from mkldist.data.partitions import group_numbers, partition_of_column, restricted
from mkldist.data.raw import RawData
from mkldist.data.row_blocks import moved_up
from mkldist.data.sampling import drawn_per_class, drawn_points
from mkldist.data.source_columns import SourceColumns
from mkldist.data.sparse_features import check_sparse, sparse_said, varying
from mkldist.data.times import rows_in_order
from mkldist.data.view_checks import check_views, view_lines
from mkldist.errors import DataError, nearest
from mkldist.spec.datasets import DatasetSpec
from mkldist.spec.splits import SplitsSpec

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
    if spec.per_class is not None:
        labelled = _part(labelled, spec.per_class, seed, where)
    if spec.n_points is not None:
        stratified = labelled.classes is not None
        drawn = drawn_points(labelled.y, spec.n_points, seed, stratified=stratified, where=where)
        labelled = _Labelled(labelled.rows[drawn], labelled.y[drawn], labelled.classes)
    if raw.sparse is not None:
        return _of_sparse(spec, raw, labelled, where)
    if raw.x is None:
        return _of_grams(spec, raw, labelled, where, splits)
    return _of_features(spec, raw, raw.x, labelled, where, splits)


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
    row_places = raw.row_places if whole else raw.row_places.chosen(labelled.rows)
    check_views(x, raw.views, given, ids, where, row_places)
    texts = None if raw.texts is None else raw.texts.of_rows(labelled.rows)
    if texts is not None:
        texts.check(ids, where, row_places)
    absent = absent_of(x, raw.views)
    missing = check_values(x, raw.feature_names, spec.impute, where, absent, row_places)
    groups = {**raw.groups, **group_columns(spec.groups, raw.feature_names, where)}
    kept = _varying(x, where) if spec.drop_constant and x.shape[1] else np.arange(x.shape[1])
    views = _renumbered({name: view.columns for name, view in raw.views.items()}, kept, where)
    columns, view_columns = _columns(raw, kept)
    said_of_views = view_lines(x, raw.views, given)
    row_groups = _row_groups(raw, splits, labelled.rows, where)
    same = () if given else identical_lines(x, texts, row_groups, row_places)
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
        account=replace(
            _account(raw, labelled, same),
            constant=_others(raw.feature_names, kept),
            missing=missing,
            views=said_of_views,
            texts=() if texts is None else tuple(texts.lines()),
        ),
        columns=columns,
        view_columns=view_columns,
        ids=ids if given else None,
        texts=texts,
        row_places=row_places,
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
    return group_numbers(raw.of_splits[splits.groups][rows], place, raw.row_places.chosen(rows))


def _row_order(raw: RawData, splits: SplitsSpec, rows: Ints, where: str) -> Ints | None:
    """Return the kept rows in the order of time; None if the file has them so."""
    if splits.order is None:
        return None
    place = f"{where}, column {splits.order!r}"
    return rows_in_order(raw.of_splits[splits.order][rows], place, raw.row_places.chosen(rows))


def _account(raw: RawData, labelled: _Labelled, same: tuple[str, ...] = ()) -> Account:
    """Return the account of the reader, with notes on the classes and on equal rows."""
    notes = (*raw.account.notes, *class_notes(labelled.y, labelled.classes), *same)
    return replace(raw.account, n_rows=len(raw.labels), notes=notes)


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
                names, rows = raw.feature_names, raw.row_places
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
        labels = class_labels(raw.labels, where, spec.classes, spec.positive, raw.row_places)
        return _Labelled(labels.rows, labels.y, labels.classes)
    if spec.classes or spec.positive is not None:
        raise DataError(
            where,
            f"{'classes' if spec.classes else 'positive'} for a data set of regression",
            "real values",
            'Remove this key, or set task = "classification"',
        )
    y = real_values(raw.labels, where, raw.row_places)
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
    check_sparse(raw.sparse, where, raw.row_places)
    whole = len(labelled.rows) == raw.sparse.shape[0]
    matrix = raw.sparse if whole else raw.sparse[labelled.rows]
    kept = np.arange(matrix.shape[1])
    if spec.drop_constant:
        kept = varying(matrix)
        if not len(kept):
            raise _all_constant(matrix.shape[1], where)
        matrix = matrix if len(kept) == matrix.shape[1] else matrix[:, kept]
    groups = group_columns(spec.groups, raw.feature_names, where)
    account = _account(raw, labelled)
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
        account=replace(account, constant=constant, sparse=sparse_said(matrix)),
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
        account=_account(raw, labelled),
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
        f"{counted(n_features, 'feature')}, {'all of them ' * (n_features > 1)}constant",
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
