"""Models of ``[[banks]]`` and ``[[banks.kernels]]``: kernels, their scaling and their storage."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    Field,
    PlainSerializer,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    Strict,
    Tag,
    create_model,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticKnownError

from mkldist.core.devices import CPU
from mkldist.errors import SpecError
from mkldist.kernel_functions import FUNCTIONS, PARAMETERS
from mkldist.kernel_functions.custom import CustomFunction, entry_points
from mkldist.kernel_functions.definition import Kind, Parameter
from mkldist.spec.kinds import (
    LIST,
    NUMBER,
    TABLE,
    TEXT,
    Counts,
    Finite,
    Model,
    Name,
    Positive,
    Sizes,
    argument_shape,
    check_fits,
    either,
    series_shape,
    size_name,
)

DEFAULT = "default"
"""The family of kernels that suits most data."""

PRECOMPUTED = "precomputed"
"""The function of entries that name the Gram matrices of a view."""

REFERENCE = re.compile(r"[\w.]+:[\w.]+")
"""How a function of the user is named."""


MOST_VALUES = 1_000_000  # of a series
VALUE_BYTES = 40  # of a number of Python in a tuple, and in the array that it is taken from
LEAST_EXPONENT = math.log2(1e-150)  # of powers of two; squares of the powers stay in float64


class Range(Model):
    """A series of numbers: ``{start, stop, num, scale}`` or ``{base, exponents}``."""

    start: Finite | None = None
    """First number."""
    stop: Finite | None = None
    """Last number; it belongs to the series."""
    num: int | None = Field(None, ge=1, le=MOST_VALUES)
    """How many numbers."""
    scale: Literal["linear", "log"] = "linear"
    """Equal differences, or equal ratios, between neighbouring numbers."""
    base: Positive | None = None
    """The numbers are powers of this base."""
    exponents: Annotated[list[Finite], Field(min_length=1)] | None = None
    """Exponents of `base`."""

    @field_validator("num", mode="before")
    @classmethod
    def _fits(cls, num: object) -> object:
        if isinstance(num, int):
            try:
                check_fits(num, VALUE_BYTES, "num", "numbers", most=MOST_VALUES)
            except SpecError as error:
                raise ValueError(f"found {error.found}; expected {error.expected}") from None
        return num

    @model_validator(mode="after")
    def _complete(self) -> Range:
        span = None not in (self.start, self.stop, self.num)
        geometric = self.base is not None and self.exponents is not None
        if span == geometric:
            found = ", ".join(sorted(self.model_fields_set)) or "nothing"
            raise ValueError(f"found {found}; expected start, stop and num, or base and exponents")
        if span and self.scale == "log" and min(self.start or 0, self.stop or 0) <= 0:
            raise ValueError("found a log scale from or to 0; expected start and stop above 0")
        for exponent in self.exponents or ():
            if not LEAST_EXPONENT <= exponent * math.log2(self.base or 1.0) <= -LEAST_EXPONENT:
                raise ValueError(
                    f"found {self.base:g} to the power {exponent:g}; expected powers from 1e-150 "
                    f"to 1e150"
                )
        return self

    def values(self) -> tuple[float, ...]:
        """Return the numbers of the series in order."""
        if self.base is not None and self.exponents is not None:
            return tuple(float(self.base**e) for e in self.exponents)
        space = np.geomspace if self.scale == "log" else np.linspace
        return tuple(float(v) for v in space(self.start or 0.0, self.stop or 0.0, self.num or 1))


Series = Annotated[
    Annotated[Positive, Tag(NUMBER)]
    | Annotated[list[Positive], Field(min_length=1), Tag(LIST)]
    | Annotated[Range, Tag(TABLE)]
    | Annotated[Literal["chi2"], Tag(TEXT)],
    either(
        'a number, a list of numbers, {start, stop, num}, {base, exponents}, or "chi2"',
        series_shape,
    ),
]


class RandomSubsets(Model):
    """Random feature subsets, drawn with the sweep's seed."""

    count: int = Field(ge=1)
    """How many subsets."""
    size: int | None = Field(None, ge=1)
    """Features in each subset. By default every subset has a random size, uniform from 1 to all
    features."""


Features = Annotated[
    Annotated[str, Tag(TEXT)] | Annotated[RandomSubsets, Tag(TABLE)],
    either('"all", "each", {count = ...}, or the name of a feature or feature group'),
]


