"""Columns of categories as features: one for each category, 1 where a row has it and else 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mkldist.core.arrays import Floats
from mkldist.core.wording import pluralize
from mkldist.data.missing import MISSING_VALUES
from mkldist.data.raw import check_fits
from mkldist.errors import DataError

MISSING = "?"


@dataclass(frozen=True, eq=False)
class Encoded:
    """Features of numbers and, after them, of categories.

    Parameters
    ----------
    x : (n, d) float64
        The features.
    names : tuple of str
        d names, such as ``colour=red``.
    groups : dict of str to tuple of int
        The features of each column of categories, by the column's name.
    said : tuple of str
        The columns of categories and their numbers of features, in words.
    categories : dict of str to tuple of str
        The categories of each column, in the order of their features.
    """

    x: Floats
    names: tuple[str, ...]
    groups: dict[str, tuple[int, ...]]
    said: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]


def encoded(
    x: Floats, names: Sequence[str], columns: Mapping[str, Sequence[str]], where: str
) -> Encoded:
    """Append one feature for each category of each column.

    Categories are in the order of numbers if all are numbers, else in alphabetical order.  A
    missing value is a category of its own, ``?``, the last.

    Parameters
    ----------
    x : (n, d) float64
        Features of numbers.
    names : sequence of str
        Their names.
    columns : mapping of str to sequence of str
        n texts by the name of their column.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If every row of a column has a category of its own, or the features do not fit into memory.

    Examples
    --------
    >>> found = encoded(np.zeros((4, 1)), ["age"], {"size": ["10", "", "9", "9"]}, "t.csv")
    >>> found.names
    ('age', 'size=9', 'size=10', 'size=?')
    >>> found.x[:, 1:].tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    blocks, all_names = [x], list(names)
    groups, said, known = {}, [], {}
    for name, texts in columns.items():
        block, categories = _indicators(name, texts, where)
        first = len(all_names)
        all_names += [f"{name}={category}" for category in categories]
        groups[name] = tuple(range(first, len(all_names)))
        blocks.append(block)
        known[name] = tuple(categories)
        said.append(f"{name!r} as {pluralize(len(categories), 'feature')}")
    joined = x if len(blocks) == 1 else np.column_stack(blocks)
    return Encoded(joined, tuple(all_names), groups, tuple(said), known)


def as_categories(texts: Sequence[str]) -> list[str]:
    """Return texts as names of categories: ``?`` for a missing value.

    Examples
    --------
    >>> as_categories(["red", "", "NA"])
    ['red', '?', '?']
    """
    return [MISSING if text.casefold() in MISSING_VALUES else text for text in texts]


def _indicators(name: str, texts: Sequence[str], where: str) -> tuple[Floats, list[str]]:
    """Return the indicators of a column, (n, k), and its k categories."""
    found, numbers = np.unique(np.array(as_categories(texts)), return_inverse=True)
    categories = [str(category) for category in found]
    if len(categories) == len(texts) > 1:
        raise DataError(
            f"{where}, column {name!r}",
            f"a category of its own in each of {len(texts)} rows",
            "categories that several rows share",
            f'Set id = "{name}" if it names the rows, texts = ["{name}"] for kernels of texts, or '
            f'ignore = ["{name}"]',
        )
    check_fits(8 * len(texts) * len(categories), where, f'Set ignore = ["{name}"]')
    order = sorted(range(len(categories)), key=_order(categories))
    place = np.argsort(order)
    indicators = np.zeros((len(texts), len(categories)))
    indicators[np.arange(len(texts)), place[numbers]] = 1.0
    return indicators, [categories[position] for position in order]


def _order(categories: Sequence[str]) -> Callable[[int], tuple[bool, float]]:
    """Return the key that sorts positions of categories, those of the missing value last."""
    try:
        values = [0.0 if text == MISSING else float(text) for text in categories]
    except ValueError:
        values = [float(position) for position in range(len(categories))]
    return lambda position: (categories[position] == MISSING, values[position])
