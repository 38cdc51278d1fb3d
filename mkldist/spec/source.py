"""Values that the solutions of another method give: ``C = { from = "spicymkl" }``."""

from __future__ import annotations

from typing import Any, TypeGuard

FROM = "from"
"""Key of the table that names the other method."""

GIVEN = "C"
"""The parameter that another method may give."""

SOURCE_PREFIX = "source_"
"""Begins the names of dims of the results that are those of the other method."""


def is_from_method(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return True if a value of a parameter is meant to come from another method.

    Examples
    --------
    >>> is_from_method({"from": "spicymkl"}), is_from_method({"low": 1, "high": 10})
    (True, False)
    """
    return isinstance(value, dict) and FROM in value
