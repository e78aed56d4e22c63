"""Killed and resumed fits: the same model file as without interruption, byte for byte."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from arboost import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    Checkpoint,
    CustomLoss,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    ModelFormatError,
)
from arboost.models.files import model_file
from arboost.training.checkpoint import State

N_ROWS = 300


def stored_state(path):
    return State.from_bytes(Path(path).read_bytes(), str(path))


class Killed(BaseException):
    """Simulated kill: a BaseException that no code catches."""


def kill_at(rounds):
    def callback(done):
        if done.index + 1 == rounds:
            raise Killed

    return callback


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N_ROWS, 6))
    X[rng.random(X.shape) < 0.1] = np.nan
    signal_ = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2 + rng.normal(size=N_ROWS)
    return X, signal_


def target_of(estimator, values, n_classes):
    if isinstance(estimator, AdaBoostRegressor):
        return values
    if isinstance(estimator, GradientBoostingRegressor):
        return np.exp(values) if estimator.loss in ("poisson", "gamma", "tweedie") else values
    return np.searchsorted(np.quantile(values, np.arange(1, n_classes) / n_classes), values)


def log_cosh(y, score, weight):
    wave = np.tanh(score - y)
    return weight * wave, weight * (1 - wave**2)


EARLY = {"n_iter_no_change": 4, "n_estimators": 200}
DART = {"rate_drop": 0.3, "one_drop": True}
R, C = GradientBoostingRegressor, GradientBoostingClassifier
FITS = {
    "plain": (R(), 2),
    "two classes": (C(), 2),
    "early": (R(learning_rate=0.5, **EARLY), 2),
    "early of several metrics": (C(learning_rate=0.5, eval_metric=["auc", "error"], **EARLY), 2),
    "sampled": (R(subsample=0.5, colsample_bytree=0.7, colsample_bynode=0.7), 2),
    "by gradient": (C(subsample=0.3, sampling_method="gradient_based"), 2),
    "one side": (C(sampling_method="goss", learning_rate=0.4), 3),
    "one-side dart": (R(sampling_method="goss", learning_rate=0.6, **DART, **EARLY), 2),
    "dart": (R(**DART), 2),
    "line search": (R(boosting="gradient", line_search="round", loss="huber"), 2),
    "early line search": (C(boosting="gradient", line_search="round", **EARLY), 3),
    "early dart": (C(learning_rate=0.6, **DART, **EARLY), 2),
    "early sampled dart": (R(subsample=0.5, learning_rate=0.6, **DART, **EARLY), 2),
    "forests": (R(num_parallel_tree=3, subsample=0.5), 2),
    "three classes": (C(), 3),
    "vector leaves": (C(multi_strategy="multi_output_tree"), 3),
    "three classes, dart": (C(learning_rate=0.6, **DART, **EARLY), 3),
    "friedman": (C(boosting="gradient"), 3),
    "absolute error": (R(loss="absolute_error"), 2),
    "huber": (R(loss="huber", boosting="gradient"), 2),
    "quantiles": (R(loss="quantile", alpha=[0.2, 0.8]), 2),
    "exact": (R(tree_method="exact", subsample=0.7), 2),
    "approx": (C(tree_method="approx", sketch_eps=0.05), 2),
    "approx by node": (C(tree_method="approx", sketch_eps=0.05, sketch_scope="local"), 2),
    "custom": (R(loss=CustomLoss(name="log_cosh", gradients=log_cosh)), 2),
    "AdaBoost": (AdaBoostClassifier(), 2),
    "AdaBoost, three classes": (AdaBoostClassifier(learning_rate=0.5), 3),
    "real AdaBoost": (AdaBoostClassifier(algorithm="real", tree_method="exact"), 3),
    "early AdaBoost": (AdaBoostClassifier(algorithm="gentle", **EARLY), 3),
    "AdaBoost that draws": (AdaBoostClassifier(resample=True, oob_score=True), 3),
    "R2": (AdaBoostRegressor(loss="exponential"), 2),
    "early R2": (AdaBoostRegressor(n_estimators=200, n_iter_no_change=6), 2),
    "R2 that draws": (AdaBoostRegressor(resample=True, oob_score=True), 2),
}


def fit(estimator, data, n_classes, **options):
    X, values = data
    estimator.fit(X, target_of(estimator, values, n_classes), **options)
    return model_file.to_bytes(estimator.model_), estimator.evals_result_, estimator.stop_reason_


@pytest.mark.parametrize("name", FITS)
def test_killed_and_resumed(tmp_path, data, name):
    given, n_classes = FITS[name]
    estimator = type(given)(**(given.get_params() | {"max_depth": 3}))
    if estimator.n_iter_no_change is None:
        estimator.set_params(n_estimators=13)
    whole = fit(estimator, data, n_classes)
    checkpoint = Checkpoint(tmp_path / "fit.arc", every=2)
    for rounds in (3, 5):
        with pytest.raises(Killed):
            fit(estimator, data, n_classes, checkpoint=checkpoint, callbacks=[kill_at(rounds)])
        assert len(stored_state(checkpoint.path).arrays["weights"]) == rounds - 1
    estimator.set_params(n_jobs=3)
    assert fit(estimator, data, n_classes, checkpoint=checkpoint) == whole
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("given", [AdaBoostClassifier(), AdaBoostRegressor()], ids=str)
def test_fitted_attributes_of_a_resumed_adaboost(tmp_path, data, given):
    """The state includes errors, weights, bootstrap samples and validation metrics."""
    X, values = data
    y = target_of(given, values, 3)
    params = {"n_estimators": 13, "resample": True, "oob_score": True, "n_jobs": 1, "max_depth": 2}
    options = {
        "sample_weight": np.linspace(0.0, 2.0, 200),
        "X_val": X[200:],
        "y_val": y[200:],
    }
    whole = type(given)(**params).fit(X[:200], y[:200], **options)
    resumed = type(given)(**params)
    checkpoint = Checkpoint(tmp_path / "fit.arc", every=2)
    with pytest.raises(Killed):
        resumed.fit(X[:200], y[:200], **options, checkpoint=checkpoint, callbacks=[kill_at(5)])
    resumed.fit(X[:200], y[:200], **options, checkpoint=checkpoint)
    facts, expected = ({k: v for k, v in vars(m).items() if k[-1] == "_"} for m in (resumed, whole))
    assert model_file.to_bytes(facts.pop("model_")) == model_file.to_bytes(expected.pop("model_"))
    assert {"estimator_errors_", "oob_score_", "evals_result_"} <= set(facts)
    np.testing.assert_equal(facts, expected)


def test_validation_data_and_weights(tmp_path, data):
    X, y = data
    estimator = GradientBoostingRegressor(learning_rate=0.5, max_depth=3, **EARLY)
    options = {
        "sample_weight": np.linspace(0.0, 2.0, 200),
        "X_val": X[200:],
        "y_val": y[200:],
        "sample_weight_val": np.linspace(1.0, 2.0, 100),
    }
    whole = model_file.to_bytes(estimator.fit(X[:200], y[:200], **options).model_)
    path = tmp_path / "fit.arc"
    checkpoint = Checkpoint(path, every=1)
    with pytest.raises(Killed):
        estimator.fit(X[:200], y[:200], **options, checkpoint=checkpoint, callbacks=[kill_at(2)])
    changed = options | {"sample_weight_val": np.ones(100)}
    with pytest.raises(ValueError, match=r"differ in validation data\. Make"):
        estimator.fit(X[:200], y[:200], **changed, checkpoint=checkpoint)
    estimator.fit(X[:200], y[:200], **options, checkpoint=str(path))
    assert model_file.to_bytes(estimator.model_) == whole


def test_continued_training(tmp_path, data):
    X, y = data
    first = GradientBoostingRegressor(n_estimators=5, max_depth=3).fit(X, y)
    second = GradientBoostingRegressor(n_estimators=9, max_depth=3, random_state=1)
    whole = model_file.to_bytes(second.fit(X, y, init_model=first).model_)
    checkpoint = Checkpoint(tmp_path / "fit.arc", every=1)
    with pytest.raises(Killed):
        second.fit(X, y, init_model=first, checkpoint=checkpoint, callbacks=[kill_at(4)])
    with pytest.raises(ValueError, match=r"differ in .*init_model"):
        second.fit(X, y, checkpoint=checkpoint)
    second.fit(X, y, init_model=first, checkpoint=checkpoint)
    assert model_file.to_bytes(second.model_) == whole


@pytest.mark.parametrize(
    ("params", "rows", "message"),
    [
        ({"max_depth": 4}, slice(None), r"differ in max_depth \(3 there, 4 now\)\. Make"),
        ({"reg_alpha": 1.0}, slice(None), r"reg_alpha \(0.0 there, 1.0 now\)"),
        ({"random_state": 1}, slice(None), r"random_state \(0 there, 1 now\)"),
        ({}, slice(None, -1), r"differ in X, y\. Make"),
    ],
)
def test_other_fits_are_refused(tmp_path, data, params, rows, message):
    X, y = data
    estimator = GradientBoostingRegressor(n_estimators=9, max_depth=3)
    checkpoint = Checkpoint(tmp_path / "fit.arc", every=2)
    with pytest.raises(Killed):
        estimator.fit(X, y, checkpoint=checkpoint, callbacks=[kill_at(5)])
    with pytest.raises(ValueError, match=message):
        estimator.set_params(**params).fit(X[rows], y[rows], checkpoint=checkpoint)


def test_more_rounds_can_be_asked_for(tmp_path, data):
    X, y = data
    estimator = GradientBoostingRegressor(n_estimators=9, max_depth=3)
    checkpoint = Checkpoint(tmp_path / "fit.arc", every=2)
    with pytest.raises(Killed):
        estimator.fit(X, y, checkpoint=checkpoint, callbacks=[kill_at(5)])
    estimator.set_params(n_estimators=20).fit(X, y, checkpoint=checkpoint)
    whole = GradientBoostingRegressor(n_estimators=20, max_depth=3).fit(X, y)
    assert model_file.to_bytes(estimator.model_) == model_file.to_bytes(whole.model_)


HOSTILE = {
    "child outside": lambda arrays: arrays["left"].__setitem__(0, 10_000),
    "child before": lambda arrays: arrays["left"].__setitem__(1, 1),
    "feature": lambda arrays: arrays["feature"].__setitem__(0, 99),
    "bin": lambda arrays: arrays["bin"].__setitem__(0, 10_000),
    "trees": lambda arrays: arrays["tree_start"].__setitem__(1, 10_000),
    "fewer trees": lambda arrays: arrays.update(tree_start=arrays["tree_start"][:2]),
    "fewer values": lambda arrays: arrays.update(value=arrays["value"][:-1]),
    "fewer rounds": lambda arrays: arrays.update(weights=arrays["weights"][:-1]),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_trees(tmp_path, data, change):
    """Invalid trees under a valid checksum must not reach the core."""
    X, y = data
    estimator = GradientBoostingRegressor(n_estimators=9, max_depth=3)
    checkpoint = Checkpoint(tmp_path / "fit.arc", every=4)
    with pytest.raises(Killed):
        estimator.fit(X, y, checkpoint=checkpoint, callbacks=[kill_at(5)])
    state = stored_state(checkpoint.path)
    arrays = {name: array.copy() for name, array in state.arrays.items()}
    change(arrays)
    checkpoint.store(replace(state, arrays=arrays))
    with pytest.raises(ModelFormatError, match="cannot read the checkpoint"):
        estimator.fit(X, y, checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"checkpoint": 3}, TypeError, "checkpoint=3"),
        ({"checkpoint": "no/such/folder/fit.arc"}, FileNotFoundError, "Make the folder first"),
        ({"callbacks": [3]}, TypeError, "callbacks hold 3"),
        ({"callbacks": print}, TypeError, r"list of functions .* Use callbacks=\["),
    ],
)
def test_wrong_arguments_are_refused_before_any_work(data, monkeypatch, options, error, message):
    X, y = data
    monkeypatch.setattr("arboost.training.sets.bin_rows", None)
    with pytest.raises(error, match=message):
        GradientBoostingRegressor().fit(X, y, **options)


PROGRAM = """
    import os, signal, sys
    import numpy as np
    from arboost import Checkpoint, GradientBoostingRegressor

    path, model, blow = sys.argv[1:]
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.normal(size=300)

    def strike(done):
        if done.index == 7:
            os.kill(os.getpid(), getattr(signal, blow))

    estimator = GradientBoostingRegressor(n_estimators=20, subsample=0.5, rate_drop=0.2)
    estimator.fit(X, y, checkpoint=Checkpoint(path, every=5), callbacks=[strike])
    estimator.save(model)
"""


def run(*arguments):
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM), *map(str, arguments)]
    return subprocess.run(program, capture_output=True, text=True, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
@pytest.mark.parametrize(("blow", "rounds"), [("SIGKILL", 5), ("SIGINT", 8)])
def test_killed_process(tmp_path, blow, rounds):
    """SIGKILL leaves the last regular checkpoint, Ctrl-C a checkpoint of the interrupted round."""
    path, model = tmp_path / "fit.arc", tmp_path / "model.arb"
    struck = run(path, model, blow)
    assert struck.returncode != 0
    assert ("KeyboardInterrupt" in struck.stderr) == (blow == "SIGINT")
    assert not model.exists()
    assert len(stored_state(path).arrays["weights"]) == rounds
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.normal(size=300)
    estimator = GradientBoostingRegressor(n_estimators=20, subsample=0.5, rate_drop=0.2)
    resumed = model_file.to_bytes(estimator.fit(X, y, checkpoint=path).model_)
    assert model_file.to_bytes(estimator.fit(X, y).model_) == resumed
