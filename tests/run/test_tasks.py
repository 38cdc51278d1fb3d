"""Tasks done without a cluster: damage, faults, memory, locks; compilation before clocks."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

from mkldist.bank import readers
from mkldist.bank.cache import NodeFolders
from mkldist.bank.recomputed import RecomputedBank
from mkldist.errors import UnreadableError
from mkldist.fit import engine as batch
from mkldist.methods.registry import METHODS, MODULES
from mkldist.planning.model import RunPlan
from mkldist.planning.planner import make_plan
from mkldist.planning.resolved import resolve
from mkldist.results.schema import RunState
from mkldist.run import tasks
from mkldist.run import warm_up as module
from mkldist.run.cluster import ConnectOptions
from mkldist.run.record_queue import RecordSender, unpacked
from mkldist.run.shards import SHARDS, Shard
from mkldist.run.sweep_setup import bank_refs
from mkldist.run.tasks import (
    BatchReceipt,
    BatchSettings,
    BatchTask,
    BuildTask,
    build,
    exclusive_machine_lock,
    machine_lock_file,
    solve_batch,
)
from mkldist.run.warm_up import Specimen, specimens, warm_up
from mkldist.run.work_queue import BuildItem
from mkldist.solvers.base import ArrayCache
from mkldist.spec.model import SweepSpec
from tests.bank.stores import damage
from tests.run.sweeps import (
    end,
    many_kernels,
    misbehaving_methods,
    plan_of,
    record_times,
    records,
    running_process,
    start_process,
    sweep_text,
)

ON_A_GRAPH = """
name = "graph"
[[datasets]]
name = "two_moons"
options = { n = 60, noise = 0.2 }
[splits]
kind = "semi-supervised"
labelled_per_class = 6
repeats = 1
[graph]
neighbours = 6
[selection]
folds = 2
[[banks]]
normalisation = "trace"
[[banks.kernels]]
function = "gaussian"
widths = [0.3, 1.0, 3.0]
[[methods]]
name = "glks"
gamma_a = [0.01, 0.1]
gamma_i = [0.1, 1]
[[methods]]
name = "lapmkl"
gamma_a = 0.1
gamma_i = [0.1, 1]
"""


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BatchTask:
    """Two runs on a complete bank of one split."""
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(readers, "PAUSES", (0.0, 0.0))
    return task_of(sweep_text({"uniform": [1.0, 10.0]}, repeats=1, backend="mmap"), tmp_path)


def task_of(text: str, tmp_path: Path) -> BatchTask:
    """Return all runs of a sweep of one bank, which is complete."""
    spec = SweepSpec.model_validate(tomllib.loads(text))
    resolved = resolve(spec, (), tmp_path)
    plan = make_plan(spec, resolved.facts, resolved.banks, resolved.grids, 1, None)
    root = str(tmp_path / "banks")
    [ref] = bank_refs(plan, resolved, {plan.banks[0].id}, root, tmp_path / "snapshots").values()
    build(BuildTask(ref, tuple(ref.store().numbers)))
    return BatchTask(ref, plan.runs, BatchSettings())


def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return a list that takes the names of tasks and the stages that they tell."""
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(
        RecordSender, "begin", lambda sender, stage: found.append((sender._task, stage))
    )
    return found


def states(receipt: BatchReceipt) -> list[RunState]:
    return [unpacked(content).state for content in receipt.records]


def with_backend(task: BatchTask, backend: str) -> BatchTask:
    return replace(task, ref=replace(task.ref, plan=replace(task.ref.plan, backend=backend)))


