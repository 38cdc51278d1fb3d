"""The line about the dashboard, with and without the package that draws it."""

from __future__ import annotations

import pytest

from mkldist.run import sweep as dashboard
from mkldist.run.sweep import dashboard_line

LINK = "http://127.0.0.1:8787/status"


@pytest.mark.parametrize("own", [True, False])
def test_the_address_is_shown(own):
    assert dashboard_line(LINK, own=own) == f"dashboard: {LINK}"


def test_without_bokeh_the_line_says_what_installs_it(monkeypatch):
    monkeypatch.setattr(dashboard, "find_spec", lambda name: None)
    assert "pip install 'mkldist[dashboard]'" in dashboard_line(LINK, own=True)
    assert LINK in dashboard_line(LINK, own=False)  # that scheduler has packages of its own
