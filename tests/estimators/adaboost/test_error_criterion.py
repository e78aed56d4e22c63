"""AdaBoost on trees that minimise the weighted error of each round."""

import numpy as np
import pandas as pd
import pytest

import arboost
from arboost import AdaBoostClassifier, AdaBoostRegressor, DecisionTreeClassifier

rng = np.random.default_rng(12)
N = 150
X = np.round(rng.normal(size=(N, 3)), 1)
X[rng.random(X.shape) < 0.1] = np.nan
LEVEL = rng.integers(0, 5, N)
SCORE = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2 + (LEVEL > 2) + rng.normal(size=N)
TWO = (np.median(SCORE) < SCORE).astype(int)
THREE = np.digitize(SCORE, np.quantile(SCORE, [0.3, 0.7]))
WEIGHT = rng.uniform(0.2, 3.0, N)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(level=pd.Categorical(LEVEL))


def sides(columns, levels):
    """Yield the left rows of every stump, missing values on either side; and all rows."""
    yield np.ones(N, bool)
    for column in columns.T:
        missing = np.isnan(column)
        for value in np.unique(column[~missing]):
            yield column <= value
            yield (column <= value) | missing
    for subset in range(1, 2 ** len(np.unique(levels)) - 1):
        yield (subset >> levels) & 1 == 1


def least_error(y, distribution, splits):
    """Return the smallest weighted error of stumps whose leaves predict any class."""
    of_class = distribution * (y == np.unique(y)[:, np.newaxis])
    total = of_class.sum(axis=1)
    return 1 - max(
        (left := of_class[:, split].sum(axis=1)).max() + (total - left).max() for split in splits
    )


def distributions(model, table, y, weight):
    """Yield the distribution of the rows of each round."""
    codes, shares = np.searchsorted(model.classes_, y), weight / weight.sum()
    yield shares
    for raw in model.staged_decision_function(table):
        margin = (2 * codes - 1) * raw if raw.ndim == 1 else raw[np.arange(len(y)), codes]
        found = shares * np.exp(-margin)
        yield found / found.sum()


@pytest.mark.parametrize("tree_method", ["hist", "exact"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("categories", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_stump_has_the_smallest_error(weighted, categories, n_classes, tree_method):
    y, weight = (TWO, THREE)[n_classes - 2], WEIGHT if weighted else np.ones(N)
    categories = categories and n_classes == 2  # where sets of levels are searched by their means
    table = FRAME if categories else FRAME.drop(columns="level")
    model = AdaBoostClassifier(criterion="error", tree_method=tree_method, verbose=0)
    model.fit(table, y, weight)
    assert model.n_iter_ == 50
    splits = list(sides(X, LEVEL if categories else np.zeros(N, int)))
    least = [least_error(y, one, splits) for one in distributions(model, table, y, weight)]
    np.testing.assert_allclose(model.estimator_errors_, least[:-1], rtol=1e-5)


def test_gini_leaves_rounds_above_the_smallest_error():
    model = AdaBoostClassifier(verbose=0).fit(X, TWO)
    splits = list(sides(X, np.zeros(N, int)))
    least = [least_error(TWO, one, splits) for one in distributions(model, X, TWO, np.ones(N))]
    assert np.mean(model.estimator_errors_ > np.array(least[:-1]) * (1 + 1e-5)) > 0.3


def test_a_decision_tree_as_the_estimator():
    stump = DecisionTreeClassifier(criterion="error", max_depth=1, verbose=0)
    model = AdaBoostClassifier(stump, n_estimators=20, verbose=0).fit(X, TWO)
    own = AdaBoostClassifier(criterion="error", n_estimators=20, verbose=0).fit(X, TWO)
    np.testing.assert_allclose(model.estimator_errors_, own.estimator_errors_, rtol=1e-5)


def test_deep_trees_grow_over_plateaus():
    """The classes of an exclusive or: no first split lowers the error."""
    table = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 20)[:77]  # of which one class is larger
    y = table[:, 0] ^ table[:, 1]
    model = AdaBoostClassifier(criterion="error", max_depth=2, n_estimators=1).fit(table, y)
    assert model.score(table, y) == 1.0


@pytest.mark.parametrize("algorithm", ["discrete", "real", "gentle"])
@pytest.mark.parametrize("limits", [{}, {"max_depth": 4}, {"max_depth": None, "max_leaves": 6}])
def test_bytes_do_not_depend_on_threads_and_files(algorithm, limits, tmp_path):
    pytest.importorskip("pyarrow")
    model = AdaBoostClassifier(
        criterion="error", algorithm=algorithm, n_estimators=5, verbose=0, **limits
    )
    table = FRAME.assign(level=[f"level {one}" for one in LEVEL], y=THREE)
    table.to_parquet(tmp_path / "rows.parquet")
    found = [
        model.set_params(n_jobs=n_jobs).fit(given, "y").model_
        for n_jobs in (1, 2, 4)
        for given in (table, str(tmp_path / "rows.parquet"))
    ]
    for number, one in enumerate(found):
        one.save(tmp_path / f"{number}.arb")
    expected = (tmp_path / "0.arb").read_bytes()
    assert all((tmp_path / f"{i}.arb").read_bytes() == expected for i in range(len(found)))


def test_the_criterion_is_in_the_file(tmp_path):
    model = AdaBoostClassifier(criterion="error", n_estimators=3, verbose=0).fit(X, TWO)
    model.save(tmp_path / "error.arb")
    assert AdaBoostClassifier.load(tmp_path / "error.arb").criterion == "error"
    usual = AdaBoostClassifier(n_estimators=3, verbose=0).fit(X, TWO)
    assert "criterion" not in usual.model_.params
    usual.save(tmp_path / "gini.arb")
    assert AdaBoostClassifier.load(tmp_path / "gini.arb").criterion == "gini"
    assert arboost.load(tmp_path / "error.arb").params["criterion"] == "error"


def test_refusals():
    with pytest.raises(ValueError, match=r'criterion must be "gini" or "error"'):
        AdaBoostClassifier(criterion="entropy").fit(X, TWO)
    with pytest.raises(ValueError, match="criterion='error' is not allowed with an estimator"):
        AdaBoostClassifier(DecisionTreeClassifier(), criterion="error").fit(X, TWO)
    with pytest.raises(TypeError, match="criterion"):
        AdaBoostRegressor(criterion="error")