class Disk:
    """A disk whose next reads of matrices fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
        self.failures = failures
        real = Path.open

        def read(path, *given, **named):
            if self.failures and "/c/" in str(path):
                self.failures -= 1
                raise OSError(errno.ESTALE, "Stale file handle")
            return real(path, *given, **named)

        monkeypatch.setattr(Path, "open", read)


@pytest.mark.parametrize(
    ("backend", "builds", "stages"),
    [
        ("memory", False, ["compiling", "reading banks", "solving"]),
        ("memory", True, ["compiling", "building banks", "solving"]),
        ("recompute", False, ["compiling", "reading banks", "solving"]),
        ("sharded", False, ["compiling", "building banks", "solving"]),
    ],
)
def test_a_batch_says_what_it_does_and_compiles_before_it_builds_or_reads_a_bank(
    task, monkeypatch, backend, builds, stages
):
    events = told(monkeypatch)
    solve_batch(with_backend(replace(task, builds=builds), backend))
    assert events == [(task.runs[0].id, stage) for stage in stages]


@pytest.mark.parametrize(("execution", "turns"), [("isolated", 2), ("shared", 0), ("path", 0)])
def test_tasks_of_isolated_sweeps_wait_for_their_turn_and_say_so(
    task, monkeypatch, execution, turns
):
    events = told(monkeypatch)
    begun: list[int] = []

    @contextmanager
    def turn(on_wait):
        on_wait()
        begun.append(len(events))
        yield False

    monkeypatch.setattr(tasks, "exclusive_machine_lock", turn)
    settings = replace(task.settings, execution=execution)
    build(BuildTask(task.ref, (0,), settings))
    assert [stage for _, stage in events] == ["waiting for another isolated run on its machine",
                                              "building banks"][:turns]  # fmt: skip
    assert {key for key, _ in events} == {BuildItem(task.ref.plan.id, (0,)).key for _ in events}
    events.clear()
    receipt = solve_batch(replace(task, settings=settings))
    stages = [stage for _, stage in events]
    assert stages == ["waiting for another isolated run on its machine", "compiling",
                      "reading banks", "solving"][0 if turns else 1 :]  # fmt: skip
    assert len(begun) == turns
    assert receipt.unlocked == bool(turns)
    assert len(receipt.records) == 2


def test_a_batch_on_a_sharded_bank_takes_no_turn_since_it_waits_for_other_workers(
    task, monkeypatch
):
    monkeypatch.setattr(tasks, "exclusive_machine_lock", lambda _: pytest.fail("it takes a turn"))
    isolated = replace(task, settings=replace(task.settings, execution="isolated"))
    receipt = solve_batch(with_backend(isolated, "sharded"))
    assert len(receipt.records) == 2
    assert not receipt.unlocked


@pytest.mark.parametrize("backend", ["memory", "mmap", "stream"])
def test_a_read_that_fails_once_is_tried_again(task, monkeypatch, backend):
    disk = Disk(monkeypatch, failures=1)
    receipt = solve_batch(with_backend(task, backend))
    assert disk.failures == 0
    assert not receipt.damaged
    assert len(receipt.records) == 2


@pytest.mark.parametrize("backend", ["memory", "mmap", "stream"])
def test_a_store_that_cannot_be_read_is_not_a_damaged_one(task, monkeypatch, backend):
    disk = Disk(monkeypatch, failures=10**9)
    with pytest.raises(UnreadableError, match="Stale file handle") as caught:
        solve_batch(with_backend(task, backend))
    assert f"remove {task.ref.root}" in caught.value.hint
    assert not task.ref.store().missing()
    disk.failures = 0
    assert len(solve_batch(with_backend(task, backend)).records) == 2


def test_a_forbidden_read_is_not_called_a_forbidden_write(task, monkeypatch):
    def forbidden(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/data/points")

    monkeypatch.setattr(tasks, "bank_inputs", forbidden)
    with pytest.raises(PermissionError):
        solve_batch(task)


def test_a_node_cache_that_cannot_be_written_costs_time_only(task, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "file" / "cache"))
    receipt = solve_batch(task)
    assert receipt.streamed
    assert len(receipt.records) == 2


@pytest.mark.parametrize("fits", [True, False])
def test_a_sharded_bank_without_a_cluster_is_computed_here(task, monkeypatch, fits):
    expected = [*map(unpacked, solve_batch(with_backend(task, "memory")).records)]
    monkeypatch.setattr(tasks, "bank_bytes", lambda _: 10**9 * fits)
    monkeypatch.delattr(tasks, "RecomputedBank" if fits else "computed")
    found = [*map(unpacked, solve_batch(with_backend(task, "sharded")).records)]
    assert [one.objective for one in found] == pytest.approx([one.objective for one in expected])


def test_a_batch_on_another_bank_takes_the_memory_of_shards_that_its_process_keeps(task):
    plan = task.ref.plan
    SHARDS.bank(Shard(task.ref, slice(0, plan.n_kernels), plan.n_bytes))
    assert SHARDS.n_bytes == plan.n_bytes
    assert states(solve_batch(task)) == [RunState.COMPLETE] * 2
    assert SHARDS.n_bytes == 0


def test_a_damaged_block_is_removed(task):
    store = task.ref.store()
    damage(store, store.shape.blocks[0])
    assert "fails its checksum" in solve_batch(with_backend(task, "memory")).damaged
    assert task.ref.store().missing() == [0]


def test_a_block_that_was_mended_meanwhile_stays(task):
    store = task.ref.store()
    error = readers.DamagedBlocksError("bank", "block 0 fails its checksum", blocks=(0,))
    tasks._remove_damaged(store, error)
    assert not task.ref.store().missing()


@pytest.mark.parametrize(("solvers", "together"), [(2.5, [2]), (1.5, [1, 1])])
def test_only_solvers_that_fit_together_are_at_work_at_once(task, monkeypatch, solvers, together):
    at_once, drive = [], batch.drive

    def counted(bank, jobs, on_done):
        at_once.append(len(jobs))
        drive(bank, jobs, on_done)

    monkeypatch.setattr(batch, "drive", counted)
    plan = task.ref.plan
    memory = task.runs[0].memory(plan.n_points, plan.n_kernels)
    limit = int(4 * solvers * memory.needed)
    limited = replace(task, settings=replace(task.settings, memory_limit=limit))
    assert len(solve_batch(limited).records) == 2
    assert at_once == together


@pytest.mark.parametrize(
    ("execution", "n_at_once", "threads"),
    [("shared", 1, 7), ("path", 3, 2), ("shared", 20, 1), ("isolated", 1, 1)],
)
def test_recomputed_kernels_take_the_processors_that_other_batches_leave(
    task, monkeypatch, execution, n_at_once, threads
):
    banks = []

    class Noted(RecomputedBank):
        def __init__(self, *args):
            super().__init__(*args)
            banks.append(self)

    monkeypatch.setattr("mkldist.run.tasks.n_processors", lambda: 7)
    monkeypatch.setattr(tasks, "RecomputedBank", Noted)
    settings = replace(task.settings, execution=execution)
    ref = with_backend(task, "recompute").ref
    receipt = solve_batch(replace(task, ref=ref, settings=settings, n_at_once=n_at_once))
    assert [bank.threads for bank in banks] == [threads]
    assert len(receipt.records) == 2


@pytest.mark.parametrize("place", ["built", "snapshots"])
def test_what_a_batch_uses_of_this_machine_stays(task, monkeypatch, place):
    fetched = place == "snapshots"
    if fetched:
        given = Path(task.ref.snapshot)
        shutil.copytree(given, NodeFolders(place).root / given.name)
    ref = replace(task.ref, root="", fetched_from="prefix" * fetched)
    left: list[int] = []
    real = tasks.solve_runs

    def meanwhile(*given):
        NodeFolders(place, budget_bytes=0).make_room(1, keep="another")
        left.append(len([*NodeFolders(place).root.glob("[!.]*/*")]))
        real(*given)

    monkeypatch.setattr(tasks, "solve_runs", meanwhile)
    receipt = solve_batch(with_backend(replace(task, ref=ref, builds=True), "stream"))
    assert left[0] > 0
    assert states(receipt) == [RunState.COMPLETE] * 2
    NodeFolders(place, budget_bytes=0).make_room(1, keep="another")
    assert [*NodeFolders(place).root.glob("[!.]*")] == []


def test_memory_of_a_bank_waits_for_no_task_that_loads_none(task):
    own = replace(task, settings=replace(task.settings, own_workers=True))
    buffer = tasks._buffer_of_thread()
    for backend in ("mmap", "recompute"):
        solve_batch(with_backend(own, "memory"))
        assert buffer._memory.nbytes
        solve_batch(with_backend(own, backend))
        assert not buffer._memory.nbytes


def test_a_bank_that_is_too_large_for_a_worker_is_streamed(task):
    plan = replace(task.ref.plan, backend="memory", n_bytes=1000)
    asked = replace(plan, spec=plan.spec.model_copy(update={"backend": "memory"}))
    chosen = replace(plan, spec=plan.spec.model_copy(update={"backend": "auto"}))
    assert tasks._backend(chosen, None) == tasks._backend(chosen, 2000) == "memory"
    assert tasks._backend(chosen, 1000) == "stream"
    assert tasks._backend(asked, 1000) == "memory"


def test_solvers_on_a_graph_share_the_factors_of_their_kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path / "cache"))
    asked: list[str] = []
    made: list[str] = []

    class Watched(ArrayCache):
        def get(self, key, make):
            asked.append(key[0])
            return super().get(key, lambda: made.append(key[0]) or make())

    monkeypatch.setattr(batch, "ArrayCache", Watched)
    task = task_of(ON_A_GRAPH, tmp_path)
    assert states(solve_batch(task)) == [RunState.COMPLETE] * 6
    # Six settings of two methods, each on all labels and without either of two folds.
    assert asked.count("factor") >= 6 * 3 * task.ref.plan.n_kernels
    assert made.count("factor") == made.count("system") == task.ref.plan.n_kernels
    # A root has weights of its own; both methods have two of these in common.
    assert made.count("root") == 4 * task.ref.plan.n_kernels


HOLDER = """
from mkldist.run.tasks import exclusive_machine_lock

