"""Compiled functions: Python's results, machine code on disk, and no hold on the GIL."""

import ast
import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import numba
import numpy as np
import pytest

import mkldist
import mkldist.core.compiled
from mkldist.core.compiled import compiled

MODULE = """
from mkldist.core.compiled import compiled

@compiled
def twice(x):
    return 2 * x

@compiled
def four_times(x):
    return twice(twice(x))

@compiled(inner=True)
def tripled(x):
    return 3 * x

@compiled(fastmath={"contract"}, inner=True)
def squared_more(x):
    return x * x + x

@compiled
def of_inner(x):
    return tripled(squared_more(x))

@compiled(python_first=True)
def halved(x):
    return 0.5 * x

@compiled(python_first=True)
def summed(values):
    return values[0] + values[0], values[0] > 0.0
"""
SIGNATURES = """
import sys
import warnings
import numpy as np
import mkldist
import mkldist.core.compiled
from mkldist.core.compiled import CompiledFunction
from mkldist.bank.bank import TileLayout
from mkldist.bank.sources import FeatureSource
from tests.kernels.made_up import bank

warnings.simplefilter("ignore")  # runs stop early
mkldist.core.compiled.SECONDS_IN_PYTHON = 0.0
draw = np.random.default_rng(0)
x = draw.normal(size=(40, 7))
y = np.where(x[:, 0] + x[:, 1] ** 2 > 0.5, 1.0, -1.0)
layout = TileLayout.for_points(len(x))
for cosine in (False, True):
    source = FeatureSource(x, bank(), cosine)
    whole = slice(0, source.n_kernels), slice(0, layout.n_tiles)
    for kernels, tiles in (whole, (slice(2, 3), slice(1, 4))):
        shape = (kernels.stop - kernels.start, tiles.stop - tiles.start, layout.tile, layout.tile)
        source.fill(kernels, tiles, layout, np.empty(shape))
grams = np.array([np.outer(column, column) + np.eye(len(x)) for column in x.T])
laplacian = len(x) * np.eye(len(x)) - 1.0
for method, more in (
    ("level", {}), ("simplemkl", {}), ("skm", {}), ("smo_mkl", {}), ("best_single", {}),
    ("primalmkl", {}), ("primalmkl", {"norm": 1.5}), ("lapmkl", {"laplacian": laplacian}),
    ("spicymkl", {}), ("spicymkl", {"loss": "hinge"}), ("spicymkl", {"loss": "epsilon"}),
    ("elastmkl", {"loss": "squared"}),
):
    mkldist.solve(method, grams, y, max_iter=20, **more)
used = {
    f"{name}.{key}": len(value.signatures)
    for name, module in list(sys.modules.items()) if name.startswith("mkldist.")
    for key, value in vars(module).items()
    if isinstance(value, CompiledFunction) and value.signatures
}
for name in ("kernels.loops._fill", "bank.products._add_products", "bank.bank._unpack",
             "methods.smooth_dual._update_pairs", "methods.block_norm_losses._write_prox"):
    assert f"mkldist.{name}" in used, (name, used)
several = {name: count for name, count in used.items() if count > 1}
assert not several, several
"""
MOST_TURNS = 4_000_000_000
WITHOUT_JIT = """
import sys
import numpy as np
import mkldist
from mkldist.core.compiled import CompiledFunction, jit_is_disabled
from mkldist.kernels import Gaussian
from tests.methods import instances
from tests.methods.references.recorded import optimum_of

assert jit_is_disabled()
instance = instances.balanced()
found = mkldist.solve("level", instance.grams, instance.y, C=instance.C, tol=1e-8)
print(found.objective, found.dual_objective, optimum_of("level", instances.balanced))
x = np.random.default_rng(0).normal(size=(24, 3))
y = np.where(x[:, 0] + x[:, 1] > 0.0, 1, -1)
bank = mkldist.KernelBank(x, [Gaussian([0.5, 2.0])], normalisation="none")
squared = ((x[:, None] - x) ** 2).sum(axis=2)
grams = np.array([np.exp(-squared / (2.0 * width**2)) for width in (0.5, 2.0)])
print(*(mkldist.solve("uniform", one, y, tol=1e-9).objective for one in (bank, grams)))
model = mkldist.MKLClassifier(kernels=[Gaussian([0.5, 2.0])], C=100.0).fit(x, y)
print((model.predict(x) != y).sum())
called = [value for name, module in list(sys.modules.items()) if name.startswith("mkldist.")
          for value in vars(module).values() if isinstance(value, CompiledFunction)]
print(sum(one._form is not None for one in called))
"""


