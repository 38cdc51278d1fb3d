"""Kinds of labels: the nouns by which methods and losses say which labels they learn."""

from __future__ import annotations

import enum


class Target(enum.StrEnum):
    """Labels that a method learns; its loss decides."""

    CLASSES = "classes"
    """Both of -1 and +1."""
    VALUES = "values"
    """Any finite real numbers; -1 and +1 among them."""
    ONE_CLASS = "one class"
    """+1, and -1 for known outliers, which take no part in training; at least one +1."""
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
