"""Pairs of methods whose runs learnt from the same rows, in one tree of results or in two."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mkldist.analysis.losses import at_best, loss_name
from mkldist.analysis.statistics import largest_of_series
from mkldist.core.arrays import Bools, Floats
from mkldist.core.metrics import metric_of_variable
from mkldist.results.folder import OutputFolder
from mkldist.results.journal import Journal
from mkldist.results.record import RunRecord
from mkldist.results.rows import (
    complete_values,
    is_validated,
    method_nodes,
    place_of,
    settings_of,
)
from mkldist.results.schema import DATASET_SERIES, RUN_ID, SPLIT, STATE, RunState
from mkldist.results.tree import open_results

if TYPE_CHECKING:
    import xarray as xr

Place: TypeAlias = dict[str, str]


@dataclass(frozen=True, eq=False)
class Results:
    """Results of a sweep with the records beside them."""

    path: Path  # The output folder
    tree: xr.DataTree  # As open_results returns it

    @classmethod
    def of(cls, path: str | Path) -> Results:
        """Open the results in an output folder."""
        return cls(Path(path), open_results(path))

    @cached_property
    def validated(self) -> bool:
        """True if settings are selected by validation in each split."""
        return is_validated(self.tree)

    @cached_property
    def chosen_tree(self) -> xr.DataTree:
        """The tree with each method at its chosen setting."""
        return at_best(self.tree)

    @cached_property
    def store(self) -> Journal:
        """The records."""
        return Journal(OutputFolder(self.path).records)

    def nodes(self) -> list[xr.DataTree]:
        """Return the nodes of the methods."""
        return method_nodes(self.tree)

    def places(self) -> list[Place]:
        """Return data set, bank and method of every node."""
        return [place_of(node) for node in self.nodes()]

    def chosen(self, node: xr.DataTree, loss: str) -> Chosen:
        """Return a method at its chosen setting."""
        return Chosen(self, node, self.chosen_tree[node.path].to_dataset(), loss)


@dataclass(frozen=True, eq=False)
class Chosen:
    """A method on a data set, at the setting that was chosen."""

    results: Results  # The results that hold it
    node: xr.DataTree  # Its node, with all settings
    data: xr.Dataset  # The node at the chosen setting: runs have the dim ``split`` alone
    loss: str  # Name of the loss that compares it

    @property
    def place(self) -> dict[str, str]:
        """Data set, bank and method."""
        return place_of(self.node)

    def name(self, *, with_bank: bool) -> str:
        """Return the name of the method, or BANK/METHOD."""
        bank = f"{self.place['bank']}/" if with_bank else ""
        return f"{bank}{self.place['method']}"

    @property
    def losses(self) -> Floats:
        """Loss on each split; NaN where a run is not complete."""
        losses: Floats = metric_of_variable(self.loss).loss(self.values(self.loss))
        return losses

    def metrics(self) -> list[str]:
        """Return the names of the variables that have one number a run."""
        return sorted(
            str(name)
            for name, values in self.data.data_vars.items()
            if values.dims == (SPLIT,) and values.dtype.kind in "iuf"
        )

    def values(self, name: str) -> Floats:
        """Return a variable of the runs, one value a split; NaN where a run is not complete."""
        if name not in self.data:
            return np.full(self.data.sizes[SPLIT], np.nan)
        return complete_values(self.data, name, (SPLIT,))

    @cached_property
    def complete(self) -> Bools:
        """Where the runs of the splits are complete."""
        done: Bools = self.data[STATE.name].to_numpy() == RunState.COMPLETE.value
        return done

    @cached_property
    def records(self) -> list[RunRecord | None]:
        """Record of each split's run; None where it is not complete or its record is gone."""
        ids = self.data[RUN_ID.name].to_numpy()
        return [
            self.results.store.read(str(run_id)) if done else None
            for run_id, done in zip(ids, self.complete, strict=True)
        ]

    def settings(self, splits: Sequence[int]) -> dict[str, Any]:
        """Return the hyperparameters: a value, or a list of one a split where they differ."""
        found = {}
        for name in settings_of(self.node):
            values = np.broadcast_to(self.data[name].to_numpy(), self.data.sizes[SPLIT])
            own = [values[j].item() if hasattr(values[j], "item") else values[j] for j in splits]
            found[name] = own[0] if len(set(own)) == 1 else own
        return found

    def facts(self, name: str) -> list[str]:
        """Return what the records say of their origin by this name, empty where nothing."""
        return [str(record.provenance.get(name, "")) if record else "" for record in self.records]


def methods_by_data_set(
    results: Results, methods: Collection[str] = ()
) -> Iterator[tuple[str, dict[str, Chosen]]]:
    """Yield each data set with its methods at their chosen settings, by their names.

    A method has its bank before its name where there are several.  Of several sizes of one data set
    the largest alone takes part: the sizes share their points, and are no independent data sets.
    """
    nodes: dict[str, list[xr.DataTree]] = {}
    for node, place in zip(results.nodes(), results.places(), strict=True):
        nodes.setdefault(place["dataset"], []).append(node)
    sizes = [
        (str(own[0].attrs.get(DATASET_SERIES, dataset)), float(own[0].ds["n_train"].mean()))
        for dataset, own in nodes.items()
    ]
    several_banks = len({place["bank"] for place in results.places()}) > 1
    datasets = list(nodes)
    for dataset in (datasets[number] for number in largest_of_series(sizes)):
        own = nodes[dataset]
        loss = loss_name(own)
        found = [results.chosen(node, loss) for node in own if _is_asked(place_of(node), methods)]
        yield dataset, {one.name(with_bank=several_banks): one for one in found}


