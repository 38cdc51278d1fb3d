"""Features, given kernels, texts, views and sparse points of banks."""

import tomllib
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import coo_array, csr_array, csr_matrix, random_array
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics.pairwise import rbf_kernel

import mkldist
from mkldist.bank.bank_kernels import BankKernels
from mkldist.errors import DataError, GramError, SpecError
from mkldist.fit.bank import KernelBank, as_dataset, normalisation_steps
from mkldist.fit.inputs import Features
from mkldist.kernels import Custom, Gaussian, Precomputed, Spectrum
from mkldist.kernels.families import kernel_choice
from mkldist.spec.banks import BankSpec, KernelChoice
from tests.methods.instances import Instance
from tests.methods.references.simplex_svm import simplex_optimum
from tests.variants import quick

FRAME = pd.DataFrame({"age": [1, 2, 3], "bmi": [0.5, 1.5, 2.5], "old": [True, False, True]})


def test_a_frame_gives_its_columns_and_an_array_numbers_them():
    named = Features.of(FRAME)
    assert (named.names, named.named) == (("age", "bmi", "old"), True)
    np.testing.assert_array_equal(named.points, [[1, 0.5, 1], [2, 1.5, 0], [3, 2.5, 1]])
    plain = Features.of(FRAME.to_numpy())  # of dtype object
    assert (plain.names, plain.named) == (("x0", "x1", "x2"), False)
    np.testing.assert_array_equal(plain.points, named.points)
    assert plain.points.dtype == np.float64


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (FRAME.assign(bmi=[1.0, np.nan, 2.0]), r"missing values in 'bmi' \(1\), of 3 rows"),
        (np.array([[1.0, np.inf]]), r"infinite values in 'x1' \(1\)"),
        (FRAME.assign(sex=["m", "f", "m"]), r"text in column 'sex' \(3 of 3"),
        (pd.concat([FRAME, FRAME[["age"]]], axis=1), "two columns 'age'"),
        (np.ones(3), r"an array of shape \(3,\)"),
        (np.ones((3, 0)), r"an array of shape \(3, 0\)"),
        (np.ones((0, 3)), "no rows; expected at least one point"),
        ([["a"]], "found texts such as a"),
        ([[1.0], [1.0, 2.0]], "found list"),
        (None, "X: "),
    ],
)
def test_features_that_cannot_be_used_are_refused(given, said):
    with pytest.raises(DataError, match=said) as caught:
        Features.of(given)
    assert str(caught.value).startswith("X: ")
    assert "impute" not in str(caught.value)


def test_new_points_are_taken_by_the_names_of_their_columns():
    features = Features.of(FRAME)
    shuffled = FRAME[["old", "age", "bmi"]]
    np.testing.assert_array_equal(features.like(shuffled).points, features.points)
    np.testing.assert_array_equal(features.like(features.points[:1]).points, features.points[:1])
    of_array = Features.of(features.points)
    np.testing.assert_array_equal(of_array.like(FRAME).points, features.points)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (FRAME.rename(columns={"age": "agee"}), "no column 'age'; .* Did you mean 'agee'"),
        (FRAME[["age", "old"]], "no column 'bmi'; expected the 3 columns"),
        (FRAME.assign(y=1), "a column 'y'; .* Leave it out"),
        (np.ones((2, 4)), "4 columns; expected 3"),
        (np.full((1, 3), np.nan), "missing values in 'x0'"),
    ],
)
def test_new_points_of_other_features_are_refused(given, said):
    with pytest.raises(DataError, match=f"X_new: found {said}"):
        Features.of(FRAME).like(given)


def test_features_that_are_mapped_from_a_file_stay_there(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(50, 3)))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert np.shares_memory(Features.of(mapped).points, mapped)


GAUSSIAN = {"function": "gaussian", "widths": [0.5, 1.0]}
FEATURES = Features.of(np.arange(12.0).reshape(4, 3))


