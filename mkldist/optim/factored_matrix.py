"""Weighted sums of matrices ``G G'`` with thin factors G, which are never multiplied out.

Products with thin factors are written once, for libraries of the Python array API standard: numpy's
arrays on the host by default.  A device takes a factor when it is first multiplied, and keeps it as
long as the host has it.  Factors for which its memory has no room go through it in blocks of rows.
The processor as a device multiplies the factors where they are.  All sums are float64.
"""

from __future__ import annotations

import abc
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy

from mkldist.core.arrays import Floats, Ints
from mkldist.core.devices import Device


class SymmetricOperator(abc.ABC):
    """A symmetric positive semi-definite (n, n) matrix of which blocks alone are multiplied out."""

    @property
    @abc.abstractmethod
    def diagonal(self) -> Floats:
        """Diagonal of K, (n,)."""

    @abc.abstractmethod
    def __matmul__(self, vectors: Floats) -> Floats:
        """Return ``K v``."""

    @abc.abstractmethod
    def block(self, points: Ints) -> Floats:
        """Return the rows and columns of K of some points, (q, q), in memory of their own."""


class Elsewhere(Protocol):
    """A thin factor whose values may have to be read whenever they are asked for."""

    @property
    def values(self) -> Floats:
        """The factor, (n, r)."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def on(self, points: Ints) -> Thin:
        """Return the rows of some points."""


Thin: TypeAlias = Floats | Elsewhere
"""A thin factor (n, r), or who has it."""


def values_of(factor: Thin) -> Floats:
    """Return a thin factor, in memory as long as somebody has what is returned."""
    return factor if isinstance(factor, np.ndarray) else factor.values


SHARE = 0.5  # of a device's free memory, that factors may take; kernel values need some too
BLOCK_BYTES = 2**28  # of the rows of a factor for which there is no room


class ThinProducts:
    """Products with thin factors G (n, r).

    A `device` multiplies, by default the processor by numpy.  It may keep `room` bytes of factors,
    by default half of those that it has free; none if it is the processor.  `taken` are the bytes
    of factors that it took from the host.
    """

    def __init__(self, device: Device | None = None, room: int | None = None) -> None:
        self.device = device
        self.taken = 0
        self._room = room
        self._kept: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def projected(self, factor: Thin, vectors: Floats) -> Floats:
        """Return ``G'v`` for (n,) or (n, R) vectors."""
        return self._host(self._project(factor, self._there(vectors)))

    def spread(self, factor: Thin, coefficients: Floats) -> Floats:
        """Return ``G c`` for (r,) or (r, R) coefficients."""
        return self._host(self._spread(factor, self._there(coefficients)))

    def squares(self, factor: Thin, vectors: Floats) -> Floats:
        """Return ``||G'v||^2`` of (n,) or (n, R) vectors, () or (R,)."""
        projected = self._project(factor, self._there(vectors))
        return self._host(self._xp.sum(projected * projected, axis=0))

    def times(self, factors: Sequence[Thin], weights: Floats, vectors: Floats) -> Floats:
        """Return ``sum_s w_s G_s G_s'v`` for (n,) or (n, R) vectors."""
        own = self._there(vectors)
        total = self._xp.zeros_like(own)
        for weight, factor in zip(weights.tolist(), map(self._at_hand, factors), strict=True):
            total += self._spread(factor, weight * self._project(factor, own))
        return self._host(total)

    def block(self, factors: Sequence[Thin], roots: Floats, points: Ints) -> Floats:
        """Return rows and columns of ``sum_s (c_s G_s)(c_s G_s)'``, (q, q), for c `roots` (S,).

        The factors, at least one, stand side by side: each product of its own would write all
        entries.
        """
        rows = [self._rows(factor, points) for factor in factors]
        for part, root in zip(rows, roots.tolist(), strict=True):
            part *= root
        columns = self._joined(rows, axis=1)
        return self._host(self._xp.matmul(columns, columns.T))

    def _at_hand(self, factor: Thin) -> Thin:
        """Return a factor that several products read once: its values, unless a device has them."""
        kept = not self._in_place and self._whole(factor) is not None
        return factor if kept else values_of(factor)

    @property
    def _in_place(self) -> bool:
        """True if factors are multiplied where they are."""
        return self.device is None or (self._room is None and self.device.on_processor)

    def _project(self, factor: Thin, vectors: Any) -> Any:
        """Return ``G'v`` where the vectors are."""
        parts = (self._xp.matmul(part.T, vectors[rows, ...]) for rows, part in self._parts(factor))
        total = next(parts)
        for part in parts:
            total = total + part
        return total

    def _spread(self, factor: Thin, coefficients: Any) -> Any:
        """Return ``G c`` where the coefficients are."""
        parts = [self._xp.matmul(part, coefficients) for _, part in self._parts(factor)]
        return self._joined(parts, axis=0)

    def _parts(self, factor: Thin) -> Iterator[tuple[slice, Any]]:
        """Yield the rows of a factor, all at once or in blocks, where they are multiplied."""
        n, columns = factor.shape
        if (whole := self._whole(factor)) is not None:
            yield slice(0, n), whole
            return
        values = values_of(factor)
        step = max(1, BLOCK_BYTES // (8 * max(columns, 1)))
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            self.taken += values[rows].nbytes
            yield rows, self._there(values[rows])

    def _rows(self, factor: Thin, points: Ints) -> Any:
        """Return a copy of some rows of a factor, where they are multiplied."""
        whole = self._whole(factor)
        if self.device is None or whole is None:
            return self._there(values_of(factor)[points])
        places = self._xp.asarray(points, dtype=self._xp.int64, device=self.device.place)
        return self._xp.take(whole, places, axis=0)

    def _whole(self, factor: Thin) -> Any:
        """Return a factor where it is multiplied; None if there is no room for it."""
        if self.device is None:
            return values_of(factor)
        if self._in_place:
            return self.device.seen(values_of(factor))
        reference, own = self._kept.get(id(factor), (None, None))
        if reference is not None and reference() is factor:
            return own
        if self._room is None:
            free = self.device.free_bytes
            self._room = None if free is None else int(SHARE * free)
        used = sum(own.shape[0] * own.shape[1] for _, own in self._kept.values()) * 8
        if self._room is not None and used + 8 * factor.shape[0] * factor.shape[1] > self._room:
            return None
        place, kept, values = id(factor), self._kept, values_of(factor)
        own = self.device.array(values)
        kept[place] = weakref.ref(factor, lambda _: kept.pop(place, None)), own
        self.taken += values.nbytes
        return own

    @property
    def _xp(self) -> Any:
        return np if self.device is None else self.device.xp

    def _joined(self, parts: list[Any], axis: int) -> Any:
        if len(parts) == 1:
            return parts[0]
        return (np.concatenate if self.device is None else self._xp.concat)(parts, axis=axis)

    def _there(self, values: Floats) -> Any:
        return values if self.device is None else self.device.array(values)

    def _host(self, values: Any) -> Floats:
        return values if self.device is None else self.device.host(values)


ON_HOST = ThinProducts()
"""Products by numpy on the processor."""


FEW_POINTS = 1000  # of an operator that may be multiplied out
SIDE_BY_SIDE = 4000  # columns of factors that are multiplied out at once


@dataclass(frozen=True, eq=False)
class RowsOf:
    """Some rows of a thin factor that is elsewhere."""

    factor: Elsewhere
    points: Ints  # (q,)

    @property
    def values(self) -> Floats:
        """The rows, (q, r)."""
        return self.factor.values[self.points]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.points), self.factor.shape[1]

    def on(self, points: Ints) -> Thin:
        """Return some of the rows."""
        return RowsOf(self.factor, self.points[points])