FeatureSets = Annotated[
    Annotated[str, Tag(TEXT)]
    | Annotated[RandomSubsets, Tag(TABLE)]
    | Annotated[list[Features], Field(min_length=1), Tag(LIST)],
    either('"all", "each", {count = ...}, or a list of such and of names of features'),
]
Numbers = Annotated[
    Annotated[Positive, Tag(NUMBER)]
    | Annotated[list[Positive], Field(min_length=1), Tag(LIST)]
    | Annotated[Range, Tag(TABLE)],
    either("a number, a list of numbers, {start, stop, num} or {base, exponents}"),
]
_NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
NotNegative = Annotated[
    Annotated[_NotNegative, Tag(NUMBER)]
    | Annotated[list[_NotNegative], Field(min_length=1), Tag(LIST)],
    either("a number of at least 0 or a list of them"),
]


Argument = Annotated[
    Annotated[str | bool, Tag(TEXT)]
    | Annotated[int | float, Tag(NUMBER)]
    | Annotated[list[str | bool | int | float], Field(min_length=1), Tag(LIST)],
    either("a number, a text, true or false, or a list of them", argument_shape),
]
_KINDS: dict[Kind, Any] = {"positive": Numbers, "not negative": NotNegative, "count": Counts}


def _function_name(name: str) -> str:
    """Return the name of a kernel function unless nothing has it."""
    if name in (*FUNCTIONS, PRECOMPUTED) or REFERENCE.fullmatch(name) or name in entry_points():
        return name
    known = ", ".join(f"'{known}'" for known in (*FUNCTIONS, PRECOMPUTED))
    raise PydanticKnownError("literal_error", {"expected": known})


def _function_shape(value: Any) -> str | None:
    """Return the kind of a value that names a function or is one."""
    return TEXT if isinstance(value, str) else TABLE if callable(value) else None


def _function_identity(function: str | Callable[..., Any]) -> str:
    """Return a text that stands for a function in JSON."""
    if isinstance(function, str):
        return function
    custom = CustomFunction.of(function)
    return f"{custom.label}#{custom.identity}"


Function = Annotated[
    Annotated[str, AfterValidator(_function_name), Tag(TEXT)]
    | Annotated[Callable[..., Any], Tag(TABLE)],
    either('a name in quotes or "package.module:function"', _function_shape),
    PlainSerializer(_function_identity, when_used="json"),
]


class _Function(Model):
    """The function of an entry, the first of its keys."""

    function: Function
    """Kernel function; `mkldist list kernels` shows all. `"precomputed"` is the Gram matrices of a
    view, which `features` names. `"package.module:function"` names one of your own."""


def _parameter(parameter: Parameter) -> Any:
    """Return the field of a parameter, for the functions that take it."""
    takers = [f'`"{name}"`' for name, f in FUNCTIONS.items() if parameter in f.parameters]
    words = f"Of {', '.join(takers)}. {parameter.words}"
    kind = Series if parameter.drawn else _KINDS[parameter.kind]
    return kind | None, Field(None, description=words)


_Parameters = create_model(
    "_Parameters",
    __base__=_Function,
    **{key: _parameter(parameter) for key, parameter in PARAMETERS.items()},
)


class KernelSpec(_Parameters):
    """One ``[[banks.kernels]]`` entry: a kernel function, its parameters and feature subsets.

    The entry stands for one kernel for each combination of values of the parameters and each
    feature subset.  The keys of the parameters are those of the registry of kernel functions.
    """

    relative_widths: Numbers | None = None
    """In place of `widths`, of functions that divide differences of features by them: multiples of
    the spread of each feature subset, the root of the sum of the variances of its features: √d for
    d features after z-scores, for which 1/√2 is scikit-learn's `gamma = "scale"`. For
    `"laplacian-rbf"` it is the sum of the standard deviations, for `"additive"` the largest of
    them. Variances are those of all rows of the data set, test rows too, as
    preprocessing fitted on all of them scales them; labels play no part. Names of kernels show the
    widths."""
    parameters: dict[str, Argument] | None = None
    """Parameters of a function of your own, by name; a list stands for several kernels."""
    features: FeatureSets = "all"
    """Feature subsets: all features together, each feature alone, a feature, a group or a view by
    its name, each of the `"views"` or of the `"groups"`, random subsets, or a list of these."""

    @property
    def label(self) -> str:
        """The name of the function."""
        given = self.function
        return given if isinstance(given, str) else CustomFunction.of(given).label


Family = Literal["default", "xu2008", "suzuki2011", "hao2012", "hao2012-polynomial", "do2009",
                 "do2009-gaussian", "guo2011", "precomputed"]  # fmt: skip


