"""Random forests: several targets, warm starts, kinds of tables, leaves, quantiles, errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.metrics import r2_score

from arboost import (
    Dataset,
    DecisionTreeClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    load,
)
from arboost.errors import DataWarning
from arboost.estimators import forest_target
from support.forest_cases import LABELS, NAMES, TARGETS, X, Y, brute_force, forest, saved

# Several targets


def test_several_numbers():
    both = np.column_stack([Y, 3.0 * Y + 1.0])
    model = forest("numbers", bootstrap=False, max_features=None, max_depth=4, n_estimators=2)
    alone = model.fit(X, Y).predict(X)
    found = model.fit(X, both).predict(X)
    assert (model.n_outputs_, found.shape) == (2, (300, 2))
    np.testing.assert_allclose(found[:, 0], alone, rtol=1e-7)
    np.testing.assert_allclose(found[:, 1], 3.0 * alone + 1.0, rtol=1e-7, atol=1e-6)


def test_several_numbers_out_of_bag():
    both = np.column_stack([Y, np.sin(Y)])
    model = forest("numbers", n_estimators=20, oob_score=True).fit(X, both)
    expected = brute_force(model, X, 300, 2)
    np.testing.assert_array_equal(model.oob_prediction_, expected)
    assert model.oob_score_ == pytest.approx(r2_score(both, expected))


def test_several_classes(tmp_path):
    both = np.column_stack([NAMES, np.where(LABELS > 0, "yes", "no"), np.full(300, "same")])
    model = forest("three classes", n_estimators=30, oob_score=True).fit(X, both)
    assert [labels.tolist() for labels in model.classes_] == [
        ["high", "low", "middle"],
        ["no", "yes"],
        ["same"],
    ]
    assert model.n_classes_ == [3, 2, 1]
    shares = model.predict_proba(X)
    assert [one.shape for one in shares] == [(300, 3), (300, 2), (300, 1)]
    for labels, share, column in zip(model.classes_, shares, model.predict(X).T, strict=True):
        np.testing.assert_allclose(share.sum(axis=1), 1.0)
        np.testing.assert_array_equal(labels[share.argmax(axis=1)], column)
    assert (model.predict(X) == both).mean() > 0.99
    assert model.oob_decision_function_.shape == (300, 3, 3)
    assert 0.5 < model.oob_score_ < 1.0
    saved(model, tmp_path)
    again = load(tmp_path / "model.arb")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_class_weights_of_several_targets():
    both = np.column_stack([LABELS, LABELS > 0]).astype(int)
    model = forest("three classes", n_estimators=3, bootstrap=False)
    weight = np.where(LABELS == 0, 5.0, 1.0) * np.where(LABELS > 0, 2.0, 1.0)
    by_rows = model.fit(X, both, weight).predict_proba(X)
    model.set_params(class_weight=[{0: 5.0}, {1: 2.0}])
    by_class = model.fit(X, both).predict_proba(X)
    np.testing.assert_array_equal(by_rows[0], by_class[0])
    np.testing.assert_array_equal(by_rows[1], by_class[1])
    for wrong in ({0: 5.0}, [{0: 5.0}]):
        with pytest.raises(ValueError, match="targets"):
            model.set_params(class_weight=wrong).fit(X, both)


@pytest.mark.filterwarnings("ignore:y has one class only")
def test_one_class():
    model = forest("two classes", n_estimators=30, oob_score=True).fit(X, np.full(300, "only"))
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((300, 1)))
    assert set(model.predict(X)) == {"only"}
    assert model.oob_score_ == 1.0


# Warm starts


@pytest.mark.parametrize("kind", TARGETS)
def test_warm_starts_end_where_cold_ones_do(kind, tmp_path):
    y = TARGETS[kind]
    cold = forest(kind, n_estimators=25, oob_score=True, warm_start=True)
    cold.fit(X, y)
    warm = forest(kind, n_estimators=4, warm_start=True).fit(X, y)
    before = warm.predict(X)
    warm.set_params(n_estimators=25, oob_score=True).fit(X, y)
    assert saved(warm, tmp_path) == saved(cold, tmp_path)
    assert warm.oob_score_ == cold.oob_score_
    assert not np.array_equal(warm.predict(X), before)
    samples = zip(warm.estimators_samples_, cold.estimators_samples_, strict=True)
    assert all(np.array_equal(one, other) for one, other in samples)


def test_warm_starts_that_add_nothing():
    model = forest("numbers", warm_start=True).fit(X, Y)
    with pytest.warns(DataWarning, match="n_estimators=12 is the number of trees"):
        model.fit(X, Y)
    assert len(model.estimators_) == 12
    with pytest.raises(ValueError, match="warm_start=True keeps the 12 trees"):
        model.set_params(n_estimators=5).fit(X, Y)
    with pytest.raises(ValueError, match="grown on 300"):
        model.set_params(n_estimators=20, oob_score=True).fit(X[:200], Y[:200])
    with pytest.raises(ValueError, match="holds bins"):
        model.fit(Dataset(X), Y)
    labels = forest("three classes", warm_start=True).fit(X, NAMES)
    with pytest.raises(ValueError, match="labels that the first fit"):
        labels.set_params(n_estimators=20).fit(X, LABELS.astype(str))


@pytest.mark.parametrize("bootstrap", [True, False])
def test_warm_starts_on_other_rows(bootstrap):
    """Each tree keeps the indices of its own training rows through later warm starts."""
    model = forest("numbers", warm_start=True, bootstrap=bootstrap, n_estimators=2).fit(X, Y)
    first = model.estimators_samples_
    weight = np.ones(300)
    weight[:100] = 0.0
    model.set_params(n_estimators=4).fit(X, Y, weight)
    samples = model.estimators_samples_
    for one, again in zip(first, samples, strict=False):
        np.testing.assert_array_equal(one, again)
    assert [len(rows) for rows in samples] == [300, 300, 200, 200]
    assert min(rows.min() for rows in samples[2:]) >= 100
    if bootstrap:
        model.set_params(n_estimators=5, oob_score=True)
        with pytest.raises(ValueError, match=r"200 rows of nonzero weight.*on 300 others"):
            model.fit(X, Y, weight)
        with pytest.raises(ValueError, match=r"200 rows of nonzero weight.*are not known"):
            model.fit(X[100:], Y[100:])


def test_warm_starts_with_another_criterion():
    both = np.column_stack([LABELS > 0, LABELS > 1])
    model = forest("two classes", warm_start=True).fit(X, both)
    model.set_params(n_estimators=20, criterion="entropy")
    with pytest.raises(ValueError, match=r"criterion='entropy' is not allowed.*of 'gini'"):
        model.fit(X, both)
    assert len(model) == 12
    assert len(model.set_params(criterion="gini").fit(X, both)) == 20


# Tables


def test_datasets_and_sparse_tables(tmp_path):
    rare = np.where(np.abs(X) > 0.8, X, 0.0)
    model = forest("three classes")
    dense = saved(model.fit(rare, NAMES), tmp_path)
    assert saved(model.fit(sparse.csr_matrix(rare), NAMES), tmp_path) == dense
    assert saved(model.fit(Dataset(rare, NAMES)), tmp_path) == dense
    assert saved(model.fit(Dataset(rare), NAMES), tmp_path) == dense
    exact = saved(model.set_params(tree_method="exact").fit(rare, NAMES), tmp_path)
    assert exact != dense


def test_missing_values_and_categories():
    rng = np.random.default_rng(0)
    city = rng.choice(["Rome", "Oslo", "Lima", "Cairo", "Quito", "Perth"], 600)
    size = rng.normal(size=600)
    y = np.isin(city, ["Oslo", "Quito", "Lima"]) * 4.0 + np.isnan(np.where(size > 1, np.nan, 0.0))
    size[size > 1] = np.nan
    table = pd.DataFrame({"city": city, "size": size})
    model = RandomForestRegressor(20, max_features=None, oob_score=True).fit(table, y)
    assert model.oob_score_ > 0.999
    # One split divides the cities into two sets, two more separate missing from known sizes.
    tree = RandomForestRegressor(1, bootstrap=False, max_features=None).fit(table, y)
    assert tree.model_.forest.n_nodes == 7


def test_monotone_forests():
    directions = [1, 0, 0, -1, 0, 0]
    for kind in ("numbers", "two classes"):
        model = forest(kind, monotonic_cst=directions, max_depth=4).fit(X, TARGETS[kind])
        assert all(proof.holds for proof in model.verify_monotone())
        assert len(model.verify_monotone()) == 2
    with pytest.raises(ValueError, match="more than two classes"):
        forest("three classes", monotonic_cst=directions).fit(X, NAMES)
    with pytest.raises(ValueError, match="several targets"):
        forest("numbers", monotonic_cst=directions).fit(X, np.column_stack([Y, Y]))


# Leaves and quantiles


@pytest.mark.parametrize("kind", TARGETS)
def test_leaves_of_all_trees(kind):
    model = forest(kind, n_estimators=4).fit(X, TARGETS[kind])
    leaves = model.apply(X)
    assert leaves.shape == (300, 4)
    for tree, column in zip(model, leaves.T, strict=True):
        np.testing.assert_array_equal(tree.apply(X), column)
    paths, first = model.decision_path(X)
    assert paths.shape == (300, first[-1])
    np.testing.assert_array_equal(np.diff(first), [one.model_.forest.n_nodes for one in model])
    for tree in range(4):
        of_tree = paths[:, first[tree] : first[tree + 1]]
        assert (of_tree[np.arange(300), leaves[:, tree]] == 1).all()
        np.testing.assert_array_equal(of_tree.toarray(), model[tree].decision_path(X).toarray())


def test_pruned_forests_out_of_bag():
    """Out-of-bag predictions come from the pruned trees."""
    model = forest("numbers", n_estimators=30, oob_score=True, ccp_alpha=50.0).fit(X, Y)
    np.testing.assert_array_equal(model.oob_prediction_, brute_force(model, X, 300, 1)[:, 0])
    whole = forest("numbers", n_estimators=30, oob_score=True).fit(X, Y)
    assert model.model_.forest.n_nodes < whole.model_.forest.n_nodes / 3
    assert model.oob_score_ != whole.oob_score_


def test_quantiles_are_those_of_the_leaves():
    """Reference: every tree divides a weight of 1 among the training rows of the leaf."""
    model = forest("numbers", quantiles=True, min_samples_leaf=8).fit(X, Y)
    leaves = model.apply(X)
    wanted = [0.1, 0.5, 0.9]
    found = model.predict_quantiles(X[:20], wanted)
    order = np.argsort(Y)
    for row in range(20):
        same = leaves == leaves[row]
        share = (same / same.sum(axis=0)).mean(axis=1)[order]
        reached = np.cumsum(share)
        # Rounding of sums may shift a quantile to a neighbouring value: both are accepted.
        for quantile, value in zip(wanted, found[row], strict=True):
            place = np.flatnonzero(Y[order] == value)[0]
            assert reached[place] >= quantile - 1e-9
            assert place == 0 or reached[place - 1] < quantile + 1e-9
    assert (np.diff(found, axis=1) >= 0).all()
    np.testing.assert_array_equal(model.predict_quantiles(X[:20]), found[:, 1])


def test_quantiles_with_weights():
    """Integer weights are equivalent to repeated rows; rows of weight 0 are absent."""
    weight = np.random.default_rng(3).integers(0, 3, 300)
    rows = np.repeat(np.arange(300), weight)
    settings = {"bootstrap": False, "max_features": None, "min_weight_fraction_leaf": 0.1}
    model = forest("numbers", quantiles=True, n_estimators=2, **settings)
    weighted = model.fit(X, Y, weight).predict_quantiles(X, [0.2, 0.8])
    repeated = model.fit(X[rows], Y[rows]).predict_quantiles(X, [0.2, 0.8])
    np.testing.assert_array_equal(weighted, repeated)


def test_quantiles_that_were_not_asked_for():
    model = forest("numbers").fit(X, Y)
    with pytest.raises(ValueError, match="Fit with quantiles=True"):
        model.predict_quantiles(X)
    model = forest("numbers", quantiles=True)
    with pytest.raises(ValueError, match="with 2 targets"):
        model.fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="holds bins"):
        model.fit(Dataset(X), Y)
    assert not hasattr(model, "model_")
    for wrong in ("a", 1.5, [0.1, np.nan], [[0.5]]):
        with pytest.raises(ValueError, match=r"quantiles=.*numbers from 0 to 1"):
            model.fit(X, Y).predict_quantiles(X, wrong)


@pytest.mark.parametrize("criterion", ["entropy", "log_loss"])
def test_other_criteria_of_classes(criterion):
    model = forest("two classes", n_estimators=20, criterion=criterion, oob_score=True)
    y = TARGETS["two classes"]
    model.fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_allclose(
        model.oob_decision_function_, brute_force(model, X, 300, 2), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("criterion", ["absolute_error", "poisson"])
def test_other_criteria_of_numbers(criterion):
    model = forest("numbers", n_estimators=20, criterion=criterion, oob_score=True)
    y = np.abs(Y)
    model.fit(X, y)
    np.testing.assert_array_equal(model.oob_prediction_, brute_force(model, X, 300, 1)[:, 0])
    assert model.score(X, y) > 0.8


# Limits and errors


def test_limits():
    weights = np.random.default_rng(1).random(300)
    model = forest("numbers", min_samples_leaf=0.1, bootstrap=False).fit(X, Y)
    leaf = model.model_.forest
    assert leaf.cover[~leaf.is_split].min() >= 30
    model = forest("numbers", min_weight_fraction_leaf=0.2, bootstrap=False).fit(X, Y, weights)
    leaf = model.model_.forest
    assert leaf.cover[~leaf.is_split].min() >= 0.2 * weights.sum() * (1 - 1e-6)
    model = forest("numbers", max_leaf_nodes=5).fit(X, Y)
    sizes = {np.count_nonzero(~tree.model_.forest.is_split) for tree in model.estimators_}
    assert sizes == {5}


REFUSED = {
    "oob_score=True is not allowed with bootstrap=False": {"oob_score": True, "bootstrap": False},
    "max_samples=5 is not allowed with bootstrap=False": {"max_samples": 5, "bootstrap": False},
    "max_features='all'": {"max_features": "all"},
    "max_features=0": {"max_features": 0},
    "max_features=1.5": {"max_features": 1.5},
    "min_samples_leaf=1.0": {"min_samples_leaf": 1.0},
    "min_samples_leaf=0 ": {"min_samples_leaf": 0},
    "max_samples=0": {"max_samples": 0},
    "class_weight='even'": {"class_weight": "even"},
    r"class_weight=\[\]": {"class_weight": []},
    "criterion='chance'": {"criterion": "chance"},
    "min_weight_fraction_leaf=0.6": {"min_weight_fraction_leaf": 0.6},
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message):
    with pytest.raises(ValueError, match=message):
        RandomForestClassifier(**REFUSED[message]).fit(X, NAMES)


@pytest.mark.parametrize(
    "params", [{"max_features": []}, {"oob_score": "yes"}, {"class_weight": 3}, {"max_samples": ""}]
)
def test_refused_types(params):
    with pytest.raises(TypeError, match=next(iter(params))):
        RandomForestClassifier(**params).fit(X, NAMES)


def test_an_error_in_a_thread_reaches_the_user(monkeypatch):
    def broken(tasks):
        def reweigh(rows, counts):
            raise RuntimeError("broken")

        return reweigh

    monkeypatch.setattr(forest_target, "balanced_by_sample", broken)
    for n_jobs in (1, 3):
        model = RandomForestClassifier(8, class_weight="balanced_subsample", n_jobs=n_jobs)
        with pytest.raises(RuntimeError, match="broken"):
            model.fit(X, NAMES)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_interrupted_fits_change_nothing(n_jobs, monkeypatch):
    model = forest("numbers", n_estimators=50, n_jobs=n_jobs).fit(X, Y)
    before = dict(vars(model))

    def interrupt(bar, done, results=None):
        raise KeyboardInterrupt

    monkeypatch.setattr("arboost.progress.Bar.show", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert vars(model) == before


def test_trees_by_number():
    model = forest("numbers").fit(X, Y)
    last, none, several = model[-1], model[3:3], model[9:]
    np.testing.assert_array_equal(last.predict(X), model.estimators_[11].predict(X))
    assert (len(several), none) == (3, [])
    np.testing.assert_array_equal(several[0].predict(X), model[9].predict(X))
    with pytest.raises(IndexError):
        model[12]


def test_one_row_has_no_r2():
    model = forest("numbers", oob_score=True, n_estimators=3)
    with pytest.warns(DataWarning, match="1 of 2 rows were drawn for every tree") as caught:
        model.fit(X[:2], Y[:2])
    assert [warning.filename for warning in caught] == [__file__]
    assert np.isnan(model.oob_score_)


def test_trees_are_estimators():
    X, y = load_iris(return_X_y=True)
    model = RandomForestClassifier(3, max_depth=3, class_weight="balanced_subsample").fit(X, y)
    (tree, *_) = model.estimators_
    assert isinstance(tree, DecisionTreeClassifier)
    assert (tree.max_depth, tree.max_features, tree.n_features_in_) == (3, "sqrt", 4)
    np.testing.assert_array_equal(tree.classes_, model.classes_)
    assert not hasattr(RandomForestClassifier(), "estimators_")
    assert (len(model), len(list(model))) == (3, 3)
    np.testing.assert_array_equal(model[-1].predict(X), model.estimators_[2].predict(X))
    with pytest.raises(IndexError):
        model[3]
