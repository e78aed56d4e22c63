"""Unknown names of arguments: refused with the name to use, or the closest spelling."""

from __future__ import annotations

import inspect
import pickle
import runpy
import sys
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import arboost
from arboost.params.suggestions import (
    LIBRARIES,
    Row,
    argument_suggestion,
    library_rows,
    library_values,
    rows_by_name,
)
from support.paths import ROOT

X, Y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
ESTIMATORS = {
    name: public
    for name, public in ((name, getattr(arboost, name)) for name in arboost.__all__)
    if isinstance(public, type) and issubclass(public, BaseEstimator)
}
Booster = arboost.GradientBoostingClassifier


def names(function):
    return set(inspect.signature(function).parameters) - {"self"}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_constructors_suggest_names(name):
    with pytest.raises(TypeError, match=r"verbosity is called verbose here: use ") as caught:
        ESTIMATORS[name](verbosity=1)
    assert f"use {name}(verbose=...)" in str(caught.value)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_set_params_suggests_names(name):
    needed = [[]] if "estimators" in names(ESTIMATORS[name]) else []
    with pytest.raises(ValueError, match=r"Invalid parameter 'verbosity'.*called verbose here"):
        ESTIMATORS[name](*needed).set_params(verbosity=1)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"early_stopping_rounds": 5}, "early_stopping_rounds is called n_iter_no_change here"),
        ({"lerning_rate": 1}, "no argument 'lerning_rate'. Did you mean learning_rate?"),
        ({"early_stoping_round": 1}, "early_stopping_round is called n_iter_no_change here"),
        ({"callbacks": ()}, "callbacks is an argument of fit here: use fit(X, y, callbacks=...)"),
        ({"task_type": "GPU"}, "task_type is called device here"),
        ({"qqq": 1}, "There are n_estimators, learning_rate"),
        ({"eta": 1, "seed": 1}, "eta is called learning_rate here"),
        ({"eta": 1, "seed": 1}, "seed is called random_state here"),
    ],
)
def test_suggestions_of_a_constructor(params, message):
    with pytest.raises(TypeError) as caught:
        Booster(**params)
    assert message in str(caught.value)
    assert "Boosting." not in str(caught.value)  # an inner class


def test_suggested_name_fits_the_estimator():
    with pytest.raises(TypeError, match="num_leaves is called max_leaf_nodes here"):
        arboost.RandomForestClassifier(num_leaves=5)
    with pytest.raises(TypeError, match="num_leaves is called max_leaves here"):
        Booster(num_leaves=5)
    with pytest.raises(TypeError, match="RandomForestClassifier has no argument learning_rate"):
        arboost.RandomForestClassifier(learning_rate=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"early_stopping_rounds": 5}, "use GradientBoostingClassifier(n_iter_no_change=...)"),
        ({"eval_metric": "auc"}, "eval_metric is a parameter of GradientBoostingClassifier here"),
        ({"xgb_model": 1}, "xgb_model is called init_model here: use fit(X, y, init_model=...)"),
        ({"sampel_weight": 1}, "Did you mean sample_weight?"),
    ],
)
def test_suggestions_of_fit(arguments, message):
    with pytest.raises(TypeError) as caught:
        Booster(n_estimators=-1).fit(X, Y, **arguments)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "estimator",
    [
        arboost.AdaBoostClassifier(),
        arboost.RandomForestClassifier(),
        arboost.DecisionTreeClassifier(),
    ],
    ids=lambda one: type(one).__name__,
)
def test_fit_of_others(estimator):
    with pytest.raises(TypeError, match="Did you mean sample_weight"):
        estimator.fit(X, Y, sample_weights=np.ones(20))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base_margin": 1}, "base_margin is called offset here: use fit(X, y, offset=...)"),
        ({"init_score": 1}, "init_score is called offset here: use fit(X, y, offset=...)"),
        ({"baseline": 1}, "baseline is called offset here: use fit(X, y, offset=...)"),
        ({"eval_init_score": 1}, "Offsets are the fourth entry of a set"),
        ({"base_margin_eval_set": 1}, "Offsets are the fourth entry of a set"),
        ({"used_ram_limit": "2gb"}, "called memory_limit here: use fit(X, y, memory_limit=...)"),
        ({"machines": "a,b"}, "arboost.dask, arboost.ray and arboost.spark train on several"),
        ({"tree_learner": "data"}, "arboost.dask, arboost.ray and arboost.spark"),
        ({"is_unbalance": True}, "called class_weight here: use GradientBoostingClassifier("),
        ({"is_unbalance": True}, 'Use class_weight="balanced".'),
    ],
)
@pytest.mark.parametrize("place", ["fit", "constructor"])
def test_suggestions_name_what_the_library_has(arguments, message, place):
    call = Booster if place == "constructor" else partial(Booster().fit, X, Y)
    with pytest.raises(TypeError) as caught:
        call(**arguments)
    assert message in str(caught.value)
    assert "init_model" not in str(caught.value)


