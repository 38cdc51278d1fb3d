"""Find a data set by its name or source, and list the data sets that have names."""

from __future__ import annotations

import http.client
import io
import os
import urllib.error
import warnings
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mkldist.core.arrays import Array
from mkldist.core.durable import make_folder, write_file
from mkldist.data.assemble import NO_COLUMNS, assemble
from mkldist.data.columns import ColumnChoice, check_names, column_roles
from mkldist.data.dataset import Dataset
from mkldist.data.files import READERS, extension_of, read_file
from mkldist.data.frames import frame_data, frame_labels
from mkldist.data.given import GivenData
from mkldist.data.grams import read_grams
from mkldist.data.opening import exists
from mkldist.data.raw import RawData, as_features, check_fits, check_rows
from mkldist.data.synthetic import GENERATORS, generate
from mkldist.data.views import with_views
from mkldist.data.zarr_stores import is_zarr
from mkldist.errors import DataError, SpecError, nearest
from mkldist.spec.datasets import DatasetSpec, SplitsSpec


def read_openml(identity: str | int, choice: ColumnChoice, where: str) -> RawData:
    """Fetch a data set by id or name.

    Parameters
    ----------
    identity : str or int
        OpenML's number (also as text), or a name, which stands for its oldest active version.
    choice : ColumnChoice
        The target column, None means the one that OpenML names; and, in a dense data set, columns
        that are no features of numbers.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If OpenML cannot be reached or has no such data set, or if the data set has no single target
        or a feature that is not a number.
    """
    label = choice.label
    if isinstance(label, int):
        raise DataError(
            where,
            f"label = {label}",
            "the name of the target column",
            "Set label = the name of the target column",
        )
    bunch = _fetch(identity, label, where)
    if bunch.target is None or getattr(bunch.target, "ndim", 1) != 1:
        names = ", ".join(bunch.target_names or ()) or "none"
        raise DataError(
            where,
            f"a data set without a single target (targets: {names})",
            "one label column",
            "Set label = the name of one of its columns",
        )
    origin = f"OpenML {bunch.details['id']}: {bunch.details['name']}"
    origin += f" version {bunch.details['version']}"
    if hasattr(bunch.data, "columns"):
        return replace(_of_frame(bunch, choice, where), origin=origin)
    choice.check_label_alone(where)
    if hasattr(bunch.data, "toarray"):
        check_fits(8 * bunch.data.shape[0] * bunch.data.shape[1], where, "Select features first")
        x = as_features(bunch.data.toarray(), where)
    else:
        x = as_features(np.asarray(bunch.data), where)
    labels = frame_labels(bunch.target) if hasattr(bunch.target, "isna") else bunch.target
    check_rows(len(x), len(labels), where)
    return RawData(
        labels=_as_text(labels),
        x=x,
        feature_names=tuple(str(name) for name in bunch.feature_names),
        origin=origin,
    )


def _of_frame(bunch: Any, choice: ColumnChoice, where: str) -> RawData:
    """Return the raw data of a dense answer."""
    target = str(bunch.target.name)
    frame = bunch.data.assign(**{target: bunch.target})
    names = [str(name) for name in frame.columns]
    check_names(names, where)
    roles = column_roles(names, replace(choice, label=target), where)
    if choice.label is None:
        roles = replace(roles, label_said=f"column {target!r}, chosen by OpenML")
    return frame_data(frame, roles, where)


def _as_text(labels: np.ndarray[Any, np.dtype[Any]]) -> np.ndarray[Any, np.dtype[Any]]:
    """Return Python objects, which sparse data sets have as labels, as text."""
    if labels.dtype.kind != "O":
        return labels
    return np.array(["" if value is None else str(value) for value in labels])


def _fetch(identity: str | int, label: str | None, where: str) -> Any:
    from sklearn.datasets import fetch_openml

    by_number = isinstance(identity, int) or identity.isdigit()
    which: dict[str, Any] = {"data_id": int(identity)} if by_number else {"name": identity}
    unreachable = (OSError, http.client.HTTPException)
    try:
        with warnings.catch_warnings():
            # scikit-learn warns of retries, whose failure raises an error, and of a choice among
            # versions, which RawData.origin records.
            warnings.simplefilter("ignore")
            # With pandas 3, the other parser fails on categories that are numbers.
            return fetch_openml(
                **which,
                target_column=label or "default-target",
                as_frame="auto",
                parser="liac-arff",
            )
    except urllib.error.HTTPError as error:
        raise DataError(
            where,
            f"the answer {error.code} of OpenML ({error.reason})",
            f"a data set {identity!r}",
            "Look it up on www.openml.org and give its number",
        ) from error
    except unreachable as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(
            where,
            f"no connection to OpenML ({reason})",
            "a connection to www.openml.org, or the data set in scikit-learn's cache",
            "Check the network, or download the data and name the file by 'file'",
        ) from error
    except Exception as error:
        # Besides an absent data set, a malformed answer can raise anything in the parser.
        text = str(error).strip("'\"")
        raise DataError(
            where,
            f"no data set {identity!r} at OpenML that can be used: {text}",
            "the number or name of an active data set",
            "Look it up on www.openml.org and give its number",
        ) from error


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
CANCER_HEAD = "569,30,malignant,benign"
CANCER_NUCLEI = (
    "radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity",
    "concave points", "symmetry", "fractal dimension",
)  # fmt: skip


