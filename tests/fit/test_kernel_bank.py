"""Banks in Python: kernels, parts, backends, files, threads."""

import pickle
import threading
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from threadpoolctl import threadpool_info, threadpool_limits

import mkldist
from mkldist import KernelBank
from mkldist.bank.bank import MemoryBank
from mkldist.bank.passes import answer
from mkldist.bank.requests import Combine
from mkldist.bank.sources import ArraySource
from mkldist.data import grams as gram_checks
from mkldist.errors import DataError, GramError, SpecError
from mkldist.fit import bank as bank_module
from mkldist.fit import bank as module
from mkldist.fit.bank import BankSize, loaded, parallel_map
from mkldist.kernels import Gaussian
from tests.bank.bank_suite import random_grams
from tests.methods.manifolds import manifold
from tests.variants import quick

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.2 * RNG.normal(size=90) > 0, 1.0, -1.0)
TRAIN, TEST = slice(0, 60), slice(60, 90)
ENTRIES = [
    {"function": "gaussian", "widths": [0.5, 1, 2], "features": ["all", "each"]},
    {"function": "polynomial", "degrees": [1, 2]},
    {"function": "linear"},
]
BACKENDS = ("memory", "recompute")
TIGHT = {"C": 1.0, "tol": 1e-8}


def by_scikit_learn(x, z):
    """Return the kernels of the entries in the order of a bank, (M, len(x), len(z))."""
    on_all = [rbf_kernel(x, z, gamma=1 / (2 * w * w)) for w in (0.5, 1, 2)]
    on_all += [polynomial_kernel(x, z, degree=k, gamma=1, coef0=1) for k in (1, 2)]
    on_all += [linear_kernel(x, z)]
    each = [
        rbf_kernel(x[:, [j]], z[:, [j]], gamma=1 / (2 * w * w))
        for j in range(3)
        for w in (0.5, 1, 2)
    ]
    return np.array([*on_all, *each])


def normalised(words, train, cross):
    """Normalise kernels on their training points by hand; return both kinds of values."""
    n = len(train[0])
    centre = np.eye(n) - 1.0 / n
    for word in words:
        if word == "cosine":
            roots = np.sqrt(np.einsum("mii->mi", by_scikit_learn(X[TRAIN], X[TRAIN])))
            new = np.sqrt(np.einsum("mii->mi", by_scikit_learn(X[TEST], X[TEST])))
            train = train / roots[:, :, None] / roots[:, None]
            cross = cross / new[:, :, None] / roots[:, None]
        elif word == "centre":
            cross = (cross - train.mean(axis=1)[:, None]) @ centre
            train = centre @ train @ centre
        else:
            size = np.einsum("mii->m", train)
            if word == "variance":
                size = size / n - train.mean(axis=(1, 2))
            train, cross = train / size[:, None, None], cross / size[:, None, None]
    return train, cross


OTHER_WORDS = [("trace",), ("cosine",), ("centre", "trace"), ("variance",)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "words"),
    [(backend, ("cosine", "centre", "variance")) for backend in BACKENDS]
    + [("memory", words) for words in OTHER_WORDS]
    + [("recompute", ()), ("recompute", ("centre", "trace"))],
)
def test_a_bank_is_the_stack_of_its_kernels(backend, words):
    train, cross = normalised(
        words, by_scikit_learn(X[TRAIN], X[TRAIN]), by_scikit_learn(X[TEST], X[TRAIN])
    )
    expected = mkldist.solve("level", train, Y[TRAIN], **TIGHT)
    with KernelBank(X[TRAIN], ENTRIES, normalisation=words or "none", backend=backend) as bank:
        solution = mkldist.solve("level", bank, Y[TRAIN], **TIGHT)
        assert solution.objective == pytest.approx(expected.objective, rel=1e-7)
        np.testing.assert_allclose(
            solution.decision_function(bank.on(X[TEST])),
            solution.decision_function(cross),
            atol=1e-9,
        )


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("words", quick([["centre", "trace"], [], ["variance"]]))
def test_a_bank_of_gram_matrices_is_their_stack(backend, words):
    given = by_scikit_learn(X[TRAIN], X[TRAIN]), by_scikit_learn(X[TEST], X[TRAIN])
    train, cross = normalised(words, *given)
    expected = mkldist.solve("level", train, Y[TRAIN], **TIGHT)
    options = {"normalisation": words or "none", "backend": backend}
    with KernelBank.from_grams(given[0], **options) as bank:
        solution = mkldist.solve("level", bank, Y[TRAIN], **TIGHT)
        assert solution.objective == pytest.approx(expected.objective, rel=1e-7)
        found = solution.decision_function(bank.on(given[1]))
        np.testing.assert_allclose(found, solution.decision_function(cross), atol=1e-9)


