"""The one validator: raw data and views of a source become a data set, with a summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Bools, Floats, Ints
from mkldist.core.wording import FROM_ZERO, RowLabels, pluralize, truncate
from mkldist.data.cells import apart
from mkldist.data.checks import (
    check_sparse,
    check_values,
    describe_sparse,
    group_columns,
    moved_up,
    row_blocks,
)
from mkldist.data.dataset import (
    Dataset,
    GramView,
    RawData,
    SourceColumns,
    Split,
    TextColumns,
    View,
    absent_of,
    lacking_rows,
)
from mkldist.data.labels import (
    ClassWeight,
    Labels,
    check_class_weight,
    class_labels,
    class_notes,
    class_weights,
    finite_number,
    real_values,
    row_weights,
    rows_in_order,
    without_label,
)
from mkldist.data.splits import group_numbers, partition_of_column, restricted
from mkldist.data.tables import QUERIES
from mkldist.errors import DataError
from mkldist.spec.datasets import UNLABELLED, DatasetSpec, PreprocessingSpec, SplitsSpec

FILLERS = {"median": "median", "mean": "mean", "most_frequent": "most frequent value"}
OF_POSITIVE = "sensitivity, F1 and average precision"
SHOWN_IN_SUMMARY = 10
FEWEST_COPIED = 20  # rows in which a column has one value for each class, not by chance
NO_COLUMNS = SplitsSpec()
GROUPED = ("holdout", "kfold", "leave-one-group-out")  # kinds of splits that keep groups whole
SHOWN = 5

Groups = dict[str, tuple[int, ...]]


def validate(
    spec: DatasetSpec, raw: RawData, where: str, seed: int = 0, splits: SplitsSpec = NO_COLUMNS
) -> Dataset:
    """Return the data set that an entry of a sweep file describes, of the raw data of its source.

    Labels become numbers, and rows of other classes are left out; a random part of the rows is
    drawn if the entry sets `per_class` or `n_points`; missing values are refused unless they are
    to be filled; constant features are dropped; feature groups become column indices.  The data
    set's summary says what was chosen, dropped and filled.
    """
    labels, n_dropped = _with_unlabelled(spec, raw, seed, splits, where)
    check_class_weight(spec.class_weight, labels.classes, where)
    rows, n_points = labels.rows, len(raw.labels)
    whole = len(rows) == n_points
    row_labels = raw.row_labels if whole else raw.row_labels.chosen(rows)

    def column(name: str | None, numbers: Callable[..., Ints]) -> Ints | None:
        """Return a column that divides or orders the rows, as numbers; None without."""
        if name is None:
            return None
        return numbers(raw.of_splits[name][rows], f"{where}, column {name!r}", row_labels)

    groups = splits.groups
    if groups is None and QUERIES in raw.of_splits and splits.kind in GROUPED:
        groups = QUERIES
    _check_indefinite(spec, raw, where)
    partitions = raw.partitions
    if splits.column is not None:
        place = f"{where}: {splits.column}"
        partitions = (partition_of_column(raw.of_splits[splits.column], place),)
    weights = None
    if raw.weights is not None:
        weights = row_weights(raw.weights[rows], f"{where}, weights {spec.weights!r}", row_labels)
    of_classes = class_notes(labels.y[~np.isnan(labels.y)], labels.classes)
    notes = (*raw.summary.notes, *of_classes, *_labels_apart(labels))
    left_out = raw.summary.left_out
    if n_dropped:
        left_out = (f"{pluralize(n_dropped, 'row')} without a label", *left_out)
    dataset = Dataset(
        name=spec.name,
        x=None,
        y=labels.y,
        classes=labels.classes,
        predefined=restricted(partitions, rows, n_points),
        row_groups=column(groups, group_numbers),
        group_names=()
        if groups is None
        else tuple(np.unique(raw.of_splits[groups][rows]).tolist()),
        row_order=column(splits.order, rows_in_order),
        weights=weights,
        origin=raw.origin,
        summary=replace(raw.summary, n_rows=n_points, notes=notes, left_out=left_out),
        row_labels=row_labels,
    )
    _check_weighing(dataset, where)
    if raw.sparse is not None:
        return _with_sparse(dataset, spec, raw, rows, where)
    if raw.x is None:
        if raw.apart and splits.kind != "predefined":
            found = f'[splits] with kind = "{splits.kind}" for test points that are given apart'
            raise DataError(where, found, 'kind = "predefined"', "Set it")
        return _with_grams(dataset, spec, raw, rows, where)
    x = raw.x if whole else _taken(raw, raw.x, rows, None)
    return _with_features(dataset, spec, raw, x, rows, where)


def _labels_apart(labels: Labels) -> Iterator[str]:
    """Yield a line on each label of nines, such as -999, that stands apart from all others."""
    numbers = [*map(finite_number, labels.classes or ())] or labels.y.tolist()
    if None in numbers:
        return
    for _, value in apart(np.array([numbers]).T, nines=True):
        keys = f'missing_values = [{value:g}] and unlabelled = "drop"'
        yield f"the label {value:g} stands apart from all others; {keys} leave its rows out"


def _copies_of_labels(x: Floats, names: Sequence[str], dataset: Dataset) -> Iterator[str]:
    """Yield a line on features (n, d) that are the labels, or have one value for each class."""
    y, known = dataset.y, dataset.labelled
    parts = [np.flatnonzero(y == one) for one in np.unique(y[known])]
    if dataset.classes is None:
        columns = np.flatnonzero((x == y[:, None])[known].all(axis=0))
    elif known.sum() < FEWEST_COPIED + len(parts):
        return
    else:
        columns = np.flatnonzero(np.fmin.reduce(x) != np.fmax.reduce(x))
        for rows in (*(part[:FEWEST_COPIED] for part in parts), *parts):
            block = x[np.ix_(rows, columns)]
            columns = columns[np.fmin.reduce(block) == np.fmax.reduce(block)]
        values = [np.fmin.reduce(x[np.ix_(part, columns)]) for part in parts]
        columns = columns[(np.diff(np.sort(values, axis=0), axis=0) != 0).all(axis=0)]
    if len(columns):
        listed = truncate([repr(names[column]) for column in columns.tolist()], SHOWN)
        yield f"{listed} alone would tell the label of each row; ignore leaves such columns out"


def _check_weighing(dataset: Dataset, where: str) -> None:
    """Refuse a class whose rows all have weight 0: no method could learn it."""
    if dataset.classes is None or dataset.weights is None:
        return
    numbers, known = dataset.class_numbers, dataset.labelled
    sums = np.bincount(numbers[known], dataset.weights[known], len(dataset.classes))
    for name, total in zip(dataset.classes, sums, strict=True):
        if total == 0.0:
            others = ", ".join(f'"{one}"' for one in dataset.classes if one != name)
            found = f"weight 0 for all rows of class {name!r}"
            hint = f"Leave the class out: classes = [{others}]"
            raise DataError(
                f"{where}: weights", found, "rows of weight above 0 in each class", hint
            )


def _check_indefinite(spec: DatasetSpec, raw: RawData, where: str) -> None:
    """Refuse to change eigenvalues of a data set that is no Gram matrices."""
    if spec.indefinite is not None and raw.grams is None:
        found = f'indefinite = "{spec.indefinite}" for features'
        hint = "Remove it, or write it in the view that has matrices"
        raise DataError(where, found, "it for Gram matrices", hint)


def _drawn(spec: DatasetSpec, labels: Labels, seed: int, where: str) -> Labels:
    """Return the labels of the random part of the rows that an entry asks for."""
    if spec.per_class is not None:
        if labels.classes is None:
            found, place = "a data set of regression", f"{where}: per_class"
            raise DataError(place, found, "one of classes", "Remove per_class")
        labels = labels.of(drawn_per_class(labels.y, spec.per_class, seed, labels.classes, where))
    if spec.n_points is not None:
        stratified = labels.classes is not None
        labels = labels.of(
            drawn_points(labels.y, spec.n_points, seed, stratified=stratified, where=where)
        )
    return labels


def _with_features(
    dataset: Dataset, spec: DatasetSpec, raw: RawData, x: Floats, rows: Ints, where: str
) -> Dataset:
    """Return the data set with its dense features (n, d), views and texts, checked."""
    row_labels, names = dataset.row_labels, raw.feature_names
    whole = len(rows) == len(raw.labels)
    given = {name: one if whole else one.of(rows) for name, one in raw.given.items()}
    ids = None if raw.ids is None else raw.ids[rows]
    view_lines = tuple(_checked_views(x, raw.views, given, ids, where, row_labels))
    texts = None if raw.texts is None else raw.texts.of_rows(rows)
    if texts is not None:
        texts.check(ids, where, row_labels)
    missing = check_values(x, names, spec.impute, where, absent_of(x, raw.views), row_labels)
    groups = group_columns(spec.groups, names, where)
    kept = np.arange(x.shape[1])
    if spec.drop_constant and x.shape[1]:
        kept = _varying(np.fmin.reduce(x) != np.fmax.reduce(x), where)
    views = _renumbered({name: view.columns for name, view in raw.views.items()}, kept, where)
    own, view_columns = _source_columns(raw, kept)
    same = () if given else identical_lines(x, texts, dataset.row_groups, row_labels)
    summary = replace(
        dataset.summary,
        constant=tuple(np.delete(np.array(names, dtype=object), kept).tolist()),
        missing=missing,
        views=view_lines,
        texts=() if texts is None else tuple(texts.lines()),
        notes=(*dataset.summary.notes, *_copies_of_labels(x, names, dataset), *same),
    )
    if len(kept) < x.shape[1]:
        x = _taken(raw, x, None, kept)
    return replace(
        dataset,
        x=np.ascontiguousarray(x) if len(kept) else None,  # None: views are Gram matrices alone
        feature_names=tuple(names[column] for column in kept),
        groups={
            **_renumbered({**raw.groups, **raw.file_groups}, kept),
            **_renumbered(groups, kept, where),
        },
        views={name: View(columns, raw.views[name].missing) for name, columns in views.items()},
        given=given,
        impute=spec.impute if any(missing) else None,
        summary=summary,
        columns=own,
        view_columns=view_columns,
        ids=ids if given else None,
        texts=texts,
    )


def _with_grams(
    dataset: Dataset, spec: DatasetSpec, raw: RawData, rows: Ints, where: str
) -> Dataset:
    """Return the data set with its Gram matrices."""
    for option, asked in (("groups", spec.groups), ("impute", spec.impute)):
        if asked:
            found = f"{option} with precomputed Gram matrices"
            expected = f"no {option}, which need features"
            raise DataError(where, found, expected, f"Remove {option}")
    grams = raw.grams
    if grams is not None and len(rows) < len(raw.labels):
        grams = grams[:, rows[:, None], rows]
    return replace(dataset, grams=grams, gram_names=raw.gram_names, apart=raw.apart)


def _with_sparse(
    dataset: Dataset, spec: DatasetSpec, raw: RawData, rows: Ints, where: str
) -> Dataset:
    """Return the data set with its sparse features, checked."""
    check_sparse(raw.sparse, where, raw.row_labels)
    matrix = raw.sparse if len(rows) == raw.sparse.shape[0] else raw.sparse[rows]
    kept, names = np.arange(matrix.shape[1]), raw.feature_names
    if spec.drop_constant:
        low, high = (side.toarray().ravel() for side in (matrix.min(axis=0), matrix.max(axis=0)))
        kept = _varying(low != high, where)
        matrix = matrix if len(kept) == matrix.shape[1] else matrix[:, kept]
    constant = tuple(np.delete(np.array(names, dtype=object), kept).tolist())
    return replace(
        dataset,
        feature_names=tuple(names[column] for column in kept),
        groups=_renumbered(group_columns(spec.groups, names, where), kept, where),
        sparse=matrix,
        summary=replace(dataset.summary, constant=constant, sparse=describe_sparse(matrix)),
        columns=_source_columns(raw, kept)[0],
    )


def _with_unlabelled(
    spec: DatasetSpec, raw: RawData, seed: int, splits: SplitsSpec, where: str
) -> tuple[Labels, int]:
    """Return the labels, and how many rows are left out because they have none."""
    missing = without_label(raw.labels, where)
    may_stay = spec.unlabelled == "drop" or splits.kind in UNLABELLED
    if not missing.any() or missing.all() or not may_stay:
        return _drawn(spec, _checked_labels(spec, raw, where), seed, where), 0
    known = np.flatnonzero(~missing)
    own = replace(raw, labels=raw.labels[known], row_labels=raw.row_labels.chosen(known))
    found = _drawn(spec, _checked_labels(spec, own, where), seed, where)
    rows = known[found.rows]
    if spec.unlabelled == "drop":
        return Labels(rows, found.y, found.classes), int(missing.sum())
    of_all = np.union1d(rows, np.flatnonzero(missing))
    y = np.full(len(of_all), np.nan)
    y[np.searchsorted(of_all, rows)] = found.y
    return Labels(of_all, y, found.classes), 0


def _checked_labels(spec: DatasetSpec, raw: RawData, where: str) -> Labels:
    """Return the labels; the user's task precedes the source's."""
    if (raw.task if spec.task is None else spec.task) == "classification":
        return class_labels(raw.labels, where, spec.classes, spec.positive, raw.row_labels)
    if spec.classes or spec.positive is not None:
        key = "classes" if spec.classes else "positive"
        hint = 'Remove this key, or set task = "classification"'
        raise DataError(where, f"{key} for a data set of regression", "real values", hint)
    y = real_values(raw.labels, where, raw.row_labels)
    return Labels(np.arange(len(y)), y, None)


def _checked_views(
    x: Floats,
    views: Mapping[str, View],
    given: Mapping[str, GramView],
    ids: npt.NDArray[np.str_] | None,
    where: str,
    row_labels: RowLabels,
) -> Iterator[str]:
    """Yield each view in words: its size, and how many points lack it."""
    found: list[tuple[str, str | None, Bools, str]] = [
        (name, view.missing, lacking_rows(x, view), pluralize(len(view.columns), "feature"))
        for name, view in views.items()
    ]
    for name, one in given.items():
        size = pluralize(len(one.grams), "Gram matrix", "Gram matrices")
        found.append((name, one.missing, ~one.present, size))
    for name, missing, lacking, size in found:
        rows = np.flatnonzero(lacking).tolist()
        if rows and (missing is None or len(rows) == len(lacking)):
            remedy = "" if name in given else ', or missing = "impute" to fill its features'
            points = truncate(row_labels.names(rows, ids), SHOWN)
            raise DataError(
                f"{where}: view {name!r}",
                f"no value for {len(rows)} of {len(lacking)} points ({points})",
                "a value of the view for each point, or missing, which says what holds without",
                f'Set missing = "zero" for its kernels to be zero at these points{remedy}'
                if len(rows) < len(lacking)
                else "Leave the view out",
            )
        then = "its kernels are zero there" if missing == "zero" else "filled"
        lacks = f"; {len(rows)} of {len(lacking)} points lack it: {then}" if rows else ""
        yield f"{name}, {size}{lacks}"


def identical_lines(
    x: Floats,
    texts: TextColumns | None = None,
    groups: Ints | None = None,
    row_labels: RowLabels = FROM_ZERO,
) -> tuple[str, ...]:
    """Return a line about rows (n, d) that are equal to another one, if there are any.

    Missing values are equal, texts must be equal too, and equal rows of one group do no harm: they
    stay in one part.

    >>> identical_lines(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))[0][:51]
    '2 rows are equal to others in all features, such as'
    """
    if len(x) < 2 or not x.shape[1]:
        return ()
    import pandas as pd

    keys = np.empty(len(x), dtype=np.int64)
    for rows in row_blocks(len(x), 2 * x.itemsize * x.shape[1]):
        block = np.where(np.isnan(x[rows]), np.nan, x[rows] + 0.0)  # -0.0 becomes 0.0
        words = [None] * len(block) if texts is None else map(tuple, texts.values[rows].tolist())
        keys[rows] = [hash((row.tobytes(), own)) for row, own in zip(block, words, strict=True)]
    table = pd.DataFrame({"key": keys, "group": np.arange(len(x)) if groups is None else groups})
    table = table[table.duplicated("key", keep=False)]
    table = table[table.groupby("key")["group"].transform("nunique") > 1]
    if table.empty:
        return ()
    first = table.iloc[0]
    other = table[(table["key"] == first["key"]) & (table["group"] != first["group"])]
    places = (row_labels.of(int(one.index[0])) for one in (table, other))
    return (
        f"{pluralize(len(table), 'row')} are equal to others in all features, such as "
        f"{' and '.join(places)}; a test point that equals a training point is no new one",
    )


def drawn_per_class(y: Floats, count: int, seed: int, classes: tuple[str, ...], where: str) -> Ints:
    """Return the rows of `count` random points of each class of y (n,), ascending."""
    rng = np.random.default_rng([seed, count])
    drawn = []
    for number, name in zip(np.unique(y), classes, strict=True):
        members = np.flatnonzero(y == number)
        if len(members) < count:
            found = f"{pluralize(len(members), 'point')} of class {name!r}"
            hint = f"Set per_class to at most {len(members)}, or remove it"
            raise DataError(f"{where}: per_class", found, f"at least {count} of each class", hint)
        drawn.append(rng.choice(members, count, replace=False))
    return np.sort(np.concatenate(drawn)).astype(np.intp)


def drawn_points(y: Floats, count: int, seed: int, *, stratified: bool, where: str) -> Ints:
    """Return the rows of `count` random points of y (n,), ascending.

    With `stratified`, classes keep their proportions, and at least one point each.

    >>> y = np.array([1.0, 1.0, -1.0, 1.0, 1.0, -1.0])
    >>> y[drawn_points(y, 3, 0, stratified=True, where="t.csv")].sum()
    np.float64(1.0)
    """
    members = np.unique(y, return_inverse=True)[1] if stratified else np.zeros(len(y), np.intp)
    n_classes = int(members.max()) + 1
    if not n_classes <= count <= len(y):
        few = count < n_classes
        place = f"{where}: n_points"
        expected = f"at least one of each of {n_classes} classes" if few else f"at most {len(y)}"
        hint = "Raise n_points" if few else "Lower n_points, or remove it"
        raise DataError(place, f"{count} of {pluralize(len(y), 'point')}", expected, hint)
    order = np.random.default_rng([seed, count]).permutation(len(y))
    # Points of each class stand at equal distances in (0, 1]; the first so many of all are taken.
    places = np.empty(len(y))
    first = np.zeros(len(y), dtype=np.bool_)
    for number in range(n_classes):
        own = order[members[order] == number]
        places[own] = (np.arange(len(own)) + 0.5) / len(own)
        first[own[0]] = True
    ranked = order[np.lexsort((places[order], ~first[order]))]
    return np.sort(ranked[:count]).astype(np.intp)


def _varying(varies: Bools, where: str) -> Ints:
    """Return the features that vary, of (d,); refuse none."""
    kept = np.flatnonzero(varies)
    if not len(kept):
        constant = "all of them constant" if len(varies) > 1 else "constant"
        found = f"{pluralize(len(varies), 'feature')}, {constant}"
        hint = "Check that the label column is the right one (label = …)"
        raise DataError(where, found, "at least one feature that varies", hint)
    return kept


def _taken(raw: RawData, x: Floats, rows: Ints | None, columns: Ints | None) -> Floats:
    """Return ascending rows or columns of features, in their own memory if the reader gave it."""
    if raw.own_memory:
        return moved_up(x, rows, columns)
    return np.ascontiguousarray(x[rows] if columns is None else x.take(columns, axis=1))


def _source_columns(raw: RawData, kept: Ints) -> tuple[SourceColumns, dict[str, SourceColumns]]:
    """Return the columns of the source and of each view's file, and which features are kept."""
    own = raw.columns or SourceColumns(raw.feature_names)
    found, first = [], 0
    for columns in (own, *raw.view_columns.values()):
        stop = first + columns.n_features
        here = kept[(first <= kept) & (kept < stop)] - first
        whole = len(here) == columns.n_features
        found.append(columns if whole else replace(columns, kept=tuple(here.tolist())))
        first = stop
    return found[0], dict(zip(raw.view_columns, found[1:], strict=True))