def test_entries_are_those_of_a_sweep_file():
    written = tomllib.loads("""
        normalisation = ["cosine", "trace"]
        [[kernels]]
        function = "gaussian"
        widths = {start = 1.0, stop = 2.0, num = 2}
        features = ["all", {count = 3, size = 2}]
        [[kernels]]
        function = "polynomial"
        degrees = [1, 2]
    """)
    entries = [
        {
            "function": "gaussian",
            "widths": {"start": np.float64(1), "stop": 2, "num": np.int64(2)},
            "features": ("all", {"count": 3, "size": 2}),
        },
        {"function": "polynomial", "degrees": range(1, 3)},
    ]
    spec = BankSpec.model_validate(written)
    assert kernel_choice(entries).kernels == spec.kernels
    assert normalisation_steps(("cosine", "trace")) == spec.normalisations
    assert kernel_choice("xu2008") == KernelChoice(family="xu2008")
    [entry] = kernel_choice([{"function": "gaussian", "widths": np.array([1, 2])}]).kernels
    widths = entry.widths
    assert widths == [1, 2]


@pytest.mark.parametrize(
    ("kernels", "said"),
    [
        ("xu2009", "kernels: found \"xu2009\"; .* Did you mean 'xu2008'"),
        ([], "kernels: found an empty list; expected the name of a family"),
        (GAUSSIAN, "kernels: found {'function'"),
        (None, "kernels: found None"),
        (np.array([GAUSSIAN]), "kernels: found array"),
        (["gaussian"], r'kernels\[0\]: found "gaussian"; expected a table'),
        ([GAUSSIAN | {"width": 1}], r"kernels\[0\].width: found an unknown key; .* mean 'widths'"),
        ([{"function": "gausian"}], r"kernels\[0\].function: found .* mean 'gaussian'"),
        ([GAUSSIAN, GAUSSIAN | {"widths": [1, -1]}], r"kernels\[1\].widths\[1\]: found -1"),
    ],
)
def test_mistakes_are_named_in_the_words_of_sweep_files(kernels, said):
    with pytest.raises(SpecError, match=said):
        kernel_choice(kernels)


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"normalisation": "zscore"}, "normalisation"),
        ({"normalisation": ["trace", 1]}, "normalisation"),
        ({"normalisation": ["trace", "cosine"]}, "normalisation"),
        ({"backend": "disk"}, "backend"),
        ({"backend": None}, "backend"),
        ({"dtype": np.float32}, "dtype"),
        ({"backend": "recompute", "dtype": "float32"}, "dtype"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_their_argument(settings, where):
    with pytest.raises(SpecError) as caught:
        mkldist.KernelBank(np.eye(3), "xu2008", **settings)
    assert caught.value.where == where


def test_groups_name_features():
    choice = kernel_choice([GAUSSIAN | {"features": ["edge", "x1"]}])
    dataset = as_dataset(FEATURES, {"edge": ["x0", 2]}, {}, {})
    kernels = BankKernels.of(choice, dataset, 0).of_features
    assert kernels is not None
    assert [kernels.features_of(m).tolist() for m in range(4)] == [[0, 2], [0, 2], [1], [1]]
    with pytest.raises(DataError, match=r"X: groups\.edge: found no feature 'y0'; expected names"):
        as_dataset(FEATURES, {"edge": ["y0"]}, {}, {})


@pytest.mark.parametrize(
    ("groups", "views", "said"),
    [
        ({"v": [0]}, {"v": [1]}, "groups: found 'v', the name of a view too; expected a name of"),
        ({}, {"v": None}, r"views\['v'\]: found None; expected features in lists"),
        ({"g": "x0"}, {}, r"groups\['g'\]: found 'x0'; expected features in lists"),
        ({"g": [True, False]}, {}, r"groups\['g'\]: .* numbers of the columns of a mask"),
        ({}, [1], r"views: found \[1\]; expected features in lists"),
    ],
)
def test_groups_and_views_that_do_not_fit_are_refused(groups, views, said):
    with pytest.raises(SpecError, match=said):
        as_dataset(FEATURES, groups, views, {})


def test_groups_do_not_have_the_names_of_views_that_the_features_are_given_in():
    features = Features.of({"v": np.eye(3)})
    for given in (({"v": [0]}, {}), ({}, {"v": [0]})):
        with pytest.raises(SpecError, match="found 'v', the name of a view too"):
            as_dataset(features, *given, {})


def test_mistakes_are_told_as_python_spells_them():
    with pytest.raises(SpecError) as caught:
        mkldist.KernelBank(np.eye(3), ["gaussian"])
    assert caught.value.expected == 'a table such as {"function": "gaussian", "widths": [1]}'
    with pytest.raises(SpecError) as caught:
        mkldist.KernelBank(np.eye(3), [{"function": "gaussian", "widths": [1], "seed": 3}])
    assert caught.value.hint == "Leave it out"


N, N_NEW = 36, 12
RNG = np.random.default_rng(3)
Y = np.where(RNG.permutation(N + N_NEW) % 2, 1.0, -1.0)
TABLE = pd.DataFrame(
    {
        "chain": ["".join(RNG.choice(list("abc"), 6)) + "ab" * int(y > 0) for y in Y],
        "x": np.round(RNG.normal(size=N + N_NEW) + Y, 3),
        "note": "n",
    }
)
TRAIN, NEW = TABLE[:N], TABLE[N:]
KERNELS = [Spectrum(length=[1, 2], features="chain"), Gaussian(1.0)]


def explicit(table: pd.DataFrame, *, cosine: bool = False) -> np.ndarray:
    """Return a Gaussian and two kernels of texts on all rows, zero where they lack a text."""
    has = (table["chain"] != "").to_numpy()
    found = [rbf_kernel(table[["x"]], gamma=0.5)]
    for length in (1, 2):
        counter = CountVectorizer(analyzer="char", ngram_range=(length, length))
        counts = counter.fit_transform(table["chain"]).toarray().astype(float)
        if cosine:
            counts /= np.maximum(np.linalg.norm(counts, axis=1), 1e-300)[:, None]
        found.append(counts @ counts.T * np.outer(has, has))
    return np.array(found)


def bank(table: pd.DataFrame = TRAIN, **settings: Any) -> mkldist.KernelBank:
    kernels = settings.pop("kernels", KERNELS)
    return mkldist.KernelBank(
        table, kernels, **{"texts": ["chain", "note"], "normalisation": "none", **settings}
    )


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["memory", "recompute"])
@pytest.mark.parametrize("cosine", [False, True])
def test_a_bank_of_numbers_and_texts_is_that_of_explicit_matrices(backend, cosine):
    grams, y, C = explicit(TABLE, cosine=cosine), Y[:N], 2.0
    with bank(backend=backend, normalisation="cosine" if cosine else "none") as made:
        solution = mkldist.solve("level", made, y, C=C, tol=1e-7)
        optimum = simplex_optimum(Instance("texts", grams[:, :N, :N], y, C), y, {"C": C})
        assert solution.objective == pytest.approx(optimum, rel=1e-6)
        assert solution.dual_objective <= optimum * (1 + 1e-6)
        between = np.einsum("m,mij->ij", solution.kernel_weights, grams[:, N:, :N])
        expected = between @ solution.coefficients + solution.bias
        found = solution.decision_function(made.on(NEW.iloc[:, ::-1]))
        assert_allclose(found, expected, rtol=1e-8, atol=1e-12)


