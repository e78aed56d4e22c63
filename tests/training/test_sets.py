"""Several evaluation sets: names, curves, early stopping by the last one."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import arboost
from arboost import AdaBoostClassifier, AdaBoostRegressor, Checkpoint
from arboost import GradientBoostingClassifier as Booster

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4))
Y = (X[:, 0] + RNG.normal(size=600) > 0).astype(int)
TRAIN, FIRST, LAST = slice(0, 300), slice(300, 450), slice(450, 600)
X_TRAIN, Y_TRAIN = X[TRAIN], Y[TRAIN]
PAIRS = [(X[FIRST], Y[FIRST]), (X[LAST], Y[LAST])]


def model(**params):
    return Booster(**{"n_estimators": 20, "learning_rate": 0.3} | params)


def test_one_set_is_the_short_form():
    short = model().fit(X_TRAIN, Y_TRAIN, X_val=X[LAST], y_val=Y[LAST])
    for eval_set in ([PAIRS[1]], PAIRS[1], (PAIRS[1],), [list(PAIRS[1])]):
        one = model().fit(X_TRAIN, Y_TRAIN, eval_set=eval_set)
        assert one.evals_result_ == short.evals_result_
        assert one.best_iteration_ == short.best_iteration_


def test_several_sets():
    fitted = model(eval_metric=["log_loss", "auc"]).fit(X_TRAIN, Y_TRAIN, eval_set=PAIRS)
    assert list(fitted.evals_result_) == ["validation_0", "validation_1"]
    for name, (X_one, y_one) in zip(fitted.evals_result_, PAIRS, strict=True):
        alone = model(eval_metric=["log_loss", "auc"])
        alone.fit(X_TRAIN, Y_TRAIN, X_val=X_one, y_val=y_one)
        assert fitted.evals_result_[name] == alone.evals_result_["validation"]


def test_the_last_set_stops():
    stopped = model(n_estimators=300, n_iter_no_change=5).fit(X_TRAIN, Y_TRAIN, eval_set=PAIRS)
    alone = model(n_estimators=300, n_iter_no_change=5)
    alone.fit(X_TRAIN, Y_TRAIN, X_val=X[LAST], y_val=Y[LAST])
    assert stopped.n_iter_ == alone.n_iter_ < 300
    assert stopped.best_score_ == min(stopped.evals_result_["validation_1"]["log_loss"])


def test_names():
    fitted = model().fit(X_TRAIN, Y_TRAIN, eval_set=PAIRS, eval_names=["spring", "autumn"])
    assert list(fitted.evals_result_) == ["spring", "autumn"]


def test_training_rows_have_a_curve_and_stop_nothing():
    """They come first, whatever their place in the list."""
    pairs = [PAIRS[0], (X_TRAIN, Y_TRAIN)]
    fitted = model(n_estimators=300, n_iter_no_change=5).fit(X_TRAIN, Y_TRAIN, eval_set=pairs)
    assert list(fitted.evals_result_) == ["train", "validation"]
    assert fitted.n_iter_ < 300
    curve = fitted.evals_result_["train"]["log_loss"]
    p = fitted.predict_proba(X_TRAIN)[np.arange(300), Y_TRAIN]
    assert curve[fitted.best_iteration_] == pytest.approx(-np.log(p).mean())
    assert curve == sorted(curve, reverse=True)


def test_training_rows_alone():
    fitted = model().fit(X_TRAIN, Y_TRAIN, eval_set=[(X_TRAIN, Y_TRAIN)])
    assert list(fitted.evals_result_) == ["train"]
    assert fitted.n_iter_ == 20
    # Held-out rows stop the fit, and come last.
    stopped = model(n_estimators=300, n_iter_no_change=5)
    stopped.fit(X_TRAIN, Y_TRAIN, eval_set=[(X_TRAIN, Y_TRAIN)])
    assert list(stopped.evals_result_) == ["train", "validation"]
    assert stopped.n_iter_ < 300


def test_training_rows_of_an_automatic_fit():
    """Folds find the number of rounds, and the last fit has the curve of its training rows."""
    with_curve, without = (Booster(learning_rate=0.3, max_leaves=7) for _ in range(2))
    with_curve.fit(X_TRAIN, Y_TRAIN, eval_set=[(X_TRAIN, Y_TRAIN)])
    without.fit(X_TRAIN, Y_TRAIN)
    np.testing.assert_array_equal(with_curve.predict_proba(X), without.predict_proba(X))
    assert with_curve.best_score_ == without.best_score_
    assert with_curve.evals_result_["validation"] == without.evals_result_["validation"]
    assert len(with_curve.evals_result_["train"]["log_loss"]) == with_curve.n_iter_


@pytest.mark.parametrize("kind", ["slice", "pandas", "polars", "list"])
def test_training_rows_are_known_by_their_values(kind):
    form = {
        "slice": lambda one: one.copy(),
        "pandas": lambda one: pd.DataFrame(one) if one.ndim > 1 else pd.Series(one),
        "polars": lambda one: pl.DataFrame(one) if one.ndim > 1 else pl.Series(one),
        "list": lambda one: one.tolist(),
    }[kind]
    table = X_TRAIN.copy()
    if kind != "list":
        table[3, 1] = np.nan
    sets = [(form(table), form(Y_TRAIN)), (form(X[FIRST]), form(Y[FIRST]))]
    fitted = model().fit(form(table), form(Y_TRAIN), eval_set=sets)
    assert list(fitted.evals_result_) == ["train", "validation"]
    others = [(form(table), form(1 - Y_TRAIN)), (form(X[FIRST]), form(Y[FIRST]))]
    fitted = model().fit(form(table), form(Y_TRAIN), eval_set=others)
    assert list(fitted.evals_result_) == ["validation_0", "validation_1"]


def test_weights_of_a_set():
    weight = RNG.uniform(0.5, 2.0, 150)
    short = model().fit(X_TRAIN, Y_TRAIN, X_val=X[LAST], y_val=Y[LAST], sample_weight_val=weight)
    triple = model().fit(X_TRAIN, Y_TRAIN, eval_set=[(X[LAST], Y[LAST], weight)])
    assert triple.evals_result_ == short.evals_result_


LINE_SEARCH = {"boosting": "gradient", "line_search": "round"}


def test_model_does_not_depend_on_the_sets():
    plain = model().fit(X_TRAIN, Y_TRAIN)
    for params in ({}, {"rate_drop": 0.3}, LINE_SEARCH, {"num_parallel_tree": 2, "subsample": 0.5}):
        plain = model(**params).fit(X_TRAIN, Y_TRAIN)
        watched = model(**params).fit(X_TRAIN, Y_TRAIN, eval_set=[(X_TRAIN, Y_TRAIN), *PAIRS])
        np.testing.assert_array_equal(watched.predict_proba(X), plain.predict_proba(X))
        p = plain.predict_proba(X_TRAIN)[np.arange(300), Y_TRAIN]
        last = watched.evals_result_["train"]["log_loss"][-1]
        assert last == pytest.approx(-np.log(p).mean(), rel=1e-6)


@pytest.mark.parametrize(
    "estimator",
    [AdaBoostClassifier(n_estimators=8), AdaBoostClassifier(LogisticRegression(), n_estimators=3)],
    ids=["trees", "estimator"],
)
def test_adaboost(estimator):
    sets = [(X_TRAIN, Y_TRAIN), *PAIRS]
    fitted = estimator.fit(X_TRAIN, Y_TRAIN, eval_set=sets)
    assert list(fitted.evals_result_) == ["train", "validation_0", "validation_1"]
    for name, (X_one, y_one) in zip(fitted.evals_result_, sets, strict=True):
        curve = fitted.evals_result_[name]["error"]
        assert curve[-1] == pytest.approx(1 - fitted.score(X_one, y_one))


def test_adaboost_r2():
    sets = [(X[FIRST], X[FIRST, 0]), (X[LAST], X[LAST, 0])]
    fitted = AdaBoostRegressor(n_estimators=6, eval_metric="mae")
    fitted.fit(X_TRAIN, X_TRAIN[:, 0], eval_set=sets)
    for name, (X_one, y_one) in zip(fitted.evals_result_, sets, strict=True):
        expected = np.abs(fitted.predict(X_one) - y_one).mean()
        assert fitted.evals_result_[name]["mae"][-1] == pytest.approx(expected)


def test_continued_training():
    first = model().fit(X_TRAIN, Y_TRAIN)
    sets = [(X_TRAIN, Y_TRAIN), *PAIRS]
    longer = model(n_estimators=3).fit(X_TRAIN, Y_TRAIN, eval_set=sets, init_model=first)
    for name, (X_one, y_one) in zip(longer.evals_result_, sets, strict=True):
        p = longer.predict_proba(X_one)[np.arange(len(y_one)), y_one]
        assert longer.evals_result_[name]["log_loss"][-1] == pytest.approx(-np.log(p).mean())


def test_checkpoint_keeps_all_curves(tmp_path):
    checkpoint = Checkpoint(tmp_path / "fit.arc", every=1)
    whole = model().fit(X_TRAIN, Y_TRAIN, eval_set=PAIRS)
    cut = []

    def stop(done):
        cut.append(done.index)
        if done.index == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model().fit(X_TRAIN, Y_TRAIN, eval_set=PAIRS, checkpoint=checkpoint, callbacks=[stop])
    resumed = model().fit(X_TRAIN, Y_TRAIN, eval_set=PAIRS, checkpoint=checkpoint)
    assert resumed.evals_result_ == whole.evals_result_


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"eval_set": 3}, TypeError, "must be a list of pairs"),
        ({"eval_set": []}, TypeError, "must be a list of pairs"),
        ({"eval_set": [X]}, TypeError, "must be a list of pairs"),
        ({"eval_set": [(X,)]}, ValueError, r"eval_set\[0\] has 1 entries"),
        ({"eval_names": ["a"]}, ValueError, "came without eval_set"),
        ({"eval_set": PAIRS, "X_val": X, "y_val": Y}, ValueError, "its short form"),
        ({"eval_set": PAIRS, "eval_names": "ab"}, TypeError, "must be a list of strings"),
        ({"eval_set": PAIRS, "eval_names": ["a"]}, ValueError, "eval_set has 2 sets"),
        ({"eval_set": PAIRS, "eval_names": ["a", "a"]}, ValueError, "all different"),
        ({"eval_set": [(X, Y[:3])]}, ValueError, r"^eval_set\[0\]: "),
        ({"eval_set": [(X[:, :2], Y)]}, ValueError, r"^X of eval_set\[0\]: "),
        ({"eval_set": [(X, Y + 5), PAIRS[0]]}, ValueError, "y of the set 'validation_0'"),
        ({"eval_set": [(X[:0], Y[:0])]}, ValueError, r"X of eval_set\[0\]"),
        ({"eval_set": [(arboost.Dataset(X), Y)]}, TypeError, r"X of eval_set\[0\] is a Dataset"),
    ],
)
def test_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        model().fit(X_TRAIN, Y_TRAIN, **arguments)


def test_name_of_the_held_out_rows():
    with pytest.raises(ValueError, match="the name of the held-out rows"):
        model(n_iter_no_change=5).fit(
            X_TRAIN, Y_TRAIN, eval_set=[(X_TRAIN, Y_TRAIN)], eval_names=["validation"]
        )
