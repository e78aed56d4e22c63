"""Files and SHAP values of bagging, voting and stacks of arboost's own members."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

import arboost as ab
from arboost import ModelFormatError
from arboost.data.schema import Schema
from arboost.models.ensemble import ensemble_bytes, read_ensemble

N_ROWS = 150
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "x": RNG.normal(size=N_ROWS),
        "city": RNG.choice(["Rome", "Oslo", None], N_ROWS),
        "z": RNG.normal(size=N_ROWS),
        "day": pd.date_range("2024-01-01", periods=N_ROWS),
    }
)
NUMBERS = TABLE["x"] + TABLE["city"].eq("Rome") + 0.1 * RNG.normal(size=N_ROWS)
THREE = np.where(NUMBERS > 1, "hi", np.where(NUMBERS > 0, "mid", "low"))
TWO = np.where(NUMBERS > 0, 7, 2)


def trees(kind):
    forest = getattr(ab, f"RandomForest{kind}")(n_estimators=4, random_state=0)
    return [("tree", getattr(ab, f"DecisionTree{kind}")(max_depth=4)), ("forest", forest)]


def members(kind):
    boosted = getattr(ab, f"GradientBoosting{kind}")(n_estimators=5)
    return [*trees(kind), ("boosted", boosted)]


FOREST = ab.RandomForestClassifier(n_estimators=3, random_state=0)
CASES = {
    "bags": (ab.BaggingClassifier(n_estimators=3, random_state=0), TABLE, THREE),
    "bags of integers": (ab.BaggingClassifier(n_estimators=3, random_state=0), TABLE, TWO),
    "bags of features": (
        ab.BaggingRegressor(n_estimators=4, max_features=0.5, bootstrap_features=True),
        TABLE,
        NUMBERS,
    ),
    "bags of targets": (
        ab.BaggingRegressor(n_estimators=3),
        TABLE[["x", "z"]].to_numpy(),
        np.column_stack([NUMBERS, -NUMBERS]),
    ),
    "bags of boosters": (
        ab.BaggingClassifier(ab.GradientBoostingClassifier(n_estimators=3), n_estimators=2),
        TABLE,
        TWO,
    ),
    "bagging by vote": (
        ab.BaggingClassifier(
            ab.DecisionTreeClassifier(max_depth=3), n_estimators=5, voting="hard", max_features=3
        ),
        TABLE,
        THREE,
    ),
    "hard vote": (ab.VotingClassifier(members("Classifier"), weights=[1, 2, 2]), TABLE, THREE),
    "soft vote": (
        ab.VotingClassifier(members("Classifier"), voting="soft", weights=[1, 2, 3]),
        TABLE,
        TWO,
    ),
    "mean": (ab.VotingRegressor(members("Regressor"), weights=[1, 2, 3]), TABLE, NUMBERS),
    "line": (ab.StackingRegressor(members("Regressor"), cv=2), TABLE, NUMBERS),
    "log-odds": (ab.StackingClassifier(trees("Classifier"), cv=2), TABLE, TWO),
    "softmax": (ab.StackingClassifier(members("Classifier"), cv=2), TABLE, THREE),
    "final forest": (ab.StackingClassifier(members("Classifier"), FOREST, cv=2), TABLE, THREE),
    "passthrough": (
        ab.StackingRegressor(
            members("Regressor"),
            ab.GradientBoostingRegressor(n_estimators=3, loss="poisson"),
            cv=2,
            passthrough=True,
        ),
        TABLE,
        np.abs(NUMBERS),
    ),
    "numbers passed": (
        ab.StackingRegressor(trees("Regressor"), Ridge(), cv=2, passthrough=True),
        TABLE[["x", "z"]],
        NUMBERS,
    ),
    "prefit": (
        ab.StackingClassifier([("one", FOREST.fit(TABLE, THREE))], cv="prefit"),
        TABLE,
        THREE,
    ),
    "frozen": (
        ab.VotingClassifier([("one", FrozenEstimator(FOREST.fit(TABLE, TWO)))], voting="soft"),
        TABLE,
        TWO,
    ),
}
LINEAR = ["bags", "bags of integers", "bags of features", "bags of targets", "mean", "line"]


def fitted(name):
    estimator, X, y = CASES[name]
    if name in ("prefit", "frozen"):
        FOREST.fit(X, y)
    return estimator.fit(X, y), X


@pytest.mark.parametrize("name", CASES)
def test_files_predict_as_the_estimator(name, tmp_path):
    estimator, X = fitted(name)
    estimator.save(tmp_path / "ensemble.arb")
    loaded = ab.load(tmp_path / "ensemble.arb")
    assert isinstance(loaded, ab.EnsemblePredictor)
    copies = [loaded, pickle.loads(pickle.dumps(loaded)), ab.load(_content(loaded, tmp_path))]
    for model in copies:
        assert model.kind in type(estimator).__name__.lower()
        predicted = estimator.predict(X)
        if predicted.dtype.kind == "f":
            np.testing.assert_allclose(model.predict(X), predicted, rtol=1e-12)
        else:
            np.testing.assert_array_equal(model.predict(X), predicted)
        if hasattr(estimator, "predict_proba"):
            shares = estimator.predict_proba(X)
            np.testing.assert_allclose(model.predict_proba(X), shares, atol=1e-12)
    if isinstance(X, pd.DataFrame):
        assert loaded.feature_names == tuple(X)
        np.testing.assert_array_equal(loaded.predict(X[X.columns[::-1]]), loaded.predict(X))
        np.testing.assert_array_equal(loaded.predict(X.iloc[5].to_dict()), loaded.predict(X)[5:6])


def _content(model, folder):
    model.save(folder / "again.arb")
    return (folder / "again.arb").read_bytes()


@pytest.mark.parametrize("name", LINEAR)
def test_shap_values_sum_to_predictions(name):
    estimator, X = fitted(name)
    is_classifier = hasattr(estimator, "predict_proba")
    expected = estimator.predict_proba(X) if is_classifier else estimator.predict(X)
    for background in (None, X[:10]):
        values = estimator.shap_values(X[:20], background=background)
        start = estimator.expected_value(background=background)
        assert values.shape[:2] == (20, X.shape[1])
        np.testing.assert_allclose(values.sum(axis=1) + start, expected[:20], atol=1e-9)


def test_shap_values_of_log_odds():
    estimator, X = fitted("log-odds")
    sums = estimator.shap_values(X).sum(axis=1) + estimator.expected_value()
    np.testing.assert_allclose(sums, estimator.decision_function(X), atol=1e-9)


@pytest.mark.parametrize(
    "name", ["bagging by vote", "hard vote", "soft vote", "softmax", "final forest"]
)
def test_sums_that_do_not_exist_are_refused(name):
    estimator, X = fitted(name)
    text = "final estimator is not a linear" if name == "final forest" else "the member '"
    if name == "final forest":
        estimator = ab.StackingClassifier(trees("Classifier"), FOREST, cv=2).fit(X, THREE)
    with pytest.raises(TypeError, match=f"shap_values is not available for .*{text}"):
        estimator.shap_values(X)


@pytest.mark.parametrize("asked", ["save", "shap_values", "expected_value"])
def test_other_members_are_named(asked, tmp_path):
    X, y = TABLE[["x", "z"]], TWO
    arguments = {"save": (tmp_path / "a",), "shap_values": (X,), "expected_value": ()}[asked]
    tree = ab.DecisionTreeClassifier()
    for estimator, named in (
        (ab.BaggingClassifier(GaussianNB()), r"'member 0' \(GaussianNB\)"),
        (ab.VotingClassifier([("a", tree), ("bayes", GaussianNB())]), r"'bayes' \(GaussianNB\)"),
        (ab.VotingClassifier([("piped", make_pipeline(tree))]), r"'piped' \(Pipeline\)"),
        (
            ab.StackingClassifier([("a", tree)], LogisticRegression(solver="liblinear")),
            r"'final_estimator' \(LogisticRegression\)",
        ),
    ):
        with pytest.raises(TypeError, match=f"{asked} is not available for an ensemble .*{named}"):
            getattr(estimator.fit(X, y), asked)(*arguments)


def test_what_an_ensemble_file_is_not_for(tmp_path):
    estimator, X = fitted("hard vote")
    with pytest.raises(ValueError, match="ensembles have no JSON form"):
        estimator.save(tmp_path / "vote.json")
    estimator.save(tmp_path / "vote.arb")
    with pytest.raises(TypeError, match="predict_proba is not available for a hard vote"):
        ab.load(tmp_path / "vote.arb").predict_proba(X)
    with pytest.raises(TypeError, match=r"init_model=.*is not allowed"):
        ab.GradientBoostingClassifier().fit(X, THREE, init_model=tmp_path / "vote.arb")
    with pytest.raises(ModelFormatError, match="not an arboost model"):
        ab.load(tmp_path / "vote.arb", mmap=True)


@pytest.fixture(scope="module")
def small():
    estimator = ab.VotingRegressor([("a", ab.DecisionTreeRegressor(max_depth=1))])
    return estimator.fit(TABLE[["x"]], NUMBERS)._ensemble("save")


def test_every_damaged_byte_is_noticed(small):
    data = ensemble_bytes(small)
    assert ensemble_bytes(read_ensemble(data, "it")) == data
    for place in range(0, len(data), 7):
        broken = bytearray(data)
        broken[place] ^= 1
        with pytest.raises(ModelFormatError):
            read_ensemble(bytes(broken), "it")
    for end in (0, 8, 100, len(data) - 1):
        with pytest.raises(ModelFormatError):
            read_ensemble(data[:end], "it")


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "ranker"},
        {"n_columns": 0},
        {"n_columns": 2**28},  # would allocate 2 GiB a row
        {"schema": Schema(names=("x", "y"), n_features=1)},
        {"schema": Schema(names=("x", "x"), n_features=2)},
        {"divisor": 0.0},
        {"classes": np.array(["a", "b"])},
        {"ensemble_members": ()},
        {"passthrough": 1},
    ],
)
def test_inconsistent_files(small, change):
    from dataclasses import replace

    with pytest.raises(ModelFormatError):
        read_ensemble(ensemble_bytes(replace(small, **change)), "it")


@pytest.mark.parametrize(
    "change",
    [
        {"output": "votes"},
        {"features": np.array([1])},
        {"features": np.array([0, 0])},
        {"taken": np.array([-1])},
        {"places": np.array([3])},
        {"places": np.array([0.5])},
    ],
)
def test_inconsistent_members(small, change):
    from dataclasses import replace

    (member,) = small.ensemble_members
    broken = replace(small, ensemble_members=(replace(member, **change),))
    with pytest.raises(ModelFormatError):
        read_ensemble(ensemble_bytes(broken), "it")


def test_loading_needs_no_scikit_learn(tmp_path):
    estimator, _ = fitted("mean")
    estimator.save(tmp_path / "mean.arb")
    code = (
        "import sys, arboost; model = arboost.load(sys.argv[1]); "
        "print(model.predict({'x': 1.0, 'city': 'Rome', 'z': 0.0, 'day': None}).shape); "
        "assert not any(name.partition('.')[0] == 'sklearn' for name in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "mean.arb")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "(1,)\n"


def test_classes_load_their_files(tmp_path):
    X, y = np.arange(40.0).reshape(-1, 2), np.arange(20.0)
    trees = [("tree", ab.DecisionTreeRegressor())]
    for model in (
        ab.BaggingRegressor(n_estimators=2),
        ab.VotingRegressor(trees),
        ab.StackingRegressor(trees),
    ):
        path = tmp_path / "model.arb"
        model.fit(X, y).save(path)
        loaded = type(model).load(path)
        np.testing.assert_allclose(loaded.predict(X), model.predict(X))
        np.testing.assert_allclose(type(model).load(path.read_bytes()).predict(X), model.predict(X))
        with pytest.raises(ValueError, match=r"model.arb' holds no BaggingClassifier: it holds"):
            ab.BaggingClassifier.load(path)
    ab.DecisionTreeRegressor().fit(X, y).save(path)
    with pytest.raises(ValueError, match="holds no VotingRegressor: it holds Predictor"):
        ab.VotingRegressor.load(path)


@pytest.mark.parametrize(
    "ensemble",
    [
        ab.BaggingClassifier(n_estimators=2),
        ab.VotingClassifier([("a", ab.DecisionTreeClassifier())], voting="hard"),
        ab.VotingClassifier(trees("Classifier"), voting="soft"),
    ],
    ids=["bagging", "hard", "soft"],
)
def test_one_class(ensemble, tmp_path):
    X = np.arange(20.0)[:, np.newaxis]
    with pytest.warns(ab.DataWarning, match="one class only, 'only'") as caught:
        ensemble.fit(X, ["only"] * 20)
    assert len(caught) == 1
    ensemble.save(tmp_path / "one.arb")
    loaded = ab.load(tmp_path / "one.arb")
    assert set(loaded.predict(X)) == {"only"} == set(ensemble.predict(X))
