"""The warm-up compiles all that runs need, before their clocks start, once on a machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mkldist.methods.registry import METHODS, MODULES
from mkldist.planning.model import RunPlan
from mkldist.run import warm_up as module
from mkldist.run.warm_up import Specimen, specimens, warm_up
from tests.run.sweeps import plan_of

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
for number, bank in enumerate(BANKS):
    for method in sys.argv[2:]:
        if bank[2] == "factors" and METHODS[method].exact_bound is None:
            continue
        extra = ON_GRAPH if METHODS[method].needs_laplacian else ""
        text = TEXT % bank + extra + f'[[methods]]\\nname = "{method}"'
        spec = SweepSpec.model_validate(tomllib.loads(text))
        plan, data = planned(spec, folder / "x.toml", (), ConnectOptions(n_workers=1))
        place = folder / f"{method}-{number}"
        refs = bank_refs(plan, data, {b.id for b in plan.banks}, str(place / "banks"), place)
        task = BatchTask(
            refs[BankKey.of(plan.runs[0])], plan.runs, BatchSettings(),
            builds=True,
        )
        if not os.fork():
            tasks.solve_batch(task)
            print(method, bank[2], len(found) > 0, sum(found), flush=True)
            os._exit(0)
        os.wait()
"""

USUAL = ("level", "spicymkl", "lapmkl")


def compiled_in_clocks(folder: Path, *methods: str) -> list[list[str]]:
    environ = os.environ | {"MKLDIST_CACHE": str(folder / "cache")}
    ended = subprocess.run(
        [sys.executable, "-c", CLOCKED, str(folder), *methods],
        capture_output=True, text=True, check=False, timeout=550, env=environ,
    )  # fmt: skip
    assert not ended.returncode, ended.stderr
    return [line.split() for line in ended.stdout.splitlines()]


def expected(*methods: str) -> list[list[str]]:
    backends = ("memory", "mmap", "recompute", "stream")
    on_all = [[m, backend, "True", "0"] for backend in backends for m in methods]
    on_factors = [m for m in methods if METHODS[m].exact_bound is not None]
    return on_all + [[m, "factors", "True", "0"] for m in on_factors]


@pytest.mark.slow
def test_nothing_is_compiled_while_clocks_go(tmp_path):
    assert compiled_in_clocks(tmp_path, *USUAL) == expected(*USUAL)


@pytest.mark.slow
def test_nothing_is_compiled_while_clocks_go_whatever_the_method(tmp_path):
    methods = [name for name in MODULES if name not in USUAL]  # tests add others
    assert compiled_in_clocks(tmp_path, *methods) == expected(*methods)


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
