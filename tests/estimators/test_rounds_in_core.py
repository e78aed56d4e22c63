"""Rounds in the core: one call for many rounds gives the bytes of a call for each round."""

import numpy as np
import pytest

from arboost import (
    Checkpoint,
    CustomLoss,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    _core,
    cv,
)
from arboost.estimators.boosting_rounds import BoostingRounds
from arboost.models.files.model_file import to_bytes
from arboost.training import monitor

RNG = np.random.default_rng(5)
X = RNG.normal(size=(300, 5))
X[::7, 1] = np.nan
NUMBERS = X[:, 0] + np.nan_to_num(X[:, 1]) ** 2 + 0.1 * RNG.normal(size=300)
TARGETS = {
    "numbers": NUMBERS,
    "counts": np.round(np.exp(NUMBERS / 2)) + 1.0,
    "two": (NUMBERS > 1).astype(int),
    "four": np.digitize(NUMBERS, [-0.5, 0.5, 1.5]),
}
SQUARES = CustomLoss(
    name="squares",
    gradients=lambda y, score, weight: (weight * (score - y), weight),
    value=lambda y, score, weight: float(np.average((score - y) ** 2, weights=weight)),
)
SETTINGS = [
    ("numbers", {}),
    ("two", {}),
    ("four", {}),
    ("four", {"multi_strategy": "multi_output_tree"}),
    ("counts", {"loss": "poisson"}),
    ("counts", {"loss": "tweedie"}),
    ("counts", {"loss": "gamma"}),
    ("two", {"subsample": 0.5, "colsample_bynode": 0.5}),
    ("four", {"subsample": 0.5, "sampling_method": "gradient_based"}),
    ("numbers", {"sampling_method": "goss", "learning_rate": 0.5}),
    ("four", {"sampling_method": "goss", "learning_rate": 0.5}),
    ("two", {"tree_method": "approx"}),
    ("two", {"tree_method": "exact", "monotone_constraints": {0: 1}}),
    ("numbers", {"grow_policy": "leafwise", "max_leaves": 5, "n_jobs": 3}),
    ("numbers", {"base_score": 3.0, "gamma": 0.1}),
    ("numbers", {"loss": "huber"}),
    ("numbers", {"loss": "huber", "boosting": "gradient"}),
    ("four", {"boosting": "gradient"}),
    ("numbers", {"boosting": "gradient", "line_search": "round"}),
    ("numbers", {"loss": SQUARES}),
    ("numbers", {"rate_drop": 0.5}),
    ("four", {"rate_drop": 0.3, "sample_type": "weighted", "normalize_type": "forest"}),
    ("numbers", {"num_parallel_tree": 2, "subsample": 0.5}),
]
IDS = [f"{target}-{'-'.join(map(str, params))}" for target, params in SETTINGS]


def kind_of(target):
    return GradientBoostingClassifier if target in ("two", "four") else GradientBoostingRegressor


def fitted(target, params, **given):
    params = {"n_estimators": 12, "random_state": 3, "verbose": 0} | params
    return kind_of(target)(**params).fit(X, TARGETS[target], **given)


def one_round_a_call(monkeypatch):
    monkeypatch.setattr(monitor, "_CALL_S", 0.0)


def assert_same(model, other):
    assert to_bytes(model.model_) == to_bytes(other.model_)
    assert model.evals_result_ == other.evals_result_


@pytest.mark.parametrize(("target", "params"), SETTINGS, ids=IDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_one_call_for_many_rounds_equals_a_call_for_each(target, params, weighted, monkeypatch):
    given = {"X_val": X[:50], "y_val": TARGETS[target][:50]}
    if weighted:
        given["sample_weight"] = RNG.uniform(0.5, 2.0, 300)
    at_once = fitted(target, params, **given)
    one_round_a_call(monkeypatch)
    assert_same(fitted(target, params, **given), at_once)
    del given["X_val"], given["y_val"]
    unwatched = fitted(target, params, **given).model_.forest
    np.testing.assert_array_equal(unwatched.value, at_once.model_.forest.value)


@pytest.mark.parametrize("metrics", [None, ["mean_absolute_error", "squared_error"]])
@pytest.mark.parametrize("params", [{}, {"rate_drop": 0.4}, {"subsample": 0.7}])
def test_early_stopping_at_any_number_of_rounds_a_call(params, metrics, monkeypatch):
    settings = {"n_iter_no_change": 3, "eval_metric": metrics, "n_estimators": 200, **params}
    settings["learning_rate"] = 0.5
    given = {"X_val": X[:80] + 0.3, "y_val": NUMBERS[:80]}
    at_once = fitted("numbers", settings, **given)
    assert 1 < at_once.n_iter_ < 100
    one_round_a_call(monkeypatch)
    assert_same(fitted("numbers", settings, **given), at_once)


@pytest.mark.parametrize("params", [{}, {"rate_drop": 0.4, "one_drop": True}])
def test_a_callback_ends_the_fit_at_its_round(params, monkeypatch):
    """Later rounds, which the same call has made, are cut off."""
    settings = {"n_estimators": 100, **params}
    seen = []

    def stop(done):
        seen.append(done.index)
        return done.index == 6

    at_once = fitted("numbers", settings, callbacks=[stop])
    assert seen == list(range(7))
    assert (at_once.n_iter_, at_once.stop_reason_) == (7, "callback stop")
    one_round_a_call(monkeypatch)
    assert_same(fitted("numbers", settings, callbacks=[stop]), at_once)


def test_folds_in_step_at_any_number_of_rounds_a_call(monkeypatch):
    model = GradientBoostingRegressor(n_estimators=15, verbose=0)
    at_once = cv(model, X, NUMBERS, folds=3)
    one_round_a_call(monkeypatch)
    again = cv(model, X, NUMBERS, folds=3)
    for name, curves in at_once.scores.items():
        np.testing.assert_array_equal(curves, again.scores[name])


def calls_of(monkeypatch, **params):
    """The number of rounds of each call of the core."""
    numbers = []
    run_rounds = BoostingRounds.run_rounds

    def noted(self, limit=1, metrics=(), seconds=0.0):
        finished = run_rounds(self, limit, metrics, 60.0 if seconds else 0.0)
        numbers.append(len(finished))
        return finished

    monkeypatch.setattr(BoostingRounds, "run_rounds", noted)
    fit = params.pop("fit", {})
    model = GradientBoostingRegressor(**{"n_estimators": 6, "verbose": 0} | params)
    model.fit(X, TARGETS["numbers"], **fit)
    assert model.n_iter_ == 6
    return numbers


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"fit": {"callbacks": [lambda done: None]}},
        {"fit": {"X_val": X, "y_val": TARGETS["numbers"]}},
        {"fit": {"X_val": X, "y_val": NUMBERS}, "eval_metric": "mean_absolute_error"},
        {"loss": "huber", "fit": {"X_val": X, "y_val": NUMBERS}},
        {"boosting": "gradient", "fit": {"X_val": X, "y_val": NUMBERS}},
        {"rate_drop": 0.5, "fit": {"X_val": X, "y_val": NUMBERS}},
        {"num_parallel_tree": 2, "subsample": 0.5},
    ],
)
def test_watched_or_not_all_rounds_are_one_call(params, monkeypatch):
    assert calls_of(monkeypatch, **params) == [6]


