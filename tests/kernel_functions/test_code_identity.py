"""Identities of functions of the user: another code or another content, another identity."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mkldist.kernel_functions.custom import function_identity as identity
from tests.kernel_functions import own_functions
from tests.kernel_functions.own_functions import Scaled, gauss


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
    instance = """
        class Kernel:
            def __call__(self, x, z): return {factor} * x @ z.T
        k = Kernel()
        """
    one, two, again = (
        identity(of_notebook(instance.format(factor=factor))) for factor in (1, 2, 1)
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
    before, other = identity(own_functions.of_rate), identity(gauss)
    monkeypatch.setattr(own_functions, "SIGMA", value)
    assert identity(own_functions.of_rate) == identity(own_functions.of_rate) != before
    assert identity(gauss) == other  # which does not use them
    monkeypatch.undo()
    assert identity(own_functions.of_rate) == before


def test_a_set_of_texts_is_the_same_in_every_process():
    source = "from tests.kernel_functions import own_functions as own; own.SIGMA = set('abcdef');"
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
