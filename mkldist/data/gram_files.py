"""Files of precomputed Gram matrices, read with labels and names, and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mkldist.core.arrays import Array
from mkldist.core.wording import FROM_ONE, RowLabels, in_lines
from mkldist.data.checks import check_fits, positions_of_ids
from mkldist.data.dataset import ImportSummary, RawData, Split
from mkldist.data.files import open_source
from mkldist.data.grams import OF_TEXTS, Repairs, check_stack, usable_grams
from mkldist.data.labels import finite_number
from mkldist.data.npz_files import (
    Archive,
    NamedArrays,
    column,
    kernel_names,
    open_npz,
    read_npy,
    row_names,
    weight_array,
)
from mkldist.data.opening import REWRITE, check_file, is_zarr, opened
from mkldist.data.splits import INDEX_ARRAYS, partitions_of
from mkldist.data.svmlight_files import SparseRows
from mkldist.data.tables import LABEL_NAMES
from mkldist.data.zarr_files import ZarrArrays, opened_zarr
from mkldist.errors import DataError, GramError, ending_words
from mkldist.spec.kinds import Indefinite

ON_DISK = "Save the matrices as a .npy file, which stays on disk"


def read_grams(
    path: Path,
    labels_path: Path | None,
    label: str | None,
    where: str,
    weights: str | None = None,
    indefinite: Indefinite | None = None,
) -> RawData:
    """Read M Gram matrices over n points with their labels, and check them.

    `path` is a ``.npz`` or ``.mat`` file or a zarr group with ``grams (M, n, n)``, the array
    `label` (n,), by default ``y``, that of row `weights`, and perhaps names of matrices and of
    points, and the arrays of :func:`partitions_of`; or with ``K_train``, ``K_test`` and their
    labels, see :func:`_apart`; or a ``.npy`` file or zarr array of the matrices alone, of which the
    former stays on disk as a memory map; or a LIBSVM file of precomputed kernels.  `labels_path` is
    a file of labels if `path` has none: ``.npy``, ``.npz``, or text with one label per line,
    perhaps after a header.  Labels with names join those of the points.  In matrices of double
    precision, negative eigenvalues within the tolerance of the check are set to zero, others are
    changed as `indefinite` says; only then is a memory-mapped array copied.
    """
    label, repairs = label or "y", Repairs.of(indefinite)
    with opened_matrices(path, where) as arrays:
        if "K_train" in arrays:
            return _apart(arrays, f"grams {path.name}", where, repairs)
        grams, y = arrays.required("grams", "Gram matrices (M, n, n)"), arrays.get(label)
        n_points = grams.shape[-1] if grams.ndim else 0
        indices = {name: arrays[name] for name in INDEX_ARRAYS if name in arrays}
        partitions = partitions_of(indices, n_points, where, FROM_ONE)
        row_weights = weight_array(arrays, weights, n_points)
        names = kernel_names(arrays, len(grams), n_points) if grams.ndim == 3 else ()
        ids, notes, place = row_names(arrays, None, n_points), arrays.notes, arrays.where
        tolerance = arrays.tolerance
    row_labels = FROM_ONE
    if y is not None and labels_path is not None:
        found, expected = f"labels in {path.name} and in {labels_path.name}", "one source of labels"
        raise DataError(where, found, expected, "Remove labels = …")
    if labels_path is not None:
        named = f"{where}: labels {labels_path.name}"
        y, row_labels = _read_labels(labels_path, label, n_points, named, ids)
    if y is None:
        found = "Gram matrices without labels"
        expected = f"an array {label!r} beside 'grams', or a file of labels"
        raise DataError(where, found, expected, "Set labels = a file with one label per point")
    y = column(y)
    grams = usable_grams(grams, y, place, repairs, tolerance)
    notes += () if repairs is None else repairs.notes(len(grams))
    return RawData(
        y,
        None,
        partitions=partitions,
        grams=grams,
        gram_names=names,
        weights=row_weights,
        origin=f"grams {path.name}",
        summary=ImportSummary(notes=notes),
        row_labels=row_labels,
    )


def _apart(arrays: NamedArrays, origin: str, where: str, repairs: Repairs | None) -> RawData:
    """Return Gram matrices of training points, and their kernel values with test points.

    They are ``K_train`` (n, n) or (M, n, n), ``K_test`` (m, n) or (M, m, n), ``y_train`` and
    ``y_test``.  No method asks for values between test points, which are zero.
    """
    parts = {
        name: arrays.required(name, what)
        for name, what in (
            ("K_train", "Gram matrices of training points"),
            ("K_test", "kernel values (m, n) of test points with those"),
            ("y_train", "their labels"),
            ("y_test", "labels of test points"),
        )
    }
    train, test = (one[None] if one.ndim == 2 else one for one in list(parts.values())[:2])
    y = [column(parts[name]) for name in ("y_train", "y_test")]
    train = usable_grams(train, y[0], f"{where}, array 'K_train'", repairs)
    (n_kernels, n), m = train.shape[:2], len(y[1])
    if test.shape != (n_kernels, m, n) or test.dtype.kind not in "fiub":
        found = f"{test.dtype} of shape {test.shape}"
        expected = f"numbers of shape {(n_kernels, m, n)}: kernels, test points, training points"
        raise GramError(f"{where}, array 'K_test'", found, expected, "Save K(test, train)")
    if not np.isfinite(test).all():
        raise GramError(f"{where}, array 'K_test'", "values that are not finite", "finite numbers")
    check_fits(8 * n_kernels * (n + m) ** 2, where, "Give fewer matrices or points")
    notes = arrays.notes
    if repairs is not None:
        test = np.array([repairs.between(one, number) for number, one in enumerate(test)])
        notes += repairs.notes(n_kernels)
    grams = np.zeros((n_kernels, n + m, n + m))
    grams[:, :n, :n], grams[:, n:, :n], grams[:, :n, n:] = train, test, test.swapaxes(1, 2)
    return RawData(
        np.concatenate(y),
        None,
        partitions=(Split(np.arange(n), np.arange(n, n + m)),),
        grams=grams,
        gram_names=kernel_names(arrays, n_kernels, n),
        apart=True,
        origin=origin,
        summary=ImportSummary(notes=(*notes, f"{n} training and {m} test points, apart")),
        row_labels=FROM_ONE,
    )


def read_view(
    path: Path, id: str | None, where: str, repairs: Repairs | None = None
) -> tuple[Array, Array | None, tuple[str, ...]]:
    """Return the Gram matrices of a view, (M, n, n), checked, and names of points and matrices."""
    with opened_matrices(path, where) as arrays:
        grams = arrays.required("grams", "Gram matrices (M, n, n)")
        grams = grams[None] if grams.ndim == 2 else grams
        check_stack(grams, where)
        if id is not None and id not in arrays:
            hint = "Remove id if the matrices have the rows of the data set in their order"
            expected = "an array that names the points, beside 'grams'"
            raise DataError(where, f"no array {id!r}", expected, hint)
        n_points = grams.shape[1]
        ids, names = row_names(arrays, id, n_points), kernel_names(arrays, len(grams), n_points)
    return usable_grams(grams, ids, where, repairs), ids, names


def holds_grams(path: Path, where: str) -> bool:
    """Return True if a file has Gram matrices, and no features."""
    with open_source(path, where) as source:
        if isinstance(source, SparseRows):
            return source.gram is not None
        return (
            isinstance(source, NamedArrays)
            and "x" not in source
            and ("grams" in source or "K_train" in source)
        )


@contextmanager
def opened_matrices(path: Path, where: str) -> Iterator[NamedArrays]:
    """Open a file of matrices and of arrays beside them."""
    if is_zarr(path):
        with opened_zarr(path, where) as node:
            arrays = node if isinstance(node, Mapping) else {"grams": node}
            yield ZarrArrays(arrays, where, ON_DISK)
        return
    check_file(path, where)
    if path.suffix.lower() == ".npy":
        yield Archive({"grams": read_npy(path, where, mapped=True)}, where)
        return
    with open_source(path, where) as source:
        if isinstance(source, NamedArrays):
            yield source
        elif isinstance(source, SparseRows) and source.gram is not None:
            arrays = Archive({"grams": source.gram[None], "y": source.labels}, source.gram_where)
            arrays.notes, arrays.tolerance = source.gram_notes, OF_TEXTS
            yield arrays
        else:
            found = ending_words(path.suffix, "file")
            expected = ".npz, .npy, .mat, a zarr folder, or .svm of precomputed kernels"
            hint = "Convert it, for example with np.savez(file, grams=…, y=…)"
            raise DataError(where, found, expected, hint)


def _read_labels(
    path: Path, label: str, n_points: int, where: str, ids: Array | None
) -> tuple[Array, RowLabels]:
    """Return the labels of a file and where they stand in it, in the order of `ids` if it has them.

    The first line of a text is a header if the file has one line more than there are points, and
    the line is called as label columns are, or is a text that is no label below: ``y`` may be one.
    """
    check_file(path, where)
    extension = path.suffix.lower()
    if extension == ".npy":
        return read_npy(path, where), FROM_ONE
    if extension == ".npz":
        with open_npz(path, where) as archive:
            labels = column(archive.labels(label))
            own = row_names(archive, None, len(labels))
            if own is None or ids is None:
                return labels, FROM_ONE
            place = positions_of_ids(own, where)
            lacking = [one for one in ids.tolist() if one not in place]
            if lacking:
                found = f"no label for {len(lacking)} of {n_points} points ({lacking[0]!r}, …)"
                raise DataError(where, found, "a label for the name of each point", REWRITE)
            rows = np.array([place[one] for one in ids.tolist()])
            return labels[rows], FROM_ONE.chosen(rows)
    with opened(path, where) as stream:
        lines = [line.strip() for line in stream.read().decode("utf-8-sig").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    first = lines[0] if lines else ""
    named = first.casefold() in LABEL_NAMES
    apart = first not in lines[1:] and finite_number(first) is None
    header = int((len(lines) == n_points + 1 and (named or apart)) or (lines == [first] and named))
    if not lines[header:]:
        raise DataError(where, "no labels", "one label per line", REWRITE)
    return np.array(lines[header:]), in_lines(range(header + 1, len(lines) + 1))
