"""Plots of fitted models: the numbers of the model, the user's values, readable lists."""

from __future__ import annotations

import importlib.util

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import arboost
from arboost import plots
from support.drawn_trees import HOSTILE
from support.fitted_models import KINDS, fitted, table
from support.paths import ROOT
from support.plotted import drawn, legend, names, overlaps, wide

mpl.use("Agg")

IMAGES = ROOT / "docs" / "images"


@pytest.fixture(autouse=True)
def _closed():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


# Importances.


def test_importances_are_bars_with_the_largest_first(rng):
    model, _ = fitted("boosted", rng)
    axes = drawn(plots.plot_importances(model))
    gain = model.importances()
    lengths = [bar.get_width() for bar in axes.patches]
    np.testing.assert_allclose(lengths, np.sort(gain)[::-1] / gain.sum())
    assert names(axes) == [model.feature_names[i] for i in np.argsort(-gain, kind="stable")]


def test_importances_of_many_features_end_with_the_others(rng):
    X, y = wide(rng)
    model = arboost.GradientBoostingRegressor(n_estimators=5).fit(X, y)
    axes = drawn(plots.plot_importances(model))
    assert len(names(axes)) == 21
    assert names(axes)[-1] == "180 others"
    assert sum(bar.get_width() for bar in axes.patches) == pytest.approx(1.0)
    assert not overlaps(axes.get_yticklabels())
    assert names(plots.plot_importances(model, n_features=2))[-1] == "198 others"


def test_importances_of_rows(rng):
    model, frame = fitted("boosted", rng)
    y = model.predict(frame)
    for options in ({"kind": "permutation", "y": y}, {"kind": "shap"}):
        axes = drawn(plots.plot_importances(model, X=frame, **options))
        largest = np.sort(model.importances(X=frame, **options))[::-1]
        np.testing.assert_allclose([bar.get_width() for bar in axes.patches], largest)


def test_importances_of_nothing(rng):
    model, _ = fitted("constant", rng)
    assert {bar.get_width() for bar in drawn(plots.plot_importances(model)).patches} == {0.0}


def test_names_that_begin_alike_stay_apart():
    long = "median household income of the census tract in thousand USD "
    frame = pd.DataFrame({long + "a": [0.0, 1.0, 2.0], long + "b": [2.0, 1.0, 0.0]})
    axes = plots.plot_importances(arboost.DecisionTreeRegressor().fit(frame, [0, 1, 2]))
    assert len(set(names(axes))) == 2
    assert max(map(len, names(axes))) <= 32


# Learning curves.


def test_learning_curves_of_sets_and_metrics(rng):
    frame, y = table(rng)
    model = arboost.GradientBoostingClassifier(
        n_estimators=30, n_iter_no_change=3, eval_metric=["log_loss", "auc"]
    )
    sets = [(frame, y > 5), (frame[::2], rng.permutation(y[::2]) > 5)]
    model.fit(frame, y > 5, eval_set=sets, eval_names=["train", "shuffled"])
    first = plots.plot_learning_curves(model)
    panels = first.figure.axes
    assert first is panels[0]
    assert [panel.get_ylabel() for panel in panels] == ["log_loss", "auc"]
    for panel, metric in zip(panels, ["log_loss", "auc"], strict=True):
        train, shuffled, mark = drawn(panel).lines
        assert train.get_ydata().tolist() == model.evals_result_["train"][metric]
        assert shuffled.get_ydata().tolist() == model.evals_result_["shuffled"][metric]
        assert mark.get_xdata() == [model.best_iteration_ + 1] * 2
    assert legend(panels[0]) == ["train", "shuffled", f"kept: {model.n_iter_} rounds"]


def test_learning_curves_mark_a_best_round_that_is_not_kept(rng):
    frame, y = table(rng)
    model = arboost.GradientBoostingRegressor(n_estimators=30)
    model.fit(frame, y, eval_set=[(frame, rng.permutation(y))])
    assert "(the model has 30)" in legend(plots.plot_learning_curves(model))[-1]


def test_learning_curves_of_a_search_mark_its_best_round(rng):
    """The fit after the search has more rounds, of a lower learning rate."""
    frame, y = table(rng)
    model = arboost.GradientBoostingRegressor().fit(frame, y)
    axes = drawn(plots.plot_learning_curves(model))
    curve, mark = axes.lines
    best = int(np.argmin(curve.get_ydata()))
    assert mark.get_xdata() == [best + 1] * 2
    assert model.n_iter_ > best + 1
    assert f"(the model has {model.n_iter_})" in legend(axes)[-1]


def test_learning_curves_of_continued_training(rng):
    frame, y = table(rng)
    first = arboost.GradientBoostingRegressor(n_estimators=4).fit(frame, y)
    model = arboost.GradientBoostingRegressor(n_estimators=3)
    model.fit(frame, y, eval_set=[(frame, y)], eval_names=["_train"], init_model=first)
    axes = drawn(plots.plot_learning_curves(model))
    assert axes.lines[-1].get_xdata() == [3, 3]
    assert legend(axes)[0] == " _train"


