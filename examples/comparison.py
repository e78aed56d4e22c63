"""Every ensemble on one table.

`arboost.compare` trains all ensembles of the library, with their defaults, on the same folds. The
column of differences is paired, fold by fold, so that it varies less than the scores themselves.
Models that are tied with the best one have a star.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes

import arboost

X, y = load_diabetes(return_X_y=True, as_frame=True)
found = arboost.compare(X, y, folds=5, verbose=0)

print(found.title())
print("model                    RMSE  std. error  difference  std. error")
for one in found.models:
    name = f"{one.name} *" if one.is_tied else one.name
    print(
        f"{name:<20} {one.mean:8.1f} {one.standard_error:11.1f} "
        f"{one.difference:11.1f} {one.difference_error:11.1f}"
    )
print(f"\nbest: {found.estimators[found.best]}")

shown = [one for one in found.models if one.name not in ("baseline", "decision_tree")][::-1]
figure, axes = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
axes.errorbar(
    [one.difference for one in shown],
    [one.name for one in shown],
    xerr=[one.difference_error for one in shown],
    fmt="o",
    capsize=3,
)
axes.set_xlabel("RMSE above that of the best model, paired by fold, with standard errors")
figure.savefig("comparison.svg")
