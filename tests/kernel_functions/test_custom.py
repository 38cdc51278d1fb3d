"""Kernel functions of the user: where they are found, what they may return, their identity."""

import functools
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mkldist.errors import GramError, SpecError
from mkldist.kernel_functions import custom
from mkldist.kernel_functions.custom import CustomFunction, CustomKernel
from mkldist.kernel_functions.custom import function_identity as identity
from tests.kernel_functions import made_up
from tests.kernel_functions.made_up import Scaled, gauss, values

POINTS = np.random.default_rng(0).normal(size=(70, 2))


def kernel(call: Callable[..., Any], **arguments: Any) -> CustomKernel:
    return CustomKernel(CustomFunction.of(call), tuple(arguments.items()))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a module that Python finds."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path / "some_kernels.py"
    sys.modules.pop("some_kernels", None)
    custom._imported.pop("some_kernels", None)


def test_values_and_diagonal_are_those_of_the_function():
    definition = kernel(gauss, width=2.0).definition
    found = values(definition, POINTS, POINTS[:5])
    np.testing.assert_array_equal(found, gauss(POINTS, POINTS[:5], 2.0))
    np.testing.assert_array_equal(definition.diagonal(POINTS, 0.0, 0.0), np.ones(70))
    assert kernel(Scaled(3.0)).definition.diagonal(POINTS[:0], 0.0, 0.0).shape == (0,)
    squares = kernel(Scaled(3.0)).definition.diagonal(POINTS, 0.0, 0.0)
    np.testing.assert_allclose(squares, 3.0 * (POINTS**2).sum(axis=1), rtol=1e-12)


def test_names_say_function_and_parameters():
    assert kernel(gauss).head == "gauss"
    assert kernel(gauss, width=0.5, kind="a", odd=True).head == "gauss(width=0.5, kind=a, odd=True)"
    assert kernel(Scaled(1.0)).head == "Scaled"
    assert kernel(functools.partial(gauss, width=2.0)).head == "gauss"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x, z: 1 / 0, "an error ZeroDivisionError: division by zero; expected finite"),
        (lambda x, z: x, r"values of shape \(6, 2\); expected finite numbers of shape \(6, 6\)"),
        (lambda x, z: "no", "an error ValueError: could not convert"),
        (lambda x, z: np.full((6, 6), np.nan), "the value nan in row 0, column 0"),
        (lambda x, z: x @ np.array([[0, 1], [0, 0]]) @ z.T, r"k\(x, z\) = .* but k\(z, x\) = "),
        (lambda x, z: -x @ z.T, r"an eigenvalue of -.* between 6 points, trace -"),
        (lambda x, z: np.tanh(x @ z.T - 1), r"an eigenvalue of -.* between 6 points"),
        (lambda x, z: np.multiply(x, 2, out=x), "an error ValueError: output array is read-only"),
    ],
)
def test_what_a_function_returns_is_checked(call, said):
    points = POINTS[:6].copy()
    with pytest.raises(GramError, match=f"kernel function <lambda>: found {said}"):
        values(kernel(call).definition, points, points, symmetric=True)
    np.testing.assert_array_equal(points, POINTS[:6])


def test_rounding_is_no_asymmetry():
    noise = 1e-12 * np.triu(np.ones((6, 6)))
    found = values(
        kernel(lambda x, z: x @ z.T + noise).definition, POINTS[:6], POINTS[:6], symmetric=True
    )
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("arguments", [{"witdh": 1.0}, {"width": 1.0, "more": 2}])
def test_parameters_that_the_function_does_not_take_are_refused(arguments):
    with pytest.raises(SpecError, match=r"here\.parameters: .*gauss does not take"):
        kernel(gauss, **arguments).check("here")
    kernel(gauss, width=2.0).check("here")


def test_a_function_is_imported_by_its_name(module):
    module.write_text("class Kinds:\n    @staticmethod\n    def k(x, z):\n        return x @ z.T\n")
    found = CustomFunction.named("some_kernels:Kinds.k", "here")
    assert found.label == "some_kernels:Kinds.k"
    np.testing.assert_array_equal(found.call(POINTS, POINTS), POINTS @ POINTS.T)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("no_such_module:k", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("some_kernels:other", "AttributeError: module 'some_kernels' has no attribute 'other'"),
        ("some_kernels:number", "which is no function"),
        ("no_entry_point", "KeyError"),
    ],
)
def test_what_cannot_be_imported_is_told(module, reference, said):
    module.write_text("number = 3\n")
    with pytest.raises(SpecError, match=f"here: found '{reference}', .*{said}"):
        CustomFunction.named(reference, "here")


