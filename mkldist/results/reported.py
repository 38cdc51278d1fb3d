"""Numbers and texts that a run reports, under the names of their variables in the tree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from mkldist.arrays import Array
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


def reported(name: str) -> Variable:
    """Return the variable of a reported scalar or text that not every node has."""
    plain = Variable(name, "1", f"{name.replace('_', ' ')}, as the run reported it")
    return _KNOWN.get(name, plain)


def reported_of_classes(name: str) -> Variable:
    """Return the variable of a scalar or text that is reported for each class."""
    if name == OF_CLASS:
        return replace(CHOSEN_KERNEL.of_each_class, name=name)
    return replace(reported(name), dims=(CLASS,))


def scalars(record: RunRecord, dims: Iterable[str] = ()) -> dict[str, float]:
    """Return the scalars that a run reported, by the name of their variable.

    Parameters
    ----------
    record : RunRecord
        The run.
    dims : iterable of str, optional
        Names of the hyperparameters of the run's node, which no scalar may take.
    """
    taken = NOT_SCALARS | {*dims}
    given = {**record.extra, **record.counters, **record.times, **record.scores}
    for name in (CHOSEN_KERNEL.name, *(time.name for time in BUILD_TIMES)):
        given.pop(name, None)
    values = {_admissible(name, taken): float(value) for name, value in given.items()}
    if {"own_seconds", "pass_seconds"} <= record.times.keys():
        values["seconds"] = record.times["own_seconds"] + record.times["pass_seconds"]
    if record.state is RunState.COMPLETE:
        values |= {
            "bias": record.bias,
            "objective": record.objective,
            "dual_objective": record.dual_objective,
            "gap": record.gap,
            "active_kernels": float(record.n_active),
            "nonzero_kernels": float(record.n_nonzero),
        }
    return values


def chosen_kernel(record: RunRecord, names: Sequence[str]) -> str:
    """Return the name of the kernel that a run chose; empty if its method chooses none."""
    position = record.extra.get(CHOSEN_KERNEL.name, -1.0)
    return str(names_at(np.array([position]), names)[0])


def names_at(positions: Array, names: Sequence[str]) -> Array:
    """Return the names of kernels, as text objects; empty for NaN and negative positions.

    Parameters
    ----------
    positions : float64 or int64 array
        Positions of kernels in their bank.
    names : sequence of str
        Names of its kernels; empty for a bank whose kernels have no names in the tree, which
        then are called by their positions.
    """
    known = np.nan_to_num(np.asarray(positions, dtype=np.float64), nan=-1.0).astype(np.intp)
    different, where = np.unique(known, return_inverse=True)
    texts = np.empty(len(different), dtype=object)
    for place, at in enumerate(different.tolist()):
        texts[place] = "" if at < 0 else names[at] if len(names) else str(at)
    return texts[where].reshape(known.shape)


def _admissible(name: str, taken: frozenset[str] | set[str]) -> str:
    """Return a valid name for a reported scalar that clashes with no other variable."""
    plain = _plain(name)
    return f"reported_{plain}" if plain in taken else plain


@lru_cache(maxsize=1024)  # every run reports the same names
def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)
