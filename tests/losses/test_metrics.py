"""Metrics: equal to scikit-learn's where it has the same metric; errors where a metric misfits."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn import metrics as reference

from arboost import losses
from arboost.losses import metrics
from arboost.losses.links import LINKS
from arboost.losses.metrics import (
    PROBABILITY_METRICS,
    VALUE_METRICS,
    Metric,
    find_metric,
    find_metrics,
)
from arboost.params.suggestions import library_rows, metric_name
from support.fake_losses import LOGISTIC, SOFTMAX, FakeLoss

N = 400


def weights(rng, weighted):
    return rng.uniform(0.1, 3.0, N) if weighted else None


REGRESSION = {
    "rmse": reference.root_mean_squared_error,
    "mse": reference.mean_squared_error,
    "mae": reference.mean_absolute_error,
    "mape": reference.mean_absolute_percentage_error,
    "msle": reference.mean_squared_log_error,
    "rmsle": reference.root_mean_squared_log_error,
    "max_error": lambda y, predicted, sample_weight: reference.max_error(y, predicted),
    "r2": reference.r2_score,
    "explained_variance": reference.explained_variance_score,
    "poisson_deviance": reference.mean_poisson_deviance,
    "gamma_deviance": reference.mean_gamma_deviance,
    "tweedie_deviance": partial(reference.mean_tweedie_deviance, power=1.3),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", REGRESSION)
def test_regression(rng, name, weighted):
    y, score = rng.gamma(2.0, size=N), rng.gamma(2.0, size=(N, 1))
    if name in ("poisson_deviance", "tweedie_deviance", "mape"):
        y[:50] = 0.0
    weight = weights(rng, weighted)
    metric = find_metric(name, FakeLoss(name="tweedie"))
    expected = REGRESSION[name](y, score[:, 0], sample_weight=weight)
    assert metric(y, score, weight) == pytest.approx(expected, rel=1e-12)
    assert metric.name == name
    assert metric.greater_is_better == (name in ("r2", "explained_variance"))


def test_regression_through_a_link(rng):
    y, score = rng.poisson(3.0, N).astype(float), rng.normal(size=(N, 1))
    expected = reference.root_mean_squared_error(y, np.exp(score[:, 0]))
    result = find_metric("rmse", losses.make("poisson"))(y, score, None)
    assert result == pytest.approx(expected, rel=1e-12)


def test_median_absolute_error():
    y, score = np.zeros(4), np.array([[1.0], [-2.0], [3.0], [5.0]])
    metric = find_metric("median_absolute_error", FakeLoss())
    assert metric(y, score, None) == reference.median_absolute_error(y, score[:, 0]) == 2.5
    assert metric(y, score, np.array([1.0, 1.0, 1.0, 2.0])) == 3.0  # as of 1, 2, 3, 5, 5


def test_smape():
    y, score = np.array([0.0, 1.0, 2.0, -1.0]), np.array([[0.0], [3.0], [2.0], [1.0]])
    assert find_metric("smape", FakeLoss())(y, score, None) == pytest.approx((0 + 1 + 0 + 2) / 4)


@pytest.mark.parametrize("name", ["msle", "rmsle"])
def test_logarithms_need_values_above_minus_one(name):
    with pytest.raises(ValueError, match="needs predictions above -1, but the lowest is -2"):
        find_metric(name, FakeLoss())(np.zeros(2), np.array([[0.0], [-2.0]]), None)


BUILT_IN = {
    "squared_error": (losses.make("squared_error"), "rmse", lambda rmse: rmse**2),
    "absolute_error": (losses.make("absolute_error"), "mae", lambda mae: mae),
    "poisson": (losses.make("poisson"), "poisson_deviance", lambda value: value / 2),
    "gamma": (losses.make("gamma"), "gamma_deviance", lambda value: value / 2),
    "tweedie": (
        losses.make("tweedie", tweedie_power=1.3),
        "tweedie_deviance",
        lambda value: value / 2,
    ),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", BUILT_IN)
def test_losses_and_metrics_agree(rng, name, weighted):
    """The core's mean loss equals the NumPy metric that belongs to it."""
    loss, metric, of_metric = BUILT_IN[name]
    y, score = rng.gamma(2.0, size=N), rng.normal(size=(N, 1))
    weight = weights(rng, weighted)
    expected = of_metric(find_metric(metric, loss)(y, score, weight))
    assert find_metric(None, loss)(y, score, weight) == pytest.approx(expected, rel=1e-9)


