"""Draw the patients of ``heterogeneous.toml``: a table with texts, expression, a string kernel.

``python sweeps/patients/make_data.py`` writes the four files beside this one.  They are synthetic
and deterministic.  Whether a patient relapses shows a little in each of the sources.  The text
``history`` has a letter for each treatment, and those who relapse often had C after B.  A
quarter of the patients have no expression, and 20 of the 120 no protein sequence.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path

import numpy as np

N_PATIENTS = 120
N_GENES = 40
PATHWAYS = {"CELL_CYCLE": range(6), "APOPTOSIS": range(4, 12), "METABOLISM": range(20, 32)}
AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
MOTIF = "WYCWH"
LENGTH = 3  # of the substrings that the spectrum kernel counts


def main(folder: Path) -> None:
    """Write the files into a folder."""
    rng = np.random.default_rng(2024)
    relapse = rng.permutation(N_PATIENTS) % 2 == 0
    sign = np.where(relapse, 1.0, -1.0)
    names = [f"P{i:03d}" for i in rng.permutation(N_PATIENTS)]
    write_clinical(folder / "clinical.csv", rng, names, relapse)
    write_expression(folder / "expression.csv", rng, names, sign)
    write_pathways(folder / "pathways.gmt")
    write_strings(folder / "sequences.npz", rng, names, relapse)


def write_clinical(
    path: Path, rng: np.random.Generator, names: list[str], relapse: np.ndarray
) -> None:
    """Write the table, in which some values of CRP are missing."""
    age = np.round(62 + 9 * rng.normal(size=N_PATIENTS) + 9 * relapse).astype(int)
    crp = np.round(np.exp(0.8 * rng.normal(size=N_PATIENTS) + 1.0 * relapse), 1)
    sex = rng.choice(["f", "m"], N_PATIENTS)
    unknown = rng.random(N_PATIENTS) < 0.08
    draws = [np.random.default_rng([2024, i]) for i in range(N_PATIENTS)]
    histories = [history(draw, bool(one)) for draw, one in zip(draws, relapse, strict=True)]
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["patient", "age", "sex", "crp", "history", "relapse"])
        for i, name in enumerate(names):
            value = "" if unknown[i] else f"{crp[i]}"
            label = "yes" if relapse[i] else "no"
            rows.writerow([name, age[i], sex[i], value, histories[i], label])


def history(rng: np.random.Generator, relapse: bool) -> str:
    """Draw the treatments of a patient, a letter each: C follows B more often before a relapse."""
    letters = "".join(rng.choice(list("ABCD"), rng.integers(6, 15)))
    return letters.replace("BD", "BC", 1) if relapse else letters.replace("BC", "BD", 1)


def write_expression(
    path: Path, rng: np.random.Generator, names: list[str], sign: np.ndarray
) -> None:
    """Write the expression of genes, of three quarters of the patients, in another order."""
    expression = rng.normal(size=(N_PATIENTS, N_GENES))
    expression[:, PATHWAYS["APOPTOSIS"]] += 0.6 * sign[:, None]
    measured = rng.permutation(N_PATIENTS)[: 3 * N_PATIENTS // 4]
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["sample", *(f"GENE{j}" for j in range(N_GENES))])
        rows.writerows([names[i], *(f"{v:.2f}" for v in expression[i])] for i in measured)


def write_pathways(path: Path) -> None:
    """Write sets of genes as MSigDB does; one gene of each was not measured."""
    lines = (
        "\t".join([name, "synthetic", *(f"GENE{j}" for j in genes), f"{name}_X"])
        for name, genes in PATHWAYS.items()
    )
    path.write_text("\n".join(lines) + "\n")


def write_strings(
    path: Path, rng: np.random.Generator, names: list[str], relapse: np.ndarray
) -> None:
    """Write the spectrum kernel of protein sequences: inner products of counts of substrings."""
    sequences = {}
    for i in rng.permutation(N_PATIENTS)[: N_PATIENTS - 20]:
        letters = "".join(rng.choice(list(AMINO_ACIDS), 60))
        if relapse[i] == (rng.random() < 0.8):  # most who relapse, and few others
            place = int(rng.integers(50))
            letters = letters[:place] + MOTIF + letters[place:]
        sequences[names[i]] = letters
    gram = np.array(
        [[spectrum(one, other) for other in sequences.values()] for one in sequences.values()]
    )
    np.savez_compressed(path, grams=gram.astype(np.int16), ids=list(sequences))


def spectrum(one: str, other: str) -> int:
    """Return the sum over substrings of the product of their counts in two sequences."""
    first, second = (
        Counter(text[i : i + LENGTH] for i in range(len(text) - LENGTH + 1))
        for text in (one, other)
    )
    return sum(count * second[part] for part, count in first.items())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
