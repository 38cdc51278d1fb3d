"""All methods by name.  To add one: a file with a ``METHOD``, and two words here."""

from __future__ import annotations

from mkldist.methods.baselines import alignf, best_single, easymkl, majority, svm, uniform
from mkldist.methods.block_norm import elastmkl, spicymkl
from mkldist.methods.manifold import glks, lapmkl, laprls, lapsvm, lsvm, mklsvm, rls
from mkldist.methods.primal import primalmkl
from mkldist.methods.smooth_dual import skm, smo_mkl
from mkldist.methods.wrapper import gmkl, hessianmkl, level, lp_mkl, rmkl, silp, simplemkl
from mkldist.solvers.base import Method

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