def test_offset_is_named_where_there_is_one():
    with pytest.raises(TypeError, match=r"called offset here: use Dataset\(offset"):
        arboost.Dataset(X, Y, init_score=Y)
    with pytest.raises(TypeError, match="RandomForestClassifier has no argument base_margin"):
        arboost.RandomForestClassifier().fit(X, Y, base_margin=Y)


@pytest.mark.parametrize("loss", ["MultiRMSE", "MultiLogloss", "MultiRMSEWithMissingValues"])
def test_several_targets_are_for_forests(loss):
    with pytest.raises(ValueError, match="A booster has one target: fit one for each column"):
        arboost.GradientBoostingRegressor(loss=loss).fit(X, np.arange(20.0))
    targets = np.stack([np.arange(20.0), np.ones(20)], axis=1)
    assert arboost.RandomForestRegressor(n_estimators=2).fit(X, targets).predict(X).shape == (20, 2)


@pytest.mark.parametrize(
    ("loss", "given"),
    [
        ("quantile", "quantile"),
        ("quantile", "Quantile"),
        ("quantile", "MultiQuantile"),
        ("huber", "huber"),
        ("huber", "Huber"),
    ],
)
def test_losses_are_metrics_of_their_own_fits(loss, given):
    y = np.arange(20.0)
    model = arboost.GradientBoostingRegressor(loss=loss, n_estimators=2, eval_metric=given)
    assert list(model.fit(X, y, X_val=X, y_val=y).evals_result_["validation"]) == [loss]
    other = arboost.GradientBoostingRegressor(n_estimators=2, eval_metric=given)
    with pytest.raises(ValueError, match="it does not fit loss='squared_error'"):
        other.fit(X, y, X_val=X, y_val=y)


def test_suggestions_of_cv():
    with pytest.raises(TypeError, match=r"nfold is called folds here: use cv\(folds=...\)"):
        arboost.cv(Booster(), X, Y, nfold=3)
    with pytest.raises(ValueError, match='Did you mean "log_loss"'):
        arboost.cv(Booster(), "no table", None, metrics="logg_loss")
    assert arboost.cv(estimator=Booster(n_estimators=2), X=X, y=Y, folds=2).best_index >= 0


def test_suggestions_of_datasets():
    with pytest.raises(TypeError, match=r"is called categorical_features here: use Dataset\("):
        arboost.Dataset(X, Y, categorical_feature=[0])
    assert arboost.Dataset(X=X, y=Y).n_rows == 20


def test_importances_check_names_first():
    model = Booster(n_estimators=2).fit(X, Y)
    with pytest.raises(ValueError, match='Did you mean "log_loss"'):
        model.importances("permutation", "no table", Y, metric="logg_loss")


@pytest.mark.parametrize("name", ESTIMATORS)
def test_signatures_are_plain(name):
    """Help, scikit-learn and editors see the parameters, not the check of their names."""
    public = ESTIMATORS[name]
    assert names(public) == set(public._get_param_names())
    assert names(public) == set(public._TABLE)
    assert all(one.kind != one.VAR_KEYWORD for one in inspect.signature(public).parameters.values())


def test_subclasses_have_their_own_parameters():
    class Mine(Booster):
        def __init__(self, *, extra=1, **rest):
            self.extra = extra
            super().__init__(**rest)

    class Strict(Booster):
        def __init__(self, *, extra=1):
            super().__init__(n_estimators=extra)

    assert Mine(extra=2, max_depth=3).max_depth == 3
    assert Strict(extra=4).n_estimators == 4
    with pytest.raises(TypeError, match="Did you mean extra"):
        Strict(extras=4)
    assert clone(Booster(max_depth=2)).max_depth == 2
    assert pickle.loads(pickle.dumps(Booster(max_depth=2))).max_depth == 2


