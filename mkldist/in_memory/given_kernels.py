"""Kernels that a user gives :class:`mkldist.KernelBank`, in the words of a sweep file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from mkldist.data.listing import first_of
from mkldist.data.texts import TextColumns, TextView
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

NO_VIEWS: Mapping[str, Sequence[int | str]] = {}
EXAMPLE = '[{"function": "gaussian", "widths": [0.5, 1, 2]}]'
SHOWN = 5


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
        empty = isinstance(kernels, list | tuple) and not kernels
        found = "an empty list" if empty else f"{kernels!r:.60}"
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


def check_seed(seed: Any) -> None:
    """Refuse a seed that is no whole number of at least 0.

    Raises
    ------
    mkldist.errors.SpecError
        For any other seed.
    """
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or seed < 0:
        raise SpecError("seed", f"{seed!r:.60}", "a whole number of at least 0")


def kernels_on(
    features: Features,
    spec: BankSpec,
    groups: Mapping[str, Sequence[int | str]],
    seed: int,
    given: dict[str, GivenGrams],
    views: Mapping[str, Sequence[int | str]] = NO_VIEWS,
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
    views : mapping of str to sequence of int or str
        Names for groups of features that are views, besides those that the features were given in.

    Raises
    ------
    mkldist.errors.SpecError, mkldist.errors.DataError
        For kernels that do not fit the features, for unknown features of a group, and for groups
        and views of one name.
    """
    from mkldist.data.assemble import group_columns
    from mkldist.data.dataset import Dataset, View
    from mkldist.gram.bank_kernels import BankKernels

    for kind, named in (("groups", groups), ("views", views)):
        check_groups(named, kind)
    columns = features.columns_of_views
    _check_apart(columns, views, "views")
    texts, views = _with_views(features.texts, views)
    columns |= group_columns(views, features.names, "X")
    of_views = tuple(columns)
    _check_apart(columns, groups, "groups")
    columns |= group_columns(groups, features.names, "X")
    dataset = Dataset(
        name="X",
        x=None if is_sparse(features.points) or not features.names else features.points,
        sparse=features.points if is_sparse(features.points) else None,
        y=np.zeros(features.n_points),
        classes=None,
        feature_names=features.names,
        groups=columns,
        views={name: View(columns[name]) for name in of_views},
        given=given,
        texts=texts,
    )
    try:
        return BankKernels.of(spec, dataset, seed), dataset
    except SpecError as error:
        where = error.where.removeprefix(f"banks.{spec.label}.")
        raise SpecError(where, error.found, error.expected, error.hint) from None


def _with_views(
    texts: TextColumns | None, views: Mapping[str, Sequence[int | str]]
) -> tuple[TextColumns | None, Mapping[str, Sequence[int | str]]]:
    """Return columns of texts with the views that name them, and the other columns of views."""
    if texts is None:
        return None, views
    places = {name: place for place, name in enumerate(texts.names)}
    of_texts, others = {}, {}
    for view, members in views.items():
        own = tuple(places[member] for member in members if member in places)
        if own:
            of_texts[view] = TextView(own)
        if len(own) < len(members) or not own:
            others[view] = [member for member in members if member not in places]
    return replace(texts, views=of_texts), others


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


def check_groups(groups: Mapping[str, Any], where: str) -> None:
    """Refuse groups that are no lists of features.

    Parameters
    ----------
    groups : mapping of str to sequence of int or str
        Features by the names of their groups.
    where : str
        The parameter to name in a message.

    Raises
    ------
    mkldist.errors.SpecError
        Naming the first such group.
    """
    expected = "features in lists, by the names of their groups"
    if not isinstance(groups, Mapping):
        raise SpecError(where, f"{groups!r:.60}", expected)
    for name, members in groups.items():
        if isinstance(members, str) or not isinstance(members, Iterable):
            raise SpecError(f"{where}[{name!r}]", f"{members!r:.60}", expected)
        if any(isinstance(member, bool | np.bool_) for member in members):
            hint = "Give the numbers of the columns of a mask: np.flatnonzero(mask).tolist()"
            raise SpecError(f"{where}[{name!r}]", f"{members!r:.60}", expected, hint)


def _check_apart(known: Collection[str], names: Collection[str], where: str) -> None:
    """Refuse groups or views that have the name of a view."""
    both = [repr(name) for name in names if name in known]
    if both:
        raise SpecError(
            where,
            f"{first_of(both, SHOWN)}, the name of a view too",
            "a name of its own for each group and view",
            "Rename one of them",
        )
