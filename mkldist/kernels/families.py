"""Turn the banks of a sweep file, the families of papers among them, into lists of kernels.

Kernels are ordered by feature subset: all features, single features, named groups, random subsets.
Within a subset they have the order of the entries.  Because kernels of one subset are adjacent, a
build computes the distances of a subset once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mkldist.errors import SpecError
from mkldist.kernel_functions.custom import CustomKernel
from mkldist.kernels.feature_subsets import FeatureSubsets, SubsetWords
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.templates import Templates, check_entry, templates
from mkldist.spec.banks import BankSpec
from mkldist.spec.kernel_entries import PRECOMPUTED, KernelSpec
from mkldist.spec.sizes import check_fits

KERNEL_BYTES = 100  # of a kernel in a list, while it is made


def _gaussian(widths: Sequence[float], features: tuple[str, ...]) -> KernelSpec:
    return _entry("gaussian", features, widths=list(widths))


def _polynomial(degrees: Sequence[int], features: tuple[str, ...]) -> KernelSpec:
    return _entry("polynomial", features, degrees=list(degrees))


def _entry(function: str, features: Sequence[str], **parameters: object) -> KernelSpec:
    words = {"function": function, "features": list(features), **parameters}
    return KernelSpec.model_validate(words)


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
    left_out: Collection[int] = (),
) -> KernelList:
    """Return all kernels that a bank lists over a data set's features, or its texts.

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
    left_out : collection of int
        Numbers of the entries that are not meant, such as those of texts.

    Raises
    ------
    SpecError
        For parameters that the function does not take, an unknown feature group, a random subset
        of more features than there are, more kernels than memory holds, or a bank that needs
        features where there are none.
    """
    where = f"banks.{spec.series}"
    if n_features < 1:
        raise SpecError(
            where,
            "kernels of features for data without features",
            "family = 'precomputed', or kernels of what there is",
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
    custom: list[CustomKernel] = []
    for i, entry in enumerate(entries):
        if entry.function == PRECOMPUTED or i in left_out:
            continue
        place = f"{where}.kernels[{i}]"
        check_entry(entry, place)
        for feature_set in words.feature_sets(entry, place):
            subsets = words.resolve(feature_set, place)
            part = parts.setdefault((subsets.rank, subsets.key), _Part(subsets, []))
            part.templates.append(templates(entry, subsets, place, (seed, i), custom))
    n_kernels = sum(
        len(p.subsets) * sum(len(t.second) for t in p.templates) for p in parts.values()
    )
    check_fits(n_kernels, KERNEL_BYTES, where, "kernels", "List fewer")
    return _assembled([parts[key] for key in sorted(parts, key=lambda k: k[0])], custom)


@dataclass(frozen=True)
class _Part:
    """Subsets, and the kernels of all entries on them."""

    subsets: FeatureSubsets
    templates: list[Templates]


def _assembled(parts: Sequence[_Part], custom: Sequence[CustomKernel]) -> KernelList:
    """Return the kernels of all parts, subset by subset."""
    functions, parameters, offsets, subsets = [], [], [], []
    indptr, indices = [np.zeros(1, dtype=np.int64)], []
    labels: dict[int, str] = {}
    n_subsets = 0
    for part in parts:
        count = len(part.subsets)
        grid = np.hstack([t.on(count) for t in part.templates])
        counts = [len(t.second) for t in part.templates]
        parameters.append(grid.ravel())
        functions.append(np.tile(np.repeat([t.code for t in part.templates], counts), count))
        offsets.append(np.tile(np.concatenate([t.second for t in part.templates]), count))
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
        custom=tuple(custom),
    )
