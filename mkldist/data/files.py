"""The formats of data files: one line for each, found by every command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from mkldist.data import csv_files, npz_files, parquet_files, svmlight_files, zarr_files
from mkldist.data.cells import OF_CELLS
from mkldist.data.checks import dense_features
from mkldist.data.dataset import RawData
from mkldist.data.inputs import SUFFIX, read_inputs
from mkldist.data.npz_files import NamedArrays, arrays_data
from mkldist.data.opening import check_file, exists
from mkldist.data.svmlight_files import SparseRows
from mkldist.data.tables import PLAIN, ColumnChoice, Table, table_data
from mkldist.data.zarr_files import is_zarr
from mkldist.errors import DataError, ending_words
from mkldist.spec.datasets import TableFormat

Source: TypeAlias = Table | NamedArrays | SparseRows
"""What a format gives of an open file: named columns or arrays, or rows of numbered features."""

FORMATS: dict[tuple[str, ...], Callable[[Path, str], AbstractContextManager[Source]]] = {
    csv_files.EXTENSIONS: csv_files.open_csv,
    parquet_files.EXTENSIONS: parquet_files.open_parquet,
    npz_files.EXTENSIONS: npz_files.open_npz,
    svmlight_files.EXTENSIONS: svmlight_files.open_svmlight,
    zarr_files.EXTENSIONS: zarr_files.open_group,
}
"""By the endings of names.  Folders of zarr may have any name."""
EXTENSIONS = tuple(extension for extensions in FORMATS for extension in extensions)


def extension_of(name: str) -> str:
    """Return the longest of the known extensions that a file name ends in, or ``""``.

    >>> extension_of("sonar.csv.gz")
    '.csv.gz'
    """
    return max((e for e in EXTENSIONS if name.lower().endswith(e)), key=len, default="")


@contextmanager
def open_source(
    path: Path, where: str, format: TableFormat = PLAIN, may_lack: str = ""
) -> Iterator[Source]:
    """Open a data file by the format of its extension; mistakes in it are named by `where`.

    The cells of a table are as the file has them; `format` says how a text table is written, whose
    rows may have no field for the column `may_lack`, which has a name there.
    """
    extension = ".zarr" if is_zarr(path) else extension_of(path.name)
    if not extension:
        if not exists(path):
            check_file(path, where)
        is_folder = exists(path) and path.is_dir()
        raise DataError(
            where,
            "a directory" if is_folder else ending_words(path.suffix, "file"),
            f"a file ending in one of {', '.join(EXTENSIONS)}",
            "Name Gram matrices by 'grams', not by 'file'"
            if path.suffix == ".npy"
            else "Rename or convert the file",
        )
    if extension in csv_files.EXTENSIONS:
        with csv_files.open_csv(path, where, format, may_lack) as table:
            yield table
        return
    of_texts = next((key for key in format.changes if key not in OF_CELLS), None)
    if of_texts is not None:
        expected = f"a text table, of {', '.join(csv_files.EXTENSIONS)}"
        raise DataError(where, f"{of_texts} for a {extension} file", expected, f"Remove {of_texts}")
    [open_file] = [one for extensions, one in FORMATS.items() if extension in extensions]
    with open_file(path, where) as source:
        yield source


def read_file(path: Path, choice: ColumnChoice, where: str) -> RawData:
    """Read a data file by the columns that `choice` names, which only tables have."""
    if path.name.endswith(SUFFIX):
        return read_inputs(path, choice, where)
    with open_source(path, where, choice.format) as source:
        if isinstance(source, Table):
            raw = table_data(source, choice, where)
        elif isinstance(source, NamedArrays):
            choice.check_label_alone(where, arrays=True)
            raw = arrays_data(source, choice, where)
        else:
            choice.check_label_alone(where)
            if choice.label is not None:
                expected = "no label option: the label stands first in every line"
                raise DataError(where, f"label = {choice.label!r}", expected, "Remove label")
            raw = source.data(sparse=choice.sparse)
    if choice.sparse and raw.sparse is None:
        raise dense_features(where)
    return replace(raw, origin=f"file {path.name}", own_memory=True)


def is_table(path: Path, where: str, format: TableFormat = PLAIN) -> bool:
    """Return True for a file of named columns, False for one of arrays."""
    with open_source(path, where, format) as source:
        return isinstance(source, Table)
