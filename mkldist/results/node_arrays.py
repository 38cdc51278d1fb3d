"""Runs of each method as arrays, from a tree of results in xarray or on disk.

Those on disk are read without zarr and xarray, which take a second to import.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mkldist.arrays import Array
from mkldist.metrics import Metric
from mkldist.results.node_variables import metric_in, metric_of, task_of
from mkldist.results.rows import hyperparameters, method_nodes, place_of
from mkldist.results.schema import RUN_ID, SPLIT
from mkldist.results.tree_index import TreeIndex

if TYPE_CHECKING:
    import xarray as xr

    from mkldist.spec.kinds import Task


OF_SPLITS = ("n_train", "n_test", "n_unlabelled", "n_new", "n_rarest", "constant_score")
"""Coordinates along the splits, on which inference from few splits depends."""


@dataclass(frozen=True, eq=False)
class NodeArrays:
    """Runs of one method on one data set and bank.

    Parameters
    ----------
    place : dict of str to str
        Names of the data set, the bank and the method.
    task : {"classification", "regression"}
        Task of the data set.
    metric : Metric
        By which the runs are ranked.
    dims : dict of str to array
        Values of the hyperparameters.
    planned : (n_splits, ...) bool
        Which splits and settings have a run, a dim for each hyperparameter.
    values : dict of str to (n_splits, ...) array
        Variables by name; those that the node lacks are left out.
    splits : dict of str to (n_splits,) array
        :data:`OF_SPLITS` by name; those that the tree lacks are left out.
    """

    place: Mapping[str, str]
    task: Task
    metric: Metric
    dims: Mapping[str, Array]
    planned: Array
    values: Mapping[str, Array]
    splits: Mapping[str, Array] = field(default_factory=dict)


def nodes_of(tree: xr.DataTree, names: Collection[str]) -> list[NodeArrays]:
    """Return the runs of a tree.

    Parameters
    ----------
    tree : xarray.DataTree
        As :func:`mkldist.open_results` returns it.
    names : collection of str
        Variables to read.
    """
    found = []
    for node in method_nodes(tree):
        data, dims = node.to_dataset(), hyperparameters(node)
        own = (name for name in names if name in data)
        found.append(
            NodeArrays(
                place_of(node),
                task_of(node),
                metric_of(node),
                {name: data[name].to_numpy() for name in dims},
                _is_planned(data[RUN_ID.name].transpose(SPLIT, *dims).to_numpy()),
                {name: data[name].transpose(SPLIT, *dims).to_numpy() for name in own},
                {name: data[name].to_numpy() for name in OF_SPLITS if name in data.coords},
            )
        )
    return found


def nodes_in(index: TreeIndex, names: Collection[str]) -> list[NodeArrays]:
    """Return the runs of a tree on disk.

    Raises
    ------
    mkldist.errors.StoreError
        If the tree is damaged.
    """
    found = []
    for path, dims in index.nodes.items():
        attributes = _attributes(index, path)
        dataset, *_, method = path.split("/")
        own = (name for name in names if index.holds(path, name))
        found.append(
            NodeArrays(
                {"dataset": dataset, "bank": str(attributes.get("bank", "")), "method": method},
                _task(attributes),
                metric_in(attributes),
                {name: index.read(path, name) for name in dims if name != SPLIT},
                _is_planned(index.read(path, RUN_ID.name)),
                {name: index.read(path, name) for name in own},
                {n: index.read(dataset, n) for n in OF_SPLITS if index.holds(dataset, n)},
            )
        )
    return found


def is_validated(index: TreeIndex) -> bool:
    """Return True if the results on disk hold the scores that select settings."""
    return bool(index.nodes) and all(
        index.holds(path, metric_in(_attributes(index, path)).variable("validation"))
        for path in index.nodes
    )


def _attributes(index: TreeIndex, path: str) -> Mapping[str, Any]:
    attributes: Mapping[str, Any] = (index.document(path) or {}).get("attributes", {})
    return attributes


def _task(attributes: Mapping[str, Any]) -> Task:
    return "regression" if attributes.get("task") == "regression" else "classification"


def _is_planned(run_ids: Array) -> Array:
    planned: Array = run_ids.astype(object) != ""
    return planned
