"""Plots of a fit: learning curves; bounds, errors and margins of AdaBoost."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.datasets import load_breast_cancer, load_wine

import arboost
from arboost import AdaBoostClassifier, AdaBoostRegressor, plots
from arboost.losses.curves import margin_distribution
from support.fitted_models import fitted, table
from support.plotted import legend_labels, render


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
        train, shuffled, mark = render(panel).lines
        assert train.get_ydata().tolist() == model.evals_result_["train"][metric]
        assert shuffled.get_ydata().tolist() == model.evals_result_["shuffled"][metric]
        assert mark.get_xdata() == [model.best_iteration_ + 1] * 2
    assert legend_labels(panels[0]) == ["train", "shuffled", f"kept: {model.n_iter_} rounds"]


def test_learning_curves_mark_a_best_round_that_is_not_kept(rng):
    frame, y = table(rng)
    model = arboost.GradientBoostingRegressor(n_estimators=30)
    model.fit(frame, y, eval_set=[(frame, rng.permutation(y))])
    assert "(the model has 30)" in legend_labels(plots.plot_learning_curves(model))[-1]


def test_learning_curves_of_a_search_mark_its_best_round(rng):
    """The fit after the search has more rounds, of a lower learning rate."""
    frame, y = table(rng)
    model = arboost.GradientBoostingRegressor().fit(frame, y)
    axes = render(plots.plot_learning_curves(model))
    curve, mark = axes.lines
    best = int(np.argmin(curve.get_ydata()))
    assert mark.get_xdata() == [best + 1] * 2
    assert model.n_iter_ > best + 1
    assert f"(the model has {model.n_iter_})" in legend_labels(axes)[-1]


def test_learning_curves_of_continued_training(rng):
    frame, y = table(rng)
    first = arboost.GradientBoostingRegressor(n_estimators=4).fit(frame, y)
    model = arboost.GradientBoostingRegressor(n_estimators=3)
    model.fit(frame, y, eval_set=[(frame, y)], eval_names=["_train"], init_model=first)
    axes = render(plots.plot_learning_curves(model))
    assert axes.lines[-1].get_xdata() == [3, 3]
    assert legend_labels(axes)[0] == " _train"


def test_learning_curves_of_folds(rng):
    frame, y = table(rng)
    found = arboost.cv(arboost.GradientBoostingRegressor(n_estimators=4), frame, y, folds=3)
    axes = render(plots.plot_learning_curves(found))
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


X = [[0.0], [1.0], [2.0], [3.0]]


Y = ["no", "yes", "yes", "no"]


def voter(**changes):
    """Return the attributes of a classifier of three rounds that plots read.

    Its learners vote yes for all rows; for all but the first; and for the first three. Their
    weights are 1, 2 and 1, so that the scores of the rows after each round are those in `stages`.
    """
    stages = [[1, 1, 1, 1], [-1, 3, 3, 3], [0, 4, 4, 2]]
    attributes = {
        "training_error_bound_": np.array([0.8, 0.4, 0.2]),
        "edge_bound_": np.array([0.9, 0.5, 0.3]),
        "exponential_loss_": np.array([0.8, 0.4, 0.2]),
        "training_error_": np.array([0.5, 0.25, 0.25]),
        "evals_result_": {},
        "vote_range_": np.array([1.0, 2.0, 1.0]),
        "classes_": np.array(["no", "yes"]),
        "staged_decision_function": lambda X: iter(np.array(stages, dtype=np.float64)),
    }
    return SimpleNamespace(**attributes | changes)


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines() if line.get_label()[0] != "_"}


def test_bound_and_errors_are_drawn():
    found = lines(plots.plot_bound(voter()))
    assert set(found) == {"bound by the edges", "bound = exponential loss", "training error"}
    assert found["training error"].get_xdata().tolist() == [1, 2, 3]
    assert found["training error"].get_ydata().tolist() == [0.5, 0.25, 0.25]
    assert found["bound by the edges"].get_ydata().tolist() == [0.9, 0.5, 0.3]
    assert found["bound = exponential loss"].get_ydata().tolist() == [0.8, 0.4, 0.2]


def test_loss_has_a_line_of_its_own_where_it_is_not_the_bound():
    none = np.full(3, np.nan)
    loss = np.array([0.7, 0.6, 0.5])
    found = lines(plots.plot_bound(voter(edge_bound_=none, exponential_loss_=loss)))
    assert list(found) == ["exponential loss", "bound", "training error"]
    assert found["exponential loss"].get_ydata().tolist() == loss.tolist()
    found = lines(plots.plot_bound(voter(edge_bound_=none, training_error_bound_=none)))
    assert list(found) == ["exponential loss", "training error"]


def test_validation_error_may_be_longer_than_the_model():
    measured = {"validation": {"error": [0.5, 0.4, 0.3, 0.35, 0.4]}}
    line = lines(plots.plot_bound(voter(evals_result_=measured)))["validation error"]
    assert line.get_xdata().tolist() == [1, 2, 3, 4, 5]
    other = {"validation": {"log_loss": [0.5, 0.4, 0.3]}}
    assert "validation error" not in lines(plots.plot_bound(voter(evals_result_=other)))


def test_an_error_of_0_is_at_the_lower_edge_and_in_the_legend():
    axes = plots.plot_bound(voter(training_error_=np.array([0.5, 0.0, 0.0])))
    line = lines(axes)["training error (0 from round 2 on)"]
    assert line.get_ydata()[1:].tolist() == [axes.get_ylim()[0]] * 2
    axes = plots.plot_bound(voter(training_error_=np.zeros(3)))
    assert "training error (0 from round 1 on)" in legend_labels(axes)
    axes = plots.plot_bound(voter(training_error_=np.array([0.5, 0.0, 0.5])), scale="linear")
    assert "training error" in legend_labels(axes)


def test_bounds_leave_the_picture_at_1_and_below_the_errors():
    axes = plots.plot_bound(voter(training_error_bound_=np.array([2.0, 4.0, 8.0])))
    assert "bound (above 1: says nothing)" in legend_labels(axes)
    assert axes.get_ylim()[1] == 1.0
    tiny = np.array([0.1, 1e-20, 1e-40])
    axes = plots.plot_bound(voter(training_error_bound_=tiny, exponential_loss_=tiny))
    assert 0.01 < axes.get_ylim()[0] < 0.25


def test_scales():
    assert plots.plot_bound(voter()).get_yscale() == "log"
    axes = plots.plot_bound(voter(), scale="linear")
    assert (axes.get_yscale(), axes.get_ylim()[0]) == ("linear", 0.0)
    with pytest.raises(ValueError, match="scale='sqrt' is not allowed: use one of log, linear"):
        plots.plot_bound(voter(), scale="sqrt")


def test_one_round_is_a_mark():
    names = ("training_error_bound_", "edge_bound_", "exponential_loss_", "training_error_")
    one = voter(**{name: np.array([0.5]) for name in names})
    assert {line.get_marker() for line in plots.plot_bound(one).get_lines()} == {"o"}
    assert {line.get_marker() for line in plots.plot_bound(voter()).get_lines()} == {""}


def test_own_axes_are_used():
    _, (left, right) = pyplot.subplots(1, 2)
    assert plots.plot_bound(voter(), left) is left
    assert plots.plot_margins(voter(), X, Y, ax=right) is right
    assert len(pyplot.get_fignums()) == 1
    assert plots.plot_bound(voter()) is not left


def test_margins_after_each_round():
    found = lines(plots.plot_margins(voter(), X, Y, rounds=[3, 1]))
    assert list(found) == ["1 round", "3 rounds"]
    # After one round: two rows at -1, two at 1; after three: margins 0, 1, 1 and -1/2.
    assert found["1 round"].get_xdata().tolist() == [-1, -1, 1, 1]
    assert found["1 round"].get_ydata().tolist() == [0, 0.5, 1, 1]
    assert found["3 rounds"].get_xdata().tolist() == [-1, -0.5, 0, 1, 1]
    assert found["3 rounds"].get_ydata().tolist() == [0, 0.25, 0.5, 1, 1]


def test_margins_of_three_classes():
    stages = [np.array([[2.0, -1.0, -1.0], [-1.0, 2.0, -1.0]]) / 3]
    three = voter(
        classes_=np.array([4, 5, 6]),
        vote_range_=np.array([1.0]),
        staged_decision_function=lambda X: iter(stages),
    )
    line = lines(plots.plot_margins(three, X[:2], [4, 6]))["1 round"]
    assert line.get_xdata().tolist() == [-1, -1, 1, 1]
    assert line.get_ydata().tolist() == [0, 0.5, 1, 1]


@pytest.mark.parametrize(
    ("n_rounds", "chosen"),
    [(1, [1]), (2, [1, 2]), (9, [1, 9]), (50, [1, 5, 10, 50]), (1000, [1, 10, 100, 1000])],
)
def test_rounds_that_are_drawn_by_default(n_rounds, chosen):
    many = voter(
        vote_range_=np.ones(n_rounds),
        staged_decision_function=lambda X: iter(np.ones((n_rounds, 4))),
    )
    names = [f"{number} round{'s' if number > 1 else ''}" for number in chosen]
    assert legend_labels(plots.plot_margins(many, X, Y)) == names


@pytest.mark.parametrize("rounds", [[0], [4], [-1, 2], []])
def test_rounds_that_are_not_there(rounds):
    with pytest.raises(ValueError, match="the model has 3 rounds"):
        plots.plot_margins(voter(), X, Y, rounds=rounds)


def test_labels_are_checked():
    with pytest.raises(ValueError, match="y holds labels that model does not have: 'perhaps'"):
        plots.plot_margins(voter(), X, ["no", "perhaps", "yes", "no"])
    with pytest.raises(ValueError, match="X has 4 rows, but y has 2 values"):
        plots.plot_margins(voter(), X, Y[:2])
    assert not pyplot.get_fignums()  # no unfinished figure is left


def test_other_models_are_refused():
    from sklearn.exceptions import NotFittedError
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier()
    with pytest.raises(NotFittedError):
        plots.plot_bound(tree)
    tree.fit(X, Y)
    with pytest.raises(TypeError, match="but model is of type DecisionTreeClassifier"):
        plots.plot_bound(tree)
    with pytest.raises(TypeError, match="plot_margins draws a fitted AdaBoostClassifier"):
        plots.plot_margins(tree, X, Y)


def test_a_model_without_rounds():
    none = voter(vote_range_=np.empty(0))
    for draw in (lambda: plots.plot_bound(none), lambda: plots.plot_margins(none, X, Y)):
        with pytest.raises(ValueError, match="nothing to draw: the model has no rounds"):
            draw()


@pytest.mark.parametrize("algorithm", ["discrete", "real", "gentle"])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_fitted_classifiers(load, algorithm):
    table, labels = load(return_X_y=True)
    model = AdaBoostClassifier(n_estimators=12, algorithm=algorithm)
    model.fit(table[::2], labels[::2], X_val=table[1::2], y_val=labels[1::2])
    found = lines(plots.plot_bound(model, scale="linear"))
    drawn = {name.partition(" (")[0]: line.get_ydata() for name, line in found.items()}
    assert drawn["training error"].tolist() == model.training_error_.tolist()
    assert drawn["validation error"].tolist() == model.evals_result_["validation"]["error"]
    if load is load_breast_cancer:
        assert drawn["bound = exponential loss"].tolist() == model.exponential_loss_.tolist()
    assert ("bound by the edges" in drawn) == np.isfinite(model.edge_bound_).all()
    last = lines(plots.plot_margins(model, table, labels))["12 rounds"]
    place, share = margin_distribution(model.margins(table, labels))
    # Stages sum to the model, up to the order of the sums.
    np.testing.assert_allclose(
        np.interp(0.05, last.get_xdata(), last.get_ydata()),
        np.interp(0.05, [-1.0, *place, 1.0], [0.0, *share, 1.0]),
        atol=1e-9,
    )
    error = 1.0 - model.score(table, labels)
    below = last.get_xdata() < -1e-9
    assert last.get_ydata()[below].max() == pytest.approx(error)


def test_regressors_are_refused():
    model = AdaBoostRegressor(n_estimators=2).fit(X, [0.0, 1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="but model is of type AdaBoostRegressor"):
        plots.plot_bound(model)
