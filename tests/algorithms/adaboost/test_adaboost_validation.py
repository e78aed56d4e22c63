"""AdaBoost's validation metrics equal those of the model's staged predictions."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from arboost import AdaBoostClassifier
from support.boosted import close, noisy_table


def test_validation_without_early_stopping_only_measures():
    X, y = noisy_table(400, 3)
    model = AdaBoostClassifier(n_estimators=12, eval_metric=["error", "log_loss"])
    model.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    curves = model.evals_result_["validation"]
    expected = [np.mean(p != y[300:]) for p in model.staged_predict(X[300:])]
    close(curves["error"], expected)
    row = np.arange(100)
    losses = [-np.log(p[row, y[300:]]).mean() for p in model.staged_predict_proba(X[300:])]
    close(curves["log_loss"], losses)
    assert (model.n_iter_, model.stop_reason_) == (12, "n_estimators")


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(max_depth=1)], ids=str)
def test_callbacks(estimator):
    X, y = noisy_table()
    seen = []

    def after_four(done):
        seen.append((done.index, done.results["validation"]["error"]))
        return done.index == 3

    model = AdaBoostClassifier(estimator).fit(X, y, X_val=X, y_val=y, callbacks=[after_four])
    assert model.stop_reason_ == "callback after_four"
    assert [index for index, _ in seen] == [0, 1, 2, 3]
    assert [error for _, error in seen] == model.evals_result_["validation"]["error"]
    close([error for _, error in seen], model.training_error_)
