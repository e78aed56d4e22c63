"""Parameters: what is accepted, what is refused, and how a refusal is worded."""

from __future__ import annotations

import inspect
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from arboost import GradientBoostingClassifier, GradientBoostingRegressor
from arboost.params import PARAMS, check

ESTIMATORS = [GradientBoostingRegressor, GradientBoostingClassifier]
WRITE_DOCSTRINGS = Path(__file__).parents[1] / "tools" / "write_docstrings.py"

ACCEPTED = [
    ("n_estimators", np.int32(5), 5),
    ("learning_rate", 1, 1.0),
    ("learning_rate", np.float32(0.5), 0.5),
    ("max_depth", None, None),
    ("max_depth", 2**31 - 1, 2**31 - 1),
    ("max_leaves", np.uint8(2), 2),
    ("grow_policy", "leafwise", "leafwise"),
    ("min_child_weight", 0, 0.0),
    ("max_bins", 65535, 65535),
    ("base_score", -3.5, -3.5),
    ("n_jobs", -1, -1),
    ("random_state", 2**32 - 1, 2**32 - 1),
]

WRONG_TYPE = [
    ("n_estimators", 5.0),
    ("n_estimators", "100"),
    ("n_estimators", True),
    ("n_estimators", np.True_),
    ("n_estimators", None),
    ("learning_rate", None),
    ("learning_rate", True),
    ("learning_rate", "0.1"),
    ("learning_rate", 1j),
    ("learning_rate", [0.1]),
    ("max_depth", 6.0),
    ("max_leaves", "31"),
    ("grow_policy", 1),
    ("grow_policy", None),
    ("gamma", np.array([1.0])),
    ("base_score", "mean"),
    ("n_jobs", 1.5),
    ("random_state", 0.5),
    ("random_state", np.random.default_rng(0)),
    ("verbose", True),
    ("multi_strategy", False),
]

OUT_OF_RANGE = [
    ("n_estimators", 0),
    ("n_estimators", -1),
    ("n_estimators", 2**31),
    ("learning_rate", 0),
    ("learning_rate", -0.1),
    ("learning_rate", math.nan),
    ("learning_rate", math.inf),
    ("learning_rate", 10**400),
    ("max_depth", 0),
    ("max_depth", -1),
    ("max_leaves", 1),
    ("grow_policy", "lossguide"),
    ("min_child_weight", -1e-9),
    ("min_samples_leaf", 0),
    ("gamma", math.nan),
    ("reg_lambda", -1),
    ("reg_alpha", math.inf),
    ("max_delta_step", -0.5),
    ("max_bins", 1),
    ("max_bins", 65536),
    ("base_score", math.nan),
    ("n_jobs", 0),
    ("n_jobs", -2),
    ("n_jobs", 1025),
    ("random_state", -1),
    ("random_state", 2**32),
    ("verbose", -1),
    ("multi_strategy", "vector"),
]


@pytest.mark.parametrize(("name", "given", "expected"), ACCEPTED)
def test_accepted(name, given, expected):
    value = check({name: given})[name]
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("name", "given", "error"),
    [(*case, TypeError) for case in WRONG_TYPE] + [(*case, ValueError) for case in OUT_OF_RANGE],
)
def test_refused(name, given, error):
    with pytest.raises(error) as caught:
        check({name: given})
    message = str(caught.value)
    assert type(caught.value) is error
    assert message.startswith(f"{name}=")
    assert repr(given)[:70] in message
    assert f"{name} must be {PARAMS[name].allowed}." in message
    assert " Use " in message


def test_long_values_are_cut():
    with pytest.raises(TypeError) as caught:
        check({"n_estimators": list(range(10000))})
    assert len(str(caught.value)) < 300


def test_seed_from_random_state_object():
    seeds = [check({"random_state": np.random.RandomState(3)})["random_state"] for _ in range(2)]
    assert seeds[0] == seeds[1]
    assert 0 <= seeds[0] < 2**32


def test_seed_from_entropy():
    assert len({check({"random_state": None})["random_state"] for _ in range(4)}) > 1


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_signature_and_table_agree(estimator):
    for name, argument in inspect.signature(estimator).parameters.items():
        assert argument.kind is inspect.Parameter.KEYWORD_ONLY
        assert argument.default == PARAMS[name].default
        assert type(argument.default) is type(PARAMS[name].default)
        assert f"\n{name} : {PARAMS[name].type_name}, default=" in inspect.getdoc(estimator)


@pytest.mark.parametrize("name", PARAMS)
def test_default_is_allowed(name):
    assert check({name: PARAMS[name].default})[name] == PARAMS[name].default


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fit_checks_first(estimator):
    """A bad parameter is reported before the data is looked at."""
    model = estimator(n_estimators=0)
    with pytest.raises(ValueError, match="n_estimators=0"):
        model.fit(None, None)


def test_misspelt_parameter():
    with pytest.raises(TypeError, match="n_estimator"):
        GradientBoostingRegressor(n_estimator=5)


def test_docstrings_are_current():
    result = subprocess.run(
        [sys.executable, WRITE_DOCSTRINGS, "--check"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