def test_a_changed_file_is_imported_again_and_has_another_identity(module):
    module.write_text("def k(x, z):\n    return x @ z.T\n")
    before = CustomFunction.named("some_kernels:k", "here")
    same = CustomFunction.named("some_kernels:k", "here")
    module.write_text("def k(x, z):\n    return 2 * x @ z.T\n")
    after = CustomFunction.named("some_kernels:k", "here")
    assert before.identity == same.identity != after.identity
    np.testing.assert_array_equal(after.call(POINTS, POINTS), 2 * POINTS @ POINTS.T)


def test_an_entry_point_names_a_function(module, tmp_path):
    module.write_text("def k(x, z):\n    return x @ z.T\n")
    about = tmp_path / "some_kernels-1.5.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: some-kernels\nVersion: 1.5\n")
    (about / "entry_points.txt").write_text("[mkldist.kernels]\nproducts = some_kernels:k\n")
    found = CustomFunction.named("products", "here")
    assert found.label == "products"
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: some-kernels\nVersion: 1.6\n")
    assert CustomFunction.named("products", "here").identity != found.identity


def scaled(by: Any) -> Callable[..., Any]:
    return lambda x, z: by * x @ z.T


def of_notebook(source: str, **names: Any) -> Callable[..., Any]:
    """Return the function or object k of code that stands in no file."""
    scope: dict[str, Any] = {"np": np, **names}
    exec(textwrap.dedent(source), scope)
    return scope["k"]


def test_what_a_function_holds_tells_it_from_others():
    functions = [scaled(1.0), scaled(2.0), Scaled(1.0), Scaled(2.0), gauss]
    partials = [functools.partial(gauss, width=width) for width in (1.0, 2.0)]
    found = [identity(call) for call in (*functions, *partials)]
    assert len(set(found)) == len(found)
    assert identity(scaled(1.0)) == identity(scaled(1.0))
    assert identity(Scaled(1.0)) == identity(Scaled(1.0))


def test_a_function_that_holds_what_cannot_be_pickled_is_never_found_again():
    held = (number for number in ())
    assert identity(scaled(held)) != identity(scaled(held))


def test_functions_of_one_name_in_one_file_differ():
    pair = [lambda x, z: x @ z.T, lambda x, z: (x @ z.T) ** 2]
    assert identity(pair[0]) != identity(pair[1])
    assert identity(pair[0]) == identity(pair[0])

    def square() -> Callable[..., Any]:
        return lambda x, z: [(lambda u: u**2)(row) for row in x @ z.T]

    def cube() -> Callable[..., Any]:
        return lambda x, z: [(lambda u: u**3)(row) for row in x @ z.T]

    assert identity(square()) == identity(square()) != identity(cube())
    by_function = [functools.partial(gauss, width=call) for call in pair]
    assert identity(by_function[0]) != identity(by_function[1])
    assert identity(scaled(pair[0])) != identity(scaled(pair[1]))


def test_code_without_a_file_is_told_by_its_instructions():
    one, two, again = (
        identity(of_notebook(f"def k(x, z): return {factor} * x @ z.T")) for factor in (1, 2, 1)
    )
    assert one == again != two


def test_code_without_a_file_is_told_by_the_names_that_it_uses():
    source = "def k(x, z): return np.exp(-width * (lambda u, v: inner(u, v))(x, z))"
    found = [
        identity(of_notebook(source, width=width, inner=inner))
        for width in (0.5, 2.0)
        for inner in (np.dot, gauss, Scaled)
    ]
    assert len(set(found)) == len(found)
    assert found[0] == identity(of_notebook(source, width=0.5, inner=np.dot))


@pytest.mark.parametrize("value", [2.0, np.ones(3), "one", None, {"a": 1}, {"a", "b"}])
def test_data_of_the_file_that_are_set_from_outside_count(value, monkeypatch):
    before = identity(made_up.of_rate)
    monkeypatch.setattr(made_up, "SIGMA", value)
    assert identity(made_up.of_rate) == identity(made_up.of_rate) != before
    monkeypatch.undo()
    assert identity(made_up.of_rate) == before


@pytest.mark.slow
def test_a_set_of_texts_is_the_same_in_every_process():
    source = "from tests.kernel_functions import made_up as own; own.SIGMA = set('abcdef');"
    source += "from mkldist.kernel_functions.custom import function_identity as identity;"
    source += "print(identity(own.of_rate))"
    found = {
        subprocess.run(
            [sys.executable, "-c", source], env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in "123"
    }  # fmt: skip
    assert len(found) == 1


def test_a_function_may_use_itself():
    source = "def k(x, z): return k(x[1:], z) if len(x) > 1 else {factor} * x @ z.T"
    one, two, again = (identity(of_notebook(source.format(factor=f))) for f in (1, 2, 1))
    assert one == again != two
