"""Summaries of models: true facts in text and HTML, for any feature names."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

import arboost
from arboost.plots.summary import Summary
from arboost.text import display_width
from support.drawn_trees import HOSTILE, full_tree, model_of, names_schema
from support.fitted_models import KINDS, fitted


@pytest.mark.parametrize("kind", KINDS)
def test_every_model_has_one(kind, rng):
    model, _ = fitted(kind, rng)
    summary = model.summary()
    text = str(summary)
    assert text.splitlines()[0] == summary.title
    assert summary.title.startswith(model.kind)
    assert text == repr(summary)
    assert sum(share for _, share in summary.bars) == pytest.approx(1.0 if summary.bars else 0.0)
    root = ET.fromstring(model._repr_html_())
    assert summary.title == root[0].text


def test_facts(rng):
    X = rng.normal(size=(200, 3))
    estimator = arboost.GradientBoostingClassifier(n_estimators=7, max_depth=2, reg_lambda=3.0)
    model = estimator.fit(X, np.array(["a", "b", "c"])[(X[:, 0] > 0) + 1 * (X[:, 1] > 1)]).model_
    facts = model.summary().facts
    table = pd.DataFrame(model.tree_table())
    leaves = table[table["left"] < 0].groupby("tree").size()
    used = table["feature"].nunique()
    assert model.summary().title == "classifier · sum of 21 trees"
    assert facts["features"] == f"3, {used} of them used"
    assert facts["classes"] == "3: a, b, c"
    assert facts["rounds"] == "7 of 3 trees"
    assert facts["depth"].startswith(str(table["depth"].max())) or "to 2" in facts["depth"]
    assert facts["leaves"].endswith(f"{leaves.sum()} in all")
    assert facts["link"] == "softmax"
    gain = model.importances() / model.importances().sum()
    for name, share in model.summary().bars:
        assert share == pytest.approx(gain[int(name[1:])])


def test_facts_of_the_fit(rng):
    n_rows = 240
    table = pd.DataFrame(
        {
            "x": rng.normal(size=n_rows),
            "city": ["Rome", "Oslo"] * 120,
            "価格": [f"s{i % 150}" for i in range(n_rows)],
            "key": [f"k{i}" for i in range(n_rows)],
        }
    )
    estimator = arboost.GradientBoostingRegressor(n_estimators=20, n_iter_no_change=3)
    with pytest.warns(arboost.DataWarning, match="'key'"):
        model = estimator.fit(table, table["x"].to_numpy()).model_
    summary = model.summary()
    held_out = round(n_rows * estimator.validation_fraction)
    assert summary.facts["trained on"] == f"{n_rows - held_out} rows"
    assert summary.facts["version"] == f"arboost {arboost.__version__}"
    metric, score = summary.facts["held-out rows"].split()
    assert metric == "squared_error"
    assert float(score) == pytest.approx(estimator.best_score_, rel=1e-3)
    assert summary.categories == {
        "city": "sets of levels, 2 levels",
        "価格": f"sets of {model.schema.n_levels[2]} groups, 150 levels",
        "key": "ignored: all strings distinct, or no values",
    }
    for text in (str(summary), summary._repr_html_()):
        assert "groups, 150 levels" in text
    assert max(map(display_width, str(summary).splitlines())) <= 80


def test_parameters_that_were_changed(rng):
    X = rng.normal(size=(60, 2))
    changed = {
        arboost.GradientBoostingRegressor(n_estimators=3, reg_lambda=3.0): {"reg_lambda": "3.0"},
        arboost.RandomForestRegressor(n_estimators=3, min_samples_leaf=4): {
            "min_samples_leaf": "4"
        },
        arboost.ExtraTreesRegressor(n_estimators=3): {"n_estimators": "3"},
        arboost.DecisionTreeRegressor(criterion="poisson"): {"criterion": '"poisson"'},
        arboost.AdaBoostRegressor(n_estimators=3, loss="square"): {"loss": '"square"'},
    }
    for estimator, expected in changed.items():
        shown = estimator.fit(X, np.abs(X[:, 0])).model_.summary().params
        assert expected.items() <= shown.items()
        assert not {"missing", "bundling", "bootstrap", "categorical_features"} & shown.keys()


def test_custom_functions_are_named(rng):
    X = rng.normal(size=(60, 2))

    loss = arboost.CustomLoss(
        name="mine", gradients=lambda y, score, weight: (score - y, np.ones_like(y))
    )
    estimator = arboost.GradientBoostingRegressor(n_estimators=2, loss=loss)
    assert estimator.fit(X, X[:, 0]).model_.summary().params["loss"] == "mine (a function)"


def test_lines_are_aligned_and_short(rng):
    names = [name for name in HOSTILE if name]
    model = model_of(full_tree(rng, 5, len(names)), names_schema(*names))
    gain = rng.random(model.forest.n_nodes)
    object.__setattr__(model.forest, "gain", gain)
    lines = str(Summary(model)).splitlines()
    assert all(line.isprintable() for line in lines)
    assert max(map(display_width, lines)) <= 80
    bars = [line for line in lines if line.endswith("%")]
    assert len({display_width(line) for line in bars}) == 1
    assert len(bars) == 11
    assert "more" in bars[-1]


def test_hostile_names_in_html(rng):
    classes = np.array([f"{name}|{i}" for i, name in enumerate(HOSTILE[:4])], object)
    names = [name for name in HOSTILE if name]
    model = model_of(
        full_tree(rng, 5, len(names), width=len(classes)), names_schema(*names), classes=classes
    )
    object.__setattr__(model.forest, "gain", np.ones(model.forest.n_nodes))
    page = Summary(model)._repr_html_()
    root = ET.fromstring(page)
    assert {one.tag for one in root.iter()} <= {"div", "table", "tr", "td"}
    assert not re.search(r"<(script|style|link|img)|http", page)
    shown = "".join(root.itertext())
    assert "<script>alert(1)</script>" in shown
    assert "line\\nbreak\\ttab" in shown
    page.encode("utf-8")


@pytest.mark.filterwarnings("ignore:all columns of X are constant")
def test_models_without_trees_and_splits():
    X = [[1.0], [1.0]]
    model = arboost.GradientBoostingRegressor(n_estimators=2).fit(X, [1.0, 2.0]).model_
    for one in (model, model.truncated(0)):
        summary = one.summary()
        assert summary.bars == []
        assert "gain" not in str(summary)
        ET.fromstring(one._repr_html_())
    assert model.truncated(0).summary().title == "regressor · sum of 0 trees"


def test_facts_of_a_fit_with_strings(rng):
    """Rows, version, held-out score, the use of each string column, and values as in Python."""
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=300),
            "city": rng.choice(["Bern", "Oslo", "Rome"], 300),
            "street": rng.choice([f"street {i}" for i in range(120)], 300),
            "key": [f"row {i}" for i in range(300)],
        }
    )
    y = frame["size"] + (frame["city"] == "Oslo")
    model = arboost.GradientBoostingRegressor(
        n_estimators=5, n_iter_no_change=2, max_depth=None, category_encoding="mean"
    )
    with pytest.warns(arboost.DataWarning, match="key"):
        model.fit(frame, y, X_val=frame, y_val=y)
    summary = model.summary()
    assert summary.facts["trained on"] == "300 rows"
    assert summary.facts["version"] == f"arboost {arboost.__version__}"
    assert summary.facts["held-out rows"].startswith("squared_error 0.")
    assert summary.facts["features"].endswith("of them used, 3 categories")
    assert summary.categories == {
        "city": "sets of levels, 3 levels",
        "street": f"target encoding, {frame['street'].nunique()} levels",
        "key": "ignored: all strings distinct, or no values",
    }
    assert summary.params["max_depth"] == "None"
