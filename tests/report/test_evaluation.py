"""model.evaluate: the scores of the report, metrics by name, classes, weights and notes."""

import numpy as np
import pytest

import arboost
from arboost.errors import ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
AMOUNT = X[:, 0] + 0.3 * RNG.normal(size=400)
LABEL = np.where(X[:, 0] + 0.5 * RNG.normal(size=400) > 0, "yes", "no")


@pytest.fixture(scope="module")
def regressor():
    return arboost.GradientBoostingRegressor(n_estimators=10).fit(X[:200], AMOUNT[:200])


@pytest.fixture(scope="module")
def classifier():
    return arboost.RandomForestClassifier(20, random_state=0).fit(X[:200], LABEL[:200])


def test_scores_are_those_of_the_report(regressor, classifier):
    for model, y in ((regressor, AMOUNT), (classifier, LABEL)):
        evaluation = model.evaluate(X[200:], y[200:])
        payload = model.report(X[200:], y[200:]).payload["models"][0]["scores"]
        assert [score.name for score in evaluation.scores] == [row["name"] for row in payload]
        for score, row in zip(evaluation.scores, payload, strict=True):
            for name in ("value", "low", "high", "baseline"):
                assert getattr(score, name) == pytest.approx(row[name], rel=1e-3)


def test_loaded_models_and_threads_give_the_same_scores(classifier, tmp_path):
    classifier.save(tmp_path / "m.arb")
    model = arboost.load(tmp_path / "m.arb")
    evaluations = [classifier.evaluate(X, LABEL, metrics="kappa")]
    evaluations += [model.evaluate(X, LABEL, metrics="kappa", n_jobs=jobs) for jobs in (1, 2, 4)]
    assert len(set(map(repr, evaluations))) == 1


def test_metrics_by_name(regressor, classifier):
    evaluation = regressor.evaluate(X, AMOUNT, metrics=["mape", "median_absolute_error"])
    assert [score.name for score in evaluation.scores[-2:]] == ["mape", "median_absolute_error"]
    score = classifier.evaluate(X, LABEL, metrics="kappa").scores[-1]
    assert score.low < score.value < score.high
    assert score.baseline == 0
    for model, y, name in ((regressor, AMOUNT, "kappa"), (classifier, LABEL, "accurac")):
        with pytest.raises(ParameterError, match=name):
            model.evaluate(X, y, metrics=name)


def test_classes(classifier):
    evaluation = classifier.evaluate(X, LABEL)
    predicted = classifier.predict(X)
    for result in evaluation.classes:
        true, chosen = result.label == LABEL, result.label == predicted
        assert result.rows == true.sum()
        assert result.precision == pytest.approx((true & chosen).sum() / chosen.sum())
        assert result.recall == pytest.approx((true & chosen).sum() / true.sum())
    assert [result.label for result in evaluation.classes] == ["no", "yes"]
    assert "the most frequent class" in evaluation.baseline


def test_weights_and_missing_targets(regressor):
    weight = np.ones(400)
    weight[:100] = 0
    y = AMOUNT.copy()
    y[100] = np.nan
    evaluation = regressor.evaluate(X, y, sample_weight=weight)
    assert evaluation.n_rows == 299
    assert len(evaluation.notes) == 2
    expected = np.sqrt(np.mean((regressor.predict(X[101:]) - AMOUNT[101:]) ** 2))
    assert evaluation.scores[0].value == pytest.approx(expected)


def test_ensembles():
    members = [
        ("tree", arboost.DecisionTreeRegressor()),
        ("forest", arboost.RandomForestRegressor(5)),
    ]
    model = arboost.VotingRegressor(members).fit(X, AMOUNT)
    names = [score.name for score in model.evaluate(X, AMOUNT).scores]
    assert names == ["RMSE", "MAE", "R²"]
    assert [score.name for score in model.to_predictor().evaluate(X, AMOUNT).scores] == names


@pytest.mark.parametrize(
    ("y", "task"),
    [
        ([0, 1, 1, 0], "classification"),
        (["a", "b"], "classification"),
        ([True, False], "classification"),
        ([1.5, 2.0], "regression"),
        (range(100), "regression"),
    ],
)
def test_inferred_task(y, task):
    assert arboost.infer_task(y) == task
