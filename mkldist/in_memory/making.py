"""Making of banks: from features and kernel functions, or from given Gram matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.arrays import Array, Bools
from mkldist.blas_threads import single_threaded
from mkldist.data.dataset import sparse_parts
from mkldist.errors import SpecError
from mkldist.gram.bank import Bank
from mkldist.gram.sources import ArraySource
from mkldist.gram.view import BankView, make_views
from mkldist.identity import array_id, content_id
from mkldist.in_memory.given_kernels import kernels_on
from mkldist.in_memory.given_views import MixedOrigin
from mkldist.in_memory.gram_stack import Inspection, gram_stack, inspected_stack, packed_bank
from mkldist.in_memory.opened_bank import (
    BankSize,
    StoredBank,
    TemporaryFolder,
    backend_for,
    loaded,
    recomputed,
    stored,
)
from mkldist.in_memory.origins import FeatureOrigin, GramOrigin, Origin, given_names
from mkldist.kernels.gaps import Presence
from mkldist.kernels.point_checks import check_custom, check_points
from mkldist.spec.banks import BankSpec

if TYPE_CHECKING:
    from mkldist.data.dataset import Dataset, GivenGrams
    from mkldist.gram.bank_kernels import BankKernels
    from mkldist.in_memory.given_features import Features

MANY_POINTS = 2000  # with fewer, linear algebra is faster on one thread than on several


def threads_for(n_points: int) -> AbstractContextManager[None]:
    """Return a context with one thread of linear algebra where several are slower."""
    return single_threaded() if n_points < MANY_POINTS else nullcontext()


@dataclass(frozen=True, eq=False)
class BankContent:
    """Parts of a bank, which banks of some of its kernels share.

    Parameters
    ----------
    view : BankView
        The bank with the normalisation of its kernels.
    origin : Origin
        Source of the kernels.
    backend, normalisation : str
        Words for the user.
    temporary : TemporaryFolder or None
        Folder that is deleted when the last bank in it is gone.
    inspection : Inspection or None
        Checks of given matrices that follow a solution; None if there are none to come.
    passed : (M,) bool
        True for kernels that passed these checks.
    """

    view: BankView
    origin: Origin
    backend: str
    normalisation: str
    temporary: TemporaryFolder | None = None
    inspection: Inspection | None = None
    passed: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))


def bank_of_features(
    features: Features,
    spec: BankSpec,
    groups: Mapping[str, Sequence[int | str]],
    seed: int,
    folder: str | Path | None,
    given: dict[str, GivenGrams] | None = None,
) -> BankContent:
    """Return a bank of features and of matrices beside them; see :class:`mkldist.KernelBank`."""
    if spec.family == "precomputed":
        hint = "Or call KernelBank.from_grams for Gram matrices"
        raise SpecError("kernels", "'precomputed' for features", "another family", hint)
    kernels, dataset = kernels_on(features, spec, groups, seed, given or {})
    if kernels.of_features is not None:
        check_points(kernels.of_features, features.points, features.names, "X")
        check_custom(kernels.of_features, features.points)
    cosine = "cosine" in spec.normalisations
    origin = _origin(features, kernels, dataset, cosine)
    size = BankSize(len(kernels), features.n_points, _stored_type(spec))
    kept = backend_for(spec.backend, size, "recompute")
    if kept == "memory":
        opened = StoredBank(loaded(origin.source, size.dtype), None)
    elif kept == "recompute":
        opened = StoredBank(recomputed(origin.source), None)
    else:
        points = array_id(*_arrays(dataset))
        identity = content_id(points=points, kernels=kernels.fingerprint, cosine=cosine)
        opened = stored(lambda: origin.source, identity, size, kept, folder)
    view = _normalised(opened.bank, spec, origin.source.presence)
    return BankContent(view, origin, kept, _spelled(spec), opened.temporary)


def _arrays(dataset: Dataset) -> list[Array | None]:
    """Return the arrays that decide the values of kernels."""
    own = [dataset.x] if dataset.sparse is None else [*sparse_parts(dataset.sparse)]
    return [*own, *(one.grams for one in dataset.given.values())]


def _origin(
    features: Features, kernels: BankKernels, dataset: Dataset, cosine: bool
) -> FeatureOrigin | MixedOrigin:
    """Return the origin of kernels of features, and of given matrices if there are any."""
    own = None
    if kernels.of_features is not None:
        own = FeatureOrigin(features, kernels.of_features, cosine)
        if not kernels.given:
            return own
    if cosine:
        _refuse_cosine()
    return MixedOrigin(own, features, kernels, dataset, np.arange(len(kernels)))


def _refuse_cosine() -> None:
    """Refuse cosines of given matrices, whose new points would lack k(x, x)."""
    raise SpecError(
        "normalisation",
        "'cosine' for given Gram matrices",
        "'trace', 'centre', 'variance' or 'none'",
        "Divide k(x, z) by the root of k(x, x) k(z, z) before",
    )


def bank_of_grams(
    grams: Any,
    spec: BankSpec,
    check: str,
    names: Sequence[str] | None,
    folder: str | Path | None,
) -> BankContent:
    """Return a bank of Gram matrices; see :meth:`mkldist.KernelBank.from_grams`."""
    stack = gram_stack(grams)
    if "cosine" in spec.normalisations:
        _refuse_cosine()
    inspection = Inspection.of(check, stack.dtype)
    origin = GramOrigin(stack.shape[1], given_names(names, len(stack)))
    size = BankSize(len(stack), stack.shape[1], _stored_type(spec))
    kept = backend_for(spec.backend, size, "stream")
    with threads_for(size.n_points):
        if kept == "memory":
            opened = StoredBank(packed_bank(stack, inspection, size.dtype), None)
        else:
            passed = inspected_stack(stack, inspection)
            identity = content_id(grams=array_id(passed))
            opened = stored(lambda: ArraySource(passed), identity, size, kept, folder)
        view = _normalised(opened.bank, spec)
    return BankContent(
        view,
        origin,
        kept,
        _spelled(spec),
        opened.temporary,
        inspection if check == "active" else None,
        np.zeros(len(stack), dtype=bool),
    )


def _stored_type(spec: BankSpec) -> np.dtype[np.floating]:
    """Return the type in which a bank is stored."""
    return np.dtype("float64" if spec.dtype == "auto" else spec.dtype)


def _normalised(bank: Bank, spec: BankSpec, presence: Presence | None = None) -> BankView:
    """Return a bank with its kernels normalised on all points; their source has made cosines."""
    others = [name for name in spec.normalisations if name != "cosine"]
    [view] = make_views(bank, [None], others, presence=presence)
    return view


def _spelled(spec: BankSpec) -> str:
    return ", ".join(spec.normalisations) or "none"
