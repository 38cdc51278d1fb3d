"""Arrays that stand for a data set given in Python, and the files that keep them for a resume.

A file ``NAME-ID.given.npz`` is an archive of plain arrays.  NumPy checks the checksum of each array
that it reads, and the id in the name is one of the content.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mkldist.data.archives import Archive, opened_npz
from mkldist.data.columns import ColumnChoice, check_names, column_roles
from mkldist.data.frames import frame_data
from mkldist.data.npz_files import FEATURE_NAMES, feature_names, npz_features, npz_sparse
from mkldist.data.partitions import INDEX_ARRAYS, partitions_of
from mkldist.data.raw import RawData, as_features, check_rows
from mkldist.data.sparse_features import dense_features
from mkldist.durable import replacing
from mkldist.errors import DataError, nearest
from mkldist.identity import array_id

if TYPE_CHECKING:
    import pandas as pd

SUFFIX = ".given.npz"
GIVE_AGAIN = "Repeat the call in Python that gave the data, which writes the file anew"
X, GRAMS, Y, NAMES = "x", "grams", "y", FEATURE_NAMES
COLUMNS, LABEL, BESIDE = "columns", "label", "beside"
OF_SPLITS = ("groups", "order")
"""Names of arrays by which rows are divided, and of the keys of ``[splits]`` that take them."""

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class GivenData:
    """Data set given in Python, as plain arrays.

    Parameters
    ----------
    arrays : dict of str to array
        Of a table ``columns`` (names of the columns), ``column 0`` and so on, ``missing 0`` for a
        column of texts, and perhaps ``label`` (name of the label column) and ``beside`` (columns
        that were given beside the table, to divide the rows).  Otherwise ``x`` (n, d), the parts
        ``data``, ``indices``, ``indptr`` and ``shape`` of a sparse matrix, or ``grams`` (M, n, n);
        ``y`` (n,); and perhaps ``feature_names``, ``groups``, ``order`` and
        the indices ``train``, ``test`` and ``unlabelled``.
    """

    arrays: dict[str, npt.NDArray[Any]]

    @cached_property
    def id(self) -> str:
        """Content id of the arrays and their names."""
        return array_id(np.array(list(self.arrays)), *self.arrays.values())

    @property
    def of_splits(self) -> tuple[str, ...]:
        """Columns that were given to divide the rows."""
        given = self.arrays.get(BESIDE, np.array([])) if COLUMNS in self.arrays else self.arrays
        return tuple(name for name in OF_SPLITS if name in given)

    def raw_data(self, choice: ColumnChoice, where: str) -> RawData:
        """Return features or Gram matrices, and labels.

        Parameters
        ----------
        choice : ColumnChoice
            The columns that the sweep names.
        where : str
            The place to name in a message.

        Raises
        ------
        mkldist.errors.DataError, mkldist.errors.GramError
            If they cannot be used, or have no such columns.
        """
        return _raw(self.arrays, choice, where, "given in Python")

    def save(self, path: Path) -> None:
        """Write the arrays, whole or not at all.

        Raises
        ------
        OSError
            If the disk refuses them.
        """
        with replacing(path) as temporary, temporary.open("xb") as file:
            np.savez(file, **self.arrays)  # type: ignore[arg-type]  # named by the user's columns


def read_given(path: Path, choice: ColumnChoice, where: str) -> RawData:
    """Read a data set that was given in Python from its file.

    Raises
    ------
    mkldist.errors.DataError, mkldist.errors.GramError
        If the file is damaged or holds other data, and as :meth:`GivenData.raw_data`.
    """
    return _raw(_checked(path, where), choice, where, path.name)


def is_sound(path: Path) -> bool:
    """Return True if the content of a file is the one that its name says."""
    try:
        _checked(path, path.name)
    except DataError:
        return False
    return True


def _checked(path: Path, where: str) -> Arrays:
    """Return the arrays of a file whose name says which they are."""
    try:
        with opened_npz(path, where) as archive:
            arrays = {name: archive[name] for name in archive}
    except DataError as error:
        raise DataError(error.where, error.found, error.expected, GIVE_AGAIN) from error
    if GivenData(arrays).id != path.name.removesuffix(SUFFIX).rpartition("-")[2]:
        expected = "the data whose id stands in its name"
        raise DataError(where, "other data, or damaged ones", expected, GIVE_AGAIN)
    return arrays


def _raw(arrays: Arrays, choice: ColumnChoice, where: str, origin: str) -> RawData:
    if choice.sparse and not arrays.keys().isdisjoint((COLUMNS, GRAMS, X)):
        raise dense_features(where)
    if COLUMNS in arrays:
        names = arrays[COLUMNS].tolist()
        check_names(names, where)
        roles = column_roles(names, _with_label(choice, arrays, where), where)
        raw = frame_data(_frame(names, arrays), roles, where)
        said = "given beside the features" if LABEL in arrays else roles.label_said
        return replace(raw, origin=origin, account=replace(raw.account, label=said))
    _check_choice(choice, arrays, where)
    of_splits = {name: arrays[name].astype(str) for name in choice.of_splits}
    y = arrays[Y]
    partitions = partitions_of({n: arrays[n] for n in INDEX_ARRAYS if n in arrays}, len(y), where)
    if GRAMS in arrays:
        from mkldist.data.gram_checks import usable_grams  # with scipy.linalg

        grams = usable_grams(arrays[GRAMS], y, where)
        return RawData(y, None, (), partitions, grams=grams, origin=origin, of_splits=of_splits)
    x = _features(arrays, choice, where)
    check_rows(x.shape[0], len(y), where)
    names = feature_names(arrays, x.shape[1], where)
    dense, kept = (None, x) if choice.sparse else (x, None)
    return RawData(y, dense, names, partitions, origin=origin, of_splits=of_splits, sparse=kept)


def _features(arrays: Arrays, choice: ColumnChoice, where: str) -> Any:
    """Return features (n, d), in compressed sparse rows where they are to stay sparse."""
    if X in arrays:
        return as_features(arrays[X], f"{where}: X")
    archive = Archive(arrays, f"{where}: X")
    return (npz_sparse if choice.sparse else npz_features)(archive, archive.where)


def _with_label(choice: ColumnChoice, arrays: Arrays, where: str) -> ColumnChoice:
    """Return the choice with the column of labels that were given beside the features."""
    if LABEL not in arrays:
        return choice
    if choice.label is not None:
        raise _two_labels(choice, where)
    return replace(choice, label=str(arrays[LABEL]))


def _check_choice(choice: ColumnChoice, arrays: Arrays, where: str) -> None:
    """Refuse the choice of columns that arrays do not have."""
    if choice.label is not None:
        raise _two_labels(choice, where)
    for name in choice.of_splits:
        if name not in OF_SPLITS or name not in arrays:
            known = [name for name in OF_SPLITS if name in arrays]
            raise DataError(
                f"{where}: splits",
                f"no column {name!r}",
                f"one of {', '.join(known)}" if known else "a DataFrame with this column",
                nearest(name, known) or 'Give it as data={"NAME": {"x": X, "y": y, "groups": …}}',
            )
    choice.without_splits().check_label_alone(where)


def _two_labels(choice: ColumnChoice, where: str) -> DataError:
    return DataError(
        where,
        f"label = {choice.label!r} beside given labels",
        "labels once",
        "Remove label, or give a DataFrame that holds the label column",
    )


def _frame(names: list[str], arrays: Arrays) -> pd.DataFrame:
    """Return a table as a frame; its texts are objects, None where missing."""
    import pandas as pd

    columns = {}
    for place, name in enumerate(names):
        column = arrays[f"column {place}"]
        if f"missing {place}" in arrays:
            column = column.astype(object)
            column[arrays[f"missing {place}"]] = None
        columns[name] = column
    return pd.DataFrame(columns)
