"""Every ensemble on scores table.

`arboost.compare` trains all ensembles of the library, with their defaults, on the same folds. The
column of differences is paired, fold by fold, so that it varies less than the scores themselves.
Models that are tied with the best scores have a star.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes

import arboost

X, y = load_diabetes(return_X_y=True, as_frame=True)
comparison = arboost.compare(X, y, folds=5, verbose=0)

print(comparison.title())
print("model                    RMSE  std. error  difference  std. error")
for scores in comparison.models:
    name = f"{scores.name} *" if scores.is_tied else scores.name
    print(
        f"{name:<20} {scores.mean:8.1f} {scores.standard_error:11.1f} "
        f"{scores.difference:11.1f} {scores.difference_error:11.1f}"
    )
print(f"\nbest: {comparison.estimators[comparison.best]}")

shown = [
    scores for scores in comparison.models if scores.name not in ("baseline", "decision_tree")
][::-1]
figure, axes = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
axes.errorbar(
    [scores.difference for scores in shown],
    [scores.name for scores in shown],
    xerr=[scores.difference_error for scores in shown],
    fmt="o",
    capsize=3,
)
axes.set_xlabel("RMSE above that of the best model, paired by fold, with standard errors")
figure.savefig("comparison.svg")