def test_quantiles_are_scikit_learns(rng):
    y, score = rng.normal(size=N), np.sort(rng.normal(size=(N, 3)), axis=1)
    loss = losses.make("quantile", alpha=[0.1, 0.5, 0.9])
    expected = np.mean(
        [
            reference.mean_pinball_loss(y, score[:, k], alpha=alpha)
            for k, alpha in enumerate([0.1, 0.5, 0.9])
        ]
    )
    assert find_metric("quantile", loss)(y, score, None) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_log_loss_is_scikit_learns(rng, n_outputs):
    loss = losses.make("log_loss", n_outputs=n_outputs)
    score = rng.normal(size=(N, n_outputs))
    y = rng.integers(0, max(n_outputs, 2), N).astype(float)
    expected = reference.log_loss(y, LINKS[loss.link](score))
    assert find_metric("log_loss", loss)(y, score, None) == pytest.approx(expected, rel=1e-12)
    exponential = losses.make("exponential")
    if n_outputs == 1:  # from the probabilities
        expected = reference.log_loss(y, LINKS["logistic_of_double"](score))
        assert find_metric("log_loss", exponential)(y, score, None) == pytest.approx(
            expected, rel=1e-12
        )


@pytest.mark.parametrize(("predicted", "expected"), [(2.0, 1.0), (3.0, 0.0)])
def test_r2_of_constant_y(predicted, expected):
    y = np.full(5, 2.0)
    assert find_metric("r2", FakeLoss())(y, np.full((5, 1), predicted), None) == expected


BINARY = {
    "log_loss": lambda y, p, w: reference.log_loss(y, p, sample_weight=w),
    "auc": lambda y, p, w: reference.roc_auc_score(y, p, sample_weight=w),
    "average_precision": lambda y, p, w: reference.average_precision_score(y, p, sample_weight=w),
    "accuracy": lambda y, p, w: reference.accuracy_score(y, p > 0.5, sample_weight=w),
    "error": lambda y, p, w: reference.zero_one_loss(y, p > 0.5, sample_weight=w),
    "brier": lambda y, p, w: reference.brier_score_loss(y, p, sample_weight=w),
}


def of_labels(function, **options):
    return lambda y, p, w: function(y, p > 0.5, sample_weight=w, **options)


