"""Banks of kernel functions on features and texts, and of Gram matrices beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mkldist.arrays import Array
from mkldist.data.dataset import Dataset, GivenGrams, sparse_parts
from mkldist.data.texts import fingerprint_parts
from mkldist.errors import SpecError
from mkldist.gram.bank_kernels import BankKernels
from mkldist.gram.device_source import on_device
from mkldist.gram.sources import BankSource
from mkldist.identity import array_id, content_id
from mkldist.in_memory.bank_content import BankContent, normalised
from mkldist.in_memory.bank_size import BankSize, backend_for
from mkldist.in_memory.factoring import factored
from mkldist.in_memory.feature_origin import FeatureOrigin
from mkldist.in_memory.given_features import Features
from mkldist.in_memory.given_kernels import kernels_on
from mkldist.in_memory.given_views import MixedOrigin
from mkldist.in_memory.keeping import Keeping
from mkldist.in_memory.opened_bank import StoredBank, loaded, recomputed, stored
from mkldist.kernels.point_checks import check_custom, check_points
from mkldist.spec.banks import FACTORS, BankSpec


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
    if spec.family == "precomputed":
        hint = "Or call KernelBank.from_grams for Gram matrices"
        raise SpecError("kernels", "'precomputed' for features", "another family", hint)
    keeping = Keeping.of(spec)
    keeping.check_one_process()
    kernels, dataset = kernels_on(features, spec, groups, seed, given or {}, views or {})
    if kernels.of_features is not None:
        check_points(kernels.of_features, features.points, features.names, "X")
        check_custom(kernels.of_features, features.points)
    if kernels.of_texts is not None and features.texts is not None:
        check_custom(kernels.of_texts, features.texts.values)
    origin = _origin(features, kernels, dataset, keeping)
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
        identity = content_id(points=points, kernels=kernels.fingerprint, cosine=keeping.cosine)
        opened = stored(lambda: origin.source, identity, size, kept, folder)
    view = normalised(opened.bank, keeping, origin.source.presence)
    return BankContent(view, origin, kept, str(keeping), opened.temporary)


def _factored(
    origin: FeatureOrigin | MixedOrigin,
    source: BankSource,
    keeping: Keeping,
    spec: BankSpec,
    seed: int,
    folder: str | Path | None,
) -> BankContent:
    """Return a bank of thin factors, with the normalisation that the kernels themselves have."""
    made = factored(source, spec, seed, folder)
    [view] = made.views([None], keeping.of_views)
    made = replace(made, scale=view.scale)
    return BankContent(made.view, origin, spec.backend, str(keeping), factored=made)


def _arrays(dataset: Dataset) -> list[Array | None]:
    """Return the arrays that decide the values of kernels."""
    own = [dataset.x] if dataset.sparse is None else [*sparse_parts(dataset.sparse)]
    given = (one.grams for one in dataset.given.values())
    return [*own, *given, *fingerprint_parts(dataset.texts)]


def _origin(
    features: Features, kernels: BankKernels, dataset: Dataset, keeping: Keeping
) -> FeatureOrigin | MixedOrigin:
    """Return the origin of kernels of features, and of others if there are any."""
    own = None
    if kernels.of_features is not None:
        own = FeatureOrigin(features, kernels.of_features, keeping.cosine)
        if not kernels.given and kernels.of_texts is None:
            return own
    if kernels.given:
        keeping.check_given()
    return MixedOrigin(own, features, kernels, dataset, np.arange(len(kernels)), keeping.cosine)
