"""Facts of a sweep, and sentences: its question and answer, warnings, comparisons, explanations."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mkldist.analysis.comparison import (
    FEWEST_DATA_SETS,
    Chosen,
    OverDataSets,
    Results,
    ResultsComparison,
)
from mkldist.analysis.explanation import LEVELS, Explanation, Share, stability_of, weights_at_best
from mkldist.analysis.growth import SIZES, Growth
from mkldist.analysis.losses import (
    SIGNIFICANCE,
    TO_TRY,
    Compared,
    compared_losses,
    constant_words,
    loss_name,
    pairs_of,
    without_gaps,
)
from mkldist.analysis.statistics import Interval, known_interval
from mkldist.analysis.summary import (
    early_of,
    edges_of,
    loss_of,
    pooled_of,
    selected_summary,
    summary,
)
from mkldist.core.checksums import content_id
from mkldist.core.metrics import LEAST_P, METRICS, NOTHING, Metric, p_value_text, variable_words
from mkldist.core.terminal import command_line
from mkldist.core.wording import pluralize
from mkldist.plot import Look, looks_of
from mkldist.results.folder import restored_manifest
from mkldist.results.rows import (
    hyperparameters,
    is_validated,
    method_nodes,
    place_of,
    settings_of,
    to_frame,
)
from mkldist.results.schema import DATA, DATASET_SERIES, RunState, metric_of
from mkldist.results.status import SweepStatus, sweep_status
from mkldist.results.tree import Snapshot
from mkldist.solvers.progress import StopReason
from mkldist.spec.kinds import TRIAL

if TYPE_CHECKING:
    import xarray as xr


EXPLAINED, MOST_VALUES = 6, 1e9
"""Data sets that a report explains, and kernel values that it computes for each."""


def slug(text: str) -> str:
    """Return a name in small letters, digits and hyphens."""
    return "".join(letter if letter.isalnum() else "-" for letter in text.lower())


def origin_of(results: Path) -> str:
    """Return what tells the results in one folder from others, without the folder's name."""
    return content_id(folder=str(results.resolve()))


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as dictionaries."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


