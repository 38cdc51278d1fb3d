"""From sweep files to kernels: the papers' families, `feature_subsets`, and mistakes."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkldist.errors import SpecError
from mkldist.kernel_functions import products
from mkldist.kernels.families import NAMED_FAMILIES, kernel_list
from mkldist.spec import checks
from mkldist.spec.banks import BankSpec, Family

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
        ("do2009", list(range(1, 18)), [1, 2, 3], False),
        ("do2009-gaussian", list(range(1, 21)), [], False),
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
    monkeypatch.setattr(checks, "physical_memory", lambda: 2 * 10**6)
    with pytest.raises(SpecError, match=rf"banks\.bank.*: found {found}.* half of this machine's"):
        kernels_of(entry)