with exclusive_machine_lock(lambda: print("waits", flush=True)) as is_alone:
    print("has it" if is_alone else "no locks", flush=True)
    input()
"""


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    """Another process, which has the turn."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "has it\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("end", ["ends", "is killed"])
def test_a_process_waits_until_the_one_that_has_the_turn_ends(holder, end):
    waits, got = threading.Event(), list[bool]()

    def take() -> None:
        with tasks.exclusive_machine_lock(waits.set) as is_alone:
            got.append(is_alone)

    thread = threading.Thread(target=take)
    thread.start()
    assert waits.wait(60)
    assert got == []
    assert holder.poll() is None
    if end == "ends":
        holder.communicate("\n")
    else:
        holder.kill()
    thread.join(60)
    assert got == [True]


@pytest.mark.usefixtures("cache")
def test_a_turn_that_nobody_has_is_not_waited_for_and_given_back_after_an_error():
    for _ in range(2):
        with (
            suppress(ArithmeticError),
            tasks.exclusive_machine_lock(lambda: pytest.fail("it waits")) as is_alone,
        ):
            assert is_alone
            with pytest.raises(Timeout), FileLock(machine_lock_file(), timeout=0.0):
                pass
            raise ArithmeticError("of the task")


@pytest.mark.usefixtures("cache")
def test_machines_that_share_a_cache_have_turns_of_their_own(monkeypatch):
    files = set()
    for number in range(2):
        monkeypatch.setattr(tasks, "machine_id", lambda n=number: f"machine{n}")
        files.add(machine_lock_file())
    assert len(files) == 2


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("refusal", ["no locks", "no folder"])
def test_where_there_are_no_locks_a_task_goes_on_and_knows(cache, monkeypatch, refusal):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    if refusal == "no locks":
        monkeypatch.setattr(FileLock, "acquire", refuse)
    else:
        cache.write_text("a file")
    with tasks.exclusive_machine_lock(lambda: pytest.fail("it waits")) as is_alone:
        assert not is_alone


