"""From sweep files to kernels: families, feature sets, parameters, and mistakes."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import mkldist
from mkldist import KernelBank, kernels
from mkldist.errors import SpecError
from mkldist.kernel_functions import FUNCTIONS, products
from mkldist.kernel_functions.definition import kernel_words
from mkldist.kernels import Gaussian, Laplacian, Matern, Polynomial
from mkldist.kernels.families import NAMED_FAMILIES, check_entry, kernel_list
from mkldist.kernels.kernel_list import KernelList
from mkldist.kernels.objects import Precomputed
from mkldist.spec import kinds
from mkldist.spec.banks import BankSpec, Family, KernelSpec

NAMES = ("radius", "texture", "area", "smoothness", "symmetry")
GROUPS = {"size": (0, 2), "look": (1, 3, 4)}
POLYNOMIAL = products.POLYNOMIAL.code


def kernels_of(*entries, family=None, d=5, seed=0):
    spec = BankSpec(family=family, kernels=entries)
    return kernel_list(spec, d, NAMES[:d], GROUPS, seed)


def told(kernels):
    """Every kernel as (function label, parameter, columns)."""
    return [
        (kernels.function_of(m).label, kernels.parameter[m], kernels.features_of(m).tolist())
        for m in range(len(kernels))
    ]


def test_every_family_of_the_sweep_file_is_here():
    assert {*NAMED_FAMILIES, "precomputed"} == set(get_args(Family))


@pytest.mark.parametrize(
    ("family", "gaussians", "polynomials", "each"),
    [
        ("xu2008", [0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64], [1, 2, 3], True),
        ("suzuki2011", [0.1, 0.25, 0.5, 0.75, *range(1, 21)], [1, 2, 3], True),
        ("hao2012", [b**e for b in (1.1, 1.5, 2) for e in range(-5, 6)], [], False),
        ("hao2012-polynomial", [b**e for b in (1.1, 1.5, 2) for e in range(-5, 6)],
         list(range(1, 11)), False),
        ("do2009", [k**0.5 for k in range(1, 18)], [1, 2, 3], False),
        ("do2009-gaussian", [k**0.5 for k in range(1, 21)], [], False),
        ("guo2011", [0.01, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8], [2, 3, 4, 5, 6], False),
    ],
)  # fmt: skip
def test_families_hold_the_kernels_of_their_papers(family, gaussians, polynomials, each):
    kernels = kernels_of(family=family)
    wanted_subsets = [list(range(5))] + ([[j] for j in range(5)] if each else [])
    linear = [("linear", 1.0)] if family == "guo2011" else []
    for subset in wanted_subsets:
        found = [(name, p) for name, p, columns in told(kernels) if columns == subset]
        expected = [("gaussian", w) for w in gaussians] + [("polynomial", k) for k in polynomials]
        assert sorted(found) == sorted(expected + linear)
    per_subset = len(gaussians) + len(polynomials) + len(linear)
    assert len(kernels) == per_subset * len(wanted_subsets)
    assert set(kernels.offset[kernels.function == POLYNOMIAL]) <= {1.0}


@given(st.integers(1, 60))
def test_counts_of_the_large_families(d):
    for family, count in (("xu2008", 13), ("suzuki2011", 27)):
        kernels = kernel_list(BankSpec(family=family), d, [f"f{j}" for j in range(d)], {}, 0)
        assert len(kernels) == count * (d + 1)
        assert np.all(np.diff(kernels.subset) >= 0)


def test_subsets_come_all_then_each_then_groups_then_random():
    kernels = kernels_of(
        {"function": "linear", "features": [{"count": 2, "size": 2}, "look", "each", "all"]},
        {"function": "gaussian", "widths": [1, 2], "features": ["all", "texture", "size"]},
    )
    columns = [tuple(c) for _, _, c in told(kernels)]
    assert columns[:3] == [(0, 1, 2, 3, 4)] * 3
    assert columns[3:8] == [(j,) for j in range(5)]
    assert columns[8:13] == [(1, 3, 4), (1,), (1,), (0, 2), (0, 2)]
    assert [len(c) for c in columns[13:]] == [2, 2]
    assert len(list(kernels.runs())) == 11


def test_widths_as_number_range_and_geometric_series():
    def widths(given):
        return kernels_of({"function": "laplacian-rbf", "widths": given}).parameter.tolist()

    assert widths(3) == [3.0]
    assert widths({"start": 1, "stop": 100, "num": 3, "scale": "log"}) == pytest.approx(
        [1, 10, 100]
    )
    assert widths({"base": 2, "exponents": [-1, 0, 3]}) == [0.5, 1.0, 8.0]


def test_random_subsets_have_distinct_columns_and_all_sizes():
    kernels = kernels_of({"function": "linear", "features": {"count": 400}}, seed=3)
    subsets = [kernels.features_of(m) for m in range(400)]
    assert all(np.all(np.diff(s) > 0) and s[0] >= 0 and s[-1] < 5 for s in subsets)
    sizes = np.bincount([len(s) for s in subsets], minlength=6)
    assert sizes[0] == 0
    assert sizes[1:].min() > 40
    assert np.bincount(np.concatenate(subsets)).min() > 200


def test_random_banks_depend_on_the_seed_and_nest():
    def bank(count, seed):
        return kernels_of({"function": "gaussian", "widths": "chi2", "features": {"count": count}},
                          seed=seed)  # fmt: skip

    assert bank(50, 1).fingerprint == bank(50, 1).fingerprint
    assert bank(50, 1).fingerprint != bank(50, 2).fingerprint
    assert told(bank(200, 1))[:50] == told(bank(50, 1))


def test_random_widths_have_the_moments_of_the_chi_squared_variable():
    kernels = kernels_of(
        {"function": "gaussian", "widths": "chi2", "features": {"count": 20_000}}, seed=5
    )
    chi2 = (kernels.parameter**2 - 0.1) / 5
    assert chi2.min() >= 0
    assert chi2.mean() == pytest.approx(1.0, abs=0.05)
    assert chi2.var() == pytest.approx(2.0, abs=0.2)


def test_entries_that_ask_for_the_same_random_subsets_share_them():
    features = {"count": 10}
    kernels = kernels_of(
        {"function": "linear", "features": features},
        {"function": "polynomial", "degrees": 2, "features": features},
    )
    assert len(list(kernels.runs())) == 10


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"function": "gaussian"}, ["kernels[0]", "without widths"]),
        ({"function": "linear", "widths": 1}, ["kernels[0].widths", "linear"]),
        ({"function": "gaussian", "widths": 1, "offset": 1}, ["offset of a gaussian"]),
        ({"function": "polynomial", "widths": 1, "degrees": 2}, ["widths of a polynomial"]),
        ({"function": "gaussian", "widths": 1e-200}, ["widths", "above 0"]),
        ({"function": "gaussian", "widths": "chi2"}, ["chi2", "random"]),
        ({"function": "linear", "features": ["textur"]}, ["'textur'", "Did you mean 'texture'?"]),
        (
            {"function": "linear", "features": ["f9"]},
            ["found 'f9'", "Choose from size, look, radius, texture, area, smoothness, symmetry"],
        ),
        ({"function": "linear", "features": {"count": 1, "size": 6}}, ["size", "at most 5"]),
    ],
)
def test_mistakes_are_named(entry, words):
    with pytest.raises(SpecError) as caught:
        kernels_of(entry)
    assert all(word in str(caught.value) for word in ["banks.bank", *words])


def test_features_are_needed_unless_precomputed():
    with pytest.raises(SpecError, match="without features"):
        kernels_of(family="xu2008", d=0)
    with pytest.raises(SpecError, match="precomputed"):
        kernels_of(family="precomputed")


def test_empty_groups_are_refused():
    spec = BankSpec(kernels=[{"function": "linear", "features": ["none"]}])
    with pytest.raises(SpecError, match="no features"):
        kernel_list(spec, 5, NAMES, {"none": ()}, 0)


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"function": "gaussian", "widths": 1, "features": {"count": 10**9}}, "1,000,000,000 subs"),
        (
            {"function": "periodic", "widths": [*range(1, 101)], "period": [*range(1, 91)]},
            "9,000 pairs of parameters",
        ),
        (
            {"function": "gaussian", "widths": [*range(1, 3000)], "features": ["each"]},
            "14,995 kern",
        ),
    ],
)
def test_what_memory_does_not_hold_is_refused_before_it_is_made(monkeypatch, entry, found):
    monkeypatch.setattr(kinds, "physical_memory", lambda: 2 * 10**6)
    with pytest.raises(SpecError, match=rf"banks\.bank.*: found {found}.* half of this machine's"):
        kernels_of(entry)


def kernels_of_of_templates(*entries: dict, d: int = 2) -> KernelList:
    return kernel_list(BankSpec(kernels=entries), d, ["a", "b"][:d], {}, 0)


def products(left: np.ndarray, right: np.ndarray, scale: float = 1.0, kind: str = "") -> np.ndarray:
    return scale * left @ right.T


def test_two_parameters_stand_for_every_pair_of_values():
    entry = {"function": "matern", "widths": [1, 2], "nu": [0.5, 1.5, 3], "features": "all"}
    assert kernels_of_of_templates(entry).names() == [
        f"matern({width}{nu})[all]" for width in (1, 2) for nu in (", nu=0.5", "", ", nu=3")
    ]
    entry = {"function": "polynomial", "degrees": [1, 2], "offset": [0, 1]}
    assert [kernels_of_of_templates(entry).settings_of(m) for m in (0, 3)] == [
        {"degree": 1.0, "offset": 0.0},
        {"degree": 2.0, "offset": 1.0},
    ]


def test_parameters_without_a_default_are_needed_and_others_take_it():
    assert kernels_of_of_templates({"function": "matern", "widths": 1}).offset.tolist() == [1.5]
    for name, function in FUNCTIONS.items():
        for parameter in function.parameters:
            others = {one.key: 1 for one in function.parameters if one is not parameter}
            entry = KernelSpec.model_validate({"function": name, **others})
            if parameter.default is None:
                with pytest.raises(
                    SpecError, match=f"{kernel_words(name)} without {parameter.key}"
                ):
                    check_entry(entry, "here")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"function": "linear", "period": 1},
            "period: found period of a linear kernel; expected none",
        ),
        (
            {"function": "matern", "widths": 1, "offset": 1},
            "offset .* expected widths, relative_widths, nu alone",
        ),
        (
            {"function": "matern", "widths": 1, "nu": 30},
            "nu: .*30.0.*; expected numbers above 0, at most 20",
        ),
        ({"function": "linear", "parameters": {"a": 1}}, "parameters of a linear kernel"),
        ({"function": products, "widths": 1}, "widths of a products kernel; expected parameters"),
        ({"function": products, "parameters": {"size": 1}}, "size, which products does not take"),
        ({"function": "no.module:k"}, "function: found 'no.module:k', which cannot be imported"),
        (
            {"function": "matern", "widths": "chi2", "nu": [1, 2], "features": {"count": 3}},
            "nu: found 2 with widths = 'chi2'; expected one",
        ),
    ],
)
def test_mistakes_are_told_by_place(entry, said):
    with pytest.raises(SpecError, match=rf"^banks\.bank\.kernels\[0\].*{said}"):
        kernels_of_of_templates(entry)


def test_random_widths_go_with_one_value_of_the_other_parameter():
    entry = {"function": "matern", "widths": "chi2", "nu": 2.5, "features": {"count": 4}}
    found = kernels_of_of_templates(entry)
    assert found.offset.tolist() == [2.5] * 4
    assert len(set(found.parameter.tolist())) == 4


def test_functions_of_the_user_take_every_combination_of_their_parameters():
    entry = {
        "function": products,
        "parameters": {"scale": [1, 2.5], "kind": ["a", "b"]},
        "features": ["all", "each"],
    }
    found = kernels_of_of_templates({"function": "linear"}, entry, {"function": products})
    heads = [f"products(scale={s}, kind={k})" for s in (1, 2.5) for k in "ab"]
    assert found.names(["a", "b"]) == [
        "linear[all]",
        *(f"{head}[all]" for head in heads),
        "products[all]",
        *(f"{head}[{name}]" for name in "ab" for head in heads),
    ]
    assert found.settings_of(1) == {"scale": 1, "kind": "a"}
    assert found.select([3, 0]).names(["a", "b"]) == [f"{heads[2]}[all]", "linear[all]"]


X = np.random.default_rng(0).normal(size=(40, 4)) * [1.0, 2.0, 30.0, 0.0] + [0.0, 0.0, 5.0, 3.0]
SPREAD = np.sqrt(X.var(axis=0).sum())


def bank_of(*kernels, points=X):
    return mkldist.KernelBank(points, list(kernels), normalisation="none")


def test_widths_are_multiples_of_the_spread_of_their_features():
    found = bank_of(
        Gaussian(relative_widths=[0.5, 2.0], features=["all", "each"]),
        Laplacian(relative_widths=1.0),
        Matern(relative_widths={"start": 1, "stop": 3, "num": 2}, features="x1"),
        Gaussian(widths=7.0),
    ).kernels
    deviations = np.array([*X.std(axis=0)[:3], 1.0])  # a constant feature has the unit 1
    of_all = [0.5 * SPREAD, 2.0 * SPREAD, deviations[:3].sum(), 7.0]
    expected = [
        *of_all,
        *np.outer(deviations, [0.5, 2.0]).ravel(),
        deviations[1],
        3.0 * deviations[1],
    ]
    np.testing.assert_allclose(found.width, expected, rtol=1e-5)
    multiples = [0.5, 2.0, 1.0, np.nan, *[0.5, 2.0] * 4, 1.0, 3.0]
    np.testing.assert_array_equal(found.relative_width, multiples)
    assert found.name[0] == f"gaussian({found.width[0]:g})[all]"


def test_sparse_features_have_the_spread_of_dense_ones():
    kernels = Gaussian(relative_widths=[0.5, 2.0], features=["all", "x1"])
    dense, sparse = (bank_of(kernels, points=points).kernels for points in (X, csr_array(X)))
    assert sparse.width.tolist() == dense.width.tolist()


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (Gaussian(), "without widths"),
        (Gaussian(widths=1.0, relative_widths=1.0), "one of them"),
        (Gaussian(relative_widths=-1.0), "relative_widths"),
        ({"function": "chi-squared", "relative_widths": 1.0}, "relative_widths of a chi-squared"),
        ({"function": "polynomial", "degrees": 2, "relative_widths": 1.0}, "degrees, offset alone"),
    ],
)
def test_mistakes_name_the_place(kernel, said):
    with pytest.raises(SpecError, match=rf"^kernels\[0\].*{said}"):
        bank_of(kernel, Polynomial(2))


def test_a_sweep_has_one_list_for_all_splits_by_the_scaling_of_all_rows(tmp_path):
    entry = {"function": "gaussian", "relative_widths": [0.5, 1], "features": ["all", "each"]}
    sweep = {
        "name": "relative",
        "splits": {"train_fraction": 0.6, "repeats": 2},
        "banks": [{"name": "b", "kernels": [entry]}],
        "methods": [{"name": "uniform"}],
    }
    y = np.where(X[:, 0] + X[:, 1] > 0.0, 1, -1)
    tree = mkldist.sweep(sweep, {"made": (X[:, :3], y)}, output=tmp_path / "out", progress=False)
    found = tree["made/uniform"]
    expected = [*np.sqrt(3.0) * np.array([0.5, 1.0]), *[0.5, 1.0] * 3]
    np.testing.assert_allclose(found["width"], expected, rtol=1e-5)
    assert found.relative_width.values.tolist() == [0.5, 1.0] * 4
    assert found.kernel.values[:3].tolist() == [
        "gaussian(0.866025)[all]", "gaussian(1.73205)[all]", "gaussian(0.5)[f0]"
    ]  # fmt: skip


X_OF_OBJECTS = np.random.default_rng(0).normal(size=(12, 3))


@pytest.mark.parametrize(
    ("kernel", "entry"),
    [
        (
            kernels.Gaussian(widths=[0.5, 2.0], features=["all", "each"]),
            {"function": "gaussian", "widths": [0.5, 2.0], "features": ["all", "each"]},
        ),
        (
            kernels.Gaussian(widths={"start": 1, "stop": 4, "num": 3, "scale": "log"}),
            {"function": "gaussian", "widths": [1.0, 2.0, 4.0]},
        ),
        (kernels.Laplacian(widths=np.array([3.0])), {"function": "laplacian-rbf", "widths": [3.0]}),
        (
            kernels.Polynomial(degrees=(2, 3), offset=0.5),
            {"function": "polynomial", "degrees": [2, 3], "offset": 0.5},
        ),
        (kernels.Linear(features={"count": 4}), {"function": "linear", "features": {"count": 4}}),
    ],
)
def test_an_object_is_an_entry(kernel, entry):
    by_object, by_entry = KernelBank(X_OF_OBJECTS, [kernel]), KernelBank(X_OF_OBJECTS, [entry])
    assert by_object.kernels.equals(by_entry.kernels)


def test_the_names_are_found_from_the_package():
    assert mkldist.kernels.Gaussian is kernels.Gaussian
    assert "Gaussian" in dir(mkldist.kernels)
    with pytest.raises(AttributeError, match="Gausian"):
        mkldist.kernels.Gausian  # noqa: B018, the access is what is tested


def test_the_entry_names_the_view_and_holds_no_matrix():
    given = mkldist.kernels.Precomputed(np.eye(3), name="strings")
    assert isinstance(given, Precomputed)
    assert given.entry() == {"function": "precomputed", "features": "strings"}
    assert repr(given) == "Precomputed(name='strings')"
    assert given != Precomputed(np.eye(3), name="strings")
    assert len({given, given}) == 1
