"""Costs that a plan expects, against measured ones: bytes, memory of a worker, passes, rounds."""

import math
import tomllib
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from mkldist.bank import factored_kernels
from mkldist.bank.bank import MemoryBank, TileLayout
from mkldist.bank.factored_kernels import MANY, MOST_CHANGES, FactorLimits, begin_factors
from mkldist.bank.passes import answer
from mkldist.bank.readers import StreamedBank
from mkldist.bank.requests import Quadratic
from mkldist.bank.sources import ArraySource
from mkldist.bank.view import make_views
from mkldist.core.memory import ProblemSize, trace_bytes
from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.planning.model import BankPlan, RunPlan
from mkldist.planning.planner import (
    BUFFER_BYTES,
    FURTHER_PASSES,
    check_memory,
    factor_rounds,
    factors_bytes,
    least_memory,
    make_plan,
    most_points_of,
    parse_memory,
)
from mkldist.planning.resolved import resolve
from mkldist.solvers.base import Problem
from mkldist.solvers.grids import MethodGrid
from mkldist.solvers.lockstep import Job, drive, solve_alone
from mkldist.solvers.on_factors import solve_on_factors
from mkldist.spec.banks import BankSpec
from mkldist.spec.datasets import GraphTable
from mkldist.spec.model import SweepSpec
from tests.bank.stores import stored
from tests.planning.plans import dataset, grid, plan_of
from tests.solvers.test_on_factors import GRAMS, N, Y
from tests.variants import quick

PLAIN = [{"family": "xu2008", "normalisation": "none"}]


def test_bytes_are_those_of_the_upper_tiles_of_real_matrices():
    plan = plan_of({"a": dataset("a", n_points=400)}, {"level": grid("level")}, n_kernels=7)
    assert [bank.n_points for bank in plan.banks] == [200] * 3
    grams, tile = np.zeros((7, 200, 200)), TileLayout.for_points(200).tile
    assert 200 % tile == 0
    starts = range(0, 200, tile)
    tiles = [grams[:, i : i + tile, j : j + tile] for i in starts for j in starts if i <= j]
    assert plan.bank_bytes == 3 * sum(part.nbytes for part in tiles)
    assert plan.bank_bytes < 0.6 * 3 * grams.nbytes


def test_banks_that_differ_in_normalisation_alone_are_counted_once():
    banks = [
        {"name": "plain", "family": "xu2008", "normalisation": "none"},
        {"name": "scaled", "family": "xu2008", "normalisation": "trace"},
    ]
    plan = plan_of({"a": dataset("a")}, {"level": grid("level")}, banks=banks)
    assert len(plan.banks) == 2 * len({bank.id for bank in plan.banks}) == 6
    assert 2 * plan.bank_bytes == sum(bank.n_bytes for bank in plan.banks)


def test_shared_runs_cost_the_passes_of_one():
    data = {"a": dataset("a")}
    one, eight = {"level": grid("level")}, {"level": grid("level", C=[1, 2, 3, 4, 5, 6, 7, 8])}
    passes = plan_of(data, one).estimated_passes
    assert plan_of(data, eight).estimated_passes == passes
    assert plan_of(data, eight, execution="isolated").estimated_passes > 7 * passes
    assert 0 < plan_of(data, {"uniform": grid("uniform")}).estimated_passes < passes


def test_a_path_keeps_one_solver_alive_and_takes_few_passes_a_point():
    data = {"a": dataset("a", 2000)}
    eight = {"level": grid("level", C=[1, 2, 3, 4, 5, 6, 7, 8])}
    shared, path = plan_of(data, eight), plan_of(data, eight, execution="path")
    assert shared.estimated_passes < path.estimated_passes < 2 * shared.estimated_passes
    one = plan_of(data, {"level": grid("level")})
    assert path.memory_per_worker == one.memory_per_worker < shared.memory_per_worker


def test_methods_of_few_passes_are_planned_with_as_many():
    data = {"a": dataset("a")}
    passes = {
        name: plan_of(data, {name: grid(name)}, n_kernels=10, banks=PLAIN).estimated_passes // 3
        for name in ("majority", "best_single", "svm", "easymkl", "align", "alignf")
    }
    assert passes == {
        "majority": 0, "best_single": 1, "svm": 1, "easymkl": 3, "align": 2, "alignf": 6,
    }  # fmt: skip


