"""Find a data set by its name or source, and list the data sets that have names."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mkldist.data.assemble import NO_COLUMNS, assemble
from mkldist.data.bundled import DESCRIPTIONS, load_bundled
from mkldist.data.columns import ColumnChoice
from mkldist.data.dataset import Dataset
from mkldist.data.files import READERS, extension_of, read_file
from mkldist.data.given import GivenData
from mkldist.data.grams import read_grams
from mkldist.data.opening import exists
from mkldist.data.raw import RawData
from mkldist.data.synthetic import GENERATORS, generate
from mkldist.data.views import with_views
from mkldist.data.zarr_stores import is_zarr
from mkldist.errors import DataError, SpecError, nearest
from mkldist.spec.datasets import DatasetSpec
from mkldist.spec.splits import SplitsSpec


@dataclass(frozen=True)
class DatasetEntry:
    """One line of the list of data sets."""

    name: str
    kind: Literal["file", "bundled", "synthetic"]
    description: str


def load_dataset(
    spec: DatasetSpec,
    data_dirs: Sequence[Path],
    base: Path,
    seed: int,
    splits: SplitsSpec = NO_COLUMNS,
    given: GivenData | None = None,
) -> Dataset:
    """Load the data set that a sweep names.

    If the entry gives `file`, `openml` or `grams`, the data set is read from there.  Otherwise its
    name (`source` if given, else `name`) is looked up in this order: files of the data directories,
    data sets of scikit-learn, synthetic data sets.  With `options`, only synthetic data sets count.

    Parameters
    ----------
    spec : DatasetSpec
        The entry of the sweep file.
    data_dirs : sequence of Path
        Folders to search for names, and for files that are not under `base`.  An earlier folder
        precedes a later one.
    base : Path
        Folder that relative paths start from.
    seed : int
        Seed of the sweep, for synthetic data sets and random parts of data sets.
    splits : SplitsSpec
        How the data set is to be divided, for the columns that this takes.
    given : GivenData, optional
        The data, if they are in memory; `file` then names where they are to be kept.

    Returns
    -------
    Dataset
        Classes or real values; finite features or checked Gram matrices.

    Raises
    ------
    DataError
        If the data set cannot be found, read, or used as the entry asks.
    GramError
        If precomputed matrices are not Gram matrices.
    SpecError
        If a data directory does not exist or is not a folder.
    """
    where = f"data set {spec.series!r}"
    _check_folders(data_dirs)
    choice = ColumnChoice.of(spec, splits)
    if given is not None:
        raw, place = given.raw_data(choice, where), where
    else:
        source = _of_source(spec, choice, data_dirs, base, where)
        raw, place = source or _of_name(spec, choice, data_dirs, seed, where)
    raw = with_views(spec, raw, lambda file: located(file, data_dirs, base), place)
    return assemble(spec, raw, place, seed, splits)


def list_datasets(data_dirs: Sequence[Path]) -> list[DatasetEntry]:
    """Return every data set that has a name, in the order of the search; open no file.

    Raises
    ------
    SpecError
        If a data directory does not exist or is not a folder.
    """
    _check_folders(data_dirs)
    entries = [
        DatasetEntry(path.name[: -len(extension_of(path.name, READERS))], "file", str(path))
        for folder in data_dirs
        for path in _data_files(folder)
    ]
    entries += [DatasetEntry(name, "bundled", text) for name, text in DESCRIPTIONS.items()]
    for name, generator in GENERATORS.items():
        text = (generator.__doc__ or "").splitlines()[0]
        entries.append(DatasetEntry(name, "synthetic", text))
    first: dict[str, DatasetEntry] = {}
    for entry in entries:
        first.setdefault(entry.name, entry)
    return list(first.values())


def _of_source(
    spec: DatasetSpec, choice: ColumnChoice, data_dirs: Sequence[Path], base: Path, where: str
) -> tuple[RawData, str] | None:
    """Return the raw data of the entry's source and its place; None if it gives only a name."""
    if spec.labels is not None and spec.grams is None:
        raise DataError(
            where,
            "labels without grams",
            "labels beside precomputed Gram matrices",
            "Set label = its name for a column or array of labels",
        )
    if spec.file is None and spec.openml is None and spec.grams is None:
        return None
    if spec.options:
        raise DataError(where, "options", "none: they are for synthetic data", "Remove options")
    if spec.openml is not None:
        from mkldist.data.openml import read_openml  # with the modules of the network

        place = f"{where} (OpenML {spec.openml})"
        return read_openml(spec.openml, choice, place), place
    if spec.file is not None:
        path = located(spec.file, data_dirs, base)
        place = f"{where} ({path})"
        return read_file(path, choice, place), place
    path = located(spec.grams or "", data_dirs, base)
    place = f"{where} ({path})"
    choice.check_label_alone(place)
    if isinstance(spec.label, int):
        raise DataError(
            place, f"label = {spec.label}", "the name of the array of labels", 'Set label = "y"'
        )
    labels = None if spec.labels is None else located(spec.labels, data_dirs, base)
    return read_grams(path, labels, spec.label, place), place


