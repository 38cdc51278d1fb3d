"""Columns of texts that a user gives :class:`mkldist.KernelBank` in a DataFrame."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from mkldist.data.frames import frame_texts
from mkldist.data.listing import first_of
from mkldist.data.texts import TextColumns
from mkldist.errors import DataError, SpecError, nearest
from mkldist.row_places import FROM_ZERO

SHOWN = 5


def text_names(given: Any) -> tuple[str, ...]:
    """Return the names of columns of texts that a user lists; None stands for no column.

    Raises
    ------
    mkldist.errors.SpecError
        For anything but a list of names.
    """
    if given is None:
        return ()
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        hint = f"Write texts=[{given!r}]" if isinstance(given, str) else ""
        raise SpecError("texts", f"{given!r:.60}", "a list of names of columns", hint)
    return tuple(given)


def divided(given: Any, names: Sequence[str], where: str) -> tuple[Any, TextColumns | None]:
    """Return a DataFrame without its columns of texts, and these.

    Parameters
    ----------
    given : DataFrame or other features
        The points.
    names : sequence of str
        Columns of texts; without any, the points are returned as they are.
    where : str
        The place to name in a message.

    Raises
    ------
    mkldist.errors.DataError
        For anything but a DataFrame, and for columns that it lacks.
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
    texts = TextColumns.of({name: frame_texts(frame[name], where) for name in names})
    return frame.drop(columns=list(names)), texts


def check_texts(texts: TextColumns, allowed: Collection[int], where: str, hint: str) -> None:
    """Refuse missing texts in columns that points may not lack.

    Parameters
    ----------
    texts : TextColumns
        The texts.
    allowed : collection of int
        Columns that points may lack.
    where : str
        The place to name in a message.
    hint : str
        What to do.

    Raises
    ------
    mkldist.errors.DataError
        Naming the first such column and some of the points.
    """
    for column, name in enumerate(texts.names):
        rows = np.flatnonzero(texts.absent[:, column]).tolist()
        if rows and column not in allowed:
            listed = first_of(FROM_ZERO.names(rows), SHOWN)
            found = f"no text in column {name!r} for {listed}"
            raise DataError(where, found, "a text for each point", hint)
