"""verify_monotone: proofs and counter-examples, against a search through all rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arboost import GradientBoostingClassifier, GradientBoostingRegressor
from arboost.models.predictor import Predictor
from arboost.trees.forest import Forest
from support.level_sets import schema_of

THRESHOLDS = (-np.inf, 0.0, 1.0, np.inf)
POINTS = (-np.inf, 0.0, 0.5, 2.0, np.inf)  # with NaN at least one value for each cell

LEVELS = (0.0, 63.0, 64.0, 254.0)  # of a category: ends of words of a level set
OTHER = 7.0  # a level in no set


def forest(trees, width=1, outputs=None):
    """Return the forest of nested tuples (feature, threshold, default_left, left, right).

    A leaf is a number, or a list of `width` numbers. A set of levels may replace a threshold.
    """
    arrays = {name: [] for name in ("feature", "threshold", "left", "default_left", "value")}
    arrays["level_set"], sets = [], []
    start = [0]
    for tree in trees:
        level, nodes = [tree], []
        while level:  # breadth first: children are neighbours and come after their parent
            nodes += level
            level = [child for node in level if isinstance(node, tuple) for child in node[3:]]
        next_child = 1
        for node in nodes:
            split = isinstance(node, tuple)
            arrays["feature"].append(node[0] if split else 0)
            by_set = split and isinstance(node[1], frozenset)
            arrays["threshold"].append(node[1] if split and not by_set else 0.0)
            arrays["level_set"].append(len(sets) if by_set else -1)
            if by_set:
                bits = [sum(1 << c % 64 for c in node[1] if c // 64 == w) for w in range(4)]
                sets.append(np.array(bits, np.uint64))
            arrays["default_left"].append(split and node[2])
            arrays["left"].append(next_child if split else 0)
            arrays["value"].append(np.zeros(width) if split else np.broadcast_to(node, width))
            next_child += 2 * split
        start.append(start[-1] + len(nodes))
    n_nodes = start[-1]
    return Forest(
        tree_start=np.array(start),
        gain=np.zeros(n_nodes),
        cover=np.zeros(n_nodes),
        output=np.zeros(len(trees)) if outputs is None else np.array(outputs),
        level_sets=np.array(sets, np.uint64).reshape(-1, 4),
        **{name: np.array(values) for name, values in arrays.items()},
    )


def model(trees, n_features, n_outputs=1, *, width=1, outputs=None, category=None, **changes):
    fields = {
        "forest": forest(trees, width, outputs),
        "schema": schema_of([255 if f == category else 0 for f in range(n_features)]),
        "base_score": np.zeros(n_outputs),
        "link": "identity",
        "classes": None,
        "trees_per_round": 1,
        "params": {},
        "kind": "regressor",
    }
    subject = Predictor(**(fields | changes))
    subject.validate()
    return subject


def largest_fall(subject, feature, direction, output=0):
    """Return the largest fall of a raw score as the feature grows, over all cells of a row."""
    splits = np.flatnonzero(subject.schema.categorical)
    others = [
        (*((*LEVELS, OTHER) if f in splits else POINTS), np.nan)
        for f in range(subject.schema.n_features)
        if f != feature
    ]
    rows = [
        [*rest[:feature], value, *rest[feature:]]
        for rest in itertools.product(*others)
        for value in POINTS
    ]
    scores = direction * subject.predict_raw(np.array(rows), n_jobs=1)[:, output]
    scores = scores.reshape(-1, len(POINTS))
    return float((scores[:, :-1] - scores[:, 1:]).max())


def assert_right(subject, proof, feature):
    fall = largest_fall(subject, feature, proof.direction, proof.output)
    assert proof.holds == (fall <= 0)
    assert (proof.counter_example is None) == proof.holds
    if proof.counter_example is None:
        return
    rows, scores = proof.counter_example.rows, proof.counter_example.scores
    assert rows[0, feature] < rows[1, feature]
    np.testing.assert_array_equal(
        np.delete(rows[0], feature), np.delete(rows[1], feature), strict=True
    )
    np.testing.assert_array_equal(subject.predict_raw(rows)[:, proof.output], scores)
    assert proof.direction * (scores[1] - scores[0]) < 0


def trees_of(n_features, leaf, category=None):
    numbers = [f for f in range(n_features) if f != category]
    split = st.tuples(st.sampled_from(numbers), st.sampled_from(THRESHOLDS), st.booleans())
    if category is not None:
        levels = st.frozensets(st.sampled_from([int(level) for level in LEVELS]))
        split |= st.tuples(st.just(category), levels, st.booleans())
    return st.recursive(
        leaf,
        lambda child: st.tuples(split, child, child).map(lambda t: (*t[0], t[1], t[2])),
        max_leaves=6,
    )


# Small integers add without rounding, so the search through all rows is exact, too.
LEAF = st.integers(-3, 3).map(float)


@settings(max_examples=300)
@given(
    trees=st.lists(trees_of(3, LEAF), min_size=1, max_size=5), direction=st.sampled_from([-1, 1])
)
def test_against_all_rows(trees, direction):
    subject = model(trees, 3)
    for proof in subject.verify_monotone([direction] * 3):
        assert_right(subject, proof, proof.feature)


@settings(max_examples=300)
@given(
    trees=st.lists(trees_of(3, LEAF, category=1), min_size=1, max_size=5),
    direction=st.sampled_from([-1, 1]),
)
def test_against_all_rows_with_a_category(trees, direction):
    subject = model(trees, 3, category=1)
    for proof in subject.verify_monotone({0: direction, 2: direction}):
        assert_right(subject, proof, proof.feature)


@settings(max_examples=100)
@given(trees=st.lists(trees_of(2, LEAF), min_size=2, max_size=6))
def test_against_all_rows_of_a_rising_sum(trees):
    """A steep stair next to the trees makes most sums monotone, though single trees are not."""
    stair = (0, 0.0, True, 0.0, (0, 1.0, True, 6.0, 12.0))
    subject = model([stair, *trees], 2)
    (proof,) = subject.verify_monotone({0: 1})
    assert_right(subject, proof, 0)


@settings(max_examples=100)
@given(data=st.data())
def test_outputs_apart(data):
    trees = data.draw(st.lists(trees_of(2, LEAF), min_size=4, max_size=4))
    subject = model(trees, 2, 2, outputs=[0, 1, 0, 1], trees_per_round=2)
    proofs = subject.verify_monotone({1: -1})
    assert [proof.output for proof in proofs] == [0, 1]
    for proof in proofs:
        assert_right(subject, proof, 1)


@settings(max_examples=100)
@given(data=st.data())
def test_vector_leaves(data):
    leaf = st.lists(LEAF, min_size=2, max_size=2).map(np.array)
    trees = data.draw(st.lists(trees_of(2, leaf), min_size=1, max_size=3))
    subject = model(trees, 2, 2, width=2)
    for proof in subject.verify_monotone({0: 1}):
        assert_right(subject, proof, 0)


def test_missing_values_of_other_features_are_a_cell():
    """The fall occurs only where feature 1 is missing."""
    falls = (0, 0.0, True, 1.0, 0.0)
    rises = (0, 0.0, True, 0.0, 1.0)
    subject = model([(1, np.inf, False, rises, falls)], 2)
    (proof,) = subject.verify_monotone({0: 1})
    assert not proof.holds
    assert np.isnan(proof.counter_example.rows[:, 1]).all()


def test_missing_values_of_the_feature_itself_do_not_count():
    subject = model([(0, np.inf, False, 1.0, -5.0), (0, 0.0, False, 0.0, 1.0)], 1)
    (proof,) = subject.verify_monotone({0: 1})
    assert proof.holds


def test_a_fall_that_rounding_hides_is_no_counter_example():
    trees = [(0, 0.0, True, 1e-30, 0.0)]
    assert model(trees, 1, base_score=np.ones(1)).verify_monotone({0: 1})[0].holds
    assert not model(trees, 1).verify_monotone({0: 1})[0].holds


def test_sums_are_exact():
    """0.1 + 0.2 - 0.3 is not 0 in floating point; the exact sum of these three is above 0."""
    trees = [(0, 0.0, True, 0.0, value) for value in (0.1, 0.2, -0.3)]
    assert model(trees, 1).verify_monotone({0: 1})[0].holds


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nansum(X, axis=1) + np.sin(3 * np.nan_to_num(X[:, 0])) + rng.normal(size=2000)
    return X, y


def test_unconstrained_model(data):
    fitted = GradientBoostingRegressor(n_estimators=50).fit(*data)
    (proof,) = fitted.verify_monotone({0: 1})
    assert not proof.holds
    rows = proof.counter_example.rows
    assert np.diff(fitted.predict(rows))[0] < 0


@pytest.mark.parametrize("features", [None, {}, [0] * 6])
def test_nothing_to_prove(data, features):
    fitted = GradientBoostingRegressor(n_estimators=2).fit(*data)
    with pytest.raises(ValueError, match=r"nothing to prove.*features=\{0: 1\}"):
        fitted.verify_monotone(features)


@pytest.mark.parametrize(
    ("features", "error", "words"),
    [
        ("age", TypeError, "features='age'"),
        ({0: 2}, ValueError, "features must be a dict"),
        ({"age": 1}, ValueError, "features names features that X does not have: 'age'"),
    ],
)
def test_refused(data, features, error, words):
    fitted = GradientBoostingRegressor(n_estimators=2).fit(*data)
    with pytest.raises(error, match=words):
        fitted.verify_monotone(features)


def test_classifier_has_a_proof_for_each_class(data):
    X, y = data
    fitted = GradientBoostingClassifier(n_estimators=3).fit(X, np.digitize(y, [-1, 1]))
    assert [proof.output for proof in fitted.verify_monotone({1: 1})] == [0, 1, 2]


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "huber", "quantile", "poisson"]
)
@pytest.mark.parametrize("boosting", ["newton", "gradient"])
def test_refitted_leaves_keep_constraints(loss, boosting):
    """Leaf values that minimise the loss must be clipped to the order of their neighbours."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.exp(np.nan_to_num(X[:, 0]) - np.sin(3 * np.nan_to_num(X[:, 1])) + rng.normal(size=400))
    settings = {"n_estimators": 100, "loss": loss, "boosting": boosting, "max_depth": 4}
    free = GradientBoostingRegressor(**settings)
    bound = GradientBoostingRegressor(**settings, monotone_constraints={0: 1, 1: -1})
    assert not all(proof.holds for proof in free.fit(X, y).verify_monotone({0: 1, 1: -1}))
    assert all(proof.holds for proof in bound.fit(X, y).verify_monotone())
    assert bound.score(X, y) > 0.1  # the constrained model still learns


