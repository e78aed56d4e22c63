"""Out-of-bag curve of a forest: errors by brute force, its end, its parts, warm starts, weights."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, root_mean_squared_error

import arboost
from arboost import RandomForestClassifier, RandomForestRegressor
from arboost.training.out_of_bag import OutOfBagCurve, OutOfBagSums, OutOfBagTruth

RNG = np.random.default_rng(0)
N_ROWS = 400
X = RNG.normal(size=(N_ROWS, 4))
VALUES = X[:, 0] * X[:, 1] + RNG.normal(size=N_ROWS)
CLASSES = np.digitize(VALUES, [-1.0, 1.0])
WEIGHTS = RNG.integers(1, 5, N_ROWS) / 3


def curve_of(forest):
    return forest.model_.provenance["history"]["out_of_bag"]


def by_brute_force(forest, y, n_trees, weight=None):
    """The error of the first trees, on the rows that one of them at least has not drawn."""
    total, counts = 0.0, np.zeros(N_ROWS)
    for tree, drawn in zip(forest.estimators_[:n_trees], forest.estimators_samples_, strict=False):
        out = np.ones(N_ROWS)
        out[drawn] = 0.0
        is_class = isinstance(forest, RandomForestClassifier)
        values = tree.predict_proba(X) if is_class else tree.predict(X)[:, np.newaxis]
        total = total + out[:, np.newaxis] * values
        counts += out
    known = counts > 0
    means = total[known] / counts[known, np.newaxis]
    weight = None if weight is None else weight[known]
    if isinstance(forest, RandomForestClassifier):
        right = forest.classes_[means.argmax(axis=1)] == y[known]
        return 1 - np.average(right, weights=weight)
    return root_mean_squared_error(y[known], means[:, 0], sample_weight=weight)


@pytest.mark.parametrize("weight", [None, WEIGHTS])
@pytest.mark.parametrize("task", ["two classes", "three classes", "values"])
def test_errors_by_brute_force(task, weight):
    y = {"two classes": VALUES > 0, "three classes": CLASSES, "values": VALUES}[task]
    kind = RandomForestRegressor if task == "values" else RandomForestClassifier
    forest = kind(30, oob_score=True, random_state=1, max_depth=5, verbose=0)
    forest.fit(X, y, sample_weight=weight)
    curve = curve_of(forest)
    assert curve["trees"] == list(range(1, 31))
    assert curve["metric"] == ("rmse" if task == "values" else "error")
    (errors,) = curve["values"]
    for n_trees in (1, 2, 7, 30):
        expected = by_brute_force(forest, y, n_trees, weight)
        assert errors[n_trees - 1] == pytest.approx(expected, rel=1e-5)


def test_the_end_of_the_curve_is_the_score():
    forest = RandomForestClassifier(120, oob_score=True, random_state=0).fit(X, CLASSES)
    curve = curve_of(forest)
    assert len(curve["trees"]) == 50
    assert (curve["trees"][0], curve["trees"][-1]) == (1, 120)
    assert curve["values"][0][-1] == pytest.approx(1 - forest.oob_score_, rel=1e-5)


def test_each_target_has_its_errors():
    both = np.column_stack([VALUES > 0, CLASSES])
    forest = RandomForestClassifier(60, oob_score=True, random_state=0, verbose=0).fit(X, both)
    votes = forest.oob_decision_function_
    ends = [values[-1] for values in curve_of(forest)["values"]]
    for target, end in enumerate(ends):
        found = votes[:, :, target].argmax(axis=1)
        assert end == pytest.approx(1 - accuracy_score(both[:, target], found), rel=1e-5)
    forest = RandomForestRegressor(60, oob_score=True, random_state=0, verbose=0)
    forest.fit(X, np.column_stack([VALUES, 3 * VALUES]))
    first, second = curve_of(forest)["values"]
    np.testing.assert_allclose(second, 3 * np.array(first), rtol=1e-5)


@pytest.mark.filterwarnings("ignore:.*rows were drawn for every tree")
def test_warm_start_has_the_curve_of_all_trees():
    whole = RandomForestRegressor(40, oob_score=True, random_state=0, verbose=0).fit(X, VALUES)
    grown = RandomForestRegressor(25, random_state=0, warm_start=True, verbose=0).fit(X, VALUES)
    assert "history" not in grown.model_.provenance
    grown.set_params(n_estimators=40, oob_score=True).fit(X, VALUES)
    assert curve_of(grown) == curve_of(whole)


def test_pruned_trees():
    forest = RandomForestRegressor(60, oob_score=True, random_state=0, ccp_alpha=0.01, verbose=0)
    forest.fit(X, VALUES)
    expected = root_mean_squared_error(VALUES, forest.oob_prediction_)
    assert curve_of(forest)["values"][0][-1] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("scale", [1e-300, 1e-40, 1e40, 1e150])
@pytest.mark.filterwarnings("ignore::arboost.DataWarning")
def test_values_of_any_size(scale):
    forest = RandomForestRegressor(60, oob_score=True, random_state=0, verbose=0)
    forest.fit(X, VALUES * scale)
    errors = (VALUES * scale - forest.oob_prediction_) / scale
    expected = scale * np.sqrt(np.mean(errors**2))
    assert curve_of(forest)["values"][0][-1] == pytest.approx(expected, rel=1e-4)


def test_constant_values_have_no_error():
    forest = RandomForestRegressor(5, oob_score=True, verbose=0)
    with pytest.warns(arboost.DataWarning, match="drawn for every tree"):
        forest.fit(X, np.full(N_ROWS, 7.0))
    assert set(curve_of(forest)["values"][0]) == {0.0}


@pytest.mark.parametrize("weight", [None, WEIGHTS])
def test_parts_of_the_rows_add_up(weight):
    """Workers that each measure some of the rows have the sums of one that measures all."""
    drawn = [np.flatnonzero(RNG.random(N_ROWS) < 0.4).astype(np.uint32) for _ in range(4)]
    values = [RNG.normal(size=(len(rows), 1)) for rows in drawn]

    def measured(part):
        curve = OutOfBagCurve([OutOfBagTruth(VALUES, 1, None)], weight, [1, 3, 4])
        sums = OutOfBagSums(N_ROWS, 1, curve)
        curve.part = slice(*part)
        for number, (rows, of) in enumerate(zip(drawn, values, strict=True)):
            own = (rows >= part[0]) & (rows < part[1])
            sums.add(number, rows[own], of[own])
        return curve

    whole = measured((0, N_ROWS))
    first, *others = [measured(part) for part in ((0, 0), (0, 130), (130, 131), (131, N_ROWS))]
    for other in others:
        of_other = iter(other._sums.values())
        first.add_up(0, lambda total, of_other=of_other: np.add(total, next(of_other), out=total))
    assert first.points() == whole.points()
    assert whole.points()[0] == [1, 3, 4]


def test_a_curve_without_rows_has_no_points():
    curve = OutOfBagCurve([OutOfBagTruth(VALUES, 1, None)], None, [1])
    OutOfBagSums(N_ROWS, 1, curve).add(0, np.empty(0, np.uint32), np.empty((0, 1)))
    assert curve.points() == ([], [[]])
