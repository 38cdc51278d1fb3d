"""Draw ``mkl.svg`` and ``when.svg`` beside this file: what the start of the site shows.

Run from the root of a clone; it takes some minutes::

    python docs/_static/pictures.py
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import load_breast_cancer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import mkldist
from mkldist.kernels import Gaussian

Rows = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]
HERE = Path(__file__).parent
COLOURS = {"one SVM": "#0072b2", "mean of the kernels": "#777777", "MKL": "#d55e00"}
PARTS = {
    "worst area": "area of the\nlargest nuclei",
    "worst texture": "texture",
    "worst smoothness": "smoothness",
    "mean symmetry": "symmetry",
}
N_SHOWN = 40  # rows of each class


def draw_sum() -> Figure:
    """Draw four Gram matrices, the weights that MKL gives them, and their sum."""
    data = load_breast_cancer()
    names = list(data.feature_names)
    chosen = np.random.default_rng(0).permutation(len(data.target))
    chosen = np.concatenate([chosen[data.target[chosen] == k][:N_SHOWN] for k in (0, 1)])
    x = StandardScaler().fit_transform(data.data)[chosen][:, [names.index(p) for p in PARTS]]
    y = np.where(data.target[chosen] == 0, 1, -1)
    grams = np.array([rbf_kernel(column[:, None]) for column in x.T])
    weights = mkldist.solve("level", grams, y, C=1.0).kernel_weights
    total = np.tensordot(weights, grams, 1)
    figure = Figure((10.4, 2.9), layout="constrained")
    axes = figure.subplots(1, 5, width_ratios=[1, 1, 1, 1, 1.35])
    for ax, gram, weight, words in zip(axes, grams, weights, PARTS.values(), strict=False):
        ax.imshow(gram, cmap="Oranges", interpolation="none")
        ax.set_title(words, fontsize=11)
        ax.set_xlabel(f"weight {weight:.2f}", fontsize=13, color=COLOURS["MKL"])
    axes[-1].imshow(total, cmap="Oranges", interpolation="none")
    axes[-1].set_title("their weighted sum", fontsize=11)
    axes[-1].set_xlabel("one classifier is trained on it", fontsize=11)
    for ax, sign in zip(axes, "+++=", strict=False):
        ax.text(1.12, 0.5, sign, transform=ax.transAxes, fontsize=20, va="center", ha="center")
    for ax in axes:
        ax.set(xticks=[], yticks=[])
    return figure


def few_features_count(random: np.random.Generator, n: int, n_noise: int) -> Rows:
    """Return rows whose class depends on four features, each in its own way, and on no other."""
    x = random.normal(size=(n, 4 + n_noise))
    bends = np.sin(2 * x[:, 0]) + 0.8 * (x[:, 1] ** 2 - 1) + np.abs(x[:, 2]) - 0.8 + 0.8 * x[:, 3]
    return x, np.where(bends + random.normal(size=n) * 0.3 > 0, 1, 0)


def all_features_count(random: np.random.Generator, n: int, n_features: int) -> Rows:
    """Return rows of two normal distributions that differ a little in every feature."""
    y = random.integers(0, 2, n)
    shift = 2 / np.sqrt(n_features)
    return random.normal(size=(n, n_features)) + shift * (2 * y[:, None] - 1), y


def errors(make: Callable[[np.random.Generator, bool], Rows], repeats: int) -> dict[str, list]:
    """Return the test errors in percent of three classifiers, each tuned by cross-validation."""
    kernels = [Gaussian(relative_widths=[0.5, 1], features=["all", "each"])]
    strengths = [0.1, 0.3, 1, 3, 10]
    widths = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]
    models = {
        "one SVM": GridSearchCV(
            make_pipeline(StandardScaler(), SVC()),
            {"svc__C": [0.1, 1, 10, 100], "svc__gamma": widths},
            cv=3,
        ),
        "mean of the kernels": mkldist.MKLClassifierCV("uniform", kernels=kernels, Cs=strengths),
        "MKL": mkldist.MKLClassifierCV("level", kernels=kernels, Cs=strengths),
    }
    found: dict[str, list] = {name: [] for name in models}
    for repeat in range(repeats):
        random = np.random.default_rng(repeat)
        (x, y), (x_test, y_test) = make(random, True), make(random, False)
        for name, model in models.items():
            found[name].append(100 * (1 - model.fit(x, y).score(x_test, y_test)))
    return found


def draw_errors(ax: Axes, sizes: list[int], found: list[dict[str, list]]) -> None:
    """Draw the mean error of each classifier, and its standard deviation over the repeats."""
    for name, colour in COLOURS.items():
        values = np.array([one[name] for one in found])
        mean, spread = values.mean(axis=1), values.std(axis=1, ddof=1)
        places = np.arange(len(sizes))
        ax.errorbar(places, mean, spread, color=colour, marker="o", ms=4, capsize=3, label=name)
    ax.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    ax.set_ylim(bottom=0)
    ax.set_ylabel("test error, %")
    ax.spines[["top", "right"]].set_visible(False)


def draw_when(repeats: int) -> Figure:
    """Draw one problem on which MKL beats one SVM, and one on which it does not."""
    figure = Figure((9.4, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    noise, n_train = [0, 4, 16, 64], [40, 80, 160, 320]

    def few(n_noise: int) -> dict[str, list]:
        n = {True: 150, False: 2000}
        return errors(lambda r, train: few_features_count(r, n[train], n_noise), repeats)

    def every(n: int) -> dict[str, list]:
        return errors(lambda r, train: all_features_count(r, n if train else 2000, 20), repeats)

    draw_errors(left, noise, [few(size) for size in noise])
    left.set_title("Few features count: MKL finds them", fontsize=11)
    left.set_xlabel("useless features beside 4 useful ones (150 training rows)")
    draw_errors(right, n_train, [every(size) for size in n_train])
    right.set_title("All features count alike: one SVM is enough", fontsize=11)
    right.set_xlabel("training rows (20 features)")
    left.legend(frameon=False)
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10, help="of when.svg; 0: only mkl.svg")
    repeats = parser.parse_args().repeats
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mkl"}):
        figures = {"mkl": draw_sum()} | ({"when": draw_when(repeats)} if repeats else {})
        for name, figure in figures.items():
            figure.savefig(HERE / f"{name}.svg", metadata={"Date": None}, facecolor="white")
