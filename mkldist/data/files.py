"""The formats of data files: one line for each, found by every command."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mkldist.core.arrays import Floats
from mkldist.data.cells import OF_CELLS
from mkldist.data.checks import dense_features
from mkldist.data.dataset import ImportSummary, RawData, SourceColumns
from mkldist.data.inputs import SUFFIX, read_inputs
from mkldist.data.npz_files import NamedArrays, arrays_data
from mkldist.data.opening import check_file, exists, is_zarr
from mkldist.data.tables import PLAIN, QUERIES, ColumnChoice, Table, chosen_part, table_data
from mkldist.errors import DataError, ending_words
from mkldist.spec.datasets import TableFormat
from mkldist.spec.kinds import Indefinite

if TYPE_CHECKING:
    from mkldist.data.svmlight_files import SparseRows

Source: TypeAlias = "Table | NamedArrays | SparseRows"
"""What a format gives of an open file: named columns or arrays, or rows of numbered features."""

TEXT_TABLES = (
    ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".tab", ".tab.gz", ".txt", ".txt.gz", ".dat", ".dat.gz",
    ".data", ".data.gz",
)  # fmt: skip
WORKBOOKS = (".xlsx", ".xlsm")
FORMATS: dict[tuple[str, ...], tuple[str, str]] = {
    TEXT_TABLES: ("mkldist.data.csv_files", "open_csv"),
    (".parquet",): ("mkldist.data.parquet_files", "open_parquet"),
    WORKBOOKS: ("mkldist.data.excel_files", "open_excel"),
    (".arff", ".arff.gz"): ("mkldist.data.arff_files", "open_arff"),
    (".h5ad",): ("mkldist.data.h5ad_files", "open_h5ad"),
    (".npz",): ("mkldist.data.npz_files", "open_npz"),
    (".mat",): ("mkldist.data.mat_files", "open_mat"),
    (".svm", ".svm.gz", ".svmlight", ".libsvm"): ("mkldist.data.svmlight_files", "open_svmlight"),
    (".zarr",): ("mkldist.data.zarr_files", "open_group"),
}
"""Module and function that open a file, by the endings of names; the first one imports it.

Folders of zarr may have any name.
"""
EXTENSIONS = tuple(extension for extensions in FORMATS for extension in extensions)


def extension_of(name: str) -> str:
    """Return the longest of the known extensions that a file name ends in, or ``""``."""
    return max((e for e in EXTENSIONS if name.lower().endswith(e)), key=len, default="")


def keys_of(extension: str) -> frozenset[str]:
    """Return the keys of a format, without those of cells, that files of this ending have.

    >>> sorted(keys_of(".xlsx"))
    ['header', 'names', 'part', 'transpose']
    """
    if extension in TEXT_TABLES:
        return frozenset(TableFormat.model_fields) - {*OF_CELLS}
    headers = {"header", "names"} if extension in WORKBOOKS else set()
    return frozenset({"part", "transpose"} | headers)


@contextmanager
def open_source(
    path: Path,
    where: str,
    format: TableFormat = PLAIN,
    may_lack: str = "",
    known: Collection[str | None] = (),
) -> Iterator[Source]:
    """Open a data file by the format of its extension; mistakes in it are named by `where`.

    The cells of a table are as the file has them; `format` says how a text table is written, whose
    rows may have no field for the column `may_lack`, which has a name there, and which part of a
    file is read, and whether its rows are features.  A first line with a name of a column that is
    `known` is a header.
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
    keys = keys_of(extension) | {*OF_CELLS}
    of_texts = next((key for key in format.changes if key not in keys), None)
    if of_texts is not None:
        expected = f"a text table, of {', '.join(TEXT_TABLES)}"
        raise DataError(where, f"{of_texts} for a {extension} file", expected, f"Remove {of_texts}")
    [(module, opener)] = [one for extensions, one in FORMATS.items() if extension in extensions]
    opened: Callable[..., AbstractContextManager[Source]] = getattr(import_module(module), opener)
    as_written = (format, may_lack, known) if extension in TEXT_TABLES + WORKBOOKS else ()
    with opened(path, where, *as_written) as source:
        if isinstance(source, Table):
            yield chosen_part(source, format)
            return
        if isinstance(source, NamedArrays):
            source.transpose = format.transpose
        elif format.transpose:
            found = "transpose for rows of numbered features"
            raise DataError(where, found, "a table or arrays", "Remove transpose")
        yield source


def _with_gram(
    raw: RawData, source: SparseRows, gram: Floats, indefinite: Indefinite | None
) -> RawData:
    """Return raw data with a Gram matrix in place of features."""
    from mkldist.data.grams import OF_TEXTS, Repairs, usable_grams  # with scipy.linalg

    repairs = Repairs.of(indefinite)
    grams = usable_grams(gram[None], source.labels, source.gram_where, repairs, OF_TEXTS)
    notes = (*source.gram_notes, *(() if repairs is None else repairs.notes(1)))
    summary = ImportSummary(notes=notes)
    return replace(raw, x=None, sparse=None, feature_names=(), grams=grams, summary=summary)


def read_file(path: Path, choice: ColumnChoice, where: str) -> RawData:
    """Read a data file by the columns that `choice` names, which only tables have."""
    if path.name.endswith(SUFFIX):
        return read_inputs(path, choice, where)
    named = (choice.label, choice.likely_id, *choice.other_roles)
    known = [name for name in named if isinstance(name, str)]
    with open_source(path, where, choice.format, known=known) as source:
        if choice.format.part and not getattr(source, "part", ""):
            found = f"part = {choice.format.part!r}"
            expected = "a file of several parts, such as .xlsx or .h5ad"
            raise DataError(where, found, expected, "Remove part")
        if isinstance(source, Table):
            raw = table_data(source, choice, where)
        elif isinstance(source, NamedArrays):
            choice.check_label_alone(where, arrays=True)
            raw = arrays_data(source, choice, where)
        else:
            if choice.of_splits == (QUERIES,) and source.queries is not None:
                choice = replace(choice, of_splits=(), groups=None)
            choice.check_label_alone(where)
            if choice.label is not None:
                expected = "no label option: the label stands first in every line"
                raise DataError(where, f"label = {choice.label!r}", expected, "Remove label")
            raw = source.data(sparse=choice.sparse)
            if source.gram is not None:
                raw = _with_gram(raw, source, source.gram, choice.indefinite)
        if isinstance(source, NamedArrays) and source.notes:
            raw = replace(raw, summary=replace(raw.summary, notes=source.notes))
    if choice.sparse and raw.sparse is None:
        raise dense_features(where)
    columns = raw.columns or SourceColumns(raw.feature_names, format=choice.format.changes)
    return replace(raw, columns=columns, origin=f"file {path.name}", own_memory=True)
