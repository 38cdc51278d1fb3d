"""Examples that need results: they run in a folder that holds the sweeps that they name."""

import doctest
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

from mkldist import sweep
from tests.docs.test_reference import PUBLIC

GAUSSIANS = {"function": "gaussian", "relative_widths": [0.5, 1, 2], "features": ["all", "each"]}
SWEEPS = {
    "selected": {
        "splits": {"repeats": 3},
        "selection": {"folds": 3},
        "banks": [{"family": "do2009"}],
        "methods": [{"name": name, "C": [0.3, 1, 3]} for name in ("level", "uniform")],
    },
    "growth": {
        "splits": {"repeats": 2, "n_train": [50, 100]},
        "banks": [{"name": "random", "n_kernels": [10, 30, 90], "kernels": [GAUSSIANS]}],
        "methods": [{"name": "level"}, {"name": "uniform"}],
    },
}
SKIP = "  # doctest: +SKIP"
NOT_RUN = ("mkldist.load_model",)  # a model of nobody's
EXAMPLES = {
    name: words
    for name, one in PUBLIC.items()
    if SKIP in (words := inspect.getdoc(one) or "") and name not in NOT_RUN
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the results that examples name."""
    made = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        sweep("quickstart", changes={"methods.level.trace": True}, progress=False)
        for name, words in SWEEPS.items():
            sweep({"name": name, "datasets": [{"name": "wdbc"}], **words}, progress=False)
    return made


NUMBER = re.compile(r"-?\d+\.\d+")


class WithinTolerance(doctest.OutputChecker):
    """Takes numbers for equal that certificates of one per cent leave open on other machines."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Return whether words are equal, and numbers nearly so."""
        wanted, found = (np.array(NUMBER.findall(text), dtype=float) for text in (want, got))
        words = [" ".join(NUMBER.sub(" # ", text).split()) for text in (want, got)]
        return words[0] == words[1] and np.allclose(found, wanted, rtol=0.1, atol=0.005)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_it_shows(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "agg")
    words = EXAMPLES[name].split("\nExamples\n--------\n")[1].replace(SKIP, "")
    test = doctest.DocTestParser().get_doctest(words, {}, name, name, 0)
    runner = doctest.DocTestRunner(WithinTolerance(), verbose=False)
    assert runner.run(test).failed == 0
