"""Turn the banks of a sweep file, the families of papers among them, into lists of kernels.

Kernels are ordered by feature subset: all features, single features, named groups, random subsets.
Within a subset they have the order of the entries.  Because kernels of one subset are adjacent, a
build computes the distances of a subset once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mkldist.arrays import Floats
from mkldist.errors import SpecError
from mkldist.kernels.feature_subsets import (
    WIDTH_STREAM,
    FeatureSubsets,
    SubsetWords,
)
from mkldist.kernels.functions import KernelFunction
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.precomputed import PRECOMPUTED
from mkldist.spec.banks import BankSpec, KernelSpec, Range

# Beyond these limits the square of a width leaves the range of float64.
WIDTH_RANGE = (1e-150, 1e150)


def _gaussian(widths: Sequence[float], features: tuple[str, ...]) -> KernelSpec:
    return KernelSpec(function="gaussian", widths=list(widths), features=list(features))


def _polynomial(degrees: Sequence[int], features: tuple[str, ...]) -> KernelSpec:
    return KernelSpec(function="polynomial", degrees=list(degrees), features=list(features))


def _xu2008() -> tuple[KernelSpec, ...]:
    where = ("all", "each")
    return (
        _gaussian([2.0**e for e in range(-3, 7)], where),
        _polynomial(range(1, 4), where),
    )


def _suzuki2011() -> tuple[KernelSpec, ...]:
    where = ("all", "each")
    return (
        _gaussian([0.1, 0.25, 0.5, 0.75, *range(1, 21)], where),
        _polynomial(range(1, 4), where),
    )


def _hao2012() -> tuple[KernelSpec, ...]:
    widths = [base**e for base in (1.1, 1.5, 2.0) for e in range(-5, 6)]
    return (_gaussian(widths, ("all",)),)


def _hao2012_polynomial() -> tuple[KernelSpec, ...]:
    return (*_hao2012(), _polynomial(range(1, 11), ("all",)))


def _do2009() -> tuple[KernelSpec, ...]:
    return (_polynomial(range(1, 4), ("all",)), _gaussian(range(1, 18), ("all",)))


def _do2009_gaussian() -> tuple[KernelSpec, ...]:
    return (_gaussian(range(1, 21), ("all",)),)


def _guo2011() -> tuple[KernelSpec, ...]:
    widths = [0.01, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8]
    return (
        KernelSpec(function="linear", features="all"),
        _polynomial(range(2, 7), ("all",)),
        _gaussian(widths, ("all",)),
    )


NAMED_FAMILIES: dict[str, Callable[[], tuple[KernelSpec, ...]]] = {
    "xu2008": _xu2008,
    "suzuki2011": _suzuki2011,
    "hao2012": _hao2012,
    "hao2012-polynomial": _hao2012_polynomial,
    "do2009": _do2009,
    "do2009-gaussian": _do2009_gaussian,
    "guo2011": _guo2011,
}
"""The kernels of each paper's experiments.  All three series of hao2012 contain width 1."""


def kernel_list(
    spec: BankSpec,
    n_features: int,
    feature_names: Sequence[str],
    groups: Mapping[str, tuple[int, ...]],
    seed: int,
    views: Collection[str] = (),
) -> KernelList:
    """Return the kernels of a bank over a data set's features.

    Parameters
    ----------
    spec : BankSpec
        A named family, or kernels in full.
    n_features : int
        Number d of features.
    feature_names : sequence of str
        d names, by which entries may refer to single features.
    groups : mapping of str to tuple of int
        Named feature groups.
    seed : int
        Seed of random subsets and random widths.  A larger number of them begins with the same
        ones.  Entries with the same number and size of random subsets share them.
    views : collection of str
        The groups that are views.

    Raises
    ------
    SpecError
        For parameters that the function does not take, an unknown feature group, a random subset
        of more features than there are, or a bank that needs features where there are none.
    """
    where = f"banks.{spec.label}"
    if n_features < 1:
        raise SpecError(
            where, "kernels of features for data without features", "family = 'precomputed'"
        )
    if spec.family == "precomputed":
        raise SpecError(
            where,
            "family 'precomputed' for data with features",
            f"one of {', '.join(NAMED_FAMILIES)} or [[banks.kernels]]",
        )
    entries = spec.kernels if spec.family is None else NAMED_FAMILIES[spec.family]()
    words = SubsetWords(n_features, tuple(feature_names), groups, seed, tuple(views))
    parts: dict[tuple[int, str], _Part] = {}
    for i, entry in enumerate(entries):
        if entry.function == PRECOMPUTED:
            continue
        place = f"{where}.kernels[{i}]"
        for feature_set in words.feature_sets(entry, place):
            subsets = words.resolve(feature_set, place)
            part = parts.setdefault((subsets.rank, subsets.key), _Part(subsets, []))
            part.templates.append(_templates(entry, subsets, place, seed, i))
    return _assembled([parts[key] for key in sorted(parts, key=lambda k: k[0])])


