"""``python -m tests.methods.references``: compute the optima that are not recorded yet."""

import json
import sys
from typing import Any

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
    """Write ``optima.json`` anew; entries that are still those of their points stay.

    If a solver fails, what was computed before is written all the same.
    """
    kept = {} if "--all" in sys.argv[1:] else recorded()
    entries: dict[str, dict[str, Any]] = {}
    name = ""
    try:
        for case in all_cases():
            for point in all_points(case):
                name = key(case, point)
                if is_of(kept.get(name), point):
                    entries[name] = kept[name]
                    continue
                entries[name] = entry(point, compute(case, point))
                sys.stdout.write(f"{name}: {entries[name]['optimum']:.9g}\n")
                sys.stdout.flush()
    except Exception as error:
        entries = kept | entries
        raise SystemExit(f"{name}: {type(error).__name__}: {error}") from error
    finally:
        lines = (f"{json.dumps(name)}: {json.dumps(one)}" for name, one in sorted(entries.items()))
        OPTIMA.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
