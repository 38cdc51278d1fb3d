"""The columns of a table: their names, and the role of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mkldist.core.wording import pluralize, truncate
from mkldist.errors import DataError, nearest
from mkldist.spec.datasets import DatasetSpec, SplitsSpec, ViewSpec

LABEL_NAMES = frozenset(
    {"label", "labels", "class", "classes", "target", "y", "diagnosis", "outcome", "response"}
)
LABEL_WORDS = "label, class, target, y, diagnosis, outcome or response"
SHOWN = 8


@dataclass(frozen=True)
class ColumnChoice:
    """Columns of a table that the sweep file names.

    Parameters
    ----------
    label : str, int or None
        Name of the label column, or its position from 0 (negative: from the end); None chooses
        the one that is called label, class, target, y, diagnosis or the like.
    id : str or None
        Column that names the rows.
    ignore : tuple of str
        Columns to leave out.
    categorical : tuple of str
        Columns of categories.
    of_splits : tuple of str
        Columns by which rows are divided; they are no features.
    groups : str or None
        The one of them that says which rows belong together.
    texts : tuple of str
        Columns of texts, for kernels of texts.
    weights : str or None
        Column of row weights.
    labelled : bool
        False for the table of a view, which has no label column.
    bare : bool
        True if the table may hold no features, since views hold them.
    sparse : bool
        True to keep the features of a sparse file sparse.
    """

    label: str | int | None = None
    id: str | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    of_splits: tuple[str, ...] = ()
    groups: str | None = None
    texts: tuple[str, ...] = ()
    weights: str | None = None
    labelled: bool = True
    bare: bool = False
    sparse: bool = False

    @classmethod
    def of(cls, spec: DatasetSpec, splits: SplitsSpec) -> ColumnChoice:
        """Return the choice of a data set's entry and its splits."""
        bare = any(view.file is not None or view.grams is not None for view in spec.views)
        return cls(
            spec.label,
            spec.id,
            spec.ignore,
            tuple(name for name in spec.categorical if name not in splits.columns),
            splits.columns,
            splits.groups,
            spec.texts,
            spec.weights,
            bare=bare,
            sparse=spec.sparse,
        )

    @classmethod
    def of_view(cls, view: ViewSpec, id: str | None) -> ColumnChoice:
        """Return the choice of a view's table, whose rows the column `id` names."""
        return cls(None, id, view.ignore, view.categorical, texts=view.texts, labelled=False)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Columns that are neither label nor features."""
        single = (name for name in (self.id, self.weights) if name is not None)
        return (*self.ignore, *single, *self.of_splits)

    def without_splits(self) -> ColumnChoice:
        """Return the choice without the columns by which rows are divided."""
        return replace(self, of_splits=(), groups=None)

    @property
    def other_roles(self) -> tuple[str, ...]:
        """Columns that are no features of numbers."""
        return self.left_out + self.categorical + self.texts

    def check_label_alone(self, where: str, *, arrays: bool = False) -> None:
        """Refuse the choice of columns other than the label, for sources that are no tables.

        Parameters
        ----------
        where : str
            The place to name in a message.
        arrays : bool
            True if the source holds named arrays: some may name or weigh rows, or be texts.

        Raises
        ------
        DataError
            Naming the key.
        """
        for key in ("ignore", "categorical", *(() if arrays else ("id", "texts", "weights"))):
            if getattr(self, key):
                raise DataError(
                    where,
                    f"{key}, but no table of columns",
                    f"no {key} for such a source",
                    f"Remove {key}, or give a .csv or .parquet file",
                )
        if self.of_splits:
            raise DataError(
                where,
                f"column {self.of_splits[0]!r} for [splits], but no table of columns",
                "a .csv or .parquet file",
                "Give other [splits] for this data set",
            )


@dataclass(frozen=True)
class ColumnRoles:
    """Positions of the columns of a table by their role.

    Parameters
    ----------
    names : tuple of str
        All columns.
    label : int or None
        The label column; None for the table of a view.
    label_said : str
        The label column and how it was chosen, in words.
    features : tuple of int
        Columns of numbers.
    categorical : tuple of int
        Columns of categories.
    of_splits : tuple of int
        Columns by which rows are divided.
    left_out : tuple of str
        Columns that are neither label nor features, in words.
    others : tuple of str
        The names of these.
    id : int or None
        The one of them that names the rows.
    texts : tuple of int
        Columns of texts.
    weights : int or None
        The column of row weights.
    row_names : str
        The column that names rows in predictions: that of `id`, else that of groups; empty without.
    """

    names: tuple[str, ...]
    label: int | None
    label_said: str
    features: tuple[int, ...]
    categorical: tuple[int, ...]
    of_splits: tuple[int, ...]
    left_out: tuple[str, ...]
    others: tuple[str, ...] = ()
    id: int | None = None
    texts: tuple[int, ...] = ()
    weights: int | None = None
    row_names: str = ""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        return tuple(self.names[position] for position in self.features)


def column_roles(names: Sequence[str], choice: ColumnChoice, where: str) -> ColumnRoles:
    """Return the role of each column of a table.

    Raises
    ------
    DataError
        If a named column is absent or has two roles, the label column is not clear, or no feature
        is left.
    """
    _check_named(names, choice, where)
    label, label_said = None, ""
    if choice.labelled:
        label = _label(names, choice, where)
        chosen = "by its name" if choice.label is None else f"by label = {_spelled(choice.label)}"
        label_said = f"column {names[label]!r}, chosen {chosen}"
    others = set(choice.other_roles)
    features = tuple(p for p, name in enumerate(names) if name not in others and p != label)
    if not features and not (choice.categorical or choice.texts or choice.bare):
        raise DataError(
            where, "no feature column", "at least one besides the label", "Ignore fewer columns"
        )
    uses = {} if choice.id is None else {choice.id: "names the rows"}
    uses |= dict.fromkeys(choice.ignore, "ignored")
    uses |= {} if choice.weights is None else {choice.weights: "weighs the rows"}
    uses |= dict.fromkeys(choice.of_splits, "divides the rows")
    return ColumnRoles(
        names=tuple(names),
        label=label,
        label_said=label_said,
        features=features,
        categorical=tuple(names.index(name) for name in choice.categorical),
        of_splits=tuple(names.index(name) for name in choice.of_splits),
        left_out=tuple(f"{name!r} ({use})" for name, use in uses.items()),
        others=tuple(uses),
        id=None if choice.id is None else list(names).index(choice.id),
        texts=tuple(names.index(name) for name in choice.texts),
        weights=None if choice.weights is None else list(names).index(choice.weights),
        row_names=choice.id or choice.groups or "",
    )


def _label(names: Sequence[str], choice: ColumnChoice, where: str) -> int:
    """Return the position of the label column, which has no other role."""
    candidates = [name for name in names if name not in choice.other_roles]
    label = label_position(names, choice.label, where, candidates)
    if names[label] in choice.other_roles:
        raise DataError(
            where,
            f"column {names[label]!r} as the label and in another role",
            "one role for each column",
            "Name it once",
        )
    return label


def check_names(names: Sequence[str], where: str, fewest: int = 2) -> None:
    """Raise unless a table has enough columns, each with a name of its own.

    Parameters
    ----------
    names : sequence of str
        The columns.
    where : str
        The place to name in a message.
    fewest : int
        Columns that it must have: a label and a feature, or, of new rows, a feature.

    Raises
    ------
    DataError
        For fewer columns, a column without a name, or a name that occurs twice.
    """
    if len(names) < fewest:
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
                f"no name of column {position + 1} of {len(names)}",
                "a name for every column",
                "Leave out row numbers (index=False in pandas), and remove separators at the ends "
                "of lines",
            )
    twice = [name for position, name in enumerate(names) if name in names[:position]]
    if twice:
        places = [str(i + 1) for i, name in enumerate(names) if name == twice[0]]
        raise DataError(
            where,
            f"the name {twice[0]!r} of columns {', '.join(places)}",
            "a name of its own for every column",
            "Rename or remove one of them",
        )


def label_position(
    names: Sequence[str],
    label: str | int | None,
    where: str,
    candidates: Iterable[str] | None = None,
) -> int:
    """Return the index of the label column.

    Parameters
    ----------
    names : sequence of str
        All columns of the table.
    label : str, int or None
        Name of the column, or its position from 0 (negative: from the end); None chooses the one
        that is called label, class, target, y, diagnosis or the like.
    where : str
        The place to name in a message.
    candidates : iterable of str, optional
        Columns that `label` None chooses from; by default all.

    Raises
    ------
    DataError
        If there is no such column; or if `label` is None and not exactly one column is called so.

    Examples
    --------
    >>> label_position(["class", "age"], None, "t.csv")
    0
    >>> label_position(["age", "disease"], "disease", "t.csv")
    1
    """
    if isinstance(label, int):
        if not -len(names) <= label < len(names):
            raise DataError(
                where,
                f"label = {label}, but {pluralize(len(names), 'column')}",
                f"a position from {-len(names)} to {len(names) - 1}, or a column's name",
                _columns(names),
            )
        return label % len(names)
    if label is not None:
        if label not in names:
            hint = nearest(label, names) or _columns(names)
            raise DataError(where, f"no column {label!r}", "the name of the label column", hint)
        return list(names).index(label)
    possible = list(names if candidates is None else candidates)
    likely = [name for name in possible if name.casefold() in LABEL_NAMES]
    if len(likely) != 1:
        found = f"no label, and no column that is called {LABEL_WORDS}"
        if likely:
            found = f"no label, and columns {' and '.join(map(repr, likely))}"
        listed = likely or possible[-1:] + possible[:-1]
        raise DataError(
            where,
            found,
            "the name of the label column",
            f"Set label = one of {truncate([repr(name) for name in listed], SHOWN)}",
        )
    return list(names).index(likely[0])


def _check_named(names: Sequence[str], choice: ColumnChoice, where: str) -> None:
    """Refuse named columns that the table does not have, or that have two roles."""
    named = [
        *(("ignore", name) for name in choice.ignore),
        *(("categorical", name) for name in choice.categorical),
        *(("texts", name) for name in choice.texts),
        *(("id", name) for name in (choice.id,) if name is not None),
        *(("weights", name) for name in (choice.weights,) if name is not None),
    ]
    for name in choice.of_splits:
        if name not in names:
            hint = nearest(name, names) or _columns(names)
            raise DataError(f"{where}: splits", f"no column {name!r}", "names of columns", hint)
    seen: dict[str, str] = {}
    for key, name in named:
        if name not in names:
            hint = nearest(name, names) or _columns(names)
            raise DataError(f"{where}: {key}", f"no column {name!r}", "names of columns", hint)
        if name in seen:
            found = f"column {name!r} in {seen[name]} and in {key}"
            if seen[name] == key:
                found = f"column {name!r} twice in {key}"
            raise DataError(where, found, "one role for each column", "Name it once")
        seen[name] = key


def _columns(names: Sequence[str]) -> str:
    return f"Choose one of the columns {truncate(names, SHOWN)}"


def _spelled(label: str | int) -> str:
    return f'"{label}"' if isinstance(label, str) else str(label)
