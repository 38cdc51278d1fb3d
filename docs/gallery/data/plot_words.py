"""
German or Dutch?  Texts by their letters
========================================

*Siebenundvierzig* or *zevenenveertig*: the two languages build their number words alike.
``MKLClassifier`` learns from forty words which is which, by the substrings that words share.
"""

# %%
# Number words are made by rule, so that the right answer is known.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import mkldist
from mkldist.kernels import Spectrum

plt.style.use("tableau-colorblind10")

units = {
    "German": "ein zwei drei vier fünf sechs sieben acht neun".split(),
    "Dutch": "een twee drie vier vijf zes zeven acht negen".split(),
}
tens = {
    "German": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split(),
    "Dutch": "twintig dertig veertig vijftig zestig zeventig tachtig negentig".split(),
}
joint = {"German": "und", "Dutch": "en"}
words = pd.DataFrame(
    [
        (unit + joint[language] + ten, language)
        for language in units
        for unit in units[language]
        for ten in tens[language]
    ],
    columns=["word", "language"],
)
print(words.sample(4, random_state=1))

# %%
# Substrings of one to four letters, with a kernel for each length.  Ten random draws of forty
# words.
model = mkldist.MKLClassifier(kernels=[Spectrum([1, 2, 3, 4], features="word")], texts=["word"])
rng = np.random.default_rng(0)
weights, errors = [], []
for _ in range(10):
    known = rng.permutation(len(words))[:40]
    new = words.drop(words.index[known])
    model.fit(words.loc[known, ["word"]], words.language[known])
    weights.append(model.kernel_weights_.weight)
    errors.append(1 - model.score(new[["word"]], new.language))
print(f"mean error on the other {len(new)} words: {np.mean(errors):.1%}")

# %%
# The last model on some new words, and on words of neither language.
asked = ["siebenundvierzig", "zevenenveertig", "achtunddreißig", "achtendertig", "vierundsechzig",
         "vierenzestig", "forty-seven", "quarante-sept"]  # fmt: skip
values = model.decision_function(pd.DataFrame({"word": asked}))
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
weights = np.array(weights)
left.bar(range(1, 5), weights.mean(axis=0), yerr=weights.std(axis=0, ddof=1), capsize=3, alpha=0.7)
left.set_xticks(range(1, 5))
left.set(xlabel="letters of a substring", ylabel="kernel weight\n(mean and standard deviation)")
right.barh(asked, values, color=np.where(values > 0, "C1", "C0"))
right.axvline(0, color="k", linewidth=0.8)
right.invert_yaxis()
negative, positive = model.classes_
right.set(xlabel=f"decision value: below 0 {negative}, above 0 {positive}")
plt.show()

# %%
# **Take away.**  Texts need no features made by hand: name the columns in ``texts``.  A classifier
# of two classes answers with one of the two for every text, also for English and French.
#
# Read on: :doc:`/howto/texts_and_dna`.
