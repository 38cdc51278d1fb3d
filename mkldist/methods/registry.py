"""All methods by name.

To add a method, write a file with a ``METHOD``, import it here, and put it into ``MODULES``.
"""

from __future__ import annotations

from mkldist.methods.baselines import alignf, best_single, easymkl, majority, svm, uniform
from mkldist.methods.block_norm import elastmkl, spicymkl
from mkldist.methods.manifold import glks, lapmkl, laprls, lapsvm, lsvm, mklsvm, rls
from mkldist.methods.primal import primalmkl
from mkldist.methods.smooth_dual import skm, smo_mkl
from mkldist.methods.wrapper import (
    gmkl,
    group_mkl,
    hessianmkl,
    l0_mkl,
    level,
    lp_mkl,
    rmkl,
    silp,
    simplemkl,
)
from mkldist.solvers.base import Method
from mkldist.solvers.refusals import ProblemFacts
from mkldist.solvers.targets import losses_by_target

MODULES = (
    spicymkl,
    elastmkl,
    level,
    simplemkl,
    silp,
    hessianmkl,
    gmkl,
    rmkl,
    lp_mkl,
    l0_mkl,
    group_mkl,
    smo_mkl,
    skm,
    primalmkl,
    lapmkl,
    lapsvm,
    mklsvm,
    lsvm,
    glks,
    rls,
    laprls,
    easymkl,
    alignf,
    uniform,
    svm,
    best_single,
    majority,
)

METHODS: dict[str, Method] = {module.METHOD.name: module.METHOD for module in MODULES}


def methods_for(problem: ProblemFacts) -> list[str]:
    """Return the names of the methods that do not refuse a problem, with one of their losses."""
    return [
        name
        for name, method in METHODS.items()
        if any(
            method.refuses(problem, target) is None for target in losses_by_target(method.params)
        )
    ]
