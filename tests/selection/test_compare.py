"""compare: the same folds for every model, honest scores and times, failures as results."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import KFold

import arboost
from arboost import DataWarning, Metric, compare
from arboost.progress import steps_reported
from arboost.selection.compare import MODELS
from arboost.training.splits import folds as make_folds

FAST = ["gradient_boosting", "random_forest", "decision_tree", "baseline"]


def numbers(n_rows=200, n_features=4):
    return np.random.default_rng(0).random((n_rows, n_features))


def classes(X, n_classes=2):
    noise = np.random.default_rng(1).random(len(X)) * 0.3
    return np.minimum(((X[:, 0] + noise) / 1.3 * n_classes).astype(int), n_classes - 1)


def test_all_models_of_a_classification():
    X = numbers()
    found = compare(X, classes(X), folds=2, verbose=0)
    assert {one.name for one in found.models} == set(MODELS)
    assert not any(one.failures for one in found.models)
    assert found.task == "classification"
    assert found.metric == "auc"
    assert found.means["baseline"] == 0.5
    assert found.means["gradient_boosting"] > 0.8
    assert list(found.means.values()) == sorted(found.means.values(), reverse=True)
    assert found.binning_seconds > 0
    assert all(one.mean_fit_seconds > 0 for one in found.models)


def test_all_models_of_a_regression_with_strings_and_missing_values():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.random(160), "b": rng.choice(["x", "y", None], 160)})
    table["y"] = table["a"] + (table["b"] == "x")
    table.loc[::9, "a"] = np.nan
    found = compare(table, "y", folds=2, verbose=0)
    assert not any(one.failures for one in found.models)
    assert (found.task, found.metric) == ("regression", "rmse")
    assert found.best != "baseline"


@pytest.mark.parametrize(
    "to", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"]
)
def test_tables_of_any_library(to):
    X = numbers(80, 2)
    columns = {"a": X[:, 0], "b": np.where(X[:, 1] > 0.5, "x", "y")}
    found = compare(to(columns), classes(X), models=FAST, folds=2, verbose=0)
    frame = compare(pd.DataFrame(columns), classes(X), models=FAST, folds=2, verbose=0)
    assert found.means == frame.means


def test_scores_are_those_of_fits_to_the_training_rows():
    X = np.round(numbers(), 1)  # few values: bins of some rows are those of all rows
    y = classes(X)
    pairs = make_folds(y, 3, seed=4, stratify=True)
    found = compare(X, y, models=["random_forest"], folds=3, random_state=4, verbose=0)
    model = arboost.RandomForestClassifier(random_state=4)
    expected = [
        roc_auc_score(y[held], model.fit(X[train], y[train]).predict_proba(X[held])[:, 1])
        for train, held in pairs
    ]
    assert found.scores["random_forest"] == pytest.approx(expected, abs=1e-12)


def test_scores_do_not_depend_on_threads():
    X = numbers()
    one, two = (compare(X, classes(X, 3), folds=2, n_jobs=n_jobs, verbose=0) for n_jobs in (1, 2))
    assert {name: one.scores[name].tolist() for name in one.scores} == {
        name: two.scores[name].tolist() for name in two.scores
    }


def test_encodings_of_categories_do_not_see_held_out_targets():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": [f"u{i}" for i in rng.integers(0, 400, 1200)]})
    models = ["gradient_boosting", "random_forest", "adaboost", "stacking"]
    found = compare(table, rng.integers(0, 2, 1200), models=models, folds=3, verbose=0)
    assert all(abs(mean - 0.5) < 0.08 for mean in found.means.values())


def test_ties_and_differences():
    X = numbers(300)
    y = X[:, 0] * 10
    found = compare(X, y, models=["gradient_boosting", "bagging", "baseline"], verbose=0)
    best, last = found.models[0], found["baseline"]
    assert best.difference == 0.0
    paired = last.scores - best.scores
    assert last.difference == pytest.approx(paired.mean())
    assert last.difference_error == pytest.approx(paired.std(ddof=1) / np.sqrt(5))
    assert not last.is_tied
    same = {"one": arboost.DecisionTreeRegressor(), "other": arboost.DecisionTreeRegressor()}
    twins = compare(X, y, models=same, verbose=0)
    assert twins.models[1].is_tied
    assert "other *" in repr(twins)


def test_weights_of_zero_leave_rows_out():
    X = numbers()
    y, weight = classes(X), np.ones(len(X))
    weight[::4] = 0
    y[::4] = 1 - y[::4]
    kept = weight > 0
    found = compare(X, y, models=FAST, sample_weight=weight, folds=3, verbose=0)
    alone = compare(X[kept], y[kept], models=FAST, folds=3, verbose=0)
    assert found.means == alone.means
    assert found.n_rows == kept.sum()
    pairs = [(np.arange(100), np.arange(100, 200)), (np.arange(100, 200), np.arange(100))]
    listed = compare(X, y, models=FAST, sample_weight=weight, folds=pairs, verbose=0)
    places = np.cumsum(kept) - 1
    own = [(places[a][kept[a]], places[b][kept[b]]) for a, b in pairs]
    assert listed.means == compare(X[kept], y[kept], models=FAST, folds=own, verbose=0).means


def test_weights_enter_training_and_metric():
    X = numbers(100)
    y = X[:, 0]
    weight = np.where(X[:, 1] > 0.5, 1.0, 3.0)
    found = compare(X, y, models=["decision_tree"], folds=2, sample_weight=weight, verbose=0)
    plain = compare(X, y, models=["decision_tree"], folds=2, verbose=0)
    assert found.means != plain.means
    models = ["baseline", WithoutWeights()]
    found = compare(X, y, models=models, folds=2, sample_weight=weight, verbose=0)
    assert "has no such argument" in found["WithoutWeights"].failures[0]


class WithoutWeights(LinearRegression):
    """An estimator whose fit takes no weights."""

    def fit(self, X, y):
        return super().fit(X, y)


@pytest.mark.filterwarnings("ignore:The .*search for the number of rounds")
def test_groups_stay_whole_and_time_goes_forward():
    X = numbers(120)
    y, groups = classes(X), np.repeat(np.arange(12), 10)
    seen = []

    class Spy(LinearRegression):
        def fit(self, X, y):
            seen.append(set(groups[np.searchsorted(X_order, X[:, 0])]))
            return super().fit(X, y)

    X = X[np.argsort(X[:, 0])]
    X_order = X[:, 0]
    compare(X, X[:, 1], models=[Spy()], groups=groups, folds=3, verbose=0)
    assert all(len(one) == 8 for one in seen)
    found = compare(X, y, groups=groups, folds=3, verbose=0)
    assert not any(one.failures for one in found.models)
    timed = compare(X, X[:, 1], models=[*MODELS], time_order=True, folds=3, verbose=0)
    assert not any(one.failures for one in timed.models)
    seen.clear()
    compare(X, X[:, 1], models=[Spy()], time_order=True, folds=3, verbose=0)
    assert [max(one) for one in seen] == [2, 5, 8]


def test_estimators_of_users_and_metrics():
    X = numbers()
    y = classes(X)
    models = ["decision_tree", ("mine", arboost.RandomForestClassifier(n_estimators=5))]
    found = compare(X, y, models=models, metric=accuracy_score, folds=KFold(2), verbose=0)
    assert (found.metric, found.greater_is_better) == ("accuracy", True)
    assert set(found.scores) == {"decision_tree", "mine"}
    assert found.estimators["mine"].n_estimators == 5
    worst = Metric("worst", lambda y, p, weight: float(np.abs(y - p).max()))
    assert compare(X, X[:, 0], models=FAST, metric=worst, verbose=0).metric == "worst"
    assert compare(X, y, models="baseline", metric="brier", verbose=0).best == "baseline"


def test_a_model_that_fails_is_listed_last_with_its_reason():
    class Broken(LinearRegression):
        def fit(self, X, y):
            raise RuntimeError("no <luck>\ntoday")

    X = numbers(60)
    found = compare(X, X[:, 0], models={"bad": Broken(), "base": LinearRegression()}, verbose=0)
    assert [one.name for one in found.models] == ["base", "bad"]
    assert found["bad"].failures[0] == "RuntimeError: no <luck> today"
    assert np.isnan(found["bad"].mean)
    assert "bad failed in 5 folds: RuntimeError: no <luck> today" in repr(found)
    assert "no &lt;luck&gt;" in found._repr_html_()
    with pytest.raises(ValueError, match="every model failed, bad for this reason"):
        compare(X, X[:, 0], models={"bad": Broken()}, verbose=0)


def test_table_as_text_html_and_json():
    X = numbers(100)
    found = compare(X, X[:, 0], models=FAST, folds=2, verbose=0)
    text, page = repr(found), found._repr_html_()
    assert text.splitlines()[0] == "regression, 100 rows, 2 folds; rmse: smaller is better"
    assert len({len(line) for line in text.splitlines()[1:4]}) == 1
    assert page.count("<tr>") == 1 + len(FAST)
    read = json.loads(json.dumps(found.to_dict()))
    assert read["best"] == found.best
    assert read["models"]["baseline"]["scores"] == found.scores["baseline"].tolist()
    with pytest.raises(KeyError, match="was not compared"):
        found["forest"]


def test_tiny_tables():
    X = numbers(4, 1)
    found = compare(X, [0, 1, 0, 1], models=FAST, folds=2, verbose=0)
    assert not any(one.failures for one in found.models)
    one_row_class = compare(numbers(9), [*"aaaabbbb", "c"], metric="log_loss", models=FAST, folds=2)
    assert len(one_row_class.models) == len(FAST)


def test_warnings_on_data_come_once():
    X = pd.DataFrame({"a": ["x"] * 60})
    with pytest.warns(DataWarning, match="nothing to split on") as caught:
        compare(X, np.arange(60.0), models=[*FAST, "stacking"], folds=4, verbose=0)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"models": ["random_forst"]}, 'Did you mean "random_forest"'),
        ({"models": []}, "holds no model"),
        ({"models": 3}, "must be a list of names"),
        ({"models": [arboost.DecisionTreeRegressor]}, "has no method fit"),
        ({"models": ["bagging", "bagging"]}, "twice"),
        ({"metric": "ndcg"}, "no such metric"),
        ({"metric": "auc"}, "for a regressor"),
        ({"folds": 1}, "folds=1 is not allowed"),
        ({"time_order": 1}, "must be True or False"),
        ({"time_order": True, "folds": KFold()}, "makes the folds itself"),
        ({"time_order": True, "groups": np.arange(20)}, "Leave out one"),
        ({"time_order": True, "folds": 40}, "from 2 to 19"),
        ({"task": "ranking"}, "'classification' or 'regression'"),
        ({"task": 1}, "is not allowed"),
        ({"random_state": -1}, "random_state"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"fold": 3}, "is called folds here"),
        ({"X": "data.csv"}, "in memory"),
        ({"y": None}, "requires y"),
        ({"sample_weight": [1.0]}, "one value for each row"),
    ],
)
def test_bad_arguments(arguments, message):
    given = {"X": numbers(20), "y": numbers(20)[:, 0]} | arguments
    with pytest.raises((TypeError, ValueError), match=message):
        compare(**given)


def test_one_class_has_nothing_to_compare():
    with pytest.raises(ValueError, match="one class"):
        compare(numbers(20), ["a"] * 20)


def test_progress_names_the_running_model():
    steps = []
    X = numbers(40)
    with steps_reported(steps.append):
        compare(X, X[:, 0], models=["decision_tree", "baseline"], folds=2)
    assert [(one.label, one.done) for one in steps if not one.results] == [
        ("decision_tree", 0),
        ("baseline", 2),
    ]
    assert {one.total for one in steps} == {4}