BINARY |= {
    "balanced_accuracy": of_labels(reference.balanced_accuracy_score),
    "f1": of_labels(reference.f1_score),
    "f1_macro": of_labels(reference.f1_score, average="macro"),
    "f1_weighted": of_labels(reference.f1_score, average="weighted"),
    "precision": of_labels(reference.precision_score),
    "precision_macro": of_labels(reference.precision_score, average="macro"),
    "precision_weighted": of_labels(reference.precision_score, average="weighted"),
    "recall": of_labels(reference.recall_score),
    "recall_macro": of_labels(reference.recall_score, average="macro"),
    "recall_weighted": of_labels(reference.recall_score, average="weighted"),
    "matthews": of_labels(reference.matthews_corrcoef),
    "kappa": of_labels(reference.cohen_kappa_score),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("name", BINARY)
def test_binary(rng, name, ties, weighted):
    score = rng.normal(size=(N, 1))
    if ties:
        score = np.round(score, 1)
    y = (score[:, 0] + rng.normal(size=N) > 0.3).astype(float)
    weight = weights(rng, weighted)
    # Another loss than log loss, so that the metric is not the loss's own value.
    metric = find_metric(name, FakeLoss("exponential", "logistic"))
    expected = BINARY[name](y, LINKS["logistic"](score)[:, 1], weight)
    assert metric(y, score, weight) == pytest.approx(expected, rel=1e-12)
    assert metric.greater_is_better == (name not in ("log_loss", "error", "brier"))


def test_auc_sees_beyond_the_last_probability():
    """The probabilities of these scores all round to 1, but their order is perfect."""
    score = np.array([[40.0], [41.0], [42.0], [43.0]])
    assert find_metric("auc", LOGISTIC)(np.array([0.0, 0.0, 1.0, 1.0]), score, None) == 1.0


def one_against_rest(function, y, p, weight):
    classes = np.eye(p.shape[1])[y.astype(int)]
    values = [function(classes[:, k], p[:, k], sample_weight=weight) for k in range(p.shape[1])]
    return np.average(values, weights=np.average(classes, axis=0, weights=weight))


CLASSES = {
    "log_loss": lambda y, p, w: reference.log_loss(y, p, sample_weight=w),
    "auc": lambda y, p, w: one_against_rest(reference.roc_auc_score, y, p, w),
    "average_precision": lambda y, p, w: one_against_rest(
        reference.average_precision_score, y, p, w
    ),
    "accuracy": lambda y, p, w: reference.accuracy_score(y, p.argmax(axis=1), sample_weight=w),
    "error": lambda y, p, w: reference.zero_one_loss(y, p.argmax(axis=1), sample_weight=w),
    "brier": lambda y, p, w: np.average(
        ((p - np.eye(3)[y.astype(int)]) ** 2).sum(axis=1), weights=w
    ),
}


def of_classes(function, **options):
    return lambda y, p, w: function(y, p.argmax(axis=1), sample_weight=w, **options)


CLASSES |= {
    "balanced_accuracy": of_classes(reference.balanced_accuracy_score),
    "f1": of_classes(reference.f1_score, average="macro"),
    "f1_weighted": of_classes(reference.f1_score, average="weighted"),
    "precision": of_classes(reference.precision_score, average="macro"),
    "recall": of_classes(reference.recall_score, average="macro"),
    "recall_weighted": of_classes(reference.recall_score, average="weighted"),
    "matthews": of_classes(reference.matthews_corrcoef),
    "kappa": of_classes(reference.cohen_kappa_score),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CLASSES)
def test_three_classes(rng, name, weighted):
    score = rng.normal(size=(N, 3))
    y = (score + rng.gumbel(size=(N, 3))).argmax(axis=1).astype(float)
    weight = weights(rng, weighted)
    metric = find_metric(name, FakeLoss("other", "softmax", 3))
    expected = CLASSES[name](y, LINKS["softmax"](score), weight)
    assert metric(y, score, weight) == pytest.approx(expected, rel=1e-12)


def test_auc_of_three_classes_is_scikit_learns(rng):
    score = rng.normal(size=(N, 3))
    y = rng.integers(0, 3, N).astype(float)
    p = LINKS["softmax"](score)
    expected = reference.roc_auc_score(y, p, multi_class="ovr", average="weighted")
    assert find_metric("auc", SOFTMAX)(y, score, None) == pytest.approx(expected, rel=1e-12)


def test_class_that_the_evaluation_data_lack(rng):
    """A class without rows has no weight in the mean, and changes no other class."""
    score = rng.normal(size=(N, 3))
    y = rng.integers(0, 2, N).astype(float)
    p = LINKS["softmax"](score)
    values = [reference.roc_auc_score(y == k, p[:, k]) for k in range(2)]
    expected = np.average(values, weights=np.bincount(y.astype(int)))
    assert find_metric("auc", SOFTMAX)(y, score, None) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("f1", 0.0), ("precision", 0.0), ("matthews", 0.0), ("kappa", 0.0), ("balanced_accuracy", 1)],
)
def test_predictions_of_one_class(name, expected):
    """Ratios without rows are 0 and not NaN, which would end the fit."""
    assert find_metric(name, LOGISTIC)(np.zeros(4), np.full((4, 1), -1.0), None) == expected


@pytest.mark.parametrize("name", ["auc", "average_precision"])
@pytest.mark.parametrize("loss", [LOGISTIC, SOFTMAX], ids=["logistic", "softmax"])
def test_one_class_only(name, loss):
    score = np.zeros((4, loss.n_outputs))
    with pytest.raises(ValueError, match=f"{name}.* not defined where all rows are of one class"):
        find_metric(name, loss)(np.zeros(4), score, None)


@pytest.mark.parametrize(
    ("given", "loss", "name"),
    [
        (None, FakeLoss("absolute_error"), "absolute_error"),
        (None, LOGISTIC, "log_loss"),
        ("log_loss", SOFTMAX, "log_loss"),
        ("quantile", FakeLoss("quantile", "ordered", 3), "quantile"),
        ("exponential", FakeLoss("exponential", "logistic_of_double"), "exponential"),
    ],
)
def test_own_value_of_the_loss(given, loss, name):
    metric = find_metric(given, loss, n_threads=7)
    assert metric.name == name
    assert not metric.greater_is_better
    assert metric(np.zeros(2), np.zeros((2, loss.n_outputs)), None) == 1007.0


def largest_error(y, score, weight):
    return np.abs(y - score).max()


