"""What results say of papers, kept in files: `outcomes`."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from mkldist.analysis.conclusion import Conclusion
from mkldist.analysis.outcomes import NOT_HELD, judged_by, outcome_of, read_outcomes, write_outcome
from mkldist.analysis.published import against_published
from mkldist.analysis.published_number import Published
from mkldist.analysis.reproduction import experiments
from mkldist.analysis.verdicts import judge
from mkldist.checked_json import CHECKSUM
from mkldist.errors import DataError
from tests.analysis.two_sweeps import made

NUMBER = Published("made-up", "heart", "level", "", "test_error", 0.25, 0.1, "Table 1")
NUMBERS = [NUMBER, replace(NUMBER, sd=math.nan), replace(NUMBER, method="silp")]
LESS = Conclusion(
    paper="A", words="Level errs less.", experiment="made-up", metric="test_error",
    first="level", second="uniform",
)  # fmt: skip
OTHER = Conclusion.model_validate({**LESS.model_dump(), "experiment": "other"})


@pytest.fixture
def results(tmp_path):
    errors = {("heart", "level"): [0.1, 0.3], ("heart", "uniform"): [0.3, 0.3]}
    return made(tmp_path / "ours", errors, split_names=("s0", "s1"))


@pytest.fixture
def kept(results, tmp_path):
    """Return the outcome of the results as it is read back."""
    write_outcome(tmp_path / "outcomes", outcome_of(results, NUMBERS, [LESS, OTHER]))
    return read_outcomes(tmp_path / "outcomes")


def test_numbers_and_verdicts_are_those_of_the_results(results, kept):
    (own,) = experiments(kept, NUMBERS, [], {})
    for cell, expected in zip(own.cells, against_published(results, NUMBERS), strict=True):
        assert repr(cell) == repr(expected)  # NaN is no equal of itself
    assert (own.complete, own.n_runs) == (8, 8)
    assert judged_by(LESS, kept) == judge(LESS, {"made-up": results})
    assert judged_by(LESS, kept).verdict == "reproduced"


def test_what_the_paper_prints_may_change_after(kept):
    (own,) = experiments(kept, [replace(NUMBER, mean=0.4, source="Table 2")], [], {})
    assert own.cells[0].mean == 0.2
    assert own.cells[0].distance == pytest.approx(-2.0)
    anew = Conclusion.model_validate({**LESS.model_dump(), "words": "Level is better."})
    assert judged_by(anew, kept).verdict == "reproduced"


def test_a_key_newer_than_an_answer_has_its_default(results, kept, tmp_path):
    own = kept["made-up"]
    (answer,) = own.answers
    test = {name: value for name, value in answer.test.items() if name != "wins"}
    write_outcome(tmp_path / "outcomes", replace(own, answers=(replace(answer, test=test),)))
    older = read_outcomes(tmp_path / "outcomes")
    assert judged_by(LESS, older) == judge(LESS, {"made-up": results})
    counted = Conclusion.model_validate({**LESS.model_dump(), "wins": 1})
    assert judged_by(counted, older).note == NOT_HELD


def test_an_answer_stays_where_a_paper_turns_out_to_have_other_data(results, kept):
    excused = Conclusion.model_validate({**LESS.model_dump(), "untestable": "other digits"})
    known = judged_by(excused, kept)
    assert (known.verdict, known.cases) == ("not testable", judge(LESS, {"made-up": results}).cases)


def test_what_nobody_asked_of_the_results_is_said_to_be_unknown(kept):
    (own,) = experiments(kept, [replace(NUMBER, metric="auc")], [], {})
    assert (own.cells[0].n_splits, own.cells[0].verdict) == (0, NOT_HELD)
    turned = Conclusion.model_validate({**LESS.model_dump(), "relation": "more"})
    assert judged_by(turned, kept).note == NOT_HELD
    assert judged_by(OTHER, kept).note == "other was not run"
    never = Conclusion(paper="A", words="B", untestable="nobody measures light")
    assert judged_by(never, kept).note == "nobody measures light"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace(b"level", b"lever"), "its checksum does not fit"),
        (lambda text: text[: len(text) // 2], "its checksum does not fit"),
        (lambda text: b"[]", "no JSON object"),
        (lambda text: json.dumps(_without(json.loads(text))).encode(), "no checksum"),
        (lambda text: b'{"sweep": "made-up"}', "another content"),
    ],
    ids=["other letter", "half", "list", "no checksum", "few keys"],
)
def test_a_file_that_is_no_outcome_is_refused(kept, tmp_path, change, said):
    file = tmp_path / "outcomes/made-up.json"
    file.write_bytes(change(file.read_bytes()))
    with pytest.raises(DataError, match=rf"made-up\.json: found {said}; expected what 'mkldist"):
        read_outcomes(file.parent)


def test_an_outcome_has_the_name_of_its_sweep(kept, tmp_path):
    file = tmp_path / "outcomes/made-up.json"
    file.rename(file.with_stem("other"))
    with pytest.raises(DataError, match="found an outcome of made-up"):
        read_outcomes(file.parent)


def test_without_a_folder_nothing_is_kept(tmp_path):
    assert read_outcomes(tmp_path / "none") == {}


def _without(document):
    return {name: value for name, value in document.items() if name != CHECKSUM}
