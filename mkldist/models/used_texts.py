"""Columns of texts that decision functions use, of all those of a data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mkldist.arrays import Ints
from mkldist.data.source_columns import SourceColumns
from mkldist.data.texts import TextColumns
from mkldist.in_memory.expansion import Expansion
from mkldist.models.text_columns import ModelTexts


@dataclass(frozen=True, eq=False)
class UsedTexts:
    """Decision functions that hold the texts of used columns alone, and what new rows bring.

    Parameters
    ----------
    columns : SourceColumns
        Columns of the table.
    view_columns : dict of str to SourceColumns
        Columns of the views with a table of their own.
    texts : ModelTexts, or None
        The columns of texts; None if no kernel uses one.
    functions : tuple of Expansion
        The functions.
    """

    columns: SourceColumns
    view_columns: dict[str, SourceColumns]
    texts: ModelTexts | None
    functions: tuple[Expansion, ...]

    @classmethod
    def of(
        cls,
        texts: TextColumns | None,
        functions: Sequence[Expansion],
        columns: SourceColumns,
        view_columns: Mapping[str, SourceColumns],
    ) -> UsedTexts:
        """Return the columns of texts that functions use, and these functions.

        Parameters
        ----------
        texts : TextColumns or None
            The texts that the functions were fitted on; None without any.
        functions : sequence of Expansion
            The functions, with the texts of all columns.
        columns : SourceColumns
            Columns of the table, without those of texts.
        view_columns : mapping of str to SourceColumns
            The same of the views with a table of their own.
        """
        if texts is None:
            return cls(columns, dict(view_columns), None, tuple(functions))
        used = _used(functions)
        optional = texts.may_lack
        of_views = {column: view for view in view_columns for column in texts.groups.get(view, ())}
        by_table: dict[str | None, list[int]] = {}
        for column in used.tolist():
            by_table.setdefault(of_views.get(column), []).append(column)
        own = [name for c, name in enumerate(texts.names) if c not in of_views]
        needed = [texts.names[c] for c in by_table.get(None, ())]
        return cls(
            _with_texts(columns, own, needed),
            {
                view: _of_view(view, one, [texts.names[c] for c in by_table.get(view, ())])
                for view, one in view_columns.items()
            },
            ModelTexts(
                tuple(texts.names[c] for c in used.tolist()),
                tuple(c in optional for c in used.tolist()),
            )
            if len(used)
            else None,
            tuple(
                function
                if function.texts is None
                else replace(function, texts=function.texts.on_columns(used))
                for function in functions
            ),
        )


def _used(functions: Sequence[Expansion]) -> Ints:
    """Return the columns of texts that functions use, ascending."""
    indices = [f.texts.kernels.subset_indices for f in functions if f.texts is not None]
    return np.unique(np.concatenate([np.zeros(0, dtype=np.intp), *indices])).astype(np.intp)


def _with_texts(
    columns: SourceColumns, texts: Sequence[str], needed: Sequence[str]
) -> SourceColumns:
    """Return the columns of a table of which new rows need some texts; others may be there."""
    others = [name for name in (*columns.others, *texts) if name not in needed]
    return replace(columns, texts=tuple(needed), others=tuple(dict.fromkeys(others)))


def _of_view(view: str, columns: SourceColumns, needed: Sequence[str]) -> SourceColumns:
    """Return the columns of a view's table; its columns of texts carry the view's name here."""
    return _with_texts(columns, (), [name.removeprefix(f"{view}.") for name in needed])
