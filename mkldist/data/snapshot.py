"""Snapshots: copies of data sets and splits for workers, independent of the user's files.

A snapshot is a folder of ``.npy`` files, named by their content, and of ``snapshot.json``, which
names these files.  It is written last, so that a reader sees one whole snapshot, old or new.  The
content of every file is held to its name before it is used, once in a process.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.checksums import checked_json, parsed
from mkldist.core.durable import (
    make_folder,
    output_error,
    remove_temporaries,
    replacing,
    write_file,
)
from mkldist.core.identity import array_file_id, array_id
from mkldist.data.dataset import (
    Dataset,
    GramView,
    SourceColumns,
    Split,
    TextColumns,
    TextView,
    View,
    sparse_parts,
)
from mkldist.errors import StoreError, UnreadableError

HEADER = "snapshot.json"
VERSION = 5
PARTS = ("train", "test", "unlabelled")
SPARSE = ("sparse-data", "sparse-indices", "sparse-indptr", "sparse-shape")
TEXTS = ("texts-content", "texts-ends")
MAPPED = ("x", "grams", "given-")  # beginnings of keys of arrays that workers may map
_DAMAGE = (ValueError, KeyError, TypeError, IndexError, AttributeError, EOFError)
_REFUSALS = (OSError, MemoryError)
_REMEDY = "Run the sweep again, or 'mkldist verify RESULTS --repair'"


def save_snapshot(path: Path, dataset: Dataset, splits: Sequence[Split]) -> None:
    """Write a data set and its splits into the folder `path`, durable and atomic.

    Files that are there and sound are not written again, and those of a neighbouring snapshot are
    linked.  The partitions that came with the data are not kept, only the splits made of them.
    """
    parts = {part: [getattr(split, part) for split in splits] for part in PARTS}
    arrays = {
        "x": dataset.x,
        "y": dataset.y,
        "grams": dataset.grams,
        "row_groups": dataset.row_groups,
        "weights": dataset.weights,
        "ids": dataset.ids,
        **{part: _joined(rows) for part, rows in parts.items()},
        **_given_arrays(dataset),
        **_sparse_arrays(dataset),
        **_text_arrays(dataset),
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
        "made_of": {name: one.made_of for name, one in dataset.given.items() if one.made_of},
        "origin": dataset.origin,
        "impute": dataset.impute,
        "columns": None if dataset.columns is None else dataset.columns.as_dict(),
        "texts": _texts_said(dataset.texts),
        "view_columns": {name: one.as_dict() for name, one in dataset.view_columns.items()},
        "files": files,
        **{f"{part}_sizes": [len(one) for one in rows] for part, rows in parts.items()},
    }
    text = checked_json(header)
    try:
        make_folder(path)
        remove_temporaries(path)
        for key, file in files.items():
            if not _is_sound(path / file):
                _link_or_write(path / file, arrays[key])
        if not (path / HEADER).exists() or (path / HEADER).read_bytes() != text:
            write_file(path / HEADER, [text])
        for stale in set(path.glob("*.npy")) - {path / file for file in files.values()}:
            stale.unlink(missing_ok=True)
    except OSError as error:
        raise output_error(f"snapshot {path}", error) from error


def load_snapshot(path: Path, mmap: bool = False) -> tuple[Dataset, tuple[Split, ...]]:
    """Read a snapshot back, after a check of all of its files."""
    header = snapshot_header(path)
    try:
        arrays = {
            key: _read_array(path / file, mmap=mmap and key.startswith(MAPPED))
            for key, file in header["files"].items()
        }
        parts = [_parted(arrays[part], header[f"{part}_sizes"]) for part in PARTS]
        splits = tuple(Split(*rows) for rows in zip(*parts, strict=True))
        dataset = _dataset_of(header, arrays)
    except (*_DAMAGE, *_REFUSALS) as error:
        raise _unusable(path, error) from error
    return dataset, splits


def snapshot_header(path: Path) -> dict[str, Any]:
    """Return the document of a snapshot: its data set's name, its files and more."""
    try:
        header = parsed((path / HEADER).read_bytes())
        version = header["version"]
        if version != VERSION:
            raise StoreError(
                f"snapshot {path}", f"version {version}", f"version {VERSION}", _REMEDY
            )
    except (*_DAMAGE, *_REFUSALS) as error:
        raise _unusable(path, error) from error
    return header


def damaged_files(path: Path) -> list[Path]:
    """Return the files of a snapshot that are missing or damaged; its document if that is."""
    try:
        files = snapshot_header(path)["files"].values()
    except (StoreError, KeyError, AttributeError):
        return [path / HEADER]
    return [path / file for file in files if not _is_sound(path / file)]


