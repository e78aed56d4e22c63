"""Categories of many levels in trees and forests, with one and several targets."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import (
    AdaBoostRegressor,
    Dataset,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

pd = pytest.importorskip("pandas")


def frequent_levels(n=6000):
    """Return a table of 150 levels whose effects depend on the sign of a number, and a target."""
    rng = np.random.default_rng(1)
    code, x = rng.integers(0, 150, n), rng.normal(size=n)
    table = pd.DataFrame({"key": [f"k{c}" for c in code], "x": x})
    table.loc[::40, "key"] = None
    effects = rng.normal(size=(2, 150))
    return table, effects[(x > 0).astype(int), code] + 0.1 * rng.normal(size=n)


ESTIMATORS = {
    "tree": lambda **kwargs: DecisionTreeRegressor(max_depth=10, **kwargs),
    "random splits": lambda **kwargs: DecisionTreeRegressor(
        max_depth=14, splitter="random", **kwargs
    ),
    "forest": lambda **kwargs: RandomForestRegressor(10, **kwargs),
    "extra trees": lambda **kwargs: ExtraTreesRegressor(10, **kwargs),
    "AdaBoost": lambda **kwargs: AdaBoostRegressor(n_estimators=5, max_depth=10, **kwargs),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_encodings(name):
    """The mean is the default; groups are chosen by the parameter, or come with a Dataset."""
    table, y = frequent_levels()
    scores = {}
    for encoding in ("auto", "mean", "groups"):
        model = ESTIMATORS[name](category_encoding=encoding, random_state=0)
        model.fit(table[:4000], y[:4000])
        levels = model.model_.schema.levels_of(0)
        assert (levels.groups is not None) == (encoding == "groups")
        scores[encoding] = model.score(table[4000:], y[4000:])
    assert scores["auto"] == scores["mean"]
    assert scores["groups"] > 0.1
    if name == "tree":
        assert scores["groups"] > scores["mean"] + 0.1  # levels of both signs change sides
    data = Dataset(table[:4000], y[:4000])
    model = ESTIMATORS[name](random_state=0).fit(data)
    assert model.model_.schema.levels_of(0).groups is not None
    assert model.score(table[4000:], y[4000:]) == pytest.approx(scores["groups"], abs=0.1)
    with pytest.raises(ValueError, match="category_encoding='mean' is not allowed"):
        ESTIMATORS[name](category_encoding="mean").fit(data)


def test_medians_need_numbers():
    table, y = frequent_levels(600)
    model = DecisionTreeRegressor(criterion="absolute_error", max_depth=3)
    model.fit(table, y)
    with pytest.raises(ValueError, match='category_encoding="mean" makes numbers'):
        model.set_params(category_encoding="groups").fit(table, y)


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_categories_of_many_levels_with_several_targets(kind):
    """Targets of opposite sign, of other scale and of several classes have one encoding."""
    rng = np.random.default_rng(0)
    code = rng.integers(0, 300, 6000)
    effect = rng.normal(size=300)[code]
    table = pd.DataFrame({"key": [f"k{c}" for c in code], "x": rng.normal(size=6000)})
    train, test = slice(4000), slice(4000, None)
    if kind == "regression":
        y = np.column_stack([effect, -1000.0 * effect]) + rng.normal(size=(6000, 2))
        model = RandomForestRegressor(20, max_depth=8).fit(table[train], y[train])
        assert model.score(table[test], y[test]) > 0.6
    else:
        y = np.column_stack([np.digitize(effect, [-1, 0, 1]), effect < 0])
        model = RandomForestClassifier(20, max_depth=8).fit(table[train], y[train])
        assert (model.predict(table[test]) == y[test]).mean(axis=0).min() > 0.7
    more = model.set_params(warm_start=True, n_estimators=25).fit(table[train], y[train])
    assert len(more.estimators_) == 25
    with pytest.warns(UserWarning, match="key"):
        model.predict(table[test].assign(key="new"))


def test_constant_targets_of_a_category_of_many_levels():
    table = pd.DataFrame({"key": [f"k{i // 2}" for i in range(600)]})
    with pytest.warns(UserWarning, match="constant"):
        model = RandomForestRegressor(2).fit(table, np.zeros((600, 2)))
    assert not model.predict(table).any()