# ---- mistyped values ----


def test_suggested_values():
    with pytest.raises(ValueError, match='"lossguide" is called "leafwise" here'):
        Booster(grow_policy="lossguide").fit(X, Y)
    with pytest.raises(ValueError, match='did you mean "approx"'):
        Booster(tree_method="approxx").fit(X, Y)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ("reg:squarederror", 'it is called "squared_error" here.'),
        ("MAE", 'it is called "absolute_error" here.'),
        ("Quantile:alpha=0.3", 'it is called "quantile" here. alpha is the quantile.'),
        ("lambdarank", 'Use GradientBoostingRanker, whose loss is "lambdamart".'),
        ("binary:logistic", 'it is called "log_loss" here, and is a loss of a classifier.'),
        ("log_loss", "it is a loss of a classifier."),
        ("squared_eror", 'Did you mean "squared_error"?'),
        ("qqq", "there is no such loss."),
    ],
)
def test_suggested_losses(loss, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        arboost.GradientBoostingRegressor(loss=loss).fit(X, Y)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("accurac", 'Did you mean "accuracy"?'),
        ("ndcg@5", "GradientBoostingRanker and arboost.rank_metrics"),
        ("qqq", "Use one of rmse, mse"),
        (["auc", "logg_loss"], 'Did you mean "log_loss"?'),
    ],
)
def test_mistyped_names_come_first(metric, message):
    """Before numbers out of range, and before missing validation rows."""
    for estimator in (Booster, arboost.AdaBoostClassifier):
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            estimator(n_estimators=-1, eval_metric=metric).fit("no table", None)
        assert message in str(caught.value)
    with pytest.raises(ValueError, match="it is called"):
        Booster(n_estimators=-1, loss="Logloss").fit("no table", None)


# ---- the table ----


def test_rows_name_arguments_of_arboost():
    known = {"rounds", *names(arboost.cv)}
    for public in ESTIMATORS.values():
        known |= names(public) | names(public.fit)
    for row in library_rows("parameters"):
        assert set(row.ours.split()) <= known, row
        assert row.ours or row.note, row
        assert not row.note or row.note.endswith("."), row
    for (parameter, _), value in library_values().items():
        tables = [public._TABLE for public in ESTIMATORS.values()]
        options = [table[parameter].options for table in tables if parameter in table]
        assert any(value in one for one in options), parameter


def arguments_of_sklearn():
    from sklearn import ensemble, tree

    classes = [
        *(getattr(ensemble, name) for name in ensemble.__all__ if name in ESTIMATORS),
        ensemble.HistGradientBoostingClassifier,
        ensemble.HistGradientBoostingRegressor,
        tree.DecisionTreeClassifier,
        tree.DecisionTreeRegressor,
    ]
    return set().union(*(names(one) | names(one.fit) for one in classes))


def arguments_of_xgboost():
    module = pytest.importorskip("xgboost")
    actual = set(module.XGBClassifier().get_params()) | names(module.XGBClassifier.fit)
    return actual | names(module.XGBClassifier.predict) | names(module.train)


def arguments_of_lightgbm():
    module = pytest.importorskip("lightgbm")
    actual = set(module.LGBMClassifier().get_params()) | names(module.LGBMClassifier.fit)
    return actual | names(module.LGBMClassifier.predict) | names(module.train)


def arguments_of_catboost():
    module = pytest.importorskip("catboost")
    actual = names(module.CatBoostClassifier.__init__) | names(module.CatBoostClassifier.fit)
    return actual | names(module.CatBoostClassifier.predict)


