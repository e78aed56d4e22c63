"""Cross-validation with one binned table.

`arboost.cv` trains all folds in step on one binned table: the mean of their scores stops the fit,
and the curve of every fold is returned. The number of rounds it finds is then used for a model of
all rows.
"""

import numpy as np
from sklearn.datasets import load_diabetes

import arboost
from arboost import GradientBoostingRegressor, plots

X, y = load_diabetes(return_X_y=True, as_frame=True)
booster = GradientBoostingRegressor(
    n_estimators=1000,
    learning_rate=0.03,
    max_depth=3,
    n_iter_no_change=30,
    eval_metric="rmse",
    random_state=0,
)
result = arboost.cv(booster, X, y, folds=5)

rmse = result.scores["rmse"]
print(f"{rmse.shape[0]} folds, {rmse.shape[1]} rounds; the last 30 did not improve the mean")
print(f"best mean RMSE {result.best_score:.1f} after {result.best_index + 1} rounds")
print("of the folds  ", *np.round(rmse[:, result.best_index], 1))
error = rmse[:, result.best_index].std(ddof=1) / np.sqrt(len(rmse))
print(f"standard error {error:.1f}")

final = GradientBoostingRegressor(
    n_estimators=result.best_index + 1, learning_rate=0.03, max_depth=3, random_state=0
)
print(f"\nmodel of all {len(X)} rows: {final.fit(X, y).n_iter_} trees")

plots.plot_learning_curves(result).figure.savefig("cross_validation.svg")
