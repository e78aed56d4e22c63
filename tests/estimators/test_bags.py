"""Bags, fits on rows of one binned table, and parallel tasks."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context, get_config

from arboost import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    Dataset,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from arboost.estimators import member_fits
from arboost.estimators.bagging import Bags
from arboost.models.files.model_file import to_bytes
from arboost.trees.samples import RowDraws


def bags(**changes):
    usual = {
        "seed": 0,
        "n_rows": 1000,
        "n_draws": 1000,
        "repeats": True,
        "weight": None,
        "n_features": 20,
        "n_drawn_features": 20,
        "repeats_features": False,
    }
    values = usual | changes
    names = ("seed", "n_rows", "n_draws", "repeats", "weight")
    rows = RowDraws(**{name: values.pop(name) for name in names})
    return Bags(rows=rows, **values)


# ---- bags ----


@pytest.mark.parametrize("n_rows", [1000, 20_000])
def test_rows_that_are_never_drawn(n_rows):
    """(1 - 1/n)^n tends to 1/e = 36.8 %; five standard errors of the mean share around it."""
    shares = [
        1 - len(bags(n_rows=n_rows, n_draws=n_rows).rows.drawn(number).rows) / n_rows
        for number in range(200)
    ]
    # The variance of the number of empty cells in the occupancy problem.
    error = np.sqrt((np.exp(-1) - 2 * np.exp(-2)) / n_rows / 200)
    assert abs(np.mean(shares) - np.exp(-1)) < 5 * error + 1 / n_rows


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_draws", [1, 300, 1000, 3000])
def test_rows_with_replacement(n_draws, weighted):
    weight = np.arange(1000.0) if weighted else None
    bag = bags(n_draws=n_draws, weight=weight).rows.drawn(3)
    assert (np.diff(bag.rows.astype(int)) > 0).all()
    rows = bag.repeated()
    assert len(rows) == n_draws
    np.testing.assert_array_equal(np.unique(rows), bag.rows)
    if n_draws > 1:
        assert bag.counts is not None
        np.testing.assert_array_equal(np.bincount(rows)[bag.rows], bag.counts)
    if weighted:
        assert 0 not in rows


def test_weights_are_chances():
    weight = np.array([0.0, 1.0, 2.0, 7.0])
    rows = bags(n_rows=4, n_draws=100_000, weight=weight).rows.drawn(0).repeated()
    shares = np.bincount(rows, minlength=4) / 100_000
    np.testing.assert_allclose(shares, weight / 10, atol=5 * np.sqrt(0.25 / 100_000))


@pytest.mark.parametrize("n_draws", [1, 400, 999, 1000])
def test_rows_without_replacement(n_draws):
    bag = bags(n_draws=n_draws, repeats=False).rows.drawn(5)
    assert bag.counts is None
    assert len(bag.rows) == n_draws
    assert (np.diff(bag.rows.astype(int)) > 0).all()
    assert bag.rows.max() < 1000


def test_all_rows_have_the_same_chance():
    chosen = np.zeros(50)
    for number in range(4000):
        chosen[bags(n_rows=50, n_draws=20, repeats=False).rows.drawn(number).rows] += 1
    # Chance 0.4 each: five standard errors.
    np.testing.assert_allclose(chosen / 4000, 0.4, atol=5 * np.sqrt(0.24 / 4000))


@pytest.mark.parametrize("repeats", [False, True])
def test_features(repeats):
    counts = np.zeros(20)
    for number in range(2000):
        features = bags(n_drawn_features=6, repeats_features=repeats).features(number)
        assert len(features) == 6
        assert (np.diff(features) >= (0 if repeats else 1)).all()
        np.add.at(counts, features, 1)
    np.testing.assert_allclose(counts / 2000, 0.3, atol=5 * np.sqrt(0.3 / 2000))


def test_bags_depend_on_seed_and_number_alone():
    one, other = bags(n_drawn_features=5), bags(n_drawn_features=5, seed=1)
    again = bags(n_drawn_features=5)
    list(map(again.rows.drawn, range(7)))
    for made in (
        lambda bags, number: bags.rows.drawn(number).rows,
        lambda bags, number: bags.rows.drawn(number).counts,
        lambda bags, number: bags.features(number),
    ):
        first = made(one, 7)
        np.testing.assert_array_equal(first, made(again, 7))
        assert not np.array_equal(first, made(one, 8))
        assert not np.array_equal(first, made(other, 7))


# ---- fits on rows ----


def table(n_rows=400, n_classes=None, seed=0):
    """Features of ten values each: every bag has all values, so the bins are the same."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 10, (n_rows, 4)).astype(float)
    y = X[:, 0] * X[:, 1] + rng.normal(size=n_rows)
    if n_classes is not None:
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    return X, y


