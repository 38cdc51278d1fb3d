"""Pages of the reference that are written from the code, whenever Sphinx begins to build."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mkldist
from mkldist.kernels.objects import CLASSES
from mkldist.methods.registry import METHODS
from tests.manual import KEYS, VARIABLES, _lines, default_of, sentence, table, type_of

HEADINGS = {
    "sweep": "Top of the file",
    "dataset": "`[[datasets]]`",
    "view": "`[[datasets.views]]`",
    "preprocessing": "`[preprocessing]`",
    "splits": "`[splits]`",
    "graph": "`[graph]`",
    "selection": "`[selection]`",
    "search": "`[search]`",
    "distribution": "A distribution of `[search]`",
    "bank": "`[[banks]]`",
    "kernel": "`[[banks.kernels]]`",
    "series": "A series of numbers",
    "subsets": "Random subsets of features",
    "method": "`[[methods]]`",
    "every method": "Keys that every method takes",
    "outputs": "`[outputs]`",
}
OF_VARIABLES = {
    "solutions": "Solutions",
    "scores": "Scores",
    "work": "Work and time",
    "traces": "Traces",
    "coordinates": "Coordinates",
}


def sweep_file() -> Iterator[str]:
    """Yield the lines of the page of all keys."""
    yield "# Keys of the sweep file\n"
    for name in KEYS:
        yield f"## {HEADINGS[name]}\n"
        yield from table(name)
        yield ""


def results() -> Iterator[str]:
    """Yield the lines of the page of all variables."""
    yield "# Variables of the results\n"
    for name in VARIABLES:
        yield f"## {OF_VARIABLES[name]}\n"
        yield from table(name)
        yield ""


def kernels() -> Iterator[str]:
    """Yield the lines of the page of kernel functions."""
    yield "# Kernel functions\n"
    yield from table("kernel functions")


def methods() -> Iterator[str]:
    """Yield the lines of the page that lists methods."""
    yield "# Methods\n"
    rows = ((f"[`{n}`](methods/{n}.md)", m.title, m.reference) for n, m in METHODS.items())
    yield from _lines(("method", "what it is", "source"), rows)
    yield "\n```{toctree}\n:hidden:\n"
    yield from (f"methods/{name}" for name in METHODS)
    yield "```"


def method(name: str) -> Iterator[str]:
    """Yield the lines of the page of a method."""
    of = METHODS[name]
    yield f"# {name}: {of.title}\n"
    facts = {"Problem": of.problem, "Loss": of.loss, "Regulariser": of.regularizer}
    facts |= {"Source": of.reference}
    yield from _lines(("", ""), ((what, words) for what, words in facts.items() if words))
    yield "\n## Parameters\n"
    fields = of.params.model_fields.items()
    rows = (
        (f"`{key}`", type_of(field), default_of(field), sentence(field.description or ""))
        for key, field in fields
    )
    yield from _lines(("parameter", "type", "default", "meaning"), rows)


def python() -> Iterator[str]:
    """Yield the lines of the page of public objects."""
    yield "# Python\n\n```{eval-rst}\n.. currentmodule:: mkldist\n"
    yield ".. autosummary::\n   :toctree: python\n   :nosignatures:\n"
    yield from (
        f"   {name}" for name in mkldist.__all__ if name not in ("analysis", "kernels", "plot")
    )
    public = {
        "analysis": mkldist.analysis._MODULES,
        "plot": mkldist.plot.__all__,
        "kernels": (*mkldist.kernels.__all__, *CLASSES),
    }
    for module, names in public.items():
        yield f"\n.. currentmodule:: mkldist.{module}\n"
        yield ".. autosummary::\n   :toctree: python\n   :nosignatures:\n"
        yield from (f"   {name}" for name in names)
    yield "```"


def write_pages(app: Any) -> None:
    """Write all pages; those that are as before keep their times, so that Sphinx reads them not."""
    folder = Path(app.srcdir) / "reference"
    pages = {"sweep_file": sweep_file(), "results": results(), "kernels": kernels()}
    pages |= {"methods": methods(), "python": python()}
    pages |= {f"methods/{name}": method(name) for name in METHODS}
    for name, lines in pages.items():
        file, text = folder / f"{name}.md", "\n".join(lines) + "\n"
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("builder-inited", write_pages, priority=1)
    return {"parallel_read_safe": True}