class KernelChoice(Model):
    """What chooses the kernels of a bank: the named family of a paper, or a list of entries."""

    family: Family | None = None
    """`"default"`, which suits most data, or the kernels of a paper; `mkldist show NAME` writes a
    family out. `"precomputed"` takes the Gram matrices of a data set with `grams`, or those of all
    views with it."""
    kernels: Annotated[tuple[KernelSpec, ...], Strict(False)] = ()
    """Kernels in place of a family, as `[[banks.kernels]]` entries."""
    n_kernels: Sizes | None = None
    """Use only this many of the kernels, the first in an order that is drawn with the sweep's seed.
    A list makes a bank of each size, each within the next larger one, named by the bank and the
    size, as `NAME-100`."""

    @model_validator(mode="after")
    def _family_or_kernels(self) -> KernelChoice:
        if (self.family is None) == (not self.kernels):
            if self.family is None:
                raise ValueError(
                    'found neither family nor kernels; expected family = "xu2008" or the like, '
                    "or [[banks.kernels]] entries"
                )
            raise ValueError("found family and kernels; expected one of them")
        given = [entry.function for entry in self.kernels] + [self.family]
        if self.n_kernels is not None and PRECOMPUTED in given:
            raise ValueError(
                f'found n_kernels and "{PRECOMPUTED}" kernels; expected kernels of features, '
                "among which kernels are drawn"
            )
        return self

    @property
    def where(self) -> str:
        """The kernels, for messages."""
        return "kernels"

    def place(self, number: int) -> str:
        """Return the place of an entry, for messages."""
        return f"kernels[{number}]"

    @property
    def imported(self) -> dict[int, str]:
        """Functions of the user that entries name, by the numbers of the entries."""
        known = (*FUNCTIONS, PRECOMPUTED)
        named = ((number, entry.function) for number, entry in enumerate(self.kernels))
        return {n: name for n, name in named if isinstance(name, str) and name not in known}


FACTORS = "factors"
"""The backend that keeps thin factors of kernels."""

Normalisation = Literal["none", "trace", "cosine", "centre", "variance", "multiplicative variance"]
Normalisations = Annotated[
    Annotated[Normalisation, Tag(TEXT)]
    | Annotated[tuple[Normalisation, ...], Strict(False), Tag(LIST)],
    either("the name of a normalisation or a list of them"),
]
Allowed = Annotated[
    Annotated[tuple[Literal["factors"], ...], Strict(False), Tag(LIST)],
    either('a list of backends: ["factors"]'),
]


class _Named(Model):
    """The name of a bank, the first of its keys."""

    name: Name | None = None
    """Name of the bank in the results. By default the name of its family."""


