"""The reference: no key, method, kernel, number or public object without its place and example."""

import doctest
import inspect
import re
from typing import Any, get_args

import numpy as np
import pytest
from pydantic import BaseModel

import mkldist
from docs.reference_tables import (
    KEYS,
    LISTS,
    TABLE,
    VARIABLES,
    error_classes,
    objects_of,
    table,
    type_of,
    with_tables,
)
from mkldist import errors
from mkldist.kernel_functions import FUNCTIONS
from mkldist.kernels.objects import CLASSES
from mkldist.methods.registry import METHODS
from mkldist.solvers.base import Solution
from mkldist.solvers.solver_params import SolverParams
from mkldist.spec.model import Distribution, SweepSpec
from tests.docs.pages import DOCS, blocks

REFERENCE = DOCS / "reference"
PAGES = {str(page.relative_to(REFERENCE)): page for page in sorted(REFERENCE.glob("**/*.md"))}
TEXTS = {name: page.read_text(encoding="utf-8") for name, page in PAGES.items()}
PYTHON = TEXTS["python.md"]
SECTIONS = {
    "methods": ("When to choose it", "Problem", "Algorithm", "Certificate", "Example", "Source"),
    "kernels": ("When to choose it", "Parameters", "Example"),
}


def models_in(annotation: Any) -> set[type[BaseModel]]:
    """Return all models that an annotation holds, those of their fields among them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields.values()
        return {annotation}.union(*(models_in(field.annotation) for field in fields))
    return set().union(*map(models_in, get_args(annotation)))


def public_objects() -> dict[str, Any]:
    """Return all that users import from mkldist, by its name there."""
    found = {
        "mkldist": [name for name in mkldist.__all__ if not inspect.ismodule(vars_of(name))],
        "mkldist.analysis": mkldist.analysis._MODULES,
        "mkldist.kernels": (*mkldist.kernels.__all__, *CLASSES),
    }
    for name in mkldist.__all__:
        if inspect.ismodule(vars_of(name)) and f"mkldist.{name}" not in found:
            found[f"mkldist.{name}"] = vars_of(name).__all__
    return {
        f"{module}.{name}": getattr(vars_of(module.removeprefix("mkldist.")), name)
        for module, names in found.items()
        for name in names
    }


def vars_of(name: str) -> Any:
    return mkldist if name == "mkldist" else getattr(mkldist, name)


PUBLIC = public_objects()


def test_every_table_of_the_sweep_file_is_known():
    assert set(KEYS.values()) == models_in(SweepSpec) | {SolverParams, Distribution}


def test_every_table_stands_on_a_page():
    named = {found["name"] for text in TEXTS.values() for found in TABLE.finditer(text)}
    of = {
        f"{what} of {name}" for what in ("facts", "parameters") for name in (*METHODS, *FUNCTIONS)
    }
    assert named == {*KEYS, *VARIABLES, *LISTS, *of}


def test_a_page_has_its_tables():
    assert with_tables("a\n<!-- table series -->\nb").splitlines() == ["a", *table("series"), "b"]


@pytest.mark.parametrize("name", KEYS)
def test_every_key_has_a_type_and_a_meaning(name):
    for key, field in KEYS[name].model_fields.items():
        assert type_of(field), key
        assert field.description, key


def test_every_table_of_the_sweep_file_has_an_example():
    headings = re.split(r"^## ", TEXTS["sweep_file.md"], flags=re.MULTILINE)[1:]
    assert [part.split("\n")[0] for part in headings if "```toml" not in part] == []


@pytest.mark.parametrize("room", SECTIONS)
def test_every_method_and_kernel_has_a_whole_page(room):
    known = {"methods": METHODS, "kernels": FUNCTIONS}[room]
    assert {f"{room}/{name}.md" for name in known} == {n for n in TEXTS if n.startswith(room + "/")}
    for name in known:
        text = TEXTS[f"{room}/{name}.md"]
        assert text.startswith(f"# {name}\n")
        for section in SECTIONS[room]:
            assert f"\n## {section}\n" in text, (name, section)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TEXTS if ">>> " in TEXTS[name]])
def test_its_examples_print_what_they_show(name):
    runner, parser = doctest.DocTestRunner(verbose=False), doctest.DocTestParser()
    for block in blocks(PAGES[name]):
        if ">>> " in block.code:
            runner.run(parser.get_doctest(block.code, {}, name, str(PAGES[name]), 0))
    assert runner.summarize(verbose=False).failed == 0


def test_the_page_of_python_lists_every_public_object_once():
    assert sorted(objects_of(PYTHON)) == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_object_has_an_example(name):
    words = inspect.getdoc(PUBLIC[name]) or ""
    assert "\nExamples\n--------\n" in words, f"{name} has no section Examples"
    assert ">>> " in words.split("\nExamples\n")[1]


def test_the_page_of_errors_has_all_classes_and_codes():
    text = TEXTS["errors.md"]
    assert set(re.findall(r"autoexception:: (\w+)", text)) == {
        one.__name__ for one in error_classes()
    }
    codes = {str(value) for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert set(re.findall(r"^\| (\d+) \|", text, re.MULTILINE)) == {"0", *codes}


def test_results_explain_what_methods_report():
    section = TEXTS["results.md"].split("<!-- reported -->\n")[1]
    rows = [line.split("|") for line in section.splitlines()[2:]]
    explained = {
        (name, method)
        for row in rows
        for name in re.findall(r"`(\w+)`", row[1])
        for method in re.findall(r"`(\w+)`", row[2])
    }
    reported = {(name, method) for method in METHODS for name in solved(method).extra}
    assert reported == explained, "explain it in docs/reference/results.md, after <!-- reported -->"


def solved(method: str) -> Solution:
    """Return the solution on two groups of points, half of them unlabelled if there is a graph.

    Methods with a form that is not convex solve that.
    """
    x = np.random.default_rng(0).normal(size=(24, 2))
    x[::2] += 3.0
    y = np.tile([1.0, -1.0], 12)
    grams = np.array([np.exp(-((x[:, None] - x) ** 2).sum(axis=2) / w) for w in (1.0, 9.0)])
    settings: dict[str, Any] = {}
    if METHODS[method].needs_laplacian:
        y[12:] = 0.0
        settings["laplacian"] = 24.0 * np.eye(24) - 1.0
    if "form" in METHODS[method].params.model_fields:
        settings["form"] = "shared"
    if method == "l0_mkl":
        settings["k"] = 1
    if method == "rmkl":
        settings["random_weights"] = 1
    return mkldist.solve(method, grams, y, **settings)
