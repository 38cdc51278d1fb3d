"""What to write instead of words of scikit-learn that no name here resembles."""

from __future__ import annotations

_SEED = "Set seed at the top of the file, above the first [section]"
MEANT = {
    "rbf": 'Write "gaussian"',
    "matern52": 'Write "matern" and nu = 2.5',
    "sigmoid": 'It is not positive semi-definite: write "gaussian" or "polynomial"',
    "gamma": "Give widths; gamma = 1 / (2 width²)",
    "standard": 'Write "zscore"',
    "test_size": "Write train_fraction = 1 - test_size under [splits]",
    "n_splits": 'Write kind = "kfold" and folds under [splits], or repeats of random parts',
    "random_state": _SEED,
    "random_seed": _SEED,
    "target": "Write label",
    "n_jobs": "Give --workers on the command line",
}
SERIES = {
    "train_fraction": "Write n_train = [100, 1000] for training parts of several sizes",
    "count": "Write n_kernels = [100, 1000] in [[banks]] for banks of several sizes",
}
"""Advice on a list of values, by the key that takes a single one."""


def meant(word: str) -> str:
    """Return what to write instead of a word of another package, or ``""``."""
    return MEANT.get(word, "")
