"""Statistics of results: plain functions from trees or arrays to numbers and tables.

These names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkldist.analysis.compare_results import compare_sweeps
    from mkldist.analysis.comparison import (
        compare_methods,
        compare_over_data_sets,
        compared_losses,
    )
    from mkldist.analysis.curves import (
        convergence_curves,
        learning_curve,
        loss_by_active_kernels,
        loss_by_bank_size,
        objective_path,
    )
    from mkldist.analysis.decision_curves import prediction_curves
    from mkldist.analysis.growth import fit_power_law, scaling, scaling_fits
    from mkldist.analysis.kernel_numbers import active_kernels, compare_active_kernels
    from mkldist.analysis.kernel_selection import (
        selection_frequency,
        selection_stability,
        selection_table,
        weights_at_best,
    )
    from mkldist.analysis.nested_validation import (
        choose_setting,
        nested_selection,
        selection_optimism,
    )
    from mkldist.analysis.over_data_sets import (
        friedman,
        holm,
        pairwise_wilcoxon,
        signed_rank_posterior,
    )
    from mkldist.analysis.points import mcnemar, mcnemar_points
    from mkldist.analysis.repeated_runs import agreement
    from mkldist.analysis.resampling import (
        Overlap,
        corrected_interval,
        corrected_t_test,
        correlated_posterior,
    )

_MODULES = {
    "Overlap": "mkldist.analysis.resampling",
    "active_kernels": "mkldist.analysis.kernel_numbers",
    "agreement": "mkldist.analysis.repeated_runs",
    "choose_setting": "mkldist.analysis.nested_validation",
    "compare_active_kernels": "mkldist.analysis.kernel_numbers",
    "compare_methods": "mkldist.analysis.comparison",
    "compare_over_data_sets": "mkldist.analysis.comparison",
    "compare_sweeps": "mkldist.analysis.compare_results",
    "compared_losses": "mkldist.analysis.comparison",
    "convergence_curves": "mkldist.analysis.curves",
    "corrected_interval": "mkldist.analysis.resampling",
    "corrected_t_test": "mkldist.analysis.resampling",
    "correlated_posterior": "mkldist.analysis.resampling",
    "fit_power_law": "mkldist.analysis.growth",
    "friedman": "mkldist.analysis.over_data_sets",
    "holm": "mkldist.analysis.over_data_sets",
    "learning_curve": "mkldist.analysis.curves",
    "loss_by_active_kernels": "mkldist.analysis.curves",
    "loss_by_bank_size": "mkldist.analysis.curves",
    "mcnemar": "mkldist.analysis.points",
    "objective_path": "mkldist.analysis.curves",
    "mcnemar_points": "mkldist.analysis.points",
    "nested_selection": "mkldist.analysis.nested_validation",
    "pairwise_wilcoxon": "mkldist.analysis.over_data_sets",
    "prediction_curves": "mkldist.analysis.decision_curves",
    "scaling": "mkldist.analysis.growth",
    "scaling_fits": "mkldist.analysis.growth",
    "selection_frequency": "mkldist.analysis.kernel_selection",
    "selection_optimism": "mkldist.analysis.nested_validation",
    "selection_stability": "mkldist.analysis.kernel_selection",
    "selection_table": "mkldist.analysis.kernel_selection",
    "signed_rank_posterior": "mkldist.analysis.over_data_sets",
    "weights_at_best": "mkldist.analysis.kernel_selection",
}

__all__ = [
    "Overlap",
    "active_kernels",
    "agreement",
    "choose_setting",
    "compare_active_kernels",
    "compare_methods",
    "compare_over_data_sets",
    "compare_sweeps",
    "compared_losses",
    "convergence_curves",
    "corrected_interval",
    "corrected_t_test",
    "correlated_posterior",
    "fit_power_law",
    "friedman",
    "holm",
    "learning_curve",
    "loss_by_active_kernels",
    "loss_by_bank_size",
    "mcnemar",
    "mcnemar_points",
    "nested_selection",
    "objective_path",
    "pairwise_wilcoxon",
    "prediction_curves",
    "scaling",
    "scaling_fits",
    "selection_frequency",
    "selection_optimism",
    "selection_stability",
    "selection_table",
    "signed_rank_posterior",
    "weights_at_best",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
