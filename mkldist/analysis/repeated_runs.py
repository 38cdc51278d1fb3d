"""Results of one sweep that was run twice: how many runs are equal, how far the others are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mkldist.analysis.equal_settings import certificates_apart
from mkldist.core.arrays import Bools, Floats
from mkldist.core.metrics import default_metric
from mkldist.results.rows import to_frame
from mkldist.results.schema import COORDINATES, SPLIT, STATE, RunState

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

CERTIFICATE = ("objective", "dual_objective")
LOSSES = tuple(
    default_metric(task).variable(part)
    for task in ("classification", "regression")
    for part in ("test", "unlabelled")
)
_OF_SPLITS = {variable.name for variable in COORDINATES}


@dataclass(frozen=True)
class Agreement:
    """How far two results of one sweep agree.

    Parameters
    ----------
    n_runs : int
        Runs that are complete in both.
    n_equal : int
        Those whose objective, lower bound and losses are equal to the bit.
    contradictions : tuple of str
        Those whose intervals from lower bound to objective have no point in common, so that one of
        the two certificates is wrong.
    n_alone : tuple of (int, int)
        Runs that are complete in the first, in the second alone.
    objective_difference : float
        Largest difference of the objectives, relative to the larger one; NaN without objectives.
    loss_differences : dict of str to float
        Largest absolute difference of each loss, such as ``test_error``.
    """

    n_runs: int
    n_equal: int
    contradictions: tuple[str, ...] = ()
    n_alone: tuple[int, int] = (0, 0)
    objective_difference: float = math.nan
    loss_differences: dict[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """True if both have the same runs, and no certificates contradict each other."""
        return not self.contradictions and self.n_alone == (0, 0)


def agreement(first: xr.DataTree, second: xr.DataTree) -> Agreement:
    """Compare the runs of a sweep with those of the same sweep, run again on the same data.

    Solvers stop at a tolerance, so that other versions and processors may give other objectives.
    Each run certifies an interval that holds the optimum, from its lower bound to its objective.
    The intervals of two runs for one problem must therefore have a point in common.

    Parameters
    ----------
    first, second : xarray.DataTree
        As :func:`mkldist.open_results` returns them.

    Examples
    --------
    >>> import mkldist
    >>> trees = [mkldist.open_results(f"results/{name}") for name in ("a", "b")]  # doctest: +SKIP
    >>> mkldist.analysis.agreement(*trees).objective_difference  # doctest: +SKIP
    """
    frames = [_complete(tree) for tree in (first, second)]
    keys = [name for name in frames[0].columns if name in frames[1].columns]
    keys = keys[: keys.index(STATE.name)]
    both = frames[0].merge(frames[1], on=keys, suffixes=("", " again"))
    apart, disjoint = certificates_apart(*(_pair(both, name) for name in CERTIFICATE))
    compared = [name for name in (*CERTIFICATE, *LOSSES) if name in both]
    equal = np.ones(len(both), dtype=bool)
    for name in compared:
        equal &= _same(*_pair(both, name))
    return Agreement(
        n_runs=len(both),
        n_equal=int(equal.sum()),
        contradictions=tuple(_name(row) for row in both[keys][disjoint].to_dict("records")),
        n_alone=(len(frames[0]) - len(both), len(frames[1]) - len(both)),
        objective_difference=_largest(apart),
        loss_differences={
            name: _largest(np.abs(np.subtract(*_pair(both, name))))
            for name in compared
            if name in LOSSES
        },
    )


def _complete(tree: xr.DataTree) -> pd.DataFrame:
    """Return the identity, the certificate and the losses of the complete runs."""
    rows = to_frame(tree, (STATE.name, *CERTIFICATE, *LOSSES))
    return rows[rows[STATE.name] == RunState.COMPLETE.value]


def _pair(both: pd.DataFrame, name: str) -> tuple[Floats, Floats]:
    """Return a variable of both results, NaN where one lacks it."""
    first, second = (
        both[column].to_numpy(np.float64) if column in both else np.full(len(both), math.nan)
        for column in (name, f"{name} again")
    )
    return first, second


def _same(first: Floats, second: Floats) -> Bools:
    same: Bools = (first == second) | (np.isnan(first) & np.isnan(second))
    return same


def _largest(differences: Floats) -> float:
    known = differences[~np.isnan(differences)]
    return float(known.max()) if len(known) else math.nan


def _name(row: dict[object, object]) -> str:
    """Return the place of a run in words: data set, bank, method, split and hyperparameters."""
    place = "/".join(str(row.pop(name)) for name in ("dataset", "bank", "method"))
    known = {name: row[name] for name in row if name == SPLIT or name not in _OF_SPLITS}
    given = [f"{name} {value}" for name, value in known.items() if value == value]  # NaN differs
    return ", ".join([place, *given])
