"""Passes on a device, and `device_source`, held to the compiled path."""

import numpy as np
import pytest

import mkldist
from mkldist.bank import device as bank_device
from mkldist.bank.device import DeviceSource, on_device
from mkldist.bank.factored_kernels import FactorLimits, begin_factors
from mkldist.bank.passes import answer
from mkldist.bank.recomputed import PointProducts, RecomputedBank
from mkldist.bank.requests import Combine, Diagonal, Inner, Matvec, Quadratic, Radii
from mkldist.bank.sources import ArraySource, FeatureSource, SelectedSource, passes_of
from mkldist.core.devices import device_named
from mkldist.errors import SpecError
from mkldist.solvers import on_factors
from tests.data.mistakes import mistake
from tests.kernels.made_up import DEVICES, device_there, kernels_of
from tests.variants import quick

RNG = np.random.default_rng(0)
N = 23
POINTS = RNG.normal(size=(N, 4))
GAPS = np.where(RNG.random((N, 4)) < 0.1, np.nan, POINTS)
VECTORS, MATRICES = RNG.normal(size=(N, 3)), RNG.normal(size=(2, N, N))
MATRICES += MATRICES.swapaxes(1, 2)
SOME = np.array([6, 1, 3])
WEIGHTS = RNG.normal(size=(2, 8)) * (RNG.random(8) < 0.7)
REQUESTS = {
    "forms": Quadratic(VECTORS),
    "form": Quadratic(VECTORS[:, 0]),
    "some forms": Quadratic(VECTORS, SOME),
    "products": Matvec(SOME, VECTORS),
    "product": Matvec(SOME, VECTORS[:, 1]),
    "inner": Inner(MATRICES),
    "sum": Combine(WEIGHTS[0]),
    "sums": Combine(WEIGHTS),
    "some sums": Combine(WEIGHTS[:, :3], SOME),
    "diagonals": Diagonal(VECTORS),
    "radii": Radii(),
}


@pytest.fixture(params=DEVICES)
def library(request, monkeypatch):
    device_there(request.param)
    monkeypatch.setattr(bank_device, "EDGE", 9)
    monkeypatch.setattr(bank_device, "PROCESSOR_EDGE", 9)  # three tiles a side, the last cut off
    return request.param


@pytest.mark.slow
@pytest.mark.parametrize("points", [POINTS, GAPS], ids=["complete", "gaps"])
@pytest.mark.parametrize("cosine", quick([True, False]))
def test_every_request_has_the_answer_of_the_loops(library, points, cosine):
    source = FeatureSource(points, kernels_of(4), cosine)
    plain = RecomputedBank(source, 2**20)
    own = RecomputedBank(on_device(source, library, "device"), 2**20)
    asked = list(REQUESTS.values())
    found, expected = answer(own, asked), answer(plain, asked)
    for name, one, other in zip(REQUESTS, found, expected, strict=True):
        assert one.shape == other.shape, name
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10, err_msg=name)


def test_memory_of_a_former_answer_is_used_again(library):
    source = on_device(FeatureSource(POINTS, kernels_of(4)), library, "device")
    memory = np.full((N, N), np.nan)
    [found] = answer(RecomputedBank(source, 0), [Combine(WEIGHTS[0], memory=memory)])
    [expected] = answer(
        RecomputedBank(FeatureSource(POINTS, kernels_of(4)), 0), [Combine(WEIGHTS[0])]
    )
    assert np.shares_memory(found, memory)
    np.testing.assert_allclose(found, expected, atol=1e-11)


def test_values_for_factors(library):
    source = FeatureSource(GAPS, kernels_of(4), cosine=True)
    own = on_device(source, library, "device")
    rows, columns = np.array([4, 0, 20]), np.array([3, 3, 9, 22, 1])
    for kernel in range(8):
        for some in (columns, slice(0, N)):
            np.testing.assert_allclose(
                own.between(kernel, rows, some), source.between(kernel, rows, some), atol=1e-12
            )


def test_selected_kernels_and_points_stay_on_the_device(library):
    source = on_device(FeatureSource(POINTS, kernels_of(4)), library, "device")
    part = SelectedSource(SelectedSource(source, SOME[::-1]), np.array([2, 1, 0]))
    part = part.at(np.arange(5, 16))
    passes = passes_of(part)
    plain = SelectedSource(FeatureSource(POINTS, kernels_of(4)), SOME)
    [expected] = answer(RecomputedBank(plain, 0), [Combine(np.ones(3))])
    assert isinstance(source, DeviceSource)
    np.testing.assert_allclose(passes.answer(Combine(np.ones(3))), expected[5:16, 5:16], atol=1e-11)


def test_work_is_counted(library):
    source = on_device(FeatureSource(POINTS, kernels_of(4)), library, "device")
    bank = RecomputedBank(source, 0)
    answer(bank, [Quadratic(VECTORS), Matvec(SOME, VECTORS), Combine(np.eye(8)[:2])])
    assert (bank.counter.passes, bank.counter.matvecs, bank.counter.combines) == (1, 3, 2)
    assert bank.counter.bytes_computed == (8 + 3 + 2) * 8 * bank.layout.n_entries


