"""An accelerator against the compiled loops of the processors that are free."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

import mkldist
from mkldist.bank.passes import answer
from mkldist.bank.requests import Quadratic
from mkldist.core.devices import CPU, device_named
from mkldist.errors import ConvergenceWarning, SpecError
from tests.benchmarks.many_points import WIDTHS, bank_of, points
from tests.benchmarks.measuring import Measured, named, timed

DEVICE = "cuda"
N_POINTS = 20_000  # of a pass, with 50 kernels
N_RECOMPUTED = 5_000  # of a solution whose passes recompute the kernels
N_FACTORED = 50_000  # of a solution on factors


def accelerator(data_dir: Path | None) -> Iterator[Measured]:
    """Pass over 50 Gaussians, and solve Level on them, with an accelerator and without one."""
    try:
        device_named(DEVICE, "accelerator")
    except SpecError as error:
        raise click.ClickException(str(error)) from error
    yield _passes()
    yield _solutions("recompute", N_RECOMPUTED)
    yield _solutions("factors", N_FACTORED)


def _passes() -> Measured:
    """Compare the quadratic forms of a vector with all kernels."""
    x, y = points(N_POINTS)
    seconds, forms = {}, {}
    for device in (DEVICE, CPU):
        answer(
            bank_of(x[:300], WIDTHS, backend="recompute", device=device).view.bank,
            [Quadratic(y[:300])],
        )
        bank = bank_of(x, WIDTHS, backend="recompute", device=device).view.bank
        seconds[device], [forms[device]] = timed(lambda b=bank: answer(b, [Quadratic(y)]))
    apart = float(np.max(np.abs(forms[DEVICE] - forms[CPU]) / forms[CPU]))
    work = f"a pass over 50 Gaussians on {N_POINTS} points"
    return Measured(work, seconds[DEVICE], "faster", seconds[CPU], note=f"apart {apart:.1e}")


def _solutions(backend: str, n: int) -> Measured:
    """Compare solutions of Level, with all that they need from the points on."""
    seconds, found = {}, {}
    for device in (DEVICE, CPU):
        _solved(300, backend, device)  # compiles
        seconds[device], found[device] = timed(lambda d=device: _solved(n, backend, d))
    gaps = f"gaps {found[DEVICE].gap:.4f} and {found[CPU].gap:.4f}"
    work = f"Level, {backend}, {n} points, 50 Gaussians"
    return Measured(work, seconds[DEVICE], "faster", seconds[CPU], note=gaps)


def _solved(n: int, backend: str, device: str) -> mkldist.Solution:
    x, y = points(n)
    with warnings.catch_warnings(), bank_of(x, WIDTHS, backend=backend, device=device) as bank:
        warnings.simplefilter("ignore", ConvergenceWarning)  # the note has the gaps
        return mkldist.solve("level", bank, y, tol=0.01, C=n / 4)


ROWS = named(accelerator)
