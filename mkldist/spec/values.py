"""Values as a sweep file spells them."""

from __future__ import annotations

import json
from typing import Any

LONGEST = 60


def spelled(value: Any, longest: int | None = LONGEST) -> str:
    """Return a value as TOML spells it, shortened to so many characters unless that is None.

    Examples
    --------
    >>> spelled({"start": 1, "log": True})
    '{start = 1, log = true}'
    >>> spelled(["a", 1.5])
    '["a", 1.5]'
    """
    text = _spelled(value)
    return text if longest is None or len(text) <= longest else f"{text[: longest - 3]}..."


def _spelled(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_spelled(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_spelled, value)) + "]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
