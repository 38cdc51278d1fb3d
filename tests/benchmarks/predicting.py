"""Predictions of a model: rows in memory, and rows of a file."""

import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.core.threads import single_threaded
from mkldist.data.dataset import SourceColumns
from mkldist.data.preprocessing import FeatureScale, FittedPreprocessing
from mkldist.fit.decision import Expansion, LabelCoding
from mkldist.fit.model import Model
from mkldist.fit.predictions import write_predictions
from mkldist.kernels.kernel_list import KernelList
from tests.benchmarks.measuring import Measured, named

THREADS = 2
N_ROWS, N_FEATURES, N_SUPPORT = 100_000, 10, 500
WIDTHS = (0.5, 1.0, 2.0, 4.0)
SUBSETS = ([*range(N_FEATURES)], [0], [1], [2], [3])  # 20 kernels


def predicting(_: Path | None) -> Iterator[Measured]:
    """Predict 100,000 rows by 20 Gaussian kernels on 500 support vectors, in float64."""
    draw = np.random.default_rng(0)
    model = made_up_model(draw)
    x = draw.normal(size=(N_ROWS, N_FEATURES))
    [function] = model.functions
    found = model.decision_function(x[:1000])
    np.testing.assert_allclose(found, kernel_by_kernel(function, x[:1000]), rtol=0, atol=1e-10)
    work = f"predict {N_ROWS} rows, {len(function.kernels)} kernels, {N_SUPPORT} support vectors"
    ours, theirs = np.inf, np.inf
    with single_threaded():
        for _ in range(3):
            ours = min(ours, _cpu(lambda: model.decision_function(x)) / THREADS)
        theirs = 100 * _cpu(lambda: kernel_by_kernel(function, x[: N_ROWS // 100])) / THREADS
    yield Measured(work, ours, "1 s", theirs, note=f"CPU / {THREADS}, against scikit-learn's")
    yield _file(model, x)


def _file(model: Model, x: np.ndarray) -> Measured:
    """Return the seconds of a CSV file, and how much memory it took."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "new.csv"
        header = ",".join(model.feature_names)
        np.savetxt(data, x, fmt="%.6f", delimiter=",", header=header, comments="")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        target = Path(folder) / "out.csv"
        seconds = _cpu(lambda: write_predictions(model, data, target, n_threads=THREADS))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    note = f"CPU / {THREADS}, {grown:.0f} MiB more memory"
    return Measured(
        f"mkldist predict, a CSV file of {len(x)} rows", seconds / THREADS, "", note=note
    )


def made_up_model(draw: np.random.Generator) -> Model:
    """Return a model of Gaussian kernels on all features and on single ones."""
    kernels = KernelList(
        function=np.zeros(20),
        parameter=np.tile(WIDTHS, len(SUBSETS)),
        offset=np.zeros(20),
        subset=np.repeat(np.arange(len(SUBSETS)), len(WIDTHS)),
        subset_indptr=np.cumsum([0, *map(len, SUBSETS)]),
        subset_indices=np.concatenate(SUBSETS),
    )
    function = Expansion(
        kernels,
        np.arange(20),
        False,
        draw.normal(size=(N_SUPPORT, N_FEATURES)),
        draw.random(20),
        draw.normal(size=(N_SUPPORT, 1)),
        np.zeros(1),
    )
    names = tuple(f"x{j}" for j in range(N_FEATURES))
    scale = FeatureScale(np.zeros(N_FEATURES), np.ones(N_FEATURES))
    return Model(
        SourceColumns(names),
        names,
        FittedPreprocessing(None, scale),
        (function,),
        (function.weights,),
        LabelCoding(np.array(["no", "yes"]), (0.5, 0.5)),
    )


def kernel_by_kernel(function: Expansion, x: np.ndarray) -> np.ndarray:
    """Return decision values by scikit-learn's function, one kernel after the other."""
    total = np.zeros((len(x), N_SUPPORT))
    kernels = function.kernels
    for m in range(len(kernels)):
        columns = kernels.features_of(m)
        gamma = 1.0 / (2.0 * kernels.parameter[m] ** 2)
        total += function.weights[m] * rbf_kernel(x[:, columns], function.points[:, columns], gamma)
    return total @ function.coefficients[:, 0]


def _cpu(function) -> float:
    started = time.process_time()
    function()
    return time.process_time() - started


ROWS = named(predicting)
