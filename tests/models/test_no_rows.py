"""Predictions of no rows: empty results of the right shape, alike for every empty table."""

import numpy as np
import pandas as pd
import pytest

import arboost

FRAME = pd.DataFrame(
    {"a": np.arange(40.0), "b": np.arange(40.0) % 3, "c": ["x", "y"] * 20, "d": pd.Timestamp(0)}
)
LABELS = np.arange(40) % 3
NUMBERS = FRAME[["a", "b"]].to_numpy()
MODELS = [
    arboost.GradientBoostingClassifier(n_estimators=2),
    arboost.AdaBoostClassifier(n_estimators=2),
    arboost.RandomForestClassifier(2, random_state=0),
    arboost.DecisionTreeClassifier(max_depth=2),
]
METHODS = ("predict", "predict_proba", "predict_raw", "apply", "shap_values", "decision_function")


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("estimator", MODELS, ids=lambda one: type(one).__name__)
def test_every_method_and_loaded_models(estimator, named, tmp_path):
    X = FRAME if named else NUMBERS
    estimator.fit(X, LABELS)
    estimator.save(tmp_path / "model.arb")
    empty = [[], (), X[:0], *([{name: [] for name in X}, X[:0].to_dict("list")] if named else [])]
    for model in (estimator, estimator.model_, arboost.load(tmp_path / "model.arb")):
        assert model.predict_proba([]).shape == (0, 3)
        assert model.predict([]).shape == (0,)
        for method in METHODS:
            if method == "decision_function" and not hasattr(estimator, method):
                continue
            expected = getattr(model, method)(X[:0])
            for table in empty:
                found = getattr(model, method)(table)
                assert found.shape == expected.shape
                assert found.dtype == expected.dtype


@pytest.mark.parametrize("kind", [arboost.BaggingClassifier, arboost.VotingClassifier])
def test_ensembles(kind, tmp_path):
    tree = arboost.DecisionTreeClassifier(max_depth=2)
    model = kind(tree if kind is arboost.BaggingClassifier else [("tree", tree)])
    for X in (FRAME, NUMBERS):
        model.fit(X, LABELS).save(tmp_path / "model.arb")
        for one in (model, arboost.load(tmp_path / "model.arb")):
            assert one.predict([]).shape == one.predict(X[:0]).shape == (0,)


@pytest.mark.parametrize("table", [[[]], {}, pd.DataFrame()], ids=["rows", "dict", "frame"])
def test_tables_without_columns_are_refused(table):
    model = arboost.GradientBoostingClassifier(n_estimators=2).fit(FRAME, LABELS)
    for one in (model, model.model_):
        with pytest.raises(ValueError, match="0 feature"):
            one.predict_proba(table)


def test_extra_keys_are_refused_as_extra_columns():
    model = arboost.GradientBoostingClassifier(n_estimators=2).fit(FRAME[["a", "b"]], LABELS)
    row = {"a": 1.0, "b": 2.0, "z": 3.0}
    tables = [row, [row], {name: [value] for name, value in row.items()}, pd.DataFrame([row])]
    for one in (model, model.model_):
        for table in tables:
            with pytest.raises(arboost.SchemaError, match=r"unseen at fit time:\n- z"):
                one.predict_proba(table)


def test_an_empty_list_is_no_table_to_fit():
    with pytest.raises(ValueError, match="Expected 2D array"):
        arboost.GradientBoostingClassifier().fit([], [])
