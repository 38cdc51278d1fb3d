"""``python -m tests.methods.references``: compute the optima that are not recorded yet."""

from __future__ import annotations

import json
import sys

from tests.methods.references import all_cases
from tests.methods.references.recorded import (
    OPTIMA,
    all_points,
    compute,
    entry,
    is_of,
    key,
    recorded,
)


def main() -> None:
    """Write ``optima.json`` anew; entries that are still those of their points stay."""
    kept = {} if "--all" in sys.argv[1:] else recorded()
    entries = {}
    for case in all_cases():
        for point in all_points(case):
            name = key(case, point)
            if is_of(kept.get(name), point):
                entries[name] = kept[name]
                continue
            entries[name] = entry(point, compute(case, point))
            sys.stdout.write(f"{name}: {entries[name]['optimum']:.9g}\n")
            sys.stdout.flush()
    lines = (f"{json.dumps(name)}: {json.dumps(one)}" for name, one in sorted(entries.items()))
    OPTIMA.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
