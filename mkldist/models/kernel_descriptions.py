"""Kernels of a model as JSON takes them; functions of the user by the name that imports them.

A model holds no code.  Of a function of the user it holds ``"package.module:function"``, or the
name of an entry point, and kernel values between some of its support points.  Only a reader who
asks for it imports the function, and the function must give these values again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mkldist.arrays import Array, Floats
from mkldist.errors import SpecError, StoreError
from mkldist.kernel_functions.custom import CUSTOM_CODE, CustomFunction, CustomKernel
from mkldist.kernel_functions.registry import FUNCTIONS
from mkldist.kernels.evaluate import evaluate
from mkldist.kernels.kernel_list import KernelList

Description = dict[str, Any]

PROBED = 8  # support points whose kernel values a model keeps
AGREEMENT = 1e-8  # of the largest of these values


def described(kernels: KernelList) -> list[Description]:
    """Return kernels as JSON takes them: function, parameters, features and their label.

    Raises
    ------
    mkldist.errors.SpecError
        For a function of the user that cannot be imported by a name.
    """
    return [
        {
            **_function(kernels, m),
            "features": kernels.features_of(m).tolist(),
            "label": kernels.subset_labels.get(int(kernels.subset[m])),
        }
        for m in range(len(kernels))
    ]


def _function(kernels: KernelList, kernel: int) -> Description:
    """Return the function of a kernel with its parameters."""
    own = kernels.custom_of(kernel)
    if own is None:
        return {
            "function": kernels.function_of(kernel).label,
            "parameter": float(kernels.parameter[kernel]),
            "offset": float(kernels.offset[kernel]),
        }
    if not own.function.reference:
        raise SpecError(
            "model",
            f"kernel function {own.function.label!r}, which no name imports",
            'a function "package.module:function": the file of a model holds no code',
            "Define it at the top of a file of its own, and import it from there",
        )
    return {"code": own.function.reference, "arguments": dict(own.arguments)}


def code_of(described: Sequence[Description]) -> Iterator[str]:
    """Yield the name of every function of the user among described kernels."""
    return (kernel["code"] for kernel in described if "code" in kernel)


def has_code(kernels: KernelList) -> bool:
    """Return True for a list with a function of the user."""
    return bool((kernels.function == CUSTOM_CODE).any())


def kernel_list(described: Sequence[Description], where: str = "model") -> KernelList:
    """Return the kernels that :func:`described` describes; functions of the user are imported.

    Parameters
    ----------
    described : sequence of dict
        The descriptions.
    where : str
        The place to name in a message.

    Raises
    ------
    mkldist.errors.SpecError
        For a function that cannot be imported.
    """
    subsets: dict[tuple[tuple[int, ...], str | None], int] = {}
    numbers = [
        subsets.setdefault((tuple(kernel["features"]), kernel["label"]), len(subsets))
        for kernel in described
    ]
    sizes = [len(features) for features, _ in subsets]
    custom: list[CustomKernel] = []
    rows = [_numbers(kernel, custom, where) for kernel in described]
    return KernelList(
        function=np.array([code for code, _, _ in rows], dtype=np.uint8),
        parameter=np.array([first for _, first, _ in rows]),
        offset=np.array([second for _, _, second in rows]),
        subset=np.array(numbers),
        subset_indptr=np.cumsum([0, *sizes]),
        subset_indices=np.array([column for features, _ in subsets for column in features]),
        subset_labels={
            number: label for (_, label), number in subsets.items() if label is not None
        },
        custom=tuple(custom),
    )


def _numbers(
    kernel: Mapping[str, Any], custom: list[CustomKernel], where: str
) -> tuple[int, float, float]:
    """Return the code of a kernel's function and its two parameters in a list of kernels."""
    if "code" not in kernel:
        return FUNCTIONS[kernel["function"]].code, kernel["parameter"], kernel["offset"]
    function = CustomFunction.named(kernel["code"], where)
    custom.append(CustomKernel(function, tuple(kernel["arguments"].items())))
    return CUSTOM_CODE, float(len(custom) - 1), 0.0


def probe(kernels: KernelList, points: Floats | Array) -> Floats:
    """Return the values of the user's functions between the first support points, (S, p, p)."""
    own = kernels.select(np.flatnonzero(kernels.function == CUSTOM_CODE))
    return evaluate(own, points[:PROBED], points[:PROBED])


def check_probe(kernels: KernelList, points: Floats | Array, expected: Floats, where: str) -> None:
    """Refuse functions of the user that give other values than when the model was fitted.

    Raises
    ------
    mkldist.errors.StoreError
        Naming the first such function.
    """
    own = np.flatnonzero(kernels.function == CUSTOM_CODE)
    for m, now, then in zip(own.tolist(), probe(kernels, points), expected, strict=True):
        furthest = float(np.abs(now - then).max(initial=0.0))
        if furthest > AGREEMENT * float(np.abs(then).max(initial=0.0)):
            raise StoreError(
                where,
                f"kernel function {kernels.function_of(m).label!r} with values that differ by "
                f"{furthest:.3g} from those of the fit",
                "the function that the model was fitted with",
                "Restore it, or fit the model again",
            )
