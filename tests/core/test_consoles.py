"""What users name, and what programs say of failures, is printed as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.table import Table

import mkldist
from mkldist.core.consoles import as_text, standard_error, standard_output

WORDS = "[/red] [bold]a[0] :warning: \\[b]"


def test_brackets_and_colons_are_no_markup(capsys: pytest.CaptureFixture[str]):
    table = Table(WORDS)
    table.add_row(WORDS)
    for content in (WORDS, table):
        standard_output().print(content)
        standard_error().print(content)
        printed = capsys.readouterr()
        for said in (printed.out, printed.err, as_text(content, 80)):
            assert WORDS in said


def test_no_other_module_makes_a_console():
    package = Path(mkldist.__file__).parent
    makers = {file for file in package.rglob("*.py") if "Console(" in file.read_text("utf-8")}
    assert makers == {package / "core" / "consoles.py"}
