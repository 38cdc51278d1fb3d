"""Facts of a sweep that several parts of its report need."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkldist.analysis.comparison import Chosen, Results
from mkldist.analysis.explanation import stability_of, weights_at_best
from mkldist.analysis.growth import Growth, growths_of
from mkldist.analysis.losses import Compared, compared_losses, loss_name, pairs_of
from mkldist.analysis.summary import loss_of, selected_summary, summary
from mkldist.core.checksums import content_id
from mkldist.core.metrics import Metric
from mkldist.core.terminal import command_line
from mkldist.plot import Look, looks_of
from mkldist.results.folder import restored_manifest
from mkldist.results.rows import hyperparameters, is_validated, method_nodes, place_of, to_frame
from mkldist.results.schema import DATA, RunState, metric_of
from mkldist.results.status import SweepStatus, sweep_status
from mkldist.results.tree import Snapshot
from mkldist.spec.kinds import TRIAL

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from mkldist.analysis.explanation import Explanation

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
        """Return the method of a name in a comparison, which ends with a bank if there are several.

        The name is such as ``level (gaussians)``.
        """
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
        """Times over each size that grows."""
        return growths_of(self.tree)

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
        return metric_of(self.members(dataset)[0][1])

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
