"""Kernel functions, and their registry by the names of sweep files: all that the modules define.

They are listed in the order of their codes.  Entry points and functions of the user stand beside
it, see :mod:`mkldist.kernel_functions.custom`.
"""

from __future__ import annotations

from mkldist.kernel_functions import histograms, products, radial, text
from mkldist.kernel_functions.definition import KernelFunction, Parameter

MODULES = (radial, products, histograms, text)

BY_CODE: dict[int, KernelFunction] = {
    found.code: found
    for module in MODULES
    for found in vars(module).values()
    if isinstance(found, KernelFunction)
}
"""Kernel functions by their numbers in lists of kernels."""

FUNCTIONS: dict[str, KernelFunction] = {
    BY_CODE[code].name: BY_CODE[code] for code in sorted(BY_CODE)
}
"""Kernel functions by name."""

PARAMETERS: dict[str, Parameter] = {
    parameter.key: parameter for function in FUNCTIONS.values() for parameter in function.parameters
}
"""Parameters of all functions by their keys in sweep files; one key means one parameter."""
