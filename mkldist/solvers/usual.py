"""Passes and memory that a plan expects of a method which says nothing of its own."""

from __future__ import annotations

from mkldist.memory import ProblemSize, SolverMemory
from mkldist.solvers.solver_params import SolverParams

USUAL_PASSES = 40


def usual_passes(n_kernels: int) -> int:
    """Return the number of passes that a plan assumes, whatever the number of kernels."""
    return USUAL_PASSES


def usual_memory(size: ProblemSize, params: SolverParams) -> SolverMemory:
    """Return the memory of a solver that holds a few matrices, and of kernels only weights."""
    return size.memory()
