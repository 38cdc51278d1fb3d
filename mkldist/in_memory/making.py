"""Making of banks: from features and kernel functions, or from given Gram matrices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mkldist.arrays import Array, Bools
from mkldist.blas_threads import single_threaded
from mkldist.errors import SpecError
from mkldist.gram.bank import Bank
from mkldist.gram.device_source import on_device
from mkldist.gram.factored_kernels import FactoredKernels
from mkldist.gram.sources import ArraySource, BankSource
from mkldist.gram.view import BankView, make_views
from mkldist.identity import array_id, content_id
from mkldist.in_memory.gram_stack import Inspection, gram_stack, inspected_stack, packed_bank
from mkldist.in_memory.keeping import Keeping
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

if TYPE_CHECKING:
    from mkldist.data.dataset import Dataset, GivenGrams
    from mkldist.gram.bank_kernels import BankKernels
    from mkldist.in_memory.given_features import Features
    from mkldist.in_memory.given_views import MixedOrigin
    from mkldist.spec.banks import BankSpec

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
    factored : FactoredKernels or None
        The kernels themselves beside their factors, where `view` is of factors.
    """

    view: BankView
    origin: Origin
    backend: str
    normalisation: str
    temporary: TemporaryFolder | None = None
    inspection: Inspection | None = None
    passed: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    factored: FactoredKernels | None = None


def bank_of_features(
    features: Features,
    spec: BankSpec,
    groups: Mapping[str, Sequence[int | str]],
    seed: int,
    folder: str | Path | None,
    given: dict[str, GivenGrams] | None = None,
    views: Mapping[str, Sequence[int | str]] | None = None,
) -> BankContent:
    """Return a bank of features and of matrices beside them; see :class:`mkldist.KernelBank`."""
    from mkldist.in_memory.given_kernels import kernels_on
    from mkldist.kernels.point_checks import check_custom, check_points
    from mkldist.spec.banks import FACTORS

    if spec.family == "precomputed":
        hint = "Or call KernelBank.from_grams for Gram matrices"
        raise SpecError("kernels", "'precomputed' for features", "another family", hint)
    _check_one_process(spec.backend)
    kernels, dataset = kernels_on(features, spec, groups, seed, given or {}, views or {})
    if kernels.of_features is not None:
        check_points(kernels.of_features, features.points, features.names, "X")
        check_custom(kernels.of_features, features.points)
    if kernels.of_texts is not None and features.texts is not None:
        check_custom(kernels.of_texts, features.texts.values)
    keeping = Keeping.of(spec)
    cosine = "cosine" in keeping.normalisations
    origin = _origin(features, kernels, dataset, cosine)
    source = on_device(origin.source, spec.device, "device")
    if spec.backend == FACTORS:
        return _factored(origin, source, keeping, spec, seed, folder)
    size = BankSize(len(kernels), features.n_points, keeping.stored_type)
    kept = backend_for(keeping.backend, size, "recompute")
    if kept == "memory":
        opened = StoredBank(loaded(source, size.dtype), None)
    elif kept == "recompute":
        opened = StoredBank(recomputed(source), None)
    else:
        points = array_id(*_arrays(dataset))
        identity = content_id(points=points, kernels=kernels.fingerprint, cosine=cosine)
        opened = stored(lambda: origin.source, identity, size, kept, folder)
    view = _normalised(opened.bank, keeping, origin.source.presence)
    return BankContent(view, origin, kept, str(keeping), opened.temporary)


def _check_one_process(backend: str) -> None:
    """Refuse a bank that only the workers of a sweep divide."""
    if backend == "sharded":
        raise SpecError(
            "backend",
            '"sharded" for a bank of one process',
            "another backend",
            "The workers of a sweep divide such a bank",
        )


def _factored(
    origin: FeatureOrigin | MixedOrigin,
    source: BankSource,
    keeping: Keeping,
    spec: BankSpec,
    seed: int,
    folder: str | Path | None,
) -> BankContent:
    """Return a bank of thin factors, with the normalisation that the kernels themselves have."""
    from mkldist.in_memory.factoring import factored

    made = factored(source, spec, seed, folder)
    [view] = made.views([None], _but_cosine(keeping))
    made = replace(made, scale=view.scale)
    return BankContent(made.view, origin, spec.backend, str(keeping), factored=made)


def _arrays(dataset: Dataset) -> list[Array | None]:
    """Return the arrays that decide the values of kernels."""
    from mkldist.data.dataset import sparse_parts
    from mkldist.data.texts import fingerprint_parts

    own = [dataset.x] if dataset.sparse is None else [*sparse_parts(dataset.sparse)]
    given = (one.grams for one in dataset.given.values())
    return [*own, *given, *fingerprint_parts(dataset.texts)]


def _origin(
    features: Features, kernels: BankKernels, dataset: Dataset, cosine: bool
) -> FeatureOrigin | MixedOrigin:
    """Return the origin of kernels of features, and of others if there are any."""
    from mkldist.in_memory.given_views import MixedOrigin

    own = None
    if kernels.of_features is not None:
        own = FeatureOrigin(features, kernels.of_features, cosine)
        if not kernels.given and kernels.of_texts is None:
            return own
    if cosine and kernels.given:
        _refuse_cosine()
    return MixedOrigin(own, features, kernels, dataset, np.arange(len(kernels)), cosine)


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
    keeping: Keeping,
    check: str,
    names: Sequence[str] | None,
    folder: str | Path | None,
) -> BankContent:
    """Return a bank of Gram matrices; see :meth:`mkldist.KernelBank.from_grams`."""
    _check_one_process(keeping.backend)
    stack = gram_stack(grams)
    if "cosine" in keeping.normalisations:
        _refuse_cosine()
    inspection = Inspection.of(check, stack.dtype)
    origin = GramOrigin(stack.shape[1], given_names(names, len(stack)))
    size = BankSize(len(stack), stack.shape[1], keeping.stored_type)
    kept = backend_for(keeping.backend, size, "stream")
    with threads_for(size.n_points):
        if kept == "memory":
            opened = StoredBank(packed_bank(stack, inspection, size.dtype), None)
        else:
            passed = inspected_stack(stack, inspection)
            identity = content_id(grams=array_id(passed))
            opened = stored(lambda: ArraySource(passed), identity, size, kept, folder)
        view = _normalised(opened.bank, keeping)
    return BankContent(
        view,
        origin,
        kept,
        str(keeping),
        opened.temporary,
        inspection if check == "active" else None,
        np.zeros(len(stack), dtype=bool),
    )


def _normalised(bank: Bank, keeping: Keeping, presence: Presence | None = None) -> BankView:
    """Return a bank with its kernels normalised on all points; their source has made cosines."""
    [view] = make_views(bank, [None], _but_cosine(keeping), presence=presence)
    return view


def _but_cosine(keeping: Keeping) -> list[str]:
    """Return the normalisations that views make."""
    return [name for name in keeping.normalisations if name != "cosine"]
