"""Trees that were made up, with traces of runs or with losses at several sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

Run = tuple[Sequence[float], Sequence[float], Sequence[float]]


def traced(runs: Mapping[str, Sequence[Run]]) -> xr.DataTree:
    """Return a tree of runs on splits, each with its gaps, passes and seconds."""
    nodes = {}
    for method, own in runs.items():
        length = max(len(gaps) for gaps, _, _ in own)
        node = _node(method, np.zeros(len(own)))
        nodes[f"/ring/{method}"] = node
        columns = np.full((3, len(own), length), np.nan)
        for number, parts in enumerate(own):
            for place, values in enumerate(parts):
                columns[place, number, : len(values)] = values
        names = ("gap", "passes", "seconds")
        nodes[f"/ring/{method}/convergence"] = xr.Dataset(
            {
                name: (("split", "iteration"), column)
                for name, column in zip(names, columns, strict=True)
            }
        )
    return _tree(nodes)


def learnt(method: str, losses: Mapping[int, float], spread: float = 0.01) -> xr.DataTree:
    """Return a tree with the losses ``loss - spread, loss, loss + spread`` at each size."""
    nodes = {}
    for size, loss in losses.items():
        errors = loss + spread * np.array([-1.0, 0.0, 1.0])
        node = _node(method, errors).assign_coords(
            n_train=("split", [size] * 3), n_test=("split", [50] * 3)
        )
        node.attrs["dataset_series"] = "ring"
        nodes[f"/ring-{size}/{method}"] = node
    return _tree(nodes)


def _node(method: str, errors: np.ndarray) -> xr.Dataset:
    count = len(errors)
    parts = {
        "state": ("split", np.full(count, "complete", object)),
        "run_id": ("split", np.array([f"{method}-{n}" for n in range(count)], object)),
        "test_error": ("split", errors),
    }
    attributes = {"task": "classification", "bank": "gaussians"}
    return xr.Dataset(parts, {"split": np.arange(count)}, attributes)


def _tree(nodes: Mapping[str, xr.Dataset]) -> xr.DataTree:
    return xr.DataTree.from_dict(dict(nodes))
