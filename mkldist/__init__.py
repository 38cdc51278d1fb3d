"""Multiple kernel learning over banks of kernels: sweeps with Dask, certificates, xarray results.

The names below are imported on first use, so that ``import mkldist`` takes no time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    __version__: str
    import mkldist.analysis as analysis
    import mkldist.kernels as kernels
    import mkldist.plot as plot
    from mkldist.fit.api import solve, solve_path
    from mkldist.fit.bank import KernelBank
    from mkldist.fit.estimators import (
        MKLClassifier,
        MKLClassifierCV,
        MKLRegressor,
        OneClassMKL,
        SemiSupervisedMKLClassifier,
        set_bank_cache,
    )
    from mkldist.fit.explain import explain
    from mkldist.fit.model import Model, load_model
    from mkldist.from_python.listings import list_kernels, list_methods
    from mkldist.from_python.plans import plan
    from mkldist.from_python.sweeps import sweep
    from mkldist.results.rows import concat, selected, to_frame
    from mkldist.results.tree import open_results
    from mkldist.solvers.base import Solution

_MODULES = {"analysis": "mkldist.analysis", "kernels": "mkldist.kernels", "plot": "mkldist.plot"}
_EXPORTS = {
    "KernelBank": "mkldist.fit.bank",
    "MKLClassifier": "mkldist.fit.estimators",
    "MKLClassifierCV": "mkldist.fit.estimators",
    "MKLRegressor": "mkldist.fit.estimators",
    "Model": "mkldist.fit.model",
    "OneClassMKL": "mkldist.fit.estimators",
    "SemiSupervisedMKLClassifier": "mkldist.fit.estimators",
    "Solution": "mkldist.solvers.base",
    "concat": "mkldist.results.rows",
    "explain": "mkldist.fit.explain",
    "list_kernels": "mkldist.from_python.listings",
    "list_methods": "mkldist.from_python.listings",
    "load_model": "mkldist.fit.model",
    "open_results": "mkldist.results.tree",
    "plan": "mkldist.from_python.plans",
    "selected": "mkldist.results.rows",
    "set_bank_cache": "mkldist.fit.estimators",
    "solve": "mkldist.fit.api",
    "sweep": "mkldist.from_python.sweeps",
    "solve_path": "mkldist.fit.api",
    "to_frame": "mkldist.results.rows",
}

__all__ = [
    "KernelBank", "MKLClassifier", "MKLClassifierCV", "MKLRegressor", "Model", "OneClassMKL",
    "SemiSupervisedMKLClassifier", "Solution", "analysis", "concat", "explain", "kernels",
    "list_kernels", "list_methods", "load_model", "open_results", "plan", "plot", "selected",
    "set_bank_cache", "solve", "solve_path", "sweep", "to_frame",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(_MODULES[name])
    if name == "__version__":
        value = import_module("importlib.metadata").version("mkldist")
    elif name in _EXPORTS:
        value = getattr(import_module(_EXPORTS[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    hidden = {"annotations", "TYPE_CHECKING"}
    return sorted({*globals(), *__all__} - hidden)