def compensated(values: np.ndarray) -> float:
    """Return Kahan's sum, whose correction a compiler may not simplify away."""
    total, lost = 0.0, 0.0
    for value in values:
        term = value - lost
        following = total + term
        lost = (following - total) - term
        total = following
    return total


def added(values: np.ndarray) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


def loaded(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("doubling", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@compiled
def wait_for(flags: np.ndarray, watched: int, counted: int, most: int) -> bool:
    """Wait until another thread sets a flag; give up after `most` turns."""
    for _ in range(most):
        flags[counted] += 1
        if flags[watched] != 0:
            return True
    return False


def test_sums_are_rounded_as_in_python():
    values, total = np.random.default_rng(0).lognormal(0.0, 20.0, 500), compiled(compensated)
    assert total(values) == compensated(values)
    assert total.signatures


def test_reordered_sums_are_still_sums():
    values = np.arange(1.0, 101.0)
    assert compiled(fastmath=True)(added)(values) == pytest.approx(5050.0)


@pytest.fixture
def file(tmp_path, compiled_folder):
    """Return a module of compiled functions, whose machine code goes to an empty folder."""
    path = tmp_path / "doubling.py"
    path.write_text(MODULE)
    return path


@pytest.mark.slow
def test_numba_is_imported_by_the_first_call(file):
    script = """
import sys, doubling, mkldist.core.compiled
mkldist.core.compiled.SECONDS_IN_PYTHON = 0.0
assert doubling.twice.__name__ == "twice" and not hasattr(doubling.twice, "__set_name__")
assert "numba" not in sys.modules
assert doubling.four_times(21) == 84
assert "numba" in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=file.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_compiled_functions_call_each_other_as_machine_code(file):
    module = loaded(file)
    assert module.four_times(21) == 84
    assert module.four_times.nopython_signatures == [numba.int64(numba.int64)]
    assert module.twice.nopython_signatures == [numba.int64(numba.int64)]


def test_inner_functions_are_compiled_with_their_callers(file):
    for _ in range(2):  # compiled, and loaded from disk
        module = loaded(file)
        assert module.of_inner(2) == 18
        assert not module.tripled.signatures
        assert (module.tripled(2), module.squared_more(2)) == (6, 6)


def test_threads_that_call_first_make_one_function(file):
    module, found = loaded(file), []
    started = threading.Barrier(8)

    def make() -> None:
        started.wait()
        found.append(module.twice.dispatcher)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_machine_code_is_kept_on_disk(file, compiled_folder):
    for hits in (0, 1):
        module = loaded(file)
        assert module.twice(21) == 42
        assert sum(module.twice.stats.cache_hits.values()) == hits
    assert list(compiled_folder.rglob("doubling.twice-*.nbc"))


def test_machine_code_of_a_changed_source_is_kept(file):
    for factor in (2, 30):
        file.write_text(MODULE.replace("return 2 * x", f"return {factor} * x"))
        for hits in (0, 1):
            module = loaded(file)
            assert module.twice(21) == factor * 21
            assert sum(module.twice.stats.cache_hits.values()) == hits


def cut(content: bytes) -> bytes:
    return content[:100]


def flipped(content: bytes) -> bytes:
    return content[:-200] + bytes([content[-200] ^ 4]) + content[-199:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "damaged"),
    [("nbc", cut), ("nbc", flipped), ("nbc", lambda _: b""), ("nbi", cut), ("nbi", lambda _: b"")],
)
def test_damaged_machine_code_is_made_again(file, compiled_folder, ending, damaged):
    for _ in range(2):  # the second module writes the checksums of what the first one called
        assert loaded(file).four_times(21) == 84
    for path in compiled_folder.rglob(f"doubling.*.{ending}"):
        path.write_bytes(damaged(path.read_bytes()))
    for hits in (0, 1):
        module = loaded(file)
        assert module.four_times(21) == 84
        assert sum(module.four_times.stats.cache_hits.values()) == hits
        assert module.twice(21) == 42


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [60.0, 0.0])
def test_processes_that_compile_at_once_compile_each_function_once(file, tmp_path, seconds):
    """One that does not wait for the lock compiles for itself."""
    environ = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "of processes"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
    }  # fmt: skip
    program = f"""
import sys, doubling, mkldist.core.compiled
mkldist.core.compiled.LOCK_SECONDS = {seconds}
print("ready", flush=True)
sys.stdin.read(1)
assert (doubling.four_times(21), doubling.of_inner(2)) == (84, 18)
print(sum(doubling.four_times.stats.cache_hits.values()))
"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env=environ,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 2
    for process in processes:
        process.stdin.write("!")
        process.stdin.flush()
    hits = [int(process.communicate(timeout=300)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert not seconds or sorted(hits) == [0, 1]


def test_a_small_system_is_solved_in_python_for_a_while(file, monkeypatch):
    monkeypatch.setattr(mkldist.core.compiled, "SECONDS_IN_PYTHON", 60.0)
    module = loaded(file)
    assert module.halved(42.0) == 21.0
    assert not module.halved.signatures
    assert module.twice(21) == 42
    assert len(module.twice.signatures) == 1  # as it does not say python_first
    monkeypatch.setattr(mkldist.core.compiled, "SECONDS_IN_PYTHON", 1e-9)
    module = loaded(file)
    assert module.halved(42.0) == 21.0
    assert not module.halved.signatures
    assert module.halved(44.0) == 22.0
    assert len(module.halved.signatures) == 1


def test_a_large_system_is_not_solved_in_python(file, monkeypatch):
    monkeypatch.setattr(mkldist.core.compiled, "SECONDS_IN_PYTHON", 60.0)
    module = loaded(file)
    assert module.summed(np.ones(mkldist.core.compiled.FEW_ENTRIES + 1)) == (2.0, True)
    assert len(module.summed.signatures) == 1


def test_python_returns_what_machine_code_does_and_warns_of_no_overflow(file, monkeypatch):
    monkeypatch.setattr(mkldist.core.compiled, "SECONDS_IN_PYTHON", 60.0)
    module, large = loaded(file), np.array([np.finfo(float).max])
    found = module.summed(large)
    assert not module.summed.signatures
    assert found == (np.inf, True)
    assert [type(one) for one in found] == [float, bool]


@pytest.mark.slow
def test_solutions_in_python_and_compiled_are_equal_to_the_bit(tmp_path, monkeypatch):
    script = """
import sys
import numpy as np
import mkldist, mkldist.core.compiled
mkldist.core.compiled.SECONDS_IN_PYTHON = float(sys.argv[1])
mkldist.core.compiled.FEW_ENTRIES = 3000
draw = np.random.default_rng(0)
x = draw.normal(size=(16, 6))
y = np.where(x[:, 0] + x[:, 1] ** 2 > 0.5, 1.0, -1.0)
grams = np.array([np.outer(column, column) + 0.1 * np.eye(len(x)) for column in x.T])
for method, more in (
    ("level", {}), ("silp", {}), ("simplemkl", {}), ("hessianmkl", {}), ("skm", {}),
    ("smo_mkl", {}), ("primalmkl", {}), ("spicymkl", {}), ("spicymkl", {"loss": "hinge"}),
):
    found = mkldist.solve(method, grams, y, max_iter=30, **more)
    print(method, repr(found.objective), found.kernel_weights.tobytes().hex())
print([f"{name}.{key}" for name, module in list(sys.modules.items()) if name.startswith("mkldist.")
       for key, value in vars(module).items()
       if isinstance(value, mkldist.core.compiled.CompiledFunction) and value.signatures])
"""
    found = []
    for seconds in ("0", "1e9"):
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / seconds))
        done = subprocess.run(
            [sys.executable, "-W", "error::RuntimeWarning", "-c", script, seconds],
            check=True, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        found.append(done.stdout.splitlines())
    (*compiled_ones, used), (*in_python_ones, left) = found
    assert compiled_ones == in_python_ones
    assert len(ast.literal_eval(used)) - len(ast.literal_eval(left)) >= 6


@pytest.mark.slow
def test_numbas_switch_has_python_run_all_functions(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", WITHOUT_JIT],
        check=True, capture_output=True, text=True, timeout=300, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    solved, on_banks, mistakes, called = done.stdout.splitlines()
    upper, lower, optimum = map(float, solved.split())
    assert (upper, lower) == pytest.approx((optimum, optimum), rel=1e-7)
    on_points, on_grams = map(float, on_banks.split())
    assert on_points == pytest.approx(on_grams, rel=1e-8)
    assert int(mistakes) == 0
    assert int(called) > 5


def test_other_threads_run_meanwhile():
    flags = np.zeros(2, dtype=np.int64)
    wait_for(flags, 0, 1, 1)  # compiles it
    began, seen = threading.Event(), []

    def wait() -> None:
        began.set()
        seen.append(wait_for(flags, 0, 1, MOST_TURNS))

    waiting = threading.Thread(target=wait)
    waiting.start()
    began.wait()
    while flags[1] < 2 and waiting.is_alive():
        pass
    flags[0] = 1
    waiting.join()
    assert seen == [True]


@pytest.mark.slow
def test_banks_in_float64_need_each_function_in_one_form():
    done = subprocess.run(
        [sys.executable, "-c", SIGNATURES],
        capture_output=True, text=True, check=False, timeout=300, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
