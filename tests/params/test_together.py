"""Refusals of parameters that contradict each other, the data or the arguments of fit."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import arboost.compat.sklearn
from arboost import (
    CustomLoss,
    Dataset,
    DataWarning,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    SchemaError,
)

N_ROWS = 60


@pytest.fixture
def X(rng):
    return rng.normal(size=(N_ROWS, 3))


def labels(X, n_classes):
    return np.arange(len(X)) % n_classes


def refused(model, X, y, *words, error=ValueError, **arguments):
    """Assert that fit raises, that the message has all the words, and that nothing was fitted."""
    with pytest.raises(error) as caught:
        model.fit(X, y, **arguments)
    for word in words:
        assert re.search(word, str(caught.value)), f"{word!r} not in {caught.value}"
    assert not hasattr(model, "model_")


def square(y, score, weight):
    return weight * (score - y), weight


LOSS = CustomLoss(name="mine", gradients=square)
CLASS_LOSS = CustomLoss(name="mine", gradients=square, link="logistic")

REGRESSION = {
    "lambda": ({"boosting": "gradient", "reg_lambda": 1}, r"reg_lambda=1\.0 ", "reg_lambda=0"),
    "alpha": ({"boosting": "gradient", "reg_alpha": 0.5}, r"reg_alpha=0\.5 ", 'boosting="newton"'),
    "sampling": (
        {"boosting": "gradient", "sampling_method": "gradient_based"},
        "sampling_method='gradient_based' ",
        "uniform",
    ),
    "equal gradients": (
        {"loss": "absolute_error", "sampling_method": "gradient_based"},
        "sampling_method='gradient_based' .*loss='absolute_error'",
    ),
    "equal gradients, one side": (
        {"loss": "absolute_error", "sampling_method": "goss"},
        "sampling_method='goss' .*loss='absolute_error'",
    ),
    "two shares of rows": (
        {"sampling_method": "goss", "subsample": 0.5},
        r"subsample=0\.5 .*top_rate",
        "Use subsample=1",
    ),
    "more than all rows": (
        {"sampling_method": "goss", "top_rate": 0.6, "other_rate": 0.5},
        r"other_rate=0\.5 .*top_rate=0\.6",
        "at most 1",
    ),
    "quantiles": ({"alpha": [0.1, 0.9]}, r"alpha=\[0\.1, 0\.9\] ", 'loss="quantile"'),
    "quantiles of huber": ({"alpha": [0.1, 0.9], "loss": "huber"}, r"alpha=\[0\.1, 0\.9\] "),
    "line search": (
        {"line_search": "round"},
        "line_search='round' .*parabolas",
        'boosting="gradient"',
    ),
    "line search, dropout": (
        {"line_search": "round", "boosting": "gradient", "rate_drop": 0.5},
        r"rate_drop=0\.5 .*line_search",
    ),
    "line search, limit": (
        {"line_search": "round", "boosting": "gradient", "max_delta_step": 0.5},
        r"max_delta_step=0\.5 .*line_search",
        "max_delta_step=0",
    ),
    "skip": ({"skip_drop": 0.5}, r"skip_drop=0\.5 .*rate_drop=0", "Set rate_drop"),
    "one": ({"one_drop": True}, "one_drop=True .*rate_drop=0"),
    "tol": ({"n_estimators": 9, "tol": 0.1}, r"tol=0\.1 ", "Set n_iter_no_change"),
    "metric": (
        {"n_estimators": 9, "eval_metric": "rmse"},
        r"eval_metric=\['rmse'\] ",
        "X_val",
        "n_iter_no_change",
    ),
    "unknown metric": (
        {"eval_metric": "RMSEE", "n_iter_no_change": 2},
        "eval_metric='RMSEE' ",
        "rmse",
    ),
    "groups": (
        {"n_iter_no_change": 2, "validation_split": "group"},
        'validation_split="group" needs groups',
    ),
    "monotone name": ({"monotone_constraints": {"a": 1}}, "monotone_constraints .*'a'"),
    "interaction index": ({"interaction_constraints": [[0, 3]]}, "interaction_constraints .*3"),
    "link": ({"loss": CLASS_LOSS}, "'mine' has the link 'logistic'", "classifier"),
    "base score": ({"loss": "poisson", "base_score": 0.0}, r"base_score=0\.0 ", "above 0"),
    "negative counts": ({"loss": "poisson"}, "y has the value -", "poisson"),
}


@pytest.mark.parametrize("case", REGRESSION.values(), ids=REGRESSION)
def test_regressor(X, case):
    params, *words = case
    refused(GradientBoostingRegressor(**params), X, X[:, 0], *words)


CLASSES = {
    "pos": (3, {"scale_pos_weight": 2}, r"scale_pos_weight=2\.0 ", "y has 3", "class_weight"),
    "both": (
        2,
        {"scale_pos_weight": 2, "class_weight": "balanced"},
        r"scale_pos_weight=2\.0 ",
        "one of the two",
    ),
    "unknown label": (2, {"class_weight": {0: 1, "b": 2}}, "class_weight .*'b'", "y has 0, 1"),
    "monotone": (3, {"monotone_constraints": [1, 0, 0]}, "monotone_constraints=.*3 classes"),
    "exponential": (3, {"loss": "exponential"}, "loss='exponential' .*3 classes", "log_loss"),
    "custom": (3, {"loss": CLASS_LOSS}, "loss='mine' .*3 classes"),
    "link": (2, {"loss": LOSS}, "'mine' has the link 'identity'", 'link="logistic"'),
    "too heavy": (2, {"scale_pos_weight": 1e308}, "class weights .* is inf", "scale them down"),
    "base score": (2, {"base_score": 1.0}, r"base_score=1\.0 ", "below 1"),
    "base score of three": (3, {"base_score": 0.5}, r"base_score=0\.5 ", "3 probabilities"),
    "base score of two of three": (3, {"base_score": [0.5, 0.5]}, "base_score=", "together 1"),
}


@pytest.mark.parametrize("case", CLASSES.values(), ids=CLASSES)
def test_classifier(X, case):
    n_classes, params, *words = case
    refused(GradientBoostingClassifier(**params), X, labels(X, n_classes), *words)


def test_class_weights_that_vanish(X):
    model = GradientBoostingClassifier(class_weight={0: 1e-300})
    words = ("class weights down to 1e-300", "scale them up")
    refused(model, X, labels(X, 2), *words, sample_weight=np.full(N_ROWS, 1e-300))


@pytest.mark.parametrize(
    "params",
    [
        {"sketch_eps": 0.5, "sketch_scope": "local"},
        {"sample_type": "weighted", "normalize_type": "forest"},
        {"validation_fraction": 0.5, "validation_split": "time"},
        {"alpha": 0.9, "tweedie_power": 1.2},
        {"boosting": "gradient", "reg_lambda": 0},
    ],
)
def test_values_without_effect_are_no_errors(X, params):
    GradientBoostingRegressor(n_estimators=2, **params).fit(X, X[:, 0])


# ---- validation data ----


def test_validation_data_come_together(X):
    y = X[:, 0]
    model = GradientBoostingRegressor(n_estimators=2)
    refused(model, X, y, "X_val came without y_val", X_val=X)
    refused(model, X, y, "y_val came without X_val", y_val=y)
    refused(model, X, y, "sample_weight_val came without X_val", sample_weight_val=y)
    refused(model, X, y, "X_val has no rows", X_val=X[:0], y_val=y[:0])
    refused(model, X, y, "y_val", "59 values", X_val=X, y_val=y[1:])
    refused(model, X, y, "Dataset", error=TypeError, X_val=Dataset(X), y_val=y)
    refused(model, X, y, "y_val holds 'a'", error=TypeError, X_val=X, y_val=["a"] * N_ROWS)
    words = ("groups are for the automatic split", "X_val is given")
    refused(model, X, y, *words, X_val=X, y_val=y, groups=labels(X, 3))
    refused(model, X, y, "groups are for", "n_iter_no_change=None", groups=labels(X, 3))


def test_validation_columns_are_matched_by_name(X):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    y = X[:, 0]
    model = GradientBoostingRegressor(n_estimators=5)
    model.fit(frame, y, X_val=frame[["c", "a", "b"]], y_val=y)
    expected = np.mean((model.predict(frame) - y) ** 2)
    np.testing.assert_allclose(model.evals_result_["validation"]["squared_error"][-1], expected)
    with pytest.raises(SchemaError, match="now missing:\n- c"):
        model.fit(frame, y, X_val=frame[["a", "b"]], y_val=y)


def test_labels_that_training_has_not_seen(X):
    y = labels(X, 2)
    model = GradientBoostingClassifier(n_estimators=2)
    refused(model, X, y, "y_val holds labels that y does not have: 2", X_val=X, y_val=y + 1)


def test_custom_loss_without_value(X):
    model = GradientBoostingRegressor(loss=LOSS, n_iter_no_change=2)
    refused(model, X, X[:, 0], "'mine' has no function `value`", "eval_metric")


def test_counts_of_zero_may_validate(X):
    y = np.abs(X[:, 0])
    model = GradientBoostingRegressor(n_estimators=2, loss="poisson")
    model.fit(X, y, X_val=X[:3], y_val=np.zeros(3))
    assert len(model.evals_result_["validation"]["poisson"]) == 2


def test_callbacks_and_checkpoint(X):
    model = GradientBoostingRegressor(n_estimators=2)
    refused(model, X, X[:, 0], "callbacks hold 3", error=TypeError, callbacks=[3])
    refused(model, X, X[:, 0], "checkpoint=3", error=TypeError, checkpoint=3)


# ---- bins that exist already ----


@pytest.mark.parametrize("method", ["exact", "approx"])
def test_datasets_are_made_for_a_tree_method(X, method):
    words = f'tree_method="{method}"'
    data = Dataset(X, X[:, 0])
    refused(GradientBoostingRegressor(tree_method=method), data, None, "was made for", words)
    data = Dataset(X, X[:, 0], tree_method=method)
    refused(GradientBoostingRegressor(), data, None, "was made for", 'tree_method="hist"')
    GradientBoostingRegressor(tree_method=method, max_bins=16, n_estimators=2).fit(data)


@pytest.mark.parametrize("method", ["exact", "approx"])
def test_validation_by_other_tree_methods(X, method):
    y = X[:, 0]
    model = GradientBoostingRegressor(tree_method=method, n_estimators=5)
    model.fit(X, y, X_val=X[:20] + 0.01, y_val=y[:20])
    expected = np.mean((model.predict(X[:20] + 0.01) - y[:20]) ** 2)
    np.testing.assert_allclose(model.evals_result_["validation"]["squared_error"][-1], expected)


# ---- continued training ----


def test_init_model_of_another_kind(X):
    y = labels(X, 2)
    classifier = GradientBoostingClassifier(n_estimators=2).fit(X, y)
    model = GradientBoostingRegressor(n_estimators=2)
    refused(model, X, y, "init_model is a classifier", init_model=classifier)
    refused(model, X, y, "init_model=3 ", error=TypeError, init_model=3)
    refused(model, X, y, "init_model=", error=TypeError, init_model=GradientBoostingRegressor)
    with pytest.raises(FileNotFoundError):
        model.fit(X, y, init_model="absent.arb")


def test_init_model_that_does_not_fit(X):
    y = np.abs(X[:, 0])
    old = GradientBoostingRegressor(n_estimators=2).fit(X, y)
    model = GradientBoostingRegressor
    refused(model(base_score=1.0), X, y, r"base_score=1\.0 ", init_model=old)
    refused(model(loss="poisson"), X, y, "link 'exp'", "'squared_error'", init_model=old)
    refused(model(num_parallel_tree=2), X, y, "num_parallel_tree=2 .*=1", init_model=old)
    refused(model(), X[:, :2], y, "2 features", error=SchemaError, init_model=old)
    refused(model(), Dataset(X, y), None, "Dataset", "table", init_model=old)
    refused(model(), X[:0], y[:0], "no rows", init_model=old)


def test_quantiles_of_init_model(X):
    y = X[:, 0]
    old = GradientBoostingRegressor(loss="quantile", alpha=[0.1, 0.9], n_estimators=2).fit(X, y)
    other = GradientBoostingRegressor(loss="quantile", alpha=[0.2, 0.8])
    refused(other, X, y, r"alpha=\[0\.2, 0\.8\] .*\[0\.1, 0\.9\]", init_model=old)


def test_classes_of_init_model(X):
    old = GradientBoostingClassifier(n_estimators=2).fit(X, labels(X, 3))
    model = GradientBoostingClassifier(n_estimators=2)
    refused(
        model, X, labels(X, 4), "y holds labels that init_model does not have: 3", init_model=old
    )
    other = GradientBoostingClassifier(multi_strategy="multi_output_tree")
    refused(other, X, labels(X, 3), "multi_strategy=", init_model=old)


def test_custom_loss_of_init_model(X, tmp_path):
    y = X[:, 0]
    GradientBoostingRegressor(loss=LOSS, n_estimators=2).fit(X, y).save(tmp_path / "old.arb")
    old = tmp_path / "old.arb"
    plain = GradientBoostingRegressor()
    refused(plain, X, y, "custom loss 'mine'", "Pass that arboost.CustomLoss", init_model=old)
    other = GradientBoostingRegressor(loss=CustomLoss(name="yours", gradients=square))
    refused(other, X, y, "custom loss 'mine'", "'yours'", init_model=old)
    model = GradientBoostingRegressor(loss=LOSS, n_estimators=3).fit(X, y, init_model=old)
    assert model.n_iter_ == 5


def test_alpha_of_a_loss_without_it(X):
    y = X[:, 0]
    words = r"alpha=0\.5 has no effect: .*reg_alpha for the L1 penalty, which XGBoost calls alpha"
    for loss in ("squared_error", "poisson"):
        with pytest.warns(DataWarning, match=words):
            GradientBoostingRegressor(alpha=0.5, loss=loss, n_estimators=1).fit(X, abs(y))
    for allowed in ({"alpha": 0.9}, {"alpha": 0.5, "loss": "quantile"}, {"loss": "huber"}):
        GradientBoostingRegressor(n_estimators=1, **allowed).fit(X, y)
    compat = arboost.compat.sklearn.GradientBoostingRegressor(n_estimators=1, alpha=0.5)
    compat.fit(X, y)
