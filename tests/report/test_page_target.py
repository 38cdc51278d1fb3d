"""Which files a page of results may replace."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from mkldist.errors import OutputError
from mkldist.report.page import Page
from mkldist.report.page_target import (
    GENERATOR,
    HEAD,
    ORIGIN,
    TITLE_END,
    check_target,
    origin_of,
)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("clinic.toml", "clinic.toml: found a name ending in '.toml'; expected .*.html or .htm"),
        ("page", "page: found a name without an ending"),
        ("folder", "folder: found a folder; .* Write .*folder/report.html"),
        ("folder.html", "folder.html: found a folder"),
        ("mine.html", "mine.html: found a file that is no page of mkldist; .*--overwrite"),
    ],
)
def test_what_is_no_page_is_refused_and_kept(name, said, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.html").mkdir()
    for file in ("clinic.toml", "mine.html"):
        (tmp_path / file).write_text("precious")
    with pytest.raises(OutputError, match=said):
        check_target(tmp_path / name, tmp_path)
    assert (tmp_path / "clinic.toml").read_text() == "precious"


def made(path: Path, results: Path) -> Path:
    """Write an empty page of some results."""
    path.write_text(Page("moons & stars", "", [], origin=origin_of(results)).html())
    return path


def test_new_pages_own_pages_and_files_to_overwrite_are_taken(tmp_path):
    check_target(tmp_path / "new.html", tmp_path)
    check_target(tmp_path / "new.HTM", tmp_path)
    own = made(tmp_path / "own.html", tmp_path / "moons")
    check_target(own, tmp_path / "moons")
    (tmp_path / "mine.html").write_text("precious")
    check_target(tmp_path / "mine.html", tmp_path, overwrite=True)


def test_a_page_of_other_results_is_kept_also_where_their_sweep_has_the_same_name(tmp_path):
    other = made(tmp_path / "report.html", tmp_path / "moons")
    said = r"report.html: found a page of other results, of a sweep called 'moons & stars'; .* -o"
    with pytest.raises(OutputError, match=said):
        check_target(other, tmp_path / "moons-rerun")
    check_target(other, tmp_path / "moons-rerun", overwrite=True)


def test_the_template_has_the_lines_by_which_a_page_is_recognised():
    head = (files("mkldist.report") / "page.html.jinja").read_text()[:HEAD]
    assert GENERATOR in head
    assert ORIGIN in head
    assert f"{TITLE_END}</title>" in head
