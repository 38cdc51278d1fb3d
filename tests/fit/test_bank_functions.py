"""Banks of all kernel functions: backends, normalisations, new points, names, and a certificate."""

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import chi2_kernel, rbf_kernel

import mkldist
from mkldist import KernelBank, kernels
from mkldist.errors import DataError, GramError, SpecError
from mkldist.kernel_functions import FUNCTIONS
from mkldist.kernel_functions.definition import Takes

RNG = np.random.default_rng(0)
X = np.round(np.abs(RNG.normal(size=(46, 3))), 1)
Y = np.sign(X[:, 0] + 0.3 * RNG.normal(size=46) - 0.6)


def hellinger(left: np.ndarray, right: np.ndarray, power: float = 0.5) -> np.ndarray:
    return left**power @ (right**power).T


ALL = [
    kernels.Gaussian(widths=[0.5, 2.0]),
    kernels.Polynomial(degrees=2),
    kernels.Linear(),
    kernels.Laplacian(widths=1.0),
    kernels.Additive(relative_widths=1.0),
    kernels.Matern(widths=1.0, nu=[0.5, 1.5, 2.5, 4.0], features=["all", "b"]),
    kernels.Periodic(widths=1.0, period=[0.7, 1.5], features="each"),
    kernels.ChiSquared(widths=1.0),
    kernels.Intersection(features="each"),
    kernels.Jaccard(),
    kernels.Tanimoto(),
    kernels.Categorical(features="each"),
    kernels.Custom(hellinger, {"power": [0.5, 1.0]}),
]


def bank(backend: str = "memory", normalisation: str | list[str] = "trace") -> KernelBank:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    return KernelBank(frame, ALL, backend=backend, normalisation=normalisation)


def test_every_function_of_numbers_is_here():
    numbers = {name for name, f in FUNCTIONS.items() if f.takes is not Takes.TEXTS}
    assert set(bank().kernels["function"]) == numbers | {"hellinger"}


def test_names_and_parameters_are_readable():
    table = bank().kernels.set_index("name")
    assert table.loc["matern(1, nu=2.5)[b]", ["width", "nu", "features"]].tolist() == [
        1.0, 2.5, "b",
    ]  # fmt: skip
    assert table.loc["periodic(1, period=0.7)[c]", "period"] == 0.7
    assert table.loc["hellinger(power=0.5)[all]", "power"] == 0.5
    assert {"jaccard[all]", "categorical[a]", "chi-squared(1)[all]"} < set(table.index)
    assert np.isnan(table.loc["jaccard[all]", "width"])


@pytest.mark.parametrize("normalisation", ["trace", ["cosine", "centre"], "variance"])
def test_a_part_of_the_points_as_new_points_has_the_same_decisions(normalisation):
    solution = mkldist.solve("level", bank(normalisation=normalisation), Y, C=10.0)
    whole = bank(normalisation=normalisation)
    found = solution.decision_function(whole.on(pd.DataFrame(X, columns=["a", "b", "c"])))
    again = solution.decision_function(whole.on(X[5:9]))
    np.testing.assert_allclose(again, found[5:9], rtol=1e-10)
    assert np.mean(np.sign(found) == Y) > 0.8


def test_decisions_at_new_points_are_those_of_plain_kernels():
    new = np.abs(RNG.normal(size=(7, 3)))
    chosen = [kernels.ChiSquared(widths=2.0), kernels.Gaussian(widths=1.0), hellinger]
    few = KernelBank(X, chosen, normalisation="none")
    solution = mkldist.solve("uniform", few, Y, C=1.0)
    plain = [chi2_kernel(new, X, gamma=0.5), rbf_kernel(new, X, gamma=0.5), hellinger(new, X)]
    mixed = np.tensordot(solution.kernel_weights, plain, axes=1)
    expected = mixed @ solution.coefficients + solution.bias
    np.testing.assert_allclose(solution.decision_function(few.on(new)), expected, rtol=1e-10)


def test_points_that_a_function_does_not_take_are_told():
    with pytest.raises(DataError, match=r"^X: found -1 in row 3 \(from 0\), column 'b', for a"):
        KernelBank(pd.DataFrame({"a": [0, 1, 2, 3], "b": [0, 0, 0, -1]}), [kernels.Jaccard()])
    few = KernelBank(X, [kernels.ChiSquared(widths=1.0)])
    with pytest.raises(
        DataError, match=r"^X_new: found -0.5 in row 0 \(from 0\), column 'x1', for"
    ):
        few.on(np.array([[0.0, -0.5, 1.0]]))


def test_functions_of_the_user_are_checked_when_the_bank_is_made():
    with pytest.raises(GramError, match="kernel function cdist: found an eigenvalue of -"):
        KernelBank(X, [cdist])
    with pytest.raises(
        SpecError, match=r"kernels\[0\].parameters: found size, which hellinger does not"
    ):
        KernelBank(X, [kernels.Custom(hellinger, {"size": 1})])
    with pytest.raises(SpecError, match=r"kernels\[0\].function: found 3; expected a name"):
        KernelBank(X, [{"function": 3}])


def test_estimators_take_functions_and_keep_banks_apart_by_their_content():
    def scaled(by: float):
        return lambda x, z: by * np.exp(-cdist(x, z))

    labels = np.where(Y > 0, "high", "low")
    for by in (1.0, 3.0):
        fitted = mkldist.MKLClassifier(
            kernels=[scaled(by), kernels.Matern(widths=1.0)], normalisation="none"
        ).fit(X, labels)
        assert list(fitted.kernel_weights_["function"]) == ["<lambda>", "matern"]
        assert fitted.score(X, labels) > 0.8
    with pytest.raises(DataError, match="column 'x0', for a jaccard kernel"):
        mkldist.MKLClassifier(kernels=[kernels.Jaccard()]).fit(X, labels)
    plain = mkldist.MKLClassifier(kernels=[kernels.Jaccard()], scale=None).fit(X, labels)
    assert plain.score(X, labels) > 0.6
