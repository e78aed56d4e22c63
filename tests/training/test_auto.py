"""n_estimators="auto" by cross-validation, and the values of other "auto" parameters."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import Checkpoint, Dataset, GradientBoostingClassifier, GradientBoostingRegressor, cv
from arboost.params.auto import resolve
from arboost.params.boosting import PARAMS

CHOSEN = {  # values of "auto" with n_estimators="auto", below 10,000 rows
    "learning_rate": 0.025,
    "max_depth": None,
    "max_leaves": 31,
    "grow_policy": "leafwise",
    "min_child_weight": 0.1,
    "reg_lambda": 3.0,
    "sampling_method": "gradient_based",
    "subsample": 0.5,
    "colsample_bynode": 0.7,
}


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 5))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=800)


def test_all_rows_are_trained_on_for_the_best_number_of_rounds(problem):
    X, y = problem
    found = GradientBoostingRegressor().fit(X, y)
    curve = found.evals_result_["validation"]["squared_error"]
    assert found.stop_reason_ == "n_iter_no_change"
    assert found.n_iter_ == np.argmin(curve) + 1 == len(curve) - 50
    assert found.best_score_ == min(curve)
    same = GradientBoostingRegressor(n_estimators=found.n_iter_, **CHOSEN).fit(X, y)
    np.testing.assert_array_equal(found.predict(X), same.predict(X))


def test_rounds_are_those_of_cross_validation(problem):
    X, y = problem
    found = GradientBoostingRegressor().fit(X, y)
    result = cv(GradientBoostingRegressor(), X, y, folds=5)
    np.testing.assert_allclose(
        found.evals_result_["validation"]["squared_error"], result.mean["squared_error"]
    )
    assert found.best_iteration_ == result.best_index


def test_textbook_values_where_n_estimators_is_given(problem):
    X, y = problem
    plain = GradientBoostingRegressor(n_estimators=7).fit(X, y)
    textbook = {
        "learning_rate": 0.1,
        "max_depth": 6,
        "grow_policy": "depthwise",
        "min_child_weight": 1.0,
        "reg_lambda": 1.0,
        "sampling_method": "uniform",
        "subsample": 1.0,
        "colsample_bynode": 1.0,
    }
    explicit = GradientBoostingRegressor(n_estimators=7, **textbook).fit(X, y)
    np.testing.assert_array_equal(plain.predict(X), explicit.predict(X))
    assert plain.n_iter_ == 7
    assert plain.best_iteration_ is None


def test_texts_name_the_automatic_values():
    auto = {name: param.default for name, param in PARAMS.items() if param.default == "auto"}
    assert len(auto) == 8
    others = {
        "n_iter_no_change": None,
        "max_leaves": None,
        "reg_lambda": None,
        "boosting": "newton",
    }
    for rounds in ("auto", 10):
        given = auto | others | {"n_estimators": rounds}
        found = resolve(given, 10_000, has_validation=False)
        for name in auto.keys() - {"n_estimators"}:
            value = found[name]
            shown = f"{value:g}" if isinstance(value, float) else str(value)
            assert shown in PARAMS[name].text.partition('"auto": ')[2], name


def test_given_validation_rows_decide_alone(problem):
    X, y = problem
    model = GradientBoostingRegressor().fit(X[:600], y[:600], X_val=X[600:], y_val=y[600:])
    error = np.mean((model.predict(X[600:]) - y[600:]) ** 2)
    np.testing.assert_allclose(model.best_score_, error)


@pytest.mark.parametrize("n_rows", [49, 50])
def test_few_rows_have_a_fixed_number(problem, n_rows):
    X, y = problem
    model = GradientBoostingRegressor().fit(X[:n_rows], y[:n_rows])
    assert (model.n_iter_ == 100) == (n_rows < 50)
    assert (model.stop_reason_ == "n_estimators") == (n_rows < 50)


def test_many_rows_are_split_once():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5000, 3))
    y = X[:, 0] + rng.normal(size=5000)
    model = GradientBoostingRegressor(validation_fraction=0.2).fit(X, y)
    same = GradientBoostingRegressor(validation_fraction=0.2).fit(Dataset(X, y))
    half = GradientBoostingRegressor(validation_split="time").fit(X, y)
    assert model.model_.n_rounds == same.model_.n_rounds
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    assert half.best_score_ != model.best_score_


@pytest.mark.parametrize("n_rows", [400, 6000])
def test_classes_of_one_row(n_rows):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n_rows, 2))
    y = (X[:, 0] > 0).astype(int)
    y[7] = 2
    model = GradientBoostingClassifier().fit(X, y)
    assert model.predict_proba(X).shape == (n_rows, 3)
    assert model.score(X, y) > 0.95


def test_groups_stay_whole(problem):
    X, y = problem
    groups = np.arange(800) // 100
    model = GradientBoostingRegressor(validation_split="group").fit(X, y, groups=groups)
    assert model.best_iteration_ is not None


@pytest.mark.parametrize("rounds_before", [20, 300])
def test_an_interrupted_fit_resumes_to_the_same_model(tmp_path, rounds_before):
    """Interruptions during the search for the number of rounds, and in the final fit."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(5200, 4))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=5200)
    model = GradientBoostingRegressor(learning_rate=0.1)
    calls = []

    def interrupt(_):
        calls.append(None)
        if len(calls) == rounds_before:
            raise RuntimeError("power cut")

    checkpoint = Checkpoint(tmp_path / "fit.arc", every=10)
    with pytest.raises(RuntimeError, match="power cut"):
        model.fit(X, y, checkpoint=checkpoint, callbacks=[interrupt])
    assert list(tmp_path.iterdir())
    resumed = model.fit(X, y, checkpoint=checkpoint)
    assert not list(tmp_path.iterdir())
    whole = GradientBoostingRegressor(learning_rate=0.1).fit(X, y)
    assert whole.n_iter_ == resumed.n_iter_
    np.testing.assert_array_equal(whole.predict(X), resumed.predict(X))


def test_losses_of_one_size_are_sampled_alike(problem):
    X, y = problem
    for options in ({"loss": "absolute_error"}, {"boosting": "gradient"}):
        model = GradientBoostingRegressor(**options).fit(X, y)
        assert model.model_.params["sampling_method"] == "uniform"
    goss = GradientBoostingRegressor(sampling_method="goss").fit(X, y)
    assert goss.model_.params["subsample"] == 1.0


def test_the_model_records_the_chosen_values(problem):
    X, y = problem
    params = GradientBoostingRegressor().fit(X, y).model_.params
    assert params["n_estimators"] == "auto"
    assert {name: params[name] for name in CHOSEN} == CHOSEN


def test_rates_grow_with_the_rows():
    given = {"n_estimators": "auto", "learning_rate": "auto", "n_iter_no_change": None}
    rates = [
        resolve(given, n_rows, has_validation=False)["learning_rate"]
        for n_rows in (100, 10_000, 80_000, 640_000, 10**8)
    ]
    assert rates == [0.025, 0.025, 0.05, 0.1, 0.1]


@pytest.mark.parametrize("name", ["n_estimators", "learning_rate", "subsample", "max_depth"])
def test_other_words_are_refused(problem, name):
    X, y = problem
    with pytest.raises(TypeError, match=f'{name}=.*or "auto"'):
        GradientBoostingRegressor(**{name: "automatic"}).fit(X, y)
