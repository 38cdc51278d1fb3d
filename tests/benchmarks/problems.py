"""The problems that the benchmarks share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

from mkldist.gram.bank import MemoryBank
from mkldist.gram.build import FeatureSource
from mkldist.gram.layout import TileLayout
from mkldist.gram.view import make_views
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.model import BankSpec


@dataclass(frozen=True, eq=False)
class Points:
    """Half of a data set, z-scored, and the kernels of Xu et al. 2008 on it."""

    name: str
    x: np.ndarray
    y: np.ndarray
    kernels: KernelList


@cache
def xu2008(data_dir: Path | None) -> Points:
    """Ionosphere from `data_dir`; without one, the breast cancer data bundled with scikit-learn."""
    if data_dir is None:
        name = "breast cancer"
        x, target = load_breast_cancer(return_X_y=True)
        y = np.where(target == 1, -1.0, 1.0)
    else:
        name = "ionosphere"
        table = np.genfromtxt(data_dir / "ionosphere.csv", delimiter=",", skip_header=1)
        x, y = table[:, :-1], table[:, -1]
        x = x[:, x.std(axis=0) > 0]
    half = np.random.default_rng(0).permutation(len(y))[: len(y) // 2]
    x = x[half]
    x = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)
    d = x.shape[1]
    kernels = kernel_list(BankSpec(family="xu2008"), d, [f"f{j}" for j in range(d)], {}, 0)
    return Points(name, x, y[half], kernels)


def built(points: Points) -> MemoryBank:
    """Evaluate all kernels of the points into memory."""
    layout = TileLayout.for_points(len(points.x))
    values = np.empty((len(points.kernels), layout.n_entries))
    tiles = values.reshape(len(values), layout.n_tiles, layout.tile, layout.tile)
    source = FeatureSource(points.x, points.kernels)
    source.fill(slice(0, len(values)), slice(0, layout.n_tiles), layout, tiles)
    return MemoryBank(values, layout)


@cache
def bank(data_dir: Path | None) -> MemoryBank:
    return built(xu2008(data_dir))


@cache
def grams(data_dir: Path | None) -> np.ndarray:
    """Return the same kernels of unit trace as a dense (M, n, n) stack."""
    ours = bank(data_dir)
    [view] = make_views(ours, [None], ("trace",))
    n_kernels = ours.n_kernels
    stack = np.empty((n_kernels, ours.n_points, ours.n_points))
    for m in range(n_kernels):
        ours.layout.unpack(ours._values[m], out=stack[m])
    return stack * view.scale[:, None, None]