TEXT = sweep_text({"slow": [1.0, 2.0, 3.0]}, execution="isolated")


@pytest.mark.usefixtures("cache")
@pytest.mark.slow
def test_runs_of_two_isolated_sweeps_do_not_overlap(tmp_path):
    outputs = [tmp_path / "one", tmp_path / "two"]
    with ExitStack() as stack:
        processes = [stack.enter_context(running_process(TEXT, output)) for output in outputs]
        for process in processes:
            said, _ = process.communicate(timeout=600)
            assert process.returncode == 0, said
    spans = []
    for number, output in enumerate(outputs):
        ends = {name.split(".")[0]: at / 1e9 for name, at in record_times(output).items()}
        walls = {run: one.times["wall_seconds"] for run, one in records(output).items()}
        spans += [(ends[run] - walls[run], ends[run], number) for run in walls]
    assert len(spans) == 12
    spans.sort()
    assert not sum(later[0] < earlier[1] for earlier, later in pairwise(spans))


@pytest.mark.usefixtures("cache")
@pytest.mark.slow
def test_a_sweep_that_waits_for_its_turn_says_so_and_then_does_its_runs(tmp_path):
    output = tmp_path / "out"
    with ExitStack() as turn, running_process(TEXT, output) as process:
        assert turn.enter_context(exclusive_machine_lock(lambda: None))
        assert process.stdout is not None
        said = next(line for line in process.stdout if "waiting for another" in line)
        assert not record_times(output)
        turn.close()
        process.communicate(timeout=600)
    assert "waiting for another isolated run on its machine: " in said
    assert "0 of 6 runs" in said
    assert process.returncode == 0
    assert len(record_times(output)) == 6


