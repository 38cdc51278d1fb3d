"""Every variable, coordinate and attribute of the results, with its dims and units."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mkldist.core.metrics import METRICS, Metric, default_metric
from mkldist.scores import part_scores
from mkldist.solvers.progress import ACTIVE_SHARE, N_LARGEST, STATIONARITY

if TYPE_CHECKING:
    from mkldist.spec.kinds import Task


class RunState(enum.StrEnum):
    """State of a run: planned, or recorded with an outcome."""

    WAITING = "waiting"
    COMPLETE = "complete"
    FAILED = "failed"

    @property
    def is_recorded(self) -> bool:
        """True if the run has an outcome in storage."""
        return self in (RunState.COMPLETE, RunState.FAILED)


LAYOUT_VERSION = 6
ACTIVE_WORDS = f"number of kernels of more than {ACTIVE_SHARE:g} of the largest weight"
GAP_DEFINITION = (
    "gap = |objective - dual_objective| / |objective|; objective is the primal value of the "
    "returned point and dual_objective a lower bound of the optimum, both in float64"
)
SPLIT, KERNEL, SAMPLE, LABEL = "split", "kernel", "sample", "label"
CLASS, PREDICTED = "class_name", "predicted"
CONVERGENCE, ITERATION, RANK = "convergence", "iteration", "rank"
OTHER_RUNS = "other_runs"
"""Attribute of the root of an open tree: recorded runs without a place in it."""
DATA = "data"
"""Attribute of the root: JSON of rows, classes, missing cells, views and groups by data set."""
MOST_RUNS = "most_runs"
"""Attribute of the root of a search: as many runs as there may be."""
DATASET_SERIES, BANK_SERIES = "dataset_series", "bank_series"
"""Attributes of nodes: the names in the sweep file of their data set and bank, which all sizes of a
scaling study share."""
METRIC = "metric"
"""Attribute of nodes: the name of the metric by which their runs are ranked."""
N_RANKS = N_LARGEST
OF_LABELS = "units of the labels"


@dataclass(frozen=True)
class Variable:
    """One variable of a method's node, or one coordinate."""

    name: str
    units: str  # In the spelling of UDUNITS; ``"1"`` for a pure number, empty for text
    description: str
    dtype: str = "float64"  # Or ``"int64"``, ``"bool"``, ``"string"``
    dims: tuple[str, ...] = ()  # After those of the runs; all dims of a coordinate
    fill: str | int = ""  # Text or integer for a run without an outcome
    # Of a vector: the field of `results.record.RunRecord` that holds it, and that of the
    # positions of its entries along the last dim
    fields: tuple[str, ...] = ()

    @classmethod
    def of(cls, words: Sequence[Any]) -> Variable:
        """Return the variable whose fields stand in a file, in their order."""
        name, units, description, dtype, dims, fill, fields = words
        return cls(name, units, description, dtype, tuple(dims), fill, tuple(fields))

    @property
    def of_each_class(self) -> Variable:
        """The same variable with one value for each class."""
        return replace(self, dims=(CLASS, *self.dims))

    @property
    def attributes(self) -> dict[str, str]:
        """Attributes of the variable in the tree: its description and units."""
        units = {"units": self.units} if self.units else {}
        return {"long_name": self.description, **units}


HELD_OUT = "rows of the inner folds held out"


def _of_part(variables: Iterable[Variable], part: str, rows: str) -> tuple[Variable, ...]:
    """Return the same scores of other rows than those of the test part."""
    named = part_scores({variable.name: variable for variable in variables}, part)
    return tuple(
        replace(v, name=name, description=v.description.replace("test rows", rows))
        for name, v in named.items()
    )


def _of_unlabelled(variables: Iterable[Variable]) -> tuple[Variable, ...]:
    """Return the same scores of unlabelled rows."""
    return _of_part(variables, "unlabelled", "unlabelled rows")