ARGUMENTS = {
    "sklearn": arguments_of_sklearn,
    "xgboost": arguments_of_xgboost,
    "lightgbm": arguments_of_lightgbm,
    "catboost": arguments_of_catboost,
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_argument_of_a_library_has_a_suggestion(library):
    ours = set().union(*(names(one) | names(one.fit) for one in ESTIMATORS.values()))
    theirs = ARGUMENTS[library]() - {"kwargs", "fit_params", "y"}
    listed = {name for row in library_rows("parameters") for name in row.names(library)}
    assert theirs - ours - listed == set()


def test_every_name_has_a_suggestion():
    parameters, arguments = names(Booster), names(Booster.fit)
    for name in rows_by_name("parameters").keys() - parameters:
        text = argument_suggestion(name, "Booster", parameters, arguments)
        assert text.startswith(
            (f"{name} is called ", f"{name} is an argument of fit", "Booster has no")
        )
        assert "Did you mean" not in text


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("save_model", r"has no save_model\. Use save\(path\)"),
        ("load_model", r"Use arboost\.load\(path\)"),
        ("get_booster", "Use model_ of a fitted estimator"),
        ("booster_", "Use model_ of a fitted estimator"),
        ("get_score", r"Use importances\(kind\)"),
    ],
)
def test_suggestions_for_attributes_of_other_libraries(name, message):
    model = Booster(n_estimators=1).fit(X, Y)
    forest = arboost.RandomForestRegressor(2).fit(X, Y)
    for one in (Booster(), model, model.model_, forest, pickle.loads(pickle.dumps(forest))):
        assert not hasattr(one, name)
        with pytest.raises(AttributeError, match=f"{type(one).__name__} .*{message}"):
            getattr(one, name)
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            one.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="classifiers only"):  # a property says why
        forest.model_.classes_  # noqa: B018


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("DMatrix", r"arboost\.Dataset\(X, y\)"),
        ("Pool", r"arboost\.Dataset\(X, y\)"),
        ("train", r"arboost\.GradientBoostingClassifier\(\.\.\.\)\.fit\(X, y\)"),
        ("XGBRegressor", r"Use arboost\.GradientBoostingRegressor"),
        ("XGBRFClassifier", r"Use arboost\.RandomForestClassifier"),
        ("load_model", r"Use arboost\.load\(path\)"),
    ],
)
def test_suggestions_for_names_of_other_modules(name, message):
    with pytest.raises(AttributeError, match=f"arboost has no {name}.*{message}"):
        getattr(arboost, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        arboost.nothing  # noqa: B018


@pytest.mark.parametrize(("value", "ours"), [("SAMME", "discrete"), ("SAMME.R", "real")])
def test_suggestions_for_algorithms_of_adaboost(value, ours):
    with pytest.raises(ValueError, match=f'"{value}" is called "{ours}" here'):
        arboost.AdaBoostClassifier(algorithm=value).fit(X, Y)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("output_margin", "The raw scores come from predict_raw"),
        ("raw_score", "The raw scores come from predict_raw"),
        ("pred_contrib", r"shap_values\(X\) returns the contributions"),
        ("pred_leaf", r"apply\(X\) returns the leaves"),
        ("num_iteration", r"is called rounds here: use predict\w*\(X, rounds=\.\.\.\)"),
        ("iteration_range", "is called rounds here"),
        ("ntree_limit", "is called rounds here"),
        ("round", r"Did you mean rounds\?"),
    ],
)
@pytest.mark.parametrize("estimator", [Booster(n_estimators=1), arboost.RandomForestClassifier(2)])
def test_suggestions_of_predictions(estimator, name, message):
    estimator.fit(X, Y)
    for model in (estimator, estimator.model_):
        for method in (model.predict, model.predict_proba):
            with pytest.raises(TypeError, match=f"{name}.*{message}"):
                method(X, **{name: 1})
            assert "unknown" not in inspect.signature(method).parameters


TOOL = ROOT / "tools" / "write_tables.py"


def test_pages_have_the_tables_of_the_code(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(TOOL.parent), *sys.path])  # as Python does for a script
    tool = runpy.run_path(str(TOOL))
    tables = tool["tables"]()
    pages = {str(path): path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md")}
    assert [name for name, page in pages.items() if tool["rewritten"](page, tables) != page] == []
    text = "".join(pages.values())
    assert [name for name in tables if f"<!-- table: {name} -->" not in text] == []
    page = "before\n<!-- table: values -->\nold\n<!-- end -->\nafter\n"
    written = tool["rewritten"](page, {"values": "| new |\n"})
    assert written == "before\n<!-- table: values -->\n| new |\n<!-- end -->\nafter\n"


def test_rows():
    rows = (Row("ours", sklearn="a b", xgboost="b"), Row("other", catboost="a c"))
    assert rows[0].names() == ["a", "b"]
    assert rows[0].names("xgboost") == ["b"]
    assert all(hasattr(rows[0], library) for library in LIBRARIES)