def median_of(trees, n_features, weights=None, **changes):
    weights = np.ones(len(trees)) if weights is None else np.array(weights)
    return model(trees, n_features, combine="median", tree_weights=weights, **changes)


@settings(max_examples=300)
@given(
    trees=st.lists(trees_of(3, LEAF, category=1), min_size=1, max_size=5),
    direction=st.sampled_from([-1, 1]),
    data=st.data(),
)
def test_medians_against_all_rows(trees, direction, data):
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(trees), max_size=len(trees)))
    subject = median_of(trees, 3, [1 + weights[0], *weights[1:]], category=1)
    for feature in (0, 2):
        try:
            (proof,) = subject.verify_monotone({feature: direction})
        except ValueError:  # undecided: then some tree is not monotone
            assert not all(
                median_of([tree], 3, category=1).verify_monotone({feature: direction})[0].holds
                for tree, weight in zip(trees, [1, *weights[1:]], strict=True)
                if weight
            )
        else:
            assert_right(subject, proof, feature)


RISES, FALLS = (0, 0.0, True, 0.0, 1.0), (0, 0.0, True, 1.0, 0.0)


def test_median_of_monotone_trees():
    """The last tree has weight 0, so its fall does not count."""
    subject = median_of([RISES, RISES, FALLS], 1, [1.0, 0.5, 0.0])
    assert subject.verify_monotone({0: 1})[0].holds
    assert not subject.verify_monotone({0: -1})[0].holds


