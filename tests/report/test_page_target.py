"""Which files a page of results may replace."""

from __future__ import annotations

from importlib.resources import files

import pytest

from mkldist.errors import OutputError
from mkldist.report.page_target import GENERATOR, HEAD, check_target


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
        check_target(tmp_path / name)
    assert (tmp_path / "clinic.toml").read_text() == "precious"


def test_new_pages_own_pages_and_files_to_overwrite_are_taken(tmp_path):
    check_target(tmp_path / "new.html")
    check_target(tmp_path / "new.HTM")
    template = (files("mkldist.report") / "page.html.jinja").read_text()
    (tmp_path / "own.html").write_text(template)
    check_target(tmp_path / "own.html")
    (tmp_path / "mine.html").write_text("precious")
    check_target(tmp_path / "mine.html", overwrite=True)


def test_the_template_has_the_line_by_which_a_page_is_recognised():
    assert GENERATOR in (files("mkldist.report") / "page.html.jinja").read_text()[:HEAD]
