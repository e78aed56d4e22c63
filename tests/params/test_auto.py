"""n_estimators="auto" by cross-validation, and the values of other "auto" parameters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning

from arboost import Checkpoint, Dataset, GradientBoostingClassifier, GradientBoostingRegressor, cv
from arboost.params.auto import TableSize, limit_reason, resolve, round_search
from arboost.params.boosting import PARAMS

CHOSEN = {  # values of "auto" with n_estimators="auto", of a small table
    "learning_rate": 0.05,
    "max_depth": None,
    "max_leaves": 31,
    "grow_policy": "leafwise",
    "min_child_weight": 0.1,
    "min_samples_leaf": 1,
    "reg_lambda": 3.0,
    "sampling_method": "gradient_based",
    "subsample": 0.5,
    "colsample_bytree": 1.0,
    "colsample_bynode": 0.7,
}
AUTOMATIC = {"n_estimators": "auto", "learning_rate": "auto", "n_iter_no_change": None}


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 5))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=800)


def test_all_rows_are_trained_on_for_the_best_number_of_rounds(problem):
    X, y = problem
    actual = GradientBoostingRegressor().fit(X, y)
    curve = actual.evals_result_["validation"]["squared_error"]
    assert actual.stop_reason_ == "n_iter_no_change"
    assert len(curve) == np.argmin(curve) + 1 + 25
    assert actual.n_iter_ == 2 * (np.argmin(curve) + 1)  # at half the learning rate
    assert actual.best_iteration_ == actual.n_iter_ - 1
    assert actual.best_score_ == min(curve)
    same = GradientBoostingRegressor(n_estimators=actual.n_iter_, **CHOSEN).fit(X, y)
    np.testing.assert_array_equal(actual.predict(X), same.predict(X))


def test_rounds_are_those_of_cross_validation(problem):
    X, y = problem
    actual = GradientBoostingRegressor(preset="best").fit(X, y)
    result = cv(GradientBoostingRegressor(preset="best"), X, y, folds=5)
    np.testing.assert_allclose(
        actual.evals_result_["validation"]["squared_error"], result.mean["squared_error"]
    )
    assert actual.best_iteration_ == result.best_index


def test_textbook_values_where_n_estimators_is_given(problem):
    X, y = problem
    plain = GradientBoostingRegressor(n_estimators=7).fit(X, y)
    textbook = {
        "learning_rate": 0.1,
        "max_depth": 6,
        "grow_policy": "depthwise",
        "min_child_weight": 1.0,
        "min_samples_leaf": 1,
        "reg_lambda": 1.0,
        "sampling_method": "uniform",
        "subsample": 1.0,
        "colsample_bytree": 1.0,
        "colsample_bynode": 1.0,
    }
    explicit = GradientBoostingRegressor(n_estimators=7, **textbook).fit(X, y)
    np.testing.assert_array_equal(plain.predict(X), explicit.predict(X))
    assert plain.n_iter_ == 7
    assert plain.best_iteration_ is None


def test_texts_name_the_automatic_values():
    auto = {name: param.default for name, param in PARAMS.items() if param.default == "auto"}
    for name in ("category_encoding", "date_format", "calendar_parts"):  # of the table
        del auto[name]
    assert len(auto) == 10
    others = {
        "loss": "squared_error",
        "preset": "good",
        "n_iter_no_change": None,
        "max_leaves": None,
        "reg_lambda": None,
        "boosting": "newton",
    }
    for rounds in ("auto", 10):
        given = auto | others | {"n_estimators": rounds}
        actual = resolve(given, TableSize(10_000, 9), has_validation=False)
        for name in auto.keys() - {"n_estimators"}:
            value = actual[name]
            shown = f"{value:g}" if isinstance(value, float) else str(value)
            assert shown in PARAMS[name].text.partition('"auto": ')[2], name


@pytest.mark.parametrize(
    ("alpha", "n_rows", "leaf"),
    [(0.5, 2000, 10), (0.05, 2000, 100), (0.99, 2000, 200), ([0.05, 0.5, 0.95], 2000, 46)],
)
def test_leaves_of_quantiles_are_large(alpha, n_rows, leaf):
    names = ["max_depth", "grow_policy", "subsample", "min_child_weight", "min_samples_leaf"]
    given = dict.fromkeys(names, "auto") | AUTOMATIC | {"preset": "good", "max_leaves": None}
    given |= {"loss": "quantile", "alpha": alpha, "boosting": "newton", "reg_lambda": None}
    actual = resolve(given, TableSize(n_rows, 9), has_validation=False)
    assert (actual["min_samples_leaf"], actual["subsample"]) == (leaf, 1.0)
    given["n_estimators"] = 100
    assert resolve(given, TableSize(n_rows, 9), has_validation=False)["min_samples_leaf"] == 1
    given |= {"n_estimators": "auto", "min_samples_leaf": 3, "subsample": 0.7}
    actual = resolve(given, TableSize(n_rows, 9), has_validation=False)
    assert (actual["min_samples_leaf"], actual["subsample"]) == (3, 0.7)


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


@pytest.mark.filterwarnings("ignore:The fit ended at the most rounds")
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


def test_rates_of_the_best_preset_grow_with_the_rows():
    given = AUTOMATIC | {"preset": "best"}
    rates = [
        resolve(given, TableSize(n_rows, 9), has_validation=False)["learning_rate"]
        for n_rows in (100, 10_000, 80_000, 640_000, 10**8)
    ]
    assert rates == [0.025, 0.025, 0.05, 0.1, 0.1]


def search_of(size, **params):
    given = AUTOMATIC | {"preset": "good", "validation_split": "random"} | params
    return round_search(given, size, has_groups=False)


def test_work_follows_from_counts():
    """Iris, digits, text of 14 classes, a large table: rounds in all, of trees of equal cost."""
    sizes = [
        TableSize(112, 4, 3),
        TableSize(1_347, 64, 10),
        TableSize(260, 2_605, 14),
        TableSize(10**6, 30),
    ]
    searches = [search_of(size) for size in sizes]
    assert [one.n_folds for one in searches] == [5, 1, 1, None]
    assert [one.fit_factor for one in searches] == [2, 2, 1, 1]
    assert {one.n_rounds for one in searches} == {300}
    fast = search_of(sizes[0], preset="fast")
    assert (fast.n_folds, fast.fit_factor, fast.n_rounds, fast.n_iter_no_change) == (1, 1, 150, 10)
    best = search_of(sizes[1], preset="best")
    assert (best.n_folds, best.fit_factor, best.n_rounds, best.n_iter_no_change) == (5, 1, 4000, 50)


def test_given_values_keep_their_meaning():
    size = TableSize(500, 9)
    given = search_of(size, learning_rate=0.3, n_iter_no_change=7)
    assert (given.learning_rate, given.fit_factor, given.n_iter_no_change) == (0.3, 1, 7)
    assert search_of(size, max_time=5.0).fit_factor == 1  # search and fit have half of the time


def test_wide_tables_give_each_tree_a_share_of_the_features():
    given = AUTOMATIC | {"preset": "good", "colsample_bytree": "auto"}
    shares = [
        resolve(given, TableSize(1000, n), has_validation=False)["colsample_bytree"]
        for n in (1, 36, 144, 3_600, 10**6)
    ]
    assert shares == [1.0, 1.0, 0.5, 0.1, 0.1]


@pytest.mark.parametrize(
    ("size", "has_vectors"),
    [
        (TableSize(5_000, 30, 4, 0.9), True),
        (TableSize(5_000, 30, 4, 0.1), False),  # a rare class
        (TableSize(100, 4, 3, 1.0), False),  # a small table
        (TableSize(5_000, 30, 1, 1.0), False),  # two classes
    ],
)
def test_vector_leaves(size, has_vectors):
    given = AUTOMATIC | {"preset": "good", "multi_strategy": "auto", "boosting": "newton"}
    given |= {"reg_lambda": None, "max_leaves": None}
    actual = resolve(given, size, has_validation=False)
    assert (actual["multi_strategy"] == "multi_output_tree") == has_vectors
    assert actual["reg_lambda"] == (1.0 if has_vectors else 3.0)
    plain = resolve(given | {"n_estimators": 10}, size, has_validation=False)
    assert plain["multi_strategy"] == "one_output_per_tree"


def test_many_classes_take_few_rounds_and_name_the_limit():
    X, y = load_digits(return_X_y=True)
    seen = []
    model = GradientBoostingClassifier(preset="fast", max_leaves=4)
    model.fit(X[:400], y[:400], callbacks=[lambda done: seen.append(done.total)])
    assert set(seen) == {150}
    assert len(seen) <= 300
    assert model.stop_reason_ == 'most rounds of preset="fast": set preset="good" for more'
    assert model.model_.params["multi_strategy"] == "multi_output_tree"


def test_a_score_that_still_improves_at_the_limit_is_a_warning():
    X, y = load_breast_cancer(return_X_y=True)
    limit = 'The fit ended at the most rounds of preset="good": set preset="best" for more'
    with pytest.warns(ConvergenceWarning, match=limit) as warned:
        GradientBoostingClassifier(max_leaves=2).fit(X, y)
    assert [one.filename for one in warned] == [__file__]  # once, at the line of the caller


def test_noise_free_rows_reach_the_limit_in_silence():
    """Their score improves forever, by less and less."""
    X = np.arange(200.0).reshape(-1, 1)
    model = GradientBoostingRegressor(max_leaves=2).fit(X, X[:, 0] > 100)
    assert model.stop_reason_ == 'most rounds of preset="good": set preset="best" for more'


def test_the_limit_names_the_next_step():
    assert limit_reason("good") == 'most rounds of preset="good": set preset="best" for more'
    assert limit_reason("best").endswith("set n_estimators and n_iter_no_change for more")


def test_a_warm_start_keeps_the_kind_of_trees():
    X, y = load_digits(return_X_y=True)
    first = GradientBoostingClassifier(n_estimators=2).fit(X[:300], y[:300])
    more = GradientBoostingClassifier(preset="fast", max_leaves=3, learning_rate=0.5)
    more.fit(X[:300], y[:300], init_model=first)
    assert more.model_.params["multi_strategy"] == "one_output_per_tree"
    assert more.n_iter_ == more.best_iteration_ + 1 > 2


def test_unknown_presets_are_refused(problem):
    with pytest.raises(ValueError, match="preset='quick'"):
        GradientBoostingRegressor(preset="quick").fit(*problem)


@pytest.mark.parametrize("name", ["n_estimators", "learning_rate", "subsample", "max_depth"])
def test_other_strings_are_refused(problem, name):
    X, y = problem
    with pytest.raises(TypeError, match=f'{name}=.*or "auto"'):
        GradientBoostingRegressor(**{name: "automatic"}).fit(X, y)