def test_what_kernels_and_graphs_have_in_common_is_computed_once():
    shape = manifold("moons", n=40, per_class=5)
    bank, M = KernelBank.from_grams(shape.grams), len(shape.grams)
    settings = {"form": "shared", "gamma_i": 0.1, "max_iter": 1, "tol": 1.0}

    def solved(kernels, gamma_a, laplacian=shape.laplacian):
        given = {"laplacian": laplacian, "gamma_a": gamma_a, **settings}
        return mkldist.solve("lapmkl", kernels, shape.y, **given)

    asked = [solved(bank, 0.1), solved(bank, 1.0), solved(bank, 1.0, 2 * shape.laplacian)]
    assert [one.counters.combines for one in asked] == [M, 0, M]
    alone = solved(KernelBank.from_grams(shape.grams), 1.0)
    assert asked[1].objective == alone.objective
    np.testing.assert_array_equal(asked[1].coefficients, alone.coefficients)
    assert solved(pickle.loads(pickle.dumps(bank)), 1.0).objective == alone.objective
    two = [0, 2]
    of_two = solved(bank[two], 1.0), solved(KernelBank.from_grams(shape.grams[two]), 1.0)
    assert of_two[0].objective == of_two[1].objective


@pytest.mark.slow
@pytest.mark.parametrize("backend", quick(BACKENDS, 2))
@pytest.mark.parametrize(
    "chosen", [[7, 0, 3], slice(2, 9, 3), np.arange(15) % 4 == 1, [-1]], ids=str
)
def test_some_kernels_are_a_bank_of_their_own(backend, chosen):
    with KernelBank(X[TRAIN], ENTRIES, normalisation="centre", backend=backend) as bank:
        part = bank[chosen]
        index = np.arange(15)[chosen]
        assert len(part) == len(index)
        assert part.kernels.features.tolist() == bank.kernels.features[index].tolist()
        given = [by_scikit_learn(X[rows], X[TRAIN])[index] for rows in (TRAIN, TEST)]
        train, cross = normalised(("centre",), *given)
        expected = mkldist.solve("level", train, Y[TRAIN], **TIGHT)
        solution = mkldist.solve("level", part, Y[TRAIN], **TIGHT)
        assert solution.objective == pytest.approx(expected.objective, rel=1e-7)
        np.testing.assert_allclose(
            solution.decision_function(part.on(X[TEST])),
            solution.decision_function(cross),
            atol=1e-9,
        )


@pytest.mark.slow
def test_a_part_takes_no_memory():
    bank = KernelBank.from_grams(np.zeros((400, 60, 60)))
    tracemalloc.start()
    part = bank[1::2]
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(part) == 200
    assert taken < bank.view.bank.n_bytes / 50


@pytest.mark.parametrize("chosen", [3, [99], [], [0.5]])
def test_kernels_that_a_bank_has_not_are_refused(chosen):
    with pytest.raises(IndexError):
        KernelBank.from_grams(np.eye(4)[None])[chosen]


def test_a_bank_is_no_sequence_that_looks_empty():
    bank = KernelBank.from_grams(np.eye(4)[None])
    for look in (list, lambda b: 0 in b):
        with pytest.raises(TypeError, match="not iterable"):
            look(bank)


