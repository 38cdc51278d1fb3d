"""NumPy ``.npz`` archives, read without unpickling; errors name the damaged array."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.core.arrays import Floats
from mkldist.core.memory import readable_bytes
from mkldist.data.opening import REWRITE, check_unpacked, opened
from mkldist.data.raw import as_features
from mkldist.errors import DataError, nearest

DAMAGE = (
    zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, ValueError,
    tokenize.TokenError,  # by numpy, of the header of an array
)  # fmt: skip


class NamedArrays(Mapping[str, npt.NDArray[Any]]):
    """Arrays of a source by name, each read on access.

    Attributes
    ----------
    where : str
        The place to name in a message.
    writer : str
        How such a source is written: a call to which the arrays are added, for hints.
    """

    where: str
    writer: str

    def required(self, name: str, what: str, hint: str = "") -> npt.NDArray[Any]:
        """Return an array that the source must have.

        Parameters
        ----------
        name : str
            Its name.
        what : str
            Its content, for the message.
        hint : str
            Remedy if no other array has a similar name.

        Raises
        ------
        DataError
            If the source lacks it; the message lists its arrays.
        """
        self.check_has(name, what, hint)
        return self[name]

    def check_has(self, name: str, what: str, hint: str = "") -> None:
        """Raise as :meth:`required` does, but read nothing."""
        if name not in self:
            raise DataError(
                self.where,
                f"no array {name!r} (the arrays are {', '.join(self) or 'none'})",
                f"an array {name!r} of {what}",
                nearest(name, self) or hint or f"Write one: {self.writer}, {name}=…)",
            )

    def features(self, name: str) -> Floats:
        """Return an array of features as (n, d) float64.

        Raises
        ------
        DataError
            As for :func:`mkldist.data.raw.as_features`.
        """
        return as_features(self[name], f"{self.where}, array {name!r}")


class Archive(NamedArrays):
    """The arrays of an open ``.npz`` file.

    Parameters
    ----------
    npz : mapping of str to array
        The open file.
    where : str
        The place to name in a message.
    """

    writer = "np.savez(file"

    def __init__(self, npz: Mapping[str, npt.NDArray[Any]], where: str) -> None:
        self._npz, self.where = npz, where

    def __iter__(self) -> Iterator[str]:
        return iter(self._npz)

    def __len__(self) -> int:
        return len(self._npz)

    def __contains__(self, name: object) -> bool:
        return name in self._npz

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name not in self._npz:
            raise KeyError(name)
        place = f"{self.where}, array {name!r}"
        self._check_packing(name, place)
        try:
            self._check_size(name)
            return self._npz[name]
        except MemoryError as error:
            raise DataError(
                place,
                f"an array that does not fit into memory ({error})",
                "an array that can be read",
                "Write fewer rows or columns, or use a machine with more memory",
            ) from error
        except DAMAGE as error:
            if "Object arrays" in str(error):
                raise DataError(
                    place,
                    "Python objects, which could run code when read",
                    "numbers or text",
                    "Convert it before saving: array.astype(float) or array.astype(str)",
                ) from error
            raise DataError(
                place,
                f"an array that is cut short or damaged ({error})",
                "a complete array",
                REWRITE,
            ) from error

    def _check_packing(self, name: str, place: str) -> None:
        """Raise DataError for an array that unpacks to far more than arrays of data do."""
        found = self._entry(name)
        if found is not None:
            entry, remedy = found[1], "np.load, and write it by np.savez"
            check_unpacked(entry.file_size, entry.compress_size, place, "an array", remedy)

    def _entry(self, name: str) -> tuple[zipfile.ZipFile, zipfile.ZipInfo] | None:
        """Return the zip file that holds an array, and its entry there; None if there is none."""
        archive: zipfile.ZipFile | None = getattr(self._npz, "zip", None)
        if archive is None or f"{name}.npy" not in archive.namelist():
            return None
        return archive, archive.getinfo(f"{name}.npy")

    def _check_size(self, name: str) -> None:
        """Raise a ValueError for an array that says that it is larger than the archive."""
        found = self._entry(name)
        if found is None:
            return
        archive, entry = found
        with archive.open(entry) as file:
            if np.lib.format.read_magic(file) != (1, 0):
                return
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        claimed, held = math.prod(shape) * dtype.itemsize, entry.file_size
        if claimed > held and not dtype.hasobject:
            sizes = f"{readable_bytes(claimed)} in a file of {readable_bytes(held)}"
            raise ValueError(f"it says that it has {sizes}")


@contextmanager
def opened_npz(path: Path, where: str) -> Iterator[Archive]:
    """Open a ``.npz`` file; its arrays can be read inside the ``with`` block.

    Raises
    ------
    DataError
        If the file is not a ``.npz`` archive, or is cut short or damaged.
    """
    # Given a path, numpy.load would leave a damaged file open.
    with opened(path, where) as stream:
        try:
            npz = np.load(stream, allow_pickle=False)
        except DAMAGE as error:
            pickled = "pickled" in str(error)
            raise DataError(
                where,
                "a file of another kind"
                if pickled
                else f"a file that is cut short or damaged ({error})",
                "an archive of arrays (np.savez)",
                REWRITE,
            ) from error
        if not isinstance(npz, np.lib.npyio.NpzFile):
            raise DataError(where, "a single array", "an archive of arrays", "Write by np.savez")
        with npz:
            yield Archive(npz, where)
