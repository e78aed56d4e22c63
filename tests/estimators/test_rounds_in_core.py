"""Rounds in the core: one call for many rounds gives the bytes of rounds step by step."""

import numpy as np
import pytest

from arboost import Checkpoint, GradientBoostingClassifier, GradientBoostingRegressor
from arboost.estimators import boosting_rounds
from arboost.estimators.boosting_rounds import BoostingRounds
from arboost.models.files.model_file import to_bytes

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
]


def fitted_bytes(target, params, **given):
    kind = GradientBoostingClassifier if target in ("two", "four") else GradientBoostingRegressor
    params = {"n_estimators": 12, "random_state": 3, "verbose": 0} | params
    return to_bytes(kind(**params).fit(X, TARGETS[target], **given).model_)


@pytest.mark.parametrize(("target", "params"), SETTINGS)
@pytest.mark.parametrize("weighted", [False, True])
def test_one_call_for_many_rounds_equals_calls_for_each_step(target, params, weighted, monkeypatch):
    weight = RNG.uniform(0.5, 2.0, 300) if weighted else None
    in_core = fitted_bytes(target, params, sample_weight=weight)
    with monkeypatch.context() as patch:
        patch.setattr(boosting_rounds, "_CORE_CALL_S", 0.0)  # one round a call
        assert fitted_bytes(target, params, sample_weight=weight) == in_core
    monkeypatch.setattr(BoostingRounds, "_round_params", lambda self: None)
    assert fitted_bytes(target, params, sample_weight=weight) == in_core


@pytest.mark.parametrize("target", ["numbers", "four"])
def test_rounds_in_core_with_validation_data_and_a_warm_start(target, monkeypatch):
    params = {"subsample": 0.7, "n_iter_no_change": 5}
    given = {"X_val": X[:50], "y_val": TARGETS[target][:50]}
    kind = GradientBoostingClassifier if target == "four" else GradientBoostingRegressor
    old = kind(n_estimators=4, verbose=0).fit(X, TARGETS[target])
    goss = {"sampling_method": "goss", "learning_rate": 0.2}  # its first rounds see all rows

    def both():
        return (
            fitted_bytes(target, params, **given),
            fitted_bytes(target, goss, init_model=old),
        )

    in_core = both()
    monkeypatch.setattr(BoostingRounds, "_round_params", lambda self: None)
    assert both() == in_core


def calls_of(monkeypatch, **params):
    """Return the largest number of rounds that each call of the core was allowed."""
    limits = []
    run_rounds = BoostingRounds.run_rounds

    def noted(self, limit=1):
        limits.append(limit)
        run_rounds(self, limit)

    monkeypatch.setattr(BoostingRounds, "run_rounds", noted)
    fit = params.pop("fit", {})
    model = GradientBoostingRegressor(n_estimators=6, verbose=0, **params)
    model.fit(X, TARGETS["numbers"], **fit)
    assert model.n_iter_ == 6
    return limits


def test_unmonitored_rounds_are_one_call(monkeypatch):
    assert calls_of(monkeypatch) == [6]


@pytest.mark.parametrize(
    "watched",
    [
        {"max_time": 1000.0},
        {"fit": {"callbacks": [lambda done: None]}},
        {"fit": {"X_val": X, "y_val": TARGETS["numbers"]}},
    ],
)
def test_watched_rounds_come_one_by_one(watched, monkeypatch):
    assert calls_of(monkeypatch, **watched) == [1] * 6


def test_rounds_with_a_checkpoint_of_each_come_one_by_one(tmp_path, monkeypatch):
    every = Checkpoint(tmp_path / "every", every=1)
    assert calls_of(monkeypatch, fit={"checkpoint": every}) == [1] * 6
    by_time = {"fit": {"checkpoint": tmp_path / "state"}}
    assert calls_of(monkeypatch, **by_time) == [6]


@pytest.mark.parametrize(
    "params",
    [
        {"loss": "huber"},
        {"boosting": "gradient"},
        {"rate_drop": 0.5},
        {"num_parallel_tree": 2, "subsample": 0.5},
    ],
)
def test_other_rounds_are_run_step_by_step(params, monkeypatch):
    steps = []
    run_round = BoostingRounds._run_round
    monkeypatch.setattr(
        BoostingRounds, "_run_round", lambda self: (steps.append(1), run_round(self))
    )
    GradientBoostingRegressor(n_estimators=3, verbose=0, **params).fit(X, TARGETS["numbers"])
    assert len(steps) == 3


def test_the_core_refuses_arrays_of_other_lengths():
    seen = {}
    init = BoostingRounds.__init__

    def noted(self, *args, **given):
        init(self, *args, **given)
        seen["rounds"] = self

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BoostingRounds, "__init__", noted)
        GradientBoostingRegressor(n_estimators=1, verbose=0).fit(X, TARGETS["numbers"])
    found = seen["rounds"]
    y, scores, gradients = TARGETS["numbers"], found.scores, found._gradients
    for arrays in [
        (y[1:], None, scores, gradients),
        (y, y[1:], scores, gradients),
        (y, None, scores[1:].copy(), gradients),
        (y, None, np.zeros((300, 2)), gradients),
        (y, None, np.zeros((300, 0)), gradients),
    ]:
        with pytest.raises(ValueError, match="fit"):
            found.grower.run_rounds(found._core_params, *arrays, 1, 1.0, 1)
    with pytest.raises(ValueError, match="no rounds"):
        found.grower.run_rounds(found._core_params, y, None, scores, gradients, 0, 1.0, 1)