def test_the_table_names_columns_of_texts():
    made = bank()
    assert made.kernels["name"].tolist() == [
        "gaussian(1)[all]", "spectrum(1)[chain]", "spectrum(2)[chain]"
    ]  # fmt: skip
    assert made.kernels["features"].tolist() == ["all", "chain", "chain"]
    assert made.kernels["columns"].tolist() == [("x",), ("chain",), ("chain",)]
    assert made.groups is not None
    assert made.groups.tolist() == [0, 1, 1]
    part = made[[2, 0]]
    assert part.kernels["name"].tolist() == ["spectrum(2)[chain]", "gaussian(1)[all]"]
    solution = mkldist.solve("uniform", part, Y[:N], C=1.0)
    grams = explicit(TABLE)[[2, 0], N:, :N]
    between = np.einsum("m,mij->ij", solution.kernel_weights, grams)
    expected = between @ solution.coefficients + solution.bias
    assert_allclose(solution.decision_function(part.on(NEW)), expected, rtol=1e-9)


def test_points_may_lack_texts():
    table = TABLE.copy()
    table.loc[[2, 5, N + 1], "chain"] = None
    with pytest.raises(
        DataError, match=r"found no text in column 'chain' for row 2 \(from 0\), row 5;"
    ):
        bank(table[:N])
    made = bank(table[:N], missing="zero")
    solution = mkldist.solve("uniform", made, Y[:N], C=1.0)
    grams = explicit(table.fillna(""))[:, N:, :N]
    between = np.einsum("m,mij->ij", solution.kernel_weights, grams)
    expected = between @ solution.coefficients + solution.bias
    assert_allclose(solution.decision_function(made.on(table[N:])), expected, rtol=1e-9)
    with pytest.raises(DataError, match="X_new: found no text in column 'chain' for row 1"):
        bank().on(table[N:])