def test_fitting_a_normalisation_costs_a_pass_per_batch():
    data, grids = {"a": dataset("a")}, {"level": grid("level")}

    def passes(*normalisation):
        bank = {"family": "xu2008", "normalisation": normalisation}
        return plan_of(data, grids, banks=[bank]).estimated_passes

    assert passes("variance") == passes("cosine", "centre", "trace") == passes("none") + 3
    assert passes("cosine") == passes("trace") == passes("trace", "centre") == passes("none")


def test_memory_counts_the_bank_and_the_living_solvers():
    data, grids = {"a": dataset("a", 2000)}, {"level": grid("level", C=[1, 2, 3, 4, 5, 6, 7, 8])}
    plan = plan_of(data, grids)
    bank, matrix = plan.banks[0].n_bytes, 8 * 1000**2
    assert plan.banks[0].backend == "memory"
    assert plan.memory_per_worker > bank + 8 * matrix
    isolated = plan_of(data, grids, execution="isolated")
    assert isolated.memory_per_worker < plan.memory_per_worker - 7 * matrix
    tight = plan_of(data, grids, memory_limit=2**28)
    assert tight.banks[0].backend == "stream"
    assert tight.memory_per_worker < plan.memory_per_worker - bank / 2


def test_memory_of_factors_counts_one_solver_for_they_go_in_turn():
    data, banks = {"a": dataset("a", 2000)}, [{"family": "xu2008", "backend": "factors"}]
    one, eight = (
        plan_of(data, {"level": grid("level", C=Cs)}, banks=banks).memory_per_worker
        for Cs in ([1], [1, 2, 3, 4, 5, 6, 7, 8])
    )
    assert eight == one


def test_memory_counts_the_weights_that_traces_keep():
    data = {"a": dataset("a", 200)}

    def memory(**params: object) -> int:
        grids = {"level": grid("level", C=[1, 2, 3, 4], **params)}
        return plan_of(data, grids).memory_per_worker

    n_kernels = plan_of(data, {"level": grid("level", C=[1])}).banks[0].n_kernels
    few = memory(trace=[True], max_iter=[10]) - memory(max_iter=[10])
    assert few == 4 * trace_bytes(n_kernels, 10) == 4 * 10 * 12 * n_kernels
    many = memory(trace=[True], max_iter=[10**6]) - memory(max_iter=[10**6])
    assert many == 4 * trace_bytes(n_kernels) == 4 * 4 * 2**20
    assert trace_bytes(10**6) == 32 * 10**6


