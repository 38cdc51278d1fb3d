"""Results of several sweeps in one tree, where they are of the same data and splits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mkldist.errors import InputError
from mkldist.results.journal import Journal
from mkldist.results.output import OutputFolder
from mkldist.results.rows import method_nodes, place_of
from mkldist.results.schema import OTHER_RUNS, RUN_ID, SPLIT, STATE
from mkldist.results.state import RunState

if TYPE_CHECKING:
    import xarray as xr

Facts = dict[int, str]
"""A fact of the records of each split, such as the fingerprint of its rows."""


@dataclass(frozen=True, eq=False)
class _Part:
    """One of the results, and what its records say of data, splits and banks.

    Parameters
    ----------
    path : Path
        Its folder.
    tree : xarray.DataTree
        Its tree.
    data, splits : dict of str to dict of int to str
        Fingerprints of the data and of the rows of each split, by data set.
    banks : dict of (str, str) to dict of int to str
        Ids of the bank of each split, by data set and name of the bank.
    """

    path: Path
    tree: xr.DataTree
    data: dict[str, Facts] = field(default_factory=lambda: defaultdict(dict))
    splits: dict[str, Facts] = field(default_factory=lambda: defaultdict(dict))
    banks: dict[tuple[str, str], Facts] = field(default_factory=lambda: defaultdict(dict))

    @classmethod
    def of(cls, path: Path, tree: xr.DataTree) -> _Part:
        """Read one record of each bank and split."""
        found, store = cls(path, tree), Journal(OutputFolder(path).records)
        for node in method_nodes(tree):
            place = place_of(node)
            dataset, banks = place["dataset"], found.banks[place["dataset"], place["bank"]]
            ids = node[RUN_ID.name].transpose(SPLIT, ...).to_numpy()
            states = node[STATE.name].transpose(SPLIT, ...).to_numpy()
            for split in {*range(len(ids))} - banks.keys():
                done = ids[split][states[split] == RunState.COMPLETE.value].ravel().tolist()
                record = store.read(str(done[0])) if done else None
                if record is not None:
                    facts = {name: str(text) for name, text in record.provenance.items()}
                    found.data[dataset][split] = facts.get("data_fingerprint", "")
                    found.splits[dataset][split] = facts.get("split_fingerprint", "")
                    banks[split] = facts.get("bank", "")
        return found


def joined(paths: Sequence[Path], trees: Sequence[xr.DataTree]) -> xr.DataTree:
    """Return the nodes of several results in one tree.

    Parameters
    ----------
    paths : sequence of Path
        Their output folders.
    trees : sequence of DataTree
        Their trees.

    Returns
    -------
    DataTree
        A method or bank that results have under one name, and that differs, is called by the name
        of its sweep too, as in ``"wdbc/level (old)"``.  Nodes of the same runs are there once.

    Raises
    ------
    mkldist.errors.InputError
        If results are of other data or splits than the first of the same data set.
    """
    import xarray as xr

    parts = [_Part.of(path, tree) for path, tree in zip(paths, trees, strict=True)]
    names = _names(parts)
    for i, part in enumerate(parts):
        for other in parts[:i]:
            _check_alike(other, part)
    banks = {
        (i, bank): _told_apart(bank, names[i], _others_differ(parts, i, bank))
        for i, part in enumerate(parts)
        for _, bank in part.banks
    }
    several = len({*banks.values()}) > 1
    found: dict[str, xr.Dataset] = {}
    nodes: dict[tuple[str, ...], list[tuple[int, xr.DataTree]]] = defaultdict(list)
    for i, part in enumerate(parts):
        for node in method_nodes(part.tree):
            place = place_of(node)
            alike = nodes[place["dataset"], banks[i, place["bank"]], place["method"]]
            if not any(_same_runs(node, other) for _, other in alike):
                alike.append((i, node))
    for (dataset, bank, method), alike in nodes.items():
        for i, node in alike:
            own = _told_apart(method, names[i], len(alike) > 1)
            where = "/".join([dataset, *[bank] * several, own])
            for one in node.subtree:
                found[where + one.path.removeprefix(node.path)] = one.to_dataset()
            found[where] = found[where].assign_attrs(bank=bank)
    tree = xr.DataTree.from_dict(found)
    tree.attrs = {
        "title": f"Results of the sweeps {', '.join(names)}",
        "sweep": ", ".join(names),
        OTHER_RUNS: sum(one.attrs[OTHER_RUNS] for one in trees),
    }
    return tree


def _names(parts: Sequence[_Part]) -> list[str]:
    """Return names of results: of their sweeps, of their folders, or whole paths."""
    for names in (
        [str(part.tree.attrs["sweep"]) for part in parts],
        [part.path.resolve().name for part in parts],
    ):
        if len({*names}) == len(names):
            return names
    paths = [str(part.path.resolve()) for part in parts]
    if len({*paths}) < len(paths):
        raise InputError("open_results", "the same results twice", "results of several sweeps")
    return [path.replace("/", "|") for path in paths]  # a slash would part nodes


def _told_apart(name: str, sweep: str, differs: bool) -> str:
    return f"{name} ({sweep})" if differs else name


def _same_runs(one: xr.DataTree, other: xr.DataTree) -> bool:
    """Return True if two nodes hold the same runs, which results of two sweeps may share."""
    ids = [node[RUN_ID.name].to_numpy() for node in (one, other)]
    return np.array_equal(ids[0], ids[1])


def _others_differ(parts: Sequence[_Part], number: int, bank: str) -> bool:
    """Return True if other results have another bank of this name on a data set that both have."""
    own = {dataset: facts for (dataset, name), facts in parts[number].banks.items() if name == bank}
    return any(
        not _agree(facts, other.banks[dataset, bank])
        for i, other in enumerate(parts)
        for dataset, facts in own.items()
        if i != number and (dataset, bank) in other.banks
    )


def _agree(one: Facts, other: Facts) -> bool:
    """Return True if facts are the same on the splits that both know."""
    return all(one[split] == other[split] for split in one.keys() & other.keys())


def _check_alike(one: _Part, other: _Part) -> None:
    """Refuse two results of which a data set has other data or splits."""
    for dataset in {place_of(node)["dataset"] for node in method_nodes(one.tree)}:
        if dataset not in {place_of(node)["dataset"] for node in method_nodes(other.tree)}:
            continue
        found = ""
        prints = {*one.data[dataset].values()}, {*other.data[dataset].values()}
        sizes = [_n_splits(part, dataset) for part in (one, other)]
        if not all(prints) or "" in prints[0] | prints[1]:
            found = "no complete run in one of them, which tells if the data are the same"
        elif prints[0] != prints[1]:
            texts = " and ".join(", ".join(sorted(some)) for some in prints)
            found = f"other data (fingerprints {texts})"
        elif sizes[0] != sizes[1]:
            found = f"{sizes[0]} splits and {sizes[1]}"
        elif not _agree(one.splits[dataset], other.splits[dataset]):
            found = "splits of other rows"
        if found:
            raise InputError(
                f"{dataset} in {one.path} and {other.path}",
                found,
                "the same data and splits",
                "Run both sweeps with the same data, [splits] and seed; mkldist compare pairs "
                "those splits that have the same rows",
            )


def _n_splits(part: _Part, dataset: str) -> int:
    nodes = [n for n in method_nodes(part.tree) if place_of(n)["dataset"] == dataset]
    return int(nodes[0].sizes[SPLIT])
