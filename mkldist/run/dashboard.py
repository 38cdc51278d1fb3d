"""The line that tells where Dask's dashboard is."""

from __future__ import annotations

from importlib.util import find_spec


def dashboard_line(link: str, *, own: bool) -> str:
    """Return a line with the address of the dashboard, or with what it lacks.

    Parameters
    ----------
    link : str
        Address of the scheduler's dashboard.
    own : bool
        True if the scheduler runs in this process, whose packages then draw the dashboard.
    """
    if own and find_spec("bokeh") is None:
        return "dashboard: none without bokeh; pip install 'mkldist[dashboard]' installs it"
    return f"dashboard: {link}"
