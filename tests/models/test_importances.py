"""Importances: totals over splits, increases of the metric by shuffling, mean SHAP values."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn import metrics
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import arboost
from arboost import GradientBoostingClassifier, GradientBoostingRegressor, permutation_importances
from arboost.models.importances import Shuffles, table_increases
from support.fitted_models import KINDS, fitted
from support.processes import HEAVY, run


def order_of(seed, feature, repeat, n_rows):
    return np.random.Generator(np.random.PCG64([seed, feature, repeat])).permutation(n_rows)


def shuffled(frame, seed, feature, repeat):
    order = order_of(seed, feature, repeat, len(frame))
    name = frame.columns[feature]
    return frame.assign(**{name: frame[name].iloc[order].to_numpy()})


def truth_of(kind, model, frame, rng):
    """Return a y that differs from the predictions."""
    actual = model.predict(frame)
    if model.kind == "classifier":
        return actual[rng.permutation(len(actual))]
    noisy = actual + rng.normal(size=actual.shape)
    return noisy[:, 0] if kind == "quantiles" else noisy


@pytest.mark.filterwarnings("ignore:.*feature names")
@pytest.mark.parametrize("worth", [0, 20])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "quantiles"])
def test_same_as_predicting_shuffled_tables(kind, worth, rng, monkeypatch):
    monkeypatch.setattr("arboost.models.importances._WALKS_WORTH_A_NODE", worth)
    model, frame = fitted(kind, rng)
    y, weight = truth_of(kind, model, frame, rng), rng.random(len(frame))
    actual = permutation_importances(
        model, frame, y, sample_weight=weight, n_repeats=2, random_state=7, n_jobs=2
    )

    def rate(X):
        if model.kind == "classifier":
            parts, columns = model.predict_proba(X), y.reshape(len(y), -1).T
            parts = parts if isinstance(parts, list) else [parts]
            labels = model.classes if isinstance(model.classes, tuple) else (model.classes,)
            triples = zip(columns, parts, labels, strict=True)
            each = [
                metrics.log_loss(t, p, sample_weight=weight, labels=names)
                for t, p, names in triples
            ]
        else:
            columns = zip(y.reshape(len(y), -1).T, model.predict(X).reshape(len(y), -1).T)  # noqa: B905
            each = [metrics.root_mean_squared_error(t, p, sample_weight=weight) for t, p in columns]
        return np.mean(each)

    start = rate(frame)
    for feature in range(frame.shape[1]):
        for repeat in range(2):
            expected = rate(shuffled(frame, 7, feature, repeat)) - start
            assert actual[repeat, feature] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    mean = model.importances(
        "permutation", frame, y, sample_weight=weight, n_repeats=2, random_state=7
    )
    np.testing.assert_array_equal(mean, actual.mean(axis=0))


@pytest.mark.parametrize("worth", [-1, 20, 1e9])
def test_trees_without_the_feature_are_walked_once(worth, rng, monkeypatch):
    """Trees with and without the feature, set splits among them: the parts sum to the model."""
    monkeypatch.setattr("arboost.models.importances._WALKS_WORTH_A_NODE", worth)
    _, frame = fitted("boosted", rng)
    y = frame["rooms"] / 2 + (frame["city"] == "Oslo") + (frame["age"] > 40)
    stumps = arboost.GradientBoostingRegressor(n_estimators=30, max_depth=1)
    model = stumps.fit(frame, y + rng.normal(size=len(frame)) / 9).model_
    assert set(model.tree_table()["feature"]) >= {"rooms", "city", "age", None}
    y = model.predict(frame)
    actual = model.importances("permutation", frame, y, n_repeats=1)
    for feature in range(frame.shape[1]):
        other = model.predict(shuffled(frame, 0, feature, 0))
        assert actual[feature] == pytest.approx(np.sqrt(np.mean((other - y) ** 2)), abs=1e-12)


@pytest.mark.parametrize(
    ("metric", "sign"), [("auc", -1), ("accuracy", -1), ("brier", 1), ("average_precision", -1)]
)
def test_classification_metrics(metric, sign, rng):
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=300) > 0, "yes", "no")
    model = arboost.GradientBoostingClassifier(n_estimators=10).fit(X, y).model_
    rate = {
        "auc": lambda p: metrics.roc_auc_score(y, p[:, 1]),
        "accuracy": lambda p: metrics.accuracy_score(y, model.classes[p.argmax(1)]),
        "brier": lambda p: metrics.brier_score_loss(y == "yes", p[:, 1]),
        "average_precision": lambda p: metrics.average_precision_score(y == "yes", p[:, 1]),
    }[metric]
    other = X.copy()
    other[:, 0] = X[order_of(0, 0, 0, 300), 0]
    expected = sign * (rate(model.predict_proba(other)) - rate(model.predict_proba(X)))
    actual = model.importances("permutation", X, y, metric=metric, n_repeats=1)
    assert actual[0] == pytest.approx(expected, rel=1e-9)
    assert actual[0] > max(0.01, actual[1], actual[2])


def test_custom_metrics(rng):
    X = rng.normal(size=(600, 2))
    model = arboost.GradientBoostingRegressor(n_estimators=10).fit(X, X[:, 1]).model_
    callers = set()

    def worst(y, score, weight):
        callers.add(threading.get_ident())
        assert score.shape == y.shape == weight.shape
        return np.abs(y - score).max()

    actual = model.importances("permutation", X, X[:, 1], metric=worst, n_jobs=2)
    assert actual[1] > actual[0]
    assert callers == {threading.get_ident()}
    better = arboost.Metric("fit", lambda y, s, w: -np.abs(y - s).max(), greater_is_better=True)
    again = model.importances("permutation", X, X[:, 1], metric=better)
    np.testing.assert_array_equal(again, actual)


def test_same_for_any_number_of_threads_and_all_seeds_differ(rng):
    X = rng.normal(size=(2000, 6))
    y = X @ np.arange(6.0)
    model = arboost.GradientBoostingRegressor(n_estimators=30).fit(X, y).model_
    one = model.importances("permutation", X, y, n_jobs=1)
    np.testing.assert_array_equal(one, model.importances("permutation", X, y, n_jobs=2))
    assert (one != model.importances("permutation", X, y, random_state=1)).all()
    assert one.argsort().tolist() == list(range(6))
    each = permutation_importances(model, X, y, n_jobs=2)
    assert each.shape == (5, 6)
    assert len(np.unique(each)) == each.size


@pytest.mark.skipif(not hasattr(arboost.Predictor, "shap_values"), reason="no SHAP values")
@pytest.mark.parametrize("kind", ["boosted", "three", "forest"])
def test_mean_shap(kind, rng):
    model, frame = fitted(kind, rng)
    values = np.abs(model.shap_values(frame)).reshape(len(frame), len(model.feature_names), -1)
    values = values.sum(axis=2)
    np.testing.assert_allclose(model.importances("shap", frame), values.mean(axis=0), rtol=1e-12)
    weight = rng.random(len(frame))
    expected = weight @ values / weight.sum()
    actual = model.importances("shap", frame, sample_weight=weight)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="X has no rows"):
        model.importances("shap", frame[:0])


def test_features_without_a_split(rng):
    X = np.c_[rng.normal(size=100), np.zeros(100)]
    model = arboost.GradientBoostingRegressor(n_estimators=5).fit(X, X[:, 0]).model_
    actual = model.importances("permutation", X, X[:, 0])
    assert actual[0] > 0
    assert actual[1] == 0


def test_totals_over_splits(rng):
    model, frame = fitted("boosted", rng)
    table = pd.DataFrame(model.tree_table())
    splits = table[table["left"] >= 0].groupby("feature")
    assert model.schema.columns == tuple(frame.columns)
    for kind, totals in (
        ("gain", splits["gain"].sum()),
        ("cover", splits["cover"].sum()),
        ("split", splits.size()),
    ):
        expected = totals.reindex(model.feature_names, fill_value=0).to_numpy()
        np.testing.assert_allclose(model.importances(kind), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kind": "magic"}, ValueError, "use one of gain, cover, split, permutation, shap"),
        ({"X": None}, ValueError, "without X: it looks"),
        ({"y": None}, ValueError, "Pass X and y"),
        ({"kind": "gain"}, ValueError, "'gain' does not look at X and y, but it was passed"),
        ({"kind": "shap"}, ValueError, "'shap' does not look at y"),
        ({"kind": "shap", "X": None, "y": None}, ValueError, "Pass X."),
        ({"kind": "gain", "X": None, "y": None, "metric": "mae"}, ValueError, "at metric, but"),
        ({"kind": "shap", "y": None, "n_repeats": 9}, ValueError, "at n_repeats, but"),
        ({"kind": "cover", "X": None, "y": None, "random_state": 1}, ValueError, "random_state, b"),
        ({"n_repeats": 0}, ValueError, "n_repeats=0 is not allowed"),
        ({"random_state": -1}, ValueError, "random_state=-1 is not allowed"),
        ({"random_state": None}, ValueError, "random_state=None is not allowed"),
        ({"metric": "auc"}, ValueError, "not allowed for a regressor: use one of rmse"),
        ({"metric": 5}, TypeError, "must be a name, a function"),
        ({"y": [1.0]}, ValueError, "X has 9 rows, but y has 1 values"),
        ({"y": np.full(9, np.nan)}, ValueError, "missing or infinite"),
        ({"y": np.ones((9, 2))}, ValueError, "1d array"),
        ({"X": np.ones((0, 1)), "y": []}, ValueError, "X has no rows"),
        ({"sample_weight": -np.ones(9)}, ValueError, "negative"),
    ],
)
def test_bad_input(options, error, message):
    X = np.arange(9.0)[:, None]
    model = arboost.GradientBoostingRegressor(n_estimators=2).fit(X, X[:, 0]).model_
    given = {"kind": "permutation", "X": X, "y": X[:, 0]} | options
    with pytest.raises(error, match=message):
        model.importances(given.pop("kind"), given.pop("X"), given.pop("y"), **given)


def test_estimators_and_other_objects(rng):
    X = rng.normal(size=(50, 2))
    estimator = arboost.GradientBoostingRegressor(n_estimators=5).fit(X, X[:, 0])
    np.testing.assert_array_equal(
        permutation_importances(estimator, X, X[:, 0]),
        permutation_importances(estimator.model_, X, X[:, 0]),
    )
    with pytest.raises(NotFittedError):
        permutation_importances(arboost.GradientBoostingRegressor(), X, X[:, 0])


def test_several_outputs_for_one_target(rng):
    model, frame = fitted("quantiles", rng)
    y = rng.normal(size=len(frame))
    with pytest.raises(ValueError, match="2 outputs for one target"):
        model.importances("permutation", frame, y)
    actual = model.importances("permutation", frame, y, metric=lambda y, s, w: s[:, 1].std())
    assert actual.shape == (len(model.feature_names),)


def test_unknown_labels(rng):
    model, frame = fitted("two", rng)
    with pytest.raises(ValueError, match="labels that model does not have"):
        model.importances("permutation", frame, ["?"] * len(frame))


def test_without_scikit_learn(tmp_path, rng):
    """Explanations of a loaded model need NumPy alone, and are imported late."""
    X = rng.normal(size=(40, 2))
    path = tmp_path / "model.arb"
    arboost.GradientBoostingClassifier(n_estimators=3).fit(X, X[:, 0] > 0).save(path)
    printed = run(
        f"""
        import sys

        class Absent:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in {(*HEAVY, "matplotlib", "shap")}:
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, Absent())
        import arboost
        import numpy as np
        model = arboost.load(sys.argv[1])
        late = ["models.importances", "models.partial_dependence", "losses.metrics"]
        late += ["plots.trees", "plots.summary"]
        assert not [name for name in late if "arboost." + name in sys.modules]
        X = np.random.default_rng(0).normal(size=(40, 2))
        print(model.importances("permutation", X, X[:, [0]] > 0).argmax())
        print(np.ptp(model.partial_dependence(X, 0).average) > 0.1)
        print(str(model.summary()).count("gain"), model.tree_svg()[:4], model.tree_dot()[:7])
        print(len(model.tree_table()), model._repr_html_()[:4])
        assert not [name for name in late if "arboost." + name not in sys.modules]
        """,
        str(path),
    )
    assert printed.splitlines() == ["0", "True", "1 <svg digraph", "13 <div"]


N_ROWS = 200
RNG = np.random.default_rng(0)
X = pd.DataFrame({"noise": RNG.normal(size=N_ROWS), "x": RNG.random(N_ROWS)})
X.insert(1, "city", RNG.choice(list("abc"), N_ROWS))
X.index = RNG.permutation(N_ROWS)
Y = X["x"].to_numpy() + (X["city"] == "a").to_numpy()
LABELS = np.where(Y > 0.8, "high", "low")


def members(cls=GradientBoostingRegressor):
    return [("a", cls(n_estimators=5)), ("b", cls(n_estimators=3, max_depth=2))]


REGRESSORS = {
    "voting": arboost.VotingRegressor(members()),
    "stacking": arboost.StackingRegressor(members()),
    "bagging": arboost.BaggingRegressor(GradientBoostingRegressor(n_estimators=3), n_estimators=2),
    "pipeline": make_pipeline(FunctionTransformer(), GradientBoostingRegressor(n_estimators=5)),
}
CLASSIFIERS = {
    "voting": arboost.VotingClassifier(members(GradientBoostingClassifier)),
    "hard": arboost.VotingClassifier(members(GradientBoostingClassifier), voting="hard"),
    "stacking": arboost.StackingClassifier(members(GradientBoostingClassifier)),
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name):
    model = REGRESSORS[name].fit(X, Y)
    actual = permutation_importances(model, X, Y, n_repeats=2)
    assert actual.shape == (2, 3)
    noise, city, x = actual.mean(axis=0)
    assert min(city, x) > 0.02 > abs(noise)
    np.testing.assert_array_equal(permutation_importances(model, X, Y, n_repeats=2), actual)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name):
    model = CLASSIFIERS[name].fit(X, LABELS)
    noise, city, x = permutation_importances(model, X, LABELS).mean(axis=0)
    assert min(city, x) > 0.02 > abs(noise)


def test_loaded_ensembles_and_columns_by_name(tmp_path):
    model = REGRESSORS["voting"].fit(X, Y)
    expected = permutation_importances(model, X, Y)
    model.save(tmp_path / "ensemble.arb")
    loaded = arboost.load(tmp_path / "ensemble.arb")
    np.testing.assert_array_equal(permutation_importances(loaded, X, Y), expected)
    turned = X[["x", "city", "noise"]].assign(y=Y)
    np.testing.assert_array_equal(permutation_importances(model, turned, "y"), expected)


def test_equal_to_the_shuffles_inside_a_model():
    model = GradientBoostingRegressor(n_estimators=5).fit(X, Y)
    expected = permutation_importances(model, X, Y, n_repeats=2)
    tables = {
        "pandas": X,
        "polars": pl.from_pandas(X),
        "arrow": pa.Table.from_pandas(X, preserve_index=False),
        "dict": X.to_dict("list"),
        "dicts": X.to_dict("records"),
    }
    for kind, table in tables.items():
        actual = table_increases(model, table, Y, None, Shuffles(n_repeats=2))
        np.testing.assert_allclose(actual, expected, atol=1e-12, err_msg=kind)
    numbers = X[["noise", "x"]].to_numpy()
    model = GradientBoostingRegressor(n_estimators=5).fit(numbers, Y)
    expected = permutation_importances(model, numbers, Y, n_repeats=2)
    for table in (numbers, numbers.tolist(), sparse.csr_matrix(numbers)):
        actual = table_increases(model, table, Y, None, Shuffles(n_repeats=2))
        np.testing.assert_allclose(actual, expected, atol=1e-12)


def test_metrics_weights_and_other_libraries():
    model = LinearRegression().fit(X[["noise", "x"]], Y)
    rows = X[["noise", "x"]]
    weight = RNG.random(N_ROWS)
    mae = permutation_importances(model, rows, Y, metric="mae", sample_weight=weight)
    own = permutation_importances(
        model,
        rows,
        Y,
        sample_weight=weight,
        metric=lambda y, p, w: np.average(abs(y - p), weights=w),
    )
    np.testing.assert_allclose(mae, own)
    with pytest.raises(TypeError, match="a object without a method predict"):
        permutation_importances(object(), rows, Y)
    with pytest.raises(ValueError, match="X lacks the columns 'x' of fit"):
        permutation_importances(model, rows[["noise"]], Y)


def test_plot():
    pytest.importorskip("matplotlib").use("Agg")
    from arboost.plots import plot_importances

    for model in (REGRESSORS["voting"].fit(X, Y), REGRESSORS["pipeline"].fit(X, Y)):
        with pytest.raises(TypeError, match=r'kind="permutation", X=X'):
            plot_importances(model)
        axes = plot_importances(model, kind="permutation", X=X, y=Y)
        assert {text.get_text() for text in axes.get_yticklabels()} == {"noise", "city", "x"}