def test_function():
    metric = find_metric(largest_error, FakeLoss())
    assert metric == Metric("largest_error", largest_error, greater_is_better=False)
    result = metric(np.array([1.0, 2.0]), np.array([[1.5], [2.0]]), None)
    assert result == 0.5
    assert type(result) is float
    assert find_metric(partial(largest_error), FakeLoss()).name == "partial"


def test_metric_object_is_unchanged():
    metric = Metric("up", largest_error, greater_is_better=True)
    assert find_metric(metric, LOGISTIC) is metric


def test_function_sees_all_outputs_and_weights():
    seen = []
    find_metric(lambda *arrays: float(seen.append(arrays) or 0.0), SOFTMAX)(
        np.zeros(4), np.zeros((4, 3)), np.ones(4)
    )
    ((y, score, weight),) = seen
    assert (y.shape, score.shape, weight.shape) == ((4,), (4, 3), (4,))


def test_function_gets_weights_of_one_where_there_are_none():
    seen = []
    find_metric(lambda y, score, weight: float(seen.append(weight) or 0.0), FakeLoss())(
        np.zeros(4), np.zeros((4, 1)), None
    )
    np.testing.assert_array_equal(seen[0], np.ones(4))


def test_function_cannot_change_the_scores():
    def spoil(y, score, weight):
        score += 1.0
        return 0.0

    scores = np.zeros((4, 1))
    with pytest.raises(ValueError, match="read-only"):
        find_metric(spoil, FakeLoss())(np.zeros(4), scores, None)
    scores += 1.0  # still writeable


@pytest.mark.parametrize("result", [None, "good", True, np.zeros(3), 1j, [0.5]], ids=repr)
def test_result_must_be_a_number(result):
    with pytest.raises(TypeError, match=r"'odd' returned .* must return one number"):
        Metric("odd", lambda y, score, weight: result)(np.zeros(3), np.zeros((3, 1)), None)


@pytest.mark.parametrize("result", [1, np.float32(1), np.array(1.0), np.int64(1)], ids=repr)
def test_results_that_are_numbers(result):
    value = Metric("odd", lambda y, score, weight: result)(np.zeros(3), np.zeros((3, 1)), None)
    assert value == 1.0
    assert type(value) is float


@pytest.mark.parametrize(
    ("name", "loss", "message"),
    [
        ("qqq", LOGISTIC, "no such metric. Use one of log_loss, auc, average_precision"),
        ("auc", FakeLoss(), "does not fit loss='squared_error'. Use one of squared_error, rmse"),
        ("rmse", LOGISTIC, "does not fit loss='log_loss'. Use one of log_loss, auc"),
        ("rmse", FakeLoss("quantile", "ordered", 3), "Use one of quantile, a function"),
        ("tweedie_deviance", FakeLoss("poisson"), "does not fit loss='poisson'"),
        ("huber", FakeLoss(), "does not fit loss='squared_error'"),
        ("lambdarank", LOGISTIC, "GradientBoostingRanker and arboost.rank_metrics"),
    ],
)
def test_names_that_do_not_fit(name, loss, message):
    with pytest.raises(ValueError, match=message):
        find_metric(name, loss)


@pytest.mark.parametrize("given", [3, b"auc", {"auc": 1}], ids=repr)
def test_invalid_types_of_metrics(given):
    with pytest.raises(TypeError, match=r"eval_metric=.* must be a name, a function"):
        find_metric(given, LOGISTIC)


def test_several():
    actual = find_metrics(["auc", largest_error, "log_loss"], LOGISTIC)
    assert [metric.name for metric in actual] == ["auc", "largest_error", "log_loss"]
    assert [metric.name for metric in find_metrics("error", LOGISTIC)] == ["error"]
    assert [metric.name for metric in find_metrics(None, LOGISTIC)] == ["log_loss"]


def test_several_of_one_name():
    with pytest.raises(ValueError, match="2 metrics called 'auc'"):
        find_metrics(["auc", "log_loss", "auc"], LOGISTIC)
    with pytest.raises(ValueError, match=r"eval_metric=\[\] is not allowed"):
        find_metrics([], LOGISTIC)


@pytest.mark.parametrize(
    ("name", "y", "predicted", "message"),
    [
        ("poisson_deviance", 1.0, 0.0, "needs predictions above 0, but the lowest is 0"),
        ("poisson_deviance", -1.0, 1.0, "needs y of at least 0, but the lowest is -1"),
        ("gamma_deviance", 0.0, 1.0, "needs y above 0, but the lowest is 0"),
        ("gamma_deviance", 1.0, -2.0, "needs predictions above 0, but the lowest is -2"),
    ],
)
def test_values_outside_the_domain(name, y, predicted, message):
    with pytest.raises(ValueError, match=message):
        find_metric(name, FakeLoss())(np.full(3, y), np.full((3, 1), predicted), None)


