"""How Sphinx builds the site: ``sphinx-build -W -n docs docs/_build``."""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.reference_tables import TABLE, objects_of, with_tables

project = "mkldist"
author = "the developers of mkldist"
version = release = version_of("mkldist")
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    ".jupyter_cache",
    "_build",
    "gallery",
    "examples/**.ipynb",
    "jupyter_execute",
    "**sg_execution_times.rst",  # of earlier builds
    "*.py",
]
templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = "mkldist"
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
mathjax = find_spec("sphinx-mathjax-offline")  # its files alone: formulas show without network
if mathjax is not None and mathjax.submodule_search_locations:
    html_static_path.append(f"{mathjax.submodule_search_locations[0]}/static")
    mathjax_path = "mathjax/tex-chtml.js"
html_show_sourcelink = False

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True

nb_execution_mode = "cache"  # tutorials run when they have changed
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
os.environ["PYTHONSTARTUP"] = str(Path(__file__).parent / "kernel_startup.py")

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "subsection_order": [f"gallery/{name}" for name in ("kernels", "methods", "judging", "data")],
    "within_subsection_order": "docs.gallery_order.place",
    "filename_pattern": "/plot_",
    "copyfile_regex": r"(?!)",
    "write_computation_times": False,
    "abort_on_example_error": True,
    "backreferences_dir": "examples/backreferences",  # of objects to the scripts that use them
    "doc_module": ("mkldist",),
    "reference_url": {"mkldist": None},
}

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
nitpick_ignore_regex = [("py:.*", r"(numpy|scipy|sklearn|xarray|dask|distributed|pandas)\..*")]


def remove_stale(app: Any) -> None:
    """Remove pages that were generated for objects and scripts that are there no more."""
    docs = Path(app.srcdir)
    objects = set(objects_of((docs / "reference" / "python.md").read_text("utf-8")))
    gallery, examples = docs / "gallery", docs / "examples"
    scripts = {one.relative_to(gallery).with_suffix("") for one in gallery.rglob("plot_*.py")}
    pages = [one for one in docs.glob("reference/python/*.rst") if one.stem not in objects]
    of_scripts = {
        one: one.relative_to(examples).with_suffix("") for one in examples.rglob("plot_*.rst")
    }
    pages += [page for page, script in of_scripts.items() if script not in scripts]
    for page in pages:
        page.unlink()


def write_tables(app: Any, page: str, source: list[str]) -> None:
    """Write the tables of the reference where a page names them."""
    source[0] = with_tables(source[0])


def pages_with_tables(app: Any, env: Any, *changes: set[str]) -> list[str]:
    """Return the pages whose tables follow from the code, which may have changed."""
    return [page for page in env.found_docs if TABLE.search(env.doc2path(page).read_text("utf-8"))]


def is_left_out(app: Any, kind: str, name: str, found: Any, *others: Any) -> bool | None:
    """Leave out what scikit-learn writes into every estimator."""
    of_sklearn = str(getattr(found, "__module__", "")).startswith("sklearn.")
    return True if of_sklearn or re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("builder-inited", remove_stale, priority=1)
    app.connect("source-read", write_tables)
    app.connect("env-get-outdated", pages_with_tables)
    app.connect("autodoc-skip-member", is_left_out)
    return {"parallel_read_safe": True}
