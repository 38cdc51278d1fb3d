"""The warm-up compiles all that a run needs, before the clocks of runs start."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import numpy as np
from mkldist.compiled import CompiledFunction
from mkldist.plan.model import RunPlan
from mkldist.worker.warm_up import warm_up
import mkldist

METHOD = sys.argv[1]
run = RunPlan("r", "d", "b", "b", 0, METHOD, METHOD, {})


def compiled():
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("mkldist."):
            for key, value in vars(module).items():
                if isinstance(value, CompiledFunction):
                    found[f"{value.py_func.__module__}.{key}"] = len(value.signatures)
    return found


warm_up([run])
before = compiled()
assert sum(before.values()) > 0, before
draw = np.random.default_rng(1)
x = draw.normal(size=(40, 3))
y = np.where(x[:, 0] + 0.3 * draw.normal(size=40) > 0, 1.0, -1.0)
grams = np.array([np.outer(x[:, j], x[:, j]) for j in range(3)])
mkldist.solve(METHOD, grams, y, tol=0.01)
after = compiled()
grown = {key: n for key, n in after.items() if n > before.get(key, 0)}
assert not grown, grown
"""


def test_a_run_after_the_warm_up_compiles_nothing():
    for method in ("level", "simplemkl"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, method],
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
