"""The scripts of the gallery: what a page of each needs; that they run is the site's build."""

import ast
import re

import pytest

from docs.gallery_order import place
from tests.docs.pages import DOCS

GALLERY = DOCS / "gallery"
SCRIPTS = sorted(GALLERY.rglob("*.py"))
NETWORK = ("fetch_", "urlopen", "requests", "openml")


def test_there_are_enough():
    assert len(SCRIPTS) >= 22
    assert all(script.name.startswith("plot_") for script in SCRIPTS)  # others are not run
    assert sorted(place(script.name) for script in SCRIPTS) == list(range(len(SCRIPTS)))


@pytest.mark.parametrize("folder", sorted({script.parent for script in SCRIPTS}), ids=str)
def test_each_part_has_a_header(folder):
    assert (folder / "GALLERY_HEADER.rst").read_text(encoding="utf-8").count("\n") > 3


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_makes_a_page(script):
    code = script.read_text(encoding="utf-8")
    title, line, *words = (ast.get_docstring(ast.parse(code)) or "\n").split("\n")
    assert title
    assert line == len(title) * "="
    assert len(" ".join(words)) > 100  # the paragraph on what it shows
    assert "plt.subplots(" in code
    assert "plt.show()" in code
    end = code.split("# %%")[-1]
    assert re.search(r"^# \*\*Take away\.\*\*", end, re.MULTILINE)
    pages = re.findall(r":doc:`/([^`]+)`", end)
    assert pages
    assert all((DOCS / f"{page}.md").exists() for page in pages)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_needs_no_network_and_leaves_nothing_behind(script):
    code = script.read_text(encoding="utf-8")
    assert not [word for word in NETWORK if word in code]
    # a sweep writes its results into a temporary folder
    assert (
        code.count("mkldist.sweep(") == code.count("output=") == code.count("TemporaryDirectory()")
    )