class BankSpec(KernelChoice, _Named):
    """One ``[[banks]]`` entry: the named family of a paper, or a list of kernels."""

    normalisation: Normalisations = "variance"
    """Scaling of every kernel on the points that a method sees, or several in order: `"trace"` to
    trace 1; `"cosine"` to k(x, x) = 1; `"centre"` to mean zero in feature space; `"variance"`, or
    `"multiplicative variance"`, to variance 1 in feature space, under which a good C hardly depends
    on the number of rows."""
    dtype: Literal["auto", "float32", "float64"] = "auto"
    """Precision of stored Gram matrices. `"auto"` stores float64, and float32 above 1 GiB where no
    method has a tolerance below 1e-5. Arithmetic is in float64; gaps are those of the matrices as
    stored. Factors are in float64 unless this is `"float32"`, which some methods take; their
    `exact_gap` is to the kernels in float64."""
    backend: Literal["auto", "memory", "mmap", "stream", "recompute", "sharded", "factors"] = "auto"
    """How workers read kernels: loaded into memory; mapped from a file in the node's cache; read
    from the store at every pass; never stored and computed inside every pass; or never stored and
    divided among all workers, which compute their kernels once. `"auto"` maps a bank that several
    tasks share; it loads any other if half of a worker's memory holds it, and otherwise reads it at
    every pass. `"factors"`, for many points or linear kernels of few features, has a thin factor of
    each kernel, for methods that can solve on these; factors grow until the `exact_gap` to the
    kernels reaches `tol`."""
    allow: Allowed = ()
    """`["factors"]` lets `backend = "auto"` choose factors for a data set on which the matrices of
    some solver on the bank do not fit in memory: the sweep's `memory`, or else that of this
    machine. One solver has all of it there, so that the choice is the same for any workers and
    threads."""
    rank: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Most columns of a factor, for `backend = "factors"`. By default the memory in which one is
    made is the only limit."""
    tolerance: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Share of a kernel's trace with which its factor ends before 100 columns, unless a solution
    asks for more; 0.001 by default."""

    device: str = Field(CPU, min_length=1)
    """What computes kernels in passes, and those of factors: `"cpu"`, the compiled loops; `"cuda"`,
    `"cuda:1"` or `"xpu"`, a device of PyTorch; or `"torch:cpu"`, PyTorch on the processor. Others
    than `"cpu"` need `backend = "recompute"` or `"factors"`, and kernels with `gaussian`,
    `polynomial`, `linear` or `laplacian-rbf`."""

    _series: str = PrivateAttr("")

    @model_validator(mode="after")
    def _fits_together(self) -> BankSpec:
        if (self.backend == "recompute" or self.may_be_factors) and self.family == "precomputed":
            raise ValueError(
                f'found {self._backend_words} and family = "precomputed"; expected kernels '
                "of features, which can be computed again"
            )
        if self.backend == "recompute" and self.dtype == "float32":
            raise ValueError(
                f'found backend = "{self.backend}" and dtype = "float32"; expected float64, in '
                "which kernels are computed: none is stored"
            )
        if self.device != CPU and self.backend not in ("recompute", FACTORS):
            raise ValueError(
                f'found device = "{self.device}" and backend = "{self.backend}"; expected '
                f'backend = "recompute" or "{FACTORS}", whose kernels are computed in passes'
            )
        self._check_factors()
        if "cosine" in self.normalisations[1:]:
            raise ValueError("found cosine after another normalisation; expected it first")
        return self

    def _check_factors(self) -> None:
        """Refuse the keys of factors without these, and centred kernels."""
        if self.allow and self.backend != "auto":
            raise ValueError(
                f'found allow = ["{FACTORS}"] and backend = "{self.backend}"; expected '
                'backend = "auto", which chooses, or no allow'
            )
        for key, value in (("rank", self.rank), ("tolerance", self.tolerance)):
            if value is not None and not self.may_be_factors:
                raise ValueError(
                    f'found {key} = {value:g} and backend = "{self.backend}"; expected '
                    f'backend = "{FACTORS}", or no {key}'
                )
        if self.may_be_factors and "centre" in self.normalisations:
            raise ValueError(
                f'found {self._backend_words} and normalisation = "centre"; expected "trace", '
                '"cosine", "variance" or "none"'
            )

    @model_serializer(mode="wrap")
    def _with_normalisation(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Tell the normalisation also without defaults: results outlive a change of this one."""
        return {**handler(self), "normalisation": self.normalisation}

    @property
    def may_be_factors(self) -> bool:
        """True if thin factors stand for the kernels, or may do so."""
        return self.backend == FACTORS or FACTORS in self.allow

    @property
    def on_factors(self) -> BankSpec:
        """The same bank with thin factors for its kernels."""
        return self.model_copy(update={"backend": FACTORS, "allow": ()})

    @property
    def _backend_words(self) -> str:
        """What the sweep file says of factors, or else the backend."""
        return f'allow = ["{FACTORS}"]' if self.allow else f'backend = "{self.backend}"'

    @property
    def label(self) -> str:
        """The name under which results are stored."""
        return self.name or self.family or "bank"

    @property
    def series(self) -> str:
        """The label in the sweep file: that of all banks of one list of sizes."""
        return self._series or self.label

    @property
    def sized(self) -> tuple[BankSpec, ...]:
        """A bank of each size of the list, or the bank itself if there is no list."""
        if not isinstance(self.n_kernels, list):
            return (self,)
        found = []
        for size in self.n_kernels:
            name = size_name(self.label, size)
            bank = self.model_copy(update={"name": name, "n_kernels": size})
            bank._series = self.label
            found.append(bank)
        return tuple(found)

    @property
    def where(self) -> str:
        """The bank, for messages."""
        return f"banks.{self.series}"

    def place(self, number: int) -> str:
        """Return the place of an entry, for messages."""
        return f"{self.where}.kernels[{number}]"

    @property
    def normalisations(self) -> tuple[str, ...]:
        """Normalisations in the order in which they apply; empty for none.

        ``variance`` is short for ``multiplicative variance``.
        """
        given = self.normalisation
        steps = (given,) if isinstance(given, str) else given
        return tuple(step.split()[-1] for step in steps if step != "none")
