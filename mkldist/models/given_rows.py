"""Views of a model that are Gram matrices, and kernel values of new rows for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mkldist.arrays import Array, Bools, Floats, Ints
from mkldist.data.archives import opened_npz
from mkldist.data.listing import first_of
from mkldist.data.npz_files import column, row_names
from mkldist.data.opening import check_file
from mkldist.data.views import positions_of_ids
from mkldist.errors import DataError, ending_words
from mkldist.spec.kinds import MissingView

SHOWN = 5
POINTS = "points"


@dataclass(frozen=True, eq=False)
class GivenView:
    """A view of Gram matrices.

    Parameters
    ----------
    n_grams : int
        Number M of matrices.
    present : (a,) bool
        Which anchors have the view.
    missing : {"zero"} or None
        What holds for rows that lack it: kernels are zero, or they are refused.
    """

    n_grams: int
    present: Bools
    missing: MissingView | None


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Rows between which and new ones the user gives kernel values.

    Parameters
    ----------
    names : tuple of str
        The n rows that the model was fitted on: their ids, or their numbers in the data set.
    anchors : (a,) intp
        Those of them that decision functions use.
    views : dict of str to GivenView
        The views by name.
    """

    names: tuple[str, ...]
    anchors: Ints
    views: dict[str, GivenView]

    def values(self, view: str, given: Array, points: Array | None, where: str) -> Floats:
        """Return kernel values between new rows and anchors, (M, t, a); NaN for rows without view.

        Parameters
        ----------
        view : str
            The view.
        given : (t, p) or (M, t, p) array
            Kernel values between new rows and p rows of the data set.  NaN in all values of a new
            row says that it lacks the view.
        points : (p,) array of str, or None
            Names of these rows; None if they are the n that the model was fitted on, in order.
        where : str
            The place to name in a message.

        Raises
        ------
        mkldist.errors.DataError
            For another shape, for rows that are named twice, and if a row that the model needs is
            not among them.
        """
        own = self.views[view]
        stack = given[None] if given.ndim == 2 else given
        p = len(self.names) if points is None else len(points)
        if stack.ndim != 3 or stack.dtype.kind not in "fiub" or len(stack) != own.n_grams:
            found = f"an array of {stack.dtype}, shape {given.shape}"
            raise DataError(where, found, f"kernel values ({own.n_grams}, t rows, {p})")
        if stack.shape[2] != p:
            raise DataError(
                where,
                f"kernel values with {stack.shape[2]} rows of the data set",
                f"{p}, those that the model was fitted on" if points is None else f"{p}, as points",
                "Name them by an array points, or give the values of all in their order",
            )
        values = np.zeros((len(stack), stack.shape[1], len(self.anchors)))
        known = stack[:, :, self._places(points, own, where)].astype(np.float64)
        values[:, :, own.present] = known
        if known.size:
            values[:, np.isnan(known).all(axis=(0, 2))] = np.nan
        return values

    def _places(self, points: Array | None, own: GivenView, where: str) -> Ints:
        """Return where the anchors that have the view stand among the given rows."""
        wanted = self.anchors[own.present]
        if points is None:
            return wanted
        place = positions_of_ids(points, f"{where}, array {POINTS!r}")
        names = [self.names[row] for row in wanted.tolist()]
        lacking = [name for name in names if name not in place]
        if lacking:
            raise DataError(
                f"{where}, array {POINTS!r}",
                f"no {first_of([repr(name) for name in lacking], SHOWN)}",
                f"the {len(names)} support vectors of the model that have the view",
                "Compute the kernel values of new rows with these rows too",
            )
        return np.array([place[name] for name in names], dtype=np.intp)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON takes them."""
        return {
            "names": list(self.names),
            "anchors": self.anchors.tolist(),
            "views": {
                name: [one.n_grams, np.flatnonzero(one.present).tolist(), one.missing]
                for name, one in self.views.items()
            },
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> GivenRows:
        """Return the rows of which :meth:`as_dict` gave the fields."""
        anchors = np.array(fields["anchors"], dtype=np.intp)
        views = {}
        for name, (n_grams, places, missing) in fields["views"].items():
            present = np.zeros(len(anchors), dtype=bool)
            present[places] = True
            views[name] = GivenView(n_grams, present, missing)
        return cls(tuple(fields["names"]), anchors, views)


def read_kernel_values(path: Path, where: str) -> tuple[Array, Array | None, Array | None]:
    """Read kernel values of new rows from ``.npz`` or ``.npy``.

    Returns
    -------
    (t, p) or (M, t, p) array, (t,) array of str or None, (p,) array of str or None
        The array ``grams``, the names of new rows (``ids``), and those of other rows (``points``).

    Raises
    ------
    mkldist.errors.DataError
        If the file is absent, damaged or lacks ``grams``.
    """
    check_file(path, where)
    extension = path.suffix.lower()
    if extension == ".npy":
        try:
            return np.load(path, allow_pickle=False), None, None
        except (ValueError, EOFError, OSError) as error:
            raise DataError(where, f"a damaged file ({error})", "one array (np.save)") from error
    if extension != ".npz":
        ending = ending_words(path.suffix, "file")
        hint = "Write one: np.savez(file, grams=K, ids=names of rows, points=names of columns)"
        raise DataError(where, ending, "kernel values in a .npz or .npy file", hint)
    with opened_npz(path, where) as archive:
        grams = archive.required("grams", "kernel values (t, n) or (M, t, n)")
        n_rows = grams.shape[-2] if grams.ndim > 1 else 0
        ids = row_names(archive, None, n_rows)
        points = column(archive[POINTS]).astype(str) if POINTS in archive else None
    return grams, ids, points
