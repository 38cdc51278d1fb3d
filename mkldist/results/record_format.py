"""The bytes of a record: a sealed archive of a JSON header and the arrays."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from mkldist.results.run_record import RunRecord
from mkldist.results.state import RunState
from mkldist.sealed import Arrays, sealed, unsealed

FORMAT = 1
_ARRAYS = (
    "kernels",
    "weights",
    "coefficients",
    "test_rows",
    "decision_values",
    "train_rows",
    "kernel_coefficients",
)
_GROUPS = {"trace": "trace.", "of_classes": "class."}


def encode(record: RunRecord) -> bytes:
    """Return a record as bytes, which :func:`decode` checks."""
    header = {
        item.name: getattr(record, item.name)
        for item in fields(record)
        if item.name not in (*_ARRAYS, *_GROUPS)
    }
    arrays: dict[str, npt.NDArray[Any]] = {name: getattr(record, name) for name in _ARRAYS}
    for group, prefix in _GROUPS.items():
        named = getattr(record, group).items()
        arrays |= {prefix + name: np.asarray(values) for name, values in named}
    return sealed({"format": FORMAT, **header}, arrays)


def decode(content: bytes) -> RunRecord | None:
    """Return the record of `content`, or None for damaged bytes or another format.

    Another version of mkldist may have written fields that this one does not know.
    """
    found = unsealed(content)
    if found is None:
        return None
    header, arrays = found
    if header.pop("format", None) != FORMAT:
        return None
    try:
        return _record(header, arrays)
    except (LookupError, TypeError, ValueError, ArithmeticError):
        return None


def name_of(content: bytes) -> tuple[str, str] | None:
    """Return run and state of a record that any version of mkldist wrote; None if it is damaged."""
    found = unsealed(content)
    if found is None:
        return None
    header, _ = found
    return str(header.get("id")), str(header.get("state"))


def _record(header: dict[str, Any], arrays: Arrays) -> RunRecord:
    """Return the record of a header and arrays whose digest is right."""
    header["state"] = RunState(header["state"])
    groups: dict[str, Any] = {
        group: {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        for group, prefix in _GROUPS.items()
    }
    given: dict[str, Any] = {name: arrays[name] for name in _ARRAYS if name in arrays}
    return RunRecord(**header, **given, **groups)
