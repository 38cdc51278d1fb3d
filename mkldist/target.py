"""What labels may be: the nouns by which methods and losses say what they learn."""

from __future__ import annotations

import enum


class Target(enum.StrEnum):
    """What a method's labels may be; its loss decides."""

    CLASSES = "classes"
    """Both of -1 and +1."""
    VALUES = "values"
    """Any finite real numbers; -1 and +1 among them."""
    ONE_CLASS = "one class"
    """+1, and -1 for known outliers, which take no part in training; at least one +1."""
    PARTIAL = "partly labelled classes"
    """-1 and +1, both present, and 0 for points without a label."""