def _renumbered(groups: Groups, kept: Ints, where: str = "") -> Groups:
    """Return groups as positions among the `kept` features; dropped features leave their groups.

    Groups that are then empty are refused at the place `where`, or left out without one.
    """
    place = {int(column): position for position, column in enumerate(kept)}
    renumbered: Groups = {}
    for group, members in groups.items():
        left, named = tuple(place[m] for m in members if m in place), f"{where}: groups.{group}"
        if where and len(set(members)) < len(members):
            raise DataError(named, "a feature twice", "every feature once", "Name it once")
        if where and not left:
            found, hint = "no features", "Name at least one feature"
            if members:
                found, hint = "only constant features", "Set drop_constant = false to keep them"
            raise DataError(named, found, "at least one feature that varies", hint)
        if left:
            renumbered[group] = left
    return renumbered


def check_known_rows(dataset: Dataset, splits: Sequence[Split]) -> None:
    """Refuse splits whose known rows have no value to fill a feature with."""
    if dataset.x is None or (dataset.impute is None and dataset.absent is None):
        return
    x, has_gaps = dataset.x, np.zeros(dataset.n_features, dtype=bool)
    for rows in row_blocks(len(x), x.itemsize * x.shape[1]):
        has_gaps |= np.isnan(x[rows]).any(axis=0)
    with_gaps = np.flatnonzero(has_gaps)
    for number, split in enumerate(splits):
        empty = np.array([np.isnan(x[split.known, c]).all() for c in with_gaps], dtype=bool)
        if empty.any():
            names = [repr(dataset.feature_names[column]) for column in with_gaps[empty].tolist()]
            raise DataError(
                f"data set {dataset.name!r}, split {number} of {len(splits)} (from 0)",
                f"no value of {truncate(names, SHOWN)} in its training part of {len(split.known)}",
                "a value of every feature, to fill missing ones with",
                'Ignore these columns, enlarge the training part, or set fit = "all" under '
                "[preprocessing]",
            )