def test_learning_curves_of_folds(rng):
    frame, y = table(rng)
    found = arboost.cv(arboost.GradientBoostingRegressor(n_estimators=4), frame, y, folds=3)
    axes = drawn(plots.plot_learning_curves(found))
    assert len(axes.lines) == 3 + 1 + 1
    np.testing.assert_allclose(axes.lines[3].get_ydata(), found.mean["squared_error"])


def test_learning_curves_that_are_not_there(rng):
    from matplotlib import pyplot
    from sklearn.exceptions import NotFittedError

    model, frame = fitted("boosted", rng)
    with pytest.raises(TypeError, match="a loaded model has no curves"):
        plots.plot_learning_curves(model)
    booster = arboost.GradientBoostingRegressor(n_estimators=2)
    with pytest.raises(NotFittedError):
        plots.plot_learning_curves(booster)
    booster.fit(frame, model.predict(frame))
    with pytest.raises(ValueError, match=r"Pass eval_set=\[\(X_val, y_val\)\] to fit"):
        plots.plot_learning_curves(booster)
    booster.fit(frame, model.predict(frame), eval_set=[(frame, model.predict(frame))])
    with pytest.raises(ValueError, match="ax holds 2 axes, but the fit has 1 metrics"):
        plots.plot_learning_curves(booster, pyplot.subplots(2)[1])


# Calibration.


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
    axes = drawn(plots.plot_calibration(model, np.zeros((30, 1)), y))
    curve = axes.lines[-1]
    np.testing.assert_allclose(curve.get_xdata(), [0.15, 0.85])
    np.testing.assert_allclose(curve.get_ydata(), [0.1, 0.7])
    assert axes.get_xlabel() == "predicted probability of yes"
    counts = axes.child_axes[0].patches[0].get_data().values
    assert counts.tolist() == [0, 20, 0, 0, 0, 0, 0, 0, 10, 0]


def test_calibration_of_many_classes_pools_the_small_ones(rng):
    proba = rng.dirichlet(np.ones(12), 500)
    codes = np.array([rng.choice(12, p=one) for one in proba])
    axes = drawn(plots.plot_calibration(Known(range(12), proba), proba, codes))
    assert len(legend(axes)) == 6
    assert legend(axes)[-1] == "7 others"
    assert legend(axes)[0] == str(np.bincount(codes).argmax())


def test_calibration_weights_rows():
    model = Known([0, 1], np.full((4, 2), 0.5))
    axes = plots.plot_calibration(model, np.zeros((4, 1)), [0, 0, 0, 1], sample_weight=[1, 1, 1, 3])
    assert axes.lines[-1].get_ydata().tolist() == [0.5]


def test_calibration_of_fitted_and_loaded_models(rng):
    frame, y = table(rng)
    model = arboost.GradientBoostingClassifier(n_estimators=5).fit(frame, y > 5)
    one, two = (drawn(plots.plot_calibration(m, frame, y > 5)) for m in (model, model.model_))
    assert one.lines[-1].get_ydata().tolist() == two.lines[-1].get_ydata().tolist()
    with pytest.raises(TypeError, match="use plot_residuals for a regressor"):
        plots.plot_calibration(fitted("boosted", rng)[0], frame, y)
    with pytest.raises(ValueError, match="y holds labels that model does not have"):
        plots.plot_calibration(model, frame, np.full(len(frame), "maybe"))


# Residuals.


def test_residuals_over_predictions(rng):
    model, frame = fitted("boosted", rng)
    y = model.predict(frame) + rng.normal(size=len(frame))
    axes = drawn(plots.plot_residuals(model, frame, y))
    points = axes.collections[0].get_offsets()
    np.testing.assert_allclose(points[:, 0], model.predict(frame))
    np.testing.assert_allclose(points[:, 1], y - model.predict(frame))
    assert legend(axes) == ["mean residual"]


def test_residuals_of_forests_have_an_interval(rng):
    frame, y = table(rng)
    forest = arboost.RandomForestRegressor(20, quantiles=True, random_state=0).fit(frame, y)
    low, high = forest.predict_quantiles(frame, [0.1, 0.9]).T
    share = np.mean((low <= y) & (y <= high))
    for model in (forest, forest.model_):
        axes = drawn(plots.plot_residuals(model, frame, y, coverage=0.8))
        assert legend(axes)[0] == f"80% interval, covers {share:.0%}"


def test_residuals_of_boosted_quantiles_have_an_interval(rng):
    model, frame = fitted("quantiles", rng)
    low, high = model.predict(frame).T
    axes = drawn(plots.plot_residuals(model, frame, (low + high) / 2))
    assert legend(axes)[0] == "60% interval, covers 100%"
    assert axes.get_xlabel() == "predicted quantile 0.2"


