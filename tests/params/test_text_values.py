"""Values of parameters as texts of a command line, and suggestions for unknown names."""

import math

import pytest

import arboost
from arboost.params.records import declarations_of
from arboost.params.suggestions import Suggestion, suggest_parameter

CLASSIFIER = declarations_of("GradientBoostingClassifier")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("learning_rate", "0.05", 0.05),
        ("learning_rate", " 5e-2 ", 0.05),
        ("max_leaves", "1_0", 10),
        ("max_depth", "none", None),
        ("max_depth", "[3", "[3"),
        ("n_estimators", "auto", "auto"),
        ("bundling", "No", False),
        ("bundling", "maybe", "maybe"),
        ("loss", "exponential", "exponential"),
        ("device", " cuda:1", "cuda:1"),
        ("eval_metric", "auc", "auc"),
        ("eval_metric", "auc,log_loss", ["auc", "log_loss"]),
        ("class_weight", '{"high": 2, "low": 1}', {"high": 2, "low": 1}),
        ("monotone_constraints", "{size = 1}", {"size": 1}),
        ("monotone_constraints", "1,0,-1", [1, 0, -1]),
        ("interaction_constraints", '[["size"], ["city"]]', [["size"], ["city"]]),
        ("categorical_features", "size", ["size"]),
        ("categorical_features", "size,0", ["size", 0]),
        ("categorical_features", "from_dtype", "from_dtype"),
        ("calendar_parts", "hour", ["hour"]),
        ("calendar_parts", "auto", "auto"),
        ("missing", "-999", -999),
    ],
)
def test_value_of_a_text(name, text, value):
    assert CLASSIFIER[name].parse(text) == value


def test_words_of_other_kinds():
    assert math.isnan(CLASSIFIER["missing"].parse("NaN"))
    forest = declarations_of("RandomForestRegressor")
    assert forest["oob_score"].parse("yes") is True
    assert forest["oob_score"].is_flag
    stack = declarations_of("StackingRegressor")
    assert stack["estimators"].parse("bagging,voting") == ["bagging", "voting"]
    assert stack["estimators"].takes_estimators
    assert not stack["estimators"].has_default
    assert stack["final_estimator"].has_default


def test_completions():
    assert "leafwise" in CLASSIFIER["grow_policy"].completions
    assert CLASSIFIER["bundling"].completions == ("true", "false")
    assert CLASSIFIER["learning_rate"].completions == ()


def test_declarations_are_those_of_the_estimators():
    for name in arboost.__all__:
        if name.endswith(("Classifier", "Regressor", "Ranker")):
            assert set(getattr(arboost, name)._get_param_names()) == set(declarations_of(name))


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("eta", Suggestion("learning_rate", "", spelling="eta")),
        (
            "lerning_rate",
            Suggestion("learning_rate", "", is_close=True, spelling="learning_rate"),
        ),
        ("etaa", Suggestion("learning_rate", "", spelling="eta")),
        ("zzzz", None),
    ],
)
def test_suggestions_of_parameters(name, suggestion):
    assert suggest_parameter(name, CLASSIFIER) == suggestion
