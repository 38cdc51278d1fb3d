"""What the results of a sweep say of papers, as a small file.

Results that repeat a paper's experiments take hours to compute and gigabytes to keep.  A page of
what is reproduced needs little of them: our counterpart of each published number, the figures that
decide each conclusion, and what ran where.  That is an outcome, a JSON document with a checksum.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mkldist.analysis.conclusion import Conclusion
from mkldist.analysis.origins import Origin, origins
from mkldist.analysis.pairing import Results
from mkldist.analysis.published import Ours, of_sweep, our_number
from mkldist.analysis.published_number import Published
from mkldist.analysis.setting_ranges import SettingRange, setting_range
from mkldist.analysis.verdicts import Case, Judged, Verdict, judge
from mkldist.checked_json import BLANK, CHECKSUM, filled, parsed
from mkldist.durable import write_file
from mkldist.errors import DataError
from mkldist.results.schema import STATE
from mkldist.results.state import RunState

ENDING = ".json"
NOT_HELD = "not asked for when the results were read"


@dataclass(frozen=True)
class Number:
    """Our counterpart of one published number.

    Parameters
    ----------
    dataset, method, setting, metric : str
        The number, as in :class:`~mkldist.analysis.published_number.Published`.
    ours : Ours
        Our mean and standard deviation.
    settings : SettingRange
        What all settings give.
    """

    dataset: str
    method: str
    setting: str
    metric: str
    ours: Ours
    settings: SettingRange


@dataclass(frozen=True)
class Answer:
    """The verdict on a conclusion.

    Parameters
    ----------
    test : dict of str to object
        What the conclusion compares and how: all that it says but words.
    verdict, cases, note
        As in :class:`~mkldist.analysis.verdicts.Judged`.
    """

    test: dict[str, Any]
    verdict: Verdict
    cases: tuple[Case, ...]
    note: str


@dataclass(frozen=True)
class Outcome:
    """What the results of a sweep say of published numbers and conclusions.

    Parameters
    ----------
    sweep : str
        Its name.
    created : str
        Day on which the tree of results was made.
    complete, n_runs : int
        Complete runs, and all.
    spec : dict
        What ran, as a sweep file has it.
    origins : tuple of Origin
        Software and machines that made the runs.
    numbers : tuple of Number
        Our counterparts of the published numbers of this sweep.
    answers : tuple of Answer
        Verdicts on the conclusions that this sweep tests.
    """

    sweep: str
    created: str
    complete: int
    n_runs: int
    spec: dict[str, Any] = field(repr=False)
    origins: tuple[Origin, ...]
    numbers: tuple[Number, ...]
    answers: tuple[Answer, ...]

    def number(self, one: Published) -> Number:
        """Return our counterpart of a published number."""
        key = (one.dataset, one.method, one.setting, one.metric)
        for known in self.numbers:
            if (known.dataset, known.method, known.setting, known.metric) == key:
                return known
        nothing = Ours(0, math.nan, math.nan, NOT_HELD)
        return Number(*key, nothing, SettingRange())


def judged_by(conclusion: Conclusion, outcomes: Mapping[str, Outcome]) -> Judged:
    """Return the verdict on a conclusion by the outcome of the sweep that tests it."""
    outcome = outcomes.get(conclusion.experiment)
    if outcome is None:
        return judge(conclusion, {})
    test = _test(conclusion)
    for known in outcome.answers:
        if {**DEFAULTS, **known.test} == test:  # a key that is newer than the answer
            verdict: Verdict = "not testable" if conclusion.untestable else known.verdict
            return Judged(conclusion, verdict, known.cases, known.note)
    return Judged(conclusion, "not testable", note=NOT_HELD)


def outcome_of(
    results: Results,
    published: Sequence[Published],
    conclusions: Sequence[Conclusion],
    datasets: Iterable[str] = (),
) -> Outcome:
    """Return what results say of published numbers and conclusions.

    Parameters
    ----------
    results : Results
        Results of a sweep.
    published : sequence of Published
        Numbers; those of other experiments are left out.
    conclusions : sequence of Conclusion
        Conclusions; those from other experiments are left out.
    datasets : iterable of str
        Data sets of the sweep's file, of which results may have a part; none if unknown.

    Raises
    ------
    mkldist.errors.DataError
        For a metric of which runs do not have one number each.
    """
    attributes = results.tree.attrs
    sweep = str(attributes["sweep"])
    states = [node[STATE.name] for node in results.nodes()]
    numbers = [
        Number(one.dataset, one.method, one.setting, one.metric, our_number(results, one),
               setting_range(results, one))
        for one in of_sweep(published, sweep)[0]
    ]  # fmt: skip
    judged = [
        judge(one.model_copy(update={"untestable": ""}), {sweep: results}, datasets)
        for one in conclusions
        if one.experiment == sweep
    ]
    answers = [Answer(_test(one.conclusion), one.verdict, one.cases, one.note) for one in judged]
    return Outcome(
        sweep,
        str(attributes["created"])[:10],
        sum(int((state == RunState.COMPLETE.value).sum()) for state in states),
        sum(state.size for state in states),
        json.loads(str(attributes["spec"])),
        tuple(origins(results)),
        tuple(numbers),
        tuple(answers),
    )


def write_outcome(folder: Path, outcome: Outcome) -> None:
    """Write an outcome to the file of its sweep in a folder, in place of an earlier one.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    document = {CHECKSUM: BLANK, **_spelled(TypeAdapter(Outcome).dump_python(outcome, mode="json"))}
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_file(folder / f"{outcome.sweep}{ENDING}", [filled(text.encode())])


def read_outcomes(folder: Path) -> dict[str, Outcome]:
    """Return the outcomes of a folder by the names of their sweeps; none without the folder.

    Raises
    ------
    mkldist.errors.DataError
        If a file is damaged, or is no outcome of the sweep of its name.
    """
    return {file.stem: _read(file) for file in sorted(folder.glob(f"*{ENDING}"))}


def _read(file: Path) -> Outcome:
    """Return the outcome in a file."""
    wanted = "what 'mkldist compare --published FOLDER -o PAGE' keeps of results"
    try:
        document, is_checked = parsed(file.read_bytes())
        found = TypeAdapter(Outcome).validate_python(document)
    except (ValueError, OSError) as error:
        fault = "another content" if isinstance(error, ValidationError) else str(error)
        raise DataError(str(file), fault, wanted, "Remove it, and give the results anew") from error
    if not is_checked or found.sweep != file.stem:
        fault = f"an outcome of {found.sweep}" if is_checked else "no checksum"
        raise DataError(str(file), fault, wanted, "Remove it, and give the results anew")
    return found


def _spelled(value: Any) -> Any:
    """Return a value whose NaN and infinite numbers, which JSON has not, are texts."""
    if isinstance(value, dict):
        return {name: _spelled(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_spelled(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _test(conclusion: Conclusion) -> dict[str, Any]:
    """Return what a conclusion compares, and how, as JSON has it."""
    return conclusion.model_dump(mode="json", exclude={"paper", "words", "untestable"})


DEFAULTS = _test(Conclusion.model_construct(paper="", words=""))
