"""Every variable of the results: name, dims, dtype, units and meaning, in one place.

A node ``/<dataset>/<method>`` (``/<dataset>/<bank>/<method>`` in a sweep of several banks) holds
one value per run in variables of dims ``(split, *hyperparameters)``, and one vector per run in
those with a further dim ``kernel`` or ``sample``.  The scores are those of the data set's task, on
the test rows, and apart from them on the unlabelled rows where a data set's splits have such.

Where runs of a method have the setting ``trace``, its node has a child ``convergence`` whose
variables have the further dim ``iteration``, or the two ``iteration`` and ``rank``; it is as long
as the longest run recorded so far.

What a run has not reported (yet), iterations that it did not take among it, is NaN, or an empty
string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mkldist.errors import StoreError
from mkldist.results.run_record import ACTIVE_THRESHOLD, RunRecord
from mkldist.results.state import RunState
from mkldist.solvers.trace import N_LARGEST
from mkldist.spec.kinds import Task

if TYPE_CHECKING:
    import xarray as xr

LAYOUT_VERSION = 2
GAP_DEFINITION = (
    "gap = |objective - dual_objective| / |objective|; objective is the primal value of the "
    "returned point and dual_objective a lower bound of the optimum, both in float64"
)
SPLIT, KERNEL, SAMPLE, LABEL = "split", "kernel", "sample", "label"
CONVERGENCE, ITERATION, RANK = "convergence", "iteration", "rank"
N_RANKS = N_LARGEST
NO_KERNEL = -1


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
        ``"float64"``, ``"int64"`` or ``"string"``.
    dims : tuple of str
        Its dims after those of the runs: ``kernel`` or ``sample``, ``iteration`` and ``rank``.
    fill : str or int
        What text, or whole number, stands for a run without an outcome.
    """

    name: str
    units: str
    description: str
    dtype: str = "float64"
    dims: tuple[str, ...] = ()
    fill: str | int = ""

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
    "kernel_weights", "1", "weight of each kernel of the bank, normalised as asked", dims=(KERNEL,)
)
DECISION_VALUES = Variable(
    "decision_values",
    "1",
    "decision function at the test and unlabelled rows; NaN at training rows",
    dims=(SAMPLE,),
)
COEFFICIENTS = Variable(
    "coefficients",
    "1",
    "c of f(x) = sum_m d_m sum_i c_i k_m(x, x_i) + bias over normalised kernels k_m with weights "
    "d_m, at the training rows, and at the unlabelled ones for methods that learn from them; NaN "
    "at other rows, and everywhere where kernels have coefficients of their own, which are in the "
    "record",
    dims=(SAMPLE,),
)
VECTORS = (WEIGHTS, DECISION_VALUES, COEFFICIENTS)
TEXTS = (
    Variable("stop_reason", "", "why the solver returned", "string"),
    Variable("error", "", "why the run failed; empty for any other", "string"),
)
SCORES: Mapping[Task, tuple[Variable, ...]] = {
    "classification": (
        Variable("test_error", "1", "fraction of misclassified test rows"),
        Variable("balanced_error", "1", "mean over the classes of the fraction misclassified"),
        Variable("auc", "1", "area under the ROC curve of the test rows"),
    ),
    "regression": (
        Variable("rmse", "", "root mean square error of the test rows, in units of the labels"),
        Variable("mae", "", "mean absolute error of the test rows, in units of the labels"),
        Variable("r2", "1", "1 - mean square error / variance of the labels of the test rows"),
    ),
}
UNLABELLED_SCORES: Mapping[Task, tuple[Variable, ...]] = {
    "classification": (
        Variable("unlabelled_error", "1", "fraction of misclassified unlabelled rows"),
        Variable(
            "unlabelled_balanced_error",
            "1",
            "mean over the classes of the fraction misclassified of the unlabelled rows",
        ),
        Variable("unlabelled_auc", "1", "area under the ROC curve of the unlabelled rows"),
    ),
    "regression": (
        Variable("unlabelled_rmse", "", "root mean square error of the unlabelled rows"),
        Variable("unlabelled_mae", "", "mean absolute error of the unlabelled rows"),
        Variable("unlabelled_r2", "1", "1 - mean square error / variance of the unlabelled rows"),
    ),
}
"""Scores of rows whose labels no method saw, in sweeps that have such rows."""
SCALARS = (
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
TRACES = (
    Variable("seconds", "s", "the run's own time and share of the passes", dims=(ITERATION,)),
    Variable("objective", "1", "best primal value so far", dims=(ITERATION,)),
    Variable("dual_objective", "1", "best lower bound so far", dims=(ITERATION,)),
    Variable("gap", "1", "relative duality gap", dims=(ITERATION,)),
    Variable(
        "active_kernels",
        "1",
        f"number of kernels with weight > {ACTIVE_THRESHOLD:g}",
        dims=(ITERATION,),
    ),
    Variable(
        "largest_weights", "1", f"the {N_RANKS} largest kernel weights", dims=(ITERATION, RANK)
    ),
    Variable(
        "largest_kernels",
        "1",
        "positions along dim kernel of the kernels of largest_weights; -1 for none",
        dtype="int64",
        dims=(ITERATION, RANK),
        fill=NO_KERNEL,
    ),
)
_SCORES = tuple(v for by in (SCORES, UNLABELLED_SCORES) for scores in by.values() for v in scores)
_NAMES = frozenset(v.name for v in (STATE, RUN_ID, *VECTORS, *TEXTS, *_SCORES, *SCALARS))
RESERVED = _NAMES | {SPLIT, KERNEL, SAMPLE, LABEL, CONVERGENCE, ITERATION, RANK}


def node_variables(
    task: Task, vectors: Iterable[Variable] = (), *, unlabelled: bool = False
) -> tuple[Variable, ...]:
    """Return the variables of a method's node in the order in which they stand.

    Parameters
    ----------
    task : {"classification", "regression"}
        Of the data set, whose scores there are.
    vectors : iterable of Variable, optional
        Those of :data:`VECTORS` that the sweep asked for.
    unlabelled : bool
        Whether there are scores of unlabelled rows.
    """
    scores = SCORES[task] + UNLABELLED_SCORES[task] * unlabelled
    return (STATE, *scores, *SCALARS, *TEXTS, RUN_ID, *vectors)


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
    taken = {*dims, SPLIT, KERNEL, SAMPLE, LABEL, CONVERGENCE, STATE.name, RUN_ID.name}
    taken |= {v.name for v in (*TEXTS, *VECTORS)}
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


def check(node: xr.DataTree, where: str) -> None:
    """Hold a method's node and its traces against the schema.

    Parameters
    ----------
    node : xarray.DataTree
        The node.
    where : str
        Its path, for the message.

    Raises
    ------
    mkldist.errors.StoreError
        When a variable is missing or of other dims or dtype.
    """
    dims = node.ds[RUN_ID.name].dims
    wanted = node_variables(task_of(node))
    optional = (*UNLABELLED_SCORES[task_of(node)], *VECTORS)
    given = tuple(variable for variable in optional if variable.name in node.ds)
    _check_variables(node.ds, (*wanted, *given), dims, where)
    if CONVERGENCE in node.children:
        _check_variables(node[CONVERGENCE].ds, TRACES, dims, f"{where}/{CONVERGENCE}")


def task_of(node: xr.DataTree) -> Task:
    """Return what the labels are that a method's node is about."""
    return "regression" if node.attrs.get("task") == "regression" else "classification"


def _check_variables(
    dataset: Mapping[Any, xr.DataArray],
    wanted: Iterable[Variable],
    dims: tuple[Any, ...],
    where: str,
) -> None:
    """Raise unless the variables are there, of the dims of the runs and their own."""
    for variable in wanted:
        place = f"{where}/{variable.name}"
        if variable.name not in dataset:
            raise StoreError(place, "found nothing", "a variable")
        array, expected = dataset[variable.name], dims + variable.dims
        if array.dims != expected:
            raise StoreError(place, f"found dims {array.dims}", f"dims {expected}")
        if not _is_of(array.dtype, variable.dtype):
            raise StoreError(place, f"found dtype {array.dtype}", variable.dtype)


def _admissible(name: str, taken: set[str]) -> str:
    """Return a name under which a reported scalar can stand beside the other variables."""
    plain = re.sub(r"\W", "_", name)
    return f"reported_{plain}" if plain in taken else plain


def _is_of(dtype: Any, expected: str) -> bool:
    if expected == "string":
        return dtype.kind in "TOU"
    return bool(dtype == expected)
