"""The problems that the benchmarks share."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

from mkldist.bank.bank import MemoryBank, TileLayout
from mkldist.bank.sources import FeatureSource
from mkldist.bank.view import make_views
from mkldist.data.synthetic import generate
from mkldist.kernels.families import kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.banks import BankSpec


@dataclass(frozen=True, eq=False)
class Points:
    """Half of a data set, z-scored, and the kernels of Xu et al. 2008 on it."""

    name: str
    x: np.ndarray
    y: np.ndarray
    kernels: KernelList


LEVEL_NAMES = (
    "ionosphere", "sonar", "pima", "wdbc", "heart", "vote", "breast_wisconsin", "wpbc194",
)  # fmt: skip


@cache
def xu2008(data_dir: Path | None, name: str | None = None, *, half: bool = True) -> Points:
    """Return a table of `data_dir`; without one, breast cancer data bundled with scikit-learn."""
    if data_dir is None:
        name = "breast cancer"
        x, target = load_breast_cancer(return_X_y=True)
        y = np.where(target == 1, -1.0, 1.0)
    else:
        name = name or "ionosphere"
        table = np.genfromtxt(data_dir / f"{name}.csv", delimiter=",", skip_header=1)
        x, y = table[:, :-1], table[:, -1]
        x = x[:, x.std(axis=0) > 0]
    rows = np.random.default_rng(0).permutation(len(y))
    rows = rows[: len(y) // 2] if half else rows
    x = x[rows]
    x = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)
    d = x.shape[1]
    kernels = kernel_list(BankSpec(family="xu2008"), d, [f"f{j}" for j in range(d)], {}, 0)
    return Points(name, x, y[rows], kernels)


def ring(n_kernels: int, n: int = 200) -> Points:
    """Return points of ringnorm and Gaussian kernels of random widths on random subsets."""
    raw = generate("ringnorm", {"n": n}, 0, "ringnorm")
    x = (raw.x - raw.x.mean(axis=0)) / raw.x.std(axis=0)
    d = x.shape[1]
    words = {"function": "gaussian", "widths": "chi2", "features": {"count": n_kernels}}
    spec = BankSpec(kernels=[words])
    kernels = kernel_list(spec, d, [f"f{j}" for j in range(d)], {}, 0)
    labels = np.asarray(raw.labels)
    return Points("ring", x, np.where(labels == labels[0], 1.0, -1.0), kernels)


def source(points: Points) -> FeatureSource:
    """Return what computes the kernels of the points."""
    return FeatureSource(points.x, points.kernels)


def built(points: Points, threads: int = 1) -> MemoryBank:
    """Evaluate all kernels of the points into memory, equal parts of them in some threads."""
    layout = TileLayout.for_points(len(points.x))
    values = np.empty((len(points.kernels), layout.n_entries))
    tiles = values.reshape(len(values), layout.n_tiles, layout.tile, layout.tile)
    features, everywhere = source(points), slice(0, layout.n_tiles)
    ends = [len(values) * part // threads for part in range(threads + 1)]

    def fill(part: slice) -> None:
        features.fill(part, everywhere, layout, tiles[part])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, map(slice, ends, ends[1:])))
    return MemoryBank(values, layout)


@cache
def bank(data_dir: Path | None) -> MemoryBank:
    return built(xu2008(data_dir))


@cache
def grams(data_dir: Path | None) -> np.ndarray:
    """Return the same kernels of unit trace as a dense (M, n, n) stack."""
    return dense(bank(data_dir))


def dense(ours: MemoryBank) -> np.ndarray:
    """Return the kernels of a bank, scaled to unit trace, as an (M, n, n) stack."""
    [view] = make_views(ours, [None], ("trace",))
    stack = np.empty((ours.n_kernels, ours.n_points, ours.n_points))
    for m in range(ours.n_kernels):
        ours.layout.unpack(ours._values[m], out=stack[m])
    return stack * view.scale[:, None, None]
