"""Kernels that one entry of a sweep file puts on every feature subset: function and parameters."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mkldist.arrays import Floats
from mkldist.errors import SpecError
from mkldist.kernel_functions.custom import CUSTOM_CODE, CustomFunction, CustomKernel
from mkldist.kernel_functions.definition import KernelFunction, Parameter, kernel_words
from mkldist.kernel_functions.registry import FUNCTIONS, PARAMETERS
from mkldist.kernels.feature_subsets import WIDTH_STREAM, FeatureSubsets
from mkldist.spec.kernel_entries import KernelSpec, Range
from mkldist.spec.sizes import check_fits

PAIR_BYTES = 160  # of two numbers of Python in a tuple, and of an array of both


@dataclass(frozen=True)
class Templates:
    """P kernels on every subset.

    Parameters
    ----------
    code : int
        Code of their function.
    first : (P,) or (S, 1) float64
        First parameters on every subset, or one random parameter for each of S subsets.
    second : (P,) float64
        Second parameters.
    """

    code: int
    first: Floats
    second: Floats

    def on(self, n_subsets: int) -> Floats:
        """Return the first parameters (S, P)."""
        return np.broadcast_to(self.first, (n_subsets, self.first.shape[-1]))


def check_entry(entry: KernelSpec, place: str) -> None:
    """Raise SpecError for parameters that an entry's function does not take, or for missing ones.

    Parameters
    ----------
    entry : KernelSpec
        The entry.
    place : str
        Words for its place.
    """
    function = FUNCTIONS.get(entry.function) if isinstance(entry.function, str) else None
    taken = () if function is None else function.parameters
    keys = [parameter.key for parameter in taken] if function else ["parameters"]
    words = kernel_words(entry.label)
    for key in (*PARAMETERS, "parameters"):
        if getattr(entry, key) is not None and key not in keys:
            wanted = f"{' and '.join(keys)} alone" if keys else "none"
            raise SpecError(f"{place}.{key}", f"{key} of {words}", wanted)
    for parameter in taken:
        if parameter.default is None and getattr(entry, parameter.key) is None:
            wanted = f"{parameter.key} = …"
            raise SpecError(place, f"{words} without {parameter.key}", wanted)


def templates(
    entry: KernelSpec,
    subsets: FeatureSubsets,
    place: str,
    seed: tuple[int, int],
    custom: list[CustomKernel],
) -> Templates:
    """Return the kernels that an entry puts on each of the subsets.

    Parameters
    ----------
    entry : KernelSpec
        The entry, checked.
    subsets : FeatureSubsets
        The subsets.
    place : str
        Words for the place of the entry.
    seed : (int, int)
        Seed of the sweep and number of the entry, for random widths.
    custom : list of CustomKernel
        Functions of the user so far; those of the entry are added.

    Raises
    ------
    mkldist.errors.SpecError
        For parameters out of range, more of them than memory holds, and for a function of the user
        that cannot be called.
    """
    if not isinstance(entry.function, str) or entry.function not in FUNCTIONS:
        return _of_user(entry, place, custom)
    function = FUNCTIONS[entry.function]
    if any(getattr(entry, parameter.key) == "chi2" for parameter in function.parameters):
        widths = _random_widths(subsets, place, seed)
        seconds = _grids(function, entry, place)[1]
        if len(seconds) > 1:
            key = function.parameters[1].key
            raise SpecError(f"{place}.{key}", f"{len(seconds)} with widths = 'chi2'", "one")
        return Templates(function.code, widths, seconds)
    grids = _grids(function, entry, place)
    n_pairs = math.prod(map(len, grids))
    check_fits(n_pairs, PAIR_BYTES, place, "pairs of parameters", "Give fewer values")
    pairs = list(itertools.product(*grids))
    first, second = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    return Templates(function.code, first, second)


def _grids(function: KernelFunction, entry: KernelSpec, place: str) -> list[Floats]:
    """Return the values of the first and of the second parameter; 1 and 0 stand for none."""
    grids = [_values(parameter, entry, place) for parameter in function.parameters]
    return [*grids, *[np.ones(1), np.zeros(1)][len(grids) :]]


def _values(parameter: Parameter, entry: KernelSpec, place: str) -> Floats:
    """Return the values of a parameter, (P,)."""
    given = getattr(entry, parameter.key)
    if given == "chi2":
        return np.ones(1)
    if given is None:
        given = parameter.default
    values = np.atleast_1d(np.asarray(given.values() if isinstance(given, Range) else given, float))
    least, most = parameter.smallest, parameter.largest
    if not ((values >= least) & (values <= most) & (values < np.inf)).all():
        limits = f", at most {most:g}" if most < np.inf else ""
        if least > 0.0:
            limits = f", from {least:g} to {most:g}"
        wanted = f"numbers above 0{limits}"
        raise SpecError(f"{place}.{parameter.key}", f"{values.tolist()}", wanted)
    return values


def _random_widths(subsets: FeatureSubsets, place: str, seed: tuple[int, int]) -> Floats:
    """Draw one width per subset, (S, 1): ``σ² = 5 χ² + 0.1`` with χ² of one degree of freedom."""
    if not subsets.random:
        raise SpecError(
            f"{place}.widths",
            "'chi2' on feature sets that are not random",
            "numbers, or features = {count = …} for one random width per random subset",
        )
    rng = np.random.default_rng([seed[0], WIDTH_STREAM, seed[1]])
    return np.sqrt(5.0 * rng.chisquare(1, len(subsets)) + 0.1)[:, None]


def _of_user(entry: KernelSpec, place: str, custom: list[CustomKernel]) -> Templates:
    """Return the kernels of a function of the user, one for each combination of its parameters."""
    if isinstance(entry.function, str):
        function = CustomFunction.named(entry.function, f"{place}.function")
    else:
        function = CustomFunction.of(entry.function)
    given: dict[str, Any] = entry.parameters or {}
    lists = [value if isinstance(value, list) else [value] for value in given.values()]
    start = len(custom)
    for values in itertools.product(*lists):
        kernel = CustomKernel(function, tuple(zip(given, values, strict=True)))
        kernel.check(place)
        custom.append(kernel)
    places = np.arange(start, len(custom), dtype=np.float64)
    return Templates(CUSTOM_CODE, places, np.zeros(len(places)))
