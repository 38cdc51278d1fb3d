"""The columns of a source and the features made of them: what new rows have to bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class SourceColumns:
    """How features were made of the columns of a source.

    Features are the columns of numbers in order, then one for each category of each column of
    categories; those at the positions `kept` are the features of the data set.

    Parameters
    ----------
    numbers : tuple of str
        Columns of numbers, constant ones included.
    categories : dict of str to tuple of str
        Categories of each column of categories; ``?`` stands for a missing value.
    label : str
        The label column; empty where the source is no table.
    others : tuple of str
        Columns that are neither label nor features.
    id : str
        The one of them that names the rows; empty for none.
    kept : tuple of int, or None
        Positions of the features that vary; None for all.
    start : int or None
        First index in the lines of a ``.svm`` file, 0 or 1; None for other sources.
    texts : tuple of str
        Columns of texts that the kernels of a model use; no features are made of them.
    """

    numbers: tuple[str, ...]
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    label: str = ""
    others: tuple[str, ...] = ()
    id: str = ""
    kept: tuple[int, ...] | None = None
    start: int | None = None
    texts: tuple[str, ...] = ()

    @property
    def n_features(self) -> int:
        """Number of features before those that do not vary are dropped."""
        return len(self.numbers) + sum(map(len, self.categories.values()))

    @property
    def n_kept(self) -> int:
        """Number of features of the data set."""
        return self.n_features if self.kept is None else len(self.kept)

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that features are made of."""
        return (*self.numbers, *self.categories)

    @property
    def required(self) -> tuple[str, ...]:
        """Columns of features and of texts that new rows need: constant ones are not needed."""
        if self.kept is None:
            return (*self.names, *self.texts)
        kept = set(self.kept)
        numbers = [name for place, name in enumerate(self.numbers) if place in kept]
        return (*numbers, *self.categories, *self.texts)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON takes them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> SourceColumns:
        """Return the columns of which :meth:`as_dict` gave the fields."""
        categories = {name: tuple(known) for name, known in fields["categories"].items()}
        kept = fields["kept"]
        return cls(
            tuple(fields["numbers"]),
            categories,
            str(fields["label"]),
            tuple(fields["others"]),
            str(fields["id"]),
            None if kept is None else tuple(kept),
            fields.get("start"),
            tuple(fields.get("texts", ())),
        )

    @classmethod
    def of_features(cls, names: Sequence[str]) -> SourceColumns:
        """Return the columns of a source in which every column is a feature."""
        return cls(tuple(names))
