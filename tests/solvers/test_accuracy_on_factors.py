"""Machines on factors, certified for the kernels, err as often as those of the kernels."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

import mkldist
from tests.benchmarks.problems import LEVEL_NAMES

pytestmark = pytest.mark.slow

TOL = 0.01
SPLITS = StratifiedShuffleSplit(3, test_size=0.5, random_state=0)


def tables(data_dir):
    """Yield features and labels: of the papers' tables, or of data bundled with scikit-learn."""
    if data_dir is None:
        x, target = load_breast_cancer(return_X_y=True)
        yield x, np.where(target == 0, 1.0, -1.0)
        x, digit = load_digits(n_class=4, return_X_y=True)
        yield x, np.where(digit % 2 == 0, 1.0, -1.0)
        return
    for name in LEVEL_NAMES:
        table = np.genfromtxt(data_dir / f"{name}.csv", delimiter=",", skip_header=1)
        yield table[:, :-1], table[:, -1]


def decisions(kernels, y, x_new, tol=TOL):
    """Return a machine on a bank, and the labels that it gives to new points."""
    solution = mkldist.solve("level", kernels, y, C=100.0, tol=tol)
    return solution, np.sign(solution.decision_function(kernels.on(x_new)))


def test_accuracies_on_each_data_set_are_those_of_the_kernels_to_a_thousandth(data_dir):
    """Hold each data set to a thousandth beside the points that the tolerance leaves open.

    Machines of one gap are many, and label some points differently, on the kernels themselves too.
    On eight tables of the papers, 5,223 points in three splits, the correct labels of a table
    differed by 0 to 3 between tolerances of 0.01 and 0.001 on the kernels, in all by 12, and by 0
    to 2 between kernels and factors at 0.01, in all by 7.  A thousandth of a table is 0.3 to 1.2.
    """
    for x, y in tables(data_dir):
        n_points, difference, left_open = 0, 0, 0
        for train, test in SPLITS.split(x, y):
            x_all = StandardScaler().fit(x[train]).transform(x)
            with mkldist.KernelBank(x_all[train], "xu2008", normalisation="trace") as bank:
                _, of_kernels = decisions(bank, y[train], x_all[test])
                _, exactly = decisions(bank, y[train], x_all[test], TOL / 10)
            with mkldist.KernelBank(
                x_all[train], "xu2008", normalisation="trace", backend="factors"
            ) as bank:
                solution, of_factors = decisions(bank, y[train], x_all[test])
            assert solution.exact_gap <= TOL
            rights = [int((one == y[test]).sum()) for one in (of_factors, of_kernels)]
            difference += rights[0] - rights[1]
            left_open += int((of_kernels != exactly).sum())
            n_points += len(test)
        assert abs(difference) <= 0.001 * n_points + left_open, (difference, n_points, left_open)
