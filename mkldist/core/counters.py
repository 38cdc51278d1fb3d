"""Counts of the work that a solver does: iterations, SVM solves, passes.

The solver counts its iterations and machines.  The driver counts passes and combined matrices, by
the solver's requests alone, so that they mean the same for every method and do not depend on what
the bank keeps or on the runs beside.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Counters:
    """Counts of a solver's work."""

    outer_iterations: int = 0
    """Rounds of the method, each of which ends with objective and bound: a row of the trace."""
    svm_solves: int = 0
    """Machines trained, each on one combined kernel: support vector machines, or what the method
    has in their place.  0 for methods that never hold the weights fixed."""
    svm_iterations: int = 0
    """Pair updates, and line searches of machines in the primal."""
    newton_steps: int = 0
    """Linear systems of Newton steps, in machines and in dual problems."""
    cg_steps: int = 0
    """Steps of conjugate gradients, within a truncated Newton step or in its place."""
    passes: int = 0
    """How often the requests read the whole bank.  A pass ends once every kernel has been read
    since the last one ended: by a request for all kernels, by a combined matrix without zero
    weights, or by several requests for some kernels each."""
    combines: int = 0
    """Combined Gram matrices that were requested, those of single kernels included."""

    def count_svm(self, iterations: int, newton_steps: int) -> None:
        """Count one solve of the inner support vector machine."""
        self.svm_solves += 1
        self.svm_iterations += iterations
        self.newton_steps += newton_steps

    def count_work(self, other: Counters) -> None:
        """Add the machines of another count, and the steps within them."""
        self.svm_solves += other.svm_solves
        self.svm_iterations += other.svm_iterations
        self.newton_steps += other.newton_steps
        self.cg_steps += other.cg_steps

    def __add__(self, other: Counters) -> Counters:
        """Return the sums of two counts."""
        own, others = self.as_dict(), other.as_dict()
        return Counters(**{name: count + others[name] for name, count in own.items()})

    def as_dict(self) -> dict[str, int]:
        """Return the counters by name."""
        return asdict(self)
