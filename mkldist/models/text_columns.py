"""Columns of texts that a model uses, and the texts of new rows in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.arrays import Array
from mkldist.data.listing import first_of
from mkldist.data.texts import side_by_side
from mkldist.errors import DataError
from mkldist.row_places import FROM_ZERO, RowPlaces

SHOWN = 5


@dataclass(frozen=True)
class ModelTexts:
    """Columns of texts that kernels of a model use: those of its table, then those of its views.

    Parameters
    ----------
    names : tuple of str
        Their names; a column ``a`` of the file of a view ``v`` is called ``v.a``.
    optional : tuple of bool
        True for columns that rows may have no text in: kernels of these are zero there.
    """

    names: tuple[str, ...]
    optional: tuple[bool, ...]

    def check(self, texts: Array, where: str, row_places: RowPlaces = FROM_ZERO) -> None:
        """Refuse rows without a text that the model needs.

        Parameters
        ----------
        texts : (r, t) array of str objects
            Texts of some rows.
        where : str
            The place to name in a message.
        row_places : RowPlaces
            How a message names a row.

        Raises
        ------
        mkldist.errors.DataError
            Naming the first such column and some of the rows.
        """
        for column, (name, optional) in enumerate(zip(self.names, self.optional, strict=True)):
            rows = np.flatnonzero(texts[:, column] == "")
            if len(rows) and not optional:
                raise DataError(
                    where,
                    f"no text in column {name!r} for "
                    f"{first_of(row_places.names(rows.tolist()), SHOWN)}",
                    "a text for each row: the model knows no row without it",
                    'Fit a sweep with a view of this column that sets missing = "zero"',
                )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON takes them."""
        return {"names": list(self.names), "optional": list(self.optional)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> ModelTexts:
        """Return the columns of which :meth:`as_dict` gave the fields."""
        return cls(tuple(fields["names"]), tuple(fields["optional"]))


def texts_of(columns: Sequence[str], words: Mapping[str, Sequence[str]]) -> Array | None:
    """Return the texts of some columns side by side, (r, t); None without columns.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns.
    words : mapping of str to sequence of str
        r texts of each of them, and perhaps of others.
    """
    return side_by_side({name: words[name] for name in columns}) if columns else None
