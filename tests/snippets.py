"""Python in the first lines of sweep files, and running it on what their small commands leave."""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import xarray as xr

PLACE = "     "  # of code in a comment, after its sign


def code_blocks(text: str) -> Iterator[str]:
    """Yield the Python in the first lines of a sweep file; commands and tables are no Python."""
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        is_code = line.startswith(f"#{PLACE}") and (block or not line[6:].startswith(" "))
        if is_code:
            block.append(line.removeprefix(f"#{PLACE}"))
        elif block:
            if not block[0].startswith("mkldist "):
                yield "\n".join(block)
            block = []
        if not line.startswith("#"):
            return


def run_blocks(blocks: Iterable[str], of_data: Iterable[str], given: str) -> list[str]:
    """Run Python on another data set, and return its statements without any finite value.

    `blocks` are of one file, which shares its names; `given` takes the place of data `of_data`.
    """
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    mpl.use("Agg")
    plt.close("all")  # what tests before this one drew
    named = "|".join(map(re.escape, of_data))
    names: dict[str, Any] = {}
    empty = []
    for block in blocks:
        for statement in ast.parse(re.sub(rf'"({named})(?=[/"])', f'"{given}', block)).body:
            said = ast.unparse(statement)
            if isinstance(statement, ast.Expr):
                found = eval(said, names)
                empty += [said] * (not _is_finite(found))
            else:
                exec(said, names)
            lines = [
                line for n in plt.get_fignums() for ax in plt.figure(n).axes for line in ax.lines
            ]
            empty += [said] * any(not np.isfinite(line.get_ydata()).any() for line in lines)
            plt.close("all")
    return empty


def _is_finite(value: object) -> bool:
    """Return False for a number, or an array or tuple of numbers, that holds one that is not."""
    if isinstance(value, tuple):
        return all(map(_is_finite, value))
    if isinstance(value, (float, np.number, xr.DataArray)):
        return bool(np.isfinite(value).all())
    return True
