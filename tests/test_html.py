"""What notebooks show of objects: HTML without markup of the user's."""

import re
import tomllib
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import mkldist
from mkldist.analysis.comparison import Agreement
from mkldist.kernels import Gaussian
from tests.report.made_up import explanation, share

EVIL = "<script>alert(1)</script>"
RNG = np.random.default_rng(0)
EACH = [Gaussian(widths=1.0, features="each")]
X = pd.DataFrame(RNG.normal(size=(20, 2)), columns=[EVIL, "age"])
Y = np.where(RNG.random(20) > 0.5, EVIL, "no")
GRAMS = np.array([np.eye(20), np.outer(X["age"], X["age"])])


class Cells(HTMLParser):
    """The texts and the tags of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.texts.append(data.strip())


def estimators():
    one = mkldist.MKLClassifier("uniform")
    fitted = mkldist.MKLClassifier("uniform").fit(X, Y)
    others = (mkldist.MKLClassifierCV, mkldist.MKLRegressor, mkldist.OneClassMKL,
              mkldist.SemiSupervisedMKLClassifier)  # fmt: skip
    return [one, fitted, *(other() for other in others)]


def plan():
    spec = tomllib.loads("""
    name = "tiny"
    banks = [{family = "default"}]
    methods = [{name = "uniform"}]""")
    return mkldist.plan(spec, data={"mine": (X, Y)})


SHOWN = {
    "bank": (lambda: mkldist.KernelBank(X, EACH), ["KernelBank", "20", "variance", EVIL]),
    "grams": (lambda: mkldist.KernelBank.from_grams(GRAMS, names=[EVIL, "b"]), [EVIL, "b"]),
    "solution": (lambda: mkldist.solve("uniform", GRAMS, np.where(Y == "no", -1, 1)),
                 ["Solution", "converged", "2 of 2", "weight", "0.5"]),
    "model": (lambda: mkldist.MKLClassifier("uniform").fit(X, Y).to_model(),
              ["Model", "uniform", f"{EVIL}, no"]),
    "plan": (plan, ["Plan of tiny", "default", "mine"]),
    "agreement": (lambda: Agreement(3, 2, (EVIL,)), ["Agreement", f"('{EVIL}',)", "False"]),
    "explanation": (lambda: explanation(shares=(share("view", EVIL, 0.5, 0.5),)), [EVIL, "view"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_values_are_shown_and_escaped(name):
    make, words = SHOWN[name]
    cells = Cells(make()._repr_html_())
    assert cells.tags <= {"table", "thead", "tbody", "tr", "th", "td", "p"}
    assert set(words) <= set(cells.texts)


def test_estimators_are_shown_by_scikit_learn():
    for one in estimators():
        html = one._repr_html_()
        assert type(one).__name__ in html
        assert not re.search(r"<script>\s*alert", html)


def test_a_large_bank_shows_its_first_kernels():
    bank = mkldist.KernelBank(RNG.normal(size=(10, 40)), EACH)
    assert len(bank) == 40
    assert bank._repr_html_().count("<tr") < 20
