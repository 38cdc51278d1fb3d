"""Sweeps along paths, for worker.chains: optima of separate runs, in fewer passes; resuming."""

from __future__ import annotations

import pytest

from mkldist.results.journal import Journal
from mkldist.results.schema import RunState
from tests.run.sweeps import record_times, records, run_here, sweep_text

C = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0]
STRENGTHS = [3.0, 10.0, 30.0, 100.0]  # of the paper: 1 / lambda
WIDTHS = [round(0.1 * 1.15**k, 4) for k in range(20)]


def text_of(execution: str, methods: dict[str, list[float]], **changes: str) -> str:
    text = sweep_text(methods, execution=execution, fit="all", **changes)
    return text.replace("[0.1, 0.3, 1.0, 3.0]", str(WIDTHS))


def passes_of(record) -> float:
    return record.counters["passes"] + record.extra.get("partial_passes", 0.0)


@pytest.mark.slow
def test_a_path_agrees_with_separate_runs_in_fewer_passes(tmp_path, scheduler):
    methods = {"spicymkl": STRENGTHS, "level": C, "uniform": [1.0, 10.0]}
    found = {}
    for execution in ("shared", "path"):
        output = tmp_path / execution / "small"
        outcome = run_here(text_of(execution, methods), output, scheduler)
        assert outcome.counts[RunState.COMPLETE] == outcome.computed == 2 * 12
        found[execution] = {(r.method, r.params["C"], r.split): r for r in records(output).values()}
    shared, path = found["shared"], found["path"]
    assert not {r.id for r in shared.values()} & {r.id for r in path.values()}
    assert shared.keys() == path.keys()
    for place, record in path.items():
        other, slack = shared[place], 1e-9 * abs(record.objective)
        assert record.dual_objective <= other.objective + slack
        assert other.dual_objective <= record.objective + slack
        assert record.objective - record.dual_objective <= 0.01 * abs(record.objective)
    for method, first in (("level", C[0]), ("spicymkl", STRENGTHS[0])):
        further = [place for place in path if place[0] == method and place[1] != first]
        warm = sum(passes_of(path[place]) for place in further)
        assert warm < 0.6 * sum(passes_of(shared[place]) for place in further)
        assert warm <= 3 * len(further)


def test_a_path_goes_on_from_what_is_recorded(tmp_path, scheduler):
    output, text = tmp_path / "out" / "small", text_of("path", {"level": C})
    run_here(text, output, scheduler)
    before, times = records(output), record_times(output)
    gone = {r.id for r in before.values() if r.split == 0 and r.params["C"] in (10.0, 30.0, 300.0)}
    store = Journal(output / "records.journal")
    for run_id in gone:
        store.remove([run_id])
    outcome = run_here(text, output, scheduler)
    after = records(output)
    assert outcome.computed == len(gone) == 3
    assert outcome.skipped == len(before) - 3
    again = {name for name, written in record_times(output).items() if written != times[name]}
    assert {name.split(".")[0] for name in again} == gone
    for run_id, record in after.items():
        assert record.objective == pytest.approx(before[run_id].objective, rel=0.01)


@pytest.mark.parametrize("weights", ["shared", "own"])
def test_classes_have_paths_of_their_own(tmp_path, scheduler, weights):
    text = text_of("path", {"level": [1.0, 10.0]}, repeats="1")
    text = text.replace('name = "two_moons"\noptions = { n = 80, noise = 0.3 }', 'name = "iris"')
    shared = 'kernel_weights = "shared"' if weights == "shared" else ""
    output = tmp_path / "out" / "small"
    outcome = run_here(f"{text}\n{shared}", output, scheduler)
    assert outcome.counts[RunState.COMPLETE] == 2
    passes = {r.params["C"]: passes_of(r) for r in records(output).values()}
    assert passes[10.0] <= passes[1.0]
