"""Explanations of numbers that results do not reproduce, and what was tried, as data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from mkldist.analysis.published import named_rows
from mkldist.analysis.published_number import Published
from mkldist.errors import DataError

COLUMNS = ("experiment", "data set", "method", "metric", "explanation")
OURS = "ours"
DIRECTIONS = ("", "higher", "lower")


@dataclass(frozen=True)
class Explanation:
    """Why published numbers and ours differ, a row of a file.

    Parameters
    ----------
    experiment, dataset, method, metric : str
        The numbers, as in :class:`~mkldist.analysis.published.Published`; ``*`` stands for any.
    words : str
        What was tried, and what came out.
    line : str
        Its place in the file, for messages.
    ours : str
        ``"higher"`` or ``"lower"``: it explains why ours is so; empty for both.
    """

    experiment: str
    dataset: str
    method: str
    metric: str
    words: str
    line: str
    ours: str = ""

    def covers(self, number: Published, mean: float = math.nan) -> bool:
        """Return True if it is about a published number, and the direction of our mean if given."""
        opposite = {"higher": mean < number.mean, "lower": mean > number.mean}
        if opposite.get(self.ours, False):
            return False
        pairs = (
            (self.experiment, number.experiment),
            (self.dataset, number.dataset),
            (self.method, number.method),
            (self.metric, number.metric),
        )
        return all(fnmatchcase(name, pattern) for pattern, name in pairs)


def read_explanations(path: Path, published: Sequence[Published]) -> list[Explanation]:
    """Read explanations from a CSV file with the columns :data:`COLUMNS`; none without the file.

    A further column ``ours`` may say for which deviation: ``higher``, ``lower``, or empty for both.

    Raises
    ------
    mkldist.errors.DataError
        If the file cannot be read, or an explanation has no words, is about no number or has
        another direction.
    """
    if not path.exists():
        return []
    found = [_explanation(row, place) for place, row in named_rows(path, COLUMNS)]
    for one in found:
        if one.ours not in DIRECTIONS:
            raise DataError(f"{one.line}, column {OURS!r}", repr(one.ours), "higher, lower or none")
        if not one.words:
            raise DataError(f"{one.line}, column 'explanation'", "nothing", "what was tried")
        if not any(map(one.covers, published)):
            keys = f"{one.experiment}, {one.dataset}, {one.method}, {one.metric}"
            hint = "Names are those of the results; * stands for any"
            raise DataError(one.line, keys, "experiment, ... of a published number", hint)
    return found


def _explanation(row: Mapping[str, str], place: str) -> Explanation:
    experiment, dataset, method, metric, words = (row[name] for name in COLUMNS)
    return Explanation(experiment, dataset, method, metric, words, place, row.get(OURS, ""))


def explanation_of(
    number: Published, explanations: Iterable[Explanation], mean: float = math.nan
) -> str:
    """Return the words of the first explanation that is about a number, empty without one.

    Parameters
    ----------
    number : Published
        The number.
    explanations : iterable of Explanation
        Explanations, the special ones first.
    mean : float
        Ours: explanations of the other direction do not count.
    """
    return next((one.words for one in explanations if one.covers(number, mean)), "")
