"""What compiled functions may hold, by their source."""

import ast
from pathlib import Path

import pytest

import mkldist

pytestmark = pytest.mark.slow

ARRAYS = ("empty", "zeros", "ones", "full", "array", "arange", "copy", "empty_like", "zeros_like")
DEAR = ("solve", "inv", "norm", "eigh", "cholesky", "dot", "sort", "argsort", "sum")


def compiled_functions() -> list[tuple[str, ast.FunctionDef]]:
    """Return the source of all compiled functions, with the names of their modules."""
    return [
        (path.stem, node)
        for path in Path(mkldist.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(one).startswith("compiled") for one in node.decorator_list)
        and path.stem != "compiled"
    ]


def test_compiled_functions_allocate_no_arrays():
    """Allocations of arrays take a third of the time of compiling, where a caller can make them."""
    functions = compiled_functions()
    assert len(functions) > 40
    called = {
        (f"{module}.{function.name}", node.func.attr)
        for module, function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    assert not {where for where, name in called if name in (*ARRAYS, *DEAR)}


def test_functions_that_python_may_call_first_round_as_machine_code_does():
    """Numba multiplies for a whole power where Python calls pow; numpy has an exp of its own."""
    found = {
        f"{module}.{function.name}: {ast.unparse(node)}"
        for module, function in compiled_functions()
        if any("python_first" in ast.unparse(one) for one in function.decorator_list)
        for node in ast.walk(function)
        if ast.unparse(node) in ("np.exp", "np.log", "np.power")
        or (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Pow)
            and isinstance(node.right, ast.Constant)
        )
    }
    assert not found


def test_compiled_functions_hold_no_messages_and_no_products_of_matrices():
    messages = (ast.Raise, ast.Assert, ast.Try, ast.JoinedStr)
    found = [
        f"{module}.{function.name}: {ast.unparse(node)}"
        for module, function in compiled_functions()
        for statement in function.body[ast.get_docstring(function) is not None :]
        for node in ast.walk(statement)
        if isinstance(node, messages)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
    ]
    assert not found


def test_compiled_functions_call_those_of_their_own_module_alone():
    """Numba keeps the code of callees in the file of a caller, and looks at its module alone."""
    functions = compiled_functions()
    of_module = {(module, function.name) for module, function in functions}
    names = {name for _, name in of_module}
    called = [
        (module, name)
        for module, function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func).split(".")[-1]) in names
    ]
    assert len(called) > 20
    assert not {*called} - of_module
