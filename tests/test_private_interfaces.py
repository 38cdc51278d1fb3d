"""The package uses what its dependencies and Python document, and nothing behind that.

A name that begins with an underscore and that no file of the package defines belongs to somebody
else; so does a module that its project calls internal.
"""

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import mkldist

ROOT = Path(mkldist.__file__).parent
INTERNAL = (
    "dask.base.", "dask.core.", "distributed.batched.", "distributed.client.", "distributed.comm.",
    "distributed.core.", "distributed.diagnostics.", "distributed.nanny.", "distributed.node.",
    "distributed.process.", "distributed.scheduler.", "distributed.utils.", "distributed.worker.",
    "numba.core.", "numba.np.", "xarray.coding.", "xarray.conventions.", "xarray.core.",
    "xarray.namedarray.", "zarr.core.",
)  # fmt: skip
"""Beginnings of the names of modules that their projects call internal, or do not document."""
UNDOCUMENTED = {"fastpath", "no_cfunc_wrapper", "no_cpython_wrapper", "boxed", "pipeline_class"}
"""Arguments of functions of dependencies that are not documented."""
OF_TYPES = {"_typeshed"}  # for type checkers alone
DOCUMENTED = {"_asdict", "_exit", "_fields", "_make", "_replace"}
TO_BE_SET = {"sys.unraisablehook"}  # as the documentation of their modules says


def is_private(name: str) -> bool:
    """Return True for a name that begins with an underscore, and is not one of Python's own."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def is_internal(module: str) -> bool:
    """Return True for a module of others that is no public interface."""
    if module.split(".")[0] in (mkldist.__name__, *OF_TYPES):
        return False
    return f"{module}.".startswith(INTERNAL) or any(map(is_private, module.split(".")))


def bound_modules(tree: ast.AST) -> dict[str, str]:
    """Return modules of others by the names that a file binds to them."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                name = one.asname or one.name.split(".")[0]
                found[name] = one.name if one.asname else name
    return {name: at for name, at in found.items() if at.split(".")[0] != mkldist.__name__}


def own_names(tree: ast.AST) -> Iterator[str]:
    """Yield the private names that a file defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and ast.unparse(node.value) in ("self", "cls")
        ):
            yield node.attr


def base_name(node: ast.expr) -> str:
    """Return the first name of a dotted expression; empty for other expressions."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def private_uses(tree: ast.AST, own: set[str]) -> Iterator[str]:
    """Yield what a file uses of the private interfaces of others."""
    modules = bound_modules(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if is_internal(one.name))
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from private_imports(node)
        elif isinstance(node, ast.Attribute):
            module = modules.get(base_name(node), "")
            foreign = is_private(node.attr) and (module or node.attr not in own)
            internal = bool(module) and is_internal(f"{module}.{node.attr}")
            use = ast.unparse(node)
            if (internal or foreign) and node.attr not in DOCUMENTED:
                yield use
            elif module and isinstance(node.ctx, ast.Store | ast.Del) and use not in TO_BE_SET:
                yield f"{use} = …"
        elif isinstance(node, ast.Call):
            yield from private_arguments(node, own)


def private_imports(node: ast.ImportFrom) -> Iterator[str]:
    """Yield the private names that a statement imports from others."""
    module = node.module or ""
    if module.split(".")[0] == mkldist.__name__ or module in OF_TYPES:
        return
    for one in node.names:
        path = f"{module}.{one.name}"
        if is_internal(module) or is_internal(path):
            yield path


def private_arguments(call: ast.Call, own: set[str]) -> Iterator[str]:
    """Yield undocumented arguments of a call, and private names that it passes as texts."""
    for keyword in call.keywords:
        name = keyword.arg or ""
        if (is_private(name) and name not in own) or name in UNDOCUMENTED:
            yield f"{ast.unparse(call.func)}({name}=…)"
    named = isinstance(call.func, ast.Name) and call.func.id in ("getattr", "setattr", "hasattr")
    if named and len(call.args) > 1 and isinstance(call.args[1], ast.Constant):
        name = str(call.args[1].value)
        if is_private(name) and name not in own | DOCUMENTED:
            yield ast.unparse(call)


@pytest.mark.slow
def test_no_file_uses_a_private_interface_of_others():
    trees = {path: ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
    own = {name for tree in trees.values() for name in own_names(tree) if is_private(name)}
    found = [
        f"{path.relative_to(ROOT)}: {use}"
        for path, tree in trees.items()
        for use in private_uses(tree, own)
    ]
    assert "\n".join(found) == ""


@pytest.mark.slow
def test_no_class_overrides_a_private_method_of_a_base_of_others():
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        defined = {
            node.name: {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.ClassDef) and node.bases
        }
        if not defined or path.stem == "__main__":
            continue
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
        for name, methods in defined.items():
            bases = inspect.getmro(getattr(module, name))[1:]
            others = [one for one in bases if not one.__module__.startswith(mkldist.__name__)]
            found += [
                f"{module.__name__}.{name}.{method} overrides that of {one.__name__}"
                for method in methods
                for one in others
                if is_private(method) and method in vars(one)
            ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "from xarray.core import indexing",
        "from xarray.core.indexing import LazilyIndexedArray",
        "import numba.core.event",
        "from sklearn.utils import _safe_indexing",
        "from sklearn.utils._param_validation import Interval",
        "from distributed.utils import silence_logging_cmgr",
        "import sys\nsys._current_frames()",
        "import multiprocessing.spawn\nmultiprocessing.spawn.get_preparation_data = print",
        "import numba\nnumba.core.event.register",
        "numba.njit(_nrt=False)",
        "numba.njit(no_cfunc_wrapper=True)",
        "xr.Variable((), 1, fastpath=True)",
        "getattr(process, '_config')",
        "dispatcher._cache_of_numba",
    ],
)
def test_uses_of_private_interfaces_are_seen(source):
    assert [*private_uses(ast.parse(source), own={"_config_of_ours"})]


@pytest.mark.parametrize(
    "source",
    [
        "from mkldist.data.opening import _open",
        "from numba.extending import typeof_impl",
        "self._own = 1",
        "other._own",
        "import sys\nsys.path[:] = []",
        "module.__name__",
    ],
)
def test_public_and_own_names_are_let_alone(source):
    assert not [*private_uses(ast.parse(source), own={"_own"})]
