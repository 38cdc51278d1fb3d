"""The ways to one fit: `solve`, an estimator, a sweep, and the commands `fit` and `predict`.

Everything here is public: the names of ``mkldist`` and the words of its command line.  The tests
beside it hold the ways to each other, whatever lies within.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from click.testing import CliRunner

import mkldist
from mkldist.cli import command
from mkldist.kernels.graph import graph_laplacian, graph_spec

TOL = 1e-8  # relative duality gap of every solution
ROUNDING = 1e-10  # of the largest number: where the same sums are done in another order
LOOSE = {"skm": 1e-5, "rmkl": 1e-5, "spicymkl": 1e-8}
"""Methods whose answers move further than their kernels.

A change of the points by 1e-15 of their size moves decision values of all other methods by 1e-13,
of spicymkl by 1e-11, of rmkl by 1e-7 and of skm by 1e-6, and bounds of skm alone by more than
1e-14: by 2e-9.
"""
LOOSE_BOUNDS = {"skm": 1e-7}


@dataclass(frozen=True, eq=False)
class Found:
    """What one way finds."""

    bounds: np.ndarray  # objective and its lower bound, sums over the classes that are learnt apart
    weights: np.ndarray  # kernel weights; a row a class where classes have their own
    bias: np.ndarray  # intercepts
    values: np.ndarray  # decision values of new rows

    def assert_near(
        self, other: Self, method: str = "", rtol: float | None = None, *, bias: bool = True
    ) -> None:
        """Hold another answer to this one, relative to the largest number of each kind.

        Without `bias`, intercepts are left out: estimators on centred kernels add to theirs what
        centring takes from the kernels.
        """
        assert_near(other.bounds, self.bounds, rtol or LOOSE_BOUNDS.get(method, ROUNDING))
        own = rtol or LOOSE.get(method, ROUNDING)
        assert_near(other.weights, self.weights, own)
        assert_near(other.values, self.values, own)
        if bias:
            assert_near(other.bias, self.bias, own, np.abs(self.values).max())

    def assert_equal(self, other: Self, *names: str) -> None:
        """Hold another answer, or the named parts of it, to this one to the bit."""
        for name in names or ("bounds", "weights", "bias", "values"):
            np.testing.assert_array_equal(getattr(other, name), getattr(self, name))


def assert_near(
    found: Any, expected: Any, rtol: float = ROUNDING, largest: float | None = None
) -> None:
    """Compare two arrays, relative to the largest number."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    largest = np.abs(expected).max(initial=0.0) if largest is None else largest
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=rtol * (largest or 1.0))


def standardised(x: np.ndarray, fitted: np.ndarray) -> np.ndarray:
    """Return features (n, d) of mean 0 and standard deviation 1 on some rows."""
    return (x - x[fitted].mean(axis=0)) / x[fitted].std(axis=0)


def neighbours_laplacian(points: np.ndarray, neighbours: int) -> Any:
    """Return the Laplacian of the graph of nearest neighbours."""
    return graph_laplacian(points, graph_spec({"neighbours": neighbours}))


def by_solve(
    method: str,
    bank: mkldist.KernelBank,
    labels: np.ndarray | Sequence[np.ndarray],
    new: Any,
    *,
    options: Mapping[str, Any] | None = None,
    grams: Mapping[str, Any] | None = None,
    **params: Any,
) -> Found:
    """Solve on a bank; a list of labels is that of classes learnt apart."""
    points = bank.on(new, **(options or {})) if grams is None else bank.on(new, grams=grams)
    apart = isinstance(labels, list)
    solutions = [
        mkldist.solve(method, bank, one, **{"tol": TOL, **params})
        for one in (labels if apart else [labels])
    ]
    bounds = np.sum([[one.objective, one.dual_objective] for one in solutions], axis=0)
    weights = np.array([one.kernel_weights for one in solutions])
    bias = np.array([one.bias for one in solutions])
    values = np.stack([one.decision_function(points) for one in solutions], axis=-1)
    if apart:
        return Found(bounds, weights, bias, values)
    return Found(bounds, weights[0], bias[0], values[..., 0])


def by_estimator(fitted: Any, new: Any) -> Found:
    """Return what a fitted estimator says of itself and of new rows."""
    dual = sum(one.dual_objective for one in fitted.solutions_)
    table = fitted.kernel_weights_
    weights = table["weight"].to_numpy()
    if "class" in table:
        classes = table["class"].unique()
        weights = np.array([weights[table["class"] == one] for one in classes])
    bounds, bias = np.array([fitted.objective_, dual]), np.array(fitted.intercept_)
    return Found(bounds, weights, bias, fitted.decision_function(new))


def sweep(
    folder: Path,
    data: Mapping[str, Any],
    methods: Sequence[Mapping[str, Any]],
    bank: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    **tables: Any,
) -> Any:
    """Run a sweep of some methods on a bank, in a thread of this process; return its tree."""
    banks = [{"name": "mine", **bank}] if isinstance(bank, Mapping) else bank
    spec = {
        "name": "ways",
        "tol": TOL,
        "splits": {"kind": "predefined"},
        "banks": [{"normalisation": "trace", **one} for one in banks],
        "methods": list(methods),
        "outputs": {"predictions": True, "coefficients": True},
        **tables,
    }
    return mkldist.sweep(spec, data, output=folder, workers=0, progress=False)


def by_sweep(node: Any, new: np.ndarray) -> Found:
    """Return what a node of the tree holds of its only run, and of some rows of the data set."""
    run = node.to_dataset().squeeze()
    assert str(run.state.values) == "complete"
    several = "class_bias" in run and run.class_bias.notnull().all()
    weights = run.kernel_weights
    weights = weights.transpose("class_name", "kernel") if weights.ndim == 2 else weights
    values = run.decision_values
    values = values.transpose("sample", "class_name") if values.ndim == 2 else values
    return Found(
        np.array([run.objective, run.dual_objective], dtype=np.float64),
        weights.values,
        np.asarray((run.class_bias if several else run.bias).values),
        values.values[new],
    )


def called(*words: object) -> str:
    """Call ``mkldist`` with words in this process, and return what it prints."""
    done = CliRunner().invoke(
        command, [str(word) for word in words], catch_exceptions=False, standalone_mode=False
    )
    return done.output


def model_of(results: Path, file: Path, *words: object) -> mkldist.Model:
    """Return the model of ``mkldist fit`` on the training part of the first split."""
    called("fit", results, "--split", 0, "-o", file, *words)
    return mkldist.load_model(file)


def assert_model(model: mkldist.Model, found: Found, new: Any, method: str = "") -> None:
    """Hold certificate, weights above zero and decision values of a model to a solution."""
    rtol = LOOSE.get(method, ROUNDING)
    bounds = [model.facts["objective"], model.facts.get("dual_objective", found.bounds[1])]
    assert_near(bounds, found.bounds, LOOSE_BOUNDS.get(method, ROUNDING))
    weights = model.kernel_weights["weight"].to_numpy()
    assert_near(np.sort(weights), np.sort(found.weights[found.weights > 0]), rtol)
    assert_near(model.decision_function(new), found.values, rtol)


def predicted(model: Path, data: Path, *words: object) -> pd.DataFrame:
    """Return the table that ``mkldist predict`` writes of the rows of a file."""
    out = data.with_name("predictions.csv")
    called("predict", model, data, "-o", out, "--overwrite", *words)
    return pd.read_csv(out)
