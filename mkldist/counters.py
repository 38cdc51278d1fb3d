"""What solvers and their machines count."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Counters:
    """Work that a solver asked for and did."""

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