ESTIMATORS = [
    (GradientBoostingRegressor(n_estimators=7), None),
    (GradientBoostingRegressor(), None),
    (GradientBoostingRegressor(n_estimators=30, n_iter_no_change=3), None),
    (GradientBoostingRegressor(n_estimators=5, tree_method="exact"), None),
    (GradientBoostingRegressor(n_estimators=5, tree_method="exact", n_iter_no_change=2), None),
    (GradientBoostingRegressor(n_estimators=5, tree_method="approx"), None),
    (GradientBoostingRegressor(n_estimators=5, boosting="gradient", loss="huber"), None),
    (GradientBoostingClassifier(n_estimators=5), 2),
    (GradientBoostingClassifier(n_estimators=5, class_weight="balanced"), 3),
    (GradientBoostingClassifier(), 3),
    (AdaBoostRegressor(n_estimators=5), None),
    (AdaBoostRegressor(n_estimators=5, resample=True, oob_score=True), None),
    (AdaBoostClassifier(n_estimators=5), 3),
    (DecisionTreeRegressor(), None),
    (DecisionTreeRegressor(criterion="absolute_error", tree_method="exact", max_depth=4), None),
    (DecisionTreeClassifier(ccp_alpha=0.01), 2),
    (DecisionTreeClassifier(criterion="entropy"), 3),
    (DecisionTreeClassifier(criterion="gain_ratio"), 3),
    (AdaBoostClassifier(n_estimators=5, criterion="error"), 2),
    (RandomForestRegressor(n_estimators=3, max_samples=0.5), None),
    (RandomForestClassifier(n_estimators=30, oob_score=True, class_weight="balanced"), 3),
    (ExtraTreesClassifier(n_estimators=3), 3),
]


@pytest.mark.parametrize(("estimator", "n_classes"), ESTIMATORS, ids=repr)
def test_same_model_as_a_fit_to_these_rows(estimator, n_classes):
    X, y = table(n_classes=n_classes)
    bag = bags(n_rows=len(y), n_draws=len(y)).rows.drawn(0)
    data = member_fits.shared_dataset(estimator, X, y)
    one = member_fits.fit_on_rows(estimator, data, bag.rows, bag.counts)
    bytes_of_one = to_bytes(one.model_)
    plain = estimator.fit(X[bag.rows], y[bag.rows], sample_weight=bag.counts)
    assert to_bytes(plain.model_) == bytes_of_one


def test_weights_of_the_dataset_are_multiplied_with_counts():
    X, y = table()
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    estimator = GradientBoostingRegressor(n_estimators=5)
    data = member_fits.shared_dataset(estimator, X, y, weight)
    bag = bags(n_rows=len(y), n_draws=len(y)).rows.drawn(0)
    one = to_bytes(member_fits.fit_on_rows(estimator, data, bag.rows, bag.counts).model_)
    by_hand = bag.counts * weight[bag.rows]
    plain = estimator.fit(X[bag.rows], y[bag.rows], sample_weight=by_hand)
    assert to_bytes(plain.model_) == one
    alone = member_fits.fit_on_rows(estimator, data, bag.rows).model_
    assert to_bytes(alone) != one


def test_arguments_of_fit_are_passed_on():
    X, y = table()
    estimator = GradientBoostingRegressor(n_estimators=5)
    data = member_fits.shared_dataset(estimator, X, y)
    rows = np.arange(300, dtype=np.uint32)
    member_fits.fit_on_rows(estimator, data, rows, X_val=X[300:], y_val=y[300:])
    assert len(estimator.evals_result_["validation"]["squared_error"]) == 5


def test_warm_start_from_bins_is_refused():
    X, y = table()
    old = GradientBoostingRegressor(n_estimators=5).fit(X, y)
    estimator = GradientBoostingRegressor(n_estimators=5)
    data = member_fits.shared_dataset(estimator, X, y)
    with pytest.raises(ValueError, match="init_model must score the values"):
        member_fits.fit_on_rows(estimator, data, np.arange(300, dtype=np.uint32), init_model=old)


def test_estimators_that_cannot_share_bins():
    X, y = table()
    assert member_fits.shared_dataset(object(), X, y) is None
    over = AdaBoostRegressor(GradientBoostingRegressor(n_estimators=2))
    assert member_fits.shared_dataset(over, X, y) is None
    assert (
        member_fits.shared_dataset(GradientBoostingRegressor(), X, np.column_stack([y, y])) is None
    )


def test_target_encoding_is_not_shared():
    """Target encoding of many levels uses the targets of all rows."""
    rng = np.random.default_rng(0)
    keys = [f"key {number}" for number in rng.integers(0, 400, 3000)]
    frame = pd.DataFrame({"key": keys, "x": rng.normal(size=3000)})
    y = rng.normal(size=3000)
    booster = GradientBoostingRegressor(n_estimators=5)
    assert member_fits.shared_dataset(booster, frame, y) is None
    assert isinstance(member_fits.shared_dataset(booster, frame[["x"]], y), Dataset)


# ---- parallel tasks ----


def slow_if_first(number):
    time.sleep(0.05 if number == 0 else 0.0)
    return number, get_config()["working_memory"]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_results_come_in_order(n_threads):
    with config_context(working_memory=123):
        results = list(
            member_fits.ordered_results(slow_if_first, ((i,) for i in range(9)), n_threads)
        )
    assert results == [(i, 123) for i in range(9)]


def test_warning_filters_of_threads_do_not_stay():
    def task(number):
        warnings.simplefilter("ignore")
        return number

    before = warnings.filters[:]
    assert list(member_fits.ordered_results(task, ((i,) for i in range(4)), 2)) == list(range(4))
    assert warnings.filters == before