@dataclass(frozen=True)
class _Templates:
    """Kernels that one entry puts on every subset.

    Parameters
    ----------
    function : KernelFunction
        Function of the kernels.
    parameters : (P,) or (S, 1) float64
        Parameters on every subset, or one random parameter for each of the S subsets.
    offset : float
        Offset of polynomial kernels; 0 for others.
    """

    function: KernelFunction
    parameters: Floats
    offset: float

    def on(self, n_subsets: int) -> Floats:
        """Return the parameters (S, P)."""
        return np.broadcast_to(self.parameters, (n_subsets, self.parameters.shape[-1]))


@dataclass(frozen=True)
class _Part:
    """Subsets, and the kernels of all entries on them."""

    subsets: FeatureSubsets
    templates: list[_Templates]


def _templates(
    entry: KernelSpec, subsets: FeatureSubsets, place: str, seed: int, index: int
) -> _Templates:
    """Return the kernels that an entry puts on each of the subsets."""
    function = next(f for f in KernelFunction if f.label == entry.function)
    takes = {
        KernelFunction.POLYNOMIAL: "degrees",
        KernelFunction.LINEAR: None,
    }.get(function, "widths")
    for word in ("widths", "degrees"):
        given = getattr(entry, word) is not None
        if given and word != takes:
            raise SpecError(f"{place}.{word}", f"{word} of a {entry.function} kernel", "none")
        if not given and word == takes:
            raise SpecError(place, f"a {entry.function} kernel without {word}", f"{word} = …")
    if "offset" in entry.model_fields_set and function is not KernelFunction.POLYNOMIAL:
        raise SpecError(f"{place}.offset", f"offset of a {entry.function} kernel", "none")
    if function is KernelFunction.POLYNOMIAL:
        return _Templates(function, _degrees(entry, place), entry.offset)
    if function is KernelFunction.LINEAR:
        return _Templates(function, np.ones(1), 0.0)
    if entry.widths == "chi2":
        return _Templates(function, _random_widths(subsets, place, seed, index), 0.0)
    return _Templates(function, _widths(entry, place), 0.0)


def _degrees(entry: KernelSpec, place: str) -> Floats:
    given = entry.degrees
    degrees = given if isinstance(given, list) else [given if given is not None else 0]
    if not degrees or min(degrees) < 1:
        raise SpecError(f"{place}.degrees", f"{given}", "integers of at least 1")
    return np.array(degrees, dtype=np.float64)


def _widths(entry: KernelSpec, place: str) -> Floats:
    given = entry.widths
    values = given.values() if isinstance(given, Range) else given
    widths = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if not widths.size or not ((widths > WIDTH_RANGE[0]) & (widths < WIDTH_RANGE[1])).all():
        raise SpecError(f"{place}.widths", f"{widths.tolist()}", "finite numbers above 0")
    return widths


def _random_widths(subsets: FeatureSubsets, place: str, seed: int, index: int) -> Floats:
    """Draw one width per subset, (S, 1): ``σ² = 5 χ² + 0.1`` with χ² of one degree of freedom."""
    if not subsets.random:
        raise SpecError(
            f"{place}.widths",
            "'chi2' on feature sets that are not random",
            "numbers, or features = {count = …} for one random width per random subset",
        )
    chi2 = np.random.default_rng([seed, WIDTH_STREAM, index]).chisquare(1, len(subsets))
    return np.sqrt(5.0 * chi2 + 0.1)[:, None]


def _assembled(parts: Sequence[_Part]) -> KernelList:
    """Return the kernels of all parts, subset by subset."""
    functions, parameters, offsets, subsets = [], [], [], []
    indptr, indices = [np.zeros(1, dtype=np.int64)], []
    labels: dict[int, str] = {}
    n_subsets = 0
    for part in parts:
        count = len(part.subsets)
        grid = np.hstack([t.on(count) for t in part.templates])
        widths = [t.parameters.shape[-1] for t in part.templates]
        parameters.append(grid.ravel())
        functions.append(np.tile(np.repeat([t.function for t in part.templates], widths), count))
        offsets.append(np.tile(np.repeat([t.offset for t in part.templates], widths), count))
        subsets.append(np.repeat(np.arange(n_subsets, n_subsets + count), grid.shape[1]))
        indptr.append(part.subsets.indptr[1:] + indptr[-1][-1])
        indices.append(part.subsets.indices)
        if part.subsets.label is not None:
            labels[n_subsets] = part.subsets.label
        n_subsets += count
    return KernelList(
        function=np.concatenate(functions),
        parameter=np.concatenate(parameters),
        offset=np.concatenate(offsets),
        subset=np.concatenate(subsets),
        subset_indptr=np.concatenate(indptr),
        subset_indices=np.concatenate(indices),
        subset_labels=labels,
    )
