"""The sparse text format of SVMlight and LIBSVM: ``label index:value index:value … # comment``."""

from __future__ import annotations

from array import array
from pathlib import Path

import numpy as np

from mkldist.core.wording import in_lines
from mkldist.data.opening import REWRITE, opened
from mkldist.data.raw import RawData, check_fits, numbered_features
from mkldist.data.source_columns import SourceColumns
from mkldist.data.sparse_features import SPARSE_HINT, canonical
from mkldist.errors import DataError

MAX_INDEX = 2**31
CORRECT = "Correct this line; scikit-learn's dump_svmlight_file writes such files"


def read_svmlight(
    path: Path,
    label: str | int | None,
    where: str,
    *,
    sparse: bool = False,
    start: int | None = None,
) -> RawData:
    """Read a file of sparse rows, plain or gzipped.

    Indices start at 1, or at 0 if an index 0 occurs.  ``qid:`` entries are ignored.

    Parameters
    ----------
    path : Path
        The file.
    label : str, int or None
        Always None, for the label stands first in every line.
    where : str
        The place to name in a message.
    sparse : bool
        True for an array in compressed sparse rows, of the features that some row has.
    start : {0, 1}, optional
        First index; by default as above.

    Raises
    ------
    DataError
        If a line is malformed, or the dense array does not fit into memory.
    """
    if label is not None:
        raise DataError(
            where,
            f"label = {label!r}",
            "no label option: the label stands first in every line",
            "Remove label",
        )
    labels: list[str] = []
    rows, columns, values = array("q"), array("q"), array("d")
    lines = array("q")
    with opened(path, where) as stream:
        for number, line in enumerate(stream, start=1):
            words = line.split(b"#", 1)[0].split()
            if words:
                place = f"{where}, line {number}"
                entries = _entries(words[1:], place)
                columns.extend(entries)
                values.extend(entries.values())
                rows.extend([len(labels)] * len(entries))
                labels.append(_label(words[0], place))
                lines.append(number)
    if not columns:
        raise DataError(where, "no features", "lines such as '+1 1:0.5 3:2'", REWRITE)
    index = np.frombuffer(columns, dtype=np.int64)
    if start and not index.min():
        raise DataError(where, "an index 0", "indices from 1, as the model has", CORRECT)
    start = int(index.min() > 0) if start is None else start
    index = index - start
    shape = (len(labels), int(index.max()) + 1)
    row, value = np.frombuffer(rows, dtype=np.int64), np.frombuffer(values, dtype=np.float64)
    if sparse:
        from scipy.sparse import coo_array

        # Features that no row has are zero, and no kernel sees them; their number may be vast.
        seen, column = np.unique(index, return_inverse=True)
        kept = canonical(coo_array((value, (row, column)), shape=(shape[0], len(seen))))
        names = tuple(f"f{i}" for i in seen.tolist())
        source = SourceColumns(names, start=start)
        return RawData(
            np.array(labels), None, names, sparse=kept, columns=source, row_labels=in_lines(lines)
        )
    check_fits(8 * shape[0] * shape[1], where, SPARSE_HINT)
    x = np.zeros(shape)
    x[row, index] = value
    names = numbered_features(shape[1])
    source = SourceColumns(names, start=start)
    return RawData(np.array(labels), x, names, columns=source, row_labels=in_lines(lines))


def _label(word: bytes, place: str) -> str:
    text = word.decode("utf-8")
    if ":" in text:
        raise DataError(place, f"{text!r} where the label should stand", "a label first", CORRECT)
    if "," in text:
        raise DataError(place, f"several labels {text!r}", "one label per line", CORRECT)
    return text


def _entries(words: list[bytes], place: str) -> dict[int, float]:
    entries: dict[int, float] = {}
    for word in words:
        name, colon, value = word.partition(b":")
        if name == b"qid":
            continue
        try:
            index, number = int(name), float(value)
        except ValueError:
            index, number = -1, 0.0
        if not colon or not 0 <= index < MAX_INDEX:
            raise DataError(
                place,
                f"{word.decode('utf-8', 'replace')!r}",
                "index:value, such as 3:0.25",
                CORRECT,
            )
        if index in entries:
            raise DataError(
                place, f"index {index} twice", "every index at most once per line", CORRECT
            )
        entries[index] = number
    return entries
