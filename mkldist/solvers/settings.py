"""Settings of a run as plain values: the form in which ids, records and workers know parameters.

A run's id hashes its settings, its record stores them, and its worker makes parameters of them
again.  All three are JSON, which has no infinity.  This module says what infinity means:

* infinity stands for "no limit", and only a parameter whose default is infinity takes it
  (:class:`mkldist.solvers.solver_params.SolverParams` refuses it elsewhere);
* :func:`plain_settings` leaves such a parameter out;
* a parameter that is left out is infinite: a worker gets its default, and :func:`setting` reads
  it back.

A parameter whose default is None, which stands for "not used", is left out in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkldist.solvers.solver_params import SolverParams


def plain_settings(params: SolverParams) -> dict[str, Any]:
    """Return the parameters of a run as JSON values, without those at infinity or None.

    Examples
    --------
    >>> from mkldist.solvers.solver_params import SolverParams
    >>> plain_settings(SolverParams(tol=0.1))
    {'tol': 0.1, 'max_iter': 500, 'trace': False}
    """
    values = params.model_dump(mode="json")
    return {name: value for name, value in values.items() if value not in (math.inf, None)}


def setting(settings: Mapping[str, Any], name: str) -> Any:
    """Return one parameter of a run's plain settings; infinity where it is left out.

    Examples
    --------
    >>> setting({"tol": 0.1, "max_iter": 500, "trace": False}, "time_limit")
    inf
    """
    return settings.get(name, math.inf)
