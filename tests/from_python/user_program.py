"""A program as a user writes it, which a strict type checker reads without an error."""

import numpy as np
import numpy.typing as npt
import xarray as xr

import mkldist
from mkldist.kernels import Gaussian


def made_up(n: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return features (n, 2) and labels (n,) of two classes."""
    x = np.random.default_rng(0).normal(size=(n, 2))
    return x, np.where(x[:, 0] > 0, 1.0, -1.0)


def main() -> None:
    """Solve, fit an estimator and plan a sweep."""
    x, y = made_up(60)
    bank = mkldist.KernelBank(x, [Gaussian(relative_widths=[0.5, 1.0], features=["all", "each"])])
    solution: mkldist.Solution = mkldist.solve("level", bank, y, C=1.0)
    gap: float = solution.gap
    weights: npt.NDArray[np.float64] = solution.kernel_weights
    model = mkldist.MKLClassifier(C=1.0).fit(x, y)
    error = float((model.predict(x) != y).mean())
    spec = {
        "name": "small",
        "banks": [{"family": "default"}],
        "methods": [{"name": "uniform"}],
        "splits": {"repeats": 2},
    }
    plan = mkldist.plan(spec, {"mine": (x, y)})
    n_runs: int = plan.n_runs
    assert gap < 0.1
    assert weights.shape == (6,)
    assert error < 0.2
    assert n_runs == 2


def errors_of(tree: xr.DataTree) -> xr.DataArray:
    """Return the test errors of a sweep that has one data set and one method."""
    return tree["mine/uniform"].dataset["test_error"]


if __name__ == "__main__":
    main()
