"""Numbers and texts that a run reports, under the names of their variables in the tree."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from mkldist.core.arrays import Array
from mkldist.results.run_record import RunRecord
from mkldist.results.schema import (
    BUILD_TIMES,
    CHOSEN_KERNEL,
    CLASS,
    NOT_SCALARS,
    ON_FACTORS,
    PROBABILITY_SCORES,
    STATIONARITY_OF,
    UNLABELLED_PROBABILITY_SCORES,
    Variable,
)
from mkldist.results.state import RunState

OF_CLASS = f"class_{CHOSEN_KERNEL.name}"
_OWN = (
    *PROBABILITY_SCORES,
    *UNLABELLED_PROBABILITY_SCORES,
    CHOSEN_KERNEL,
    STATIONARITY_OF,
    *ON_FACTORS,
)
_KNOWN = {variable.name: variable for variable in _OWN}
_ELSEWHERE = (CHOSEN_KERNEL.name, *(time.name for time in BUILD_TIMES))
"""Numbers of records that are no scalars of runs in the tree."""


@cache
def reported(name: str) -> Variable:
    """Return the variable of a reported scalar or text that not every node has."""
    plain = Variable(name, "1", f"{name.replace('_', ' ')}, as the run reported it")
    return _KNOWN.get(name, plain)


@cache
def reported_of_classes(name: str) -> Variable:
    """Return the variable of a scalar or text that is reported for each class."""
    if name == OF_CLASS:
        return replace(CHOSEN_KERNEL.of_each_class, name=name)
    return replace(reported(name), dims=(CLASS,))


def scalars(record: RunRecord) -> dict[str, float]:
    """Return the scalars that a run reported, by the names that it gave them.

    :func:`admissible` makes names of variables of these.
    """
    values: dict[str, float] = {
        **record.extra, **record.counters, **record.times, **record.scores,
    }  # fmt: skip
    for name in _ELSEWHERE:
        values.pop(name, None)
    if "own_seconds" in values and "pass_seconds" in values:
        values["seconds"] = values["own_seconds"] + values["pass_seconds"]
    if record.state is RunState.COMPLETE:
        values["bias"] = record.bias
        values["objective"] = record.objective
        values["dual_objective"] = record.dual_objective
        values["gap"] = record.gap
        values["active_kernels"] = record.n_active
        values["nonzero_kernels"] = record.n_nonzero
    return values


def chosen_kernel(record: RunRecord, names: Sequence[str] | Array) -> str:
    """Return the name of the kernel that a run chose; empty if its method chooses none."""
    position = record.extra.get(CHOSEN_KERNEL.name, -1.0)
    return str(names_at(np.array([position]), names)[0])


def names_at(positions: Array, names: Sequence[str] | Array) -> Array:
    """Return the names of kernels, as text objects; empty for NaN and negative positions.

    Parameters
    ----------
    positions : float64 or int64 array
        Positions of kernels in their bank.
    names : sequence or array of str
        Names of its kernels; empty for a bank whose kernels have no names in the tree, which
        then are called by their positions.
    """
    known = np.nan_to_num(np.asarray(positions, dtype=np.float64), nan=-1.0).astype(np.intp)
    different, where = np.unique(known, return_inverse=True)
    texts = np.empty(len(different), dtype=object)
    for place, at in enumerate(different.tolist()):
        texts[place] = "" if at < 0 else str(names[at] if len(names) else at)
    return texts[where].reshape(known.shape)


def admissible(name: str, taken: Collection[str]) -> str:
    """Return a valid name for a reported scalar that clashes with no other variable.

    Parameters
    ----------
    name : str
        The name that runs gave it.
    taken : collection of str
        Names of the dims and coordinates of the node of the runs.
    """
    plain = re.sub(r"\W", "_", name)
    return f"reported_{plain}" if plain in NOT_SCALARS or plain in taken else plain