@dataclass(frozen=True, eq=False)
class FactoredMatrix(SymmetricOperator):
    """The operator ``K = sum_s w_s G_s G_s' + ridge I``; sums of such operators are such ones.

    A product with a vector takes ``2 n sum_s r_s`` multiplications.  The factors are shared with
    their owner, so that a sum takes no memory of its own.  Those that are elsewhere are asked for
    one after the other.
    """

    weights: Floats  # (S,), weights w; none is negative where K is to be positive semi-definite
    factors: Sequence[Thin]
    diagonals: Floats  # (S, n), diagonals of ``G_s G_s'``
    n_points: int  # number n of rows
    ridge: float | Floats = 0.0  # what is added to the diagonal
    products: ThinProducts = ON_HOST  # what multiplies the factors

    @property
    def n_columns(self) -> int:
        """Columns of all factors together."""
        return sum(factor.shape[1] for factor in self.factors)

    @property
    def diagonal(self) -> Floats:
        """Diagonal of K, (n,)."""
        return self.weights @ self.diagonals + self.ridge

    def __matmul__(self, vectors: Floats) -> Floats:
        """Return ``K v`` for (n,) or (n, R) vectors."""
        total: Floats = (self.ridge * vectors.T).T
        total += self.products.times(self.factors, self.weights, vectors)
        return total

    def on(self, points: Ints) -> FactoredMatrix:
        """Return the operator on some points, in rows of the factors of its own."""
        return replace(
            self,
            factors=[
                f[points] if isinstance(f, np.ndarray) else f.on(points) for f in self.factors
            ],
            diagonals=self.diagonals[:, points],
            n_points=len(points),
            ridge=self.ridge[points] if isinstance(self.ridge, np.ndarray) else self.ridge,
        )

    def block(self, points: Ints) -> Floats:
        """Return the rows and columns of K of some points, (q, q)."""
        total: Floats | None = None
        for sign in (1.0, -1.0):
            own = np.flatnonzero(np.sign(self.weights) == sign).tolist()
            for some in self._side_by_side(own):  # each product writes all entries
                factors, roots = [self.factors[m] for m in some], np.sqrt(abs(self.weights[some]))
                product = self.products.block(factors, roots, points)
                product *= sign
                total = product if total is None else np.add(total, product, out=total)
        if total is None:
            total = np.zeros((len(points), len(points)))
        np.einsum("ii->i", total)[...] += np.broadcast_to(self.ridge, self.n_points)[points]
        return total

    def _side_by_side(self, chosen: Sequence[int]) -> Iterator[list[int]]:
        """Yield some of the factors, of many columns together."""
        ends = np.cumsum([self.factors[s].shape[1] for s in chosen], dtype=np.intp)
        group = ends // SIDE_BY_SIDE
        for number in np.unique(group).tolist():
            yield [chosen[i] for i in np.flatnonzero(group == number).tolist()]

    def plus(self, step: float, other: FactoredMatrix) -> FactoredMatrix:
        """Return ``K + step other``; a factor that both have, the same array, is kept once."""
        weights: dict[int, float] = {}
        parts: dict[int, tuple[Thin, Floats]] = {}
        for scale, K in ((1.0, self), (step, other)):
            for weight, factor, diagonal in zip(K.weights, K.factors, K.diagonals, strict=True):
                weights[id(factor)] = weights.get(id(factor), 0.0) + scale * float(weight)
                parts[id(factor)] = factor, diagonal
        factors, diagonals = zip(*parts.values(), strict=True) if parts else ((), ())
        return FactoredMatrix(
            np.array(list(weights.values())),
            factors,
            np.array(diagonals).reshape(len(factors), self.n_points),
            self.n_points,
            self.ridge + step * other.ridge,
            self.products,
        )


