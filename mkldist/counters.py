"""Counts of the work that a solver does: iterations, SVM solves, passes."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Counters:
    """Counts of a solver's work.

    Parameters
    ----------
    outer_iterations : int
        Iterations of the method.
    svm_solves : int
        Solves of a support vector machine on one combination of kernels.
    svm_iterations : int
        Iterations of these solves.
    newton_steps : int
        Newton steps of these solves, or of the method.
    passes : int
        Requests that read all kernels of the bank.
    combines : int
        Combinations of kernels that were requested.
    """

    outer_iterations: int = 0
    svm_solves: int = 0
    svm_iterations: int = 0
    newton_steps: int = 0
    passes: int = 0
    combines: int = 0

    def count_svm(self, iterations: int, newton_steps: int) -> None:
        """Count one solve of the inner support vector machine."""
        self.svm_solves += 1
        self.svm_iterations += iterations
        self.newton_steps += newton_steps

    def as_dict(self) -> dict[str, int]:
        """Return the counters by name."""
        return asdict(self)