@pytest.mark.usefixtures("cache")
@pytest.mark.slow
def test_isolated_sweeps_on_the_same_workers_end_though_one_has_a_sharded_bank(tmp_path):
    """A worker whose thread waits for its turn does no work on its shard."""
    sharded = many_kernels({"slow": [1.0, 2.0, 3.0]}, backend="sharded", execution="isolated")
    with (
        misbehaving_methods(),
        ConnectOptions(n_workers=2).connect() as client,
        ExitStack() as ends,
    ):
        address = client.scheduler_info()["address"]
        processes = []
        for name, text in {"sharded": sharded, "memory": TEXT}.items():
            processes.append(start_process(text, tmp_path / name, "--scheduler", address))
            ends.callback(end, ends.enter_context(processes[-1]))
        for process in processes:
            said, _ = process.communicate(timeout=300)
            assert process.returncode == 0, said
    assert [len(record_times(tmp_path / name)) for name in ("sharded", "memory")] == [6, 6]


# The batches of a sweep, each in a process of its own that is forked after the imports.  Machine
# code that a process has not loaded before is compiled or read from disk; both take time.
CLOCKED = """
import os, sys, tempfile, tomllib
from pathlib import Path
import mkldist.core.compiled
from mkldist.core.compiled import CompiledFunction
from mkldist.methods.registry import METHODS
from mkldist.run.sweep_setup import BankKey, bank_refs
from mkldist.run.cluster import ConnectOptions
from mkldist.run.sweep_setup import planned
from mkldist.solvers import lockstep
from mkldist.run import tasks
from mkldist.spec.model import SweepSpec
from mkldist.run.tasks import BatchSettings
from mkldist.run.tasks import BatchTask

TEXT = '''
name = "clocked"
[[datasets]]
name = "two_moons"
options = { n = 100, noise = 0.3 }
[preprocessing]
fit = "%s"
[[banks]]
normalisation = %s
backend = "%s"
dtype = "%s"
[[banks.kernels]]
function = "gaussian"
widths = { start = 0.1, stop = 3.0, num = %d, scale = "log" }
features = ["all", "each"]
'''
ON_GRAPH = '''
[splits]
kind = "semi-supervised"
labelled_per_class = 10
[graph]
neighbours = 6
'''
BANKS = [  # the first has many more kernels than a working set
    ("train", '"trace"', "memory", "float64", 60),
    ("all", '["centre", "variance"]', "mmap", "float32", 4),
    ("train", '"none"', "recompute", "auto", 4),
    ("train", '"none"', "stream", "float32", 4),
    ("train", '"none"', "factors", "auto", 4),
]


def loaded():
    return sum(
        len(value.signatures)
        for name, module in list(sys.modules.items()) if name.startswith("mkldist.")
        for value in vars(module).values() if isinstance(value, CompiledFunction)
    )


def watched(function):
    def call(*arguments):
        before = loaded()
        answer = function(*arguments)
        found.append(loaded() - before)
        return answer
    return call


def forgetting_the_warm_up(solve_runs):
    def call(*arguments):
        assert loaded()
        found.clear()
        solve_runs(*arguments)
    return call


mkldist.core.compiled.SECONDS_IN_PYTHON = 0.0
found = []
tasks.solve_runs = forgetting_the_warm_up(tasks.solve_runs)
lockstep._Runner._advance_solver = watched(lockstep._Runner._advance_solver)
lockstep.answer_views = watched(lockstep.answer_views)
folder = Path(sys.argv[1])
for number, method in enumerate(sys.argv[2:]):
    # The last bank is of factors, on which a method without an exact bound solves nothing.
    bank = BANKS[number % (len(BANKS) - (METHODS[method].exact_bound is None))]
    extra = ON_GRAPH if METHODS[method].needs_laplacian else ""
    text = TEXT % bank + extra + f'[[methods]]\\nname = "{method}"'
    spec = SweepSpec.model_validate(tomllib.loads(text))
    plan, data = planned(spec, folder / "x.toml", (), ConnectOptions(n_workers=1))
    refs = bank_refs(
        plan, data, {b.id for b in plan.banks}, str(folder / method / "banks"), folder / method
    )
    task = BatchTask(refs[BankKey.of(plan.runs[0])], plan.runs, BatchSettings(), builds=True)
    if not os.fork():
        tasks.solve_batch(task)
        print(method, bank[2], len(found) > 0, sum(found), flush=True)
        os._exit(0)
    os.wait()
"""


def compiled_in_clocks(folder: Path, *methods: str) -> list[list[str]]:
    """Return method, backend, whether clocks went, and what was compiled meanwhile, by batch."""
    environ = os.environ | {"MKLDIST_CACHE": str(folder / "cache")}
    ended = subprocess.run(
        [sys.executable, "-c", CLOCKED, str(folder), *methods],
        capture_output=True, text=True, check=False, timeout=550, env=environ,
    )  # fmt: skip
    assert not ended.returncode, ended.stderr
    return [line.split() for line in ended.stdout.splitlines()]