def _unusable(path: Path, error: Exception) -> StoreError:
    """Return the error for a snapshot that is damaged or missing, or that could not be read."""
    where = f"snapshot {path}"
    if isinstance(error, _REFUSALS) and not isinstance(error, FileNotFoundError):
        said = getattr(error, "strerror", None) or str(error) or "no memory for it"
        found, remedy = f"a read that failed ({said})", "Free some memory or repair the disk"
        return UnreadableError(where, found, "a snapshot that can be read", remedy)
    return StoreError(
        where,
        f"a snapshot that is missing, cut short or damaged ({error})",
        "a snapshot that the sweep wrote",
        _REMEDY,
    )


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
            name: GramView(
                arrays[f"given-{i}"],
                arrays[f"present-{i}"],
                missing,
                header["made_of"].get(name, ""),
            )
            for i, (name, missing) in enumerate(header["given"].items())
        },
        origin=header["origin"],
        impute=header["impute"],
        row_groups=arrays.get("row_groups"),
        weights=arrays.get("weights"),
        columns=header["columns"] and SourceColumns.from_dict(header["columns"]),
        texts=_texts_of(header["texts"], arrays),
        view_columns={
            name: SourceColumns.from_dict(fields) for name, fields in header["view_columns"].items()
        },
        ids=arrays.get("ids"),
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


def _text_arrays(dataset: Dataset) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of texts, by the beginnings of their files."""
    return {} if dataset.texts is None else dict(zip(TEXTS, dataset.texts.arrays, strict=True))


def _texts_said(texts: TextColumns | None) -> dict[str, Any] | None:
    """Return names and views of columns of texts, as a header has them."""
    if texts is None:
        return None
    views = {name: [list(view.columns), view.missing] for name, view in texts.views.items()}
    return {"names": list(texts.names), "views": views}


def _texts_of(said: Mapping[str, Any] | None, arrays: dict[str, Any]) -> TextColumns | None:
    """Return the texts of a header and its arrays; None if there are none."""
    if said is None:
        return None
    views = {
        n: TextView(tuple(columns), missing) for n, (columns, missing) in said["views"].items()
    }
    content, ends = (arrays[part] for part in TEXTS)
    return TextColumns.from_arrays(said["names"], (content, ends), views)


def _joined(parts: Sequence[npt.NDArray[np.intp]]) -> npt.NDArray[np.int64]:
    return np.concatenate([np.zeros(0, np.int64), *(part.astype(np.int64) for part in parts)])


def _parted(joined: npt.NDArray[Any], sizes: Sequence[int]) -> list[npt.NDArray[np.intp]]:
    if sum(sizes) != len(joined):
        raise ValueError(f"{len(joined)} indices for splits of {sum(sizes)}")
    return np.split(joined.astype(np.intp), np.cumsum(sizes)[:-1]) if sizes else []


def _link_or_write(path: Path, array: npt.NDArray[Any] | None) -> None:
    """Write an array, or link the file of a neighbouring snapshot that holds the same.

    Snapshots of one data set with other splits then share what is large.
    """
    for other in path.parent.parent.glob(f"*/{path.name}"):
        if not _is_sound(other):
            continue
        try:
            with replacing(path) as temporary:
                os.link(other, temporary)
        except OSError:
            break  # a file system without links
        return
    _write_array(path, array)


def _write_array(path: Path, array: npt.NDArray[Any] | None) -> None:
    # np.save appends .npy to the name of a file, but not to that of an open one.
    with replacing(path) as temporary, temporary.open("xb") as file:
        np.save(file, np.asarray(array), allow_pickle=False)


def _read_array(path: Path, *, mmap: bool) -> Any:
    if not _fits_its_name(path):
        raise ValueError(f"{path.name} does not match its checksum")
    return np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)


def _is_sound(path: Path) -> bool:
    """Return True if an array's file can be read and has the content that its name says."""
    try:
        return _fits_its_name(path)
    except OSError:
        return False


def _fits_its_name(path: Path) -> bool:
    """Return True if the content of an array's file is the one that its name says."""
    stat = path.stat()
    try:
        found = _file_id(path, stat.st_ino, stat.st_size, stat.st_mtime_ns)
    except ValueError:
        return False
    return f"-{found}.npy" == path.name[path.name.rindex("-") :]


@lru_cache(maxsize=1024)
def _file_id(path: Path, *_: int) -> str:
    """Return the id of the array in a file, computed once for each inode, size and time."""
    return array_file_id(path)
