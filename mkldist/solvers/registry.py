"""All methods by name.  To add one: a file with a ``METHOD``, and its name here."""

from __future__ import annotations

from importlib import import_module

from mkldist.solvers.base import Method

MODULES = (
    "spicymkl",
    "elastmkl",
    "level",
    "simplemkl",
    "silp",
    "hessianmkl",
    "gmkl",
    "rmkl",
    "lp_mkl",
    "smo_mkl",
    "skm",
    "primalmkl",
    "lapmkl",
    "lapsvm",
    "mklsvm",
    "lsvm",
    "glks",
    "rls",
    "laprls",
    "easymkl",
    "alignf",
    "uniform",
    "svm",
    "best_single",
    "majority",
)

METHODS: dict[str, Method] = {
    method.name: method
    for method in (import_module(f"mkldist.methods.{module}").METHOD for module in MODULES)
}