Gram: TypeAlias = Floats | FactoredMatrix
"""A symmetric (n, n) matrix, or the operator."""


def moved(K: Gram, step: float, change: Gram) -> Gram:
    """Return ``K + step change`` of two matrices or of two operators."""
    match K, change:
        case np.ndarray(), np.ndarray():
            return np.asarray(K + step * change)
        case FactoredMatrix(), FactoredMatrix():
            return K.plus(step, change)
        case _:
            raise TypeError("an operator and a matrix have no sum")


def best_form(K: Gram) -> Gram:
    """Return the form of K in which linear systems with it are solved best.

    An operator of few points and at least as many columns is multiplied out: its matrix takes no
    more memory, and its factorisation loses no digits to conjugate gradients.
    """
    if isinstance(K, FactoredMatrix) and K.n_points <= min(FEW_POINTS, K.n_columns):
        return K.block(np.arange(K.n_points))
    return K


def ridged(K: Gram, ridge: float) -> Gram:
    """Return ``K + ridge I``."""
    if isinstance(K, FactoredMatrix):
        return replace(K, ridge=K.ridge + ridge)
    return np.asarray(K + ridge * np.eye(len(K)))


def scaled(K: Gram, factor: float) -> Gram:
    """Return ``factor K``, of a matrix in its place."""
    if isinstance(K, FactoredMatrix):
        return replace(K, weights=factor * K.weights, ridge=factor * K.ridge)
    K *= factor
    return K


