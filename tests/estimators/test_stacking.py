"""Stacking: out-of-fold predictions, shared bins, fitted members, row weights, classes."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    TimeSeriesSplit,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from arboost import (
    Dataset,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    StackingClassifier,
    StackingRegressor,
)
from arboost.estimators import member_fits
from support.stacked import (
    GROUPS,
    N_ROWS,
    ROWS,
    ClassRecorder,
    Latest,
    Memory,
    Recorder,
    engine_members,
)


def first_level(cv, members=None, groups=None, y=None):
    """Return the fitted final estimator, which records its training set, and the stack."""
    members = [("memory", Memory())] if members is None else members
    stack = StackingRegressor(members, Recorder(), cv=cv)
    stack.fit(ROWS, 100.0 + ROWS[:, 0] if y is None else y, groups=groups)
    return stack.final_estimator_, stack


# ---- out-of-fold predictions ----


@pytest.mark.parametrize(
    ("cv", "groups"),
    [
        (None, None),
        (2, None),
        (KFold(7, shuffle=True, random_state=3), None),
        (4, GROUPS),
        (GroupKFold(3), GROUPS),
        (LeaveOneGroupOut(), GROUPS),
        ([(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))], None),
    ],
)
def test_predictions_come_from_members_not_fitted_on_the_row(cv, groups):
    final, stack = first_level(cv, groups=groups)
    assert (final.X_ == -1.0).all()
    np.testing.assert_array_equal(final.y_, 100.0 + ROWS[:, 0])
    # The members of estimators_ are fitted on every row.
    np.testing.assert_array_equal(stack.transform(ROWS)[:, 0], 100.0 + ROWS[:, 0])


@pytest.mark.parametrize("cv", [None, 4, GroupKFold(3)])
def test_predictions_come_from_members_not_fitted_on_the_group(cv):
    class GroupMemory(Memory):
        def fit(self, X, y):
            return super().fit(X // 5, y)

        def predict(self, X):
            return super().predict(X // 5)

    final, _ = first_level(cv, [("memory", GroupMemory())], groups=GROUPS)
    assert (final.X_ == -1.0).all()
    if cv is None:  # folds of rows leak the groups
        final, _ = first_level(KFold(5, shuffle=True, random_state=0), [("memory", GroupMemory())])
        assert (final.X_ != -1.0).any()


def test_time_folds_look_back_only():
    members = [("memory", Memory()), ("latest", Latest())]
    final, stack = first_level(TimeSeriesSplit(4), members)
    # The first block is never held out, so the final estimator is not fitted on it.
    assert len(final.y_) == 48
    np.testing.assert_array_equal(final.y_, 112.0 + np.arange(48))
    assert (final.X_[:, 0] == -1.0).all()
    assert (final.X_[:, 1] < np.arange(12, 60)).all()
    assert stack.transform(ROWS)[0, 1] == 59.0


def test_time_folds_cut_weights_and_table_alike():
    weight = 1.0 + np.arange(N_ROWS)
    stack = StackingRegressor([("line", Ridge())], Recorder(), cv=TimeSeriesSplit(4))
    stack.set_params(passthrough=True).fit(ROWS, ROWS[:, 0], weight)
    final = stack.final_estimator_
    np.testing.assert_array_equal(final.weight_, weight[12:])
    np.testing.assert_array_equal(final.X_[:, 1], ROWS[12:, 0])


def test_gap_of_time_folds():
    final, _ = first_level(TimeSeriesSplit(3, gap=4), [("latest", Latest())])
    assert (np.arange(15, 60) - final.X_[:, 0] > 4).all()


def test_splitter_gets_the_table():
    class ByValue:
        def split(self, X, y=None, groups=None):
            low = np.flatnonzero(X[:, 0] < 20)
            high = np.flatnonzero(X[:, 0] >= 20)
            yield low, high
            yield high, low

        def get_n_splits(self, X=None, y=None, groups=None):
            return 2

    final, _ = first_level(ByValue(), [("latest", Latest())])
    np.testing.assert_array_equal(final.X_[:, 0], np.where(ROWS[:, 0] < 20, 59.0, 19.0))


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_random_splitters_stay_unchanged(n_jobs):
    cv = KFold(3, shuffle=True, random_state=np.random.RandomState(5))
    members = [("memory", Memory()), ("latest", Latest())]
    fits = [
        StackingRegressor(members, Recorder(), cv=cv, n_jobs=n_jobs).fit(ROWS, ROWS[:, 0])
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*[fit.final_estimator_.X_ for fit in fits])
    assert (fits[0].final_estimator_.X_[:, 0] == -1.0).all()


# ---- members of the engine ----


def test_members_of_the_engine_share_bins(monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    made = []

    shared_dataset = member_fits.shared_dataset

    def counted(*arguments):
        made.append(shared_dataset(*arguments))
        return made[-1]

    monkeypatch.setattr(member_fits, "shared_dataset", counted)
    stack = StackingClassifier(engine_members(), ClassRecorder(), cv=3).fit(X, y)
    assert [data.max_bins for data in made] == [255, 15]
    # On all rows, the bins are the bins of a separate fit.
    for name, member in engine_members():
        alone = clone(member).fit(X, y)
        np.testing.assert_array_equal(
            stack.named_estimators_[name].predict_proba(X), alone.predict_proba(X)
        )
    # On a fold, the bins are the bins of all rows.
    (train, held_out), *_ = KFold(3).split(X)
    splits = [(train, held_out), (held_out, train)]
    stack.set_params(cv=splits).fit(X, y)
    member = member_fits.fit_on_rows(
        GradientBoostingClassifier(n_estimators=10), Dataset(X, y), train.astype(np.uint32)
    )
    np.testing.assert_array_equal(
        stack.final_estimator_.X_[held_out, 0], member.predict_proba(X[held_out])[:, 1]
    )


@pytest.mark.parametrize("weight", [None, "some", "zeros"])
def test_results_do_not_depend_on_n_jobs(weight):
    X, y = load_iris(return_X_y=True)
    if weight is not None:
        weight = 1.0 + np.arange(150) % 4 - (weight == "zeros")
    members = [*engine_members()[:2], ("bayes", GaussianNB())]
    fits = [
        StackingClassifier(members, cv=4, n_jobs=n_jobs).fit(X, y, weight)
        for n_jobs in (None, 1, 2, 5, -1)
    ]
    first, *others = (pickle.dumps(vars(fit.final_estimator_)) for fit in fits)
    assert all(other == first for other in others)
    expected, *given = (fit.predict_proba(X) for fit in fits)
    for one in given:
        np.testing.assert_array_equal(one, expected)
    # The limit on threads during the fit is removed.
    assert [member.n_jobs for member in fits[2].estimators_[:2]] == [None, None]


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_joblib_context_sets_the_number_of_parallel_jobs(backend):
    X, y = load_iris(return_X_y=True)
    members = [*engine_members()[:2], ("bayes", GaussianNB())]
    alone = StackingClassifier(members, cv=2).fit(X, y)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        stack = StackingClassifier(members, cv=2).fit(X, y)
    np.testing.assert_array_equal(stack.predict_proba(X), alone.predict_proba(X))


def test_a_member_keeps_its_own_threads():
    X, y = load_diabetes(return_X_y=True)
    members = [("trees", GradientBoostingRegressor(n_estimators=3, n_jobs=1))]
    stack = StackingRegressor(members, n_jobs=2, cv=2).fit(X, y)
    assert stack.estimators_[0].get_params() == members[0][1].get_params()


def test_exact_trees_and_categories():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {"kind": rng.choice(["a", "b", "c"], 200), "value": rng.normal(size=200)}
    )
    y = frame["value"] + (frame["kind"] == "b")
    members = [
        ("exact", GradientBoostingRegressor(n_estimators=20, tree_method="exact")),
        ("hist", GradientBoostingRegressor(n_estimators=20)),
    ]
    stack = StackingRegressor(members, passthrough=False).fit(frame, y)
    assert stack.score(frame, y) > 0.9
    # With non-numeric columns the final estimator gets a frame.
    final = GradientBoostingRegressor(n_estimators=20)
    stack = StackingRegressor(members, final, passthrough=True).fit(frame, y)
    names = ["stackingregressor_exact", "stackingregressor_hist", "kind", "value"]
    assert list(stack.transform(frame).columns) == names
    assert stack.get_feature_names_out().tolist() == names
    assert stack.final_estimator_.feature_names_in_.tolist() == names
    assert stack.score(frame[["value", "kind"]], y) > 0.9


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_other_frames(library):
    module = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    data = {"kind": rng.choice(["a", "b"], 120).tolist(), "value": rng.normal(size=120).tolist()}
    frame = module.DataFrame(data) if library == "polars" else module.table(data)
    y = np.array(data["value"])
    members = [("trees", GradientBoostingRegressor(n_estimators=10))]
    stack = StackingRegressor(members, Recorder(), passthrough=True, cv=2).fit(frame, y)
    given = stack.final_estimator_.X_
    names = given.columns if library == "polars" else given.column_names
    assert list(names) == ["stackingregressor_trees", "kind", "value"]
    assert type(given) is type(frame)
    np.testing.assert_array_equal(given["value"].to_numpy(), y)


# ---- fitted members ----


def test_prefit_members_are_not_fitted():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["x", "y", "z"])[y]
    members = [
        ("bayes", GaussianNB().fit(X, labels)),
        ("near", KNeighborsClassifier().fit(X, labels)),
    ]
    stack = StackingClassifier(members, cv="prefit").fit(X, labels)
    assert stack.estimators_ == [member for _, member in members]
    np.testing.assert_array_equal(stack.transform(X)[:, :3], members[0][1].predict_proba(X))
    assert stack.score(X, labels) > 0.9


def test_prefit_labels_become_class_indices():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["x", "y", "z"])[y]
    members = [("bayes", GaussianNB().fit(X, labels))]
    stack = StackingClassifier(members, cv="prefit", stack_method="predict").fit(X, labels)
    np.testing.assert_array_equal(stack.transform(X)[:, 0] == y, members[0][1].predict(X) == labels)


def test_prefit_members_without_a_class():
    X, y = load_iris(return_X_y=True)
    y = y + 1  # labels that could be class indices
    members = [("bayes", GaussianNB().fit(X[50:], y[50:]))]
    stack = StackingClassifier(members, cv="prefit").fit(X, y)
    np.testing.assert_array_equal(
        stack.transform(X), np.column_stack([np.zeros(150), members[0][1].predict_proba(X)])
    )


def test_frozen_members_with_others():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["x", "y", "z"])[y]
    frozen = GaussianNB().fit(X[25:125], labels[25:125])
    members = [("frozen", FrozenEstimator(frozen)), ("near", KNeighborsClassifier())]
    stack = StackingClassifier(members, ClassRecorder(), cv=3).fit(X, labels)
    np.testing.assert_array_equal(stack.final_estimator_.X_[:, :3], frozen.predict_proba(X))
    stack.fit(X[50:], labels[50:])  # fewer labels than the frozen member has
    two = StackingClassifier([("frozen", FrozenEstimator(frozen.fit(X[:100], labels[:100])))], cv=3)
    np.testing.assert_array_equal(two.fit(X, labels).transform(X)[:, :2], frozen.predict_proba(X))


def test_prefit_needs_fitted_members_and_no_groups():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(NotFittedError):
        StackingClassifier([("bayes", GaussianNB())], cv="prefit").fit(X, y)
    members = [("bayes", GaussianNB().fit(X, y))]
    with pytest.raises(ValueError, match=r'cv="prefit" has no folds\. Leave out groups'):
        StackingClassifier(members, cv="prefit").fit(X, y, groups=y)


# ---- row weights ----


def test_weights_reach_every_fit():
    weight = 1.0 + np.arange(N_ROWS)
    members = [
        ("one", Recorder()),
        ("two", make_pipeline(StandardScaler(), Recorder())),
        ("three", GridSearchCV(Recorder(), {}, cv=2)),
    ]
    stack = StackingRegressor(members, Recorder(), cv=2).fit(ROWS, ROWS[:, 0], weight)
    one, two, three = stack.estimators_
    for recorder in (one, two[-1], three.best_estimator_, stack.final_estimator_):
        np.testing.assert_array_equal(recorder.weight_, weight)


def test_folds_get_the_weights_of_their_rows():
    X, y = load_diabetes(return_X_y=True)
    weight = 1.0 + np.arange(len(y)) % 5
    (train, held_out), *_ = KFold(2).split(X)
    members = [("line", Ridge()), ("trees", GradientBoostingRegressor(n_estimators=5))]
    stack = StackingRegressor(members, Recorder(), cv=2).fit(X, y, weight)
    alone = Ridge().fit(X[train], y[train], weight[train])
    np.testing.assert_allclose(
        stack.final_estimator_.X_[held_out, 0], alone.predict(X[held_out]), rtol=1e-12
    )
    data = Dataset(X, y, sample_weight=weight)
    trees = member_fits.fit_on_rows(
        GradientBoostingRegressor(n_estimators=5), data, train.astype(np.uint32)
    )
    np.testing.assert_array_equal(
        stack.final_estimator_.X_[held_out, 1], trees.predict(X[held_out])
    )


@pytest.mark.parametrize(
    ("members", "final", "name"),
    [
        ([("near", KNeighborsRegressor())], None, "KNeighborsRegressor"),
        ([("line", Ridge())], KNeighborsRegressor(), "KNeighborsRegressor"),
        ([("pipe", make_pipeline(StandardScaler(), KNeighborsRegressor()))], None, "Pipeline"),
    ],
)
def test_weights_for_estimators_that_take_none(members, final, name):
    stack = StackingRegressor(members, final)
    with pytest.raises(TypeError, match=rf"\({name}\) has no such argument") as caught:
        stack.fit(ROWS, ROWS[:, 0], np.ones(N_ROWS))
    assert "Leave out sample_weight" in str(caught.value)
    assert not hasattr(stack, "estimators_")


# ---- classes ----


def test_a_class_missing_in_a_fold_has_probability_zero():
    X, y = load_iris(return_X_y=True)
    first, second = np.arange(100), np.arange(100, 150)
    stack = StackingClassifier(
        [("bayes", GaussianNB()), ("trees", GradientBoostingClassifier(n_estimators=5))],
        ClassRecorder(),
        cv=[(first, second), (second, first)],
    ).fit(X, y)
    given = stack.final_estimator_.X_
    assert given.shape == (150, 6)
    assert (given[100:, [2, 5]] == 0.0).all()
    np.testing.assert_array_equal(given[:100, [2, 5]], 1.0)


def test_predictions_are_labels():
    X, y = load_iris(return_X_y=True)
    labels = np.array([7, 3, -2])[y]
    stack = StackingClassifier([("bayes", GaussianNB()), ("line", Ridge())]).fit(X, labels)
    assert stack.classes_.tolist() == [-2, 3, 7]
    assert stack.stack_method_ == ["predict_proba", "predict"]
    assert stack.score(X, labels) > 0.9
    assert stack.predict_proba(X).shape == stack.decision_function(X).shape == (150, 3)
    np.testing.assert_array_equal(stack.estimators_[0].classes_, [0, 1, 2])


def test_probabilities_of_several_targets_are_those_of_the_larger_label():
    X, y = load_iris(return_X_y=True)
    several = np.column_stack([y == 0, y == 2]).astype(int)
    members = [("near", KNeighborsClassifier())]
    stack = StackingClassifier(
        members, KNeighborsClassifier(), cv=KFold(3, shuffle=True, random_state=0)
    )
    stack.fit(X, several)
    assert [labels.tolist() for labels in stack.classes_] == [[0, 1], [0, 1]]
    given = stack.predict_proba(X)
    assert given.shape == (150, 2)
    assert ((given > 0.5) == stack.predict(X)).all()
    assert (stack.predict(X) == several).mean() > 0.9