def load_bundled(name: str) -> RawData:
    """Return one of the :data:`DESCRIPTIONS`; its labels are class names or real values."""
    loader = f"load_{LOADERS.get(name, name)}"
    origin = f"scikit-learn {metadata.version('scikit-learn')}, {loader}"
    copy = _folder() / f"{origin.replace(', ', ' ').replace(' ', '-')}.npz"
    arrays = _read(copy)
    if arrays is None:
        arrays = _cancer_file() if loader == "load_breast_cancer" else None
        arrays = arrays or _loaded(loader, OPTIONS.get(name, {}))
        _keep(copy, arrays)
    return RawData(
        labels=arrays["labels"],
        x=arrays["x"],
        feature_names=tuple(arrays["feature_names"].tolist()),
        origin=origin,
        task="classification" if arrays["labels"].dtype.kind == "U" else "regression",
    )


def _cancer_file() -> dict[str, Array] | None:
    """Return the breast cancer data of scikit-learn's file; None if it is not as expected."""
    package = metadata.distribution("scikit-learn")
    file = Path(str(package.locate_file("sklearn/datasets/data/breast_cancer.csv")))
    try:
        head, *lines = file.read_text().splitlines()
        values = np.array([line.split(",") for line in lines], dtype=np.float64)
    except (OSError, ValueError):  # UnicodeDecodeError is a ValueError
        return None
    if head != CANCER_HEAD or values.shape != (569, 31):
        return None
    names = [[f"mean {one}", f"{one} error", f"worst {one}"] for one in CANCER_NUCLEI]
    return {
        "labels": np.where(values[:, -1] == 1.0, "benign", "malignant"),
        "x": values[:, :-1].copy(),
        "feature_names": np.array(names).T.reshape(-1),
    }


def _loaded(loader: str, options: dict[str, Any]) -> dict[str, Array]:
    """Return features, their names and labels by a function of scikit-learn."""
    from sklearn import datasets

    load: Callable[..., Any] = getattr(datasets, loader)
    bunch = load(**options)
    labels, names = bunch.target, bunch.get("target_names")
    return {
        "labels": labels if names is None else np.array([str(name) for name in names])[labels],
        "x": np.ascontiguousarray(bunch.data, dtype=np.float64),
        "feature_names": np.array([str(name) for name in bunch.feature_names]),
    }


def _folder() -> Path:
    """Return the folder of the copies."""
    given = os.environ.get("MKLDIST_CACHE")
    if given:
        return Path(given) / "datasets"
    import platformdirs

    return Path(platformdirs.user_cache_dir("mkldist")) / "datasets"


def _read(copy: Path) -> dict[str, Array] | None:
    """Return the arrays of a copy; None if there is none that can be read."""
    try:
        with np.load(io.BytesIO(copy.read_bytes()), allow_pickle=False) as found:
            return {name: found[name] for name in ("labels", "x", "feature_names")}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _keep(copy: Path, arrays: dict[str, Any]) -> None:
    """Write a copy, unless the folder takes no files."""
    content = io.BytesIO()
    np.savez(content, **arrays)
    with suppress(OSError):
        make_folder(copy.parent)
        write_file(copy, [content.getvalue()])


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
        place = f"{where} (OpenML {spec.openml})"
        return read_openml(spec.openml, choice, place), place
    if spec.file is not None:
        path = located(spec.file, data_dirs, base)
        place = f"{where} ({path})"
        return read_file(path, choice, place), place
    path = located(spec.grams or "", data_dirs, base)
    place = f"{where} ({path})"
    replace(choice, weights=None).check_label_alone(place)
    if isinstance(spec.label, int):
        raise DataError(
            place, f"label = {spec.label}", "the name of the array of labels", 'Set label = "y"'
        )
    labels = None if spec.labels is None else located(spec.labels, data_dirs, base)
    return read_grams(path, labels, spec.label, place, spec.weights), place


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
