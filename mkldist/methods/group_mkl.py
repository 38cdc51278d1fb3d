"""MKL over groups of kernels: few groups, l2 within them.

Each kernel belongs to a group, for instance to the view that its features come from.  Minimises
over functions f_m and a bias b

    C sum_i hinge(y_i (f(x_i) + b)) + 1/2 (sum_g s_g^r ||f_g||^r)^(2/r),    f = sum_m f_m,

with ``||f_g||^2 = sum_{m in g} ||f_m||^2``, ``r = 2p/(p+1)``, and ``s_g`` the root of the size of
the group, or 1.  With p = 1 the norm is l1 between groups and l2 within (the group lasso of Yuan &
Lin 2006, by Bach 2008 for kernels): few groups are active, and all kernels of an active one.  p > 1
gives the mixed norms between it and the mean of all kernels (Szafranski, Grandvalet &
Rakotomamonjy 2010).  Where every kernel is a group of its own, the problem is that of
:mod:`.level` or :mod:`.lp_mkl`.

The least ``||f_g||`` over functions that add up to a given f is its norm by
``K_g = sum_{m in g} K_m / s_g^2`` (Micchelli & Pontil 2005).  The problem is therefore that of
:mod:`.level`, or of :mod:`.lp_mkl`, on the G kernels K_g, with weights e in the simplex, or in the
unit ball of the p-norm.  Its dual

    max_alpha  1'alpha - 1/2 || (sum_{m in g} q_m / s_g^2)_g ||_{p*}

over ``0 <= alpha <= C, y'alpha = 0`` bounds the optimum; for p = 1 the norm is the maximum.  The
solution's ``dual_variables`` are the alpha of the greatest bound, for p = 1 a mixture of several,
whose value may exceed the bound reported.  The code is theirs, by requests for sums over groups
(:mod:`mkldist.methods.group_mkl`).

Groups come with the problem: ``groups`` of :func:`mkldist.solve`; else kernels on the same features
form a group, and every kernel without features, such as a Gram matrix that was given, is one of its
own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from pydantic import Field

from mkldist.bank.requests import Combine, Diagonal, Inner, Matvec, Quadratic, Request
from mkldist.core.arrays import Floats, Ints
from mkldist.core.memory import MATRICES_PER_SOLVER
from mkldist.methods import level, lp_mkl
from mkldist.methods.cut_bundle import exact_bound as simplex_bound
from mkldist.solvers.base import Method, Problem, Requesting, Solution, Steps
from mkldist.solvers.progress import DualBound
from mkldist.solvers.solver_params import Effects, SolverParams

Result = TypeVar("Result")


class KernelGroups:
    """Groups of kernels of equal labels (M,), and the factor of each kernel in its group's sum.

    `mean` asks for the mean of a group's kernels in place of their sum.
    """

    def __init__(self, labels: Ints, *, mean: bool) -> None:
        _, group, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        # (M,) number of each kernel's group, from 0 in the order of the labels
        self.group: Ints = group.reshape(-1).astype(np.intp)
        # (M,) factor of each kernel: 1, or 1 / (size of its group)
        self.factor: Floats = 1.0 / sizes[self.group] if mean else np.ones(len(self.group))
        self._sizes: Ints = sizes.astype(np.intp)

    def __len__(self) -> int:
        return len(self._sizes)

    @cached_property
    def _members(self) -> tuple[Ints, Ints]:
        """The kernels in order of their groups, (M,), and where each group begins, (G,)."""
        return np.argsort(self.group, kind="stable"), np.cumsum(self._sizes) - self._sizes

    def members(self, groups: Ints) -> Ints:
        """Return the kernels of some groups, one group after the other."""
        order, begins = self._members
        parts = [order[begins[g] : begins[g] + self._sizes[g]] for g in groups.tolist()]
        return np.concatenate([np.empty(0, dtype=np.intp), *parts])

    def spread(self, weights: Floats) -> Floats:
        """Return weights (..., G) of group kernels as weights (..., M) of the bank's kernels."""
        return weights[..., self.group] * self.factor

    def sums(self, answer: Floats) -> Floats:
        """Return the sums over groups, (G, ...), of an answer (M, ...) linear in the kernels."""
        order, begins = self._members
        scaled = (self.factor * answer.T).T
        return np.add.reduceat(scaled[order], begins, axis=0)


def on_groups(steps: Steps, groups: KernelGroups) -> Requesting[Solution]:
    """Run a solver on group kernels by requests to the bank; return its solution on its kernels.

    The solver asks for no radii.  The state of the solution stays that of the group kernels.
    """
    solution = yield from asked_of_groups(steps, groups)
    return replace(solution, kernel_weights=groups.spread(solution.kernel_weights))


def asked_of_groups(steps: Requesting[Result], groups: KernelGroups) -> Requesting[Result]:
    """Turn the requests of a generator for group kernels into those for the bank's kernels."""
    answer: Any = None
    while True:
        try:
            request = steps.send(answer)
        except StopIteration as end:
            result: Result = end.value
            return result
        answer = yield from _answered(request, groups)


