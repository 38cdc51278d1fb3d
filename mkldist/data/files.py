"""The choice of a data file's reader, by the file's extension."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from mkldist.data.columns import ColumnChoice
from mkldist.data.csv_files import read_csv
from mkldist.data.given import SUFFIX, read_given
from mkldist.data.npz_files import read_npz
from mkldist.data.opening import exists
from mkldist.data.parquet_files import read_parquet
from mkldist.data.raw import RawData
from mkldist.data.sparse_features import dense_features
from mkldist.data.svmlight_files import read_svmlight
from mkldist.data.zarr_files import opened_group, read_zarr
from mkldist.data.zarr_stores import check_zarr, is_zarr
from mkldist.errors import DataError, ending_words

TABLES: dict[str, Callable[[Path, ColumnChoice, str], RawData]] = {
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".tsv": read_csv,
    ".tsv.gz": read_csv,
    ".parquet": read_parquet,
}
ARRAYS: dict[str, Callable[..., RawData]] = {
    ".svm": read_svmlight,
    ".svm.gz": read_svmlight,
    ".svmlight": read_svmlight,
    ".libsvm": read_svmlight,
}
ARCHIVE = ".npz"
ZARR = ".zarr"
READERS = (*TABLES, ARCHIVE, *ARRAYS, ZARR)


def read_file(path: Path, choice: ColumnChoice, where: str) -> RawData:
    """Read a data file by the reader of its extension.

    Raises
    ------
    DataError
        If the extension is unknown, the reader refuses the file, or it is no table and `choice`
        names columns.
    """
    if path.name.endswith(SUFFIX):
        return read_given(path, choice, where)
    extension = ZARR if is_zarr(path) else extension_of(path.name, READERS)
    if not extension:
        raise DataError(
            where,
            "a directory" if exists(path) and path.is_dir() else ending_words(path.suffix, "file"),
            f"a file ending in one of {', '.join(READERS)}",
            "Name Gram matrices by 'grams', not by 'file'"
            if path.suffix == ".npy"
            else "Rename or convert the file",
        )
    if extension == ZARR:
        check_zarr(path, where)
        raw = read_zarr(path, choice, where)
    elif extension in TABLES:
        raw = TABLES[extension](path, choice, where)
    elif extension == ARCHIVE:
        choice.check_label_alone(where, arrays=True)
        raw = read_npz(path, choice, where)
    else:
        choice.check_label_alone(where)
        raw = ARRAYS[extension](path, choice.label, where, sparse=choice.sparse)
    if choice.sparse and raw.sparse is None:
        raise dense_features(where)
    return replace(raw, origin=f"file {path.name}")


def extension_of(name: str, known: Iterable[str]) -> str:
    """Return the longest of the `known` extensions that a file name ends in, or ``""``.

    Examples
    --------
    >>> extension_of("sonar.csv.gz", [".csv", ".csv.gz"])
    '.csv.gz'
    """
    return max((e for e in known if name.lower().endswith(e)), key=len, default="")


def is_table(path: Path, where: str) -> bool:
    """Return True for a file of named columns, False for one of arrays.

    Raises
    ------
    DataError
        If it is a folder of zarr that is damaged, or no group of arrays.
    """
    if is_zarr(path):
        with opened_group(path, where) as group:
            return group.is_table
    return bool(extension_of(path.name, TABLES))
