"""The order of the scripts within the parts of the gallery: what is simpler comes first."""

from __future__ import annotations

NAMES = (
    # kernels
    "weights_along_c", "weights_of_views", "sparse_and_dense_weights", "groups_of_kernels",
    "normalisations", "refine_widths", "own_kernel", "random_kernels", "time_and_kernels",
    "factors",
    # methods
    "decision_boundaries", "c_of_scikit_learn", "several_classes", "class_weights", "regression",
    "one_class", "few_labels", "convergence", "rates_in_theory", "radius_and_margin",
    "passes_shared",
    # judging
    "sweep_in_xarray", "roc_and_calibration", "precision_recall", "choosing_c",
    "compare_two_methods", "several_data_sets", "learning_curves", "number_of_kernels",
    "explain_a_prediction", "stability",
    # data
    "words", "dna", "graph_kernels", "missing_views",
)  # fmt: skip


def place(script: str) -> int:
    """Return the place of a script by the name of its file."""
    return NAMES.index(script.removeprefix("plot_").removesuffix(".py"))
