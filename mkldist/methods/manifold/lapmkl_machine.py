"""The z-step of LapMKL with shared coefficients: one machine per choice of kernel weights.

At fixed weights, with ``R = gamma_a K + gamma_i N``, ``N = sum_m d_m K_m L K_m`` and K_l the
labelled rows of K,

    F(alpha, b) = 1/2 alpha'R alpha + L(K_l alpha + b 1),

whose minimum has ``alpha = R^+ K_l'c``, c the residual of the loss.  The dual variables c are thus
the coefficients of PrimalMKL's machine with lam = 1 on ``H = K_l R^+ K_l'``.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from mkldist.bank.requests import Request
from mkldist.core.arrays import Floats
from mkldist.core.counters import Counters
from mkldist.methods.manifold.deformed import Deformation
from mkldist.solvers.primal_newton import PrimalMachine, PrimalPoint
from mkldist.solvers.queries import AT_A_TIME, gram_matrices
from mkldist.solvers.squared_losses import SquaredLoss

RIDGE = 4.0 * np.finfo(np.float64).eps  # of the largest diagonal entry of R


@dataclass(frozen=True, eq=False)
class SharedPoint:
    """Weights, z = (alpha, b), and the matrices of these weights.

    Parameters
    ----------
    d : (M,) float64
        Kernel weights.
    K, R : (n, n) float64
        ``sum_m d_m K_m`` and ``gamma_a K + gamma_i N``.
    alpha, f : (n,) float64
        Coefficients, and ``K alpha``.
    b : float
        Bias, the best one at f.
    r : (l,) float64
        Residual of the loss at f.
    gradient : (n,) float64
        dF/dalpha.
    value, z_gap : float
        F, and the most that a change of z could gain.
    """

    d: Floats
    K: Floats
    R: Floats
    alpha: Floats
    f: Floats
    b: float
    r: Floats
    gradient: Floats
    value: float
    z_gap: float


@dataclass(frozen=True, eq=False)
class SharedMinimum(SharedPoint):
    """Minimum over z at fixed weights.

    Parameters
    ----------
    back : (n, l) float64
        ``R^+ K_l'``, which makes alpha of dual variables.
    H : (l, l) float64
        ``K_l R^+ K_l'``.
    z : PrimalPoint
        The machine's point on H.
    """

    back: Floats
    H: Floats
    z: PrimalPoint


class SharedMachine:
    """Minimise F over z = (alpha, b), for one vector of weights after another.

    Parameters
    ----------
    norms : Deformation
        The two norms, the graph and the labelled points.
    loss : SquaredLoss
        The loss of the labelled points.
    share : float
        Gap of the machine on H, relative to F, at which to stop.
    counters : Counters
        Counts the work.
    """

    def __init__(
        self, norms: Deformation, loss: SquaredLoss, share: float, counters: Counters
    ) -> None:
        self.norms, self.loss, self.counters = norms, loss, counters
        self._machine = PrimalMachine(loss, 1.0, "newton", share, counters)
        self.reaches: dict[int, Floats] = {}
        """Roots of the diagonals of the kernels that were asked for, by kernel."""

    def start(self, d: Floats, n: int) -> Generator[Request, Any, tuple[Floats, Floats]]:
        """Ask for K and R (n, n) at the weights `d` (M,) at which runs begin.

        Runs of other labels and of other gammas begin at the same K and N, which are kept.
        """
        kept, n_kernels = self.norms.kept, len(d)
        if kept is None or not kept.kernels_id or self.norms.gamma_i == 0.0:
            return (yield from self.matrices(d, n))
        key = ("mixture", kept.kernels_id, self.norms.graph_id, d.tobytes())
        rows = kept.known(key)
        if rows is None:
            made = np.zeros((2 * n + n_kernels, n))
            yield from self._add_up(d, made[:n], made[n : 2 * n])
            made[2 * n :] = [self.reaches[m] for m in range(n_kernels)]
            rows = kept.keep(key, made)
        self.reaches.update(enumerate(rows[2 * n :]))
        return rows[:n], self._form(rows[:n], rows[n : 2 * n])

    def matrices(self, d: Floats, n: int) -> Generator[Request, Any, tuple[Floats, Floats]]:
        """Ask for K and R (n, n) at weights `d` (M,)."""
        K, N = np.zeros((n, n)), np.zeros((n, n))
        yield from self._add_up(d, K, N)
        return K, self._form(K, N)

    def _form(self, K: Floats, N: Floats) -> Floats:
        """Return R (n, n) of K and N."""
        R: Floats = self.norms.gamma_a * K + self.norms.gamma_i * N
        return R

    def _add_up(self, d: Floats, K: Floats, N: Floats) -> Generator[Request, Any, None]:
        """Add the kernels at weights `d` (M,) to K (n, n), and ``K_m L K_m`` to N, if it counts."""
        active = np.flatnonzero(d)
        for start in range(0, len(active), AT_A_TIME):
            kernels = active[start : start + AT_A_TIME]
            for m, K_m in zip(kernels, (yield from gram_matrices(kernels)), strict=True):
                self.reaches[int(m)] = np.sqrt(K_m.diagonal())
                K += d[m] * K_m
                if self.norms.gamma_i > 0.0:
                    N += d[m] * self._smoothed(int(m), K_m)
        N[:] = 0.5 * (N + N.T)

    def _smoothed(self, m: int, K_m: Floats) -> Floats:
        """Return ``K_m L K_m`` (n, n), which depends on neither labels nor weights."""
        norms = self.norms

        def make() -> Floats:
            return np.asarray(K_m @ (norms.laplacian @ K_m))

        if norms.kept is None or not norms.kept.kernels_id:
            return make()
        return norms.kept.get(("smoothed", norms.kept.kernels_id, m, norms.graph_id), make)

    def point(
        self, d: Floats, K: Floats, R: Floats, alpha: Floats, inverse: RidgedInverse
    ) -> SharedPoint:
        """Return the point of some coefficients, with the bias that is best for them.

        Parameters
        ----------
        d : (M,) float64
            Kernel weights.
        K, R : (n, n) float64
            The matrices at these weights.
        alpha : (n,) float64
            Coefficients.
        inverse : RidgedInverse
            That of R.
        """
        labelled = self.norms.labelled
        f = K @ alpha
        b = self.loss.best_bias(f[labelled])
        r = self.loss.residual(f[labelled] + b)
        of_norms = R @ alpha
        value = 0.5 * max(float(alpha @ of_norms), 0.0) + self.loss.value(r, b)
        gradient = of_norms - K[:, labelled] @ r
        z_gap = 0.5 * max(float(gradient @ inverse(gradient)), 0.0)
        return SharedPoint(d, K, R, alpha, f, b, r, gradient, value, z_gap)

    def minimum(self, d: Floats, K: Floats, R: Floats, c: Floats) -> SharedMinimum:
        """Return the minimum over z.

        Parameters
        ----------
        d : (M,) float64
            Kernel weights.
        K, R : (n, n) float64
            The matrices at these weights.
        c : (l,) float64
            Dual variables to start from.
        """
        labelled, gamma_a = self.norms.labelled, self.norms.gamma_a
        inverse = RidgedInverse(R)
        if self.norms.gamma_i == 0.0:
            back = np.zeros((len(K), len(labelled)))
            back[labelled, np.arange(len(labelled))] = 1.0 / gamma_a
        else:
            back = inverse(K[:, labelled])
        H = K[labelled] @ back
        H = 0.5 * (H + H.T)
        z = self._machine(H, c)
        at = self.point(d, K, R, back @ z.alpha, inverse)
        return SharedMinimum(**vars(at), back=back, H=H, z=z)


class RidgedInverse:
    """The inverse of a positive semi-definite matrix plus a ridge of the size of rounding.

    The ridge keeps solutions small.  Along eigenvectors of R with tiny eigenvalues, large
    coefficients would change no decision and only cost digits.

    Parameters
    ----------
    R : (n, n) float64
        The matrix; where it is 0, so is the inverse.
    """

    def __init__(self, R: Floats) -> None:
        ridge = RIDGE * float(R.diagonal().max())
        self._factor: Floats | None = None
        while ridge > 0.0 and self._factor is None:
            ridged = R.copy()
            ridged[np.diag_indices_from(R)] += ridge
            try:
                self._factor = scipy.linalg.cholesky(ridged, lower=True, check_finite=False)
            except scipy.linalg.LinAlgError:
                ridge *= 10.0

    def __call__(self, columns: Floats) -> Floats:
        """Return the product of the inverse with `columns` (n, ...)."""
        if self._factor is None:
            return np.zeros_like(columns)
        solved: Floats = scipy.linalg.cho_solve((self._factor, True), columns, check_finite=False)
        return solved
