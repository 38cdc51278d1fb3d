"""Multiple kernel learning over banks of kernels: sweeps with Dask, certificates, xarray results.

The names below are imported on first use, so that ``import mkldist`` takes no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import mkldist.kernels as kernels
    from mkldist.estimators.classifier import MKLClassifier
    from mkldist.estimators.one_class import OneClassMKL
    from mkldist.estimators.regressor import MKLRegressor
    from mkldist.estimators.semi_supervised import SemiSupervisedMKLClassifier
    from mkldist.in_memory.kernel_bank import KernelBank
    from mkldist.in_memory.solve import solve, solve_path
    from mkldist.results.concat import concat
    from mkldist.results.rows import to_frame
    from mkldist.results.selected import selected
    from mkldist.results.tree import open_results
    from mkldist.solvers.base import Solution

_EXPORTS = {
    "KernelBank": "mkldist.in_memory.kernel_bank",
    "MKLClassifier": "mkldist.estimators.classifier",
    "MKLRegressor": "mkldist.estimators.regressor",
    "OneClassMKL": "mkldist.estimators.one_class",
    "SemiSupervisedMKLClassifier": "mkldist.estimators.semi_supervised",
    "Solution": "mkldist.solvers.base",
    "concat": "mkldist.results.concat",
    "open_results": "mkldist.results.tree",
    "selected": "mkldist.results.selected",
    "solve": "mkldist.in_memory.solve",
    "solve_path": "mkldist.in_memory.solve",
    "to_frame": "mkldist.results.rows",
}

__all__ = [
    "KernelBank",
    "MKLClassifier",
    "MKLRegressor",
    "OneClassMKL",
    "SemiSupervisedMKLClassifier",
    "Solution",
    "concat",
    "kernels",
    "open_results",
    "selected",
    "solve",
    "solve_path",
    "to_frame",
]


def __getattr__(name: str) -> Any:
    if name == "kernels":
        return import_module("mkldist.kernels")
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
