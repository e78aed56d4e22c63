"""Monotone constraints with a proof.

A higher body mass index must not lower the predicted progress of diabetes, whatever the other
features are. `monotone_constraints` builds that into the trees, and `verify_monotone` proves it
for all possible rows; for the unconstrained model it returns two rows as a counterexample.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_val_score

from arboost import GradientBoostingRegressor, plots

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
free = GradientBoostingRegressor(n_estimators=150, learning_rate=0.05, max_depth=3)
rising = GradientBoostingRegressor(
    n_estimators=150, learning_rate=0.05, max_depth=3, monotone_constraints={"bmi": 1, "bp": 1}
)

figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
for name, model, ax in (("free", free, axes[0]), ("monotone", rising, axes[1])):
    r2 = cross_val_score(model, X, y, cv=5).mean()
    model.fit(X, y)
    print(f"{name} model, R² of 5 folds {r2:.2f}")
    for proof in model.verify_monotone({"bmi": 1, "bp": 1}):
        print(f"  rises with {proof.feature}: {'proved' if proof.holds else 'no'}")
        if not proof.holds:
            pair = proof.counter_example
            low, high = pair.rows[:, X.columns.get_loc(proof.feature)]
            change = "{:.1f} -> {:.1f}".format(*pair.scores)
            print(f"    {proof.feature} {low:.1f} -> {high:.1f}, prediction {change}")
    curve = model.partial_dependence(X[:25], "bmi", kind="both", grid=40)
    plots.plot_partial_dependence(curve, ax).set_title(f"{name} model")
figure.savefig("monotone.svg")
