"""Statistics of results: plain functions from trees or arrays to numbers and tables.

These names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# ruff: noqa: F403
if TYPE_CHECKING:
    from mkldist.analysis.comparison import *
    from mkldist.analysis.curves import *
    from mkldist.analysis.explanation import *
    from mkldist.analysis.growth import *
    from mkldist.analysis.losses import *
    from mkldist.analysis.statistics import *
    from mkldist.analysis.summary import selected_summary as selected_summary

_NAMES = {
    "mkldist.analysis.comparison": ("agreement compare_sweeps"),
    "mkldist.analysis.curves": (
        "convergence_curves learning_curve loss_by_active_kernels loss_by_bank_size objective_path "
        "prediction_curves"
    ),
    "mkldist.analysis.losses": "compare_methods compare_over_data_sets compared_losses",
    "mkldist.analysis.growth": "scaling scaling_fits",
    "mkldist.analysis.explanation": ("selection_frequency selection_table weights_at_best"),
    "mkldist.analysis.summary": "selected_summary",
    "mkldist.analysis.statistics": (
        "Overlap corrected_interval corrected_t_test correlated_posterior friedman "
        "holm pairwise_wilcoxon selection_stability"
    ),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
