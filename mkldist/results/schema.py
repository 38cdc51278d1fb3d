"""Schema of the results: name, dims, dtype, units and meaning of every variable.

A node ``/<dataset>/<method>`` (``/<dataset>/<bank>/<method>`` in a sweep of several banks) holds
one value per run in variables with dims ``(split, *hyperparameters)``, and one vector per run in
variables with a further dim ``kernel`` or ``sample``.  The scores are those of the data set's task,
on the test rows, and separately on the unlabelled rows if the splits have any.

A data set of more than two classes has scores of each class, in variables with the dim
``class_name``; ``confusion`` also has the dim ``predicted``.  Every variable with one value per
class has the dim ``class_name`` before its own: decision values, coefficients, and, unless the
classes share the weights, kernel weights and traces.

A method whose settings are searched has the dim ``trial`` in place of its hyperparameters, and,
with halving, ``tol`` or ``training_fraction``.  Its hyperparameters are coordinates with the dims
``(split, trial)``.

If runs of a method have the setting ``trace``, its node has a child ``convergence``.  The variables
there have the further dim ``iteration``, or both ``iteration`` and ``rank``.  The length of
``iteration`` is that of the longest run recorded so far.

Values that a run has not reported are NaN or an empty string; so are iterations that it did not
take.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from mkldist.results.run_record import RunRecord
from mkldist.results.state import RunState
from mkldist.solvers.trace import ACTIVE_THRESHOLD, N_LARGEST
from mkldist.spec.kinds import Task

LAYOUT_VERSION = 2
GAP_DEFINITION = (
    "gap = |objective - dual_objective| / |objective|; objective is the primal value of the "
    "returned point and dual_objective a lower bound of the optimum, both in float64"
)
SPLIT, KERNEL, SAMPLE, LABEL = "split", "kernel", "sample", "label"
CLASS, PREDICTED = "class_name", "predicted"
CONVERGENCE, ITERATION, RANK = "convergence", "iteration", "rank"
MOST_RUNS = "most_runs"
"""Attribute of the root of a search: as many runs as there may be."""
RUNGS = "rungs"
"""Attribute of the node of a method searched by halving: the dim along which its rungs lie."""
N_RANKS = N_LARGEST
NO_KERNEL = -1


@dataclass(frozen=True)
class Variable:
    """One variable of a method's node.

    Parameters
    ----------
    name : str
        Name of the variable.
    units : str
        Units in the spelling of UDUNITS; ``"1"`` for a pure number, empty for text.
    description : str
        Meaning of the variable.
    dtype : str
        ``"float64"``, ``"int64"`` or ``"string"``.
    dims : tuple of str
        Dims after those of the runs: ``class_name`` and ``predicted``, ``kernel`` or ``sample``,
        ``iteration`` and ``rank``.
    fill : str or int
        Text or integer for a run without an outcome.
    """

    name: str
    units: str
    description: str
    dtype: str = "float64"
    dims: tuple[str, ...] = ()
    fill: str | int = ""

    @property
    def of_each_class(self) -> Variable:
        """The same variable with one value for each class."""
        return replace(self, dims=(CLASS, *self.dims))

    @property
    def attributes(self) -> dict[str, str]:
        """Attributes of the variable in the tree: its description and units."""
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
"""Scores of unlabelled rows, in sweeps that have such rows."""
VALIDATION_SCORES: Mapping[Task, tuple[Variable, ...]] = {
    "classification": (
        Variable(
            "validation_error", "1", "fraction of misclassified rows of the inner folds held out"
        ),
    ),
    "regression": (
        Variable(
            "validation_rmse", "", "root mean square error of the rows of the inner folds held out"
        ),
    ),
}
"""Scores by which hyperparameters are selected, in sweeps with a selection."""
VALIDATION_SECONDS = Variable(
    "validation_seconds", "s", "own time and share of the passes of the solvers on inner folds"
)
CLASS_SCORES = (
    Variable("class_error", "1", "fraction of a class's test rows misclassified", dims=(CLASS,)),
    Variable(
        "confusion",
        "1",
        "test rows by class and predicted class",
        dims=(CLASS, PREDICTED),
    ),
)
UNLABELLED_CLASS_SCORES = (
    Variable(
        "unlabelled_class_error",
        "1",
        "fraction of a class's unlabelled rows misclassified",
        dims=(CLASS,),
    ),
    Variable(
        "unlabelled_confusion",
        "1",
        "unlabelled rows by class and predicted class",
        dims=(CLASS, PREDICTED),
    ),
)
CLASS_BIAS = Variable("class_bias", "1", "intercept of each decision function", dims=(CLASS,))
CLASS_VALUES = (
    Variable("class_objective", "1", "primal value of each class's objective", dims=(CLASS,)),
    Variable("class_dual_objective", "1", "lower bound of each class's optimum", dims=(CLASS,)),
)
"""Values of each class if the classes do not share kernel weights; `objective` is the sum."""
SCALARS = (
    Variable("objective", "1", "primal value of the method's objective, an upper bound"),
    Variable("dual_objective", "1", "lower bound of the optimum"),
    Variable("gap", "1", "relative duality gap"),
    Variable("active_kernels", "1", f"number of kernels with weight > {ACTIVE_THRESHOLD:g}"),
    Variable("nonzero_kernels", "1", "number of kernels with weight other than 0"),
    Variable("bias", "1", "intercept of the decision function of two classes or real values"),
    Variable("wall_seconds", "s", "start to end, work for other runs of the batch included"),
    Variable("cpu_seconds", "s", "processor time of the solver's own code"),
    Variable("own_seconds", "s", "wall time of the solver's own code"),
    Variable("pass_seconds", "s", "the run's share of the passes over the bank"),
    Variable("outer_iterations", "1", "outer iterations"),
    Variable("svm_solves", "1", "support vector machines solved"),
    Variable("svm_iterations", "1", "iterations of the support vector machines"),
    Variable("newton_steps", "1", "inner Newton steps"),
    Variable("passes", "1", "how often the requests read the whole bank"),
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
_BY_TASK = (SCORES, UNLABELLED_SCORES, VALIDATION_SCORES)
_SCORES = tuple(v for by in _BY_TASK for scores in by.values() for v in scores)
_OF_CLASSES = (*CLASS_SCORES, *UNLABELLED_CLASS_SCORES, CLASS_BIAS, *CLASS_VALUES)
_NUMBERS = (*_SCORES, *SCALARS, VALIDATION_SECONDS, *_OF_CLASSES)
_NAMES = frozenset(v.name for v in (STATE, RUN_ID, *VECTORS, *TEXTS, *_NUMBERS))
_DIMS = frozenset((SPLIT, KERNEL, SAMPLE, LABEL, CLASS, PREDICTED, CONVERGENCE, ITERATION, RANK))
RESERVED = _NAMES | _DIMS


def reported(name: str) -> Variable:
    """Return the variable of a reported scalar that the schema does not know."""
    return Variable(name, "1", f"{name.replace('_', ' ')}, as the run reported it")


def reported_of_classes(name: str) -> Variable:
    """Return the variable of a scalar that is reported for each class."""
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
    taken = {*dims, *_DIMS, STATE.name, RUN_ID.name}
    taken |= {v.name for v in (*TEXTS, *VECTORS, *_OF_CLASSES)}
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


def _admissible(name: str, taken: set[str]) -> str:
    """Return a valid name for a reported scalar that clashes with no other variable."""
    plain = re.sub(r"\W", "_", name)
    return f"reported_{plain}" if plain in taken else plain
