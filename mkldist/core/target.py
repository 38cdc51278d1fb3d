"""Kinds of labels, by which methods and losses state what they learn."""

from __future__ import annotations

import enum


class Target(enum.StrEnum):
    """Kind of labels that a method learns; its loss decides."""

    CLASSES = "classes"
    """-1 and +1, both present."""
    VALUES = "values"
    """Finite real numbers, which include -1 and +1."""
    ONE_CLASS = "one class"
    """+1, at least once, and -1 for known outliers, which training ignores."""
    PARTIAL = "partly labelled classes"
    """-1 and +1, both present, and 0 for points without a label."""


LEARNT = {
    Target.CLASSES: "two classes",
    Target.VALUES: "real values",
    Target.ONE_CLASS: "one class",
    Target.PARTIAL: "two classes from partly labelled points",
}
"""Words for what a method learns."""

LABELS = {
    Target.CLASSES: "both classes, as -1 and +1",
    Target.VALUES: "finite real numbers",
    Target.ONE_CLASS: "+1, and -1 for known outliers; at least one +1",
    Target.PARTIAL: "both classes, as -1 and +1, and 0 for unlabelled points",
}
"""Words for the labels that a method learns from."""