STATE = Variable(
    "state", "", "state of the run: " + ", ".join(RunState), "string", fill=RunState.WAITING.value
)
RUN_ID = Variable("run_id", "", "content hash that names the run and its record", "string")
WEIGHTS = Variable(
    "kernel_weights",
    "1",
    "weight of each kernel of the bank, normalised as asked",
    dims=(KERNEL,),
    fields=("weights", "kernels"),
)
DECISION_VALUES = Variable(
    "decision_values",
    "1",
    "decision function at the test and unlabelled rows; NaN at training rows",
    dims=(SAMPLE,),
    fields=("decision_values", "test_rows"),
)
COEFFICIENTS = Variable(
    "coefficients",
    "1",
    "c of f(x) = sum_m d_m sum_i c_i k_m(x, x_i) + bias over normalised kernels k_m with weights "
    "d_m, at the training rows, and at the unlabelled ones for methods that learn from them; NaN "
    "at other rows, and everywhere where kernels have coefficients of their own, which are in the "
    "record",
    dims=(SAMPLE,),
    fields=("coefficients", "train_rows"),
)
VECTORS = (WEIGHTS, DECISION_VALUES, COEFFICIENTS)
TEXTS = (
    Variable("stop_reason", "", "why the solver returned", "string"),
    Variable("error", "", "why the run failed; empty for any other", "string"),
)
SCORES: Mapping[Task, tuple[Variable, ...]] = {
    "classification": (
        Variable("test_error", "1", "fraction of misclassified test rows"),
        Variable("balanced_error", "1", "mean over the classes of the error on the test rows"),
        Variable("auc", "1", "area under the ROC curve of the test rows; mean of several classes"),
        Variable(
            "average_precision",
            "1",
            "average precision of class +1 on the test rows; mean of several classes",
        ),
        Variable("f1", "1", "F1 score of class +1 on the test rows; mean of several classes"),
        Variable("mcc", "1", "Matthews correlation coefficient of the test rows"),
    ),
    "regression": (
        Variable("rmse", OF_LABELS, "root mean square error of the test rows"),
        Variable("mae", OF_LABELS, "mean absolute error of the test rows"),
        Variable("r2", "1", "1 - mean square error / variance of the labels of the test rows"),
    ),
}
TWO_CLASS_SCORES = (
    Variable("sensitivity", "1", "fraction of the test rows of class +1 that are predicted as +1"),
    Variable("specificity", "1", "fraction of the test rows of class -1 that are predicted as -1"),
)
PROBABILITY_SCORES = (
    Variable(
        "log_loss",
        "1",
        "mean negative logarithm of the probability of the labels of the test rows, where runs "
        "have probabilities: those of the logistic loss on two classes, else a sigmoid that is "
        "fitted to the decision values of inner folds",
    ),
    Variable(
        "brier",
        "1",
        "mean square of the probability of the wrong class of the test rows, from the same "
        "probabilities; of several classes, half the sum of squared differences",
    ),
)
"""Scores of runs that have probabilities; other nodes lack them."""
CLASS_SCORES = (
    Variable("class_error", "1", "fraction of a class's test rows misclassified", dims=(CLASS,)),
    Variable(
        "confusion", "1", "number of test rows by class and predicted class",
        dims=(CLASS, PREDICTED),
    ),
)  # fmt: skip
UNLABELLED_SCORES: Mapping[Task, tuple[Variable, ...]] = {
    task: _of_unlabelled(variables) for task, variables in SCORES.items()
}
"""Scores of unlabelled rows, in sweeps that have such rows."""
UNLABELLED_TWO_CLASS_SCORES = _of_unlabelled(TWO_CLASS_SCORES)
UNLABELLED_CLASS_SCORES = _of_unlabelled(CLASS_SCORES)
UNLABELLED_PROBABILITY_SCORES = _of_unlabelled(PROBABILITY_SCORES)
TRAINING_SCORES: Mapping[Task, tuple[Variable, ...]] = {
    "classification": (
        Variable(
            "train_error",
            "1",
            "fraction of misclassified training rows; NaN where the method does not have their "
            "decision values at its end",
        ),
    ),
    "regression": (
        Variable(
            "train_rmse",
            OF_LABELS,
            "root mean square error of the training rows; NaN where the method does not have "
            "their decision values at its end",
        ),
    ),
}
VALIDATION_SCORES: Mapping[Task, tuple[Variable, ...]] = {
    "classification": _of_part(
        (*SCORES["classification"], *PROBABILITY_SCORES), "validation", HELD_OUT
    ),
    "regression": _of_part(SCORES["regression"], "validation", HELD_OUT),
}
"""Scores by which hyperparameters are selected, in sweeps with a selection."""
_BY_TASK = (SCORES, UNLABELLED_SCORES, TRAINING_SCORES, VALIDATION_SCORES)
ALL_SCORES = (
    *(variable for scores in _BY_TASK for variables in scores.values() for variable in variables),
    *TWO_CLASS_SCORES,
    *UNLABELLED_TWO_CLASS_SCORES,
    *PROBABILITY_SCORES,
    *UNLABELLED_PROBABILITY_SCORES,
)
"""Every score with one value per run."""
VALIDATION_SECONDS = Variable(
    "validation_seconds", "s", "own time and share of the passes of the solvers on inner folds"
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
    Variable("gap", "1", "relative duality gap; NaN where the problem is not convex"),
    Variable("active_kernels", "1", ACTIVE_WORDS),
    Variable("nonzero_kernels", "1", "number of kernels with weight other than 0"),
    Variable("bias", "1", "intercept of the decision function of two classes or real values"),
    Variable("wall_seconds", "s", "start to end, work for other runs of the batch included"),
    Variable("cpu_seconds", "s", "processor time of the solver's own code"),
    Variable("own_seconds", "s", "wall time of the solver's own code"),
    Variable("pass_seconds", "s", "the run's share of the passes over the bank"),
    Variable(
        "pass_cpu_seconds", "s", "processor time of the run's share of the passes, all threads"
    ),
    Variable(
        "pass_bytes", "byte", "kernel values that the run's share of the passes read or computed"
    ),
    Variable("seconds", "s", "sum of own_seconds and pass_seconds, as in tables"),
    Variable("outer_iterations", "1", "rounds of the method, rows of its trace"),
    Variable("svm_solves", "1", "machines trained, each on one combined kernel"),
    Variable("svm_iterations", "1", "pair updates, and line searches of machines in the primal"),
    Variable("newton_steps", "1", "linear systems of Newton steps"),
    Variable("cg_steps", "1", "steps of conjugate gradients"),
    Variable("passes", "1", "how often the requests read the whole bank"),
    Variable("combines", "1", "combined Gram matrices asked for"),
)
OWN_TRACES = (
    Variable(
        "iterate_objective", "1", "primal value at the iteration's own point", dims=(ITERATION,)
    ),
    Variable(
        "iterate_gap",
        "1",
        "relative gap of the iteration's own point; NaN where the iteration visited only some of "
        "the kernels",
        dims=(ITERATION,),
    ),
)
"""Traces of the iterates themselves, which oscillate."""
FINAL_TRACES = (
    Variable("final_weights", "1", "weights of final_kernels; NaN where an iteration of many "
             "kernels kept only larger ones", dims=(ITERATION, RANK)),
    Variable("final_kernels", "", f"names of the {N_RANKS} kernels that are largest in the run's "
             "last iteration; empty for none", "string", (RANK,)),
)  # fmt: skip
"""The course of the weights that are largest at the end."""
TRACES = (
    Variable("seconds", "s", "the run's own time and share of the passes", dims=(ITERATION,)),
    Variable("passes", "1", "how often the requests had read the whole bank", dims=(ITERATION,)),
    Variable("objective", "1", "best primal value so far", dims=(ITERATION,)),
    Variable("dual_objective", "1", "best lower bound so far", dims=(ITERATION,)),
    Variable("gap", "1", "relative duality gap", dims=(ITERATION,)),
    *OWN_TRACES,
    Variable("active_kernels", "1", ACTIVE_WORDS, dims=(ITERATION,)),
    Variable(
        "largest_weights", "1", f"the {N_RANKS} largest kernel weights", dims=(ITERATION, RANK)
    ),
    Variable(
        "largest_kernels",
        "",
        "names of the kernels of largest_weights; empty for none",
        dtype="string",
        dims=(ITERATION, RANK),
    ),
    *FINAL_TRACES,
)
STATIONARITY_OF = Variable(
    STATIONARITY,
    "1",
    "relative gain that the method's steps may still bring, which tol limits where the problem is "
    "not convex; gap is NaN there",
)
"""A number of methods whose problem is not convex; other nodes lack it."""
ON_FACTORS = (
    Variable("exact_gap", "1", "relative gap to the optimum with the kernels of a bank of factors"),
    Variable("exact_dual_objective", "1", "lower bound of the optimum with these kernels"),
    Variable("largest_rank", "1", "columns of the longest factor at the end of the run"),
    Variable("sampled_points", "1", "points of a sample for exact_gap, which is then statistical"),
)
"""Numbers of runs on a bank of factors; other nodes lack them."""
CHOSEN_KERNEL = Variable("chosen_kernel", "", "name of the kernel that was chosen", "string")
"""A text of methods that choose one kernel; other nodes lack it."""
COUNTED = (
    Variable("iteration", "1", "outer iteration", "int64", (ITERATION,)),
    Variable("rank", "1", "rank of a kernel by its weight", "int64", (RANK,)),
)
"""Coordinates of traces, which count from 1."""
BANK_BYTES = Variable(
    "bank_bytes", "byte", "Gram matrices of the bank of the split, stored or not", dims=(SPLIT,)
)
BUILD_TIMES = (
    Variable("build_seconds", "s", "time to build the bank of the split, in all tasks together; 0 "
             "for a bank that is computed again in every pass", dims=(SPLIT,)),
    Variable("build_cpu_seconds", "s", "processor time to build the bank of the split",
             dims=(SPLIT,)),
)  # fmt: skip
"""Times that come with the runs of a split, and that all of them share."""
COORDINATES = (
    Variable("split", "1", "index of the train/test split", "int64", (SPLIT,)),
    Variable("repeat", "1", "repetition that the split belongs to", "int64", (SPLIT,)),
    Variable("fold", "1", "fold of the repetition that is the test part", "int64", (SPLIT,)),
    Variable("group", "", "group of rows that is the test part", "string", (SPLIT,)),
    Variable("n_train", "1", "number of labelled training rows", "int64", (SPLIT,)),
    Variable("n_test", "1", "number of test rows", "int64", (SPLIT,)),
    Variable("n_unlabelled", "1", "number of unlabelled rows", "int64", (SPLIT,)),
    Variable("n_new", "1", "number of test rows that no split before has tested; of unlabelled "
             "rows where there are no test rows", "int64", (SPLIT,)),
    Variable("n_rarest", "1", "number of these test rows that are of the rarest class of the "
             "split's, of that of all splits where one lacks a class; of all for regression",
             "int64", (SPLIT,)),
    Variable("n_classes", "1", "number of classes that these test rows are of, of different values "
             "for regression", "int64", (SPLIT,)),
    Variable("constant_score", "1", "the sweep's metric on these test rows of the best constant "
             "prediction, such as that of the most frequent class", dims=(SPLIT,)),
    Variable("n_kernels", "1", "number of kernels of the bank", "int64"),
    Variable("n_features", "1", "number of features; 0 for precomputed matrices", "int64"),
    BANK_BYTES,
    *BUILD_TIMES,
    Variable("kernel", "", "kernel of the bank", "string", (KERNEL,)),
    Variable("function", "", "kernel function", "string", (KERNEL,)),
    Variable("width", "1", "width of the kernel function, in units of the features as scaled",
             dims=(KERNEL,)),
    Variable("relative_width", "1", "width in units of the spread of its features, if given so",
             dims=(KERNEL,)),
    Variable("degree", "1", "degree of a polynomial kernel", dims=(KERNEL,)),
    Variable("offset", "1", "offset of a polynomial kernel", dims=(KERNEL,)),
    Variable("features", "", "features of the kernel, as in its name", "string", (KERNEL,)),
    Variable("feature_group", "", "all, single, several, or what the sweep file calls them",
             "string", (KERNEL,)),
    Variable("view", "", "view that has all features of the kernel; empty without one", "string",
             (KERNEL,)),
    Variable("family", "", "family of the bank; custom for one of the user's own", "string",
             (KERNEL,)),
    Variable("normalisation", "", "normalisation of the bank", "string", (KERNEL,)),
    Variable("bank", "", "name of the bank", "string", (KERNEL,)),
    Variable("class_name", "", "class; of two, that of -1 is the first", "string", (CLASS,)),
    Variable("predicted", "", "class predicted", "string", (PREDICTED,)),
    Variable("sample", "1", "row of the data set", "int64", (SAMPLE,)),
    Variable("label", "1", "label of the row: -1 or +1 for two classes, the position along "
             "class_name for more, else its value; NaN without one", dims=(SAMPLE,)),
    *COUNTED,
)  # fmt: skip
"""Coordinates that do not depend on the runs.  Those without a value in a tree are left out."""
OF_TRIALS = Variable("trial", "1", "number of the trial of a search", "int64", ("trial",))
"""Dim of searched methods, beside ``tol``."""
OF_SPLITS = ("n_train", "n_test", "n_unlabelled", "n_new", "n_rarest", "constant_score")
"""Coordinates along the splits, on which inference from few splits depends."""
_OF_CLASSES = (*CLASS_SCORES, *UNLABELLED_CLASS_SCORES, CLASS_BIAS, *CLASS_VALUES)
NOT_SCALARS = frozenset(
    v.name for v in (STATE, RUN_ID, *TEXTS, *VECTORS, *_OF_CLASSES, *COORDINATES)
) | {CONVERGENCE}
"""Names that no scalar of a run may take."""
RESERVED = NOT_SCALARS | {v.name for v in (*ALL_SCORES, *SCALARS, VALIDATION_SECONDS)}
"""Names that no hyperparameter may take."""
_SHOWN = (
    *ALL_SCORES,
    *SCALARS,
    STATIONARITY_OF,
    *ON_FACTORS,
    VALIDATION_SECONDS,
    CHOSEN_KERNEL,
    *TEXTS,
    RUN_ID,
)
ORDER = {v.name: place for place, v in enumerate((STATE, *_SHOWN, *_OF_CLASSES, *VECTORS))}
"""Order in which nodes show their variables; those that are not known here come before text."""