def located(file: str, data_dirs: Sequence[Path], base: Path) -> Path:
    """Return the path of a file: under `base`, else the first data directory that has it."""
    given = Path(file)
    with suppress(RuntimeError):  # ~name where no user has this name
        given = given.expanduser()
    candidates = [base / given, *(folder / given for folder in data_dirs)]
    return next((path for path in candidates if exists(path)), candidates[0])


def _of_name(
    spec: DatasetSpec, choice: ColumnChoice, data_dirs: Sequence[Path], seed: int, where: str
) -> tuple[RawData, str]:
    """Return the raw data of a data set that is given by its name, and its place."""
    name = spec.source or spec.name
    path = None if spec.options else file_named(name, data_dirs, where)
    if path is not None:
        place = f"{where} ({path})"
        return read_file(path, choice, place), place
    if name not in GENERATORS and (spec.options or name not in DESCRIPTIONS):
        raise _unknown(name, spec, data_dirs, where)
    if spec.label is not None:
        raise DataError(
            where, f"label = {spec.label!r}", "none: its label is known", "Remove label"
        )
    choice.check_label_alone(where)
    if name in DESCRIPTIONS:
        return load_bundled(name), where
    return generate(name, spec.options, seed, where), where


def file_named(name: str, data_dirs: Sequence[Path], where: str) -> Path | None:
    """Return the file of this name in the first data directory that has one."""
    for folder in data_dirs:
        found = [folder / (name + extension) for extension in READERS]
        found = [path for path in found if path.is_file() or is_zarr(path)]
        if len(found) > 1:
            names = " and ".join(path.name for path in found)
            raise DataError(
                where,
                f"{names} in {folder}",
                "one file of that name",
                f'Choose one: file = "{found[0].name}"',
            )
        if found:
            return found[0]
    return None


def _unknown(name: str, spec: DatasetSpec, data_dirs: Sequence[Path], where: str) -> DataError:
    if spec.options:
        return DataError(
            where,
            f"options, but no synthetic data set {name!r}",
            f"one of {', '.join(GENERATORS)}",
            nearest(name, GENERATORS) or "Remove options, or name a synthetic data set",
        )
    known = [entry.name for entry in list_datasets(data_dirs)]
    folders = ", ".join(str(folder) for folder in data_dirs) or "a folder named by --data-dir"
    return DataError(
        where,
        f"no data set {name!r}",
        f"a data file in {folders}, a data set of scikit-learn or a synthetic one",
        nearest(name, known) or "Run 'mkldist list datasets' to see all",
    )


def _check_folders(data_dirs: Sequence[Path]) -> None:
    for folder in data_dirs:
        if not folder.is_dir():
            found = "a file" if folder.exists() else "nothing there"
            raise SpecError(
                f"--data-dir {folder}", found, "a folder of data sets", "Check its spelling"
            )


def _data_files(folder: Path) -> list[Path]:
    named = [path for path in folder.iterdir() if extension_of(path.name, READERS)]
    return sorted(path for path in named if path.is_file() or is_zarr(path))
