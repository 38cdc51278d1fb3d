"""Parameters that every method has: when to stop, and what they say of the method.

The settings of a run are its parameters as plain values: its id hashes them, its record stores
them, and its worker makes parameters of them again.  All three are JSON, which has no infinity:

* infinity stands for "no limit", and only a parameter whose default is infinity takes it
  (:class:`SolverParams` refuses it elsewhere);
* :func:`plain_settings` leaves such a parameter out, and likewise one whose default is None, which
  stands for "not used";
* a parameter that is left out is infinite: a worker gets its default, and :func:`setting` reads
  it back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from mkldist.core.arrays import LARGEST, LEAST, Target
from mkldist.errors import SpecError
from mkldist.spec.kinds import spelled


def within_range(value: Any) -> Any:
    """Return the value of a parameter; refuse numbers so large or small that they would overflow.

    Zero and, where a parameter takes it, infinity pass.
    """
    if not isinstance(value, float) or value == 0.0 or not math.isfinite(value):
        return value
    if not LEAST <= abs(value) <= LARGEST:
        raise ValueError(
            f"found {value:g}; expected a size from {LEAST:g} to {LARGEST:g}, or scale the kernels"
        )
    return value


Effects = Mapping[str, tuple[str, tuple[object, ...]]]


class SolverParams(BaseModel):
    """Parameters that every method has; a method adds its own by subclassing.

    Infinity means no limit: only a parameter whose default is infinity takes it, see
    :mod:`mkldist.solvers.solver_params`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    effective_with: ClassVar[Effects] = {}
    """Parameters that matter only while another parameter has one of some values.

    The name of such a parameter maps to the name of the other one and these values.
    """

    steers: ClassVar[tuple[str, ...]] = ("tol", "max_iter", "time_limit", "trace")
    """A class's own parameters that say how the optimum is sought, and when the search ends.

    All others define the problem.
    """

    tol: float = Field(0.01, gt=0, description="relative duality gap at which to stop")
    max_iter: int = Field(500, ge=1, description="limit on outer iterations")
    time_limit: float = Field(
        math.inf, gt=0, allow_inf_nan=True, description="limit on seconds of the solver's time"
    )
    trace: bool = Field(False, description="record objective, bounds and weights per iteration")

    @field_validator("*")
    @classmethod
    def _in_range(cls, value: Any) -> Any:
        return within_range(value)

    @classmethod
    def steering(cls) -> frozenset[str]:
        """Return all parameters that leave the problem, and so its optimum, as it is."""
        return frozenset(name for one in cls.__mro__ for name in vars(one).get("steers", ()))

    @property
    def target(self) -> Target:
        """Kind of labels that the method learns; a method with several losses overrides it."""
        return Target.CLASSES

    @property
    def chosen_folds(self) -> int:
        """Folds of the method's own cross-validation that the user chose; 0 if none were chosen.

        A method that has folds cuts their default number to the data.
        """
        return 0

    @property
    def chosen_kernel(self) -> int | None:
        """Number of the one kernel that the user chose, from 0; None if none was chosen."""
        return None

    @property
    def after_a_stall(self) -> str:
        """What to do about a run that stalled above its tolerance."""
        return "Raise tol, or scale the kernels: rounding allows no more"

    @property
    def gives_C(self) -> bool:
        """True if the problem is that of `level` at some C, which its solution gives."""
        return False

    def given_C(self, extra: Mapping[str, float]) -> float:
        """Return the C at which `level` has the solution, from what that reports; or NaN."""
        return math.nan

    @property
    def gives_log_odds(self) -> bool:
        """True if the decision function of two classes is the logarithm of the odds of +1."""
        return False

    def has_effect(self, name: str) -> bool:
        """Return True if a parameter matters, given the values of the others."""
        if name not in self.effective_with:
            return True
        other, values = self.effective_with[name]
        return getattr(self, other) in values


class HingeParams(SolverParams):
    """Parameters of methods that weigh the sum of hinge losses by C against a regulariser."""

    C: float = Field(1.0, gt=0, description="weight of the losses: bound of the dual variables")


def check_names(
    params: type[SolverParams], where: str, names: Iterable[str], others: Sequence[str] = ()
) -> None:
    """Refuse names that are neither parameters nor among `others`."""
    for name in names:
        if name not in params.model_fields:
            from mkldist.spec.load import unknown_key

            known = [*params.model_fields, *others]
            raise unknown_key(f"{where}.{name}", "parameter", name, known)


def validate(params: type[SolverParams], where: str, values: Mapping[str, Any]) -> SolverParams:
    """Return values as the parameters of a method, or raise a SpecError at the place `where`."""
    check_names(params, where, values)
    try:
        return params.model_validate(dict(values), strict=True)
    except ValidationError as error:
        from mkldist.spec.load import expected, spec_error

        first = error.errors()[0]
        place = ".".join([where, *(str(part) for part in first["loc"][:1])])
        if first["type"] in ("value_error", "literal_error"):
            raise spec_error(first, place, params) from None
        raise SpecError(place, spelled(first["input"]), expected(first)) from None


def check_effect(
    where: str, given: Mapping[str, Any], points: Sequence[SolverParams], hint: str = ""
) -> None:
    """Refuse parameters that were given but have no effect, by a SpecError that names the first.

    A parameter of one value must have an effect at one point of a grid at least.  A parameter
    that varies must have one at every point, because runs would be repeated at the others.
    `given` are values or lists of values as the user gave them, `points` all settings made of them,
    and `hint` advice for a parameter that has an effect at some points only.
    """
    for name, value in given.items():
        idle = [point for point in points if not point.has_effect(name)]
        varies = isinstance(value, list) and len(value) > 1
        if not idle or (len(idle) < len(points) and not varies):
            continue
        other, values = idle[0].effective_with[name]
        found = spelled(getattr(idle[0], other))
        raise SpecError(
            f"{where}.{name}",
            f"{name} with {other} = {found}, where it has no effect",
            f"{other} = {' or '.join(map(spelled, values))}, or no {name}",
            hint if len(idle) < len(points) else "",
        )


def plain_settings(params: SolverParams) -> dict[str, Any]:
    """Return the parameters of a run as JSON values, without those at infinity or None."""
    values = params.model_dump(mode="json")
    return {name: value for name, value in values.items() if value not in (math.inf, None)}


def setting(settings: Mapping[str, Any], name: str) -> Any:
    """Return one parameter of a run's plain settings; infinity where it is left out."""
    return settings.get(name, math.inf)
