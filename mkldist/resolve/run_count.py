"""Check that the runs of a sweep fit into memory, before they are planned."""

from __future__ import annotations

from collections.abc import Mapping

from mkldist.planning.facts import DatasetFacts
from mkldist.solvers.parameters import MethodGrid
from mkldist.spec.model import SweepSpec
from mkldist.spec.sizes import check_fits

RUN_BYTES = 2000  # of a run in a plan, while the plan is made


def check_number_of_runs(
    spec: SweepSpec,
    facts: Mapping[str, DatasetFacts],
    grids: Mapping[str, Mapping[str, MethodGrid]],
) -> None:
    """Refuse more runs than a plan can hold in half of this machine's memory.

    Parameters
    ----------
    spec : SweepSpec
        The sweep.
    facts : mapping of str to DatasetFacts
        Facts by data set.
    grids : mapping of str to mapping of str to MethodGrid
        Settings by data set and the method's key; those of a search have bounds of their own.

    Raises
    ------
    mkldist.errors.SpecError
        With the number of runs.
    """
    n_settings = {
        dataset: sum(
            len(own[method.key].points)
            for method in spec.methods
            for bank in spec.sized_banks
            if method.runs_on(bank) and not own[method.key].is_open
        )
        for dataset, own in grids.items()
    }
    n_runs = sum(facts[dataset].n_splits * n_settings[dataset] for dataset in facts)
    check_fits(n_runs, RUN_BYTES, "methods", "runs", "Lower splits.repeats, or give fewer values")
