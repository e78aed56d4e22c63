"""All plots: every model, hostile names, axes of the user, pictures of the documentation."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

import arboost
from arboost import plots
from arboost.plots.palette import SERIES, SERIES_ON_DARK
from support.drawn_trees import HOSTILE
from support.fitted_models import KINDS, fitted, table
from support.paths import DOCS
from support.plotted import any_overlap, render, wide_table

IMAGES = DOCS / "images"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "median"])
def test_every_model_is_drawn(kind, rng):
    model, frame = fitted(kind, rng)
    render(plots.plot_importances(model))
    render(plots.plot_shap_summary(model, frame[:40]))
    axes = render(plots.plot_shap_waterfall(model, frame[:1]))
    assert not any_overlap(axes.get_yticklabels())


def test_ensembles_of_members(rng):
    X, y = wide_table(rng, 3)
    bag = arboost.BaggingRegressor(n_estimators=3, random_state=0).fit(X, y)
    render(plots.plot_shap_summary(bag, X))
    render(plots.plot_residuals(bag, X, y))
    axes = render(plots.plot_shap_waterfall(bag, X[:1]))
    first = axes.patches[0]
    assert first.get_x() + first.get_width() == pytest.approx(bag.predict(X[:1]).item())
    with pytest.raises(TypeError, match='kind="permutation", X=X, y=y'):
        plots.plot_importances(bag)


def test_other_models_are_refused(rng):
    from sklearn.exceptions import NotFittedError
    from sklearn.tree import DecisionTreeRegressor

    X, y = wide_table(rng, 2)
    for draw in (plots.plot_importances, lambda m: plots.plot_shap_summary(m, X)):
        with pytest.raises(TypeError, match=r"draws a model of arboost|not a single model"):
            draw(DecisionTreeRegressor().fit(X, y))
        with pytest.raises(NotFittedError):
            draw(arboost.DecisionTreeRegressor())
    with pytest.raises(ValueError, match="n_features=0 is not allowed"):
        plots.plot_importances(arboost.DecisionTreeRegressor().fit(X, y), n_features=0)


def test_own_axes_are_used(rng):

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
    render(plots.plot_importances(model))
    render(plots.plot_calibration(model, frame, labels))
    render(plots.plot_shap_summary(model, frame))
    render(plots.plot_shap_waterfall(model, frame[:1]))


def test_import_is_light():
    heavy = ("matplotlib", "sklearn")
    program = f"import sys, arboost.plots; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("script", ["make_plots", "make_adaboost"])
def test_pictures_of_the_pages(script, tmp_path, capsys):
    """Bytes differ between versions of matplotlib, so only the amount of detail is checked."""
    spec = importlib.util.spec_from_file_location(script, IMAGES / f"{script}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(tmp_path)
    written = sorted(path.name for path in tmp_path.iterdir())
    prefix = script.removeprefix("make_")
    assert written == sorted(path.name for path in IMAGES.glob(f"{prefix}_*.svg"))
    assert len(capsys.readouterr().out.splitlines()) == len(written)
    for name in written:
        assert (tmp_path / name).read_text("utf-8").count("<path") > 10


def test_plots_pictures_and_reports_have_one_palette(rng):
    X = rng.normal(size=(80, 2))
    model = arboost.RandomForestClassifier(3, random_state=0).fit(X, X[:, 0] > 0)
    axes = plots.plot_calibration(model, X, X[:, 0] > 0)
    assert axes.lines[-1].get_color() == SERIES[0]
    picture, page = model.model_.tree_svg(), model.report(X, X[:, 0] > 0).to_html()
    assert all(f'fill="{colour}"' in picture for colour in SERIES[:2])
    for light, dark, i in zip(SERIES, SERIES_ON_DARK, range(1, 9), strict=True):
        assert f"--c{i}: {light};" in page
        assert f"--c{i}: {dark};" in page
