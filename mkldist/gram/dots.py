"""Products of the entries of many matrices with columns of as many entries."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from mkldist.arrays import Floating, Floats, Ints, read_only
from mkldist.compiled import compiled

ENTRIES, COLUMNS = 512, 64  # of so many columns stay in the processor's second cache
FEW = 4  # columns; of so few, COLUMNS // FEW blocks of ENTRIES stay in that cache


def add_dots(values: Floating, lines: Ints, columns: Floats, sums: Floats) -> None:
    """Add ``values[lines[s]] . columns[r]`` to ``sums[s, r]``.

    A product is the same to the last bit whatever other lines and columns stand beside it.

    Parameters
    ----------
    values : (k, E) float32 or float64
        Entries of matrices; each row is contiguous.
    lines : (s,) intp
        Rows of `values` to use.
    columns : (R, E) float64
        The columns, contiguous.
    sums : (s, R) float64
        Sums to which the products are added; contiguous.
    """
    memory, step = flat(values)
    blocks = COLUMNS // FEW if len(columns) <= FEW else 1
    _add(memory, step, lines, columns, sums, blocks * ENTRIES)


def flat(values: Floating) -> tuple[Floating, int]:
    """Return all entries of rows (k, E) in one dimension, and the distance from row to row.

    Nothing is copied where the entries of a row lie side by side.  The entries cannot be written.
    """
    if values.flags.c_contiguous:
        return read_only(values.reshape(-1)), values.shape[1]
    size = values.itemsize
    if values.strides[1] != size or values.strides[0] < 0:
        values = np.ascontiguousarray(values)
    step = values.strides[0] // size
    shape = ((len(values) - 1) * step + values.shape[1],)
    return as_strided(values, shape, (size,), writeable=False), step


@compiled(fastmath={"reassoc", "contract", "nsz"})
def add_dots_of_one(
    memory: Floating, first: int, starts: Ints, column: Floats, sums: Floats
) -> None:
    """Add ``memory[a : a + e] . column`` with ``a = first + starts[s]`` to ``sums[s]``.

    Four stretches of memory are read side by side.  The last one fills up the last four, so that
    the last bits of a sum do not depend on the others.  They differ from those of
    :func:`add_dots`.  As there, the products of :data:`ENTRIES` entries are added up at a time,
    which keeps the rounding of long sums small.

    Parameters
    ----------
    memory : (E,) float32 or float64
        Entries, as of :func:`flat`; every stretch must lie inside.
    first : int
        Added to all starts.
    starts : (s,) intp
        Where each stretch begins.
    column : (e,) float64
        The column, contiguous.
    sums : (s,) float64
        Sums to which the products are added; contiguous.
    """
    last = len(starts) - 1
    for s in range(0, len(starts), 4):
        i, j, k = min(s + 1, last), min(s + 2, last), min(s + 3, last)
        at, bt = first + starts[s], first + starts[i]
        ct, dt = first + starts[j], first + starts[k]
        for here in range(0, len(column), ENTRIES):
            there = min(here + ENTRIES, len(column))
            a, b = memory[at + here : at + there], memory[bt + here : bt + there]
            c, d = memory[ct + here : ct + there], memory[dt + here : dt + there]
            x = column[here:there]
            ax = bx = cx = dx = 0.0
            for e in range(there - here):
                f = x[e]
                ax += a[e] * f
                bx += b[e] * f
                cx += c[e] * f
                dx += d[e] * f
            ax, bx, cx, dx = ax + sums[s], bx + sums[i], cx + sums[j], dx + sums[k]
            sums[s], sums[i], sums[j], sums[k] = ax, bx, cx, dx


@compiled(fastmath={"reassoc", "contract", "nsz"})
def _add(
    memory: Floating, step: int, lines: Ints, columns: Floats, sums: Floats, n_at_once: int
) -> None:
    """Add the products with rows that begin every `step` entries of memory.

    The loops go through `n_at_once` entries of all lines before they turn to the next entries.
    Four lines are multiplied with two columns at a time: eight sums stay in registers, and memory
    limits the speed.  The last line fills up the last four, and the last column the last two, so
    that all products are computed in one way.  A sum takes :data:`ENTRIES` entries at a time, in
    their order, so that its bits do not depend on `n_at_once` either.
    """
    n_columns, n_entries = columns.shape
    last, right = len(lines) - 1, n_columns - 1
    for start in range(0, n_entries, n_at_once):
        end = min(start + n_at_once, n_entries)
        for first in range(0, n_columns, COLUMNS):
            for s in range(0, len(lines), 4):
                i, j, k = min(s + 1, last), min(s + 2, last), min(s + 3, last)
                at, bt, ct, dt = lines[s] * step, lines[i] * step, lines[j] * step, lines[k] * step
                for p in range(first, min(first + COLUMNS, n_columns), 2):
                    q = min(p + 1, right)
                    for here in range(start, end, ENTRIES):
                        there = min(here + ENTRIES, end)
                        a, b = memory[at + here : at + there], memory[bt + here : bt + there]
                        c, d = memory[ct + here : ct + there], memory[dt + here : dt + there]
                        x, y = columns[p, here:there], columns[q, here:there]
                        ax = bx = cx = dx = ay = by = cy = dy = 0.0
                        for e in range(there - here):
                            f, g = x[e], y[e]
                            ax += a[e] * f
                            bx += b[e] * f
                            cx += c[e] * f
                            dx += d[e] * f
                            ay += a[e] * g
                            by += b[e] * g
                            cy += c[e] * g
                            dy += d[e] * g
                        ax, bx = ax + sums[s, p], bx + sums[i, p]
                        cx, dx = cx + sums[j, p], dx + sums[k, p]
                        ay, by = ay + sums[s, q], by + sums[i, q]
                        cy, dy = cy + sums[j, q], dy + sums[k, q]
                        sums[s, p], sums[i, p], sums[j, p], sums[k, p] = ax, bx, cx, dx
                        sums[s, q], sums[i, q], sums[j, q], sums[k, q] = ay, by, cy, dy
