"""Labels and values that an estimator is given: none may be missing or infinite."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mkldist.arrays import Bools
from mkldist.data.listing import first_of
from mkldist.errors import DataError
from mkldist.row_places import FROM_ZERO

LEAVE_OUT = (
    "Leave these rows out: known = np.asarray(pd.notna(y)), then fit(X[known], y[known])",
    "a label or value for each row",
)
MARK = (
    "Mark rows without a label by the number -1: y = np.where(pd.isna(y), -1, y)",
    "a label for each row, -1 where it is unknown",
)
SHOWN = 5


def check_given(y: Any, *, may_lack: bool = False) -> None:
    """Refuse labels or values of which some are missing or infinite.

    What is no array of rows is left to the checks of scikit-learn.

    Parameters
    ----------
    y : (n,) array-like
        Labels or values of any type.
    may_lack : bool
        True if rows without a label may be there, which -1 marks.

    Raises
    ------
    mkldist.errors.DataError
        Naming the first such rows, and saying what to do.
    """
    given = _as_objects(y)
    if given is None:
        return
    missing = pd.isna(given)
    if missing.any():
        hint, expected = MARK if may_lack else LEAVE_OUT
        first = given[missing].tolist()[0]
        raise DataError("y", f"{first!r} {_places(missing)}", expected, hint)
    infinite = (given == np.inf) | (given == -np.inf)
    if infinite.any():
        raise DataError("y", f"{given[infinite][0]} {_places(infinite)}", "finite numbers")


def _as_objects(y: Any) -> npt.NDArray[Any] | None:
    """Return labels as Python objects; None for what is no array of rows."""
    if y is None or hasattr(y, "toarray"):
        return None
    try:
        given = np.asarray(y, dtype=object)
    except (TypeError, ValueError):
        return None
    return given if given.ndim in (1, 2) else None


def _places(where: Bools) -> str:
    """Return the words for the rows of an array (n,) or (n, k) in which something is true."""
    rows = np.flatnonzero(where if where.ndim == 1 else where.any(axis=1))
    return f"in {first_of(FROM_ZERO.names(rows.tolist()), SHOWN)}"


def of_plain_type(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels that are numbers or truth values in an array of objects as an array of these.

    Examples
    --------
    >>> import numpy as np
    >>> of_plain_type(np.array([0, 1, -1], dtype=object)).dtype.kind
    'i'
    """
    if y.dtype != object or not all(isinstance(one, bool | int | float) for one in y.tolist()):
        return y
    return np.array(y.tolist())