def test_memory_of_a_streamed_bank_counts_the_kernels_that_are_kept():
    data, grids = {"a": dataset("a", 2000)}, {"level": grid("level")}
    bank = [{"family": "xu2008", "backend": "stream"}]
    large = plan_of(data, grids, banks=bank, n_kernels=500)
    mapped = plan_of(data, grids, banks=[bank[0] | {"backend": "mmap"}], n_kernels=500)
    assert large.memory_per_worker - mapped.memory_per_worker == 256 * 2**20
    tight = plan_of(data, grids, banks=bank, n_kernels=500, memory_limit=2**28)
    assert large.memory_per_worker - tight.memory_per_worker == (256 - 256 // 4) * 2**20
    few = plan_of(data, grids, banks=bank, n_kernels=5)
    mapped = plan_of(data, grids, banks=[bank[0] | {"backend": "mmap"}], n_kernels=5)
    assert few.memory_per_worker - mapped.memory_per_worker == few.banks[0].n_bytes


class PassBank(MemoryBank):
    """A bank that answers no combination at once, so that solvers wait and are alive together."""

    sparse_limit = 0


def gaussian_bank(
    n: int, widths: tuple[float, ...], bank: type[MemoryBank] = MemoryBank
) -> tuple[MemoryBank, np.ndarray]:
    """Return a bank of Gaussian kernels of unit trace on single features, and labels."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(n, 8))
    y = np.sign(x[:, 0] + x[:, 1] ** 2 - 1 + 0.5 * draw.normal(size=n))
    squares = (x.T[:, :, None] - x.T[:, None, :]) ** 2
    return bank.from_grams(np.concatenate([np.exp(-squares / w) / n for w in widths])), y


def labels_for(name: str, y: np.ndarray) -> np.ndarray:
    """Return the labels, most of them withheld from methods that need only a few."""
    few = METHODS[name].needs_laplacian & (np.arange(len(y)) >= len(y) // 4)
    return np.where(few, 0.0, y)


def size_of(bank: MemoryBank, y: np.ndarray, name: str) -> ProblemSize:
    return ProblemSize(len(y), bank.n_kernels, np.count_nonzero(labels_for(name, y)))


def job(
    bank: MemoryBank,
    y: np.ndarray,
    name: str,
    start: object = None,
    spare_bytes: int | None = None,
    **params: object,
) -> Job:
    """Return a solver of a method on all points of a bank, not yet started."""
    method, n = METHODS[name], len(y)
    laplacian = n * np.eye(n) - 1.0 if method.needs_laplacian else None
    problem = Problem(
        labels_for(name, y),
        bank.n_kernels,
        laplacian=laplacian,
        start=start,
        spare_bytes=spare_bytes,
    )
    [view] = make_views(bank, [None], ())
    return Job(name, view, problem, method.solve(problem, method.params(**params)))


def held_by_each(bank: MemoryBank, y: np.ndarray, name: str, **params: object) -> float:
    """Return by how much the peak of memory grows with each solver that advances with others."""

    def peak(n_solvers: int) -> int:
        jobs = [job(bank, y, name, **params) for _ in range(n_solvers)]
        tracemalloc.start()
        try:
            drive(bank, jobs, lambda key, outcome, times: None)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)
    return (peak(4) - peak(1)) / 3


PLAIN_FORMS = {
    "level": {"acceleration": "none"},
    "silp": {"acceleration": "none"},
    "spicymkl": {"acceleration": "none"},
    "elastmkl": {"acceleration": "none"},
    "primalmkl": {"norm": 2.0},
    "lapmkl": {"form": "shared"},
}


@pytest.mark.slow
@pytest.mark.parametrize(("n_points", "n_widths"), [(200, 2), (60, 40)])
@pytest.mark.parametrize(
    ("name", "params"), [*((name, {}) for name in METHODS), *PLAIN_FORMS.items()], ids=str
)
def test_a_solver_takes_no_more_memory_than_planned(n_points, n_widths, name, params):
    bank, y = gaussian_bank(n_points, tuple(np.geomspace(0.1, 100.0, n_widths)))
    method = METHODS[name]
    planned = method.memory(size_of(bank, y, name), method.params(**params))
    assert held_by_each(bank, y, name, **params) < planned.needed + planned.spare


# At this tolerance every solver waits for passes, so that all of them are alive at once.  A looser
# one is met by skm with a few rows alone: it is answered at once, and ends before the next begins.
TIGHT = 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["level", "skm"])
def test_a_solver_takes_about_the_memory_that_is_planned(name):
    bank, y = gaussian_bank(100, (0.5, 8.0), PassBank)
    planned = METHODS[name].memory(size_of(bank, y, name), METHODS[name].params())
    held = held_by_each(bank, y, name, tol=TIGHT, C=100.0)
    assert 0.25 < held / (planned.needed + planned.spare) < 1.0


@pytest.mark.slow
def test_rows_that_are_kept_shrink_to_the_memory_that_there_is():
    bank, y = gaussian_bank(100, (0.5, 8.0), PassBank)
    roomy = METHODS["skm"].memory(size_of(bank, y, "skm"), METHODS["skm"].params())
    tight = roomy.needed + roomy.spare // 4
    assert roomy.within(4 * tight) == tight
    spare = roomy.spare_within(4 * tight)
    assert held_by_each(bank, y, "skm", spare_bytes=spare, tol=TIGHT, C=100.0) < tight
    assert tight < held_by_each(bank, y, "skm", tol=TIGHT, C=100.0)


def test_fewer_solvers_with_rows_of_all_kernels_live_at_once():
    data = {"a": dataset("a", 400)}
    eight = {name: grid(name, C=[1, 2, 3, 4, 5, 6, 7, 8]) for name in ("level", "skm")}
    plans = {name: plan_of(data, {name: eight[name]}, n_kernels=400) for name in eight}
    rows = 8 * 400 * 200 * 200  # of all kernels at all points
    assert plans["skm"].memory_per_worker > plans["level"].memory_per_worker + 3 * rows
    assert plans["skm"].memory_per_worker < plans["level"].memory_per_worker + 2**30
    assert plans["skm"].estimated_passes > plans["level"].estimated_passes
    tight = plan_of(data, {"skm": eight["skm"]}, n_kernels=400, memory_limit=2**29)
    assert tight.memory_per_worker < plans["skm"].memory_per_worker - 2 * rows


def test_runs_of_one_setting_are_estimated_once_whatever_the_number_of_splits(monkeypatch):
    """Once for the memory and once for the passes, so that plans of many splits stay quick."""
    estimated, memory = [], RunPlan.memory

    def counting(run, n_points, n_kernels, **more):
        estimated.append(run.params["C"])
        return memory(run, n_points, n_kernels, **more)

    monkeypatch.setattr(RunPlan, "memory", counting)
    plan = plan_of({"a": dataset("a", n_splits=20)}, {"level": grid("level", C=[1.0, 10.0])})
    assert len(plan.runs) == 40
    assert estimated == [1.0, 10.0] * 2


def test_few_labels_make_few_deformed_kernels():
    facts = replace(dataset("a", 2000), graph=GraphTable())
    grids = {"glks": grid("glks")}
    few = plan_of({"a": replace(facts, train_sizes=(50,) * 3)}, grids, n_kernels=1000)
    all_known = plan_of({"a": facts}, grids, n_kernels=1000)
    assert few.memory_per_worker < all_known.memory_per_worker - 8 * 1000 * 1000**2 / 2.5


@pytest.mark.slow
def test_a_pass_over_a_streamed_bank_takes_no_more_memory_than_planned(tmp_path):
    draw = np.random.default_rng(0)
    roots = draw.normal(size=(400, 300, 1)).astype(np.float32)
    store = stored(tmp_path, roots @ roots.swapaxes(1, 2), "float32")
    bank = StreamedBank(store, row_cache_bytes=0)
    assert bank.n_kernels * bank.layout.n_entries * 4 > BUFFER_BYTES
    tracemalloc.start()
    answer(bank, [Quadratic(draw.normal(size=300))])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 < peak < BUFFER_BYTES


@pytest.mark.parametrize(
    ("name", "parameter", "values"),
    [
        ("level", "C", (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)),
        ("spicymkl", "C", (5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)),
        ("primalmkl", "C", (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)),
    ],
)
def test_further_points_of_a_path_take_about_as_many_passes_as_planned(name, parameter, values):
    bank, y = gaussian_bank(120, (0.5, 2.0, 8.0, 32.0, 128.0))
    state, passes = None, []
    for value in values:
        before = bank.counter.passes
        solution = solve_alone(bank, job(bank, y, name, state, **{parameter: value}))
        state = solution.state
        passes.append(bank.counter.passes - before)
    assert FURTHER_PASSES / 2 <= sum(passes[1:]) / 7 <= 2.5 * FURTHER_PASSES


def test_least_memory_grows_by_a_solver_and_a_buffer_or_the_whole_bank_per_task():
    data, grids = {"a": dataset("a", 2000)}, {"level": grid("level")}
    plan = plan_of(data, grids, n_kernels=500)
    one, two, three = (least_memory(plan.banks, plan.batches, n) for n in (1, 2, 3))
    matrices = 4 * np.empty((1000, 1000)).nbytes + np.empty((24, 500)).nbytes
    assert two - one == three - two == 64 * 2**20 + matrices
    loaded = plan_of(data, grids, n_kernels=500, banks=[{**PLAIN[0], "backend": "memory"}])
    one, two = (least_memory(loaded.banks, loaded.batches, n) for n in (1, 2))
    whole = two - one
    assert whole == loaded.banks[0].n_bytes + matrices


def test_factors_take_their_share_of_the_limit_however_many_there_are():
    data, grids = {"a": dataset("a", 2000)}, {"level": grid("level")}

    def plan(n_kernels, limit):
        banks = [{**PLAIN[0], "backend": "factors"}]
        return plan_of(data, grids, banks=banks, n_kernels=n_kernels, memory_limit=limit)

    many = plan(5000, 2**30)
    assert many.banks[0].n_bytes == 5000 * 100 * 1000 * 8
    assert many.memory_per_worker == plan(500, 2**30).memory_per_worker
    assert many.memory_per_worker - plan(5000, 2**29).memory_per_worker == 2**28  # half of it
    in_making = (3 * 100 + 200) * 1000 * 8
    unlimited = plan(5000, None)
    assert unlimited.memory_per_worker > many.banks[0].n_bytes
    assert factors_bytes(many.banks[0], 0) == in_making
    assert factors_bytes(many.banks[0], 2**30) == 2**29
    assert factors_bytes(many.banks[0], None) == many.banks[0].n_bytes
    one, two = (least_memory(many.banks, many.batches, n) for n in (1, 2))
    of_solver = 8 * (3 * 1000**2 + 200 * 1000)
    assert two - one == in_making + 64 * 2**20 + of_solver


def test_a_sharded_bank_takes_what_a_worker_may_keep_of_it_and_at_least_a_block():
    sharded = [{"family": "xu2008", "backend": "sharded", "dtype": "float64"}]
    data, grids = {"a": dataset("a", n_points=400)}, {"level": grid("level")}
    plan = plan_of(data, grids, n_kernels=40_000, memory_limit=2**30, banks=sharded)
    [bank] = {b.n_bytes: b for b in plan.banks}.values()
    assert bank.n_bytes > 5 * 2**30
    less = plan_of(data, grids, n_kernels=40_000, memory_limit=2**29, banks=sharded)
    assert plan.memory_per_worker - less.memory_per_worker >= 2**28
    assert plan.memory_per_worker < bank.n_bytes
    least, streamed = (
        least_memory(p.banks, p.batches, 1)
        for p in (plan, plan_of(data, grids, n_kernels=40_000, memory_limit=2**30))
    )
    assert least - streamed == bank.shape.least_shard_bytes - BUFFER_BYTES


def test_memory_counts_the_products_with_the_laplacian():
    data = dataset("a", 2000)
    grids = {"lapsvm": grid("lapsvm")}
    matrix = 8 * 1000**2

    def memory(**words):
        facts = replace(data, graph=GraphTable(**words))
        return plan_of({"a": facts}, grids).memory_per_worker

    plain = plan_of({"a": data}, {"uniform": grid("uniform")}).memory_per_worker
    shared = 2**28  # deformed kernels that the solvers share, at most
    assert memory() == plain + shared + 5 * matrix
    assert memory(power=2) == memory(distances="d.npy") == plain + shared + 8 * matrix


@pytest.mark.parametrize("fit", ["train", "all"])
def test_memory_counts_features_of_all_rows_and_of_the_points_of_a_bank(fit):
    words = {"preprocessing": {"fit": fit}}
    facts = dataset("d", n_points=100)
    without, with_features = (
        plan_of({"d": replace(facts, row_bytes=n_bytes)}, {"level": grid("level")}, **words)
        for n_bytes in (0, 160)
    )
    expected = 160 * (100 + 50 if fit == "train" else 100)
    assert with_features.memory_per_worker - without.memory_per_worker == expected
    least = [
        least_memory(plan.banks, plan.batches, n_threads=3) for plan in (without, with_features)
    ]
    assert least[1] - least[0] == expected  # the tasks of a worker share them


@pytest.mark.parametrize(
    ("text", "n_bytes"), [(None, None), ("2GiB", 2**31), ("1.5 MiB", 1572864), ("3GB", 3 * 10**9)]
)
def test_words_stand_for_bytes(text, n_bytes):
    assert parse_memory(text) == n_bytes


@pytest.mark.parametrize("text", ["much", "-2GiB", "0", "16", "2 GiBs", "1e400"])
def test_other_words_are_refused(text):
    with pytest.raises(SpecError, match=r"memory: found .* expected a number of bytes such as"):
        parse_memory(text)


def planned(memory, backend="stream", names=("level",), **words):
    words = {"banks": [{"family": "xu2008", "backend": backend}]} | words
    words |= {"memory": memory} if memory else {}
    grids = {name: grid(name) for name in names}
    return plan_of({"a": dataset("a", 2000)}, grids, n_kernels=500, **words)


def test_a_limit_leaves_room_for_libraries_buffer_and_solver_of_every_thread():
    # 400 MiB of libraries, and for each thread 64 MiB of buffers and four matrices of 1000 points.
    one, two = 400 + 64 + 4 * 8e6 / 2**20, 400 + 2 * (64 + 4 * 8e6 / 2**20)
    check_memory(planned(None), 8)
    check_memory(planned(f"{one + 1:.0f}MiB"), 1)
    check_memory(planned(f"{two + 1:.0f}MiB"), 2)
    with pytest.raises(
        SpecError, match=r"at least 495 MiB, .* a buffer and one solver on 1000 points"
    ):
        check_memory(planned(f"{one - 1:.0f}MiB"), 1)
    with pytest.raises(SpecError, match=r"at least 590 MiB, .*\(threads: 2\)"):
        check_memory(planned(f"{one + 1:.0f}MiB"), 2)


def test_a_limit_leaves_room_for_a_bank_that_is_to_be_loaded():
    with pytest.raises(SpecError, match=r'a whole bank .*, or remove backend = "memory"'):
        check_memory(planned("1GiB", "memory"), 1)


@pytest.mark.parametrize(
    ("names", "able"),
    [
        (("level", "silp"), "level, silp"),
        (("level", "skm", "silp", "smo_mkl"), "level, silp"),
        (("gmkl",), ""),
    ],
)
@pytest.mark.parametrize("limit", ["480MiB", None])
def test_factors_are_proposed_to_the_methods_that_take_them(names, able, limit):
    with pytest.raises(SpecError) as refused:
        check_memory(planned(limit, names=names), 1, available=None if limit else 2**28)
    proposal = f'; {able} can take backend = "factors"' if able else ""
    assert f"or use fewer points{proposal}" in refused.value.hint
    assert ("factors" in refused.value.hint) == bool(able)


def test_the_bank_that_needs_most_decides_what_helps():
    with pytest.raises(SpecError, match="lower rank, or use fewer points"):
        check_memory(planned("480MiB", "factors"), 1)
    banks = [
        {"family": "xu2008", "name": "thin", "backend": "factors", "rank": 1},
        {"family": "xu2008", "name": "whole", "backend": "stream"},
    ]
    runs = [{"name": "level", "banks": ["thin"]}, {"name": "skm", "banks": ["whole"]}]
    words = {"banks": banks, "methods": runs}
    plan = planned("410MiB", names=("level", "skm"), **words)
    with pytest.raises(SpecError, match=r"or use fewer points\.$"):
        check_memory(plan, 1)


def test_factors_need_memory_for_one_in_the_making_and_no_matrix():
    # A factor of 100 columns on 1000 points, a buffer, and three blocks of all points.
    in_making = (3 * 100 + 200) * 1000
    least = 400 + 64 + (in_making + 3 * 1000**2 + 200 * 1000) * 8 / 2**20
    check_memory(planned(f"{least + 1:.0f}MiB", "factors"), 1)
    with pytest.raises(SpecError, match=f"at least {math.ceil(least)} MiB"):
        check_memory(planned(f"{least - 1:.0f}MiB", "factors"), 1)


def test_more_than_the_machine_has_is_refused():
    check_memory(planned(None, "memory"), 1, available=2**34)
    with pytest.raises(SpecError, match=r"memory: found 1024 MiB in this machine; .*a whole bank"):
        check_memory(planned(None, "memory"), 1, available=2**30)
    with pytest.raises(SpecError, match=r"found '64MiB'"):
        check_memory(planned("64MiB"), 1, available=2**34)


LEVEL, UNIFORM, PRIMALMKL = (METHODS[name] for name in ("level", "uniform", "primalmkl"))


def bank_of(n_points: int, **settings) -> BankPlan:
    banks = [{"family": "xu2008", "backend": "factors", **settings}]
    return plan_of({"a": dataset("a", 2 * n_points)}, {"level": grid("level")}, banks=banks).banks[
        0
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("uniform", {"C": 30.0}),
        ("level", {"C": 30.0}),
        ("silp", {"C": 3.0}),
        ("hessianmkl", {"C": 3.0}),
        ("spicymkl", {"loss": "logistic", "C": 10.0}),
        ("primalmkl", {"C": 100.0}),
    ],
)
@pytest.mark.parametrize("tol", quick([1e-2, 1e-3]))
def test_solutions_take_the_rounds_and_columns_that_are_foretold(name, params, tol, monkeypatch):
    monkeypatch.setattr(factored_kernels, "FIRST_RANK", 5)
    method, rounds = METHODS[name], []

    def solve(problem, settings):
        rounds.append(kernels.factors.factors[0].rank)
        return (yield from method.solve(problem, settings))

    kernels = begin_factors(ArraySource(GRAMS), FactorLimits())
    settings = method.params(tol=tol, **params)
    found = solve_on_factors(
        kernels, replace(method, solve=solve), Problem(Y, len(GRAMS)), settings
    )
    foretold = factor_rounds(bank_of(N), method)
    assert found.solution.converged
    assert foretold.first == rounds[0] == 5
    assert found.solution.extra["largest_rank"] <= foretold.longest == N
    assert 1 <= len(rounds) <= foretold.most
    assert foretold.usual / 2 <= len(rounds) <= 2 * foretold.usual


def test_factors_that_begin_with_all_columns_take_one_round():
    for bank in (bank_of(80), bank_of(3000, rank=100), bank_of(3000, rank=60)):
        first = min(bank.n_points, bank.spec.rank or 100)
        assert factor_rounds(bank, UNIFORM) == (first, first, 1, 1)


def test_a_limit_of_the_rank_limits_the_rounds():
    of_all, of_rank = (factor_rounds(bank_of(3000, **own)) for own in ({}, {"rank": 400}))
    assert (of_rank.longest, of_all.longest) == (400, 3000)
    assert 1 < of_rank.usual < of_all.usual
    assert of_rank.most == 1 + 4  # 100, 150, 225, 338 and 400 columns
    assert of_rank.most < of_all.most


def test_on_many_points_a_solver_goes_on_by_products_or_tries_diagonals_first():
    few, many = bank_of(MANY - 1), bank_of(MANY)
    assert factor_rounds(few, LEVEL).usual > factor_rounds(many, LEVEL).usual == 2
    assert factor_rounds(many, UNIFORM).most == factor_rounds(few, UNIFORM).most + MOST_CHANGES
    assert factor_rounds(many, PRIMALMKL) == factor_rounds(many)


TEXT = """
name = "choice"
memory = "{memory}"
[[datasets]]
name = "small"
source = "two_moons"
options = {{ n = 60 }}
[[datasets]]
name = "large"
source = "two_moons"
options = {{ n = 600 }}
[[banks]]
name = "gaussians"
{keys}
[[banks.kernels]]
function = "gaussian"
widths = [0.5, 2.0]
[[methods]]
name = "{method}"
"""
ALLOWED = 'allow = ["factors"]'


def resolved(tmp_path, memory="466MiB", keys=ALLOWED, method="level"):
    text = TEXT.format(memory=memory, keys=keys, method=method)
    spec = SweepSpec.model_validate(tomllib.loads(text))
    return spec, resolve(spec, (), tmp_path)


@pytest.mark.parametrize(
    ("memory", "keys", "expected"),
    [
        ("466MiB", ALLOWED, ["auto", "factors"]),
        ("2GiB", ALLOWED, ["auto", "auto"]),
        ("466MiB", "", ["auto", "auto"]),
        ("2GiB", 'backend = "factors"', ["factors", "factors"]),
    ],
)
def test_factors_are_chosen_by_name_where_matrices_do_not_fit(tmp_path, memory, keys, expected):
    spec, found = resolved(tmp_path, memory, keys)
    plan = make_plan(spec, found.facts, found.banks, found.grids, 1, None)
    backends = {bank.dataset: bank.spec.backend for bank in plan.banks}
    assert [backends[name] for name in ("small", "large")] == expected


def test_the_setting_that_needs_most_memory_decides():
    level = METHODS["level"]
    points = [level.params(acceleration=words) for words in ("none", "working-set")]
    grids = [MethodGrid(level, {}, tuple(some)) for some in (points, points[::-1], *zip(points))]
    both, reversed_both, *alone = (most_points_of(grid, 10**6, 2**30) for grid in grids)
    assert both == reversed_both == min(alone) < max(alone)


def test_methods_that_need_matrices_are_refused_only_where_factors_are_chosen(tmp_path):
    resolved(tmp_path, "2GiB", method="skm")
    with pytest.raises(SpecError, match=r"methods.skm: found skm on bank 'gaussians' of factors"):
        resolved(tmp_path, method="skm")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"allow": ["factors"], "backend": "stream"}, 'expected .*backend = "auto"'),
        ({"allow": ["factors"], "normalisation": "centre"}, "found allow"),
        ({"allow": ["memory"]}, "factors"),
        ({"rank": 5}, "found rank = 5"),
    ],
)
def test_what_factors_cannot_be_allowed_for_is_refused(keys, said):
    with pytest.raises(ValueError, match=said):
        BankSpec.model_validate({"kernels": [{"function": "gaussian", "widths": [1]}], **keys})
    allowed = {"kernels": [{"function": "gaussian", "widths": [1]}], "allow": ["factors"]}
    assert BankSpec.model_validate({**allowed, "rank": 5}).on_factors.backend == "factors"
