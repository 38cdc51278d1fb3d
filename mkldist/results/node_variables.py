"""Which of the schema's variables the node of a method has, and whether they are there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mkldist.errors import StoreError
from mkldist.results.schema import (
    CLASS_BIAS,
    CLASS_SCORES,
    CLASS_VALUES,
    CONVERGENCE,
    RUN_ID,
    SCALARS,
    SCORES,
    STATE,
    TEXTS,
    TRACES,
    UNLABELLED_CLASS_SCORES,
    UNLABELLED_SCORES,
    VALIDATION_SCORES,
    VALIDATION_SECONDS,
    VECTORS,
    WEIGHTS,
    Variable,
)
from mkldist.spec.kinds import Task

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class NodeKind:
    """What decides which variables the node of a method has.

    Parameters
    ----------
    task : {"classification", "regression"}
        Of the data set, whose scores there are.
    unlabelled : bool
        Whether there are scores of unlabelled rows.
    validation : bool
        Whether there are scores of inner folds.
    classes : bool
        Whether there are more than two classes.
    shared : bool
        Whether these share their kernel weights.
    """

    task: Task = "classification"
    unlabelled: bool = False
    validation: bool = False
    classes: bool = False
    shared: bool = False

    @property
    def traces(self) -> tuple[Variable, ...]:
        """The variables of the node's traces."""
        of_each = self.classes and not self.shared
        return tuple(variable.of_each_class for variable in TRACES) if of_each else TRACES

    def of(self, variable: Variable) -> Variable:
        """Return one of :data:`VECTORS` with the dims that it has in the node."""
        each = self.classes and not (self.shared and variable is WEIGHTS)
        return variable.of_each_class if each else variable


def node_variables(kind: NodeKind, vectors: Iterable[Variable] = ()) -> tuple[Variable, ...]:
    """Return the variables of a method's node in the order in which they stand.

    Parameters
    ----------
    kind : NodeKind
        What it is about.
    vectors : iterable of Variable, optional
        Those of :data:`VECTORS` that the sweep asked for.
    """
    scores = SCORES[kind.task] + UNLABELLED_SCORES[kind.task] * kind.unlabelled
    scores += VALIDATION_SCORES[kind.task] * kind.validation
    seconds = (VALIDATION_SECONDS,) * kind.validation
    classes: tuple[Variable, ...] = ()
    if kind.classes:
        classes = CLASS_SCORES + UNLABELLED_CLASS_SCORES * kind.unlabelled + (CLASS_BIAS,)
        classes += CLASS_VALUES * (not kind.shared)
    own = (kind.of(variable) for variable in vectors)
    return (STATE, *scores, *SCALARS, *seconds, *TEXTS, RUN_ID, *classes, *own)


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
    task = task_of(node)
    shared = node.attrs.get("kernel_weights") == "shared"
    kind = NodeKind(task, classes=CLASS_BIAS.name in node.ds, shared=shared)
    vectors = map(kind.of, VECTORS)
    scores = (*UNLABELLED_SCORES[task], *UNLABELLED_CLASS_SCORES, *VALIDATION_SCORES[task])
    given = (variable for variable in (*scores, *vectors) if variable.name in node.ds)
    _check_variables(node.ds, (*node_variables(kind), *given), dims, where)
    if CONVERGENCE in node.children:
        _check_variables(node[CONVERGENCE].ds, kind.traces, dims, f"{where}/{CONVERGENCE}")


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


def _is_of(dtype: Any, expected: str) -> bool:
    if expected == "string":
        return dtype.kind in "TOU"
    return bool(dtype == expected)