def test_decision_functions_live_apart_from_a_bank_with_texts():
    made = bank(views={"strings": ["chain"], "numbers": [0]}, missing="zero")[[2, 0]]
    solution = mkldist.solve("uniform", made, Y[:N], C=2.0)
    apart, x = made.expansion(solution), NEW[["x"]].to_numpy()
    texts = NEW[["chain", "note"]].to_numpy(object)
    assert apart.index.tolist() == [1, 0]  # the Gaussian first, then the kernel of texts
    grams = explicit(TABLE)[[0, 2], N:, :N]
    expected = np.einsum("mij,j->im", grams / 2, solution.coefficients)
    found = apart.contributions(["numbers", "strings"], x, texts=texts)[:, :2, 0]
    assert_allclose(found, expected, rtol=1e-8, atol=1e-12)
    values = apart.values(x, texts=texts)[:, 0]
    assert_allclose(values, expected.sum(axis=1) + solution.bias, rtol=1e-9)


def test_views_name_columns_of_texts():
    kernels = [Spectrum(2, features="views"), Gaussian(1.0, features="views")]
    made = bank(kernels=kernels, views={"strings": ["chain"], "both": [0, "note"]})
    assert made.kernels["name"].tolist() == [
        "gaussian(1)[both]", "spectrum(2)[strings]", "spectrum(2)[both]"
    ]  # fmt: skip


