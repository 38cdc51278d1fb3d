"""Multiple kernel learning over large kernel banks: swept with Dask, certified, kept as xarray.

What is exported here is imported on first use, so that ``import mkldist`` itself takes no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkldist.results.tree import open_results

_EXPORTS = {"open_results": "mkldist.results.tree"}

__all__ = ["open_results"]


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
