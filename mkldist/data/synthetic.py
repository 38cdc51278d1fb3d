"""Synthetic data sets, drawn from a seed; one seed gives the same data on every machine.

References
----------
L. Breiman, J. Friedman, R. Olshen, C. Stone, Classification and Regression Trees, 1984 (waveform).
L. Breiman, Bias, variance, and arcing classifiers, Technical report 460, Statistics Department,
University of California, Berkeley, 1996 (ringnorm, twonorm).
J. Friedman, Multivariate adaptive regression splines, Annals of Statistics 19, 1991 (friedman1).
"""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from pydantic import Field, ValidationError, create_model

from mkldist.core.arrays import Floats, Ints
from mkldist.data.checks import numbered_features
from mkldist.data.dataset import RawData
from mkldist.errors import DataError
from mkldist.spec.kinds import Model, check_fits
from mkldist.spec.load import spec_error


@dataclass(frozen=True, eq=False)
class Draw:
    """Points of a generator; their labels are class numbers from 0, or real values."""

    x: Floats
    labels: Ints | Floats
    feature_names: tuple[str, ...] = ()
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)


def two_moons(rng: np.random.Generator, n: int = 200, noise: float = 0.1) -> Draw:
    """Two interleaved half circles of radius 1, plus normal noise."""
    number = _halves(n)
    angle = rng.uniform(0, np.pi, n)
    upper = np.column_stack([np.cos(angle), np.sin(angle)])
    x = np.where(number[:, None] == 0, upper, [1.0, 0.5] - upper)
    return Draw(x + noise * rng.standard_normal((n, 2)), number)


def two_circles(
    rng: np.random.Generator, n: int = 200, noise: float = 0.05, factor: float = 0.5
) -> Draw:
    """Circles of radius 1 (class 1) and, inside it, `factor` (class 2), plus normal noise."""
    number = _halves(n)
    angle = rng.uniform(0, 2 * np.pi, n)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    x = np.where(number[:, None] == 0, 1.0, factor) * circle
    return Draw(x + noise * rng.standard_normal((n, 2)), number)


def star(
    rng: np.random.Generator,
    n: int = 200,
    noise: float = 0.0,
    points: int = 5,
    inner: float = 0.5,
    gap: float = 0.0,
) -> Draw:
    """Points of [-1, 1]² outside (class 1) and inside (class 2) a star, half of n each.

    The star has its `points` tips on the unit circle, the first above the centre, and its
    notches at radius `inner`; `noise` is the standard deviation of normal noise on the points.
    No point lies between the star and the star shrunk by the share `gap` of its size.
    """
    number = _halves(n)
    kept: list[list[Floats]] = [[], []]
    counts = [0, 0]
    wanted = np.bincount(number, minlength=2)
    while any(counts < wanted):
        square = rng.uniform(-1, 1, (2 * n + 16, 2))
        outside = square[~_inside_star(square, points, inner)]
        inside = square[_inside_star(square / (1.0 - gap), points, inner)]
        for which, chosen in enumerate((outside, inside)):
            kept[which].append(chosen)
            counts[which] += len(chosen)
    x = np.concatenate([np.concatenate(kept[c])[: wanted[c]] for c in (0, 1)])
    return Draw(x + noise * rng.standard_normal((n, 2)), number)