@dataclass(frozen=True, eq=False)
class Pair:
    """Two methods on the same data and splits."""

    first: Chosen  # The methods
    second: Chosen
    splits: tuple[tuple[int, int], ...]  # Positions of the splits of equal rows in both

    @property
    def same_bank(self) -> bool:
        """True if both learnt from the same Gram matrices, as far as records say."""
        pairs = zip(*self.facts("bank"), strict=True)
        return all(one == other and one for one, other in pairs)

    def facts(self, name: str) -> tuple[list[str], list[str]]:
        """Return what the records of the paired runs say of their origin by this name."""
        first, second = self.first.facts(name), self.second.facts(name)
        return [first[i] for i, _ in self.splits], [second[j] for _, j in self.splits]


@dataclass(frozen=True)
class Unpaired:
    """Runs or data sets that take no part in a comparison, and the reason."""

    place: str  # Data set and method
    reason: str  # Why, as a phrase


def is_named(place: Place, word: str) -> bool:
    """Return True if a word is the method of a place, or its bank and method as BANK/METHOD."""
    return word in (place["method"], f"{place['bank']}/{place['method']}")


def _is_asked(place: Place, methods: Collection[str]) -> bool:
    """Return True for a method that was asked for, or where all are."""
    return not methods or any(is_named(place, name) for name in methods)


def every_two(results: Results) -> Callable[[Place, Place], bool]:
    """Return the function that matches every two methods of results on the same bank, once."""
    order = {tuple(place.values()): number for number, place in enumerate(results.places())}

    def matches(one: Place, other: Place) -> bool:
        return one["bank"] == other["bank"] and (
            order[tuple(one.values())] < order[tuple(other.values())]
        )

    return matches


def matching(
    first: Results, second: Results, methods: tuple[str, str] | None = None
) -> Callable[[Place, Place], bool]:
    """Return the function that tells which methods of two results are to be compared.

    Methods are compared on the same bank where there are several, unless a name has its bank before
    it; and never with themselves.
    """
    names = [{(p["dataset"], p["method"]) for p in results.places()} for results in (first, second)]
    by_name = bool(names[0] & names[1])
    several = any(len({p["bank"] for p in results.places()}) > 1 for results in (first, second))
    one_bank = several and not any("/" in name for name in methods or ())

    def matches(one: Place, other: Place) -> bool:
        if one_bank and one["bank"] != other["bank"]:
            return False
        if methods is None:
            return one["method"] == other["method"] or not by_name
        itself = first is second and one == other
        return not itself and is_named(one, methods[0]) and is_named(other, methods[1])

    return matches


def paired(
    first: Results, second: Results, matches: Callable[[Place, Place], bool]
) -> tuple[list[Pair], list[Unpaired]]:
    """Pair the methods of two results on every data set that both have.

    Splits are paired where their rows are the same, whatever their positions; the records of the
    runs tell by fingerprints of data and splits.  Splits of one tree are the same by their
    positions.

    Pairs have a split in common at least.
    """
    pairs: list[Pair] = []
    unpaired: list[Unpaired] = []
    others = [(place_of(node), node) for node in second.nodes()]
    for place, node in ((place_of(node), node) for node in first.nodes()):
        for other_place, other in others:
            if place["dataset"] != other_place["dataset"] or not matches(place, other_place):
                continue
            found = _pair(first, node, second, other)
            if isinstance(found, Pair):
                pairs.append(found)
            else:
                unpaired.append(found)
    return pairs, unpaired


def _pair(
    first: Results, node: xr.DataTree, second: Results, other: xr.DataTree
) -> Pair | Unpaired:
    """Return two methods with the splits that they have in common, or why there are none."""
    names = [place_of(one)["method"] for one in (node, other)]
    where = f"{place_of(node)['dataset']}, {' and '.join(dict.fromkeys(names))}"
    tasks = [str(one.attrs["task"]) for one in (node, other)]
    if tasks[0] != tasks[1]:
        return Unpaired(where, f"one is of {tasks[0]}, the other of {tasks[1]}")
    loss = loss_name([node, other])
    one, two = first.chosen(node, loss), second.chosen(other, loss)
    for side, name in ((one, names[0]), (two, names[1])):
        if np.isnan(side.losses).all():
            what = loss.replace("_", " ")
            return Unpaired(
                where, f"{name} has no complete run with a {what} in {side.results.path}"
            )
    found = _same_splits(one, two)
    return Unpaired(where, found) if isinstance(found, str) else Pair(one, two, tuple(found))


def _same_splits(first: Chosen, second: Chosen) -> list[tuple[int, int]] | str:
    """Return the positions of splits of equal rows that both have a loss on, or why none are."""
    both = [~np.isnan(side.losses) for side in (first, second)]
    if first.results is second.results:
        splits = np.flatnonzero(both[0] & both[1]).tolist()
        return [(j, j) for j in splits] or "no split has a complete run of both"
    data = [{text for text in side.facts("data_fingerprint") if text} for side in (first, second)]
    for side, known in zip((first, second), data, strict=True):
        if not known:
            return (
                f"{side.results.path} holds no records, which tell if data and splits are the same"
            )
    if data[0] != data[1]:
        prints = " and ".join(", ".join(sorted(known)) for known in data)
        return f"their data differ (fingerprints {prints})"
    places: dict[str, int] = {}
    for j, text in enumerate(second.facts("split_fingerprint")):
        if text and both[1][j]:
            places.setdefault(text, j)
    found = []
    for i, text in enumerate(first.facts("split_fingerprint")):
        if both[0][i] and text in places:
            found.append((i, places.pop(text)))
    return found or "their splits differ: no split has the same rows in both"
