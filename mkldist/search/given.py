"""Settings whose C the solutions of another method give, run by run.

SpicyMKL at C with the hinge loss and the block-1 norm has the solution of Level and its kin at
``sum_m ||f_m|| / C``, Eq. (6) of Suzuki & Tomioka 2011.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from mkldist.methods.registry import METHODS
from mkldist.planning.model import Place, Proposal, RunPlan
from mkldist.results.records import RecordStore
from mkldist.results.state import RunState
from mkldist.solvers.parameters import MethodGrid
from mkldist.solvers.settings import setting
from mkldist.spec.source import GIVEN, SOURCE_PREFIX

DIGITS = 6  # of a given C: tables can show it, and rounding elsewhere seldom changes it


@dataclass(frozen=True)
class Taker:
    """A method on one split of one data set and bank that takes its C from another.

    Parameters
    ----------
    place : Place
        Place of its runs.
    grid : MethodGrid
        Its settings, without C.
    """

    place: Place
    grid: MethodGrid

    @property
    def source(self) -> Place:
        """Place of the runs that give it C."""
        dataset, bank, _, split = self.place
        return dataset, bank, self.grid.source, split

    def proposals(
        self, sources: Iterable[RunPlan], given: Mapping[str, float]
    ) -> Iterator[Proposal]:
        """Yield its runs: every setting at the C that each run of the other method gives.

        Parameters
        ----------
        sources : iterable of RunPlan
            The runs of the other method.
        given : mapping of str to float
            C by the id of such a run; NaN where it gives none.
        """
        for run in sources:
            if math.isnan(given[run.id]):
                continue
            at = {
                name: setting(run.params, name.removeprefix(SOURCE_PREFIX))
                for name in self.grid.dims
                if name.startswith(SOURCE_PREFIX)
            }
            for own in self.grid.settings:
                yield Proposal(own | {GIVEN: given[run.id]}, at, source=run.id)


def given_C(run: RunPlan, store: RecordStore) -> float | None:
    """Return the C that a run gives; NaN if it failed or has no kernel, None unless recorded.

    Parameters
    ----------
    run : RunPlan
        The run.
    store : RecordStore
        The records.
    """
    record = store.read(run.id)
    if record is None:
        return None
    if record.state is not RunState.COMPLETE:
        return math.nan
    C = METHODS[run.method].params(**run.params).given_C(record.extra)
    return float(f"{C:.{DIGITS}g}") if C > 0.0 else math.nan
