"""Search spaces: ranges of the declarations, and spaces of users."""

import numpy as np
import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.linear_model import LogisticRegression

import arboost
from arboost.selection.space import declared_space, user_space

ENSEMBLES = [
    getattr(arboost, f"{name}{kind}")
    for name in (
        "AdaBoost",
        "Bagging",
        "DecisionTree",
        "ExtraTrees",
        "GradientBoosting",
        "RandomForest",
    )
    for kind in ("Classifier", "Regressor")
]
MODES = [
    arboost.GradientBoostingClassifier(boosting="gradient"),
    arboost.GradientBoostingClassifier(sampling_method="goss"),
    arboost.GradientBoostingRegressor(rate_drop=0.1),
    arboost.ExtraTreesClassifier(bootstrap=True),
    *(ensemble() for ensemble in ENSEMBLES),
]
FAST = optuna.samplers.RandomSampler  # any sampler draws from the whole range


def sampled(space, seed):
    study = optuna.create_study(sampler=FAST(seed=seed))
    return study.ask(space).params


@pytest.fixture(autouse=True)
def quiet():
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(level)


@pytest.mark.parametrize("estimator", MODES, ids=repr)
def test_sampled_values_are_allowed(estimator):
    space = declared_space(estimator)

    @settings(max_examples=15, deadline=None)
    @given(st.integers(0, 2**32 - 1))
    def check(seed):
        params = sampled(space, seed)
        assert params.keys() == space.keys()
        changed = type(estimator)(**estimator.get_params(deep=False)).set_params(**params)
        changed._checked_params()  # each value, and all of them together

    check()


@pytest.mark.parametrize("ensemble", ENSEMBLES)
def test_ranges_lie_within_the_declarations(ensemble):
    for param in ensemble._TABLE.values():
        if param.search is None:
            continue
        for value in param.search.choices or (param.search.low, param.search.high):
            param.check(value)
        assert param.search.text


def test_parameters_of_the_user_are_kept():
    space = declared_space(arboost.RandomForestClassifier(max_features=0.5, min_samples_leaf=3))
    assert not {"max_features", "min_samples_leaf"} & space.keys()
    assert "max_depth" in space


def test_modes_have_their_own_parameters():
    plain = declared_space(arboost.GradientBoostingClassifier())
    friedman = declared_space(arboost.GradientBoostingClassifier(boosting="gradient"))
    goss = declared_space(arboost.GradientBoostingClassifier(sampling_method="goss"))
    assert plain.keys() - friedman.keys() == {"reg_lambda", "reg_alpha"}
    assert goss.keys() - plain.keys() == {"top_rate", "other_rate"}
    assert "subsample" not in goss
    assert "max_samples" not in declared_space(arboost.ExtraTreesRegressor())
    assert "max_samples" in declared_space(arboost.RandomForestRegressor())


def test_members_bring_their_spaces():
    forest = arboost.RandomForestClassifier()
    stack = arboost.StackingClassifier([("rf", forest), ("line", LogisticRegression())])
    assert declared_space(stack).keys() == {f"rf__{name}" for name in declared_space(forest)}
    bag = declared_space(arboost.BaggingRegressor(arboost.DecisionTreeRegressor()))
    assert {"max_samples", "estimator__max_depth"} <= bag.keys()
    boosted = declared_space(arboost.AdaBoostClassifier(LogisticRegression()))
    assert boosted.keys() == {"n_estimators", "learning_rate", "algorithm"}


def test_spaces_of_users():
    booster = arboost.GradientBoostingClassifier()
    space = user_space(
        {
            "learning_rate": (0.01, 0.5),
            "max_depth": (2, 8),
            "grow_policy": ["depthwise", "leafwise"],
            "gamma": FloatDistribution(0.0, 2.0, step=0.5),
        },
        booster,
    )
    assert space["learning_rate"] == FloatDistribution(0.01, 0.5, log=True)  # as declared
    assert space["max_depth"] == IntDistribution(2, 8)
    assert space["grow_policy"] == CategoricalDistribution(["depthwise", "leafwise"])
    assert space["gamma"].step == 0.5
    assert user_space({"C": (0.1, 1.0)}, LogisticRegression())["C"] == FloatDistribution(0.1, 1.0)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({}, "must be a dict"),
        ([("gamma", (0, 1))], "must be a dict"),
        ({"learning_rat": (0.1, 0.2)}, "learning_rate"),
        ({"eta": (0.1, 0.2)}, "learning_rate"),
        ({"learning_rate": (0.0, 0.2)}, "learning_rate=0.0"),
        ({"learning_rate": (0.3, 0.2)}, "low < high"),
        ({"learning_rate": 0.1}, r"\(0.02, 0.3\)"),
        ({"grow_policy": ("depthwise", "leafwise")}, "a list of values"),
        ({"grow_policy": ["sideways"]}, "sideways"),
        ({"max_depth": IntDistribution(0, 3)}, "max_depth=0"),
        ({"max_depth": []}, "low < high"),
        ({"reg_lambda": (0.0, np.inf)}, "low < high"),
        ({"loss__x": (0, 1)}, "loss__x"),
    ],
)
def test_bad_spaces(space, message):
    with pytest.raises((TypeError, ValueError), match=message):
        user_space(space, arboost.GradientBoostingClassifier())


def test_nothing_to_search():
    with pytest.raises(ValueError, match="Pass space="):
        declared_space(LogisticRegression())
