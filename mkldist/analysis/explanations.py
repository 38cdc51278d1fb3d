"""Explanations of numbers that results do not reproduce, and what was tried, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from mkldist.analysis.published import Published, named_rows
from mkldist.errors import DataError

COLUMNS = ("experiment", "data set", "method", "metric", "explanation")


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
    """

    experiment: str
    dataset: str
    method: str
    metric: str
    words: str
    line: str

    def covers(self, number: Published) -> bool:
        """Return True if it is about a published number."""
        pairs = (
            (self.experiment, number.experiment),
            (self.dataset, number.dataset),
            (self.method, number.method),
            (self.metric, number.metric),
        )
        return all(fnmatchcase(name, pattern) for pattern, name in pairs)


def read_explanations(path: Path, published: Sequence[Published]) -> list[Explanation]:
    """Read explanations from a CSV file with the columns :data:`COLUMNS`; none without the file.

    Parameters
    ----------
    path : Path
        The file.
    published : sequence of Published
        The numbers that may be explained.

    Raises
    ------
    mkldist.errors.DataError
        If the file cannot be read, or an explanation has no words or is about no number.
    """
    if not path.exists():
        return []
    found = [_explanation(row, place) for place, row in named_rows(path, COLUMNS)]
    for one in found:
        if not one.words:
            raise DataError(f"{one.line}, column 'explanation'", "nothing", "what was tried")
        if not any(map(one.covers, published)):
            keys = f"{one.experiment}, {one.dataset}, {one.method}, {one.metric}"
            hint = "Names are those of the results; * stands for any"
            raise DataError(one.line, keys, "experiment, ... of a published number", hint)
    return found


def _explanation(row: Mapping[str, str], place: str) -> Explanation:
    experiment, dataset, method, metric, words = (row[name] for name in COLUMNS)
    return Explanation(experiment, dataset, method, metric, words, place)


def explanation_of(number: Published, explanations: Iterable[Explanation]) -> str:
    """Return the words of the first explanation that is about a number, empty without one."""
    return next((one.words for one in explanations if one.covers(number)), "")
