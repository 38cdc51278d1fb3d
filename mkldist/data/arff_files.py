"""ARFF files of Weka, dense or sparse, read by liac-arff, an extra."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mkldist.core.wording import FROM_ONE
from mkldist.data.opening import check_file, imports, opened
from mkldist.data.tables import Table, frame_table
from mkldist.errors import DataError

DATES = r"""(?im)^(\s*@attribute\s+(?:'[^']*'|"[^"]*"|\S+)\s+)date\b.*$"""  # unknown to liac-arff


@contextmanager
def open_arff(path: Path, where: str) -> Iterator[Table]:
    """Read an ARFF file, plain or gzipped, in UTF-8; its nominal attributes are categories."""
    import pandas as pd

    check_file(path, where)
    with imports("liac-arff", "formats", where):
        import arff
    with opened(path, where) as stream:
        try:
            text = re.sub(DATES, r"\1string", stream.read().decode("utf-8-sig"))
            found = arff.loads(text)
        except (arff.ArffException, ValueError, IndexError, KeyError) as error:
            what = f"an ARFF file that cannot be read: {str(error).rstrip('.')}"
            expected = "attributes that are numeric, nominal or string, and their values"
            raise DataError(where, what, expected, "Correct it, or write a CSV file") from error
    names = [name for name, _ in found["attributes"]]
    nominal = tuple(name for name, kind in found["attributes"] if not isinstance(kind, str))
    frame = pd.DataFrame(found["data"], columns=names, dtype=object)
    yield replace(frame_table(frame, where, FROM_ONE), categories=nominal)
