"""Rows in order of time.

The model of a spring is used in summer. The score on random test rows is too good: they come from
the same days as the training rows. Here each quarter is predicted from the quarters before it, and
early stopping holds out the last rows instead of random ones (`validation_split="time"`).
"""

from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from arboost import GradientBoostingClassifier

flights = pd.read_csv(Path(__file__).parent / "data/flights.csv.gz")  # in order of departure
X, y = flights.drop(columns="late"), flights["late"]
quarter = (flights["month"] - 1) // 3

folds = StratifiedKFold(5, shuffle=True, random_state=0)
mixed = cross_val_predict(
    GradientBoostingClassifier(random_state=0), X, y, cv=folds, method="predict_proba"
)[:, 1]

print("ROC AUC       random folds  from the past")
past = np.full(len(X), np.nan)
for q in (1, 2, 3):
    before, now = quarter < q, quarter == q
    model = GradientBoostingClassifier(
        n_estimators=500,
        learning_rate=0.05,
        n_iter_no_change=25,
        validation_fraction=0.2,
        validation_split="time",
    )
    model.fit(X[before], y[before])
    past[now] = model.predict_proba(X[now])[:, 1]
    scores = roc_auc_score(y[now], mixed[now]), roc_auc_score(y[now], past[now])
    print(f"quarter {q + 1}     {scores[0]:12.2f}  {scores[1]:13.2f}   {model.n_iter_} trees")

last = quarter == 3
share, mean = (y[last] == "yes").mean(), past[last].mean()
print(f"\nlate flights of the last quarter: {share:.2f}, mean prediction from the past {mean:.2f}")

months = pd.DataFrame({"late flights": y == "yes", "random folds": mixed, "from the past": past})
axes = months.groupby(flights["month"]).mean().plot(figsize=(6.5, 3.5), marker="o", ylim=(0, None))
axes.set_ylabel("share, or mean prediction")
axes.figure.savefig("time_order.svg")
