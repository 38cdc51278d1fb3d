"""Precomputed Gram matrices with labels, from ``.npz``, ``.npy`` or zarr."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from mkldist.core.arrays import Array
from mkldist.core.wording import FROM_ONE, RowLabels, in_lines
from mkldist.data.archives import opened_npz
from mkldist.data.columns import LABEL_NAMES
from mkldist.data.dataset import Split
from mkldist.data.npz_files import IDS, SET_LABEL, column, weight_array
from mkldist.data.number_texts import finite_number
from mkldist.data.opening import REWRITE, check_file, opened
from mkldist.data.partitions import INDEX_ARRAYS, partitions_of
from mkldist.data.raw import RawData
from mkldist.data.zarr_files import opened_group
from mkldist.data.zarr_stores import is_zarr, opened_zarr, whole_array
from mkldist.errors import DataError, ending_words, nearest

ON_DISK = "Save the matrices as a .npy file, which stays on disk"


def read_grams(
    path: Path, labels_path: Path | None, label: str | None, where: str, weights: str | None = None
) -> RawData:
    """Read M Gram matrices over n points, and check them.

    In matrices of double precision, negative eigenvalues within the tolerance of the check are set
    to zero; only then is a memory-mapped array copied.

    Parameters
    ----------
    path : Path
        ``.npz`` with ``grams (M, n, n)``, ``y (n,)`` and, if wanted, the arrays of
        :func:`mkldist.data.partitions.partitions_of`; ``.npy`` of the matrices, which stay on disk
        as a memory map; a zarr array of them; or a zarr group with ``grams`` and ``y``.
    labels_path : Path or None
        File of labels if `path` has none: ``.npy``, ``.npz`` with ``y``, or text with one label per
        line, perhaps after a header.
    label : str or None
        Name of the array of labels; None means ``y``.
    where : str
        The place to name in a message.
    weights : str, optional
        Name of the array of row weights, beside the matrices.

    Raises
    ------
    DataError
        If a file is absent, damaged, or has no labels or two sources of them.
    GramError
        If a matrix is not square, finite, symmetric and positive semi-definite, or the number of
        labels is not n.
    """
    from mkldist.data.gram_checks import usable_grams

    grams, y, partitions = _read_matrices(path, label or "y", where)
    if y is not None and labels_path is not None:
        raise DataError(
            where,
            f"labels in {path.name} and in {labels_path.name}",
            "one source of labels",
            "Remove labels = …",
        )
    row_labels = FROM_ONE
    if labels_path is not None:
        place = f"{where}: labels {labels_path.name}"
        n_points = grams.shape[-1] if grams.ndim else 0
        y, row_labels = _read_labels(labels_path, label or "y", n_points, place)
    if y is None:
        raise DataError(
            where,
            "Gram matrices without labels",
            f"an array {label or 'y'!r} beside 'grams', or a file of labels",
            "Set labels = a file with one label per point",
        )
    y = column(y)
    grams = usable_grams(grams, y, where)
    return RawData(
        y,
        None,
        partitions=partitions,
        grams=grams,
        weights=None if weights is None else _weights(path, weights, len(y), where),
        origin=f"grams {path.name}",
        row_labels=row_labels,
    )


def _weights(path: Path, name: str, n_rows: int, where: str) -> Array | None:
    """Return the row weights that stand beside the matrices."""
    if is_zarr(path):
        with opened_group(path, where) as group:
            return weight_array(group, name, n_rows)
    if path.suffix.lower() == ".npz":
        with opened_npz(path, where) as archive:
            return weight_array(archive, name, n_rows)
    found = f"weights = {name!r} for {ending_words(path.suffix, 'file')}"
    raise DataError(where, found, "an array beside 'grams' of a .npz file or a zarr group")


def read_view(path: Path, id: str | None, where: str) -> tuple[Array, Array | None]:
    """Read the Gram matrices of a view, and check them.

    Parameters
    ----------
    path : Path
        As for :func:`read_grams`, without labels.
    id : str or None
        Name of the array that names the points; None for ``ids``, which may be absent.
    where : str
        The place to name in a message.

    Returns
    -------
    (M, n, n) float array, and (n,) array of str or None
        The matrices, and the names of their points.

    Raises
    ------
    DataError, GramError
        As :func:`read_grams`.
    """
    from mkldist.data.gram_checks import usable_grams

    grams, ids, _ = _read_matrices(path, id or IDS, where)
    if id is not None and ids is None:
        raise DataError(
            where,
            f"no array {id!r}",
            "an array that names the points, beside 'grams'",
            "Remove id if the matrices have the rows of the data set in their order",
        )
    grams = usable_grams(grams[None] if grams.ndim == 2 else grams, ids, where)
    return grams, None if ids is None else column(ids).astype(str)


def _read_matrices(
    path: Path, label: str, where: str
) -> tuple[Array, Array | None, tuple[Split, ...]]:
    if is_zarr(path):
        grams, y = _read_zarr(path, label, where)
        return grams, y, ()
    check_file(path, where)
    extension = path.suffix.lower()
    if extension == ".npy":
        return read_npy(path, where, mapped=True), None, ()
    if extension != ".npz":
        raise DataError(
            where,
            ending_words(path.suffix, "file"),
            ".npz, .npy or a zarr folder",
            "Convert it, for example with np.savez(file, grams=…, y=…)",
        )
    with opened_npz(path, where) as archive:
        grams = archive.required("grams", "Gram matrices (M, n, n)")
        y = archive.get(label)
        arrays = {name: archive[name] for name in INDEX_ARRAYS if name in archive}
    return grams, y, partitions_of(arrays, grams.shape[-1] if grams.ndim else 0, where, FROM_ONE)


def read_npy(path: Path, where: str, *, mapped: bool = False) -> Array:
    """Read the array of a ``.npy`` file, or map it into memory."""
    try:
        array = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise DataError(
            where,
            f"a .npy file that is cut short, damaged or holds Python objects ({error})",
            "one array (np.save)",
            REWRITE,
        ) from error
    if not isinstance(array, np.ndarray):
        array.close()
        raise DataError(where, "an archive of arrays", "one array (np.save)", "Name it .npz")
    return array


def _read_zarr(path: Path, label: str, where: str) -> tuple[Array, Array | None]:
    with opened_zarr(path, where) as node:
        if not isinstance(node, Mapping):
            return whole_array(node, where, ON_DISK), None
        if "grams" not in node:
            raise DataError(
                where,
                f"a zarr group with {', '.join(sorted(node)) or 'none'}",
                "an array 'grams' (M, n, n)",
                nearest("grams", node) or "Name the array of the matrices 'grams'",
            )
        y = None
        if label in node:
            y = whole_array(node[label], f"{where}, array {label!r}", ON_DISK)
        return whole_array(node["grams"], f"{where}, array 'grams'", ON_DISK), y


def _read_labels(path: Path, label: str, n_points: int, where: str) -> tuple[Array, RowLabels]:
    """Return the labels of a file and where they stand in it.

    The first line of a text is a header if the file has one line more than there are points, and
    the line is called as label columns are, or is a text that is no label below: ``y`` may be one.
    """
    check_file(path, where)
    extension = path.suffix.lower()
    if extension == ".npy":
        return read_npy(path, where), FROM_ONE
    if extension == ".npz":
        with opened_npz(path, where) as archive:
            hint = SET_LABEL.format(archive.writer)
            return archive.required(label, "labels", hint), FROM_ONE
    with opened(path, where) as stream:
        lines = [line.strip() for line in stream.read().decode("utf-8-sig").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    first = lines[0] if lines else ""
    named = first.casefold() in LABEL_NAMES
    apart = first not in lines[1:] and finite_number(first) is None
    header = int((len(lines) == n_points + 1 and (named or apart)) or (lines == [first] and named))
    labels = lines[header:]
    if not labels:
        raise DataError(where, "no labels", "one label per line", REWRITE)
    return np.array(labels), in_lines(range(header + 1, len(lines) + 1))
