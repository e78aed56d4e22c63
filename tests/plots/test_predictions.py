"""Plots of predictions and their truth: calibration and residuals."""

from __future__ import annotations

import numpy as np
import pytest

import arboost
from arboost import plots
from support.fitted_models import fitted, table
from support.plotted import legend_labels, render


class Known:
    """A classifier with given probabilities."""

    def __init__(self, classes, proba):
        self.classes_, self.proba = np.asarray(classes), np.asarray(proba)

    def predict_proba(self, X):
        return self.proba[: len(X)]


def test_calibration_is_the_share_in_each_bin():
    second = np.repeat([0.15, 0.85], [20, 10])
    model = Known(["no", "yes"], np.c_[1 - second, second])
    y = np.where([i in (0, 1) or 20 <= i < 27 for i in range(30)], "yes", "no")
    axes = render(plots.plot_calibration(model, np.zeros((30, 1)), y))
    curve = axes.lines[-1]
    np.testing.assert_allclose(curve.get_xdata(), [0.15, 0.85])
    np.testing.assert_allclose(curve.get_ydata(), [0.1, 0.7])
    assert axes.get_xlabel() == "predicted probability of yes"
    counts = axes.child_axes[0].patches[0].get_data().values
    assert counts.tolist() == [0, 20, 0, 0, 0, 0, 0, 0, 10, 0]


def test_calibration_of_many_classes_pools_the_small_ones(rng):
    proba = rng.dirichlet(np.ones(12), 500)
    codes = np.array([rng.choice(12, p=one) for one in proba])
    axes = render(plots.plot_calibration(Known(range(12), proba), proba, codes))
    assert len(legend_labels(axes)) == 6
    assert legend_labels(axes)[-1] == "7 others"
    assert legend_labels(axes)[0] == str(np.bincount(codes).argmax())


def test_calibration_weights_rows():
    model = Known([0, 1], np.full((4, 2), 0.5))
    axes = plots.plot_calibration(model, np.zeros((4, 1)), [0, 0, 0, 1], sample_weight=[1, 1, 1, 3])
    assert axes.lines[-1].get_ydata().tolist() == [0.5]


def test_calibration_of_fitted_and_loaded_models(rng):
    frame, y = table(rng)
    model = arboost.GradientBoostingClassifier(n_estimators=5).fit(frame, y > 5)
    one, two = (render(plots.plot_calibration(m, frame, y > 5)) for m in (model, model.model_))
    assert one.lines[-1].get_ydata().tolist() == two.lines[-1].get_ydata().tolist()
    with pytest.raises(TypeError, match="use plot_residuals for a regressor"):
        plots.plot_calibration(fitted("boosted", rng)[0], frame, y)
    with pytest.raises(ValueError, match="y holds labels that model does not have"):
        plots.plot_calibration(model, frame, np.full(len(frame), "maybe"))


def test_residuals_over_predictions(rng):
    model, frame = fitted("boosted", rng)
    y = model.predict(frame) + rng.normal(size=len(frame))
    axes = render(plots.plot_residuals(model, frame, y))
    points = axes.collections[0].get_offsets()
    np.testing.assert_allclose(points[:, 0], model.predict(frame))
    np.testing.assert_allclose(points[:, 1], y - model.predict(frame))
    assert legend_labels(axes) == ["mean residual"]


def test_residuals_of_forests_have_an_interval(rng):
    frame, y = table(rng)
    forest = arboost.RandomForestRegressor(20, quantiles=True, random_state=0).fit(frame, y)
    low, high = forest.predict_quantiles(frame, [0.1, 0.9]).T
    share = np.mean((low <= y) & (y <= high))
    for model in (forest, forest.model_):
        axes = render(plots.plot_residuals(model, frame, y, coverage=0.8))
        assert legend_labels(axes)[0] == f"80% interval, covers {share:.0%}"


def test_residuals_of_boosted_quantiles_have_an_interval(rng):
    model, frame = fitted("quantiles", rng)
    low, high = model.predict(frame).T
    axes = render(plots.plot_residuals(model, frame, (low + high) / 2))
    assert legend_labels(axes)[0] == "60% interval, covers 100%"
    assert axes.get_xlabel() == "predicted quantile 0.2"


def test_residuals_of_several_targets(rng):
    model, frame = fitted("targets", rng)
    y = model.predict(frame)
    with pytest.raises(ValueError, match="draws one target, but the model has 2"):
        plots.plot_residuals(model, frame, y)
    assert (
        render(plots.plot_residuals(model, frame, y, target_index=1)).get_xlabel() == "prediction"
    )


def test_residuals_of_few_rows_and_of_classifiers(rng):
    model, frame = fitted("boosted", rng)
    render(plots.plot_residuals(model, frame[:1], [3.0]))
    render(plots.plot_residuals(fitted("constant", rng)[0], frame[:5], np.ones(5)))
    with pytest.raises(TypeError, match="Use plot_calibration"):
        plots.plot_residuals(fitted("two", rng)[0], frame, np.ones(len(frame)))
    with pytest.raises(ValueError, match=r"coverage=1\.5 is not allowed"):
        plots.plot_residuals(model, frame, np.ones(len(frame)), coverage=1.5)