@pytest.mark.parametrize("backend", ["memory", "recompute"])
@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, csr_array])
def test_a_bank_keeps_its_points_when_the_array_is_changed(form, backend):
    points = np.random.default_rng(0).normal(size=(12, 3))
    given, new = form(points.copy()), points[:4] + 0.1
    bank = mkldist.KernelBank(given, [Gaussian(widths=[1.0, 2.0])], backend=backend)
    found = mkldist.solve("uniform", bank, np.sign(points[:, 0]), C=1.0)
    before = found.decision_function(bank.on(form(new)))
    if form is pd.DataFrame:
        given.iloc[:, :] *= 5.0
    else:
        (given if form is np.asarray else given.data)[...] *= 5.0
    np.testing.assert_array_equal(found.decision_function(bank.on(form(new))), before)


def test_columns_are_features_by_name():
    frame = pd.DataFrame(X, columns=["age", "bmi", "bp"])
    entry = {"function": "gaussian", "widths": 1.0, "features": ["bmi", "body"]}
    bank = KernelBank(frame[TRAIN], [entry], groups={"body": ["age", "bp"]})
    assert bank.kernels["features"].tolist() == ["bmi", "body"]
    assert bank.kernels["columns"].tolist() == [("bmi",), ("age", "bp")]
    solution = mkldist.solve("uniform", bank, Y[TRAIN])
    found = solution.decision_function(bank.on(frame[TEST][["bp", "bmi", "age"]]))
    np.testing.assert_array_equal(found, solution.decision_function(bank.on(frame[TEST])))


def test_several_classes_share_weights_and_have_a_column_each():
    bank = KernelBank(X[TRAIN], ENTRIES, normalisation=["centre", "trace"])
    labels = np.stack([Y, np.sign(X[:, 2])], axis=1)[TRAIN]
    solution = mkldist.solve("level", bank, labels)
    cross = by_scikit_learn(X[TEST], X[TRAIN])
    cross = normalised(("centre", "trace"), by_scikit_learn(X[TRAIN], X[TRAIN]), cross)[1]
    found = solution.decision_function(bank.on(X[TEST]))
    np.testing.assert_allclose(found, solution.decision_function(cross), atol=1e-9)


def test_a_path_takes_a_bank():
    bank = KernelBank(X[TRAIN], ENTRIES)
    path = mkldist.solve_path("level", bank, Y[TRAIN], C=[1.0, 100.0], tol=1e-6)
    alone = mkldist.solve("level", bank, Y[TRAIN], C=100.0, tol=1e-6)
    assert path[1].objective == pytest.approx(alone.objective, rel=1e-5)


def test_a_bank_is_checked_and_packed_once(monkeypatch):
    factorisations, original = [], gram_checks.has_cholesky_factor
    monkeypatch.setattr(
        gram_checks,
        "has_cholesky_factor",
        lambda *given: factorisations.append(1) or original(*given),
    )
    grams = by_scikit_learn(X[TRAIN], X[TRAIN])
    bank = KernelBank.from_grams(grams)
    assert len(factorisations) == len(grams)
    for C in (1.0, 10.0):
        mkldist.solve("level", bank, Y[TRAIN], C=C)
    mkldist.solve_path("level", bank[:5], Y[TRAIN], C=[1.0, 10.0])
    assert len(factorisations) == len(grams)
    mkldist.solve("level", grams, Y[TRAIN])
    assert len(factorisations) == 2 * len(grams)
    mkldist.solve("level", grams, Y[TRAIN], check="none")
    assert len(factorisations) == 2 * len(grams)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["memory", "recompute"])
def test_new_points_are_evaluated_in_tiles_and_only_for_kernels_with_weight(backend):
    x = RNG.normal(size=(4000, 3))
    widths = np.geomspace(0.1, 10, 300)
    entries = [{"function": "gaussian", "widths": widths, "features": ["all", "each"]}]
    bank = KernelBank(X[TRAIN], entries, backend=backend)
    solution = mkldist.solve("level", bank, Y[TRAIN])
    points, evaluated = bank.on(x), []
    inner = points.values

    def values(kernels, rows, support):
        evaluated.append(kernels)
        return inner(kernels, rows, support)

    points = replace(points, values=values, block_bytes=2**18)
    tracemalloc.start()
    solution.decision_function(points)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    found = np.unique(np.concatenate(evaluated))
    np.testing.assert_array_equal(found, np.flatnonzero(solution.kernel_weights))
    assert len(evaluated) > 4
    assert taken < 8 * 60 * 4000  # bytes of the values of a single kernel