def test_median_that_falls_for_one_value_of_another_feature():
    """Feature 1 decides between rising and falling subtrees."""
    mixed = (1, 0.0, False, RISES, (1, 1.0, True, FALLS, RISES))
    subject = median_of([mixed, mixed, RISES], 2)
    (proof,) = subject.verify_monotone({0: 1})
    assert_right(subject, proof, 0)
    assert not proof.holds


def test_undecided_median():
    subject = median_of([RISES, RISES, FALLS], 1)
    with pytest.raises(ValueError, match=r"cannot decide .* 0: .*3 trees, and 1 .*\(number 2 is"):
        subject.verify_monotone({0: 1})


def mean_of(trees, n_features, **changes):
    return model(trees, n_features, combine="mean", **changes)


def test_means_are_monotone_where_sums_are():
    """A tree may fall less than the others rise: then only the mean is monotone."""
    slight = (0, 0.0, True, 0.5, 0.0)
    assert mean_of([RISES, slight], 1).verify_monotone({0: 1})[0].holds
    subject = mean_of([RISES, FALLS, slight], 1)
    (proof,) = subject.verify_monotone({0: 1})
    assert not proof.holds
    assert_right(subject, proof, 0)
    np.testing.assert_allclose(proof.counter_example.scores, [0.5, 1 / 3])
