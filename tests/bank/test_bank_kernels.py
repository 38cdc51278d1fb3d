"""Kernels of features beside given Gram matrices, where points lack views, against plain sums."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel

from mkldist.bank.bank import TileLayout
from mkldist.bank.bank_kernels import BankKernels
from mkldist.bank.recomputed import RecomputedBank
from mkldist.bank.view import make_views
from mkldist.data.dataset import Dataset, GramView, View
from mkldist.data.preprocessing import preprocessed
from mkldist.errors import SpecError
from mkldist.spec.banks import BankSpec
from mkldist.spec.datasets import PreprocessingSpec

N = 30
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, 4))
X[[2, 9, 17], 2:] = np.nan
STRINGS = np.stack([(f := RNG.normal(size=(N, k + 2))) @ f.T for k in range(2)])
HAVE_STRINGS = ~np.isin(np.arange(N), [5, 9])
STRINGS[:, ~HAVE_STRINGS] = 0.0
STRINGS[:, :, ~HAVE_STRINGS] = 0.0
TREE = np.diag(np.arange(1.0, N + 1))

DATASET = Dataset(
    "d",
    X,
    np.where(np.arange(N) % 2, 1.0, -1.0),
    ("no", "yes"),
    ("a", "b", "c", "d"),
    groups={"blood": (0, 1), "genes": (2, 3)},
    views={"blood": View((0, 1)), "genes": View((2, 3), "zero")},
    given={
        "strings": GramView(STRINGS, HAVE_STRINGS, "zero"),
        "tree": GramView(TREE[None], np.ones(N, dtype=bool)),
    },
)
ENTRIES = (
    {"function": "precomputed", "features": "strings"},
    {"function": "gaussian", "widths": [1.0, 2.0], "features": "views"},
    {"function": "precomputed", "features": ["tree", "strings"]},
)


def bank_kernels(*entries: dict[str, Any]) -> BankKernels:
    spec = BankSpec.model_validate({"name": "mine", "kernels": list(entries)})
    return BankKernels.of(spec, DATASET, seed=0)


def explicit_grams(*, cosine: bool = False) -> np.ndarray:
    """All kernels of `ENTRIES`, written out."""
    found = []
    for columns in ((0, 1), (2, 3)):
        points = X[:, columns]
        has = ~np.isnan(points).any(axis=1)
        for width in (1.0, 2.0):
            gram = np.zeros((N, N))
            gram[np.ix_(has, has)] = rbf_kernel(points[has], gamma=0.5 / width**2)
            found.append(gram)
    grams = np.array([*found, *STRINGS, TREE])
    if cosine:
        lengths = np.sqrt(np.einsum("mii->mi", grams))
        inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        grams = grams * inverse[:, :, None] * inverse[:, None, :]
    return grams


def test_kernels_of_features_come_first_and_each_matrix_once():
    kernels = bank_kernels(*ENTRIES)
    assert len(kernels) == 7
    assert kernels.names(DATASET.feature_names) == [
        "gaussian(1)[blood]", "gaussian(2)[blood]", "gaussian(1)[genes]", "gaussian(2)[genes]",
        "precomputed(0)[strings]", "precomputed(1)[strings]", "precomputed[tree]",
    ]  # fmt: skip


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("rows", [None, np.array([9, 2, 28, 0, 5, 11, 16, 17])])
def test_the_source_gives_explicit_matrices(cosine, rows):
    source = bank_kernels(*ENTRIES).source(DATASET, X, rows, cosine=cosine)
    layout = TileLayout.for_points(source.n_points)
    expected = explicit_grams(cosine=cosine)
    if rows is not None:
        expected = expected[:, rows[:, None], rows]
    for some in (slice(0, 7), slice(3, 6), slice(4, 5), slice(6, 7)):
        count = some.stop - some.start
        out = np.full((count, layout.n_tiles, layout.tile, layout.tile), np.nan)
        source.fill(some, slice(0, layout.n_tiles), layout, out)
        packed = np.stack([layout.pack(gram) for gram in expected[some]])
        assert_allclose(out.reshape(count, -1), packed, rtol=1e-9, atol=1e-12)
        diagonals = np.einsum("mii->mi", expected[some])
        assert_allclose(source.diagonals(some), diagonals, rtol=1e-9, atol=1e-12)
    assert source.name(5) == "precomputed(1)[strings]"
    assert source.presence is not None
    whole, genes = np.ones(N, dtype=bool), ~np.isnan(X[:, 2])
    has = np.array([whole, whole, genes, genes, HAVE_STRINGS, HAVE_STRINGS, whole])
    assert_array_equal(source.presence[:], has if rows is None else has[:, rows])


@pytest.mark.parametrize("cosine", [False, True])
def test_values_between_rows_are_those_of_the_whole_matrices(cosine):
    kernels, rows, cols = bank_kernels(*ENTRIES), np.array([2, 5, 9, 1]), np.arange(3, 29)
    order = np.array([6, 1, 0, 4, 3])
    found = kernels.cross_values(DATASET, X, order, rows, cols, cosine=cosine)
    expected = explicit_grams(cosine=cosine)[order][:, rows[:, None], cols]
    assert_allclose(list(found), expected, rtol=1e-9, atol=1e-12)


def test_some_kernels_are_those_of_all():
    chosen = np.array([1, 2, 4, 6])
    part = bank_kernels(*ENTRIES).select(chosen)
    names = bank_kernels(*ENTRIES).names(DATASET.feature_names)
    assert part.names(DATASET.feature_names) == [names[m] for m in chosen.tolist()]
    source = part.source(DATASET, X, None, cosine=False)
    layout = TileLayout.for_points(N)
    out = np.full((4, layout.n_tiles, layout.tile, layout.tile), np.nan)
    source.fill(slice(0, 4), slice(0, layout.n_tiles), layout, out)
    expected = explicit_grams()[chosen]
    packed = np.stack([layout.pack(gram) for gram in expected])
    assert_allclose(out.reshape(4, -1), packed, rtol=1e-9, atol=1e-12)
    assert source.presence is not None
    has = ~np.isnan(X[:, 2])
    assert_array_equal(source.presence[:], [np.ones(N, bool), has, HAVE_STRINGS, np.ones(N, bool)])
    between = part.cross_values(DATASET, X, np.arange(4), np.arange(3), np.arange(N), cosine=False)
    assert_allclose(list(between), expected[:, :3], rtol=1e-9, atol=1e-12)


def test_a_view_of_matrices_has_no_kernel_functions():
    with pytest.raises(
        SpecError, match=r"kernels\[0\]\.features: found 'tree', a view of Gram matrices, "
    ):
        bank_kernels({"function": "linear", "features": ["blood", "tree"]})


def test_the_family_of_precomputed_kernels_is_all_matrices():
    spec = BankSpec(family="precomputed")
    names = BankKernels.of(spec, DATASET, 0).names(())
    assert names == ["precomputed(0)[strings]", "precomputed(1)[strings]", "precomputed[tree]"]


def test_matrices_alone_need_no_features():
    kernels = bank_kernels({"function": "precomputed", "features": ["tree"]})
    assert kernels.of_features is None
    assert kernels.names(()) == ["precomputed[tree]"]
    source = kernels.source(DATASET, None, None, cosine=False)
    assert source.presence is None
    assert_array_equal(source.diagonals(slice(0, 1))[0], np.diag(TREE))


def test_the_fingerprint_tells_the_matrices_and_only_counts_them_where_there_are_some():
    of_features = {"function": "gaussian", "widths": 1.0, "features": "blood"}
    alone, tree = bank_kernels(of_features), bank_kernels(of_features, ENTRIES[2])
    assert alone.of_features is not None
    assert alone.fingerprint == alone.of_features.fingerprint
    assert len({alone.fingerprint, tree.fingerprint, bank_kernels(ENTRIES[2]).fingerprint}) == 3


NORMALISATIONS = ["trace", "variance"]


@pytest.mark.parametrize("normalisation", NORMALISATIONS)
@pytest.mark.parametrize("index", [None, np.array([9, 2, 28, 0, 5, 11, 16, 17])])
def test_normalisation_counts_the_points_that_have_a_kernel(normalisation, index):
    source = bank_kernels(*ENTRIES).source(DATASET, X, None, cosine=False)
    bank = RecomputedBank(source, 2**20)
    [view] = make_views(bank, [index], [normalisation], presence=source.presence)
    grams = explicit_grams()
    presence = source.presence
    assert presence is not None
    points = np.arange(N) if index is None else index
    for m, gram in enumerate(grams[:, points[:, None], points]):
        has = presence[m][points]
        own = gram[np.ix_(has, has)]
        if normalisation == "trace":  # the mean of k(x, x) where it is not missing is 1/n
            expected = 1.0 / len(points) / np.diag(own).mean()
        else:
            expected = 1.0 / (np.diag(own).mean() - own.mean())
        assert view.scale[m] == pytest.approx(expected, rel=1e-10)
    bank.close()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, "found no view for a precomputed kernel on data set 'd'; expected the name of a view "
             "of Gram matrices: one of 'strings', 'tree'"),
        ({"features": "string"}, "found 'string' for .* Did you mean 'strings'"),
        ({"features": "blood"}, "found 'blood' for .* Set function = \"gaussian\" or the like"),
        ({"features": {"count": 3}}, "found RandomSubsets"),
        ({"features": "tree", "widths": 1.0}, "widths of a precomputed kernel; expected none"),
        ({"features": "tree", "offset": 1.0}, "offset of a precomputed kernel; expected none"),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_told(entry, message):
    with pytest.raises(SpecError, match=r"banks\.mine\.kernels\[0\].*" + message):
        bank_kernels({"function": "precomputed", **entry})


def test_kernels_of_a_view_form_a_group():
    bank = BankSpec.model_validate({"name": "b", "kernels": ENTRIES})
    kernels = BankKernels.of(bank, DATASET, 0)
    names = kernels.names(DATASET.feature_names)
    views = [name[name.index("[") :] for name in names]
    groups = kernels.groups
    for one, view in zip(groups, views, strict=True):
        assert {views[m] for m in np.flatnonzero(groups == one)} == {view}
    assert len(set(groups.tolist())) == len(set(views)) == 4


@pytest.mark.parametrize("rows", [None, np.array([4, 0, 21])])
def test_preprocessed_features_are_taken_once(rows):
    """Memory holds them as the loops read them: no copy of all of them is made for these."""
    points = preprocessed(PreprocessingSpec(), replace(DATASET, x=np.nan_to_num(X), views={}))
    kernels = bank_kernels({"function": "gaussian", "widths": 1.0, "features": "all"})
    source = kernels.source(DATASET, points, rows, cosine=False)
    assert_array_equal(source.points, points if rows is None else points[rows])
    assert np.ascontiguousarray(source.points.T).base is source.points.base
    assert np.shares_memory(source.points, points) == (rows is None)
