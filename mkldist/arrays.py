"""Types of the package's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
"""Numbers that solvers compute with; all certificates are of this type."""

Floating = npt.NDArray[np.floating]
"""Gram matrices as stored, in float32 or float64."""

Ints = npt.NDArray[np.intp]
"""Indices of points, kernels or cuts."""

Bools = npt.NDArray[np.bool_]
"""Masks."""

Array = npt.NDArray[Any]
"""An array of any type."""
