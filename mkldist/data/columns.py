"""The column names of a table, and the choice of its label column."""

from __future__ import annotations

from collections.abc import Sequence

from mkldist.data.listing import first_of
from mkldist.errors import DataError, nearest

LABEL_NAMES = frozenset({"label", "class", "target", "y"})
SHOWN = 8


def check_names(names: Sequence[str], where: str) -> None:
    """Raise unless a table has at least two columns, each with a name of its own.

    Raises
    ------
    DataError
        For fewer columns, a column without a name, or a name that occurs twice.
    """
    if len(names) < 2:
        raise DataError(
            where,
            f"{len(names)} column ({', '.join(names)})",
            "features and a label column",
            "Separate columns by a comma, semicolon or tab",
        )
    for position, name in enumerate(names):
        if not name:
            raise DataError(
                where,
                f"column {position + 1} of {len(names)} has no name",
                "a name for every column",
                "Leave out row numbers (index=False in pandas), and remove separators at the ends "
                "of lines",
            )
    twice = [name for position, name in enumerate(names) if name in names[:position]]
    if twice:
        places = [str(i + 1) for i, name in enumerate(names) if name == twice[0]]
        raise DataError(
            where,
            f"columns {', '.join(places)} have the same name {twice[0]!r}",
            "a name of its own for every column",
            "Rename or remove one of them",
        )


def label_position(names: Sequence[str], label: str | int | None, where: str) -> int:
    """Return the index of the label column.

    Parameters
    ----------
    names : sequence of str
        All columns of the table.
    label : str, int or None
        Name of the column, or its position from 0 (negative: from the end); None means the last.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If there is no such column; or if `label` is None although another column than the last one
        is called label, class, target or y.

    Examples
    --------
    >>> label_position(["age", "class"], None, "t.csv")
    1
    >>> label_position(["class", "age"], "class", "t.csv")
    0
    """
    if isinstance(label, int):
        if not -len(names) <= label < len(names):
            raise DataError(
                where,
                f"label = {label}, but {len(names)} columns",
                f"a position from {-len(names)} to {len(names) - 1}, or a column's name",
                _columns(names),
            )
        return label % len(names)
    if label is not None:
        if label not in names:
            hint = nearest(label, names) or _columns(names)
            raise DataError(where, f"no column {label!r}", "the name of the label column", hint)
        return list(names).index(label)
    likely = [name for name in names if name.casefold() in LABEL_NAMES]
    if likely and names[-1] not in likely:
        raise DataError(
            where,
            f"a column {likely[0]!r}, but {names[-1]!r} stands last",
            "the label in the last column, or its name",
            f'Set label = "{likely[0]}" (or "{names[-1]}")',
        )
    return len(names) - 1


def _columns(names: Sequence[str]) -> str:
    return f"Choose one of the columns {first_of(names, SHOWN)}"
