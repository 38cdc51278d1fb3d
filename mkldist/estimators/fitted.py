"""State of a fitted estimator: solutions, decision functions and a table of kernel weights."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mkldist.arrays import Floats
from mkldist.estimators.rows import Rows
from mkldist.in_memory.expansion import Expansion
from mkldist.in_memory.kernel_bank import KernelBank
from mkldist.solvers.base import Solution
from mkldist.solvers.outcome import StopReason


@dataclass(frozen=True, eq=False)
class FittedKernels:
    """Solutions on a bank, apart from the bank.

    Parameters
    ----------
    solutions : tuple of Solution
        One for each problem: of two classes, of each class against the rest, or of all classes
        with shared weights.
    expansions : tuple of Expansion
        Their decision functions.
    table : DataFrame
        The kernels of the bank, one row a kernel.
    """

    solutions: tuple[Solution, ...]
    expansions: tuple[Expansion, ...]
    table: pd.DataFrame

    @classmethod
    def of(cls, bank: KernelBank, solutions: Sequence[Solution]) -> FittedKernels:
        """Return what is to be kept of the solutions on a bank."""
        without_state = tuple(replace(solution, state=None) for solution in solutions)
        return cls(without_state, tuple(map(bank.expansion, solutions)), bank.kernels)

    @property
    def objective(self) -> float:
        """Sum of the objectives."""
        return float(sum(solution.objective for solution in self.solutions))

    @property
    def gap(self) -> float:
        """Largest relative duality gap; NaN where a solution has none."""
        return float(np.max([solution.gap for solution in self.solutions]))

    @property
    def n_iter(self) -> int:
        """Largest number of outer iterations."""
        return max(solution.counters.outer_iterations for solution in self.solutions)

    @property
    def stop_reason(self) -> str:
        """``"converged"`` if all solvers did, otherwise the first other reason."""
        reasons = [str(solution.stop_reason) for solution in self.solutions]
        others = [reason for reason in reasons if reason != StopReason.CONVERGED]
        return [*others, str(StopReason.CONVERGED)][0]

    @property
    def bias(self) -> Floats:
        """Constant terms of the decision functions, (k,)."""
        return np.concatenate([expansion.bias for expansion in self.expansions])

    def in_units(self, centre: float, spread: float) -> FittedKernels:
        """Return the same with functions in other units: ``centre + spread * f``."""
        changed = tuple(expansion.in_units(centre, spread) for expansion in self.expansions)
        return replace(self, expansions=changed)

    def values(self, rows: Rows) -> Floats:
        """Return the decision functions at t rows, as (t, k)."""
        numbers, texts = rows.numbers, rows.text_values
        parts = [expansion.values(numbers, texts=texts) for expansion in self.expansions]
        return np.concatenate(parts, axis=1)

    def weights(self, classes: Sequence[Hashable] | None) -> pd.DataFrame:
        """Return the kernels with their weights, and the class where each has weights of its own.

        Parameters
        ----------
        classes : sequence, optional
            Classes that the solutions learn, where there is more than one solution.
        """
        if len(self.solutions) == 1 or classes is None:
            return self.table.assign(weight=self.solutions[0].kernel_weights)
        tables = []
        for name, solution in zip(classes, self.solutions, strict=True):
            table = self.table.assign(weight=solution.kernel_weights)
            table.insert(0, "class", [name] * len(table))
            tables.append(table)
        return pd.concat(tables, ignore_index=True)

    def by_kernel(self, rows: Rows, classes: Sequence[Hashable] | None) -> pd.DataFrame:
        """Return the share of each active kernel in the decision functions, without the bias.

        Parameters
        ----------
        rows : Rows
            t rows.
        classes : sequence, optional
            The k classes where there are k functions, the upper level of the columns.

        Returns
        -------
        DataFrame
            t rows, and a column for each kernel of weight above zero, or pair of a class and one.
        """
        parts = []
        for expansion in self.expansions:
            names = self.table["name"].to_numpy()[expansion.index]
            shares = expansion.by_kernel(rows.numbers, rows.text_values)
            parts += [pd.DataFrame(shares[:, :, c], columns=names) for c in range(shares.shape[2])]
        if classes is None:
            return parts[0]
        return pd.concat(parts, axis=1, keys=list(classes), names=["class", "kernel"])
