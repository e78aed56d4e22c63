"""Parameters: accepted values, refused values, and the messages of refusals."""

from __future__ import annotations

import inspect
import json
import math
import re
import runpy
import subprocess
import sys

import numpy as np
import pytest

import arboost
from arboost import GradientBoostingClassifier, GradientBoostingRegressor
from arboost.params.boosting import BOOSTED_CLASSIFIER, BOOSTED_REGRESSOR
from arboost.params.kinds import LossChoice
from arboost.params.records import check, record
from support.paths import ROOT

TABLES = {
    GradientBoostingRegressor: BOOSTED_REGRESSOR,
    GradientBoostingClassifier: BOOSTED_CLASSIFIER,
}
ALL = BOOSTED_CLASSIFIER | BOOSTED_REGRESSOR  # with the regressor's losses
WRITE_DOCSTRINGS = ROOT / "tools" / "write_docstrings.py"


class SomeLoss:
    """Attributes of a custom loss that the parameter tables read."""

    name = "log_cosh"

    def gradients(self, y, score, weight):
        raise NotImplementedError


class SomeMetric:
    """Attributes of a metric that the parameter tables read."""

    name = "worst"

    def function(self, y, score, weight):
        raise NotImplementedError


LOSS, METRIC = SomeLoss(), SomeMetric()