def test_the_plain_path_has_no_device():
    source = FeatureSource(POINTS, kernels_of(4))
    assert on_device(source, "cpu", "device") is source
    assert passes_of(source) is None


def test_a_device_takes_no_matrices_that_are_given(library):
    with mistake("other kernels than devices", error=SpecError):
        on_device(ArraySource(np.eye(3)[None]), library, "device")


def test_values_that_are_not_finite_name_their_kernel(library):
    source = on_device(FeatureSource(1e200 * abs(POINTS), kernels_of(4)), library, "device")
    with mistake("polynomial", "finite", error=mkldist.errors.GramError):
        answer(RecomputedBank(source, 0), [Quadratic(VECTORS)])


@pytest.mark.slow
def test_factors_are_multiplied_on_the_device(library):
    source = FeatureSource(POINTS, kernels_of(4))
    plain, own = (
        begin_factors(one, FactorLimits(rank=7))
        for one in (source, on_device(source, library, "device"))
    )
    assert own.factors.products.device is not None
    assert own.copy().factors.products is own.factors.products
    assert own.with_diagonals(np.ones(8)).factors.products is own.factors.products
    part, of_plain = own.select(SOME[::-1]), plain.select(SOME[::-1])
    assert part.factors.products is own.factors.products
    part.lengthen({0: 12})
    of_plain.lengthen({0: 12})
    asked = [Quadratic(VECTORS), Matvec(np.array([2, 0]), VECTORS)]
    found, expected = (answer(one.factors, asked) for one in (part, of_plain))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    [K] = answer(own.factors, [Combine(np.ones(8), thin=True)])
    assert K.products is own.factors.products


@pytest.mark.slow
@pytest.mark.parametrize("backend", quick(["factors", "recompute"]))
@pytest.mark.parametrize("method", quick(["level", "spicymkl", "primalmkl", "alignf"]))
def test_solutions_and_certificates_are_those_of_the_loops(library, backend, method):
    X = RNG.normal(size=(40, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.2 * RNG.normal(size=40) > 0, 1.0, -1.0)
    kernels = [{"function": "gaussian", "widths": [0.5, 2], "features": ["all", "each"]}]
    banks = [
        mkldist.KernelBank(X, kernels, backend=backend, device=name) for name in ("cpu", library)
    ]
    regular = {"C": 100.0 if method == "primalmkl" else 20.0}
    plain, found = (mkldist.solve(method, bank, y, **regular, tol=1e-3) for bank in banks)
    assert found.objective == pytest.approx(plain.objective, rel=2e-3)
    assert found.stop_reason == plain.stop_reason
    gap = "exact_gap" if backend == "factors" else "gap"
    assert getattr(found, gap) <= 1e-3
    np.testing.assert_allclose(found.kernel_weights, plain.kernel_weights, atol=1e-4)


@pytest.mark.slow
def test_level_goes_on_by_the_kernels_of_a_device(library, monkeypatch):
    monkeypatch.setattr(on_factors, "MANY", 40)
    asked, products = [], PointProducts.products
    monkeypatch.setattr(
        PointProducts, "products", lambda *own: (asked.append(own), products(*own))[1]
    )
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=60) > 0, 1.0, -1.0)
    kernels = [{"function": "gaussian", "widths": [0.5, 2], "features": ["all", "each"]}]
    plain, found = (
        mkldist.solve(
            "level",
            mkldist.KernelBank(X, kernels, backend="factors", device=name, rank=10),
            y,
            C=20.0,
            tol=1e-3,
        )
        for name in ("cpu", library)
    )
    assert asked
    assert found.converged
    assert found.exact_gap == found.gap <= 1e-3
    assert found.extra["largest_rank"] == 10  # which did not grow
    assert found.objective == pytest.approx(plain.objective, rel=1e-3)


@pytest.mark.parametrize("backend", ["auto", "memory"])
def test_stored_kernels_have_no_device(backend):
    with pytest.raises(SpecError) as raised:
        mkldist.KernelBank(POINTS, [{"function": "linear"}], backend=backend, device="numpy")
    assert raised.value.where == "device"
    assert "'recompute' or 'factors'" in raised.value.expected


def test_a_device_that_is_not_there():
    with mistake("gpu0", "not there", error=SpecError):
        mkldist.KernelBank(POINTS, [{"function": "linear"}], backend="recompute", device="gpu0")


def test_other_kernels_are_refused():
    pytest.importorskip("array_api_strict")
    kernels = [{"function": "matern", "widths": [1]}]
    with mistake("other kernels than devices", "laplacian-rbf", error=SpecError):
        mkldist.KernelBank(POINTS, kernels, backend="recompute", device="array_api_strict")
    assert device_named("array_api_strict", "device").name == "array_api_strict"