def test_a_time_limit_needs_the_time_of_a_round_first(monkeypatch):
    assert calls_of(monkeypatch, max_time=1000.0) == [1, 5]


def test_rounds_with_a_checkpoint_of_each_come_one_by_one(tmp_path, monkeypatch):
    every = Checkpoint(tmp_path / "every", every=1)
    assert calls_of(monkeypatch, fit={"checkpoint": every}) == [1] * 6
    by_time = {"fit": {"checkpoint": tmp_path / "state"}}
    assert calls_of(monkeypatch, **by_time) == [6]
    callbacks = {"fit": {"checkpoint": tmp_path / "other", "callbacks": [lambda done: None]}}
    assert calls_of(monkeypatch, **callbacks) == [1] * 6  # a state has no rounds to cut off


def test_scores_handed_over_are_limited(monkeypatch):
    """Metrics of Python need the scores of each round: a call ends before they fill the memory."""
    rows = np.tile(X, (400, 1))
    fit = {"X_val": rows, "y_val": np.tile(NUMBERS, 400)}
    metric = "mean_absolute_error"
    numbers = calls_of(monkeypatch, fit=fit, eval_metric=metric, n_estimators=6)
    assert numbers == [6]
    monkeypatch.undo()
    rows = np.tile(X, (8000, 1))
    fit = {"X_val": rows, "y_val": np.tile(NUMBERS, 8000)}
    numbers = calls_of(monkeypatch, fit=fit, eval_metric=metric, n_estimators=6)
    assert numbers == [3, 3]  # 19 MB each


def test_the_core_refuses_arrays_of_other_lengths():
    codes_of = {}
    init = BoostingRounds.__init__

    def noted(self, *args, **given):
        init(self, *args, **given)
        codes_of["rounds"] = self

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BoostingRounds, "__init__", noted)
        GradientBoostingRegressor(n_estimators=1, verbose=0).fit(X, NUMBERS)
    rounds = codes_of["rounds"]
    grower, params = rounds.grower, rounds._round_params()
    with pytest.raises(ValueError, match="grown trees"):
        _core.Boosting(grower, params, 1, NUMBERS, None)
    for n_outputs, y, weight in [
        (1, NUMBERS[1:], None),
        (1, NUMBERS, NUMBERS[1:]),
        (0, NUMBERS, None),
    ]:
        with pytest.raises(ValueError, match="fit"):
            _core.Boosting(grower, params, n_outputs, y, weight)
    for scores in (np.zeros((299, 1)), np.zeros((300, 2))):
        with pytest.raises(ValueError, match="fit"):
            rounds._boosting.set_scores(scores)
    with pytest.raises(ValueError, match="no rounds"):
        rounds.run_rounds(0)


@pytest.mark.parametrize("rows", [150, 1_000])
@pytest.mark.parametrize("params", [{}, {"grow_policy": "leafwise", "subsample": 0.7}], ids=str)
def test_a_second_thread_does_not_change_small_fits(rows, params):
    rng = np.random.default_rng(rows)
    table = rng.normal(size=(rows, 10))
    labels = (table[:, 0] * table[:, 1] + 0.3 * rng.normal(size=rows) > 0).astype(int)
    common = {"n_estimators": 40, "max_depth": 6, "random_state": 1, "verbose": 0} | params
    models = [
        GradientBoostingClassifier(**common, n_jobs=n_jobs).fit(table, labels)
        for n_jobs in (1, 2, 4)
    ]
    first = to_bytes(models[0].model_)
    assert all(to_bytes(model.model_) == first for model in models)
