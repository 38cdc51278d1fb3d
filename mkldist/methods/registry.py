"""All methods by name, each loaded when it is first asked for.

To add a method, write a file with a :class:`Method`, and put its name and module into ``MODULES``.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module

from mkldist.solvers.base import Method, ProblemFacts, losses_by_target

MODULES = {
    "spicymkl": "mkldist.methods.spicymkl",
    "elastmkl": "mkldist.methods.spicymkl",
    "level": "mkldist.methods.level",
    "simplemkl": "mkldist.methods.simplemkl",
    "silp": "mkldist.methods.silp",
    "hessianmkl": "mkldist.methods.hessianmkl",
    "gmkl": "mkldist.methods.gmkl",
    "rmkl": "mkldist.methods.rmkl",
    "lp_mkl": "mkldist.methods.lp_mkl",
    "l0_mkl": "mkldist.methods.l0_mkl",
    "group_mkl": "mkldist.methods.group_mkl",
    "smo_mkl": "mkldist.methods.smo_mkl",
    "skm": "mkldist.methods.smo_mkl",
    "primalmkl": "mkldist.methods.primalmkl",
    "lapmkl": "mkldist.methods.lapmkl",
    "lapsvm": "mkldist.methods.lapsvm",
    "mklsvm": "mkldist.methods.mklsvm",
    "lsvm": "mkldist.methods.lsvm",
    "glks": "mkldist.methods.glks",
    "rls": "mkldist.methods.rls",
    "laprls": "mkldist.methods.rls",
    "easymkl": "mkldist.methods.easymkl",
    "align": "mkldist.methods.alignment",
    "alignf": "mkldist.methods.alignment",
    "uniform": "mkldist.methods.uniform",
    "svm": "mkldist.methods.single_kernel",
    "best_single": "mkldist.methods.single_kernel",
    "majority": "mkldist.methods.single_kernel",
}


class Methods(MutableMapping[str, Method]):
    """Methods by name, in the order of :data:`MODULES`; the import of one loads no other."""

    def __init__(self) -> None:
        self._loaded: dict[str, Method | None] = dict.fromkeys(MODULES)

    def __getitem__(self, name: str) -> Method:
        method = self._loaded[name]
        if method is None:
            of_file = vars(import_module(MODULES[name])).values()
            method = {one.name: one for one in of_file if isinstance(one, Method)}.get(name)
            if method is None:
                raise ImportError(f"{MODULES[name]} has no Method of the name {name!r}")
            self._loaded[name] = method
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