def centred_inner(K: FactoredMatrix, L: FactoredMatrix) -> float:
    """Return ``<H K H, L>_F`` with ``H = I - 11'/n``.

    Of two thin factors it is ``||(H G)' F||_F^2``: no matrix of all points is made.
    """
    total, n = 0.0, K.n_points
    ridges = [np.broadcast_to(one.ridge, n) for one in (K, L)]
    for one, ridge, others in ((K, ridges[1], L.factors), (L, ridges[0], ())):
        for weight, factor in zip(one.weights.tolist(), map(values_of, one.factors), strict=True):
            centred = factor - factor.mean(axis=0)
            total += weight * float(np.einsum("nr,nr,n->", centred, centred, ridge))
            for other, thin in zip(L.weights.tolist(), others, strict=False):
                total += weight * other * float(K.products.squares(centred, values_of(thin)).sum())
    both = float(ridges[0] @ ridges[1]) * (1.0 - 2.0 / n)
    return total + both + float(ridges[0].sum() * ridges[1].sum()) / n**2


def diagonal_of(K: Floats | SymmetricOperator) -> Floats:
    """Return the diagonal of a matrix or of an operator, (n,)."""
    return K.diagonal if isinstance(K, SymmetricOperator) else np.ascontiguousarray(np.diagonal(K))


def on_points(K: Gram, points: Ints) -> Gram:
    """Return a matrix or an operator on some points, in memory of its own."""
    return K.on(points) if isinstance(K, FactoredMatrix) else block_of(K, points)


def block_of(K: Gram, points: Ints) -> Floats:
    """Return the rows and columns of some points of a matrix or of an operator, (q, q)."""
    if isinstance(K, FactoredMatrix):
        return K.block(points)
    return np.asarray(K[np.ix_(points, points)])


COLUMNS = 600  # most columns of the preconditioner
TINY = float(np.finfo(np.float64).tiny)
STEPS = 200  # most conjugate gradient steps of a solution