@pytest.mark.slow
def test_many_kernels_are_one_call_without_their_memory():
    entry = {"function": "gaussian", "widths": "chi2", "features": {"count": 20_000}}
    tracemalloc.start()
    bank = KernelBank(X[TRAIN], [entry], backend="recompute")
    solution = mkldist.solve("spicymkl", bank, Y[TRAIN], C=1.0)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(bank) == len(solution.kernel_weights) == 20_000
    assert solution.converged
    assert taken < 20_000 * 60 * 60 * 8 / 4
    said = "20000 kernels on 60 points, computed in every pass, normalisation variance"
    assert repr(bank) == f"<KernelBank: {said}>"


def test_a_bank_that_does_not_fit_is_computed_in_passes(monkeypatch):
    monkeypatch.setattr(bank_module, "physical_memory", lambda: 2**16)
    assert "computed in every pass" in repr(KernelBank(X, ENTRIES))
    assert "computed in every pass" in repr(KernelBank.from_grams(np.zeros((15, 60, 60))))


def test_memory_maps_are_read_where_they_lie(tmp_path):
    path = Path(tmp_path) / "grams.npy"
    np.save(path, by_scikit_learn(X[TRAIN], X[TRAIN]))
    bank = KernelBank.from_grams(np.load(path, mmap_mode="r"), names=[f"k{m}" for m in range(15)])
    assert bank.kernels.name.tolist()[:2] == ["k0", "k1"]
    assert mkldist.solve("level", bank, Y[TRAIN]).converged


def test_a_bank_shows_what_it_is():
    bank = KernelBank(X, ENTRIES, dtype="float32", normalisation=["centre", "trace"])
    assert repr(bank) == (
        "<KernelBank: 15 kernels on 90 points, 0.3 MiB of float32, memory, "
        "normalisation centre, trace>"
    )
    assert isinstance(bank.view.bank, MemoryBank)
    assert "float64, memory, normalisation none" in repr(KernelBank.from_grams(np.eye(3)[None]))


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda b: mkldist.solve("level", b, Y[:59]), GramError, "y: found 59 labels for 60 "
         "points"),
        (lambda b: mkldist.solve("level", b, Y[TRAIN], check="full"), SpecError,
         "check: found 'full' for a bank, which was checked when it was made; expected no check"),
        (lambda b: mkldist.solve("uniform", b, Y[TRAIN]).decision_function(b), GramError,
         r"found <KernelBank: .*; expected an array, or the points bank.on\(X\)"),
        (lambda b: mkldist.solve("uniform", b, Y[TRAIN]).decision_function(b[:2].on(X)), GramError,
         "points for a bank of 2 kernels on 60 points; expected points for the 15 kernels"),
        (lambda b: KernelBank(X, "precomputed"), SpecError, "Or call KernelBank.from_grams"),
        (lambda b: KernelBank.from_grams(np.eye(3)[None], normalisation="cosine"), SpecError,
         "normalisation: found 'cosine' for given Gram matrices"),
        (lambda b: KernelBank.from_grams(np.eye(3)[None], normalisation="trase"), SpecError,
         "^normalisation: found 'trase'; .*'trace'"),
        (lambda b: KernelBank.from_grams(np.eye(3)[None], backend="disk"), SpecError,
         "^backend: found 'disk'"),
        (lambda b: KernelBank.from_grams(np.eye(3)[None], backend="sharded"), SpecError,
         "^backend: found 'sharded'; expected 'auto', 'memory' or 'recompute'"),
        (lambda b: KernelBank(X, "xu2008", backend="sharded"), SpecError,
         "^backend: found 'sharded'"),
        (lambda b: KernelBank.from_grams(np.eye(3)[None], names=[]), GramError, "names: found 0 "
         "names"),
        (lambda b: KernelBank.from_grams(np.eye(3)[None], names=1), GramError, "names: found 1; "
         "expected a list of names"),
        (lambda b: KernelBank(X, ENTRIES, seed=-1), SpecError, "seed: found -1; expected a whole"),
        (lambda b: KernelBank(X, ENTRIES, seed="a"), SpecError, "seed: found 'a'; expected"),
        (lambda b: KernelBank(np.ma.masked_less(X, 0.0), ENTRIES), DataError, "X: found masked "
         "entries; expected a number everywhere"),
        (lambda b: KernelBank.from_grams(np.ma.masked_less(np.eye(3)[None], 1)), GramError,
         "grams: found masked entries"),
        (lambda b: mkldist.solve("level", b, np.ma.masked_less(Y[TRAIN], 0.0)), GramError,
         "y: found masked entries"),
    ],
)  # fmt: skip
def test_mistakes_have_one_message(make, error, said):
    bank = KernelBank(X[TRAIN], ENTRIES)
    with pytest.raises(error, match=said):
        make(bank)


