"""Points that lack a view: refused unless the view says what then holds, and said aloud."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from mkldist.arrays import Bools, Floats
from mkldist.counted import counted
from mkldist.data.dataset import GivenGrams, View, lacking_rows
from mkldist.data.listing import first_of
from mkldist.errors import DataError
from mkldist.row_places import FROM_ZERO, RowPlaces

SHOWN = 5


def check_views(
    x: Floats,
    views: Mapping[str, View],
    given: Mapping[str, GivenGrams],
    ids: npt.NDArray[np.str_] | None,
    where: str,
    row_places: RowPlaces = FROM_ZERO,
) -> None:
    """Refuse views that points lack, or that all points lack, unless they say what then holds.

    Parameters
    ----------
    x : (n, d) float64
        Features; NaN where a value is missing.
    views, given : mapping
        Views of the features, and views that are Gram matrices, by their names.
    ids : (n,) array of str, or None
        Names of the points.
    where : str
        The place to name in a message.
    row_places : RowPlaces
        How a message names points without ids.

    Raises
    ------
    DataError
        Naming the first such view and some of the points.
    """
    for name, missing, lacking in _lacking(x, views, given):
        rows = np.flatnonzero(lacking).tolist()
        if not rows or (missing is not None and len(rows) < len(lacking)):
            continue
        names = row_places.names(rows, ids)
        remedy = "" if name in given else ', or missing = "impute" to fill its features'
        raise DataError(
            f"{where}: view {name!r}",
            f"no value for {len(rows)} of {len(lacking)} points ({first_of(names, SHOWN)})",
            "a value of the view for each point, or missing, which says what holds without",
            f'Set missing = "zero" for its kernels to be zero at these points{remedy}'
            if len(rows) < len(lacking)
            else "Leave the view out",
        )


def view_lines(
    x: Floats, views: Mapping[str, View], given: Mapping[str, GivenGrams]
) -> tuple[str, ...]:
    """Return each view in words: its size, and how many points lack it."""
    lines = []
    for name, missing, lacking in _lacking(x, views, given):
        if name in given:
            n_grams = len(given[name].grams)
            size = counted(n_grams, "Gram matrix", "Gram matrices")
        else:
            n_features = len(views[name].columns)
            size = counted(n_features, "feature")
        line = f"{name}, {size}"
        if lacking.any():
            then = "its kernels are zero there" if missing == "zero" else "filled"
            line += f"; {int(lacking.sum())} of {len(lacking)} points lack it: {then}"
        lines.append(line)
    return tuple(lines)


def _lacking(
    x: Floats, views: Mapping[str, View], given: Mapping[str, GivenGrams]
) -> Iterator[tuple[str, str | None, Bools]]:
    """Yield the name of each view, what it says of points that lack it, and these points, (n,)."""
    for name, view in views.items():
        yield name, view.missing, lacking_rows(x, view)
    for name, one in given.items():
        yield name, one.missing, ~one.present