ACCEPTED = [
    ("n_estimators", np.int32(5), 5),
    ("learning_rate", 1, 1.0),
    ("verbose", True, 1),
    ("verbose", np.False_, 0),
    ("verbose", 2, 2),
    ("learning_rate", np.float32(0.5), 0.5),
    ("loss", "huber", "huber"),
    ("loss", LOSS, LOSS),
    ("alpha", np.float32(0.5), 0.5),
    ("alpha", [0.1, 0.5, 0.9], [0.1, 0.5, 0.9]),
    ("alpha", np.array([0.25, 0.75]), [0.25, 0.75]),
    ("alpha", (0.5,), 0.5),
    ("tweedie_power", 1.01, 1.01),
    ("boosting", "gradient", "gradient"),
    ("tree_method", "exact", "exact"),
    ("sketch_eps", 0.5, 0.5),
    ("max_depth", None, None),
    ("max_depth", 2**31 - 1, 2**31 - 1),
    ("max_leaves", np.uint8(2), 2),
    ("grow_policy", "leafwise", "leafwise"),
    ("min_child_weight", 0, 0.0),
    ("reg_lambda", None, None),
    ("reg_lambda", 0, 0.0),
    ("max_bins", 65535, 65535),
    ("subsample", 1, 1.0),
    ("subsample", 1e-9, 1e-9),
    ("rate_drop", 0, 0.0),
    ("rate_drop", 1, 1.0),
    ("one_drop", np.True_, True),
    ("monotone_constraints", {"a": 1, np.int64(2): np.int8(-1)}, [["a", 1], [2, -1]]),
    ("monotone_constraints", (1, 0, -1), [1, 0, -1]),
    ("monotone_constraints", np.array([0, 1]), [0, 1]),
    ("monotone_constraints", np.array([0.0, -1.0]), [0, -1]),
    ("interaction_constraints", "pairwise", "pairwise"),
    ("interaction_constraints", [{"b", "a"}, (2, 0), np.array([1])], [["a", "b"], [0, 2], [1]]),
    ("base_score", -3.5, -3.5),
    ("base_score", np.array([0.25, 0.75]), [0.25, 0.75]),
    ("scale_pos_weight", 3, 3.0),
    ("class_weight", "balanced", "balanced"),
    ("class_weight", {"a": 2, "b": np.float32(0.5)}, {"a": 2.0, "b": 0.5}),
    ("class_weight", {np.int64(0): 2, True: 1.5}, {0: 2.0, True: 1.5}),
    ("eval_metric", "auc", ["auc"]),
    ("eval_metric", ["auc", len, METRIC], ["auc", len, METRIC]),
    ("n_iter_no_change", 1, 1),
    ("max_time", 0.5, 0.5),
    ("validation_split", "time", "time"),
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
    ("loss", None),
    ("loss", len),
    ("loss", SomeLoss),
    ("alpha", "0.5"),
    ("alpha", [0.1, "0.5"]),
    ("alpha", [0.1, True]),
    ("alpha", {0.1, 0.5}),
    ("alpha", np.array([[0.1, 0.5]])),
    ("tweedie_power", "1.5"),
    ("max_depth", 6.0),
    ("max_leaves", "31"),
    ("grow_policy", 1),
    ("grow_policy", None),
    ("gamma", np.array([1.0])),
    ("subsample", True),
    ("one_drop", 1),
    ("one_drop", None),
    ("monotone_constraints", 1),
    ("monotone_constraints", "(1,-1)"),
    ("monotone_constraints", [1.0, 0.0]),
    ("monotone_constraints", [True, False]),
    ("monotone_constraints", {"a": "up"}),
    ("monotone_constraints", {1.5: 1}),
    ("monotone_constraints", {("a", "b"): 1}),
    ("interaction_constraints", 3),
    ("interaction_constraints", {"a", "b"}),
    ("interaction_constraints", ["a", "b"]),
    ("interaction_constraints", [[0, 1.5]]),
    ("base_score", "mean"),
    ("base_score", [0.5, "b"]),
    ("class_weight", [1.0, 2.0]),
    ("class_weight", {0: "heavy"}),
    ("class_weight", {(0, 1): 1.0}),
    ("eval_metric", 3),
    ("eval_metric", ["auc", 3]),
    ("n_iter_no_change", 5.0),
    ("max_time", "1h"),
    ("n_jobs", 1.5),
    ("random_state", 0.5),
    ("random_state", np.random.default_rng(0)),
    ("verbose", "yes"),
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
    ("loss", "log_loss"),
    ("loss", "reg:squarederror"),
    ("alpha", 0),
    ("alpha", 1.0),
    ("alpha", math.nan),
    ("alpha", []),
    ("alpha", [0.5, 0.1]),
    ("alpha", [0.5, 0.5]),
    ("alpha", [0.5, 1.0]),
    ("tweedie_power", 1),
    ("tweedie_power", 2.0),
    ("boosting", "dart"),
    ("tree_method", "gpu_hist"),
    ("sketch_eps", 0.0),
    ("sketch_eps", 1),
    ("sketch_scope", "round"),
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
    ("subsample", 0),
    ("top_rate", 0),
    ("other_rate", 0.0),
    ("other_rate", 1.5),
    ("subsample", 1.5),
    ("sampling_method", "mvs"),
    ("colsample_bytree", 0.0),
    ("colsample_bylevel", -0.5),
    ("colsample_bynode", math.nan),
    ("num_parallel_tree", 0),
    ("rate_drop", -0.1),
    ("rate_drop", 1.1),
    ("skip_drop", 2),
    ("sample_type", "both"),
    ("normalize_type", "trees"),
    ("monotone_constraints", [1, 2]),
    ("monotone_constraints", np.array([0.5, 1.0])),
    ("monotone_constraints", {"a": -2}),
    ("interaction_constraints", "pairs"),
    ("interaction_constraints", []),
    ("interaction_constraints", [[0], []]),
    ("base_score", math.nan),
    ("base_score", []),
    ("base_score", [0.5, math.inf]),
    ("scale_pos_weight", 0),
    ("scale_pos_weight", math.inf),
    ("class_weight", "balance"),
    ("class_weight", {0: 0.0}),
    ("class_weight", {0: -1}),
    ("class_weight", {0: math.inf}),
    ("eval_metric", []),
    ("n_iter_no_change", 0),
    ("tol", -1e-9),
    ("validation_fraction", 0.0),
    ("validation_fraction", 1),
    ("validation_split", "stratified"),
    ("max_time", 0),
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
    value = check({name: given}, ALL)[name]
    assert value == expected
    assert isinstance(value, type(expected))


@pytest.mark.parametrize(
    ("name", "given", "error"),
    [(*case, TypeError) for case in WRONG_TYPE] + [(*case, ValueError) for case in OUT_OF_RANGE],
)
def test_refused(name, given, error):
    with pytest.raises(error) as caught:
        check({name: given}, ALL)
    message = str(caught.value)
    assert (caught.value.category, caught.value.parameter) == ("parameter", name)
    assert message.startswith(f"{name}=")
    assert repr(given)[:70] in message
    assert f" {name} must be {ALL[name].allowed}." in message
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


@pytest.mark.parametrize(("name", "given", "expected"), ACCEPTED)
def test_records_are_json(name, given, expected):
    recorded = record(check({name: given}, ALL), ALL)
    assert json.loads(json.dumps(recorded, allow_nan=False)) == recorded


def test_functions_are_recorded_by_name():
    values = check({"loss": LOSS, "eval_metric": ["auc", len, METRIC]}, ALL)
    assert record(values, ALL) == {
        "loss": {"custom": "log_cosh"},
        "eval_metric": ["auc", {"custom": "len"}, {"custom": "worst"}],
    }


def test_class_weights_are_recorded_with_their_labels():
    weights = check({"class_weight": {0: 2, "a": 1}}, ALL)
    assert record(weights, ALL) == {"class_weight": [[0, 2.0], ["a", 1.0]]}


@pytest.mark.parametrize("estimator", TABLES)
def test_signature_and_table_agree(estimator):
    table = TABLES[estimator]
    parameters = inspect.signature(estimator).parameters
    assert parameters.keys() == table.keys()
    for name, argument in parameters.items():
        assert argument.kind is inspect.Parameter.KEYWORD_ONLY
        assert repr(argument.default) == repr(table[name].default)  # NaN is not equal to itself
        assert type(argument.default) is type(table[name].default)
        assert f"\n{name} : {table[name].type_name}, default=" in inspect.getdoc(estimator)


@pytest.mark.parametrize("table", TABLES.values(), ids=["regressor", "classifier"])
def test_default_is_allowed(table):
    for name, param in table.items():
        assert repr(check({name: param.default}, table)[name]) == repr(param.default)


@pytest.mark.parametrize("table", TABLES.values(), ids=["regressor", "classifier"])
def test_texts_name_every_loss(table):
    assert isinstance(table["loss"], LossChoice)
    assert all(option in table["loss"].text for option in table["loss"].options)


@pytest.mark.parametrize("estimator", TABLES)
def test_fit_checks_first(estimator):
    """A bad parameter is reported before the data is read."""
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


@pytest.mark.parametrize("name", [n for n in arboost.__all__ if n.endswith(("fier", "ssor"))])
def test_texts_name_own_parameters_only(name):
    """A parameter's text may be shared, but not refer to a parameter of other estimators."""
    own = getattr(arboost, name)._TABLE
    text = " ".join(param.text for param in own.values())
    assert set(re.findall(r"\w+_\w+", text)) & (ALL.keys() - own.keys()) == set()


@pytest.mark.parametrize("name", [n for n in arboost.__all__ if n.endswith(("fier", "ssor"))])
def test_docstring_of_fit_has_every_argument(name):
    fit = getattr(arboost, name).fit
    entries = re.findall(r"^([\w*, ]+?)(?: :|$)", inspect.getdoc(fit), re.MULTILINE)
    documented = {word for entry in entries for word in entry.split(", ")}
    arguments = [str(argument) for argument in inspect.signature(fit).parameters.values()]
    expected = {re.match(r"\**\w+", argument)[0] for argument in arguments} - {"self"}
    assert expected <= documented


def test_docstrings_tool_finds_every_estimator(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    files = runpy.run_path(str(WRITE_DOCSTRINGS))["FILES"]
    public = [getattr(arboost, name) for name in arboost.__all__]
    estimators = [one for one in public if isinstance(one, type) and hasattr(one, "_TABLE")]
    assert len(estimators) > 10
    for estimator in estimators:
        assert any(path.samefile(inspect.getsourcefile(estimator)) for path in files)


def test_docstrings_tool_fills_in_signatures(monkeypatch):
    """A bare name in ``__init__`` becomes a parameter with its type, default and text."""
    monkeypatch.setattr(sys, "path", list(sys.path))  # to which the tool adds the checkout
    tool = runpy.run_path(str(WRITE_DOCSTRINGS))
    source = (
        'class A:\n    """First line.\n\n    Parameters\n    ----------\n    Attributes\n'
        '    ----------\n    """\n\n    _TABLE = PARAMS\n\n'
        "    def __init__(self, *, gamma, n_jobs) -> None:\n        store(self, locals())\n"
    )
    written = tool["rewritten"](source)
    assert "        gamma: float = 0.0,\n        n_jobs: int | None = None,\n" in written
    assert "    gamma : float, default=0.0\n        Gain that a split must exceed.\n" in written
    assert tool["rewritten"](written) == written