def test_kernel_values_of_new_points_are_checked_as_matrices_are():
    grams = by_scikit_learn(X, X)
    bank = KernelBank.from_grams(grams[:, TRAIN, TRAIN])
    between = grams[:, TEST, TRAIN]
    solution = mkldist.solve("uniform", bank, Y[TRAIN], C=1.0)
    masked = np.ma.masked_array(between, mask=np.zeros_like(between))
    masked[0, 0, 0] = np.ma.masked
    for wrong in (masked, between.astype(complex), between.astype(str)):
        with pytest.raises(GramError):
            bank.on(wrong)
    between[2, 3, 4] = np.nan
    with pytest.raises(GramError):
        solution.decision_function(bank.on(between))


def test_points_of_another_bank_are_refused_for_several_functions():
    bank, other = (KernelBank(X[:n], [ENTRIES[2]]) for n in (4, 2))
    labels = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    solution = mkldist.solve("uniform", bank, labels, C=1.0)
    with pytest.raises(GramError):
        solution.decision_function(other.on(X[:3]))


GRAMS = random_grams(30, 25)
SIZE = BankSize(30, 25, np.dtype("float64"))


def matrices(bank):
    return answer(bank, [Combine(np.eye(bank.n_kernels))])[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_loaded_bank_holds_all_kernels(monkeypatch, dtype, threads):
    monkeypatch.setattr(bank_module, "n_processors", lambda: threads)
    grams = random_grams(6, 450)  # large enough for parts of several threads
    bank = loaded(ArraySource(grams), np.dtype(dtype))
    assert bank.dtype == dtype
    assert bank.n_bytes == BankSize(6, 450, np.dtype(dtype)).n_bytes
    np.testing.assert_array_equal(matrices(bank), grams)


def test_values_beyond_the_type_are_refused():
    with pytest.raises(GramError, match="kernel 0: found values beyond the range of float32"):
        loaded(ArraySource(1e39 * GRAMS), np.dtype("float32"))


def test_sizes_are_known_before_memory_is_taken(monkeypatch):
    monkeypatch.setattr(bank_module, "physical_memory", lambda: 2 * SIZE.n_bytes)
    larger = BankSize(31, 25, np.dtype("float64"))
    assert (SIZE.fits, larger.fits) == (True, False)
    assert (SIZE.backend("auto"), larger.backend("auto")) == ("memory", "recompute")
    assert SIZE.backend("recompute") == "recompute"
    said = r"'memory' for 31 kernels on 25 points, which take .* Choose backend='recompute'"
    with pytest.raises(DataError, match=said):
        larger.backend("memory")


@pytest.mark.parametrize("available", [1, 2])
def test_the_first_error_in_the_order_of_the_kernels_is_raised(monkeypatch, available):
    monkeypatch.setattr(module, "n_processors", lambda: available)
    second_has_failed = threading.Event()

    def work(kernels):
        if kernels.start == 0 and available > 1:
            assert second_has_failed.wait(60)
        second_has_failed.set()
        raise ValueError(f"kernel {kernels.start}")

    with pytest.raises(ValueError, match=r"kernel 0$"):
        parallel_map(work, 8, 2**20)


def test_beside_other_threads_each_has_one_thread_of_linear_algebra(monkeypatch):
    monkeypatch.setattr(module, "n_processors", lambda: 2)
    seen = []

    def work(_):
        pools = threadpool_info()
        seen.append({pool["num_threads"] for pool in pools if pool["user_api"] == "blas"})

    with threadpool_limits(limits=2, user_api="blas"):
        parallel_map(work, 3, 2**20)
    assert seen == [{1}] * 3
