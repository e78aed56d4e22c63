"""`tree_` of trees, forests and boosters, and the tools that read it."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import tree
from sklearn.datasets import load_iris, make_friedman1
from sklearn.inspection import partial_dependence
from sklearn.utils._param_validation import InvalidParameterError

import arboost
from arboost.compat.sklearn import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    export_graphviz,
    export_text,
    plot_tree,
)

X_IRIS, Y_IRIS = load_iris(return_X_y=True)


def regression():
    return make_friedman1(200, n_features=5, noise=0.5, random_state=0)


def preorder(structure):
    """Return the nodes of a tree depth-first, as scikit-learn numbers them."""
    order, stack = [], [0]
    while stack:
        node = stack.pop()
        order.append(node)
        if structure.children_left[node] >= 0:
            stack += [structure.children_right[node], structure.children_left[node]]
    return order


def assert_same_tree(ours, theirs):
    one, other = ours.tree_, theirs.tree_
    assert isinstance(one, tree._tree.Tree)
    order = preorder(one)
    for name in ("feature", "n_node_samples"):
        assert_array_equal(getattr(one, name)[order], getattr(other, name))
    for name in ("impurity", "weighted_n_node_samples", "value"):
        assert_allclose(getattr(one, name)[order], getattr(other, name), atol=1e-6)
    assert one.max_depth == other.max_depth
    assert one.n_leaves == other.n_leaves


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("class_weight", [None, {0: 3.0, 1: 1.0, 2: 1.0}])
def test_classification_tree_is_scikit_learns(criterion, class_weight):
    params = {"criterion": criterion, "max_depth": 2, "class_weight": class_weight}
    X = X_IRIS[:, :2]  # without ties
    ours = DecisionTreeClassifier(**params).fit(X, Y_IRIS)
    theirs = tree.DecisionTreeClassifier(random_state=0, **params).fit(X, Y_IRIS)
    assert_same_tree(ours, theirs)


@pytest.mark.parametrize(
    ("criterion", "weighted"),
    [
        ("squared_error", False),
        ("squared_error", True),
        ("absolute_error", False),
        ("poisson", False),
        ("poisson", True),
    ],
)
def test_regression_tree_is_scikit_learns(criterion, weighted):
    X, y = regression()
    y = np.abs(y)
    weight = np.arange(len(y)) % 4 if weighted else None
    params = {"criterion": criterion, "max_depth": 3}
    ours = DecisionTreeRegressor(**params).fit(X, y, weight)
    theirs = tree.DecisionTreeRegressor(random_state=0, **params).fit(X, y, weight)
    assert_same_tree(ours, theirs)
    assert_allclose(ours.feature_importances_, ours.tree_.compute_feature_importances(), atol=1e-6)


def test_several_targets():
    X, y = regression()
    both = np.stack([y, -(y**2)], axis=1)
    ours = DecisionTreeRegressor(max_depth=2).fit(X, both)
    theirs = tree.DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, both)
    assert_same_tree(ours, theirs)


def test_tools_of_scikit_learn_take_trees():
    pytest.importorskip("matplotlib").use("Agg")
    model = DecisionTreeRegressor(max_depth=2).fit(*regression())
    assert export_text(model).count("value") == 4
    assert export_graphviz(model).count("squared_error") == 7
    assert len(plot_tree(model)) >= 7
    X, y = regression()
    forest = RandomForestRegressor(n_estimators=3, max_depth=2, random_state=0).fit(X, y)
    assert export_text(forest.estimators_[0]).count("value") == 4
    assert isinstance(model, tree.DecisionTreeRegressor)
    assert not isinstance(model, tree.DecisionTreeClassifier)


def test_main_trees_have_the_structure_and_one_call_instead_of_tools():
    model = arboost.DecisionTreeRegressor(max_depth=1).fit(*regression())
    assert model.tree_.node_count == 3
    assert np.isnan(model.tree_.impurity).all()
    assert export_graphviz(model).count("samples") == 3
    with pytest.raises(InvalidParameterError):
        export_text(model)
    assert model.text().startswith("tree 0: 2 leaves")


@pytest.mark.filterwarnings("ignore")  # of dtreeviz itself
def test_dtreeviz():
    dtreeviz = pytest.importorskip("dtreeviz")
    names = {"feature_names": list("abcd"), "target_name": "iris", "class_names": list("xyz")}
    fitted = DecisionTreeClassifier(max_depth=3).fit(X_IRIS, Y_IRIS)
    shown = dtreeviz.model(fitted, X_IRIS, Y_IRIS, **names).shadow_tree
    assert shown.nnodes() == fitted.tree_.node_count
    assert sum(leaf.nsamples() for leaf in shown.leaves) == len(X_IRIS)
    assert {node.feature_name() for node in shown.internal} <= {"c", "d"}


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(max_depth=3),
        RandomForestRegressor(n_estimators=4, max_depth=3, random_state=0),
        ExtraTreesRegressor(n_estimators=4, max_depth=3, random_state=0),
        GradientBoostingRegressor(n_estimators=5),
    ],
    ids=str,
)
def test_shap_and_inspection(model):
    shap = pytest.importorskip("shap")
    X, y = regression()
    X = X.astype(np.float32)
    model.fit(X, y)
    explainer = shap.TreeExplainer(model)
    assert_allclose(explainer.shap_values(X[:10]), model.shap_values(X[:10]), atol=1e-9)
    assert_allclose(explainer.expected_value, model.expected_value())
    # scikit-learn has no recursion for extra trees.
    method = "auto" if isinstance(model, ExtraTreesRegressor) else "recursion"
    one = partial_dependence(model, X, [0], method=method, grid_resolution=5)
    assert one["average"].shape == (1, 5)


def test_shap_of_classifiers():
    shap = pytest.importorskip("shap")
    for model in (
        DecisionTreeClassifier(max_depth=2),
        RandomForestClassifier(n_estimators=3, random_state=0),
    ):
        model.fit(X_IRIS, Y_IRIS)
        found = shap.TreeExplainer(model).shap_values(X_IRIS[:5])
        assert_allclose(found, model.shap_values(X_IRIS[:5]), atol=1e-6)
    model = GradientBoostingClassifier(n_estimators=3).fit(X_IRIS, Y_IRIS == 1)
    explainer = shap.TreeExplainer(model)
    assert_allclose(explainer.shap_values(X_IRIS[:5]), model.shap_values(X_IRIS[:5]), atol=1e-6)


def test_inspection_warns_of_init():
    X, y = regression()
    model = GradientBoostingRegressor(n_estimators=2, init=DecisionTreeRegressor(max_depth=1))
    with pytest.warns(UserWarning, match="non-constant init predictor"):
        partial_dependence(model.fit(X, y), X, [0], method="recursion")


def test_structure_is_a_copy():
    model = DecisionTreeRegressor(max_depth=1).fit([[0.0], [1.0]], [0.0, 2.0])
    model.tree_.value[:] = 7.0
    assert model.predict([[0.0], [1.0]]).tolist() == [0.0, 2.0]


def test_categories_have_no_structure():
    frame = pd.DataFrame({"city": list("abcd") * 10})
    model = DecisionTreeRegressor().fit(frame, np.tile([1.0, 5.0, 2.0, 9.0], 10))
    with pytest.raises(ValueError, match="node 0 splits the category 'city' by sets"):
        _ = model.tree_


def test_constraints_may_be_floats():
    X, y = regression()
    params = {"monotonic_cst": np.array([1.0, 0.0, 0.0, 0.0, -1.0]), "max_depth": 3}
    proofs = DecisionTreeRegressor(**params).fit(X, y).verify_monotone({0: 1, 4: -1})
    assert [one.holds for one in proofs] == [True, True]
    with pytest.raises(ValueError, match="monotonic_cst must be"):
        DecisionTreeRegressor(monotonic_cst=np.full(5, 0.5)).fit(X, y)


def test_friedman_mse_is_squared_error():
    with pytest.warns(FutureWarning, match="it is squared error"):
        model = DecisionTreeRegressor(criterion="friedman_mse")
    assert model.criterion == "squared_error"