def _answered(request: Request, groups: KernelGroups) -> Requesting[Floats]:
    """Answer a request for group kernels by requests for the bank's kernels."""
    match request:
        case Combine(weights, None):
            found: Floats = yield replace(request, weights=groups.spread(weights))
            return found
        case Combine(weights, np.ndarray() as asked):
            members = groups.members(asked)
            of_groups = np.zeros((*weights.shape[:-1], len(groups)))
            of_groups[..., asked] = weights
            of_members = groups.spread(of_groups)[..., members]
            found = yield replace(request, weights=of_members, kernels=members)
            return found
        case Quadratic(vectors, None):
            return groups.sums((yield Quadratic(vectors)))
        case Quadratic(vectors, np.ndarray() as asked):
            products = yield from _products(asked, vectors, groups)
            forms: Floats = np.einsum("n...,sn...->s...", vectors, products)
            return forms
        case Matvec(asked, vectors):
            return (yield from _products(asked, vectors, groups))
        case Inner() | Diagonal():
            return groups.sums((yield request))
        case _:
            raise TypeError(f"{type(request).__name__} of a sum is no sum over its kernels")


def _products(asked: Ints, vectors: Floats, groups: KernelGroups) -> Requesting[Floats]:
    """Return ``K_g v`` of some groups, (S, n) or (S, n, R), by one sum of kernels after another."""
    products: Floats = np.empty((len(asked), *vectors.shape))
    memory: Floats | None = None
    for product, g in zip(products, asked.tolist(), strict=True):
        members = groups.members(np.array([g]))
        K = yield Combine(groups.factor[members], members, memory, thin=True)
        product[...] = K @ vectors
        memory = K if isinstance(K, np.ndarray) else None
    return products


class GroupMklParams(SolverParams):
    """Parameters of MKL over groups of kernels."""

    steers: ClassVar[tuple[str, ...]] = ("acceleration",)
    effective_with: ClassVar[Effects] = {"acceleration": ("p", (1.0,))}

    C: float = Field(
        1.0,
        gt=0,
        allow_inf_nan=False,
        description="weight of the losses: bound of the dual variables",
    )
    p: float = Field(
        1.0, ge=1, allow_inf_nan=False, description="norm of the groups' weights; 1: few groups"
    )
    scale: Literal["mean", "sum"] = Field(
        "mean", description="group kernels: mean of their kernels, or sum, by which large ones gain"
    )
    acceleration: Literal["working-set", "none"] = Field(
        "working-set", description="none: every iteration visits all kernels; for p = 1"
    )


def solve(problem: Problem, params: GroupMklParams) -> Steps:
    """Run the Level method, or lp-norm MKL where p > 1, on the groups.

    ``kernel_weights`` are equal within a group: ``e_g / s_g^2``.  ``extra`` holds ``kernel_groups``
    and ``active_groups``, the number of groups and of those with a weight.
    """
    groups, part, inner = _on_groups(problem, params)
    if isinstance(inner, level.LevelParams):
        steps = level.solve(part, inner)
    else:
        steps = lp_mkl.solve(part, inner)
    solution = yield from on_groups(steps, groups)
    active = len(np.unique(groups.group[solution.kernel_weights > 0.0]))
    extra = {"kernel_groups": float(len(groups)), "active_groups": float(active)}
    return replace(solution, extra=extra)


def _on_groups(
    problem: Problem, params: GroupMklParams
) -> tuple[KernelGroups, Problem, level.LevelParams | lp_mkl.LpMklParams]:
    """Return the groups of a problem, or a kernel each, the problem on them and its parameters."""
    labels = np.arange(problem.n_kernels) if problem.groups is None else problem.groups
    groups = KernelGroups(labels, mean=params.scale == "mean")
    part = replace(problem, n_kernels=len(groups), groups=None, spread=groups.spread)
    shared: dict[str, Any] = params.model_dump(include={"C", *SolverParams.model_fields})
    if params.p == 1.0:
        return groups, part, level.LevelParams(acceleration=params.acceleration, **shared)
    return groups, part, lp_mkl.LpMklParams(p=params.p, **shared)


def exact_bound(
    problem: Problem, params: GroupMklParams, solution: Solution
) -> Requesting[DualBound]:
    """Ask for the forms of all kernels, by one pass, for the bound of Level or of lp-norm MKL."""
    groups, part, inner = _on_groups(problem, params)
    if isinstance(inner, level.LevelParams):
        steps = simplex_bound(part, inner, solution)
    else:
        steps = lp_mkl.exact_bound(part, inner, solution)
    return (yield from asked_of_groups(steps, groups))


METHOD = Method(
    name="group_mkl",
    solve=solve,
    params=GroupMklParams,
    title="MKL over groups of kernels",
    problem="MKL with few groups (views) of kernels, each whole",
    loss="hinge",
    regularizer="1/2 (sum_g s_g^r ||f_g||^r)^(2/r), ||f_g||^2 = sum_{m in g} ||f_m||^2",
    reference="Bach 2008 (group lasso, kernels); Szafranski, Grandvalet & Rakotomamonjy 2010",
    hyperparameters=("C", "p"),
    has_path=True,
    joint_classes=True,
    weighs_points=True,
    takes_groups=True,
    memory=lambda size, _: size.memory(matrices=MATRICES_PER_SOLVER + 1, vectors=48),
    exact_bound=exact_bound,
)
