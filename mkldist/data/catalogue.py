"""Find a data set by its name or source, and list the data sets that have names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mkldist.data.dataset import Dataset, RawData
from mkldist.data.files import EXTENSIONS, extension_of, read_file
from mkldist.data.inputs import InputData
from mkldist.data.opening import exists, is_zarr
from mkldist.data.tables import ColumnChoice
from mkldist.data.validate import NO_COLUMNS, validate
from mkldist.errors import DataError, SpecError, nearest
from mkldist.spec.datasets import DatasetSpec, SplitsSpec

DESCRIPTIONS = {
    "breast_cancer": "569 points, 30 features; benign, malignant (Wisconsin diagnostic, UCI)",
    "wdbc": "another name of breast_cancer",
    "iris": "150 points, 4 features; classes setosa, versicolor, virginica",
    "wine": "178 points, 13 features; classes class_0, class_1, class_2",
    "digits": "1797 points, 64 features; classes 0 to 9",
    "diabetes": "442 points, 10 features; regression: progression of the disease in a year",
}
LOADERS = {"wdbc": "breast_cancer"}
# By default scikit-learn scales these features by statistics of all rows, test rows included.
OPTIONS: dict[str, dict[str, Any]] = {"diabetes": {"scaled": False}}


def load_bundled(name: str) -> RawData:
    """Return one of the :data:`DESCRIPTIONS`; its labels are class names or real values."""
    from sklearn import datasets

    loader = f"load_{LOADERS.get(name, name)}"
    load: Callable[..., Any] = getattr(datasets, loader)
    bunch = load(**OPTIONS.get(name, {}))
    classes = bunch.get("target_names")
    return RawData(
        labels=bunch.target if classes is None else np.array(list(map(str, classes)))[bunch.target],
        x=np.ascontiguousarray(bunch.data, dtype=np.float64),
        feature_names=tuple(map(str, bunch.feature_names)),
        origin=f"scikit-learn {metadata.version('scikit-learn')}, {loader}",
        task="regression" if classes is None else "classification",
    )


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
    given: InputData | None = None,
) -> Dataset:
    """Load the data set that a sweep names.

    If the entry gives `file` or `grams`, the data set is read from there.  Otherwise its
    name (`source` if given, else `name`) is looked up in this order: files of the data directories,
    data sets of scikit-learn, synthetic data sets.  With `options`, only synthetic data sets count.
    """
    where = f"data set {spec.series!r}"
    _check_folders(data_dirs)
    choice = ColumnChoice.of(spec, splits)
    if given is not None:
        raw, place = given.raw_data(choice, where), where
    else:
        source = _of_source(spec, choice, data_dirs, base, where)
        raw, place = source or _of_name(spec, choice, data_dirs, seed, where)
    if spec.views or spec.group_file is not None:
        from mkldist.data.views import with_views  # with the formats of their files

        raw = with_views(spec, raw, lambda file: located(file, data_dirs, base), place)
    return validate(spec, raw, place, seed, splits)


def list_datasets(data_dirs: Sequence[Path]) -> list[DatasetEntry]:
    """Return every data set that has a name, in the order of the search; open no file."""
    _check_folders(data_dirs)
    entries = [
        DatasetEntry(path.name[: -len(extension_of(path.name))], "file", str(path))
        for folder in data_dirs
        for path in _data_files(folder)
    ]
    entries += [DatasetEntry(name, "bundled", text) for name, text in DESCRIPTIONS.items()]
    for name, generator in _generators().items():
        text = (generator.__doc__ or "").splitlines()[0]
        entries.append(DatasetEntry(name, "synthetic", text))
    first: dict[str, DatasetEntry] = {}
    for entry in entries:
        first.setdefault(entry.name, entry)
    return list(first.values())


def _generators() -> Mapping[str, Callable[..., Any]]:
    from mkldist.data.synthetic import GENERATORS  # which most sweeps do not need

    return GENERATORS


def _of_source(
    spec: DatasetSpec, choice: ColumnChoice, data_dirs: Sequence[Path], base: Path, where: str
) -> tuple[RawData, str] | None:
    """Return the raw data of the entry's source and its place; None if it gives only a name."""
    if spec.labels is not None and spec.grams is None:
        found = "labels without grams"
        hint = "Set label = its name for a column or array of labels"
        raise DataError(where, found, "labels beside precomputed Gram matrices", hint)
    if spec.file is None and spec.grams is None:
        return None
    if spec.options:
        raise DataError(where, "options", "none: they are for synthetic data", "Remove options")
    if spec.file is not None:
        path = located(spec.file, data_dirs, base)
        place = f"{where} ({path})"
        return read_file(path, choice, place), place
    from mkldist.data.gram_files import read_grams  # with the formats of their files

    path = located(spec.grams or "", data_dirs, base)
    place = f"{where} ({path})"
    replace(choice, weights=None).check_label_alone(place)
    if isinstance(spec.label, int):
        raise DataError(
            place, f"label = {spec.label}", "the name of the array of labels", 'Set label = "y"'
        )
    labels = None if spec.labels is None else located(spec.labels, data_dirs, base)
    return read_grams(path, labels, spec.label, place, spec.weights, spec.indefinite), place


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
    bundled = name in DESCRIPTIONS and not spec.options
    if not bundled and name not in _generators():
        raise _unknown(name, spec, data_dirs, where)
    if spec.label is not None:
        raise DataError(
            where, f"label = {spec.label!r}", "none: its label is known", "Remove label"
        )
    choice.check_label_alone(where)
    if bundled:
        return load_bundled(name), where
    from mkldist.data.synthetic import generate

    return generate(name, spec.options, seed, where), where


def file_named(name: str, data_dirs: Sequence[Path], where: str) -> Path | None:
    """Return the file of this name in the first data directory that has one."""
    for folder in data_dirs:
        found = [folder / (name + extension) for extension in EXTENSIONS]
        found = [path for path in found if path.is_file() or is_zarr(path)]
        if len(found) > 1:
            names = " and ".join(path.name for path in found)
            hint = f'Choose one: file = "{found[0].name}"'
            raise DataError(where, f"{names} in {folder}", "one file of that name", hint)
        if found:
            return found[0]
    return None


def _unknown(name: str, spec: DatasetSpec, data_dirs: Sequence[Path], where: str) -> DataError:
    if spec.options:
        known = _generators()
        found, expected = f"options, but no synthetic data set {name!r}", ", ".join(known)
        hint = nearest(name, known) or "Remove options, or name a synthetic data set"
        return DataError(where, found, f"one of {expected}", hint)
    folders = ", ".join(map(str, data_dirs)) or "a folder named by --data-dir"
    expected = f"a data file in {folders}, a data set of scikit-learn or a synthetic one"
    names = [entry.name for entry in list_datasets(data_dirs)]
    hint = nearest(name, names) or "Run 'mkldist list datasets' to see all"
    return DataError(where, f"no data set {name!r}", expected, hint)


def _check_folders(data_dirs: Sequence[Path]) -> None:
    for folder in data_dirs:
        if not folder.is_dir():
            found = "a file" if folder.exists() else "nothing there"
            raise SpecError(
                f"--data-dir {folder}", found, "a folder of data sets", "Check its spelling"
            )


def _data_files(folder: Path) -> list[Path]:
    named = [path for path in folder.iterdir() if extension_of(path.name)]
    return sorted(path for path in named if path.is_file() or is_zarr(path))
