"""A million rows of 20 features: what memory takes of them from their file to the kernels.

It is counted in bytes, those of arrays by tracemalloc and those of Parquet by pyarrow.
"""

import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zarr

from mkldist.bank.sources import FeatureSource
from mkldist.data.catalogue import load_dataset
from mkldist.data.preprocessing import preprocessed
from mkldist.data.snapshot import load_snapshot, save_snapshot
from mkldist.data.splits import make_splits
from mkldist.kernels.kernel_list import KernelList
from mkldist.spec.datasets import DatasetSpec, PreprocessingSpec, SplitsSpec

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

N, D = 1_000_000, 20
FEATURES = 8 * N * D
FOLDS = 5
PART = 50_000
GAUSSIAN = KernelList([0], [1.0], [0.0], [0], [0, D], np.arange(D))


def part(start: int) -> np.ndarray:
    """Return some rows of the data, the last feature constant."""
    x = np.random.default_rng(start).normal(3.0, 2.0, (PART, D + 1))
    x[:, D] = 7.0
    return x


def write_parquet(path: Path) -> None:
    """Write a table of one row group, the hardest case."""
    names = [f"f{column}" for column in range(D + 1)]
    x = np.concatenate([part(start) for start in range(0, N, PART)])
    frame = pd.DataFrame(x, columns=names).assign(label=np.where(x[:, 0] > 3, "yes", "no"))
    frame.to_parquet(path, row_group_size=N)


def write_zarr(path: Path) -> None:
    group = zarr.open_group(path, mode="w")
    x = group.create_array("x", shape=(N, D + 1), chunks=(PART, D + 1), dtype="f8")
    y = group.create_array("y", shape=N, chunks=N, dtype="i8")
    labels = np.empty(N, dtype=np.int64)
    for start in range(0, N, PART):
        values = part(start)
        x[start : start + PART], labels[start : start + PART] = values, values[:, 0] > 3
    y[:] = labels


def peak_of(work: Callable[[], Any]) -> tuple[Any, int]:
    """Return the result of some work, and the most bytes that it took beyond those before."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    result = work()
    return result, tracemalloc.get_traced_memory()[1] - before


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_parquet, write_zarr])
def test_features_are_in_memory_once(tmp_path, write):
    path = tmp_path / f"big.{write.__name__.removeprefix('write_')}"
    write(path)
    pool = pyarrow.default_memory_pool()
    pool.release_unused()
    spec = DatasetSpec(name="big", file=str(path))
    tracemalloc.start(1)
    try:
        held = pool.bytes_allocated()
        dataset, peak = peak_of(lambda: load_dataset(spec, (), Path(), 0))
        of_arrow = pool.max_memory() - held if write is write_zarr else pool.bytes_allocated()
        # The features with the constant one, and beside them labels as text and numbers.
        assert FEATURES < peak < 1.05 * FEATURES + FEATURES // D + 120 * N
        assert of_arrow <= FEATURES
        assert dataset.x.shape == (N, D)
        folds = SplitsSpec(kind="kfold", folds=FOLDS)
        splits, peak = peak_of(partial(make_splits, folds, dataset, 0))
        # Indices, not copies: of every fold, and of what scikit-learn draws it with.
        assert sum(split.train.nbytes + split.test.nbytes for split in splits) == 8 * FOLDS * N
        assert peak < FEATURES
        _, peak = peak_of(partial(save_snapshot, tmp_path / "snapshot", dataset, splits))
        assert peak < 8 * N * (FOLDS + 4)  # the indices of all folds as one array, no feature
        expected = dataset.x[splits[0].train].mean(axis=0), dataset.x[splits[0].train].std(axis=0)
        del dataset
        (mapped, splits), peak = peak_of(lambda: load_snapshot(tmp_path / "snapshot", mmap=True))
        assert isinstance(mapped.x, np.memmap)
        assert peak < 8 * N * (2 * FOLDS + 4)
        points, peak = peak_of(lambda: preprocessed(PreprocessingSpec(), mapped, splits[0]))
        assert peak < 1.25 * FEATURES
        source = FeatureSource(points, GAUSSIAN)
        _, peak = peak_of(lambda: source.diagonals(slice(0, 1)))
        assert peak < FEATURES // 4  # loops read the features where they are
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(points[::999], (mapped.x[::999] - expected[0]) / expected[1])
