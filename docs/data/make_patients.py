"""Draw the invented patients of the how-to pages: ``python docs/data/make_patients.py``.

Whether a patient relapses depends on CRP, albumin and age, and shows in four genes.  Promoters have
a short word.  The same files are drawn each time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

GENES = [f"G{i:02d}" for i in range(1, 13)]
PATHWAYS = {"REPAIR": GENES[:4], "GROWTH": GENES[3:7], "TRANSPORT": GENES[8:]}
WORD = "TATAAT"


def main(folder: Path) -> None:
    """Write all files."""
    rng = np.random.default_rng(180)
    table = patients(rng, 240)
    table[:180].to_csv(folder / "patients.csv", index=False)
    table[180:].to_csv(folder / "new_patients.csv", index=False)
    expression(rng, table[:180]).to_csv(folder / "expression.csv", index=False)
    expression(rng, table[180:]).to_csv(folder / "new_expression.csv", index=False)
    lines = [f"{name}\tinvented\t" + "\t".join(genes) for name, genes in PATHWAYS.items()]
    (folder / "pathways.gmt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    visits(rng, table[:60]).to_csv(folder / "visits.csv", index=False)
    promoters(rng, 120).to_csv(folder / "promoters.csv", index=False)


def patients(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw a table of patients; the risk is not linear in albumin."""
    age = np.clip(rng.normal(61, 11, n), 25, 90).round().astype(int)
    crp = np.exp(rng.normal(1.5, 0.9, n)).round(1)
    albumin = rng.normal(40, 4.5, n).round(1)
    risk = 0.05 * (age - 61) + 1.5 * (np.log(crp + 0.1) - 1.5) + 0.055 * (albumin - 40) ** 2
    risk += rng.normal(0, 0.9, n)
    days = pd.Timestamp("2023-01-02") + pd.to_timedelta(np.sort(rng.integers(0, 900, n)), "D")
    return pd.DataFrame(
        {
            "patient": [f"P{i:03d}" for i in rng.permutation(n)],
            "centre": rng.choice(["north", "south", "east", "west"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "admitted": days.strftime("%Y-%m-%d"),
            "age": age,
            "sex": rng.choice(["f", "m"], n),
            "crp": crp,
            "albumin": albumin,
            "lactate": (1.1 + 0.25 * np.log(crp + 0.1) + rng.gamma(2, 0.3, n)).round(2),
            "visits": rng.integers(1, 6, n),
            "relapse": np.where(risk > np.quantile(risk, 0.75), "yes", "no"),
        }
    )


def expression(rng: np.random.Generator, table: pd.DataFrame) -> pd.DataFrame:
    """Draw the expression of three quarters of the patients, in another order."""
    values = rng.normal(6, 1, (len(table), len(GENES)))
    values[:, :4] += 1.0 * (table["relapse"] == "yes").to_numpy()[:, None]
    result = pd.DataFrame(values.round(2), columns=GENES)
    result.insert(0, "sample", table["patient"].to_numpy())
    return result.iloc[rng.permutation(len(table))[: 3 * len(table) // 4]]


def visits(rng: np.random.Generator, table: pd.DataFrame) -> pd.DataFrame:
    """Draw three visits of each patient; what is measured then is near each other."""
    result = table.loc[np.repeat(table.index, 3)].reset_index(drop=True)
    result.insert(0, "visit", [f"V{i:03d}" for i in range(len(result))])
    for column, spread in [("crp", 0.4), ("albumin", 0.5), ("lactate", 0.1)]:
        result[column] = np.abs(result[column] + rng.normal(0, spread, len(result))).round(2)
    return result.drop(columns=["admitted", "visits"])


def promoters(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Draw stretches of DNA; most promoters, and few others, have a certain word."""
    rows = []
    for i in range(n):
        is_promoter = bool(i % 2)
        dna = "".join(rng.choice(list("ACGT"), 40))
        if rng.random() < (0.9 if is_promoter else 0.1):
            at = rng.integers(5, 30)
            dna = dna[:at] + WORD + dna[at + len(WORD) :]
        rows.append({"name": f"S{i:03d}", "dna": dna, "promoter": "yes" if is_promoter else "no"})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main(Path(__file__).parent)
