"""Models and tables made up for the tests of this folder."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

import mkldist
from mkldist.bank.bank_kernels import GivenKernel
from mkldist.data.dataset import SourceColumns, View
from mkldist.data.preprocessing import FeatureScale, FittedPreprocessing
from mkldist.fit.decision import Expansion, LabelCoding
from mkldist.fit.model import Model, kernel_list
from mkldist.fit.new_rows import GivenRows, GivenView
from mkldist.kernels import Gaussian, Polynomial

COLUMNS = SourceColumns(
    numbers=("a", "constant", "b"),
    categories={"size": ("L", "S", "?")},
    label="answer",
    others=("row", "note"),
    id="row",
    kept=(0, 2, 3, 4),
)
FEATURES = ("a", "b", "size=L", "size=S")  # the rows that were fitted on miss no size
FILL = np.array([0.5, -1.0, 0.0, 0.0])
SCALE = FeatureScale(np.array([1.0, 2.0, 0.0, 0.0]), np.array([2.0, 0.5, 1.0, 1.0]))
GIVEN = GivenRows(
    ("p", "q", "r", "s"),
    (0, 2, 3),
    {"k": GivenView(2, (True, True, False), "zero")},
)


def expansions(n_functions: int = 1) -> tuple[Expansion, ...]:
    """Return decision functions of kernels that are not all on the same features."""
    draw = np.random.default_rng(0)
    found = []
    for _ in range(n_functions):
        points = draw.normal(size=(40, len(FEATURES)))
        kernels = [Gaussian(widths=[0.7, 2.0], features=["all", "each"]), Polynomial(degrees=2)]
        bank = mkldist.KernelBank(points, kernels)
        y = np.sign(points[:, 0] * points[:, 1])
        found.append(bank.expansion(mkldist.solve("level", bank, y, C=100.0)))
    return tuple(found)


def made_up_model(classes: Any = ("ill", "well"), *, filled: bool = True) -> Model:
    """Return a model of these classes, or of real values for None."""
    multiclass = classes is not None and len(classes) > 2
    functions = expansions(len(classes) if multiclass else 1)
    return Model(
        COLUMNS,
        FEATURES,
        FittedPreprocessing(FILL if filled else None, SCALE),
        functions,
        tuple(np.arange(1.0, len(function.kernels) + 1) for function in functions),
        LabelCoding(
            None if classes is None else np.array(classes),
            (1.0, 0.5) if classes is None else (1.0 / len(classes),) * len(classes),
        ),
        {"method": "level", "dataset": "made up", "gap": 0.001},
    )


def made_up_views(view: str = "v", given: str = "k") -> Model:
    """Return a model of a feature ``a``, a view of ``b`` and ``c``, and a given kernel."""
    kernels = kernel_list(
        [{"function": "linear", "parameter": 1.0, "offset": 0.0, "features": [1, 2], "label": view}]
    )
    points = np.array([[0.0, 1.0, 2.0], [1.0, np.nan, np.nan], [0.0, 3.0, 0.0]])
    function = Expansion(
        kernels, np.array([0, 5]), False, points, np.array([2.0, 10.0]),
        np.array([[1.0], [4.0], [-1.0]]), np.array([0.5]), (GivenKernel(given, 1, "1"),),
        np.array([0, 1, 2]),
    )  # fmt: skip
    return Model(
        SourceColumns(("a",), others=("row",), id="row"),
        ("a", f"{view}.b", f"{view}.c"),
        FittedPreprocessing(None, FeatureScale(np.zeros(3), np.ones(3))),
        (function,),
        (np.array([2.0, 10.0]),),
        LabelCoding(None, (0.0, 0.0)),
        {},
        {view: View((1, 2), "zero")},
        {view: SourceColumns(("b", "c"), others=("row",), id="row")},
        replace(GIVEN, views={given: GIVEN.views["k"]}),
    )


def made_up_table(n: int = 50) -> pd.DataFrame:
    """Return new rows, with row names, missing values, and a column that was no feature."""
    draw = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "b": draw.normal(size=n),
            "row": [f"r{i}" for i in range(n)],
            "size": draw.choice(["S", "L"], n),
            "note": "x, y",
            "a": draw.normal(size=n),
        }
    )
    frame.loc[::9, "a"] = np.nan
    return frame


def plain_values(model: Model, frame: pd.DataFrame) -> np.ndarray:
    """Return decision values (t, k) of a table by the formulas, kernel by kernel."""
    x = np.column_stack(
        [frame["a"], frame["b"], frame["size"] == "L", frame["size"] == "S"]
    ).astype(float)
    x = np.where(np.isnan(x), FILL, x)
    x = (x - SCALE.centre) / SCALE.spread
    return np.column_stack([_plain(function, x) for function in model.functions])


def _plain(function: Expansion, x: np.ndarray) -> np.ndarray:
    total = np.full(len(x), function.bias[0])
    kernels = function.kernels
    for m in range(len(kernels)):
        columns = kernels.features_of(m)
        left, right = x[:, None, columns], function.points[None, :, columns]
        if kernels.function_of(m).label == "gaussian":
            values = np.exp(-((left - right) ** 2).sum(axis=2) / (2 * kernels.parameter[m] ** 2))
        else:
            values = (kernels.offset[m] + (left * right).sum(axis=2)) ** kernels.parameter[m]
        total += function.weights[m] * values @ function.coefficients[:, 0]
    return total
