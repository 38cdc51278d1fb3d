"""All methods by name, each loaded when it is first asked for.

To add a method, write a file with a ``METHOD``, and put its name and module into ``MODULES``.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module

from mkldist.solvers.base import Method
from mkldist.solvers.refusals import ProblemFacts
from mkldist.solvers.targets import losses_by_target

MODULES = {
    "spicymkl": "mkldist.methods.block_norm.spicymkl",
    "elastmkl": "mkldist.methods.block_norm.elastmkl",
    "level": "mkldist.methods.wrapper.level",
    "simplemkl": "mkldist.methods.wrapper.simplemkl",
    "silp": "mkldist.methods.wrapper.silp",
    "hessianmkl": "mkldist.methods.wrapper.hessianmkl",
    "gmkl": "mkldist.methods.wrapper.gmkl",
    "rmkl": "mkldist.methods.wrapper.rmkl",
    "lp_mkl": "mkldist.methods.wrapper.lp_mkl",
    "l0_mkl": "mkldist.methods.wrapper.l0_mkl",
    "group_mkl": "mkldist.methods.wrapper.group_mkl",
    "smo_mkl": "mkldist.methods.smooth_dual.smo_mkl",
    "skm": "mkldist.methods.smooth_dual.skm",
    "primalmkl": "mkldist.methods.primal.primalmkl",
    "lapmkl": "mkldist.methods.manifold.lapmkl",
    "lapsvm": "mkldist.methods.manifold.lapsvm",
    "mklsvm": "mkldist.methods.manifold.mklsvm",
    "lsvm": "mkldist.methods.manifold.lsvm",
    "glks": "mkldist.methods.manifold.glks",
    "rls": "mkldist.methods.manifold.rls",
    "laprls": "mkldist.methods.manifold.laprls",
    "easymkl": "mkldist.methods.baselines.easymkl",
    "align": "mkldist.methods.baselines.align",
    "alignf": "mkldist.methods.baselines.alignf",
    "uniform": "mkldist.methods.baselines.uniform",
    "svm": "mkldist.methods.baselines.svm",
    "best_single": "mkldist.methods.baselines.best_single",
    "majority": "mkldist.methods.baselines.majority",
}


class Methods(MutableMapping[str, Method]):
    """Methods by name, in the order of :data:`MODULES`; the import of one loads no other."""

    def __init__(self) -> None:
        self._loaded: dict[str, Method | None] = dict.fromkeys(MODULES)

    def __getitem__(self, name: str) -> Method:
        method = self._loaded[name]
        if method is None:
            method = self._loaded[name] = import_module(MODULES[name]).METHOD
        return method

    def __setitem__(self, name: str, method: Method) -> None:
        self._loaded[name] = method

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded)

    def __len__(self) -> int:
        return len(self._loaded)

    def __contains__(self, name: object) -> bool:  # that of Mapping would load the method
        return name in self._loaded


METHODS = Methods()


def is_own(method: Method) -> bool:
    """Return True if a method comes with mkldist; another may do anything, at any cost."""
    return method.solve.__module__.startswith("mkldist.methods.")


def methods_for(problem: ProblemFacts) -> list[str]:
    """Return the names of the methods that do not refuse a problem, with one of their losses."""
    return [
        name
        for name, method in METHODS.items()
        if any(
            method.refuses(problem, target) is None for target in losses_by_target(method.params)
        )
    ]
