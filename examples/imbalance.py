"""Rare classes and the choice of a threshold.

One flight in four is late. A missed late flight costs four times as much as a false alarm, so the
threshold of 0.5 is wrong. Out-of-fold probabilities of the training rows give the threshold of the
smallest cost; the test rows then confirm it. Class weights are not needed: probabilities stay
calibrated, and only the decision changes.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from sklearn.model_selection import cross_val_predict, train_test_split

from arboost import GradientBoostingClassifier

MISSED, FALSE_ALARM = 4, 1

flights = pd.read_csv(Path(__file__).parent / "data/flights.csv.gz")
X, y = flights.drop(columns="late"), flights["late"] == "yes"
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)


def mean_cost(late, probability, threshold):
    alarm = probability >= threshold
    return np.mean(MISSED * (late & ~alarm) + FALSE_ALARM * (~late & alarm))


model = GradientBoostingClassifier(random_state=0)
held_out = cross_val_predict(model, X_train, y_train, cv=5, method="predict_proba")[:, 1]
thresholds = np.linspace(0.02, 0.9, 89)
costs = [mean_cost(y_train, held_out, threshold) for threshold in thresholds]
best = thresholds[np.argmin(costs)]
theory = FALSE_ALARM / (FALSE_ALARM + MISSED)
print(f"threshold of the smallest cost {best:.2f}; exact for perfect probabilities {theory:.2f}")

probability = model.fit(X_train, y_train).predict_proba(X_test)[:, 1]
print("\ntest rows    cost a flight  late flights found  alarms that are right")
for name, threshold in (("never", 1.1), ("0.50", 0.5), (f"{best:.2f}", best), ("always", 0.0)):
    alarm = probability >= threshold
    recall = np.mean(alarm[y_test])
    right = f"{np.mean(y_test[alarm]):.2f}" if alarm.any() else ""
    print(
        f"{name:<12} {mean_cost(y_test, probability, threshold):13.2f} {recall:19.2f} {right:>22}"
    )

figure, axes = plt.subplots(figsize=(6.5, 3.5), layout="constrained")
axes.plot(thresholds, costs, label="training rows, out of fold")
axes.plot(thresholds, [mean_cost(y_test, probability, t) for t in thresholds], label="test rows")
axes.axvline(best, color="grey", linestyle="--", label="chosen threshold")
axes.set(xlabel="threshold", ylabel="cost a flight", ylim=(0, None))
axes.legend()
figure.savefig("imbalance.svg")
