"""Every variable of the results: name, dims, dtype, units and meaning, in one place.

A node ``/<dataset>/<method>`` (``/<dataset>/<bank>/<method>`` in a sweep of several banks) holds
one value per run in variables of dims ``(split, *hyperparameters)``, and one vector per run in
those with a further dim ``kernel`` or ``sample``.  What a run has not reported (yet) is NaN, or
an empty string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mkldist.errors import StoreError
from mkldist.results.run_record import ACTIVE_THRESHOLD, RunRecord
from mkldist.results.state import RunState

if TYPE_CHECKING:
    import xarray as xr

LAYOUT_VERSION = 1
GAP_DEFINITION = (
    "gap = max(objective - dual_objective, 0) / |objective|; objective is the primal value of the "
    "returned point and dual_objective a lower bound of the optimum, both in float64"
)
SPLIT, KERNEL, SAMPLE, LABEL = "split", "kernel", "sample", "label"


@dataclass(frozen=True)
class Variable:
    """One variable of a method's node.

    Parameters
    ----------
    name : str
        Its name.
    units : str
        Its units as UDUNITS writes them; ``"1"`` for a pure number, empty for text.
    description : str
        What it means.
    dtype : str
        ``"float64"`` or ``"string"``.
    dim : str
        Its dim after those of the runs: ``"kernel"``, ``"sample"``, or empty.
    fill : str
        What text stands for a run without an outcome.
    """

    name: str
    units: str
    description: str
    dtype: str = "float64"
    dim: str = ""
    fill: str = ""

    @property
    def attributes(self) -> dict[str, str]:
        """Attributes by which the variable explains itself."""
        units = {"units": self.units} if self.units else {}
        return {"long_name": self.description, **units}


STATE = Variable(
    "state",
    "",
    "state of the run: " + ", ".join(RunState),
    "string",
    fill=RunState.WAITING.value,
)
RUN_ID = Variable("run_id", "", "content hash that names the run and its record", "string")
WEIGHTS = Variable(
    "kernel_weights", "1", "weight of each kernel of the bank, normalised as asked", dim=KERNEL
)
DECISION_VALUES = Variable(
    "decision_values", "1", "decision function at the test rows; NaN at training rows", dim=SAMPLE
)
TEXTS = (
    Variable("stop_reason", "", "why the solver returned", "string"),
    Variable("error", "", "why the run failed; empty for any other", "string"),
)
SCALARS = (
    Variable("test_error", "1", "fraction of misclassified test rows"),
    Variable("balanced_error", "1", "mean over the classes of the fraction misclassified"),
    Variable("auc", "1", "area under the ROC curve of the test rows"),
    Variable("objective", "1", "primal value of the method's objective, an upper bound"),
    Variable("dual_objective", "1", "lower bound of the optimum"),
    Variable("gap", "1", "relative duality gap"),
    Variable("active_kernels", "1", f"number of kernels with weight > {ACTIVE_THRESHOLD:g}"),
    Variable("nonzero_kernels", "1", "number of kernels with weight other than 0"),
    Variable("bias", "1", "intercept of the decision function"),
    Variable("wall_seconds", "s", "start to end, work for other runs of the batch included"),
    Variable("cpu_seconds", "s", "processor time of the solver's own code"),
    Variable("own_seconds", "s", "wall time of the solver's own code"),
    Variable("pass_seconds", "s", "the run's share of the passes over the bank"),
    Variable("outer_iterations", "1", "outer iterations"),
    Variable("svm_solves", "1", "support vector machines solved"),
    Variable("svm_iterations", "1", "iterations of the support vector machines"),
    Variable("newton_steps", "1", "inner Newton steps"),
    Variable("passes", "1", "full passes over the bank asked for"),
    Variable("combines", "1", "combined Gram matrices asked for"),
)
_BY_NAME = {v.name: v for v in (STATE, RUN_ID, WEIGHTS, DECISION_VALUES, *TEXTS, *SCALARS)}
RESERVED = frozenset({*_BY_NAME, SPLIT, KERNEL, SAMPLE, LABEL})


def node_variables(*, weights: bool, predictions: bool) -> tuple[Variable, ...]:
    """Return the variables of every method's node of a sweep, in the order in which they stand."""
    vectors = ((WEIGHTS,) if weights else ()) + ((DECISION_VALUES,) if predictions else ())
    return (STATE, *SCALARS, *TEXTS, RUN_ID, *vectors)


def reported(name: str) -> Variable:
    """Return the variable of a scalar that some method or score reports beyond the schema's."""
    return Variable(name, "1", f"{name.replace('_', ' ')}, as the run reported it")


def scalars(record: RunRecord, dims: Iterable[str] = ()) -> dict[str, float]:
    """Return the scalar variables of a run by name; only what it reported.

    Parameters
    ----------
    record : RunRecord
        The run.
    dims : iterable of str, optional
        Names that are taken by hyperparameters of the run's node.
    """
    taken = {*dims, SPLIT, KERNEL, SAMPLE, LABEL, STATE.name, RUN_ID.name}
    taken |= {v.name for v in TEXTS} | {WEIGHTS.name, DECISION_VALUES.name}
    given = {**record.extra, **record.counters, **record.times, **record.scores}
    values = {_admissible(name, taken): float(value) for name, value in given.items()}
    if record.state is RunState.COMPLETE:
        values |= {
            "bias": record.bias,
            "objective": record.objective,
            "dual_objective": record.dual_objective,
            "gap": record.gap,
            "active_kernels": float(record.n_active),
            "nonzero_kernels": float(len(record.kernels)),
        }
    return values


def check(dataset: xr.Dataset, where: str) -> None:
    """Hold a method's node against the schema.

    Parameters
    ----------
    dataset : xarray.Dataset
        The node, inherited coordinates included.
    where : str
        Its path, for the message.

    Raises
    ------
    mkldist.errors.StoreError
        When a variable is missing or of other dims or dtype.
    """
    dims = dataset[RUN_ID.name].dims
    for variable in (STATE, *SCALARS, *TEXTS, RUN_ID, WEIGHTS, DECISION_VALUES):
        optional = bool(variable.dim)
        if variable.name not in dataset:
            if optional:
                continue
            raise StoreError(f"{where}/{variable.name}", "found nothing", "a variable")
        array = dataset[variable.name]
        expected = dims + ((variable.dim,) if variable.dim else ())
        if array.dims != expected:
            raise StoreError(
                f"{where}/{variable.name}", f"found dims {array.dims}", f"dims {expected}"
            )
        if not _is_of(array.dtype, variable.dtype):
            raise StoreError(
                f"{where}/{variable.name}", f"found dtype {array.dtype}", variable.dtype
            )


def _admissible(name: str, taken: set[str]) -> str:
    """Return a name under which a reported scalar can stand beside the other variables."""
    plain = re.sub(r"\W", "_", name)
    return f"reported_{plain}" if plain in taken else plain


def _is_of(dtype: Any, expected: str) -> bool:
    if expected == "string":
        return dtype.kind in "TOU"
    return bool(dtype == expected)
