"""Published numbers that results reproduce, experiment by experiment, and their shares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mkldist.analysis.conclusion import Conclusion
from mkldist.analysis.explanations import Explanation, explanation_of
from mkldist.analysis.outcomes import Outcome
from mkldist.analysis.published import Cell, beside
from mkldist.analysis.published_number import Published
from mkldist.analysis.setting_ranges import SettingRange
from mkldist.spec.changes import changes
from mkldist.spec.load import load_sweep
from mkldist.spec.model import SweepSpec


@dataclass(frozen=True)
class Experiment:
    """A published experiment and what its sweep found.

    Parameters
    ----------
    name : str
        Name of the sweep.
    complete, n_runs : int
        Complete runs, and all of its results; 0 if it was not run.
    cells : tuple of Cell
        Its published numbers with ours; none if it was not run.
    n_published : int
        How many numbers are published.
    changes : tuple of str
        What ran other than the sweep's file says.
    ranges : tuple of SettingRange
        For each of `cells`, what all settings give.
    """

    name: str
    complete: int
    n_runs: int
    cells: tuple[Cell, ...]
    n_published: int
    changes: tuple[str, ...] = ()
    ranges: tuple[SettingRange, ...] = ()

    @property
    def compared(self) -> list[Cell]:
        """Cells with a number of ours."""
        return [cell for cell in self.cells if cell.n_splits]


def has_verdict(cell: Cell) -> bool:
    """Return True if a number can be within ± or outside.

    One of a single split for which no ± is published cannot, unless it is the published one.
    """
    return cell.published.sd > 0.0 or cell.n_splits > 1 or is_within(cell)


def is_within(cell: Cell) -> bool:
    """Return True if our mean is within the published ±, or within ours where none is published.

    A mean that is the published one is within, also where no deviation is known.
    """
    sd = cell.published.sd if cell.published.sd > 0.0 else cell.sd
    return cell.mean == cell.published.mean or abs(cell.mean - cell.published.mean) <= sd


def within(cells: Iterable[Cell], *, published: bool) -> tuple[int, int]:
    """Return how many numbers lie within ±, and of how many.

    Parameters
    ----------
    cells : iterable of Cell
        Published numbers with ours.
    published : bool
        True for the published ±, of the numbers that have one; False for our own standard deviation
        over the splits, of the others that have a verdict.
    """
    own = [cell for cell in cells if (cell.published.sd > 0.0) == published and has_verdict(cell)]
    return sum(is_within(cell) for cell in own), len(own)


class DataFacts(NamedTuple):
    """Numbers whose data may not be those of the paper, each with the fact that shows it.

    Parameters
    ----------
    other : sequence of Explanation
        Numbers whose data are others.
    unstated : sequence of Explanation
        Numbers of which the paper does not say by which points of a data set they are.
    """

    other: Sequence[Explanation] = ()
    unstated: Sequence[Explanation] = ()


class CellsByData(NamedTuple):
    """Numbers by what is known of their data.

    Parameters
    ----------
    own : list of Cell
        Those of the papers' data.
    unstated, other : dict of str to list of Cell
        Those whose points no paper states, and those of other data, by fact.
    """

    own: list[Cell]
    unstated: dict[str, list[Cell]]
    other: dict[str, list[Cell]]


def by_data(cells: Iterable[Cell], facts: DataFacts) -> CellsByData:
    """Divide numbers by what is known of their data: none is counted twice.

    Parameters
    ----------
    cells : iterable of Cell
        Published numbers with ours.
    facts : DataFacts
        Numbers whose data may not be those of the paper.
    """
    found = CellsByData([], {}, {})
    for cell in cells:
        if fact := explanation_of(cell.published, facts.other):
            found.other.setdefault(fact, []).append(cell)
        elif fact := explanation_of(cell.published, facts.unstated):
            found.unstated.setdefault(fact, []).append(cell)
        else:
            found.own.append(cell)
    return found


def experiments(
    outcomes: Mapping[str, Outcome],
    published: Sequence[Published],
    conclusions: Sequence[Conclusion],
    files: Mapping[str, SweepSpec],
) -> list[Experiment]:
    """Return the experiments that numbers and conclusions name, run or not, and all that ran."""
    names = {*outcomes, *(one.experiment for one in published)}
    names |= {one.experiment for one in conclusions}
    return [
        _experiment(name, outcomes.get(name), published, files.get(name))
        for name in sorted(names - {""})
    ]


def _experiment(
    name: str, outcome: Outcome | None, published: Sequence[Published], file: SweepSpec | None
) -> Experiment:
    own = [one for one in published if one.experiment == name]
    if outcome is None:
        return Experiment(name, 0, 0, (), len(own))
    numbers = [outcome.number(one) for one in own]
    return Experiment(
        name,
        outcome.complete,
        outcome.n_runs,
        tuple(beside(one, number.ours) for one, number in zip(own, numbers, strict=True)),
        len(own),
        tuple(changes(file, load_sweep(outcome.spec))) if file else (),
        tuple(number.settings for number in numbers),
    )
