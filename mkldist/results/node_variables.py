"""Selection of the schema's variables for the node of a method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mkldist.core.metrics import METRICS, Metric, default_metric
from mkldist.results.schema import (
    CLASS_BIAS,
    CLASS_SCORES,
    CLASS_VALUES,
    METRIC,
    RUN_ID,
    SCALARS,
    SCORES,
    STATE,
    TEXTS,
    TRACES,
    TRAINING_SCORES,
    TWO_CLASS_SCORES,
    UNLABELLED_CLASS_SCORES,
    UNLABELLED_SCORES,
    UNLABELLED_TWO_CLASS_SCORES,
    VALIDATION_SCORES,
    VALIDATION_SECONDS,
    WEIGHTS,
    Variable,
)

if TYPE_CHECKING:
    import xarray as xr

    from mkldist.spec.kinds import Task


@dataclass(frozen=True)
class NodeKind:
    """Facts that determine the variables of a method's node.

    Parameters
    ----------
    task : {"classification", "regression"}
        Task of the data set, which determines the scores.
    unlabelled : bool
        True if there are scores of unlabelled rows.
    validation : bool
        True if there are scores of inner folds.
    n_classes : int
        Number of classes; 0 where their names are not known.
    shared : bool
        True if more than two classes share their kernel weights.
    """

    task: Task = "classification"
    unlabelled: bool = False
    validation: bool = False
    n_classes: int = 0
    shared: bool = False

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


def task_of(node: xr.DataTree) -> Task:
    """Return the task of the data set of a method's node."""
    return task_in(node.attrs)


def task_in(attributes: Mapping[Any, Any]) -> Task:
    """Return the task of a data set, from the attributes of a method's node."""
    return "regression" if attributes.get("task") == "regression" else "classification"


def metric_of(node: xr.DataTree) -> Metric:
    """Return the metric by which the runs of a method's node are ranked."""
    return metric_in(node.attrs)


def metric_in(attributes: Mapping[Any, Any]) -> Metric:
    """Return the metric by which runs are ranked, from the attributes of their node."""
    name = attributes.get(METRIC)
    return METRICS[name] if name in METRICS else default_metric(attributes.get("task", ""))
