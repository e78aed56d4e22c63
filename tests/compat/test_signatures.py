"""Names, signatures and defaults of arboost.compat.sklearn are those of scikit-learn."""

import inspect

import numpy as np
import pytest
import sklearn
from sklearn import ensemble, tree
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

import arboost
from arboost.compat import sklearn as compat
from support.processes import HEAVY, run

CLASSES = [name for name in compat.__all__ if inspect.isclass(getattr(compat, name))]
# The signatures that this version was written for.
KNOWN = parse_version("1.9") <= parse_version(sklearn.__version__) < parse_version("1.11")


def original(name):
    return getattr(tree if hasattr(tree, name) else ensemble, name)


def parameters(function):
    return [
        (one.name, one.kind, one.default)
        for one in inspect.signature(function).parameters.values()
        if one.kind is not inspect.Parameter.VAR_KEYWORD
    ]


def test_all_but_two_estimators_are_there():
    public = {name for name in (*ensemble.__all__, *tree.__all__) if not name.startswith("Base")}
    assert public - set(compat.__all__) == {"IsolationForest", "RandomTreesEmbedding"}
    assert set(compat.__all__) <= public


@pytest.mark.skipif(not KNOWN, reason="another version of scikit-learn has other signatures")
@pytest.mark.parametrize("name", CLASSES)
def test_constructor(name):
    assert parameters(getattr(compat, name)) == parameters(original(name))


@pytest.mark.skipif(not KNOWN, reason="another version of scikit-learn has other signatures")
@pytest.mark.parametrize("name", CLASSES)
def test_fit_takes_the_same_arguments(name):
    ours = [one[0] for one in parameters(getattr(compat, name).fit)]
    theirs = [one[0] for one in parameters(original(name).fit) if one[0] != "check_input"]
    assert ours[: len(theirs)] == theirs


@pytest.mark.parametrize("name", [name for name in CLASSES if name[:4] not in ("Stac", "Voti")])
def test_clone_and_parameters(name):
    model = getattr(compat, name)()
    assert clone(model).get_params() == model.get_params() == original(name)().get_params()
    with pytest.raises(TypeError, match="max_bin_count"):
        getattr(compat, name)(max_bin_count=3)


def test_import_of_arboost_stays_light():
    loaded = run(
        f"""
        import sys
        import arboost
        print([name for name in (*{HEAVY}, "arboost.compat") if name in sys.modules])
        """
    )
    assert loaded == "[]"


@pytest.mark.filterwarnings("ignore:y has one class only")
@parametrize_with_checks(
    [
        compat.GradientBoostingClassifier(n_estimators=10),
        compat.GradientBoostingRegressor(n_estimators=20),
        compat.HistGradientBoostingClassifier(max_iter=10),
        compat.HistGradientBoostingRegressor(max_iter=20),
        compat.DecisionTreeRegressor(),
        compat.ExtraTreesClassifier(n_estimators=5),
        compat.AdaBoostClassifier(n_estimators=5),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


def test_adaboost_scores_are_scikit_learns():
    X, y = np.random.default_rng(0).normal(size=(200, 3)), None
    for n_classes in (2, 3):
        y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2], [0.0, 0.7][: n_classes - 1])
        stump = tree.DecisionTreeClassifier(max_depth=1, random_state=0)
        ours = compat.AdaBoostClassifier(stump, n_estimators=10, random_state=0).fit(X, y)
        theirs = ensemble.AdaBoostClassifier(stump, n_estimators=10, random_state=0).fit(X, y)
        np.testing.assert_allclose(ours.estimator_weights_, theirs.estimator_weights_)
        np.testing.assert_allclose(
            ours.decision_function(X), theirs.decision_function(X), atol=1e-12
        )
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X))
        for one, other in zip(
            ours.staged_predict_proba(X), theirs.staged_predict_proba(X), strict=True
        ):
            np.testing.assert_allclose(one, other)


def test_forests_hold_unfitted_estimator():
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    for package in (arboost, compat):
        forest = package.RandomForestClassifier(n_estimators=2, max_depth=1).fit(X, y)
        assert isinstance(forest.estimator_, package.DecisionTreeClassifier)
        assert forest.estimator_.max_depth == 1
        assert not hasattr(forest.estimator_, "model_")
    assert isinstance(
        compat.ExtraTreesRegressor(n_estimators=2).fit(X, y).estimators_[0],
        compat.ExtraTreeRegressor,
    )
