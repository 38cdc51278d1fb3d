"""Snapshots: copies of data sets and splits for workers, independent of the user's files.

A snapshot is a folder of ``.npy`` files, named by their content, and of ``snapshot.json``, which
names these files.  It is written last, so that a reader sees one whole snapshot, old or new.  The
content of every file is held to its name before it is used, once in a process.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from mkldist.core.checksums import array_file_id, array_id, checked_json, parsed
from mkldist.core.durable import (
    make_folder,
    output_error,
    remove_temporaries,
    replacing,
    write_file,
)
from mkldist.data.dataset import Dataset, GramView, Split, TextColumns, View, sparse_parts
from mkldist.errors import StoreError, UnreadableError

HEADER = "snapshot.json"
VERSION = 8
PLAIN = (
    "name", "classes", "feature_names", "groups", "views", "origin", "impute", "columns",
    "view_columns", "gram_names",
)  # fmt: skip
"""Fields of a data set that stand in the header."""
ARRAYS = ("x", "y", "grams", "row_groups", "weights", "ids")
PARTS = ("train", "test", "unlabelled")
SPARSE = ("sparse-data", "sparse-indices", "sparse-indptr", "sparse-shape")
TEXTS = ("texts-content", "texts-ends")
MAPPED = ("x", "grams", "given-", "distances-")  # beginnings of keys of arrays that workers may map
_DAMAGE = (ValueError, KeyError, TypeError, IndexError, AttributeError, EOFError)
_REFUSALS = (OSError, MemoryError)
_REMEDY = "Repeat the sweep's command: it is made anew"


def save_snapshot(path: Path, dataset: Dataset, splits: Sequence[Split]) -> None:
    """Write a data set and its splits into the folder `path`, durable and atomic."""
    parts = {part: [getattr(split, part) for split in splits] for part in PARTS}
    texts, sparse = dataset.texts, dataset.sparse
    arrays = {
        **{name: getattr(dataset, name) for name in ARRAYS},
        **{part: np.concatenate([np.zeros(0, np.int64), *rows]) for part, rows in parts.items()},
        **{f"given-{i}": one.grams for i, one in enumerate(dataset.given.values())},
        **{f"present-{i}": one.present for i, one in enumerate(dataset.given.values())},
        **{f"distances-{i}": one for i, one in enumerate(dataset.distances.values())},
        **({} if sparse is None else dict(zip(SPARSE, sparse_parts(sparse), strict=True))),
        **({} if texts is None else dict(zip(TEXTS, texts.arrays, strict=True))),
    }
    files = {key: f"{key}-{array_id(a)}.npy" for key, a in arrays.items() if a is not None}
    header = {
        "version": VERSION,
        **{name: to_jsonable_python(getattr(dataset, name)) for name in PLAIN},
        "given": {n: [one.missing, one.made_of, one.names] for n, one in dataset.given.items()},
        "distances": list(dataset.distances),
        "texts": None if texts is None else to_jsonable_python([texts.names, texts.views]),
        "files": files,
        "sizes": {part: [len(one) for one in rows] for part, rows in parts.items()},
    }
    text = checked_json(header)
    try:
        make_folder(path)
        remove_temporaries(path)
        for key, file in files.items():
            if not _is_sound(path / file):
                _write(path / file, arrays[key])
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
        parts = [_parted(arrays[part], header["sizes"][part]) for part in PARTS]
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
        reason = getattr(error, "strerror", None) or str(error) or "no memory for it"
        found, remedy = f"a read that failed ({reason})", "Free some memory or repair the disk"
        return UnreadableError(where, found, "a snapshot that can be read", remedy)
    return StoreError(
        where,
        f"a snapshot that is missing, cut short or damaged ({error})",
        "a snapshot that the sweep wrote",
        _REMEDY,
    )


def _dataset_of(header: dict[str, Any], arrays: dict[str, Any]) -> Dataset:
    """Return the data set of a header and its arrays."""
    types = get_type_hints(Dataset)
    given = {
        name: GramView(arrays[f"given-{i}"], arrays[f"present-{i}"], missing, made, tuple(names))
        for i, (name, (missing, made, names)) in enumerate(header["given"].items())
    }
    distances = {name: arrays[f"distances-{i}"] for i, name in enumerate(header["distances"])}
    sparse, texts = None, None
    if SPARSE[0] in arrays:
        from scipy.sparse import csr_array

        *parts, shape = (arrays[part] for part in SPARSE)
        sparse = csr_array(tuple(parts), shape=tuple(shape.tolist()))
    if header["texts"] is not None:
        names, views = header["texts"]
        content, ends = (arrays[part] for part in TEXTS)
        views = TypeAdapter(dict[str, View]).validate_python(views)
        texts = TextColumns.from_arrays(names, (content, ends), views)
    fields: dict[str, Any] = {name: arrays.get(name) for name in ARRAYS}
    for name in PLAIN:
        fields[name] = TypeAdapter(types[name]).validate_python(header[name])
    return Dataset(**fields, given=given, distances=distances, sparse=sparse, texts=texts)


def _parted(joined: npt.NDArray[Any], sizes: Sequence[int]) -> list[npt.NDArray[np.intp]]:
    if sum(sizes) != len(joined):
        raise ValueError(f"{len(joined)} indices for splits of {sum(sizes)}")
    return np.split(joined.astype(np.intp), np.cumsum(sizes)[:-1]) if sizes else []


def _write(path: Path, array: npt.NDArray[Any] | None) -> None:
    """Write an array."""
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