class ThinSystem:
    """Systems with ``H = diag(D) + sum_s w_s G_s G_s'``, by preconditioned conjugate gradients.

        min_x  1/2 x'H x + g'x   s.t.  1'x = 0

    The preconditioner keeps the diagonal and the heaviest columns F of the weighted factors,

        P = diag(D) + F F' <= H,     P^-1 = D^-1 - D^-1 F (I + F'D^-1 F)^-1 F'D^-1,

    those of the largest ``f'D^-1 f``; of a pivoted Cholesky factor these are the first ones, which
    hold most of its trace.  Where all columns are few, P is H and one step suffices.

    On vectors of sum zero, every column of F may be shifted by a multiple of 1.  The shifts with
    ``1'D^-1 F = 0`` make ``P^-1 1 = D^-1 1``, without the cancellation of nearly constant kernels.

    Of a positive `diagonal` D (n,), `weights` w (S,) and `factors` G, each (n, r_s) or elsewhere.
    `steps` counts conjugate gradient steps of all solutions.
    """

    def __init__(
        self,
        diagonal: Floats,
        weights: Floats,
        factors: Sequence[Thin],
        products: ThinProducts = ON_HOST,
    ) -> None:
        self._diagonal, self._weights, self._factors = diagonal, weights, factors
        self._products = products
        self._root = 1.0 / np.sqrt(diagonal)
        with np.errstate(over="ignore", invalid="ignore"):
            self._F = self._heaviest()
            capacity = products.projected(self._F, self._F)
        if not np.isfinite(capacity).all():  # the diagonal alone preconditions
            self._F, capacity = self._F[:, :0], np.empty((0, 0))
        self._capacity = _factorised(capacity)
        self._of_ones = (self._root**2)[:, None]
        self.steps = 0

    def __matmul__(self, vectors: Floats) -> Floats:
        """Return ``H v`` for (n,) or (n, R) vectors."""
        total: Floats = (self._diagonal * vectors.T).T
        total += self._products.times(self._factors, self._weights, vectors)
        return total

    def preconditioned(self, gradient: Floats) -> Floats:
        """Return the minimiser that P has in place of H, up to its sign, (n,)."""
        return self._balanced(gradient[:, None])[0][:, 0]

    def minimiser(self, gradients: Floats, share: float) -> Floats:
        """Return x, as far as conjugate gradients take the norm of the residual to a share.

        `gradients` (n,) or (n, R) are each solved for by conjugate gradients of their own; `share`
        is that of the first residual, in the norm of P^-1, at which to stop.
        """
        residual = gradients.reshape(len(gradients), -1).copy()
        x = np.zeros_like(residual)
        z, shift = self._balanced(residual)
        residual -= shift
        p, rho = -z, _dots(residual, z)
        enough = share**2 * np.maximum(rho, 0.0)
        for _ in range(STEPS):
            product = self @ p
            curvature = _dots(p, product)
            going = (rho > enough) & (curvature > 0.0)
            if not going.any():
                break
            self.steps += 1
            length = np.divide(rho, curvature, out=np.zeros_like(rho), where=going)
            x += length * p
            residual += length * product
            z, shift = self._balanced(residual)
            residual -= shift  # it would drown what is left
            last, rho = rho, _dots(residual, z)
            p = np.divide(rho, last, out=np.zeros_like(rho), where=going) * p - z
        x -= x.mean(axis=0)
        return x.reshape(gradients.shape)

    def _balanced(self, residual: Floats) -> tuple[Floats, Floats]:
        """Return ``P^-1 (residual - 1 b')`` with columns of sum zero, and b (R,)."""
        solved = self._inverse(residual)
        shift = solved.sum(axis=0) / self._of_ones.sum()
        return solved - self._of_ones * shift, shift

    def _inverse(self, vectors: Floats) -> Floats:
        """Return ``P^-1 v`` for (n, R) vectors."""
        scaled = self._root[:, None] * vectors
        solved = scipy.linalg.cho_solve(self._capacity, self._products.projected(self._F, scaled))
        scaled -= self._products.spread(self._F, solved)
        return self._root[:, None] * scaled

    def _heaviest(self) -> Floats:
        """Return ``D^-1/2 F`` for the heaviest columns of ``sqrt(w_s) G_s``, shifted, (n, k)."""
        inverse = self._root**2
        masses = [
            weight * np.einsum("nr,nr,n->r", factor, factor, inverse)
            for weight, factor in zip(self._weights, map(values_of, self._factors), strict=True)
        ]
        every = np.concatenate([np.empty(0), *masses])
        heavy = every >= TINY
        heavy[np.argsort(-every, kind="stable")[COLUMNS:]] = False  # of equal ones too
        places = np.split(heavy, np.cumsum([len(mass) for mass in masses])[:-1])
        kept = [
            (np.sqrt(weight) * self._root)[:, None] * values_of(factor)[:, place]
            for weight, factor, place in zip(self._weights, self._factors, places, strict=False)
            if place.any()
        ]
        scaled = np.concatenate([np.empty((len(self._root), 0)), *kept], axis=1)
        unit = self._root / np.linalg.norm(self._root)
        scaled -= np.outer(unit, unit @ scaled)
        return scaled


def _dots(left: Floats, right: Floats) -> Floats:
    """Return the inner products of columns, (R,)."""
    products: Floats = np.einsum("nr,nr->r", left, right)
    return products


def _factorised(products: Floats) -> tuple[Floats, bool]:
    """Return the Cholesky factor of ``I + F'F``, or of ``c I + F'F`` where rounding asks for c > 1.

    The preconditioner stays positive definite with any such c.
    """
    ridge = 1.0
    while True:
        try:
            ridged = products + ridge * np.eye(len(products))
            factor, lower = scipy.linalg.cho_factor(ridged, lower=True, overwrite_a=True)
            return factor, lower
        except scipy.linalg.LinAlgError:
            ridge *= 100.0
