"""Views of estimators: named blocks of the columns of X, which rows may lack as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import numpy as np

from mkldist.arrays import Floats
from mkldist.data.assemble import feature_position
from mkldist.data.dataset import View, lacking_rows
from mkldist.data.listing import first_of
from mkldist.errors import DataError, SpecError, nearest
from mkldist.row_places import FROM_ZERO
from mkldist.spec.kinds import MissingView
from mkldist.spec.views import WORDS_FOR_FEATURES

EXAMPLE = 'columns by the names of views, such as {"clinical": [0, 1], "genes": slice(2, 50)}'
REFUSED = "error"
CHOICES = (*get_args(MissingView), REFUSED)
SHOWN = 5


def column_views(
    views: Any, missing: Any, n_features: int, names: Sequence[str] | None
) -> dict[str, View]:
    """Return the views of an estimator as columns.

    Parameters
    ----------
    views : mapping of str to columns, or None
        Columns by number or name, several in a list, an array or a slice.
    missing : {"zero", "impute", "error"}
        What holds for rows without any value of a view.
    n_features : int
        Number d of columns.
    names : sequence of str, optional
        Their names.

    Raises
    ------
    mkldist.errors.SpecError, mkldist.errors.DataError
        For unknown columns, names that are words for features, and another `missing`.
    """
    if missing not in CHOICES:
        hint = nearest(missing, CHOICES) if isinstance(missing, str) else ""
        expected = f"one of {', '.join(map(repr, CHOICES))}"
        raise SpecError("missing_views", f"{missing!r:.60}", expected, hint)
    if views is None:
        return {}
    if not isinstance(views, Mapping) or not views:
        raise SpecError("views", f"{views!r:.60}", EXAMPLE)
    places = {str(name): place for place, name in enumerate(() if names is None else names)}
    found = {}
    for name, columns in views.items():
        if not isinstance(name, str) or name in WORDS_FOR_FEATURES or name in places:
            expected = "a name that is neither a word for features nor a column"
            raise SpecError("views", f"a view {name!r:.60}", expected)
        own = _columns(columns, n_features, places, f"views[{name!r}]")
        found[name] = View(own, None if missing == REFUSED else missing)
    return found


def _columns(given: Any, n_features: int, places: Mapping[str, int], where: str) -> tuple[int, ...]:
    """Return the columns of one view."""
    numbered = places or {f"x{place}": place for place in range(n_features)}
    if isinstance(given, slice):
        members: list[Any] = list(range(n_features)[given])
    elif isinstance(given, str | int | np.integer):
        members = [given]
    elif not isinstance(given, Iterable):
        raise SpecError(where, f"{given!r:.60}", "numbers from 0 or names of columns")
    else:
        members = np.asarray(given).tolist() if hasattr(given, "dtype") else list(given)
    if any(isinstance(member, bool) or not isinstance(member, int | str) for member in members):
        hint = ""
        if any(isinstance(member, bool) for member in members):
            hint = "Give the numbers of the columns of a mask: np.flatnonzero(mask)"
        raise SpecError(where, f"{given!r:.60}", "numbers from 0 or names of columns", hint)
    columns = tuple(feature_position(member, numbered, where) for member in members)
    if not columns or len(set(columns)) < len(columns):
        found = "a column twice" if columns else "no columns"
        raise SpecError(where, found, "at least one column, each once")
    return columns


def check_lacking(x: Floats, views: Mapping[str, View], *, fitting: bool) -> None:
    """Refuse rows that lack a view which they must have, and views that no training row has.

    Parameters
    ----------
    x : (r, d) float64
        Rows; NaN where a value is missing.
    views : mapping of str to View
        The views.
    fitting : bool
        True for the rows that an estimator is fitted on.

    Raises
    ------
    mkldist.errors.DataError
        Naming the view and the first such rows.
    """
    for name, view in views.items():
        lacking = lacking_rows(x, view)
        if view.missing is None and lacking.any():
            rows = first_of(FROM_ZERO.names(np.flatnonzero(lacking).tolist()), SHOWN)
            raise DataError(
                "X",
                f"no value of view {name!r} for {rows}",
                "a value of each view for each row",
                'Set missing_views="zero" for its kernels to be zero there, or "impute"',
            )
        if fitting and lacking.all():
            raise DataError(
                "X",
                f"no row with a value of view {name!r}",
                "at least one, to fit its scaling and kernels on",
                "Leave the view out",
            )