def _inside_star(x: Floats, points: int, inner: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of the (n, 2) points in the star, by folding the plane onto half a tip."""
    half = np.pi / points
    angle = np.arctan2(x[:, 0], x[:, 1])
    folded = np.abs((angle + half) % (2 * half) - half)
    radius = np.hypot(x[:, 0], x[:, 1])
    across, along = radius * np.sin(folded), radius * np.cos(folded)
    notch = inner * np.array([np.sin(half), np.cos(half)])
    return np.asarray(across * (1.0 - notch[1]) + along * notch[0] <= notch[0])


def ringnorm(rng: np.random.Generator, n: int = 7400, d: int = 20) -> Draw:
    """Class 1 is N(0, 4I), class 2 is N((a, …, a), I) with a = 2/√d (Breiman 1996; d = 20)."""
    number = rng.integers(0, 2, n)
    normal = rng.standard_normal((n, d))
    x = np.where(number[:, None] == 0, 2 * normal, 2 / np.sqrt(d) + normal)
    return Draw(x, number)


def twonorm(rng: np.random.Generator, n: int = 7400, d: int = 20) -> Draw:
    """Class 1 is N((a, …, a), I), class 2 is N(-(a, …, a), I), a = 2/√d (Breiman 1996; d = 20)."""
    number = rng.integers(0, 2, n)
    mean = (1 - 2 * number) * 2 / np.sqrt(d)
    return Draw(mean[:, None] + rng.standard_normal((n, d)), number)


def waveform(rng: np.random.Generator, n: int = 5000) -> Draw:
    """Three classes of 21 features: random convex combinations of two of three waves plus N(0, 1).

    With h1(i) = max(6 - |i - 11|, 0), h2(i) = h1(i - 4) and h3(i) = h1(i + 4), the classes 1, 2, 3
    mix h1 and h2, h1 and h3, h2 and h3 (Breiman et al. 1984).
    """
    i = np.arange(1, 22)
    h1, h2, h3 = (np.maximum(6.0 - np.abs(i - peak), 0.0) for peak in (11, 15, 7))
    first, second = np.array([h1, h1, h2]), np.array([h2, h3, h3])
    number = rng.integers(0, 3, n)
    u = rng.uniform(size=(n, 1))
    x = u * first[number] + (1 - u) * second[number] + rng.standard_normal((n, 21))
    return Draw(x, number)


def mkl_known_support(
    rng: np.random.Generator, n: int = 400, d: int = 20, support: int = 4, noise: float = 0.1
) -> Draw:
    """Two classes that depend on the first `support` of d uniform features on [-1, 1] alone.

    The class is the sign of ``Σ sin(π x_j)`` over the support plus normal noise of standard
    deviation `noise`.  The features are called support_0, … and noise_0, …, and so are the
    feature groups ``support`` and ``noise``.
    """
    x = rng.uniform(-1, 1, (n, d))
    score = np.sin(np.pi * x[:, :support]).sum(axis=1) + noise * rng.standard_normal(n)
    return Draw(x, (score > 0).astype(np.intp), *_named(d, support))


def friedman1(rng: np.random.Generator, n: int = 400, d: int = 10, noise: float = 1.0) -> Draw:
    """Regression on five of d uniform features on [0, 1] (Friedman 1991).

    ``10 sin(π x₀ x₁) + 20 (x₂ - 1/2)² + 10 x₃ + 5 x₄`` plus normal noise of standard deviation
    `noise`.  The features are called support_0, … and noise_0, …, and so are the feature groups
    ``support`` and ``noise``.
    """
    x = rng.uniform(size=(n, d))
    score = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    score += 10 * x[:, 3] + 5 * x[:, 4] + noise * rng.standard_normal(n)
    return Draw(x, score, *_named(d, 5))


def _named(d: int, support: int) -> tuple[tuple[str, ...], dict[str, tuple[int, ...]]]:
    """Return names and groups of d features, of which the label depends on the first `support`."""
    names = [f"support_{j}" for j in range(support)] + [f"noise_{j}" for j in range(d - support)]
    groups = {"support": tuple(range(support)), "noise": tuple(range(support, d))}
    return tuple(names), {name: group for name, group in groups.items() if group}


Generator = Callable[..., Draw]
GENERATORS: dict[str, Generator] = {
    g.__name__: g
    for g in (
        two_moons,
        two_circles,
        star,
        ringnorm,
        twonorm,
        waveform,
        mkl_known_support,
        friedman1,
    )
}


MOST_POINTS = 10**6  # one Gram matrix of so many takes 3.6 TiB
MOST_FEATURES = 21  # of generators without an option d
_NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
KINDS: dict[str, Any] = {
    "n": Annotated[int, Field(ge=4)],
    "d": Annotated[int, Field(ge=1)],
    "noise": _NotNegative,
    "factor": Annotated[float, Field(gt=0, le=1)],
    "points": Annotated[int, Field(ge=3, le=1000)],
    "inner": Annotated[float, Field(ge=0.05, le=1)],
    "gap": Annotated[float, Field(ge=0, le=0.9)],
    "support": Annotated[int, Field(ge=1)],
    "seed": Annotated[int, Field(ge=0)],
}


def generate(name: str, options: Mapping[str, int | float | str], seed: int, where: str) -> RawData:
    """Draw a data set of :data:`GENERATORS`."""
    generator, place = GENERATORS[name], f"{where}: options"
    defaults = {
        p.name: p.default
        for p in inspect.signature(generator).parameters.values()
        if p.default is not inspect.Parameter.empty
    } | {"seed": seed}
    n, d = ({**defaults, "d": defaults.get("d", MOST_FEATURES), **options}[key] for key in "nd")
    if isinstance(n, int) and isinstance(d, int):
        size = f"{place}.{'n' if 'n' in options else 'd'}"
        check_fits(n, 8 * max(d, 1), size, "points", "Draw fewer", most=MOST_POINTS)
    fields: dict[str, Any] = {key: (KINDS[key], value) for key, value in defaults.items()}
    model = create_model(name, __base__=Model, **fields)
    try:
        chosen = model.model_validate(options).model_dump()
    except ValidationError as error:
        first = error.errors()[0]
        option = f"{place}.{first['loc'][0]}"
        wrong = spec_error(first, option, model)
        raise DataError(option, wrong.found, wrong.expected, wrong.hint or "Change it") from None
    if chosen.get("support", 0) > chosen.get("d", np.inf):
        place = f"{where}: options.support"
        found = f"{chosen['support']}"
        raise DataError(place, found, f"at most d = {chosen['d']}", "Raise d or lower support")
    if name == "friedman1" and chosen["d"] < 5:
        raise DataError(f"{where}: options.d", f"{chosen['d']}", "at least 5", "Raise d")
    rng = np.random.default_rng([chosen.pop("seed"), zlib.crc32(name.encode())])
    draw = generator(rng, **chosen)
    given = ", ".join(f"{k}={v}" for k, v in chosen.items())
    real = draw.labels.dtype.kind == "f"
    return RawData(
        labels=draw.labels if real else draw.labels + 1,
        x=draw.x,
        feature_names=draw.feature_names or numbered_features(draw.x.shape[1], "features"),
        groups=draw.groups,
        origin=f"synthetic {name}({given})",
        task="regression" if real else "classification",
    )


def _halves(n: int) -> Ints:
    """Return class numbers: n - n//2 zeros, then n//2 ones."""
    return (np.arange(n) >= n - n // 2).astype(np.intp)