def summary_lines(
    dataset: Dataset, preprocessing: PreprocessingSpec, class_weight: ClassWeight | None = None
) -> list[str]:
    """Return lines about a data set, for the user to check before a sweep."""
    summary = dataset.summary
    of_all = f" of {summary.n_rows}" if summary.n_rows > dataset.n_points else ""
    features = pluralize(dataset.n_features, "feature")
    if dataset.grams is not None:
        features = pluralize(len(dataset.grams), "Gram matrix", "Gram matrices")
    lines = [f"{dataset.name}: {dataset.n_points}{of_all} rows, {features}, {dataset.task}"]
    details = _details(dataset, preprocessing, class_weight)
    lines += [f"  {key + ':':<11}{said}" for key, said in details if said]
    return lines


def _details(
    dataset: Dataset, preprocessing: PreprocessingSpec, class_weight: ClassWeight | None
) -> Iterator[tuple[str, str]]:
    """Yield a key and its words for each line after the first; the words may be empty."""
    summary = dataset.summary
    yield "label", summary.label
    if dataset.classes is None:
        yield "values", f"from {np.nanmin(dataset.y):g} to {np.nanmax(dataset.y):g}"
    else:
        yield from _classes(dataset)
    n_unlabelled = int((~dataset.labelled).sum())
    if n_unlabelled:
        said = f"{pluralize(n_unlabelled, 'row')}, in unlabelled parts alone; no score counts them"
        yield "no label", said
    if class_weight is not None:
        counted = dataset.weighing & dataset.labelled
        names, numbers = dataset.classes or (), dataset.class_numbers[counted]
        own = None if dataset.weights is None else dataset.weights[counted]
        weights = class_weights(class_weight, names, numbers, own).tolist()
        each = [f"{name} {weight:.3g}" for name, weight in zip(names, weights, strict=True)]
        of_each = " on all rows, computed anew on each training part"
        said = truncate(each, SHOWN_IN_SUMMARY) + of_each * (class_weight == "balanced")
        yield "weights", f"of classes: {said}"
    if dataset.weights is not None:
        low, high, n = dataset.weights.min(), dataset.weights.max(), (~dataset.weighing).sum()
        without = f"; {pluralize(int(n), 'row')} of weight 0 in no training part" if n else ""
        yield "weights", f"of rows: from {low:g} to {high:g}{without}"
    yield "left out", truncate(summary.left_out, SHOWN_IN_SUMMARY)
    yield "constant", truncate([repr(name) for name in summary.constant], SHOWN_IN_SUMMARY)
    yield "features", summary.sparse
    for view in summary.views:
        yield "view", view
    for texts in summary.texts:
        yield "texts", texts
    yield "encoded", truncate(summary.encoded, SHOWN_IN_SUMMARY)
    if dataset.row_groups is not None:
        yield "groups", f"{len(np.unique(dataset.row_groups))}, whose rows stay in one part"
    if dataset.impute is not None:
        rows, columns = summary.missing
        of = "all rows" if preprocessing.fit == "all" else "each training part"
        yield (
            "missing",
            f"{rows} of {dataset.n_points} rows miss values in {columns} "
            f"column{'s' * (columns > 1)}: filled with the {FILLERS[dataset.impute]} of {of}",
        )
    for note in summary.notes:
        yield "note", note


def _classes(dataset: Dataset) -> Iterator[tuple[str, str]]:
    """Yield the classes and their numbers of rows, and which of two is +1."""
    names = dataset.classes or ()
    counts = dataset.class_counts.tolist()
    said = [
        f"{name} ({pluralize(count, 'row')})" for name, count in zip(names, counts, strict=True)
    ]
    if dataset.multiclass:
        yield "classes", truncate(said, SHOWN_IN_SUMMARY)
        return
    yield "classes", f"{said[0]} is -1, {said[1]} is +1"
    yield "positive", f"{names[1]}: {OF_POSITIVE} are of it"