def equal_ends(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return 1 for texts of the same last letter, else 0."""
    return np.equal.outer([t[-1] for t in left[:, 0]], [t[-1] for t in right[:, 0]])


def test_texts_alone_with_a_function_of_ones_own_and_a_matrix():
    features = RNG.normal(size=(N + N_NEW, 4))
    gram = features @ features.T
    own = Custom(equal_ends, features="chain")
    made = bank(kernels=[own, Precomputed(gram[:N, :N], name="k")], texts=["chain", "note", "x"])
    solution = mkldist.solve("uniform", made, Y[:N], C=1.0)
    last = TABLE["chain"].str[-1].to_numpy()
    grams = np.array([np.equal.outer(last, last).astype(float), gram])[:, N:, :N]
    between = np.einsum("m,mij->ij", solution.kernel_weights, grams)
    expected = between @ solution.coefficients + solution.bias
    points = made.on(NEW, grams={"k": gram[N:, :N]})
    assert_allclose(solution.decision_function(points), expected, rtol=1e-9)
    with pytest.raises(GramError, match="bank: found given Gram matrices; expected kernels"):
        made.expansion(solution)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: bank(texts=["chains"]), DataError, "X: texts: found no column 'chains'.*'chain'"),
        (lambda: bank(texts=["chain", "chain"]), DataError, "found column 'chain' twice"),
        (
            lambda: bank(np.eye(3)),
            DataError,
            r"X: found one ndarray; expected a DataFrame, for columns of texts \('chain', 'note'\)",
        ),
        (lambda: bank().on(NEW.drop(columns="chain")), DataError, "X_new: texts: found no column"),
        (lambda: bank().on(NEW.drop(columns="x")), DataError, "X_new: found no column 'x'"),
        (lambda: bank(kernels=[Spectrum(2, "x")]), SpecError, "found 'x', a feature or group of"),
        (
            lambda: bank(kernels=[Gaussian(1.0, "chain")]),
            SpecError,
            "'chain', a column of texts, for a gaussian kernel",
        ),
    ],
    ids=["name", "twice", "array", "new text", "new number", "spectrum", "gaussian"],
)
def test_mistakes_are_told(call, error, said):
    with pytest.raises(error, match=said):
        call()


N_MIXED, N_NEW_MIXED = 40, 15
RNG_MIXED = np.random.default_rng(8)
CLINICAL = pd.DataFrame(RNG_MIXED.normal(size=(N_MIXED + N_NEW_MIXED, 2)), columns=["age", "bmi"])
GENES = RNG_MIXED.normal(size=(N_MIXED + N_NEW_MIXED, 3))
GENES[RNG_MIXED.permutation(N_MIXED + N_NEW_MIXED)[:12]] = np.nan
FACTORS = RNG_MIXED.normal(size=(N_MIXED + N_NEW_MIXED, 4))
STRINGS = FACTORS @ FACTORS.T
LACK_STRINGS = RNG_MIXED.permutation(N_MIXED + N_NEW_MIXED)[:10]
STRINGS[LACK_STRINGS] = np.nan
STRINGS[:, LACK_STRINGS] = np.nan
Y_MIXED = np.sign(CLINICAL["age"].to_numpy() + np.nan_to_num(GENES)[:, 0] + FACTORS[:, 0])[:N_MIXED]
KNOWN, NEXT = slice(0, N_MIXED), slice(N_MIXED, None)


def views_at(rows: slice) -> dict[str, Any]:
    return {"clinical": CLINICAL[rows], "genes": GENES[rows]}


def kernels() -> list[Any]:
    return [
        mkldist.kernels.Precomputed(STRINGS[KNOWN, KNOWN], name="strings"),
        mkldist.kernels.Gaussian([1.0, 2.0], features="views"),
    ]


def explicit_mixed() -> np.ndarray:
    """Return the five kernels on all points, zero where a point lacks a view."""
    found = []
    for x in (CLINICAL.to_numpy(), GENES):
        has = ~np.isnan(x).any(axis=1)
        for width in (1.0, 2.0):
            gram = rbf_kernel(np.nan_to_num(x), gamma=0.5 / width**2)
            found.append(gram * np.outer(has, has))
    return np.array([*found, np.nan_to_num(STRINGS)])


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["memory", "recompute"])
@pytest.mark.parametrize("normalisation", ["trace", "none"])
def test_a_bank_of_views_is_that_of_explicit_matrices(backend, normalisation):
    grams, C = explicit_mixed(), 20.0
    with KernelBank(
        views_at(KNOWN), kernels(), missing="zero", backend=backend, normalisation=normalisation
    ) as bank:
        own = grams[:, KNOWN, KNOWN]
        factors = np.ones(5)
        if normalisation == "trace":
            present = (np.diagonal(own, axis1=1, axis2=2) > 0).sum(axis=1)
            factors = present / (N_MIXED * np.trace(own, axis1=1, axis2=2))
        scaled = factors[:, None, None] * own
        solution = mkldist.solve("level", bank, Y_MIXED, C=C, tol=1e-7)
        optimum = simplex_optimum(Instance("views", scaled, Y_MIXED, C), Y_MIXED, {"C": C})
        assert solution.objective == pytest.approx(optimum, rel=1e-6)
        assert solution.dual_objective <= optimum * (1 + 1e-6)
        points = bank.on(views_at(NEXT), grams={"strings": STRINGS[NEXT, KNOWN]})
        weights = solution.kernel_weights * factors
        between = np.einsum("m,mij->ij", weights, grams[:, NEXT, KNOWN])
        expected = between @ solution.coefficients + solution.bias
        assert_allclose(solution.decision_function(points), expected, rtol=1e-8, atol=1e-12)


def test_the_table_names_views_and_matrices():
    bank = KernelBank(views_at(KNOWN), kernels(), missing="zero")
    assert bank.kernels["name"].tolist() == [
        "gaussian(1)[clinical]", "gaussian(2)[clinical]", "gaussian(1)[genes]",
        "gaussian(2)[genes]", "precomputed[strings]",
    ]  # fmt: skip
    assert bank.kernels["features"].tolist()[1:] == ["clinical", "genes", "genes", "strings"]
    assert bank.kernels["columns"][0] == ("clinical.age", "clinical.bmi")
    assert bank.kernels["function"][4] == "precomputed"
    part = bank[[4, 2]]
    assert part.kernels["name"].tolist() == ["precomputed[strings]", "gaussian(1)[genes]"]
    solution = mkldist.solve("uniform", part, Y_MIXED, C=1.0, tol=1e-9)
    whole = mkldist.solve("uniform", KernelBank(GENES[KNOWN], [
        Precomputed(STRINGS[KNOWN, KNOWN]), mkldist.kernels.Gaussian(1.0)
    ], missing="zero"), Y_MIXED, C=1.0, tol=1e-9)  # fmt: skip
    values = solution.decision_function(
        part.on(views_at(NEXT), grams={"strings": STRINGS[NEXT, KNOWN]})
    )
    assert np.isfinite(values).all()
    assert solution.objective == pytest.approx(whole.objective, rel=1e-9)


def test_a_plain_array_may_lack_features_too():
    x = np.where(
        np.arange(N_MIXED)[:, None] == 3, [[np.nan, 1.0, 2.0]], RNG_MIXED.normal(size=(N_MIXED, 3))
    )
    with pytest.raises(DataError, match="missing values in 'x0' "):
        KernelBank(x, [mkldist.kernels.Linear(features="each")])
    linear = [mkldist.kernels.Linear(features="each")]
    bank = KernelBank(x, linear, missing="zero", normalisation="trace")
    solution = mkldist.solve("uniform", bank, Y_MIXED, C=1.0)
    found = solution.decision_function(bank.on(np.array([[np.nan, 0.5, 0.0]])))
    factors = [N_MIXED - 1, N_MIXED, N_MIXED] / (N_MIXED * np.nansum(x**2, axis=0))
    values = factors[1] * 0.5 * x[:, 1] / 3
    assert found[0] == pytest.approx(values @ solution.coefficients + solution.bias, rel=1e-9)


MISTAKES: list[tuple[Any, type[Exception], str]] = [
    (lambda: KernelBank({}, kernels()), DataError, "X: found no view; expected at least one block"),
    (lambda: KernelBank(views_at(KNOWN), kernels()), DataError, r"X\['genes'\]: found missing"),
    (lambda: KernelBank(CLINICAL[KNOWN], kernels(), missing="drop"), SpecError,
     "missing: found 'drop'; expected 'error' or 'zero'"),
    (lambda: KernelBank({"a": GENES[:3], "b": GENES[:4]}, kernels(), missing="zero"), DataError,
     "X: found rows that differ: 3 of 'a', 4 of 'b'; expected the same points in each view"),
    (lambda: KernelBank(CLINICAL[:7], kernels(), missing="zero"), GramError,
     r"Precomputed 'strings': found shape \(1, 40, 40\); expected matrices of the 7 points of X"),
    (lambda: KernelBank(CLINICAL[KNOWN], [*kernels()[:1], *kernels()[:1]], missing="zero"),
     SpecError, "Precomputed 'strings': found two views of this name"),
    (lambda: KernelBank(CLINICAL[KNOWN], kernels()[:1]), GramError,
     r"Precomputed 'strings': kernel 0: found entry \(\d+, \d+\) of nan"),
    (lambda: KernelBank(CLINICAL[:2], [Precomputed([[1.0, np.nan], [np.nan, np.nan]][::-1])],
                        missing="zero"), GramError, r"row 0 \(from 0\) of NaN beside other values"),
    (lambda: KernelBank(CLINICAL[:2], [Precomputed(-np.eye(2))]), GramError, "trace of -2"),
    (lambda: KernelBank(CLINICAL[:2], [Precomputed(np.eye(2))], normalisation="cosine"), SpecError,
     "'cosine' for given Gram matrices"),
    (lambda: KernelBank(views_at(KNOWN), kernels(), missing="zero", normalisation="centre"),
     SpecError, "'centre' for kernels that some points lack"),
    (lambda: KernelBank(CLINICAL[KNOWN], [{"function": "precomputed", "features": "k"}]), SpecError,
     r"kernels\[0\].features: found 'k' for a precomputed kernel .* expected the name of a view"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "error", "said"), MISTAKES)
def test_mistakes_in_views_are_told(make, error, said):
    with pytest.raises(error, match=said):
        make()


@pytest.mark.parametrize(
    ("new", "grams", "error", "said"),
    [
        (views_at(NEXT), None, DataError,
         r"grams: found no matrices of 'strings'; expected kernel values .* \{'strings': "
         r"\(n_new, n\)\}. Call bank.on"),
        (views_at(NEXT), {"string": 0}, DataError, "no matrices of 'strings'.*mean 'string'"),
        (views_at(NEXT), {"strings": STRINGS[KNOWN, NEXT]}, GramError,
         r"grams\['strings'\]: found shape \(1, 40, 15\); expected \(M, n_new, n\) = \(1, 15"),
        (CLINICAL, {}, DataError, "X_new: found one DataFrame; expected a mapping of the views"),
        ({"clinical": CLINICAL[NEXT]}, {}, DataError, "X_new: found no view 'genes'"),
        ({}, {}, DataError, "X_new: found no views 'clinical', 'genes'"),
        (views_at(NEXT) | {"gene": GENES}, {}, DataError, "X_new: found a view 'gene'; expected"),
        (views_at(NEXT) | {"genes": GENES[:1]}, {}, DataError, "X_new: found rows that differ"),
    ],
)  # fmt: skip
def test_mistakes_in_new_points_are_told(new, grams, error, said):
    bank = KernelBank(views_at(KNOWN), kernels(), missing="zero")
    with pytest.raises(error, match=said):
        bank.on(new, grams=grams)


def test_matrices_by_name_need_a_view_of_the_bank():
    bank = KernelBank(CLINICAL[KNOWN], [mkldist.kernels.Linear()])
    with pytest.raises(GramError, match="grams: found matrices of 'k'; expected none"):
        bank.on(CLINICAL[NEXT], grams={"k": np.ones((N_NEW_MIXED, N_MIXED))})
    mixed = KernelBank(CLINICAL[KNOWN], [Precomputed(np.eye(N_MIXED))])
    solution = mkldist.solve("uniform", mixed, Y_MIXED, C=1.0)
    with pytest.raises(GramError, match="found given Gram matrices; expected kernels of features"):
        mixed.expansion(solution)


def test_groups_of_columns_may_be_views():
    views = {"first": ["age"], "others": [1]}
    kernels = [mkldist.kernels.Linear(features="views"), mkldist.kernels.Linear(features="groups")]
    bank = KernelBank(CLINICAL[KNOWN], kernels, views=views, groups={"both": [0, 1]})
    assert bank.kernels["name"].tolist() == ["linear[first]", "linear[others]", "linear[both]"]
    with pytest.raises(DataError, match=r"X: groups\.v: found no feature 'y'"):
        KernelBank(CLINICAL[KNOWN], [mkldist.kernels.Linear()], views={"v": ["y"]})


POINTS = csr_array(random_array((70, 30), density=0.2, rng=np.random.default_rng(1)))
THIN, THIN_2 = POINTS[:50], POINTS[50:]
Y_THIN = np.where(THIN.sum(axis=1) > np.median(THIN.sum(axis=1)), 1.0, -1.0)
KERNELS_THIN = [
    mkldist.kernels.Gaussian([0.5, 2.0], features=["all", "x3"]),
    mkldist.kernels.Polynomial(2),
    mkldist.kernels.Linear(features="half"),
]
GROUPS = {"half": list(range(15))}


def bank_of(points: Any, **settings: Any) -> KernelBank:
    return KernelBank(points, KERNELS_THIN, groups=GROUPS, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["memory", "recompute"])
@pytest.mark.parametrize("normalisation", quick(["cosine", "trace", ["centre", "trace"]]))
def test_a_bank_of_sparse_points_is_that_of_dense_ones(backend, normalisation):
    dense = bank_of(THIN.toarray(), normalisation=normalisation)
    with bank_of(THIN, normalisation=normalisation, backend=backend) as bank:
        assert bank.kernels.equals(dense.kernels)
        assert_allclose(bank.view.scale, dense.view.scale, rtol=1e-9)
        solution = mkldist.solve("level", bank, Y_THIN, C=5.0, tol=1e-6)
        assert solution.objective == pytest.approx(
            mkldist.solve("level", dense, Y_THIN, C=5.0, tol=1e-6).objective, rel=1e-5
        )
        expected = solution.decision_function(dense.on(THIN_2.toarray()))
        for new in (THIN_2, THIN_2.toarray(), csr_matrix(THIN_2), coo_array(THIN_2)):
            found = solution.decision_function(bank.on(new))
            assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
        apart = bank.expansion(solution)
        assert_allclose(apart.values(THIN_2)[:, 0], expected, rtol=1e-8, atol=1e-10)
        shares = apart.contributions(["all"] * apart.n_kernels, THIN_2).sum(axis=1)
        assert_allclose(shares[:, 0], expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: bank_of(THIN.toarray()).on(THIN_2), DataError,
         "X_new: found sparse features; expected dense ones, as the bank was made of. Call X_new"),
        (lambda: bank_of(THIN).on(THIN_2[:, :4]), DataError, "X_new: found 4 columns; expected 30"),
        (lambda: bank_of(csr_array([[np.nan, 1.0]])), DataError, "X: found 1 value missing or inf"),
        (lambda: bank_of(csr_array((0, 3))), DataError, r"X: found a sparse array of float64, sha"),
        (lambda: Features.of({"a": THIN}), DataError, r"X\['a'\]: found sparse features; exp"),
        (lambda: KernelBank(THIN, [mkldist.kernels.Laplacian(1.0)]), SpecError,
         "a laplacian-rbf kernel of sparse features, dense 11.72 kiB; expected gaussian"),
    ],
)  # fmt: skip
def test_mistakes_are_told_thin(make, error, said):
    with pytest.raises(error, match=said):
        make()
