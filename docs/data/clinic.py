"""Write ``clinic.csv``, invented, and ``new_clinic.csv``, without labels."""

import numpy as np
import pandas as pd

random = np.random.default_rng(3)
n = 320
age = random.normal(58, 13, n).round()
marker = random.gamma(4, 0.5, n).round(2)
glucose = random.normal(5.5, 1.2, n).round(1)
table = pd.DataFrame(
    {
        "number": np.arange(1000, 1000 + n),
        "admitted": pd.date_range("2024-01-03", periods=n, freq="26h").strftime("%Y-%m-%d"),
        "ward": random.choice(["emergency", "medical", "surgical"], n, p=[0.3, 0.5, 0.2]),
        "sex": random.choice(["f", "m"], n),
        "age": age,
        "pressure": random.normal(130, 15, n).round(),
        "marker": marker,
        "glucose": glucose,
        "sodium": random.normal(140, 3, n).round(),
    }
)
# A high marker makes ill, and so does glucose that is far from 5.5, low or high; a little, age.
risk = 2.5 * (marker - 2) + 3 * (np.abs(glucose - 5.5) - 1) + 0.04 * (age - 58) - 2.6
table["disease"] = np.where(random.random(n) < 1 / (1 + np.exp(-risk)), "yes", "no")
table.loc[random.choice(n, 12, replace=False), "glucose"] = np.nan
table.loc[random.choice(n, 8, replace=False), "age"] = np.nan
table[:300].to_csv("clinic.csv", index=False)
table[300:].drop(columns="disease").to_csv("new_clinic.csv", index=False)
