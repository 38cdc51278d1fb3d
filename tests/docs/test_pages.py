"""The pages of documentation: their code runs, and their sweep files are right."""

import tomllib
from pathlib import Path

import pytest

from mkldist.planning.spec_checks import resolve_methods
from mkldist.spec.model import SweepSpec
from tests.docs.pages import COMPLETE, DOCS, blocks, run

# The gallery and the tutorials are executed when the site is built.
ROOMS = ("start", "howto", "explanation", "reference")
PAGES = [page for room in ROOMS for page in (DOCS / room).glob("*.md")]
NAMES = [str(page.relative_to(DOCS)) for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_sweep_files_are_right(page: Path):
    for block in blocks(page):
        if block.language == "toml" and block.is_run:
            resolve_methods(SweepSpec.model_validate(COMPLETE | tomllib.loads(block.code)))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_its_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    run(page, tmp_path)
