"""Prediction intervals with their coverage.

Two kinds of intervals of 80 % for the progress of diabetes: a booster of quantiles, and a forest
that keeps the target in its leaves. Conformal prediction then widens or narrows both by the errors
of held-out rows. The mean coverage over 20 splits shows which intervals reach the nominal 80 %.
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from arboost import GradientBoostingRegressor, RandomForestRegressor, plots

LEVEL = 0.8
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)


def boosted_interval(X_train, y_train):
    model = GradientBoostingRegressor(
        loss="quantile", alpha=[0.1, 0.9], n_estimators=60, max_depth=2, random_state=0
    )
    return model.fit(X_train, y_train).predict


def forest_interval(X_train, y_train):
    forest = RandomForestRegressor(quantiles=True, max_features=0.4, random_state=0)
    forest.fit(X_train, y_train)
    return lambda X: forest.predict_quantiles(X, [0.1, 0.9])


def conformal(interval, X, y):
    """Return the distance by which the limits move so that LEVEL of these rows are inside."""
    low, high = interval(X).T
    rank = int(np.ceil(LEVEL * (len(y) + 1))) - 1
    return np.sort(np.maximum(low - y, y - high))[rank]


coverages = {}
for seed in range(20):
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.5, random_state=seed)
    X_held, X_test, y_held, y_test = train_test_split(X_rest, y_rest, random_state=seed)
    for name, fit in (("booster", boosted_interval), ("forest", forest_interval)):
        interval = fit(X_train, y_train)
        for kind, shift in (("", 0), (", conformal", conformal(interval, X_held, y_held))):
            low, high = interval(X_test).T
            inside = np.mean((low - shift <= y_test) & (y_test <= high + shift))
            width = np.mean(high - low) + 2 * shift
            coverages.setdefault(name + kind, []).append((inside, width))

print("intervals of 80 %     coverage  mean width")
for name, splits in coverages.items():
    inside, width = np.mean(splits, axis=0)
    print(f"{name:<20} {inside:9.2f} {width:11.0f}")

forest = RandomForestRegressor(quantiles=True, max_features=0.4, random_state=0)
axes = plots.plot_residuals(forest.fit(X_train, y_train), X_rest, y_rest, coverage=LEVEL)
axes.figure.savefig("quantile_intervals.svg")
