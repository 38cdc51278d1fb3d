"""Columns of texts that a user gives :class:`mkldist.KernelBank` in a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mkldist.data.frames import frame_texts
from mkldist.data.listing import first_of
from mkldist.data.texts import TextColumns
from mkldist.errors import DataError, nearest

SHOWN = 5


def divided(
    given: Any, names: Sequence[str], where: str, *, gaps: bool
) -> tuple[Any, TextColumns | None]:
    """Return a DataFrame without its columns of texts, and these.

    Parameters
    ----------
    given : DataFrame or other features
        The points.
    names : sequence of str
        Columns of texts; without any, the points are returned as they are.
    where : str
        The place to name in a message.
    gaps : bool
        True if points may lack texts.

    Raises
    ------
    mkldist.errors.DataError
        For anything but a DataFrame, for columns that it lacks, and for missing texts.
    """
    if not len(names):
        return given, None
    if not (hasattr(given, "columns") and hasattr(given, "to_numpy")):
        listed = first_of([repr(name) for name in names], SHOWN)
        expected = f"a DataFrame, for columns of texts ({listed})"
        raise DataError(where, f"one {type(given).__name__}", expected, "Name columns")
    frame = given.set_axis(list(map(str, given.columns)), axis=1)
    for place, name in enumerate(names):
        if name not in frame.columns:
            hint = nearest(name, frame.columns)
            raise DataError(f"{where}: texts", f"no column {name!r}", "names of columns", hint)
        if name in names[:place] or list(frame.columns).count(name) > 1:
            raise DataError(f"{where}: texts", f"column {name!r} twice", "each once")
    texts = TextColumns.of({name: frame_texts(frame[name]) for name in names})
    if texts is not None:
        _check_known(texts, where, gaps=gaps)
    return frame.drop(columns=list(names)), texts


def _check_known(texts: TextColumns, where: str, *, gaps: bool) -> None:
    """Refuse missing texts, unless points may lack them."""
    for column, name in enumerate(texts.names):
        rows = np.flatnonzero(texts.absent[:, column]).tolist()
        if rows and not gaps:
            raise DataError(
                where,
                f"no text in column {name!r} for {first_of([f'row {r}' for r in rows], SHOWN)}",
                "a text for each point",
                'Fill them, or set missing="zero": kernels are zero where a point lacks a text',
            )