@dataclass(frozen=True, eq=False)
class Facts:
    """Results and status of a sweep, finished or not."""

    tree: xr.DataTree  # Its results
    status: SweepStatus  # Its runs by state

    @classmethod
    def of(cls, path: Path) -> Facts:
        """Read them from an output folder."""
        status = sweep_status(path)
        return cls((status.held or Snapshot.of(path)).tree(), status)

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The sweep file, without values that are the defaults."""
        found: dict[str, Any] = json.loads(str(self.tree.attrs["spec"]))
        return found

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Versions and machine."""
        found: dict[str, Any] = json.loads(str(self.tree.attrs["provenance"]))
        return found

    @cached_property
    def data(self) -> dict[str, dict[str, Any]]:
        """Rows, features, classes, missing cells, views and groups of each data set."""
        found: dict[str, dict[str, Any]] = json.loads(str(self.tree.attrs.get(DATA, "{}")))
        return found

    @cached_property
    def nodes(self) -> list[tuple[dict[str, str], xr.DataTree]]:
        """Place and node of each method on each data set and bank."""
        return [(place_of(node), node) for node in method_nodes(self.tree)]

    @cached_property
    def summary(self) -> pd.DataFrame:
        """A row for each data set, bank, method and setting."""
        return summary(self.tree)

    @cached_property
    def ranked(self) -> list[dict[str, Any]]:
        """Rows that rank the methods: of their selected settings, or without validation of all."""
        return records(selected_summary(self.tree) if self.validated else self.summary)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row for each run."""
        return to_frame(self.tree)

    @cached_property
    def compared(self) -> list[Compared]:
        """Losses of the methods on each data set."""
        return compared_losses(self.tree)

    @cached_property
    def results(self) -> Results:
        """The results with the records beside them."""
        return Results(self.status.path, self.tree)

    def chosen(self, dataset: str, name: str) -> Chosen:
        """Return a method at its chosen setting, by its name in the comparison."""
        nodes = (node for place, node in self.members(dataset) if self.name_of(place) == name)
        return self.results.chosen(next(nodes), self.loss(dataset))

    @cached_property
    def looks(self) -> Mapping[str, Look]:
        """Colour and marker of each method, the same in all figures."""
        return looks_of(place["method"] for place, _ in self.nodes)

    def looks_of(self, names: Iterable[Any]) -> dict[str, Look]:
        """Return the look of the method of each name in a comparison."""
        return {str(name): self.looks[self.method_of(str(name))] for name in names}

    def method_of(self, name: str) -> str:
        """Return the method of a name in a comparison, such as ``level (gaussians)``."""
        return name.partition(" (")[0] if self.several_banks else name

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """Comparison of every two methods on each data set."""
        return pairs_of(self.compared)

    @cached_property
    def weights(self) -> list[tuple[dict[str, str], xr.DataArray]]:
        """Kernel weights of each method at its chosen setting, with its place."""
        return weights_at_best(self.tree)

    @cached_property
    def stability(self) -> pd.DataFrame:
        """Numbers and stability of the kernels that each method selects."""
        return stability_of(self.weights)

    @cached_property
    def explanations(self) -> list[Explanation]:
        """What the decisions of the best method rest on, of the first data sets."""
        from mkldist.fit.explain import explanations

        nodes = [
            node for place, node in self.nodes if place["dataset"] in self.datasets[:EXPLAINED]
        ]
        return explanations(self.results, nodes, most_values=MOST_VALUES)

    @cached_property
    def growths(self) -> list[Growth]:
        """Times over each size of which some method has runs at several values."""
        return [one for name in SIZES if not (one := Growth.of(self.tree, name)).times.empty]

    @property
    def series(self) -> list[str]:
        """Names of the compared data sets without their sizes, in order."""
        return list(dict.fromkeys(one.series for one in self.compared))

    @property
    def validated(self) -> bool:
        """True if settings are selected by validation in each split."""
        return is_validated(self.tree)

    @property
    def several_banks(self) -> bool:
        """True if the sweep has more than one bank."""
        return len({place["bank"] for place, _ in self.nodes}) > 1

    @property
    def datasets(self) -> list[str]:
        """Names of the data sets, in order."""
        return list(dict.fromkeys(place["dataset"] for place, _ in self.nodes))

    @property
    def retry_command(self) -> str:
        """The command that repeats failed runs, in the folder where the sweep was started."""
        manifest = restored_manifest(self.status.path)
        named = manifest.file or f"{self.status.name}.toml"
        return command_line("sweep", named, "--retry-failed")

    def count(self, state: RunState) -> int:
        """Return the number of runs in a state, as in the results that the page shows."""
        return int((self.runs["state"] == state.value).sum())

    def members(self, dataset: str) -> list[tuple[dict[str, str], xr.DataTree]]:
        """Return place and node of the methods on a data set."""
        return [(place, node) for place, node in self.nodes if place["dataset"] == dataset]

    def best_of(self, dataset: str, methods: Collection[str]) -> str:
        """Return the one of some methods that ranks first on a data set."""
        rows = (r for r in self.ranked if r["dataset"] == dataset and r["method"] in methods)
        ranked = sorted(rows, key=lambda row: (isnan(loss := loss_of(row)), loss))
        return str(ranked[0]["method"])

    def largest_bank(self, dataset: str, banks: Collection[str]) -> str:
        """Return the one of some banks of a data set that has most kernels."""
        sizes = {p["bank"]: int(node.ds.get("n_kernels", 0)) for p, node in self.members(dataset)}
        return max(banks, key=lambda bank: sizes[bank])

    def name_of(self, place: Mapping[str, Any]) -> str:
        """Return the name in a comparison of the method of a row."""
        bank = f" ({place['bank']})" * self.several_banks
        return f"{place['method']}{bank}"

    def metric(self, dataset: str) -> Metric:
        """Return the metric that ranks the methods on a data set."""
        return metric_of(self.members(dataset)[0][1].attrs)

    def loss(self, dataset: str) -> str:
        """Return the name of the loss that compares methods on a data set."""
        nodes = [node for _, node in self.members(dataset)]
        return loss_name(nodes)

    def axis(self, dataset: str) -> str | None:
        """Return the hyperparameter of most methods of a data set that holds numbers, if any."""
        counts: dict[str, int] = {}
        for _, node in self.members(dataset):
            for name in hyperparameters(node):
                values = node.ds[name].to_numpy()
                if values.dtype.kind in "fiu" and len(values) > 1 and name != TRIAL:
                    counts[name] = counts.get(name, 0) + 1
        return max(counts, key=lambda name: counts[name]) if counts else None


MOST_NAMED = 3  # with more, their number stands for the names
UNSTABLE = 0.4  # Nogueira et al. call agreement beyond chance below it poor
Row = dict[str, Any]


def named(names: Sequence[str], noun: str = "") -> str:
    """Return names with commas and "and"; of more than three, with a noun, their number."""
    if noun and len(names) > MOST_NAMED:
        return f"{len(names)} {noun}s"
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def those(sentences: Iterable[tuple[object, str]]) -> list[str]:
    """Return the sentences whose conditions hold."""
    return [words for holds, words in sentences if holds]


# The question of a sweep and its answer.


def answers_of(facts: Facts) -> pd.DataFrame:
    """Return the best method of each data set, of those that lack no split that another has.

    Validation ranks the methods where it selects settings, as it does for ``mkldist fit``; scores
    are of the test parts.  Columns are ``dataset``, ``metric``, ``name`` of the method in the
    comparison, its ``setting``, ``mean`` of the metric with its interval ``low`` and ``high``,
    ``constant``, the metric of the best constant prediction, and ``no_better`` where a test finds
    no gain on it; ``second``, the method of the next mean, its ``second_mean``, and ``difference``
    from it with ``difference_low``, ``difference_high`` and ``p_holm`` of the corrected t-test.
    Without a second method the latter are missing.
    """
    found = (_answer(facts, one) for one in facts.compared)
    return pd.DataFrame([row for row in found if row is not None])


def _answer(facts: Facts, compared: Compared) -> Row | None:
    """Return the row of one data set; None where every method lacks a split."""
    losses = without_gaps(compared.losses)
    if losses.empty:
        return None
    chosen = {
        name: next(
            row
            for row in facts.ranked
            if (row["dataset"], facts.name_of(row)) == (compared.dataset, name)
            and (facts.validated or compared.settings[name].items() <= row.items())
        )
        for name in map(str, losses)
    }
    # As the stars of the summary do: inner folds choose alone; else what beats a constant is first.
    ranks = {name: (not facts.validated and row["no_better"], loss_of(row))
             for name, row in chosen.items()}  # fmt: skip
    best, *others = sorted(ranks, key=lambda name: ranks[name])
    metric, score, row = facts.metric(compared.dataset), facts.loss(compared.dataset), chosen[best]
    found: Row = {
        "dataset": compared.dataset,
        "metric": metric.name,
        "name": best,
        "setting": _setting_text(facts, row),
        **{end: row[f"{score}_{end}"] for end in ("mean", "low", "high")},
        "constant": row["constant_mean"],
        "no_better": bool(row["no_better"]),
    }
    if not others:
        return found
    second, sign = others[0], -1.0 if metric.greater else 1.0
    gap = known_interval(sign * (losses[best] - losses[second]).to_numpy(), compared.overlap)
    tests = facts.pairs[facts.pairs["dataset"] == compared.dataset]
    is_pair = tests["first"].isin([best, second]) & tests["second"].isin([best, second])
    return found | {
        "second": second,
        "second_mean": chosen[second][f"{score}_mean"],
        "difference": gap.mean,
        "difference_low": gap.low,
        "difference_high": gap.high,
        "p_holm": float(next(iter(tests.loc[is_pair, "p_holm"]), np.nan)),
    }


def _setting_text(facts: Facts, row: Row) -> str:
    """Return the hyperparameters of a row of a summary that are not missing, in words."""
    names = dict.fromkeys(name for _, node in facts.nodes for name in settings_of(node))
    known = {n: row[n] for n in names if row.get(n) not in (None, "") and row[n] == row[n]}
    return ", ".join(f"{name} = {value_text(value)}" for name, value in known.items())


def headline(facts: Facts, answers: pd.DataFrame) -> list[str]:
    """Return what was asked, what came out by :func:`answers_of`, and how far it is certified."""
    return [_question(facts), *answer_sentences(facts, answers), _certified(facts)]


def _question(facts: Facts) -> str:
    methods = {place["method"] for place, _ in facts.nodes}
    splits = {node.sizes["split"] for _, node in facts.nodes}
    kernels = {int(n.ds["n_kernels"]) for _, n in facts.nodes if "n_kernels" in n.ds.coords}
    done, planned = facts.count(RunState.COMPLETE), len(facts.runs)
    state = f"all {planned:,} runs" if done == planned else f"{done:,} of {planned:,} runs"
    series = {str(n.attrs.get(DATASET_SERIES, p["dataset"])): None for p, n in facts.nodes}
    n_sizes = len(facts.datasets)
    on = named([*series], "data set") + f" in {n_sizes} sizes" * (n_sizes > len(series))
    return (
        f"The sweep compares {pluralize(len(methods), 'method')} on {on} with {_span(kernels)} "
        f"kernels and {_span(splits)} split{'s' * (splits != {1})}; {state} are complete."
    )


def _span(values: set[int]) -> str:
    ends = dict.fromkeys(f"{end:,}" for end in (min(values), max(values))) if values else ["no"]
    return " to ".join(ends)


def answer_sentences(facts: Facts, answers: pd.DataFrame) -> list[str]:
    """Return the best method of each of the first data sets, which the table of answers has all."""
    if answers.empty:
        return ["No method has complete runs on all splits yet, so none is best."]
    found, on = [], " on the inner folds" * facts.validated
    for row in records(answers.head(MOST_NAMED)):
        metric, score = METRICS[row["metric"]], variable_words(facts.loss(row["dataset"]))
        setting = f" ({row['setting']})" if row["setting"] else ""
        value = metric.text(row["mean"], row["low"], row["high"])
        value += " (95 % interval)" * (not math.isnan(row["low"]))
        against = "not shown to be better than" if row["no_better"] else "better than"
        ending = f"; {against} {constant_words(metric, row['constant'])} by a one-sided test"
        following = ""
        if row.get("second") and not row["no_better"]:
            p = f"two-sided p = {p_value_text(row['p_holm'])}, corrected for all pairs"
            following = (
                f" Next there is {row['second']} with {metric.text(row['second_mean'])}, a "
                f"difference of {difference(row)}; "
                f"{'no test applies' if math.isnan(row['p_holm']) else p}."
            )
        found.append(
            f"On {row['dataset']}, {row['name']}{setting} is best{on}: {score} {value}"
            f"{ending * (not math.isnan(row['constant']))}.{following}"
        )
    left = len(answers) - len(found)
    tasks = dict.fromkeys(METRICS[name].task for name in answers["metric"])
    return [
        *found,
        *([f"The table of answers has {left} more data sets."] if left else []),
        *(line for task in tasks if answers["no_better"].all() for line in TO_TRY[task]),
    ]


def difference(row: Row) -> str:
    """Return the difference from the next method with its interval; points of a share of errors."""
    metric = METRICS[row["metric"]]
    mean, *ends = (metric.difference(row[f"difference{end}"]) for end in ("", "_low", "_high"))
    known = not np.isnan(row["difference_low"])
    return mean + f" [{', '.join(ends)}]" * known + " points" * (metric.unit == "%")


def _certified(facts: Facts) -> str:
    """Return how many runs reached their tolerance; the table of certificates has what is left."""
    rows = facts.runs[facts.runs["state"] == RunState.COMPLETE.value]
    if rows.empty:
        return "No run has a certificate yet."
    n_met = int((rows["stop_reason"] == StopReason.CONVERGED.value).sum())
    n_failed, gap = facts.count(RunState.FAILED), rows["gap"].max()
    which = "All" if n_met == len(rows) else f"{n_met:,} of"
    all_proven = n_met == len(rows) and gap == gap  # NaN where no problem is convex
    largest = f", with a certified gap of at most {gap:.1e}" * bool(all_proven)
    failed = f"; {pluralize(n_failed, 'run')} failed" * bool(n_failed)
    return f"{which} {len(rows):,} complete runs reached their tolerance{largest}{failed}."


# Warnings.


@dataclass(frozen=True)
class Caution:
    """One thing to beware of: what it is, what it means and what to do, and where it was found."""

    title: str
    advice: str
    cases: tuple[str, ...] = ()  # if in several places

    @property
    def text(self) -> str:
        """The first few cases, how many there are, and the advice, in one line."""
        if not self.cases:
            return self.advice
        left = len(self.cases) - MOST_NAMED
        more = f"; {left} more of {len(self.cases)}" if left > 0 else ""
        return f"{'; '.join(self.cases[:MOST_NAMED])}{more}. {self.advice}"


def shared_times(facts: Facts) -> list[Caution]:
    """Return a warning if runs shared the passes over the bank."""
    shared = Caution(
        "Times shared, not isolated",
        "Runs shared the passes over a bank, and a run's seconds hold its share of them. Set "
        'execution = "isolated" for times to compare.',
    )
    return [shared] if facts.spec.get("execution") != "isolated" else []


def cautions(facts: Facts) -> list[Caution]:
    """Return what a reader has to beware of."""
    waiting, failed = facts.count(RunState.WAITING), facts.count(RunState.FAILED)
    several = any(facts.axis(dataset) for dataset in facts.datasets)
    states = [
        (waiting, "Unfinished", f"{waiting:,} of {len(facts.runs):,} runs are not recorded yet. "
         "Means are over the runs that are."),
        (failed, "Failed runs", f"{pluralize(failed, 'run')} failed; why stands below."),
        (several and not facts.validated, "Settings chosen on the test parts",
         "The sweep has no inner folds ([selection]). Each method is shown at the setting of least "
         "loss on the test parts, which flatters methods with many settings."),
    ]  # fmt: skip
    found = [
        ("Scores of folds together", pooled_of(facts.ranked),
         "Their spread and intervals are those of the jackknife, which leaves out one fold."),
        ("Kernels that say nothing", _silent(facts),
         "Other widths may say more. The documentation of kernels has the rule."),
        ("Splits missing", [f"{named(names)} on {one.dataset}" for one in facts.compared
         if (names := [str(n) for n in one.losses if n not in without_gaps(one.losses)])],
         "Means of fewer splits are not compared with others."),
        ("Best value at the edge of its grid", edges_of(facts.ranked), "Extend it."),
        ("Stopped before the tolerance", early_of(records(facts.summary)),
         "Their results are not proven optimal."),
        ("Selection unstable", _unstable(facts),
         "The kernels selected differ between splits (stability 1 is equal, 0 is chance). Read "
         "single weights with care, sums over widths or features rather."),
    ]  # fmt: skip
    return [
        *(Caution(title, advice) for holds, title, advice in states if holds),
        *(Caution(title, advice, cases) for title, some, advice in found if (cases := (*some,))),
        *shared_times(facts),
    ]


def _silent(facts: Facts) -> Iterator[str]:
    """Yield the banks of which kernels are nearly the identity, constant or equal to others."""
    for dataset, found in facts.data.items():
        for bank, words in found.get("kernels", {}).items():
            if words:
                yield f"{dataset}, bank {bank}: {words}"


def _unstable(facts: Facts) -> Iterator[str]:
    """Yield each method that selects other kernels in other splits."""
    rows = facts.stability
    judged = rows["stability_high"].fillna(rows["stability"])
    for (method, bank), some in rows[judged < UNSTABLE].groupby(["method", "bank"], sort=False):
        on = f" on {bank}" if facts.several_banks else ""
        low, high = (f"{end:.2f}" for end in (some["stability"].min(), some["stability"].max()))
        span = low if low == high else f"{low} to {high}"
        few = ", few splits give it no interval" * bool(some["stability_high"].isna().any())
        yield f"{method}{on}: {span} on {named(some['dataset'].tolist(), 'data set')}{few}"


# Comparisons.

SIZES_SHARE = (
    "Sizes of one data set share their points: tests over data sets count them as one data set, by "
    "its largest size."
)


def sentences(comparison: ResultsComparison, *, isolated: bool) -> list[str]:
    """Return the test over all data sets, and the limits of what a comparison shows."""
    pairs = comparison.pairs
    places = {(pair.dataset, pair.series or pair.dataset) for pair in pairs}
    by_test = (
        not validated and number > 1
        for pair in pairs
        for validated, number in zip(pair.validated, pair.n_settings, strict=True)
    )
    return [
        *(_over(one) for one in comparison.over if len(comparison.over) == 1),
        *those([
            (len({series for _, series in places}) < len(places), SIZES_SHARE),
            (any(pair.n_splits > 1 and pair.p_holm >= SIGNIFICANCE for pair in pairs),
             "A difference that no test finds is not shown to be zero."),
            (any(by_test), "Settings were chosen by the test parts where the sweep has no inner "
             "folds, which flatters methods with many settings."),
            (not isolated, "Seconds include shares of common passes; "
             'execution = "isolated" gives honest times.'),
            (True, "This holds for these data sets, kernels and settings; it says nothing about "
             "other data."),
        ]),
    ]  # fmt: skip


def p_words(test: OverDataSets) -> str:
    """Return the adjusted p-value of a test, and say where it is not the p-value itself."""
    if math.isnan(test.p_holm):
        return "p unknown"
    p = f"p = {test.p_holm:.2g}" if test.p_holm >= LEAST_P else f"p < {LEAST_P}"
    return p if test.p_holm == test.p_value else f"{p} with Holm's correction"


def _over(over: OverDataSets) -> str:
    """Return what the data sets together say about two methods."""
    first, second, count = over.first, over.second, f"{len(over.datasets)} data sets"
    if first == second:
        first, second = f"{first} of the first results", f"{second} of the second results"
    if len(over.datasets) < FEWEST_DATA_SETS:
        return f"{count} are too few for a test over them: it needs {FEWEST_DATA_SETS}."
    return (
        f"Over {count} the median difference of {first} from {second} is "
        f"{over.median_difference:+.4f}; Wilcoxon's signed-rank test, {p_words(over)}."
    )


# Explanations.

SHOWN_LEVELS = ("view", "group", "feature", "kernel")
OF_FEATURES = SHOWN_LEVELS[:3]


def name_of(share: Share, same: Sequence[Share]) -> str:
    """Return rank and name, ``=`` after a rank that other shares of the level have too."""
    tied = sum(other.rank == share.rank for other in same) > 1
    name = f"{share.name:g}" if isinstance(share.name, float) else share.name
    return f"{share.rank}{'=' if tied else '.'}\N{NO-BREAK SPACE}{name}"


def others_words(others: Sequence[Share]) -> str:
    """Return how many shares a table leaves out and how large they are at most."""
    known = not math.isnan(others[0].decision.mean)
    largest = max((share.decision if known else share.weight).mean for share in others)
    return f"and {len(others):,} more, of at most {100 * largest:z.0f} %"


def percent(found: Interval) -> str:
    """Return a share and its interval in per cent."""
    return _with_ends(found, lambda value: f"{100.0 * value:z.0f}")


def worse(found: Interval, metric: Metric) -> str:
    """Return the rise of a loss and its interval; of errors in points."""

    def text(value: float) -> str:
        if metric.unit == "%":
            return f"{100.0 * value:z.{0 if abs(value) >= 0.0995 else 1}f}"
        if metric.unit == "1":
            return f"{value:z.3f}"
        return f"{value:,.0f}" if abs(value) >= 10.0 else f"{value:.2g}"

    return _with_ends(found, text)


def _with_ends(found: Interval, text: Callable[[float], str]) -> str:
    if math.isnan(found.mean):
        return NOTHING
    ends = "" if math.isnan(found.low) else f" [{text(found.low)}, {text(found.high)}]"
    return text(found.mean) + ends


def captions(explanation: Explanation) -> list[str]:
    """Return what the columns are."""
    metric, n = explanation.metric, explanation.n_permutations
    unit = ", in points" * (metric.unit == "%")
    return those([
        (True, "decision: share of the variance of the decision values, Cov(part, whole) / "
         "Var(whole); the part of features is what the decision loses where they stand at their "
         "means."),
        (True, "weights: share of the sum of kernel weights, of kernels on these features alone, "
         "as the bank normalises them."),
        (True, f"left out: how much worse the {metric.words} on the test rows is with the part at "
         f"its mean{unit}; without training again."),
        (True, "active: splits that give a kernel with one of its features more than 0.001 of the "
         "largest weight."),
        (n, f"p: how often a fit on permuted labels has as large a share of the decision, of {n}, "
         f"at least {1 / (1 + n):.2g}; not corrected for the number of rows."),
        (explanation.n_splits > 1, "In brackets: 95 % intervals over the splits."),
    ])  # fmt: skip


def warnings(one: Explanation) -> list[str]:
    """Return what a reader must know before the shares."""
    words = (
        f"On {one.dataset}, {one.method} is no better than {one.no_better}, by a test: what its "
        "decision rests on may say nothing of the labels."
    )
    return [words] if one.no_better else []


def explanation_sentences(one: Explanation) -> list[str]:
    """Return what carries the decision, and how stable that is."""
    setting = ", ".join(f"{name} = {value_text(value)}" for name, value in one.setting.items())
    where = f"On {one.dataset}, {one.method}{f' ({setting})' if setting else ''}"
    splits = "on one split"
    if one.n_splits > 1:
        splits = f"on average over {one.n_splits} splits; {one.always} of them in every split"
    by = "validation loss" if one.validated else "loss on the scored rows, which flatters it"
    return [
        *warnings(one),
        f"{where} has {one.selected:.3g} active kernels of {one.n_kernels:,} of bank {one.bank} "
        f"{splits}.",
        _stability(one),
        *those([
            (one.no_decision, f"Shares of the decision's variance are not known: "
             f"{one.no_decision}."),
            (not one.no_decision and not one.n_permutations,
             "--permutations 100 adds p-values, by 100 fits on permuted labels of each split."),
            (not one.normalised,
             "The bank does not scale its kernels, so that their weights do not compare."),
            (one.n_candidates > 1,
             f"It has the least mean {by}, of {one.n_candidates} methods and banks."),
            (not one.validated and one.n_settings > 1, "Its setting was chosen from "
             f"{one.n_settings} by the test parts; inner folds, [selection], would choose it "
             "without their labels."),
            (True, "Shares describe this model, not causes: of features that resemble each other, "
             "one may carry the share of all."),
        ]),
    ]  # fmt: skip


def _stability(one: Explanation) -> str:
    if math.isnan(one.stability["kernel"].mean):
        return "Stability of the selection has no meaning on one split, or where all are selected."
    found = ", ".join(
        f"{LEVELS[level]} {own.mean:.2f}"
        + f" [{own.low:.2f}, {min(own.high, 1.0):.2f}]" * (not math.isnan(own.low))
        for level in ("kernel", *OF_FEATURES)
        if (own := one.stability.get(level)) and not math.isnan(own.mean)
    )
    return (
        "Stability of the selection over the splits by Nogueira's measure (1 is equal selections, "
        f"0 is chance, below 0.4 is poor): {found}."
    )


def value_text(value: object) -> str:
    """Return the value of a hyperparameter, or the span or names of its values in the splits."""
    if isinstance(value, list):
        if len(value) > 1 and all(type(one) in (int, float) for one in value):
            ends = dict.fromkeys(value_text(end) for end in (min(value), max(value)))
            return "…".join(ends)
        return "/".join(dict.fromkeys(value_text(one) for one in value))
    return f"{value:g}" if isinstance(value, float) else str(value)