@dataclass(frozen=True)
class NodeKind:
    """Facts that determine the variables of a method's node."""

    task: Task = "classification"  # Task of the data set, which determines the scores
    unlabelled: bool = False  # True if there are scores of unlabelled rows
    validation: bool = False  # True if there are scores of inner folds
    n_classes: int = 0  # Number of classes; 0 where their names are not known
    shared: bool = False  # True if more than two classes share their kernel weights

    @property
    def classes(self) -> bool:
        """True if there are more than two classes, each learnt against the rest."""
        return self.n_classes > 2

    @property
    def two_classes(self) -> bool:
        """True for labels -1 and +1."""
        return self.task == "classification" and not self.classes

    @property
    def traces(self) -> tuple[Variable, ...]:
        """The variables of the node's traces."""
        of_each = self.classes and not self.shared
        return tuple(variable.of_each_class for variable in TRACES) if of_each else TRACES

    def of(self, variable: Variable) -> Variable:
        """Return one of :data:`VECTORS` with its dims in the node."""
        each = self.classes and not (self.shared and variable is WEIGHTS)
        return variable.of_each_class if each else variable


def node_variables(kind: NodeKind, vectors: Iterable[Variable] = ()) -> tuple[Variable, ...]:
    """Return the variables of a method's node in their order."""
    task = kind.task
    scores = SCORES[task] + TWO_CLASS_SCORES * kind.two_classes + TRAINING_SCORES[task]
    if kind.unlabelled:
        scores += UNLABELLED_SCORES[task] + UNLABELLED_TWO_CLASS_SCORES * kind.two_classes
    scores += VALIDATION_SCORES[task] * kind.validation
    seconds = (VALIDATION_SECONDS,) * kind.validation
    classes: tuple[Variable, ...] = ()
    if kind.n_classes:
        classes = CLASS_SCORES + UNLABELLED_CLASS_SCORES * kind.unlabelled
    if kind.classes:
        classes += (CLASS_BIAS, *CLASS_VALUES * (not kind.shared))
    own = (kind.of(variable) for variable in vectors)
    return (STATE, *scores, *SCALARS, *seconds, *TEXTS, RUN_ID, *classes, *own)


def task_of(attributes: Mapping[Any, Any]) -> Task:
    """Return the task of the data set of a method's node with these attributes."""
    return "regression" if attributes.get("task") == "regression" else "classification"


def metric_of(attributes: Mapping[Any, Any]) -> Metric:
    """Return the metric by which the runs of a method's node with these attributes are ranked."""
    name = attributes.get(METRIC)
    return METRICS[name] if name in METRICS else default_metric(attributes.get("task", ""))
