"""scikit-learn's estimator checks, and its tools with our estimators."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn import tree
from sklearn.base import clone
from sklearn.datasets import load_iris, make_regression
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_estimator,
    estimator_checks_generator,
    parametrize_with_checks,
)

from arboost import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

# Checks whose result depends on the algorithm; the others are of the interface that all share.
OF_MODELS = {
    "check_dict_unchanged",
    "check_estimators_pickle",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_regressors_int",
    "check_regressors_train",
    "check_classifiers_train",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_sample_weights_invariance",
}
OTHER_MODELS = [
    GradientBoostingRegressor(n_estimators=20, grow_policy="leafwise", max_leaves=8),
    GradientBoostingRegressor(n_estimators=10, boosting="gradient", loss="huber"),
    GradientBoostingRegressor(n_estimators=10, loss="absolute_error"),
    GradientBoostingRegressor(n_estimators=10, rate_drop=0.1, num_parallel_tree=2),
    GradientBoostingClassifier(n_estimators=20, multi_strategy="multi_output_tree"),
    GradientBoostingClassifier(n_estimators=10, boosting="gradient"),
    DecisionTreeRegressor(splitter="random"),
    AdaBoostClassifier(n_estimators=10, algorithm="real", max_depth=2),
    AdaBoostClassifier(n_estimators=10, algorithm="gentle", learning_rate=0.5),
    AdaBoostRegressor(n_estimators=10, loss="square", learning_rate=0.5, tree_method="exact"),
]


@pytest.mark.filterwarnings("ignore:y has one class only")
@pytest.mark.filterwarnings("ignore:alpha=0.01 has no effect")
@parametrize_with_checks(
    [
        GradientBoostingRegressor(n_estimators=20),
        GradientBoostingClassifier(n_estimators=20),
        DecisionTreeClassifier(),
        DecisionTreeRegressor(),
        ExtraTreesClassifier(n_estimators=5),
        ExtraTreesRegressor(n_estimators=5),
        RandomForestClassifier(n_estimators=10, bootstrap=False),
        RandomForestRegressor(n_estimators=10, bootstrap=False),
        AdaBoostClassifier(n_estimators=10),
        AdaBoostRegressor(n_estimators=10),
        AdaBoostRegressor(tree.DecisionTreeRegressor(max_depth=3), n_estimators=5),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore:y has one class only")
@pytest.mark.filterwarnings("ignore:alpha=0.01 has no effect")
@pytest.mark.parametrize("estimator", OTHER_MODELS, ids=str)
def test_estimator_checks_of_other_models(estimator):
    names = set()
    for each, check in estimator_checks_generator(estimator):
        if check.func.__name__ in OF_MODELS:
            check(each)
            names.add(check.func.__name__)
    assert len(names) >= 8


@pytest.mark.filterwarnings("ignore:y has one class only")
@pytest.mark.parametrize(
    "estimator",
    [
        AdaBoostClassifier(n_estimators=5, resample=True, oob_score=True, max_depth=2),
        AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=2), n_estimators=3, resample=True),
        AdaBoostRegressor(n_estimators=5, loss="exponential", resample=True, oob_score=True),
        AdaBoostRegressor(tree.DecisionTreeRegressor(max_depth=3), n_estimators=3, resample=True),
        RandomForestClassifier(n_estimators=10),
        RandomForestRegressor(n_estimators=10),
        ExtraTreesClassifier(n_estimators=5, bootstrap=True),
    ],
    ids=str,
)
def test_estimator_checks_of_row_samplers(estimator):
    """Sampling with weights and with repeated rows agree in distribution only.

    scikit-learn leaves these two checks out for its own forests as well.
    """
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    expected = {
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    }
    if isinstance(estimator, AdaBoostClassifier) and estimator.estimator is not None:
        # The check sets min_weight_fraction_leaf, which is refused together with an estimator.
        expected.add("check_class_weight_classifiers")
    assert failed == expected


def test_grid_search_over_a_pipeline():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), GradientBoostingClassifier(n_estimators=5))
    grid = {"gradientboostingclassifier__max_depth": [1, 3]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9


def test_cross_validation_in_processes():
    X, y = make_regression(200, 4, random_state=0)
    model = GradientBoostingRegressor(n_estimators=30)
    assert cross_val_score(model, X, y, cv=3, n_jobs=2).mean() > 0.5


@pytest.mark.parametrize("how", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_change_nothing(how):
    X, y = load_iris(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=5, random_state=7).fit(X, y)
    before = dict(vars(model))
    other = how(model)
    assert vars(model) == before
    np.testing.assert_equal(other.get_params(), model.get_params())
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(other.classes_, model.classes_)


def test_clone_is_unfitted():
    X, y = load_iris(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=3, gamma=0.5).fit(X, y)
    other = clone(model)
    assert other.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        other.predict(X)


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.predict_proba([[1.0]]),
        lambda model: model.decision_function([[1.0]]),
        lambda model: next(model.staged_predict([[1.0]])),
        lambda model: model.save("never.arb"),
        lambda model: model.feature_importances_,
    ],
)
def test_not_fitted(use):
    with pytest.raises(NotFittedError):
        use(GradientBoostingClassifier())


def test_repr_of_a_fitted_model():
    X, y = load_iris(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=3).fit(X, y)
    assert repr(model) == "GradientBoostingClassifier(n_estimators=3)"
    assert "n_estimators" in model._repr_html_()
