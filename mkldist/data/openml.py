"""Data sets of OpenML, which scikit-learn fetches and keeps on disk."""

from __future__ import annotations

import http.client
import urllib.error
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from mkldist.data.columns import ColumnChoice, check_names, column_roles
from mkldist.data.frames import frame_data, frame_labels
from mkldist.data.raw import RawData, as_features, check_fits, check_rows
from mkldist.errors import DataError


def read_openml(identity: str | int, choice: ColumnChoice, where: str) -> RawData:
    """Fetch a data set by id or name.

    Parameters
    ----------
    identity : str or int
        OpenML's number (also as text), or a name, which stands for its oldest active version.
    choice : ColumnChoice
        The target column, None means the one that OpenML names; and, in a dense data set, columns
        that are no features of numbers.
    where : str
        The place to name in a message.

    Raises
    ------
    DataError
        If OpenML cannot be reached or has no such data set, or if the data set has no single target
        or a feature that is not a number.
    """
    label = choice.label
    if isinstance(label, int):
        raise DataError(
            where,
            f"label = {label}",
            "the name of the target column",
            "Set label = the name of the target column",
        )
    bunch = _fetch(identity, label, where)
    if bunch.target is None or getattr(bunch.target, "ndim", 1) != 1:
        names = ", ".join(bunch.target_names or ()) or "none"
        raise DataError(
            where,
            f"a data set without a single target (targets: {names})",
            "one label column",
            "Set label = the name of one of its columns",
        )
    origin = f"OpenML {bunch.details['id']}: {bunch.details['name']}"
    origin += f" version {bunch.details['version']}"
    if hasattr(bunch.data, "columns"):
        return replace(_of_frame(bunch, choice, where), origin=origin)
    choice.check_label_alone(where)
    if hasattr(bunch.data, "toarray"):
        check_fits(8 * bunch.data.shape[0] * bunch.data.shape[1], where, "Select features first")
        x = as_features(bunch.data.toarray(), where)
    else:
        x = as_features(np.asarray(bunch.data), where)
    labels = frame_labels(bunch.target) if hasattr(bunch.target, "isna") else bunch.target
    check_rows(len(x), len(labels), where)
    return RawData(
        labels=_as_text(labels),
        x=x,
        feature_names=tuple(str(name) for name in bunch.feature_names),
        origin=origin,
    )


def _of_frame(bunch: Any, choice: ColumnChoice, where: str) -> RawData:
    """Return the raw data of a dense answer."""
    target = str(bunch.target.name)
    frame = bunch.data.assign(**{target: bunch.target})
    names = [str(name) for name in frame.columns]
    check_names(names, where)
    roles = column_roles(names, replace(choice, label=target), where)
    if choice.label is None:
        roles = replace(roles, label_said=f"column {target!r}, chosen by OpenML")
    return frame_data(frame, roles, where)


def _as_text(labels: np.ndarray[Any, np.dtype[Any]]) -> np.ndarray[Any, np.dtype[Any]]:
    """Return Python objects, which sparse data sets have as labels, as text."""
    if labels.dtype.kind != "O":
        return labels
    return np.array(["" if value is None else str(value) for value in labels])


def _fetch(identity: str | int, label: str | None, where: str) -> Any:
    from sklearn.datasets import fetch_openml

    by_number = isinstance(identity, int) or identity.isdigit()
    which: dict[str, Any] = {"data_id": int(identity)} if by_number else {"name": identity}
    unreachable = (OSError, http.client.HTTPException)
    try:
        with warnings.catch_warnings():
            # scikit-learn warns of retries, whose failure raises an error, and of a choice among
            # versions, which RawData.origin records.
            warnings.simplefilter("ignore")
            # With pandas 3, the other parser fails on categories that are numbers.
            return fetch_openml(
                **which,
                target_column=label or "default-target",
                as_frame="auto",
                parser="liac-arff",
            )
    except urllib.error.HTTPError as error:
        raise DataError(
            where,
            f"the answer {error.code} of OpenML ({error.reason})",
            f"a data set {identity!r}",
            "Look it up on www.openml.org and give its number",
        ) from error
    except unreachable as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(
            where,
            f"no connection to OpenML ({reason})",
            "a connection to www.openml.org, or the data set in scikit-learn's cache",
            "Check the network, or download the data and name the file by 'file'",
        ) from error
    except Exception as error:
        # Besides an absent data set, a malformed answer can raise anything in the parser.
        text = str(error).strip("'\"")
        raise DataError(
            where,
            f"no data set {identity!r} at OpenML that can be used: {text}",
            "the number or name of an active data set",
            "Look it up on www.openml.org and give its number",
        ) from error
