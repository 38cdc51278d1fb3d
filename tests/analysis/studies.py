"""Trees of scaling studies that were made up, with times that follow known laws."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

N_KERNELS = (100, 300, 1000, 3000)
N_TRAIN = (200,)
LAWS = {"level": (1.0, 2.0), "silp": (1.4, 1.6)}
"""Exponents of the solver's time, in the numbers of kernels and of training points."""
SETTINGS = (1.0, 10.0)
N_SPLITS = 3


def solver_seconds(method: str, n_kernels: int, n_train: int, C: float = 1.0) -> float:
    kernels, points = LAWS[method]
    return 1e-6 * n_kernels**kernels * n_train**points * C**0.1


def pass_seconds(n_kernels: int, n_train: int) -> float:
    return 2e-6 * n_kernels * n_train**2


def build_seconds(n_kernels: int, n_train: int) -> float:
    return 3e-6 * n_kernels * n_train**2


def study(
    n_kernels: Sequence[int] = N_KERNELS,
    n_train: Sequence[int] = N_TRAIN,
    *,
    noise: float = 0.0,
    series: bool = True,
    build: bool = True,
    n_splits: int = N_SPLITS,
    settings: Sequence[float] = SETTINGS,
    execution: str = "isolated",
) -> xr.DataTree:
    """Return the results of a study on the data set ``ring`` and the bank ``gaussians``."""
    draw = np.random.default_rng(0)
    nodes: dict[str, xr.Dataset] = {}
    for kernels, points, method in product(n_kernels, n_train, LAWS):
        dataset = f"ring-{points}" if len(n_train) > 1 else "ring"
        bank = f"gaussians-{kernels}"
        path = f"/{dataset}/{bank}/{method}" if len(n_kernels) > 1 else f"/{dataset}/{method}"
        factor = np.exp(draw.normal(0.0, noise, n_splits))[:, None]
        shape = (n_splits, len(settings))
        own = factor * [solver_seconds(method, kernels, points, C) for C in settings]
        passes = np.broadcast_to(factor * pass_seconds(kernels, points), shape)
        runs = {
            "state": np.full(shape, "complete", object),
            "stop_reason": np.full(shape, "converged", object),
            "error": np.full(shape, "", object),
            "run_id": np.array([f"{path}-{i}" for i in range(own.size)], object).reshape(shape),
            "own_seconds": own,
            "pass_seconds": passes.copy(),
            "seconds": own + passes,
            "cpu_seconds": 0.5 * own,
            "pass_cpu_seconds": 0.5 * passes,
            "gap": np.full(shape, 1e-3),
            "passes": np.full(shape, 7.0),
            "test_error": np.full(shape, 0.1),
        }
        known: dict[str, Any] = {"n_kernels": kernels, "n_train": ("split", [points] * n_splits)}
        if build:
            known["build_seconds"] = (
                "split", [build_seconds(kernels, points)] * n_splits, {"units": "s"}
            )  # fmt: skip
        named = {"dataset_series": "ring", "bank_series": "gaussians"} if series else {}
        nodes[path] = xr.Dataset(
            {name: (("split", "C"), values) for name, values in runs.items()},
            {"split": np.arange(n_splits), "C": list(settings), **known},
            {"method": method, "bank": bank, "task": "classification", **named},
        )
    root = {"spec": f'{{"name": "ring", "execution": "{execution}"}}', "provenance": "{}"}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=root), **nodes})
