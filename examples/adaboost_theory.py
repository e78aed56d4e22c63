"""AdaBoost: error, bound and margins.

AdaBoost's theory guarantees that the training error is below a bound that shrinks in every round.
Every fit records the quantities of that proof. The test error keeps falling after the training
error is zero, while the smallest margins of the rows keep growing.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from arboost import AdaBoostClassifier, plots

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = AdaBoostClassifier(n_estimators=200)
model.fit(X_train, y_train, X_val=X_test, y_val=y_test)

test_error = 1 - np.array([np.mean(labels == y_test) for labels in model.staged_predict(X_test)])
vote = np.array(list(model.staged_decision_function(X_train)))
margins = (2 * y_train - 1) * vote / np.cumsum(model.estimator_weights_)[:, np.newaxis]

print("round  learner's error  training error    bound  smallest margin  test error")
for r in (0, 4, 9, 24, 49, 99, 199):
    print(
        f"{r + 1:5d} {model.estimator_errors_[r]:16.3f} {model.training_error_[r]:15.3f} "
        f"{model.training_error_bound_[r]:8.5f} {margins[r].min():16.3f} {test_error[r]:11.3f}"
    )

zero = np.flatnonzero(model.training_error_)[-1] + 2
proved = np.flatnonzero(model.training_error_bound_ < 1 / len(y_train))[0] + 1
print(f"\nno training error from round {zero} on; the bound proves it from round {proved} on")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
plots.plot_bound(model, left)
plots.plot_margins(model, X_train, y_train, rounds=[5, 25, 200], ax=right)
figure.savefig("adaboost_theory.svg")
