"""Models of ``[[banks]]``: kernels, their normalisation, and how they are kept."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    Strict,
    Tag,
    model_serializer,
    model_validator,
)

from mkldist.core.devices import CPU
from mkldist.spec.kernel_entries import KernelChoice
from mkldist.spec.kinds import LIST, TEXT, Model, Name, either, size_name

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

    name: Name | None = Field(
        None, description="Name of the bank in the results. By default the name of its family."
    )


class BankSpec(KernelChoice, _Named):
    """One ``[[banks]]`` entry: the named family of a paper, or a list of kernels."""

    normalisation: Normalisations = Field(
        "variance",
        description="Scaling of every kernel on the points that a method sees, or several in "
        'order: `"trace"` to trace 1; `"cosine"` to k(x, x) = 1; `"centre"` to mean zero in '
        'feature space; `"variance"`, or `"multiplicative variance"`, to variance 1 in feature '
        "space, under which a good C hardly depends on the number of rows.",
    )
    dtype: Literal["auto", "float32", "float64"] = Field(
        "auto",
        description='Precision of stored Gram matrices. `"auto"` stores float64, and float32 '
        "above 1 GiB where no method has a tolerance below 1e-5. Arithmetic is in float64; gaps "
        "are those of the matrices as stored. Factors are in float64 unless this is "
        '`"float32"`, which some methods take; their `exact_gap` is to the kernels in float64.',
    )
    backend: Literal["auto", "memory", "mmap", "stream", "recompute", "sharded", "factors"] = Field(
        "auto",
        description="How workers read kernels: loaded into memory; mapped from a file in the "
        "node's cache; read from the store at every pass; never stored and computed inside "
        "every pass; or never stored and divided among all workers, which compute their kernels "
        'once. `"auto"` maps a bank that several tasks share; it loads any other if half '
        "of a worker's memory holds it, and otherwise reads it at every pass. "
        '`"factors"`, for many points, has a thin factor of each kernel, for methods that can '
        "solve on these; factors grow until the `exact_gap` to the kernels reaches `tol`.",
    )
    allow: Allowed = Field(
        (),
        description='`["factors"]` lets `backend = "auto"` choose factors for a data set on which '
        "the matrices of some solver on the bank do not fit in memory: the sweep's `memory`, or "
        "else that of this machine. One solver has all of it there, so that the choice is the "
        "same for any workers and threads.",
    )
    rank: Annotated[int, Field(ge=1)] | None = Field(
        None,
        description='Most columns of a factor, for `backend = "factors"`. By default the memory '
        "in which one is made is the only limit.",
    )
    tolerance: Annotated[float, Field(ge=0, lt=1)] | None = Field(
        None,
        description="Share of a kernel's trace with which its factor ends before 100 columns, "
        "unless a solution asks for more; 0.001 by default.",
    )

    device: str = Field(
        CPU,
        min_length=1,
        description='What computes kernels in passes, and those of factors: `"cpu"`, the compiled '
        'loops; `"cuda"`, `"cuda:1"` or `"xpu"`, a device of PyTorch; or `"torch:cpu"`, PyTorch on '
        'the processor. Others than `"cpu"` need `backend = "recompute"` or `"factors"`, and '
        "kernels with `gaussian`, `polynomial`, `linear` or `laplacian-rbf`.",
    )

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