def test_residuals_of_several_targets(rng):
    model, frame = fitted("targets", rng)
    y = model.predict(frame)
    with pytest.raises(ValueError, match="draws one target, but the model has 2"):
        plots.plot_residuals(model, frame, y)
    assert drawn(plots.plot_residuals(model, frame, y, target_index=1)).get_xlabel() == "prediction"


def test_residuals_of_few_rows_and_of_classifiers(rng):
    model, frame = fitted("boosted", rng)
    drawn(plots.plot_residuals(model, frame[:1], [3.0]))
    drawn(plots.plot_residuals(fitted("constant", rng)[0], frame[:5], np.ones(5)))
    with pytest.raises(TypeError, match="Use plot_calibration"):
        plots.plot_residuals(fitted("two", rng)[0], frame, np.ones(len(frame)))
    with pytest.raises(ValueError, match=r"coverage=1\.5 is not allowed"):
        plots.plot_residuals(model, frame, np.ones(len(frame)), coverage=1.5)


# All plots.


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "median"])
def test_every_model_is_drawn(kind, rng):
    model, frame = fitted(kind, rng)
    drawn(plots.plot_importances(model))
    drawn(plots.plot_shap_summary(model, frame[:40]))
    axes = drawn(plots.plot_shap_waterfall(model, frame[:1]))
    assert not overlaps(axes.get_yticklabels())


def test_ensembles_of_members(rng):
    X, y = wide(rng, 3)
    bag = arboost.BaggingRegressor(n_estimators=3, random_state=0).fit(X, y)
    drawn(plots.plot_shap_summary(bag, X))
    drawn(plots.plot_residuals(bag, X, y))
    axes = drawn(plots.plot_shap_waterfall(bag, X[:1]))
    first = axes.patches[0]
    assert first.get_x() + first.get_width() == pytest.approx(bag.predict(X[:1]).item())
    with pytest.raises(TypeError, match='kind="permutation", X=X, y=y'):
        plots.plot_importances(bag)


def test_other_models_are_refused(rng):
    from sklearn.exceptions import NotFittedError
    from sklearn.tree import DecisionTreeRegressor

    X, y = wide(rng, 2)
    for draw in (plots.plot_importances, lambda m: plots.plot_shap_summary(m, X)):
        with pytest.raises(TypeError, match=r"draws a model of arboost|not a single model"):
            draw(DecisionTreeRegressor().fit(X, y))
        with pytest.raises(NotFittedError):
            draw(arboost.DecisionTreeRegressor())
    with pytest.raises(ValueError, match="n_features=0 is not allowed"):
        plots.plot_importances(arboost.DecisionTreeRegressor().fit(X, y), n_features=0)


def test_own_axes_are_used(rng):
    from matplotlib import pyplot

    model, frame = fitted("boosted", rng)
    given = pyplot.subplots()[1]
    assert plots.plot_importances(model, given) is given
    assert plots.plot_residuals(model, frame, model.predict(frame), given) is given
    assert plots.plot_shap_waterfall(model, frame[:1], given) is given
    assert len(pyplot.get_fignums()) == 1


def test_target_by_name(rng):
    frame, y = table(rng)
    named = frame.assign(y=y, label=np.where(y > 5, "high", "low"))
    model = arboost.RandomForestRegressor(3, random_state=0)
    axes = plots.plot_residuals(model.fit(named[["age", "y"]], "y"), named[["age", "y"]], "y")
    np.testing.assert_allclose(axes.collections[0].get_offsets().sum(axis=1), y)
    model = arboost.RandomForestClassifier(3, random_state=0)
    named = named[["age", "label"]]
    axes = plots.plot_calibration(model.fit(named, "label"), named, "label")
    assert axes.get_xlabel() == "predicted probability of low"


@pytest.mark.filterwarnings("ignore:Glyph")
def test_hostile_names(rng):
    words = [word for word in HOSTILE if "\ud800" not in word]  # which pandas refuses
    frame = pd.DataFrame(rng.normal(size=(40, len(words))), columns=words)
    labels = np.array(words)[np.arange(40) % len(words)]
    model = arboost.RandomForestClassifier(3, random_state=0).fit(frame, labels)
    drawn(plots.plot_importances(model))
    drawn(plots.plot_calibration(model, frame, labels))
    drawn(plots.plot_shap_summary(model, frame))
    drawn(plots.plot_shap_waterfall(model, frame[:1]))


def test_pictures_of_the_page(tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("make_plots", IMAGES / "make_plots.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(tmp_path)
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == sorted(path.name for path in IMAGES.glob("plots_*.svg"))
    assert len(capsys.readouterr().out.splitlines()) == len(written)
