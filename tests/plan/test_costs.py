"""What a plan says it costs: bytes, memory of a worker, passes."""

from __future__ import annotations

from dataclasses import replace

from mkldist.gram.layout import TileLayout
from mkldist.memory import live_solvers, row_cache_bytes, solver_bytes
from mkldist.plan.costs import BUFFER_BYTES, FURTHER_PASSES, least_memory
from mkldist.spec.graph import GraphTable
from tests.plan.plans import dataset, grid, plan_of

PLAIN = [{"family": "xu2008", "normalisation": "none"}]


def test_bytes_are_those_of_the_upper_tiles():
    plan = plan_of({"a": dataset("a", n_points=400)}, {"level": grid("level", 1)}, n_kernels=7)
    assert [bank.n_points for bank in plan.banks] == [200] * 3
    assert plan.bank_bytes == 3 * 7 * TileLayout.for_points(200).n_entries * 8
    assert plan.bank_bytes < 0.6 * 3 * 7 * 200**2 * 8


def test_banks_that_differ_in_normalisation_alone_are_counted_once():
    banks = [
        {"name": "plain", "family": "xu2008", "normalisation": "none"},
        {"name": "scaled", "family": "xu2008", "normalisation": "trace"},
    ]
    plan = plan_of({"a": dataset("a")}, {"level": grid("level", 1)}, banks=banks)
    assert len(plan.banks) == 2 * len({bank.id for bank in plan.banks}) == 6
    assert 2 * plan.bank_bytes == sum(bank.n_bytes for bank in plan.banks)


def test_shared_runs_cost_the_passes_of_one():
    data = {"a": dataset("a")}
    one, eight = {"level": grid("level", 1)}, {"level": grid("level", *range(1, 9))}
    passes = plan_of(data, one).estimated_passes
    assert plan_of(data, eight).estimated_passes == passes
    assert plan_of(data, eight, execution="isolated").estimated_passes > 7 * passes
    assert 0 < plan_of(data, {"uniform": grid("uniform", 1)}).estimated_passes < passes


def test_a_path_keeps_one_solver_alive_and_takes_few_passes_a_point():
    data = {"a": dataset("a", 2000)}
    eight = {"level": grid("level", *range(1, 9))}
    shared, path = plan_of(data, eight), plan_of(data, eight, execution="path")
    further = path.estimated_passes - shared.estimated_passes
    assert further == 7 * FURTHER_PASSES * len(path.batches)
    one = plan_of(data, {"level": grid("level", 1)})
    assert path.memory_per_worker == one.memory_per_worker < shared.memory_per_worker


def test_methods_of_few_passes_are_planned_with_as_many():
    data = {"a": dataset("a")}
    passes = {
        name: plan_of(data, {name: grid(name, 1)}, n_kernels=10, banks=PLAIN).estimated_passes // 3
        for name in ("majority", "best_single", "svm", "easymkl", "alignf")
    }
    assert passes == {"majority": 0, "best_single": 1, "svm": 1, "easymkl": 3, "alignf": 6}


def test_fitting_a_normalisation_costs_a_pass_per_batch():
    data, grids = {"a": dataset("a")}, {"level": grid("level", 1)}

    def passes(*normalisation):
        bank = {"family": "xu2008", "normalisation": normalisation}
        return plan_of(data, grids, banks=[bank]).estimated_passes

    assert passes("variance") == passes("cosine", "centre", "trace") == passes("none") + 3
    assert passes("cosine") == passes("trace") == passes("trace", "centre") == passes("none")


def test_memory_counts_the_bank_and_the_living_solvers():
    data, grids = {"a": dataset("a", 2000)}, {"level": grid("level", *range(1, 9))}
    plan = plan_of(data, grids)
    bank, matrix = plan.banks[0].n_bytes, 8 * 1000**2
    assert plan.banks[0].backend == "memory"
    assert plan.memory_per_worker > bank + 8 * matrix
    isolated = plan_of(data, grids, execution="isolated")
    assert isolated.memory_per_worker < plan.memory_per_worker - 7 * matrix
    tight = plan_of(data, grids, memory_limit=2**28)
    assert tight.banks[0].backend == "stream"
    assert tight.memory_per_worker < plan.memory_per_worker - bank / 2


def test_memory_of_a_streamed_bank_counts_the_kernels_that_are_kept():
    data, grids = {"a": dataset("a", 2000)}, {"level": grid("level", 1)}
    bank = [{"family": "xu2008", "backend": "stream"}]
    large = plan_of(data, grids, banks=bank, n_kernels=500)
    mapped = plan_of(data, grids, banks=[bank[0] | {"backend": "mmap"}], n_kernels=500)
    assert large.memory_per_worker - mapped.memory_per_worker == row_cache_bytes(None) == 2**28
    limit = 2**28
    tight = plan_of(data, grids, banks=bank, n_kernels=500, memory_limit=limit)
    assert large.memory_per_worker - tight.memory_per_worker == 2**28 - row_cache_bytes(limit)


def test_solvers_that_live_at_once_fit_their_share():
    for n_points in (10, 3000, 100_000):
        for limit in (None, 2**30, 2**34):
            share = 2**30 if limit is None else limit // 4
            n = live_solvers(n_points, limit)
            assert n == 1 or n * solver_bytes(n_points) <= share < (n + 1) * solver_bytes(n_points)


def test_least_memory_is_a_solver_and_a_buffer_or_the_whole_bank_per_task():
    data, grids = {"a": dataset("a", 2000)}, {"level": grid("level", 1)}
    plan = plan_of(data, grids, n_kernels=500)
    one, two = (least_memory(plan.banks, n) for n in (1, 2))
    assert two - one == BUFFER_BYTES + solver_bytes(1000)
    loaded = plan_of(data, grids, n_kernels=500, banks=[{**PLAIN[0], "backend": "memory"}])
    n_bytes = loaded.banks[0].n_bytes
    assert least_memory(loaded.banks, 1) == one + n_bytes - BUFFER_BYTES


def test_memory_counts_the_products_with_the_laplacian():
    data = dataset("a", 2000)
    grids = {"lapsvm": replace(grid("lapsvm", 1), needs_laplacian=True)}
    matrix = 8 * 1000**2

    def memory(**words):
        facts = replace(data, graph=GraphTable(**words))
        return plan_of({"a": facts}, grids).memory_per_worker

    plain = plan_of({"a": data}, {"lapsvm": grid("lapsvm", 1)}).memory_per_worker
    assert memory() == plain + 5 * matrix
    assert memory(power=2) == memory(distance="tangent") == plain + 8 * matrix