def test_auc_takes_about_one_sort(rng, monkeypatch):
    sorts = []
    argsort = np.argsort
    monkeypatch.setattr(metrics.np, "argsort", lambda *a, **k: sorts.append(1) or argsort(*a, **k))
    find_metric("auc", LOGISTIC)((rng.random(N) < 0.5).astype(float), rng.normal(size=(N, 1)), None)
    assert sorts == [1]


@pytest.mark.parametrize(
    ("given", "loss", "name"),
    [
        ("AUC", LOGISTIC, "auc"),
        ("roc_auc", LOGISTIC, "auc"),
        ("logloss", FakeLoss("exponential", "logistic"), "log_loss"),
        ("neg_log_loss", LOGISTIC, "log_loss"),
        ("F1", LOGISTIC, "f1"),
        ("MCC", SOFTMAX, "matthews"),
        ("merror", SOFTMAX, "error"),
        ("mse", FakeLoss(), "mse"),
        ("l2", FakeLoss(), "mse"),
        ("RMSE", FakeLoss(), "rmse"),
        ("neg_mean_absolute_error", FakeLoss(), "mae"),
        ("squared_error", FakeLoss("huber"), "mse"),
        (reference.roc_auc_score, LOGISTIC, "auc"),
        (reference.mean_squared_error, FakeLoss(), "mse"),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),  # no addresses of functions
)
def test_aliases(given, loss, name):
    assert find_metric(given, loss).name == name


def test_no_name_has_two_meanings():
    """A name in any case and spelling is that of one metric, or of none."""
    for row in library_rows("metrics"):
        for name in row.names():
            assert metric_name(name) == (row.ours or None), name


def test_every_metric_has_a_row_of_names():
    names = {row.ours for row in library_rows("metrics") if row.ours}
    own = {"quantile", "huber"}  # losses that are metrics elsewhere; here of their own fits only
    assert names == {*VALUE_METRICS, *PROBABILITY_METRICS, *own}
    assert all(metric_name(name) == name for name in names)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("function", "loss"),
    [
        (reference.jaccard_score, LOGISTIC),
        (partial(reference.fbeta_score, beta=2.0), LOGISTIC),
        (partial(reference.f1_score, average="micro"), SOFTMAX),
        (partial(reference.log_loss, labels=[0, 1]), LOGISTIC),
        (partial(reference.roc_auc_score, multi_class="ovr"), SOFTMAX),
        (partial(reference.mean_pinball_loss, alpha=0.2), FakeLoss()),
        (reference.d2_absolute_error_score, FakeLoss()),
    ],
    ids=lambda one: getattr(getattr(one, "func", one), "__name__", None),
)
def test_functions_of_scikit_learn(rng, function, loss, weighted):
    name = getattr(function, "func", function).__name__
    score = rng.normal(size=(N, loss.n_outputs))
    weight = weights(rng, weighted)
    if loss.link == "identity":
        y = predicted = score[:, 0]
        y = y + rng.normal(size=N)
    else:
        y = rng.integers(0, max(loss.n_outputs, 2), N).astype(float)
        predicted = LINKS[loss.link](score)
        if name in ("log_loss", "roc_auc_score"):
            predicted = predicted[:, 1] if loss is LOGISTIC else predicted
        else:
            predicted = predicted.argmax(axis=1)
    metric = find_metric(function, loss)
    assert metric.name == name
    assert metric.greater_is_better == name.endswith("_score")
    expected = function(y, predicted, sample_weight=weight)
    assert metric(y, score, weight) == pytest.approx(expected, rel=1e-12)


def test_objects_of_scikit_learn_that_are_not_metrics():
    with pytest.raises(TypeError, match="Pass the metric function itself"):
        find_metric(reference.get_scorer("f1"), LOGISTIC)
    with pytest.raises(TypeError, match="needs raw scores"):
        find_metric(reference.hinge_loss, LOGISTIC)
    with pytest.raises(ValueError, match="does not fit loss='quantile'"):
        find_metric(reference.max_error, FakeLoss("quantile", "ordered", 3))
    with pytest.raises(ValueError, match="does not fit loss='quantile'"):
        find_metric(reference.d2_absolute_error_score, FakeLoss("quantile", "ordered", 3))