@pytest.mark.slow
def test_nothing_is_compiled_while_clocks_go(tmp_path):
    """Each method on one kind of bank, by turns."""
    found = compiled_in_clocks(tmp_path, *MODULES)  # without those that tests add
    assert sorted(name for name, *_ in found) == sorted(MODULES)
    assert {(clocked, compiled) for *_, clocked, compiled in found} == {("True", "0")}


SPECIMEN = Specimen("uniform", (), "float64", ("trace",), False, False)


TWO_METHODS = """
name = "specimens"
[[datasets]]
name = "two_moons"
[[banks]]
[[banks.kernels]]
function = "linear"
[[methods]]
name = "level"
C = [1, 2, 3]
[[methods]]
name = "spicymkl"
loss = ["hinge", "logistic"]
C = [0.1, 0.2]
"""


@pytest.fixture
def plans():
    plan = plan_of(TWO_METHODS)
    runs = sorted(plan.runs, key=lambda run: (run.method, str(run.params.get("loss"))))
    return plan.banks[0], runs


def test_runs_that_differ_in_numbers_have_one_specimen(plans):
    bank, runs = plans
    found = specimens(runs, bank)
    assert [specimen.method for specimen in found] == ["level", "spicymkl", "spicymkl"]
    assert [params.get("loss") for params in found.values()] == [None, "hinge", "logistic"]


def test_methods_from_elsewhere_are_left_alone(plans, monkeypatch):
    bank, _ = plans
    elsewhere = METHODS["uniform"]
    monkeypatch.setitem(METHODS, "elsewhere", type(elsewhere)(**{
        **vars(elsewhere), "name": "elsewhere", "solve": lambda problem, params: iter(()),
    }))  # fmt: skip
    run = RunPlan("r", "d", bank.id, "b", 0, "elsewhere", "elsewhere", {})
    assert specimens([run], bank) == {}


def test_a_specimen_is_solved_once_and_its_error_is_left_to_the_run(tmp_path, monkeypatch):
    solved = []

    def failing(specimen, params):
        solved.append(specimen)
        raise ArithmeticError

    monkeypatch.setattr(module, "_warm", set())
    monkeypatch.setattr(module, "solve_specimen", failing)
    monkeypatch.setenv("MKLDIST_CACHE", str(tmp_path))
    warm_up({SPECIMEN: {}})
    warm_up({SPECIMEN: {}})
    assert solved == [SPECIMEN]


# Compiles one function; the number of the function's files on disk is printed.
COMPILED = """
import os, signal, sys
from numba.core import event
from doubling import twice

if "kill" in sys.argv:
    replace, left = os.replace, [int(sys.argv[2])]

    def killing(source, target):
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        replace(source, target)

    os.replace = killing
with event.install_recorder("numba:compile") as recorder:
    assert twice(21) == 42
print(len(recorder.buffer), os.path.dirname(twice.stats.cache_path))
"""
DOUBLING = """
from mkldist.core.compiled import compiled

@compiled
def twice(x):
    return 2 * x
"""


@pytest.fixture
def call_twice(tmp_path):
    """Return a function that calls a compiled function in a new process; it returns what is said.

    The folder of the module is one that machine code cannot be written to.
    """
    (tmp_path / "doubling.py").write_text(DOUBLING)
    (tmp_path / "__pycache__").write_text("a file, so that no folder of this name can be made")
    environ = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environ |= {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", COMPILED, *arguments],
            capture_output=True, text=True, check=False, env=environ,
        )  # fmt: skip

    return call


@pytest.mark.slow
def test_compiled_code_goes_to_the_users_cache_where_the_package_is_read_only(tmp_path, call_twice):
    compilations, folder = call_twice().stdout.split()
    assert int(compilations) > 0
    assert Path(folder).is_relative_to(tmp_path / "cache")
    assert call_twice().stdout.split() == ["0", folder]


@pytest.mark.slow
@pytest.mark.parametrize("files_before", ["0", "1"])
def test_a_process_that_is_killed_while_it_writes_compiled_code_spoils_nothing(
    call_twice, files_before
):
    assert call_twice("kill", files_before).returncode == -signal.SIGKILL
    after = call_twice()
    assert after.returncode == 0, after.stderr
    assert int(after.stdout.split()[0]) > 0
    assert int(call_twice().stdout.split()[0]) == 0
