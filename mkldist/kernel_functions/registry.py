"""The registry of kernel functions: one entry a function, by the names of sweep files.

The order is that in which they are listed.  Entry points and functions of the user stand beside
it, see :mod:`mkldist.kernel_functions.custom`.
"""

from __future__ import annotations

from types import ModuleType

from mkldist.kernel_functions import (
    additive,
    categorical,
    chi_squared,
    gaussian,
    intersection,
    jaccard,
    laplacian_rbf,
    linear,
    matern,
    periodic,
    polynomial,
    spectrum,
    tanimoto,
)
from mkldist.kernel_functions.definition import KernelFunction, Parameter

MODULES: tuple[ModuleType, ...] = (
    gaussian,
    polynomial,
    linear,
    laplacian_rbf,
    matern,
    periodic,
    chi_squared,
    intersection,
    jaccard,
    tanimoto,
    categorical,
    spectrum,
    additive,
)

FUNCTIONS: dict[str, KernelFunction] = {module.FUNCTION.name: module.FUNCTION for module in MODULES}
"""Kernel functions by name."""

BY_CODE: dict[int, KernelFunction] = {function.code: function for function in FUNCTIONS.values()}
"""Kernel functions by their numbers in lists of kernels."""

PARAMETERS: dict[str, Parameter] = {
    parameter.key: parameter for function in FUNCTIONS.values() for parameter in function.parameters
}
"""Parameters of all functions by their keys in sweep files; one key means one parameter."""
