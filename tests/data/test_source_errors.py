"""Sources that cannot be fitted on: errors, most of them before the first pass."""

import numpy as np
import pandas as pd
import pytest

from arboost import DecisionTreeRegressor, ExtraTreesRegressor, GradientBoostingRegressor
from arboost.data.memory import MemoryPlan
from arboost.errors import SchemaError
from support.streamed import N_ROWS, features, frame, written

pytest.importorskip("pyarrow")


def test_columns_that_change():
    good = pd.DataFrame({"a": [1.0, 2.0], "y": [1.0, 2.0]})
    bad = good.rename(columns={"a": "b"})
    with pytest.raises(SchemaError, match=r"batch 1 .*lacks the columns 'a' and has the col"):
        GradientBoostingRegressor().fit(lambda: [good, bad], "y")
    bad = good.assign(a=["x", "y"])
    with pytest.raises(SchemaError, match="'a' of X holds strings, but numbers in batches be"):
        GradientBoostingRegressor().fit(lambda: [good, bad], "y")


def test_source_that_changes():
    rng = np.random.default_rng(0)

    def batches():
        X = rng.normal(size=(50, 2))
        yield X, X[:, 0]

    with pytest.raises(ValueError, match="changed between two passes over it: other values"):
        GradientBoostingRegressor().fit(batches)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"tree_method": "exact"}, "tree_method='exact' is not allowed where X is read in"),
        ({"max_conflict_rate": 0.1}, "max_conflict_rate=0.1 is not allowed where X is read"),
    ],
)
def test_refused_before_reading(params, message):
    def batches():
        raise AssertionError

    with pytest.raises(ValueError, match=message):
        GradientBoostingRegressor(**params).fit(batches)


def test_continued_training_is_refused_before_reading():
    X = np.arange(40.0).reshape(-1, 1)
    model = GradientBoostingRegressor(n_estimators=2).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="init_model or warm_start is not allowed where X is"):
        GradientBoostingRegressor().fit(lambda: 1 / 0, init_model=model)


def test_limit_that_is_too_low():
    X = np.arange(8000.0).reshape(2000, 4)
    with pytest.raises(ValueError, match=r"memory_limit='1MB' is too low for 2,000 rows of 4"):
        GradientBoostingRegressor().fit(lambda: [(X, X[:, 0])], memory_limit=1000)
    with pytest.raises(ValueError, match=r"memory_limit='lots' is not allowed: it must be a s"):
        GradientBoostingRegressor().fit(lambda: [(X, X[:, 0])], memory_limit="lots")
    with pytest.raises(ValueError, match=r"memory_limit='1GB' is for files and other sources"):
        GradientBoostingRegressor().fit(X, X[:, 0], memory_limit="1GB")


def test_fits_that_need_codes_in_memory(monkeypatch):
    monkeypatch.setattr(MemoryPlan, "stores", lambda *of: True)
    X = np.arange(40.0).reshape(-1, 1)
    with pytest.raises(ValueError, match="max_depth=None needs the bins of all rows in memory"):
        ExtraTreesRegressor().fit(lambda: [(X, X[:, 0])])
    with pytest.raises(ValueError, match="criterion='absolute_error' needs the bins of all"):
        DecisionTreeRegressor(criterion="absolute_error").fit(lambda: [(X, X[:, 0])])


def test_unknown_names(tmp_path):
    pattern = written(features(frame(), "number"), tmp_path, [N_ROWS])
    with pytest.raises(ValueError, match=r"y='numberz' names no column of X.*Did you mean 'num"):
        GradientBoostingRegressor().fit(pattern, "numberz")
    with pytest.raises(ValueError, match="weight='w' names no column of X"):
        GradientBoostingRegressor().fit(pattern, "number", "w")


def test_no_target(tmp_path):
    pattern = written(features(frame(), "number"), tmp_path, [N_ROWS])
    with pytest.raises(ValueError, match=r"the target y is None\. Pass the name of a column"):
        GradientBoostingRegressor().fit(pattern)


def test_weights_that_are_all_zero():
    X = np.arange(40.0).reshape(-1, 1)
    with pytest.raises(ValueError, match="All values of sample_weight are zero"):
        GradientBoostingRegressor().fit(lambda: [(X, X[:, 0], X[:, 0] * 0)])


def test_no_rows():
    with pytest.raises(ValueError, match="X has no rows"):
        GradientBoostingRegressor().fit(lambda: [], np.zeros(0))
