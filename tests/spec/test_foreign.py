"""Words of other packages, met with the word that is meant."""

from __future__ import annotations

import re

import pytest

from mkldist.errors import SpecError
from mkldist.methods.registry import METHODS
from mkldist.planning.methods import resolve_methods
from mkldist.spec.foreign import MEANT
from mkldist.spec.load import load_sweep
from tests.manual import KEYS as TABLES
from tests.spec.test_mistakes import SWEEP

KEYS = {name for model in TABLES.values() for name in model.model_fields} | {
    name for method in METHODS.values() for name in method.params.model_fields
}


@pytest.mark.parametrize(
    ("override", "hint"),
    [
        ("banks.mine.kernels[0].function=rbf", 'Write "gaussian".'),
        ("banks.mine.kernels[0].function=matern52", 'Write "matern" and nu = 2.5.'),
        ("banks.mine.kernels[0].gamma=[1]", "Give widths; gamma = 1 / (2 width²)."),
        ("methods.level.gamma=2", "Give widths; gamma = 1 / (2 width²)."),
        ("preprocessing.scale=standard", 'Write "zscore".'),
        ("splits.test_size=0.3", "Write train_fraction = 1 - test_size under [splits]."),
        ("test_size=0.3", "Write train_fraction = 1 - test_size under [splits]."),
        ("splits.random_state=3", "Set seed at the top of the file"),
        ("random_state=3", "Set seed at the top of the file"),
        ("splits.n_splits=3", 'Write kind = "kfold" and folds under [splits]'),
        ("datasets.wdbc.target=disease", "Write label."),
        ("methods.level.n_jobs=3", "Give --workers on the command line."),
    ],
)
def test_a_word_of_another_package_meets_the_word_that_is_meant(tmp_path, override, hint):
    file = tmp_path / "s.toml"
    file.write_text(SWEEP)
    with pytest.raises(SpecError) as caught:
        resolve_methods(load_sweep(file, [override]))
    assert hint in caught.value.hint + "."


def test_every_key_that_a_hint_names_is_there():
    """A hint "Write KEY", or "Write KEY = ...", names a key of the sweep file or of a method."""
    for hint in MEANT.values():
        for key in re.findall(r"^(?:Write|Set|Give) ([a-z_]+)\b", hint):
            assert key in KEYS, hint
