"""Kernels that a user gives :class:`mkldist.KernelBank`, in the words of a sweep file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from mkldist.errors import SpecError
from mkldist.kernel_functions.sparse_points import is_sparse
from mkldist.kernels.families import NAMED_FAMILIES
from mkldist.kernels.words import Kernel
from mkldist.spec.banks import BankSpec
from mkldist.spec.mistakes import location_of, most_telling, spec_error
from mkldist.spec.overrides import spelled_location

if TYPE_CHECKING:
    from mkldist.data.dataset import Dataset, GivenGrams
    from mkldist.gram.bank_kernels import BankKernels
    from mkldist.in_memory.given_features import Features

EXAMPLE = '[{"function": "gaussian", "widths": [0.5, 1, 2]}]'


def bank_spec(kernels: Any, **settings: Any) -> BankSpec:
    """Return the bank that a sweep file would describe by ``[[banks]]``.

    Parameters
    ----------
    kernels : str or sequence of mappings and kernels
        Name of a family; or entries with the keys of ``[[banks.kernels]]``, objects such as
        ``mkldist.kernels.Gaussian``, and functions of two sets of points.
    **settings
        Other keys of ``[[banks]]``.

    Raises
    ------
    mkldist.errors.SpecError
        For an unknown family, key or value, in the words of sweep files.
    """
    document = {name: plain(value) for name, value in settings.items()}
    if isinstance(kernels, str):
        document["family"] = kernels
    elif isinstance(kernels, Mapping) or not isinstance(kernels, Sequence) or not len(kernels):
        found = "an empty list" if kernels in ([], ()) else f"{kernels!r:.60}"
        raise SpecError(
            "kernels",
            found,
            f"the name of a family, such as {next(iter(NAMED_FAMILIES))!r}, or {EXAMPLE}",
        )
    else:
        document["kernels"] = [
            {"function": kernel} if callable(kernel) else plain(kernel) for kernel in kernels
        ]
    try:
        return BankSpec.model_validate(document)
    except ValidationError as error:
        first = most_telling(error.errors())
        where = spelled_location(location_of(first), document) or "KernelBank"
        raise spec_error(first, "kernels" if where == "family" else where, BankSpec) from None


def kernels_on(
    features: Features,
    spec: BankSpec,
    groups: Mapping[str, Sequence[int | str]],
    seed: int,
    given: dict[str, GivenGrams],
) -> tuple[BankKernels, Dataset]:
    """Return the kernels of a bank over features and given matrices, and both as a data set.

    Parameters
    ----------
    features : Features
        The points.
    spec : BankSpec
        The kernels.
    groups : mapping of str to sequence of int or str
        Names for groups of features, given by name or by number from 0.
    seed : int
        Seed of random subsets and widths.
    given : dict of str to GivenGrams
        Views that are Gram matrices.

    Raises
    ------
    mkldist.errors.SpecError, mkldist.errors.DataError
        For kernels that do not fit the features, and for unknown features of a group.
    """
    from mkldist.data.assemble import group_columns
    from mkldist.data.dataset import Dataset, View
    from mkldist.gram.bank_kernels import BankKernels

    columns = features.columns_of_views
    columns |= group_columns(groups, features.names, "X")
    dataset = Dataset(
        name="X",
        x=None if is_sparse(features.points) else features.points,
        sparse=features.points if is_sparse(features.points) else None,
        y=np.zeros(features.n_points),
        classes=None,
        feature_names=features.names,
        groups=columns,
        views={name: View(columns[name]) for name in features.views},
        given=given,
    )
    try:
        return BankKernels.of(spec, dataset, seed), dataset
    except SpecError as error:
        where = error.where.removeprefix(f"banks.{spec.label}.")
        raise SpecError(where, error.found, error.expected, error.hint) from None


def plain(value: Any) -> Any:
    """Return kernels, arrays, ranges and numbers of numpy within a value as plain Python."""
    if isinstance(value, Kernel):
        return plain(value.entry())
    if callable(value):
        return value
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    return value
