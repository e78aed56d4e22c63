"""Metrics by the names of other libraries, and as functions of scikit-learn."""

from functools import partial

import pytest
from sklearn import metrics as reference

from arboost.losses.metric_functions import PROBABILITY_METRICS, VALUE_METRICS
from arboost.losses.metrics import find
from arboost.model.links import LINKS
from arboost.names.answers import metric_name
from arboost.names.losses_and_metrics import METRICS
from support.fake_losses import LOGISTIC, SOFTMAX, FakeLoss

N = 400


def weights(rng, weighted):
    return rng.uniform(0.1, 3.0, N) if weighted else None


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
    assert find(given, loss).name == name


def test_no_name_has_two_meanings():
    """A name in any case and spelling is that of one metric, or of none."""
    for row in METRICS:
        for name in row.names():
            assert metric_name(name) == (row.ours or None), name


def test_every_metric_has_a_row_of_names():
    names = {row.ours for row in METRICS if row.ours}
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
    metric = find(function, loss)
    assert metric.name == name
    assert metric.greater_is_better == name.endswith("_score")
    expected = function(y, predicted, sample_weight=weight)
    assert metric(y, score, weight) == pytest.approx(expected, rel=1e-12)


def test_what_scikit_learn_has_that_is_no_metric_of_scores():
    with pytest.raises(TypeError, match="Pass the metric function itself"):
        find(reference.get_scorer("f1"), LOGISTIC)
    with pytest.raises(TypeError, match="needs raw scores"):
        find(reference.hinge_loss, LOGISTIC)
    with pytest.raises(ValueError, match="does not fit loss='quantile'"):
        find(reference.max_error, FakeLoss("quantile", "ordered", 3))
    with pytest.raises(ValueError, match="does not fit loss='quantile'"):
        find(reference.d2_absolute_error_score, FakeLoss("quantile", "ordered", 3))
