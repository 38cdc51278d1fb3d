"""Snapshots: copies of data sets and splits for workers, independent of the user's files.

A snapshot is a folder of ``.npy`` files, named by their content, and of ``snapshot.json``, which
names these files.  It is written last, so that a reader sees one whole snapshot, old or new.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.data.dataset import Dataset, GivenGrams, Split, View, sparse_parts
from mkldist.data.source_columns import SourceColumns
from mkldist.durable import make_folder, output_error, remove_temporaries, replacing, write_file
from mkldist.errors import StoreError
from mkldist.identity import array_id

HEADER = "snapshot.json"
VERSION = 4
PARTS = ("train", "test", "unlabelled")
SPARSE = ("sparse-data", "sparse-indices", "sparse-indptr", "sparse-shape")
MAPPED = ("x", "grams", "given-")  # beginnings of keys of arrays that workers may map


def save_snapshot(path: Path, dataset: Dataset, splits: Sequence[Split]) -> None:
    """Write a data set and its splits into the folder `path`, durable and atomic.

    Files that exist are not written again.  The partitions that came with the data are not kept,
    only the splits made of them.

    Raises
    ------
    OutputError
        If the folder cannot be written.
    """
    parts = {part: [getattr(split, part) for split in splits] for part in PARTS}
    arrays = {
        "x": dataset.x,
        "y": dataset.y,
        "grams": dataset.grams,
        "row_groups": dataset.row_groups,
        **{part: _joined(rows) for part, rows in parts.items()},
        **_given_arrays(dataset),
        **_sparse_arrays(dataset),
    }
    files = {key: f"{key}-{array_id(a)}.npy" for key, a in arrays.items() if a is not None}
    header = {
        "version": VERSION,
        "name": dataset.name,
        "classes": None if dataset.classes is None else list(dataset.classes),
        "feature_names": list(dataset.feature_names),
        "groups": {name: list(members) for name, members in dataset.groups.items()},
        "views": {name: [list(v.columns), v.missing] for name, v in dataset.views.items()},
        "given": {name: one.missing for name, one in dataset.given.items()},
        "origin": dataset.origin,
        "impute": dataset.impute,
        "columns": None if dataset.columns is None else dataset.columns.as_dict(),
        "files": files,
        **{f"{part}_sizes": [len(one) for one in rows] for part, rows in parts.items()},
    }
    text = json.dumps(header, indent=1).encode()
    try:
        make_folder(path)
        remove_temporaries(path)
        for key, file in files.items():
            if not (path / file).exists():
                _write_array(path / file, arrays[key])
        if not (path / HEADER).exists() or (path / HEADER).read_bytes() != text:
            write_file(path / HEADER, [text])
        for stale in set(path.glob("*.npy")) - {path / file for file in files.values()}:
            stale.unlink(missing_ok=True)
    except OSError as error:
        raise output_error(f"snapshot {path}", error) from error


def load_snapshot(path: Path, mmap: bool = False) -> tuple[Dataset, tuple[Split, ...]]:
    """Read a snapshot back.

    Parameters
    ----------
    path : Path
        The folder.
    mmap : bool
        Map features and Gram matrices into memory instead of reading and checking them.

    Raises
    ------
    StoreError
        If it is missing, of another version, cut short or damaged.
    """
    where = f"snapshot {path}"
    try:
        header = json.loads((path / HEADER).read_bytes())
        if header["version"] != VERSION:
            raise StoreError(
                where, f"version {header['version']}", f"version {VERSION}", "Run the sweep again"
            )
        arrays = {
            key: _read_array(path / file, mmap=mmap and key.startswith(MAPPED))
            for key, file in header["files"].items()
        }
        parts = [_parted(arrays[part], header[f"{part}_sizes"]) for part in PARTS]
        splits = tuple(Split(*rows) for rows in zip(*parts, strict=True))
        dataset = _dataset_of(header, arrays)
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        EOFError,
    ) as error:
        raise StoreError(
            where,
            f"a snapshot that is missing, cut short or damaged ({error})",
            "a snapshot that the sweep wrote",
            "Run the sweep again",
        ) from error
    return dataset, splits


def _columns(fields: Mapping[str, Any] | None) -> SourceColumns | None:
    """Return the columns of a header; None for those of gram matrices and of older snapshots."""
    return None if fields is None else SourceColumns.from_dict(fields)


def _dataset_of(header: dict[str, Any], arrays: dict[str, Any]) -> Dataset:
    """Return the data set of a header and its arrays."""
    return Dataset(
        name=header["name"],
        x=arrays.get("x"),
        y=arrays["y"],
        classes=None if header["classes"] is None else tuple(header["classes"]),
        feature_names=tuple(header["feature_names"]),
        groups={name: tuple(members) for name, members in header["groups"].items()},
        grams=arrays.get("grams"),
        views={
            name: View(tuple(columns), missing)
            for name, (columns, missing) in header["views"].items()
        },
        sparse=_sparse_of(arrays),
        given={
            name: GivenGrams(arrays[f"given-{i}"], arrays[f"present-{i}"], missing)
            for i, (name, missing) in enumerate(header["given"].items())
        },
        origin=header["origin"],
        impute=header["impute"],
        row_groups=arrays.get("row_groups"),
        columns=_columns(header.get("columns")),
    )


def _given_arrays(dataset: Dataset) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of the views that are Gram matrices, by the beginnings of their files."""
    found: dict[str, npt.NDArray[Any]] = {}
    for i, one in enumerate(dataset.given.values()):
        found |= {f"given-{i}": one.grams, f"present-{i}": one.present}
    return found


def _sparse_arrays(dataset: Dataset) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of sparse features, by the beginnings of their files."""
    if dataset.sparse is None:
        return {}
    return dict(zip(SPARSE, sparse_parts(dataset.sparse), strict=True))


def _sparse_of(arrays: dict[str, Any]) -> Any:
    """Return sparse features of their arrays; None if there are none."""
    if not set(SPARSE) <= arrays.keys():
        return None
    from scipy.sparse import csr_array

    data, indices, indptr, shape = (arrays[part] for part in SPARSE)
    return csr_array((data, indices, indptr), shape=tuple(shape.tolist()))


def _joined(parts: Sequence[npt.NDArray[np.intp]]) -> npt.NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *(part.astype(np.int64) for part in parts)])


def _parted(joined: npt.NDArray[Any], sizes: Sequence[int]) -> list[npt.NDArray[np.intp]]:
    if sum(sizes) != len(joined):
        raise ValueError(f"{len(joined)} indices for splits of {sum(sizes)}")
    return np.split(joined.astype(np.intp), np.cumsum(sizes)[:-1]) if sizes else []


def _write_array(path: Path, array: npt.NDArray[Any] | None) -> None:
    # np.save appends .npy to the name of a file, but not to that of an open one.
    with replacing(path) as temporary, temporary.open("xb") as file:
        np.save(file, np.asarray(array), allow_pickle=False)


def _read_array(path: Path, *, mmap: bool) -> Any:
    array = np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
    if not mmap and f"-{array_id(array)}.npy" != path.name[path.name.rindex("-") :]:
        raise ValueError(f"{path.name} does not match its checksum")
    return array
