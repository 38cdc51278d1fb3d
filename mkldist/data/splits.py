"""Splits into training, unlabelled and test rows: drawn, nested or of the data; inner folds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats, Ints
from mkldist.core.wording import FROM_ZERO, RowLabels, pluralize, truncate
from mkldist.data.dataset import Dataset, Split
from mkldist.data.labels import MISSING_LABELS
from mkldist.errors import DataError
from mkldist.spec.datasets import SplitsSpec
from mkldist.spec.kinds import check_fits
from mkldist.spec.model import SelectionSpec

# The names of mkldist, and those in files of semi-supervised benchmarks.
ARRAY_NAMES = (("train", "unlabelled", "test"), ("idx_labs", "idx_unls", "idx_test"))
PART_WORDS = ("train", "test", "unlabelled")
SHOWN = 10
MAX_DRAWS = 1000
FEW_CLASSES = 5  # each in two groups, of which a draw leaves every class outside three folds
BEST_OF = 100  # draws of groups for a training part, of which the most even one counts
ROW_BYTES = 16  # of a row of a split: its number in the draw, and in the split
SEEDS = 2**32  # seeds of numpy's RandomState have 32 bits
INDEX_ARRAYS = tuple(name for names in ARRAY_NAMES for name in names)


def partitions_of(
    arrays: Mapping[str, npt.NDArray[Any]],
    n_points: int,
    where: str,
    row_labels: RowLabels = FROM_ZERO,
) -> tuple[Split, ...]:
    """Return the partitions among the arrays of a file, checked, if it has any.

    They are ``train`` (R, n_train) and at least one of ``test`` (R, n_test) and ``unlabelled``
    (R, n_unlabelled), or ``idx_labs``, ``idx_test`` and ``idx_unls`` instead: indices from 0, one
    row per partition; arrays of one dimension make a single partition.
    """
    trains = [names[0] for names in ARRAY_NAMES if names[0] in arrays]
    if len(trains) > 1:
        raise DataError(
            where,
            f"arrays {trains[0]!r} and {trains[1]!r}",
            "one set of partitions: train, unlabelled and test, or idx_labs, idx_unls and idx_test",
            "Save one of the sets to another file",
        )
    for names in ARRAY_NAMES:
        found = {name: arrays[name] for name in names if name in arrays}
        if found:
            return _partitions(found, names, n_points, where, row_labels)
    return ()


def _partitions(
    arrays: Mapping[str, npt.NDArray[Any]],
    names: tuple[str, str, str],
    n_points: int,
    where: str,
    row_labels: RowLabels,
) -> tuple[Split, ...]:
    """Return the partitions of arrays with these names of training, unlabelled and test rows."""
    train, unlabelled, test = names
    others = [name for name in (test, unlabelled) if name in arrays]
    if train not in arrays or not others:
        alone = others[0] if others else train
        wanted = repr(train) if others else f"{test!r} or {unlabelled!r}"
        found, expected = (
            f"an array {alone!r} without {wanted}",
            "both, with one row of indices per",
        )
        raise DataError(where, found, f"{expected} partition", f"Add {wanted} or remove {alone!r}")
    rows = {name: _rows(array, f"{where}, array {name!r}") for name, array in arrays.items()}
    for name, array in rows.items():
        if len(array) != len(rows[train]):
            count = pluralize(len(rows[train]), "row")
            found = f"{count} in {train!r} but {len(array)} in {name!r}"
            raise DataError(where, found, "one row of each per partition", "Add the missing rows")
    splits = []
    for number in range(len(rows[train])):
        label = row_labels.of(number)
        parts = {name: array[number] for name, array in rows.items()}
        for name, part in parts.items():
            _check_indices(part, n_points, f"{where}, array {name!r}, {label}")
        for (name, part), (other_name, other) in combinations(parts.items(), 2):
            common = np.intersect1d(part, other)
            if len(common):
                place = f"{where}, {label} of {name!r} and {other_name!r}"
                found = f"{pluralize(len(common), 'point')} in both, such as {common[0]}"
                expected = "parts without a common point"
                raise DataError(place, found, expected, "Remove them from one of the parts")
        none = np.zeros(0, dtype=np.intp)
        ordered = (parts.get(name, none) for name in (train, test, unlabelled))
        splits.append(Split(*(part.astype(np.intp) for part in ordered)))
    return tuple(splits)


def _rows(array: npt.NDArray[Any], where: str) -> npt.NDArray[Any]:
    """Return an array of indices with one row for each partition."""
    if array.dtype.kind not in "iu":
        hint = "Save them as integers: indices.astype(int)"
        if array.dtype.kind == "b":
            hint = "np.flatnonzero turns a mask into indices"
        found = f"an array of {array.dtype}"
        raise DataError(where, found, "integers: indices of rows from 0", hint)
    if array.ndim not in (1, 2):
        expected = "one row of indices per partition"
        raise DataError(where, f"shape {array.shape}", expected, "Reshape it")
    return np.atleast_2d(array)


def _check_indices(part: npt.NDArray[Any], n_points: int, where: str) -> None:
    """Refuse indices outside of a data set, and those that occur twice."""
    outside = part[(part < 0) | (part >= n_points)]
    if len(outside):
        hint = "Check that the indices belong to these data"
        if outside[0] == n_points and part.min() > 0:
            hint = "Subtract 1, for indices start at 0"
        found = f"index {outside[0]} in a data set of {n_points} points"
        raise DataError(where, found, f"indices from 0 to {n_points - 1}", hint)
    values, counts = np.unique(part, return_counts=True)
    if len(values) < len(part):
        found = f"index {values[counts > 1][0]} twice"
        raise DataError(where, found, "every index once", "Remove one of them")


def partition_of_column(column: npt.NDArray[np.str_], where: str) -> Split:
    """Return the partition that a column of a table gives, a word in each row, in any case.

    >>> partition_of_column(np.array(["train", "Test", "train"]), "t.csv").train
    array([0, 2])
    """
    words = np.char.lower(np.char.strip(column))
    known = set(words.tolist())
    if not known <= {*PART_WORDS} or "train" not in known or len(known) < 2:
        listed = truncate([repr(word) for word in np.unique(column).tolist()], SHOWN)
        expected = "'train' in some rows, 'test' or 'unlabelled' in the others"
        hint = "Correct this column, or set another kind of splits"
        raise DataError(where, f"the word{'s' * (len(known) > 1)} {listed}", expected, hint)
    return Split(*(np.flatnonzero(words == word) for word in PART_WORDS))


def group_numbers(
    column: npt.NDArray[np.str_], where: str, row_labels: RowLabels = FROM_ZERO
) -> Ints:
    """Return the number of each row's group, (n,), groups in alphabetical order.

    Rows without a group are refused: they would otherwise all be one.

    >>> group_numbers(np.array(["p2", "p1", "p2"]), "t.csv")
    array([1, 0, 1])
    """
    names, numbers = np.unique(column, return_inverse=True)
    missing = np.array([name.strip().casefold() in MISSING_LABELS for name in names.tolist()])
    rows = np.flatnonzero(missing[numbers])
    if len(rows):
        found = f"no group in {len(rows)} of {pluralize(len(column), 'row')}, the first is "
        found += f"{row_labels.of(rows[0])}"
        hint = "Write the group there; give a row that belongs to no other a group of its own"
        raise DataError(where, found, "a group in every row", hint)
    return numbers


def restricted(partitions: Sequence[Split], rows: Ints, n_points: int) -> tuple[Split, ...]:
    """Return partitions without the points that are not in `rows`, as positions in `rows`."""
    place = np.full(n_points, -1, dtype=np.intp)
    place[rows] = np.arange(len(rows))
    moved = [
        [place[part] for part in (split.train, split.test, split.unlabelled)]
        for split in partitions
    ]
    return tuple(Split(*(part[part >= 0] for part in parts)) for parts in moved)


def holdouts(
    n_train: int, n_test: int, n_repeats: int, seed: int, labels: Floats | None = None
) -> Iterator[tuple[Ints, Ints]]:
    """Yield training and test rows of ``ShuffleSplit``, stratified by `labels` (n,) if given."""
    from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

    splitter = ShuffleSplit if labels is None else StratifiedShuffleSplit
    draws = splitter(n_repeats, test_size=n_test, train_size=n_train, random_state=seed % SEEDS)
    yield from draws.split(np.zeros(n_train + n_test), labels)


def repeated_folds(
    n_folds: int, n_repeats: int, seed: int, n_points: int, labels: Any = None
) -> Iterator[Ints]:
    """Yield the ascending rows of each fold of scikit-learn's ``RepeatedKFold``.

    With `labels` (n,) the folds are stratified.  Those of one repetition are adjacent.
    """
    from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

    splitter = RepeatedKFold if labels is None else RepeatedStratifiedKFold
    folds = splitter(n_splits=n_folds, n_repeats=n_repeats, random_state=seed % SEEDS)
    yield from (test for _, test in folds.split(np.zeros(n_points), labels))


def group_folds(
    n_folds: int, n_repeats: int, seed: int, groups: Ints, labels: Any = None
) -> Iterator[Ints]:
    """Yield the ascending rows of each fold of groups (n,).

    With `labels` (n,) they are those of scikit-learn's ``StratifiedGroupKFold``.  Where a fold
    holds all rows of a class, or the folds are those of an earlier repetition, they are the first
    of up to ``MAX_DRAWS`` random draws of which neither is true, if there is one.
    Else they are ``KFold`` of the groups.  Those of one repetition are adjacent.
    """
    if labels is None:
        present = np.unique(groups)
        for held_out in repeated_folds(n_folds, n_repeats, seed, len(present)):
            yield np.flatnonzero(np.isin(groups, present[held_out]))
        return
    random, counts = np.random.RandomState(seed % SEEDS), _class_counts(groups, labels)
    of_rows, before = np.unique(groups, return_inverse=True)[1], set[bytes]()
    for _ in range(n_repeats):
        first = _stratified_fold(n_folds, groups, labels, random)
        fold = _new_fold(first, n_folds, counts, before, random)
        yield from (np.flatnonzero(fold[of_rows] == number) for number in range(n_folds))


def _new_fold(
    fold: Ints, n_folds: int, counts: Ints, before: set[bytes], random: np.random.RandomState
) -> Ints:
    """Return `fold` (G,) of the groups, or a draw that divides them as never before.

    It leaves rows of every class outside each fold, where classes are in several groups.
    `before` is added to.  Shapes: counts (G, k).
    """
    found, totals, in_groups = fold, counts.sum(axis=0), (counts > 0).sum(axis=0)
    for _ in range(MAX_DRAWS):
        held_out = np.array([counts[fold == one].sum(axis=0) for one in range(n_folds)])
        if in_groups.min() < 2 or not (held_out == totals).any():
            found = fold
            if _together(fold) not in before:
                break
        fold = random.permutation(len(counts)) % n_folds
    before.add(_together(found))
    return found


def _together(fold: Ints) -> bytes:
    """Return a name of the groups that share folds, whatever the numbers of the folds."""
    _, first, number = np.unique(fold, return_index=True, return_inverse=True)
    return first[number].tobytes()


def _rarest_classes(counts: Ints) -> Ints:
    """Return the rarest class of each of G groups, by counts (G, k) of their classes."""
    often = (counts > 0).sum(axis=0)
    rarest: Ints = np.where(counts > 0, often, len(counts) + 1).argmin(axis=1)
    return rarest


def _stratified_fold(
    n_folds: int, groups: Ints, labels: Any, random: np.random.RandomState
) -> Ints:
    """Return the fold of each group by ``StratifiedGroupKFold``; random for classes of few rows."""
    from sklearn.model_selection import StratifiedGroupKFold

    present, first = np.unique(groups, return_index=True)
    fold: Ints = random.permutation(len(present)) % n_folds
    if np.unique(labels, return_counts=True)[1].max() < n_folds:
        return fold
    splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=random)
    with warnings.catch_warnings():  # of classes with fewer rows than folds
        warnings.simplefilter("ignore", UserWarning)
        for number, (_, test) in enumerate(splitter.split(groups, labels, groups)):
            fold[np.isin(first, test)] = number
    return fold


def _class_counts(groups: Ints, labels: Any) -> Ints:
    """Return the numbers of rows by group and class, (G, k)."""
    of_groups, of_classes = (np.unique(one, return_inverse=True)[1] for one in (groups, labels))
    counts = np.zeros((of_groups.max() + 1, of_classes.max() + 1), dtype=np.intp)
    np.add.at(counts, (of_groups, of_classes), 1)
    return counts


def _even_draws(counts: Ints, n_train: int, repeats: int, seed: int) -> Iterator[Ints]:
    """Yield so many of G groups, drawn so that each class gives its share of rows.

    They are the most even of ``BEST_OF`` draws; of up to ``MAX_DRAWS`` where these lack a class, or
    were drawn before.

    Shapes: counts (G, k).
    """
    random, totals = np.random.RandomState(seed % SEEDS), counts.sum(axis=0)
    before = set[bytes]()

    def unevenness(train: Ints) -> float:
        own = counts[train].sum(axis=0)
        bad = 3.0 * (own == 0).sum() + (own == totals).sum() + 2.0 * (train.tobytes() in before)
        return float(np.abs(own / totals - n_train / len(counts)).sum() + len(totals) * bad)

    for _ in range(repeats):
        best, least = np.zeros(0, dtype=np.intp), np.inf
        for number in range(MAX_DRAWS):
            if number >= BEST_OF and least < 2.0 * len(totals):
                break
            train = np.sort(random.permutation(len(counts))[:n_train])
            if (found := unevenness(train)) < least:
                best, least = train, found
        before.add(best.tobytes())
        yield best


def cut_splits(
    dataset: Dataset,
    splits: Sequence[Split],
    n_train: int,
    seed: int,
    where: str,
    *,
    stratified: bool,
) -> tuple[Split, ...]:
    """Return every split with some of its training rows.

    The rows of a smaller number are among those of a larger one.  A grouped data set gives whole
    groups, as many as fit.  Test and unlabelled rows stay.
    """
    found = []
    for number, split in enumerate(splits):
        if n_train > len(split.train):
            expected = f"at most {len(split.train)}, the training rows of split {number} (from 0)"
            hint = "Lower it, or enlarge the training parts"
            raise DataError(f"{where}: n_train", f"{n_train}", expected, hint)
        ranks = _ranks(dataset, split.train, seed + number, stratified=stratified)
        of_rows = split.train if dataset.row_groups is None else dataset.row_groups[split.train]
        order = np.lexsort((of_rows, ranks))
        size = n_train
        if size < len(order):
            size = int(np.argmax(of_rows[order] == of_rows[order[size]]))
            if not size:
                first = int((of_rows == of_rows[order[0]]).sum())
                raise DataError(
                    f"{where}: n_train",
                    f"{n_train}",
                    f"at least {first}, the rows of the group that split {number} (from 0) takes "
                    "first",
                    "Raise it, or set another seed: groups are taken whole, in a drawn order",
                )
        part = split.train[np.sort(order[:size])]
        found.append(Split(part, split.test, split.unlabelled))
    return tuple(found)


def _ranks(dataset: Dataset, train: Ints, seed: int, *, stratified: bool = True) -> np.ndarray:
    """Return for each training row the share from which on it is taken, below 1."""
    random = np.random.RandomState(seed % SEEDS)
    classes = np.zeros(len(train), dtype=np.intp)
    if stratified and dataset.classes is not None:
        classes = dataset.class_numbers[train]
    of: Ints = np.arange(len(train))
    if dataset.row_groups is not None:  # each group counts for the rarest of its classes
        of = np.unique(dataset.row_groups[train], return_inverse=True)[1]
        classes = _rarest_classes(_class_counts(dataset.row_groups[train], classes))
    ranks = np.empty(len(classes))
    for number in np.unique(classes):
        rows = np.flatnonzero(classes == number)
        ranks[rows] = random.permutation(len(rows)) / len(rows)
    return ranks[of]


def draw_splits(spec: SplitsSpec, dataset: Dataset, seed: int, where: str) -> tuple[Split, ...]:
    """Draw splits in which few points have labels.

    The test part is drawn first, in proportion to the classes; then the labelled points among the
    others; the rest is unlabelled.  One ``numpy.random.default_rng(seed)`` makes all draws, so that
    a larger number of repeats begins with the same splits.
    """
    if dataset.task == "regression":
        found = 'kind = "semi-supervised" for a data set of regression'
        hint = "Set splits = {...} of another kind under this data set"
        raise DataError(where, found, "classes", hint)
    rng = np.random.default_rng(seed)
    draw = _of_all if spec.labelled is not None else _labelled_of_each_class
    splits = []
    for _ in range(spec.repeats):
        rows, test = np.flatnonzero(dataset.labelled), np.zeros(0, dtype=np.intp)
        if spec.test_fraction:
            place = f"{where}: test_fraction"
            rows, test = _divided(rows, dataset.y, spec.test_fraction, rng, place)
        labelled = np.sort(draw(spec, dataset, rows, rng, where))
        others = np.flatnonzero(~dataset.labelled)
        unlabelled = np.union1d(np.setdiff1d(rows, labelled), others)
        if not len(unlabelled):
            found = f"all of {pluralize(len(rows), 'point')} labelled"
            hint = 'Label fewer points, or set kind = "holdout"'
            raise DataError(where, found, "at least one unlabelled point", hint)
        splits.append(Split(labelled, test, unlabelled))
    return tuple(splits)


def _labelled_of_each_class(
    spec: SplitsSpec, dataset: Dataset, rows: Ints, rng: np.random.Generator, where: str
) -> Ints:
    """Draw the labelled rows, class by class."""
    y, drawn = dataset.y, []
    for name, label in zip(dataset.classes or (), np.unique(y[dataset.labelled]), strict=True):
        members = rows[y[rows] == label]
        wanted = spec.labelled_per_class or 0
        if spec.labelled_fraction is not None:
            wanted = max(1, round(spec.labelled_fraction * np.count_nonzero(y == label)))
        if wanted > len(members):
            raise DataError(
                where,
                f"{pluralize(wanted, 'point')} to be labelled of {len(members)} in class {name!r}",
                f"at most {len(members)}",
                "Label fewer, or lower test_fraction",
            )
        drawn.append(rng.choice(members, wanted, replace=False))
    return np.concatenate(drawn)


def _of_all(
    spec: SplitsSpec, dataset: Dataset, rows: Ints, rng: np.random.Generator, where: str
) -> Ints:
    """Draw labelled rows in proportion to the classes, or at random until every class has one."""
    y, wanted = dataset.y, spec.labelled or 0
    n_classes = len(np.unique(y[rows]))
    if not n_classes <= wanted < len(rows):
        found = f"{wanted} of {len(rows)} points, of {n_classes} classes"
        expected = f"a number from {n_classes} to {len(rows) - 1}"
        raise DataError(f"{where}: labelled", found, expected, "Change labelled")
    if spec.stratified is not False:
        drawn = _divided(rows, y, wanted, rng, f"{where}: labelled")[1]
        for label in np.setdiff1d(y[rows], y[drawn]):  # a share below one that was rounded down
            known, counts = np.unique(y[drawn], return_counts=True)
            often = np.flatnonzero(y[drawn] == known[counts.argmax()])
            drawn[rng.choice(often)] = rng.choice(rows[y[rows] == label])
        return drawn
    for _ in range(MAX_DRAWS):
        drawn = rng.choice(rows, wanted, replace=False)
        if len(np.unique(y[drawn])) == n_classes:
            return drawn
    found = f"a class without a point in each of {MAX_DRAWS} draws of {wanted}"
    hint = "Remove stratified = false, or set labelled_per_class instead"
    raise DataError(f"{where}: labelled", found, "points of every class", hint)


def _divided(
    rows: Ints, y: Floats, size: float, rng: np.random.Generator, where: str
) -> tuple[Ints, Ints]:
    """Return the rows left and those taken, `size` or that share of each class."""
    wanted, seed = size if isinstance(size, int) else ceil(size * len(rows)), rng.integers(SEEDS)
    try:
        [(left, taken)] = holdouts(len(rows) - wanted, wanted, 1, int(seed), y[rows])
    except ValueError as error:
        _, counts = np.unique(y[rows], return_counts=True)
        raise DataError(
            where,
            f"{wanted} of {len(rows)} points, of {len(counts)} classes, the smallest of "
            f"{counts.min()}, which cannot be divided so",
            f"a part of {len(counts)} to {len(rows) - len(counts)} points, and two points or more "
            "of each class",
            "Change this number",
        ) from error
    return np.sort(rows[left]), np.sort(rows[taken])


def make_splits(
    spec: SplitsSpec, dataset: Dataset, seed: int, name: str | None = None
) -> tuple[Split, ...]:
    """Return the splits of a data set.

    ``holdout`` is ``(Stratified)ShuffleSplit`` and ``kfold`` is ``Repeated(Stratified)KFold`` of
    scikit-learn with ``random_state=seed`` (modulo 2³²), folds of one repetition adjacent; indices
    are sorted.  Both are stratified by class unless the sweep file says otherwise.  With groups,
    folds are :func:`group_folds`, and a training part is the draw of ``BEST_OF`` in which the
    shares of the classes are most even; without strata ``GroupShuffleSplit``.
    ``leave-one-group-out`` is ``LeaveOneGroupOut``, ``time`` is ``TimeSeriesSplit``, ``predefined``
    takes the partitions that came with the data, and ``semi-supervised`` is :func:`draw_splits`.
    """
    where = f"splits of data set {(name or dataset.name)!r}"
    if spec.kind not in ("predefined", "time"):
        n_splits = spec.repeats * (spec.folds if spec.kind == "kfold" else 1)
        check_fits(n_splits, ROW_BYTES * dataset.n_points, where, "splits", "Lower repeats")
    if spec.kind == "predefined":
        splits = dataset.predefined
        if not splits:
            raise DataError(
                where,
                "no predefined partitions in the data",
                "row indices in a .npz file: arrays train and test, or idx_labs and idx_unls; or "
                "a column of a table, by column = …",
                'Set kind = "holdout", "kfold" or "semi-supervised"',
            )
    elif spec.kind == "time":
        splits = _in_time(spec, dataset, where)
    elif spec.kind == "semi-supervised":
        splits = draw_splits(spec, dataset, seed, where)
    else:
        splits = _drawn(spec, dataset, seed, where)
    if spec.first is not None:
        if spec.first > len(splits):
            expected = f"at most {len(splits)}, all splits"
            raise DataError(f"{where}: first", f"{spec.first}", expected, "Lower or remove first")
        splits = splits[: spec.first]
    has = dataset.weighing  # rows of weight zero are in no training part
    splits = tuple(
        Split(s.train[has[s.train]], s.test, s.unlabelled[has[s.unlabelled]]) for s in splits
    )
    if isinstance(spec.n_train, int):
        stratified = spec.stratified is not False
        splits = cut_splits(dataset, splits, spec.n_train, seed, where, stratified=stratified)
    for number, split in enumerate(splits):
        _check(split, number, len(splits), dataset, where, _advice(spec))
    return splits


def _advice(spec: SplitsSpec) -> str:
    """Return what to do if a split lacks points of a class."""
    if spec.n_train is not None:
        return "Raise n_train"
    of_kind = {
        "predefined": "Correct this split in the data",
        "time": "Set fewer folds, so that the first training part is larger",
        "leave-one-group-out": 'Merge this group with others, or set kind = "kfold"',
    }
    other = "Enlarge the training part, or remove stratified = false"
    return of_kind.get(spec.kind, other)


def _drawn(spec: SplitsSpec, dataset: Dataset, seed: int, where: str) -> tuple[Split, ...]:
    if spec.kind == "leave-one-group-out" and dataset.row_groups is None:
        hint = "Name the column of groups, such as patients or hospitals, by groups"
        raise DataError(where, f'kind = "{spec.kind}" without groups', "groups = ...", hint)
    n = dataset.n_points
    if dataset.classes is None and spec.stratified:
        found, expected = "stratified = true for a data set of regression", "classes"
        raise DataError(where, found, expected, "Remove stratified: classes are so by default")
    stratified = dataset.classes is not None and spec.stratified is not False
    labels = dataset.y if stratified else None
    if dataset.row_groups is not None:
        if stratified and spec.kind == "kfold":
            _check_groups(dataset, np.arange(n), where, 'Set kind = "holdout", or merge classes')
        return _drawn_by_group(spec, dataset.row_groups, labels, seed, where)
    if spec.kind == "kfold":
        most = int(np.bincount(dataset.class_numbers).min()) if stratified else n
        if spec.folds > most:
            found = f"{spec.folds} folds of {_counts(dataset)}"
            hint = "Set fewer folds" + ", or stratified = false" * stratified
            raise DataError(where, found, f"at most {most} folds", hint)
        folds = repeated_folds(spec.folds, spec.repeats, seed, n, labels)
        return tuple(Split(np.setdiff1d(np.arange(n), test), test) for test in folds)
    n_train = int(spec.train_fraction * n)
    try:
        pairs = list(holdouts(n_train, n - n_train, spec.repeats, seed, labels))
    except ValueError as error:
        found = f"{_counts(dataset)}, which cannot be divided so ({error})"
        expected = "at least one point in each part, and one of each class"
        hint = "Change train_fraction" + (", or set stratified = false" if stratified else "")
        raise DataError(where, found, expected, hint) from error
    return tuple(Split(*(np.sort(part).astype(np.intp) for part in pair)) for pair in pairs)


def _in_time(spec: SplitsSpec, dataset: Dataset, where: str) -> tuple[Split, ...]:
    """Return folds in the order of time, each with all rows before it as its training part."""
    from sklearn.model_selection import TimeSeriesSplit

    n, folds = dataset.n_points, spec.folds
    if folds >= n:
        found = f"{folds} folds of {n} points in the order of time"
        raise DataError(where, found, f"at most {n - 1} folds", "Set fewer folds")
    order = np.arange(n) if dataset.row_order is None else dataset.row_order
    pairs = TimeSeriesSplit(folds).split(order)
    return tuple(Split(np.sort(order[train]), np.sort(order[test])) for train, test in pairs)


def _drawn_by_group(
    spec: SplitsSpec, groups: Ints, labels: Floats | None, seed: int, where: str
) -> tuple[Split, ...]:
    """Return splits drawn among groups, stratified by `labels` if given; see :func:`make_splits`.

    Where each group is left out, they are in order.
    """
    n_groups = len(np.unique(groups))
    if spec.kind == "leave-one-group-out":
        hint = 'Set kind = "kfold", whose folds hold many groups'
        check_fits(n_groups, ROW_BYTES * len(groups), where, "splits", hint)
        if n_groups < 2:
            raise DataError(where, "one group", "two groups or more", "Choose other groups")
        tests = [np.flatnonzero(groups == one) for one in np.unique(groups)]
    elif spec.kind == "kfold":
        if spec.folds > n_groups:
            found = f"{spec.folds} folds of {pluralize(n_groups, 'group')}"
            expected = f"at most {pluralize(n_groups, 'fold')}"
            raise DataError(where, found, expected, "Set fewer folds")
        tests = list(group_folds(spec.folds, spec.repeats, seed, groups, labels))
    else:
        n_train = int(spec.train_fraction * n_groups)
        if not n_train:
            found = f"{pluralize(n_groups, 'group')} in all, none for the training part"
            expected = "at least one group for each part"
            raise DataError(where, found, expected, "Raise train_fraction, or choose other groups")
        if labels is None:
            drawn = holdouts(n_train, n_groups - n_train, spec.repeats, seed)
            halves = [train for train, _ in drawn]
        else:
            counts = _class_counts(groups, labels)
            halves = list(_even_draws(counts, n_train, spec.repeats, seed))
        present = np.unique(groups)
        tests = [np.flatnonzero(~np.isin(groups, present[train])) for train in halves]
    return tuple(Split(np.setdiff1d(np.arange(len(groups)), test), test) for test in tests)


def _check(
    split: Split, number: int, total: int, dataset: Dataset, where: str, advice: str
) -> None:
    place = f"{where}, split {number} of {total} (from 0)"
    scored = len(split.test) + len(split.unlabelled)
    for size, name in ((len(split.train), "training"), (scored, "test or unlabelled")):
        if not size:
            raise DataError(
                place, f"no {name} point", "at least one", "Correct or leave out this split"
            )
    for part, name in ((split.train, "training"), (split.test, "test")):
        without = int((~dataset.labelled[part]).sum())
        if without:
            found = f"no label in {without} of {pluralize(len(part), 'row')} of its {name} part"
            hint = 'Write their labels, or set unlabelled = "drop" under the data set'
            raise DataError(place, found, "rows without a label in unlabelled parts alone", hint)
    if dataset.classes is None:
        return
    present = {*np.unique(dataset.class_numbers[split.train]).tolist()}
    for number, name in enumerate(dataset.classes):
        if number not in present:
            of_groups = ""
            if dataset.row_groups is not None:
                own = len(np.unique(dataset.row_groups[dataset.class_numbers == number]))
                of_groups = f", a class in {own} of "
                of_groups += pluralize(len(np.unique(dataset.row_groups)), "group")
            raise DataError(
                place,
                f"no point of class {name!r} in its training part of {len(split.train)}{of_groups}",
                f"points of {'every class' if dataset.multiclass else 'both classes'}",
                advice,
            )


def _counts(dataset: Dataset) -> str:
    if dataset.classes is None:
        return f"{dataset.n_points} points"
    counts = np.bincount(dataset.class_numbers, minlength=len(dataset.classes)).tolist()
    pairs = zip(counts, dataset.classes, strict=True)
    listed = [f"{pluralize(count, 'point')} of class {name!r}" for count, name in pairs]
    return truncate(listed, SHOWN, "more classes")


def inner_folds(
    dataset: Dataset, labelled: Ints, spec: SelectionSpec, seed: int
) -> tuple[Ints, ...]:
    """Return the held-out rows of each inner fold.

    They are those of :func:`~mkldist.data.splits.repeated_folds`, and each class is divided
    in proportion.  There are at least two points of each class and at most as many folds, so that
    the training rows of a fold have points of every class.  Those of a grouped data set are
    :func:`~mkldist.data.splits.group_folds`.
    """
    n_folds = min(spec.folds, _most_folds(dataset, labelled))
    labels = None if dataset.classes is None else dataset.class_numbers[labelled]
    if dataset.row_groups is not None:
        folds = group_folds(n_folds, spec.repeats, seed, dataset.row_groups[labelled], labels)
    else:
        folds = repeated_folds(n_folds, spec.repeats, seed, len(labelled), labels)
    return tuple(np.sort(labelled[held_out]) for held_out in folds)


def n_inner_folds(
    dataset: Dataset, labelled: Ints, spec: SelectionSpec, where: str, seed: int = 0
) -> int:
    """Return the number of folds that :func:`inner_folds` makes, repetitions included."""
    most = _most_folds(dataset, labelled)
    grouped, noun = dataset.row_groups is not None, "points"
    if dataset.classes is not None:
        noun = "points of the smallest class"
    counted = "groups of the training part" if grouped else f"training {noun}"
    if most < 2:
        found = f"{counted}: {most}"
        hint = "Enlarge the training part, or remove [selection]"
        raise DataError(where, found, f"at least two {counted}, for the folds of [selection]", hint)
    if "folds" in spec.model_fields_set and spec.folds > most:
        hint = "Lower it, or omit it to use up to 5 folds"
        raise DataError(where, f"folds = {spec.folds}", f"at most {most}, the {counted}", hint)
    if dataset.row_groups is not None and dataset.classes is not None:
        _check_groups(dataset, labelled, where, "Enlarge the training part, or remove [selection]")
        if min(spec.folds, most) < 3 or len(dataset.classes) > FEW_CLASSES:  # else there are such
            _check_classes(dataset, labelled, inner_folds(dataset, labelled, spec, seed), where)
    return min(spec.folds, most) * spec.repeats


def _check_groups(dataset: Dataset, rows: Ints, where: str, hint: str) -> None:
    """Refuse to divide groups into folds if one group has all rows of a class."""
    if dataset.row_groups is None or dataset.classes is None:
        return
    groups, numbers = dataset.row_groups[rows], dataset.class_numbers[rows]
    for number, name in enumerate(dataset.classes):
        count = len(np.unique(groups[numbers == number]))
        if count < 2:
            found = f"class {name!r} in {count} of {pluralize(len(np.unique(groups)), 'group')}"
            expected = "each class in two groups or more, for the training part of every fold"
            raise DataError(where, found, expected, hint)


def _check_classes(dataset: Dataset, labelled: Ints, folds: tuple[Ints, ...], where: str) -> None:
    """Refuse folds of groups that hold all training points of a class."""
    names = dataset.classes or ()
    totals = np.bincount(dataset.class_numbers[labelled], minlength=len(names))
    for number, held_out in enumerate(folds):
        left = totals - np.bincount(dataset.class_numbers[held_out], minlength=len(names))
        if not left.all():
            place = f"{where}, inner fold {number} (from 0)"
            found = f"all {totals[left.argmin()]} training points of class {names[left.argmin()]!r}"
            hint = "Set more folds or another seed, or enlarge the training part"
            raise DataError(place, found, "points of every class outside each fold of groups", hint)


def _most_folds(dataset: Dataset, labelled: Ints) -> int:
    """Return the number of points of the smallest class, of groups, or in regression of all."""
    if dataset.row_groups is not None:
        return len(np.unique(dataset.row_groups[labelled]))
    if dataset.classes is None:
        return len(labelled)
    counts = np.bincount(dataset.class_numbers[labelled], minlength=len(dataset.classes))
    return int(counts.min())
