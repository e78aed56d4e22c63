"""Categories of many levels in fits, Datasets, cross-validation and continued training."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import Dataset, GradientBoostingClassifier, GradientBoostingRegressor, cv, load
from arboost.data.levels import MAX_SET_LEVELS
from arboost.data.table import ingest
from arboost.data.target_encoding import features_to_encode, target_encode
from arboost.models.files.model_file import to_bytes

pandas = pytest.importorskip("pandas")

LEVELS, TRAIN = 600, 6000
ENCODINGS = ("groups", "mean")


@pytest.fixture(scope="module")
def table():
    """600 levels with one effect each; 6,000 training rows and 3,000 held-out rows."""
    rng = np.random.default_rng(0)
    n = TRAIN + 3000
    code, a = rng.integers(0, LEVELS, n), rng.normal(size=n)
    frame = pandas.DataFrame({"a": a, "user": [f"user {c}" for c in code]})
    frame.loc[rng.random(n) < 0.05, "user"] = None
    target = a + 1.5 * rng.normal(size=LEVELS)[code] + rng.normal(size=n)
    return frame, target


TASKS = {
    "numbers": (GradientBoostingRegressor, lambda target: target),
    "two classes": (GradientBoostingClassifier, lambda target: target > 0),
    "four classes": (
        GradientBoostingClassifier,
        lambda target: np.array(["d", "a", "c", "b"])[np.digitize(target, [-1.5, 0, 1.5])],
    ),
}


def task_of(name, table):
    estimator, answer = TASKS[name]
    frame, target = table
    y = answer(target)
    model = estimator(n_estimators=40, learning_rate=0.2)
    return model, frame[:TRAIN], y[:TRAIN], frame[TRAIN:], y[TRAIN:]


@pytest.mark.parametrize("name", TASKS)
def test_levels_are_learnt(name, table, tmp_path):
    model, X, y, X_new, y_new = task_of(name, table)
    without = model.fit(X[["a"]], y).score(X_new[["a"]], y_new)
    score = model.fit(X, y).score(X_new, y_new)
    assert score > without + 0.05
    # A training score close to the held-out score: target encoding does not leak a row's target.
    assert model.score(X, y) < score + 0.1
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X_new), model.predict(X_new))


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_same_bytes_from_any_library_and_threads(name, encoding, table):
    polars = pytest.importorskip("polars")
    model, X, y, *_ = task_of(name, table)
    model.set_params(category_encoding=encoding)
    expected = to_bytes(model.fit(X, y).model_)
    chunks = polars.concat([polars.from_pandas(X[:100]), polars.from_pandas(X[100:])])
    assert chunks.n_chunks() == 2
    for frame in (polars.from_pandas(X), chunks, chunks.to_arrow(), X.astype({"user": "category"})):
        for n_jobs in (1, 3):
            assert to_bytes(model.set_params(n_jobs=n_jobs).fit(frame, y).model_) == expected


def test_levels_that_say_nothing_do_no_harm():
    rng = np.random.default_rng(1)
    n = 8000
    X = pandas.DataFrame({"a": rng.normal(size=n), "id": [f"{c:x}" for c in rng.permutation(n)]})
    X["id"] = X["id"].str[:-1]  # 16 rows per level
    y = X["a"] + rng.normal(size=n) > 0
    losses = []
    for columns in (["a"], ["a", "id"]):
        model = GradientBoostingClassifier(n_estimators=50)
        p = model.fit(X[columns][:4000], y[:4000]).predict_proba(X[columns][4000:])[:, 1]
        losses.append(-np.log(np.where(y[4000:], p, 1 - p)).mean())
    assert losses[1] < losses[0] + 0.02


def test_unknown_levels_are_missing(table):
    model, X, y, X_new, _ = task_of("numbers", table)
    model.fit(X, y)
    some = X_new[:50]
    with pytest.warns(UserWarning, match="user"):
        unknown = model.predict(some.assign(user="nobody"))
    missing = model.predict(some.assign(user=pandas.Series([None] * 50, dtype=object).values))
    np.testing.assert_array_equal(unknown, missing)


@pytest.mark.parametrize("name", TASKS)
def test_rows_of_weight_0_and_equal_weights_change_nothing(name, table):
    model, X, y, *_ = task_of(name, table)
    kept = np.arange(TRAIN) % 3 > 0
    first = model.fit(X[kept], y[kept], np.full(kept.sum(), 0.1)).model_
    again = model.fit(X, y, 0.1 * kept).model_
    for part in ("feature", "threshold", "left", "value"):
        np.testing.assert_array_equal(getattr(again.forest, part), getattr(first.forest, part))
    for weight in (None, np.full(kept.sum(), 7.0)):
        assert model.fit(X[kept], y[kept], weight).model_.schema == first.schema


def test_datasets(table):
    for name in TASKS:
        model, X, y, *_ = task_of(name, table)
        expected = to_bytes(model.fit(X, y).model_)
        data = Dataset(X, y)
        assert to_bytes(model.fit(data).model_) == expected
        assert to_bytes(model.fit(data, y).model_) == expected


def test_datasets_refuse_another_target(table):
    model, X, y, *_ = task_of("two classes", table)
    with pytest.raises(ValueError, match=r"column 'user' has \d+ levels.*Pass y to Dataset"):
        Dataset(X)
    with pytest.raises(ValueError, match=r"column 'user' .*another y"):
        model.fit(Dataset(X, y), ~y)
    numbers = np.digitize(table[1][:TRAIN], [-1.5, 0, 1.5])
    with pytest.raises(ValueError, match=r"column 'user' .*4 classes.*strings"):
        model.fit(Dataset(X, numbers))


@pytest.mark.parametrize("name", TASKS)
def test_validation_and_folds(name, table):
    model, X, y, X_new, y_new = task_of(name, table)
    model.set_params(n_estimators=200, n_iter_no_change=5)
    for extra in ({}, {"X_val": X_new, "y_val": y_new}):
        model.fit(X, y, **extra)
        assert 5 < model.n_iter_ < 200
    metric = "rmse" if name == "numbers" else "log_loss"
    model.set_params(n_estimators=20, n_iter_no_change=None)
    result = cv(model, X, y, folds=3, metrics=metric)
    # The fold scores are close to those of separate fits, whose encoding excludes held-out rows.
    for (train, held_out), score in zip(result.folds, result.scores[metric][:, -1], strict=True):
        model.fit(X.iloc[train], y[train])
        other = X.iloc[held_out]
        if name == "numbers":
            reached = np.sqrt(np.mean((model.predict(other) - y[held_out]) ** 2))
        else:
            p = model.predict_proba(other)
            of_class = np.searchsorted(model.classes_, y[held_out])
            reached = -np.log(p[np.arange(len(p)), of_class]).mean()
        assert score == pytest.approx(reached, rel=0.03)


@pytest.mark.parametrize("name", TASKS)
def test_training_goes_on_as_if_it_had_not_stopped(name, table):
    model, X, y, X_new, _ = task_of(name, table)
    whole = model.fit(X, y).model_
    half = model.set_params(n_estimators=20).fit(X, y).model_
    both = model.fit(X, y, init_model=half).model_
    assert both.schema == half.schema == whole.schema
    if name == "four classes":  # its encoding recovers the class scores only approximately
        assert np.abs(both.predict_proba(X_new) - whole.predict_proba(X_new)).mean() < 0.02
    else:
        np.testing.assert_allclose(both.predict_raw(X_new), whole.predict_raw(X_new), rtol=1e-9)


def test_training_goes_on_with_other_rows(table):
    model, X, y, X_new, y_new = task_of("four classes", table)
    first = model.fit(X[:3000], y[:3000])
    before = first.score(X_new, y_new)
    half = first.model_
    more = model.set_params(n_estimators=10).fit(X[3000:], y[3000:], init_model=half)
    assert more.model_.schema == half.schema
    assert more.score(X_new, y_new) > before - 0.01


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_other_rows_get_the_numbers_of_their_levels(encoding):
    rng = np.random.default_rng(2)
    X = pandas.DataFrame({"id": [f"{c}" for c in rng.integers(0, 400, 5000)]}).astype("category")
    table = ingest(X)
    assert features_to_encode(table.schema) == [0]
    rows = np.flatnonzero(rng.random(5000) < 0.5).astype(np.uint32)
    y = rng.normal(size=len(rows))
    encoded = target_encode(table, [(y, None)], encoding=encoding, rows=rows)
    assert features_to_encode(encoded.schema) == []
    assert features_to_encode(table.schema) == [0]  # the input table is unchanged
    values, predicted = encoded.columns.read(0), ingest(X, encoded.schema).columns.read(0)
    others = np.setdiff1d(np.arange(5000), rows)
    np.testing.assert_array_equal(values[others], predicted[others])
    assert (values[rows] != predicted[rows]).mean() > 0.5


def test_as_many_levels_as_rows(tmp_path):
    """One level per row: importance near 0, and the model can be saved and loaded."""
    rng = np.random.default_rng(3)
    n = 200_000
    X = np.column_stack([rng.normal(size=n), rng.permutation(n)])
    y = X[:, 0] + rng.normal(size=n) > 0
    model = GradientBoostingClassifier(n_estimators=5, categorical_features=[1])
    model.fit(X, y)
    assert model.feature_importances_[1] < 0.01
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(
        load(tmp_path / "model").predict_proba(X[:1000]), model.predict_proba(X[:1000])
    )


def test_dataset_names_the_number_of_levels_that_needs_y():
    assert f"more than {MAX_SET_LEVELS} levels" in Dataset.__doc__
    levels = [str(i) for i in range(MAX_SET_LEVELS + 1)]
    table = pandas.DataFrame({"key": pandas.Categorical(levels)})
    with pytest.raises(ValueError, match=rf"more than {MAX_SET_LEVELS} levels .* Pass y"):
        Dataset(table)
    Dataset(table.iloc[:-1])


def interacting(n=20_000):
    """Return a table of 110 levels whose effect depends on a number, and its target."""
    rng = np.random.default_rng(5)
    code, a = rng.integers(0, 110, n), rng.normal(size=n)
    frame = pandas.DataFrame({"a": a, "user": [f"user {c}" for c in code]})
    frame.loc[::30, "user"] = None
    effects = rng.normal(size=(2, 110))
    return frame, effects[(a > 0).astype(int), code] + 0.2 * rng.normal(size=n)


def test_groups_separate_levels_that_have_one_mean():
    frame, y = interacting()
    scores = {}
    for encoding in ENCODINGS:
        model = GradientBoostingRegressor(n_estimators=40, category_encoding=encoding)
        scores[encoding] = model.fit(frame[:15_000], y[:15_000]).score(frame[15_000:], y[15_000:])
    assert scores["groups"] > scores["mean"] + 0.05


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_one_feature_of_the_model_for_each_column(encoding, tmp_path):
    """Importances, SHAP values, files and single rows see the columns of the table only."""
    frame, y = interacting(3000)
    model = GradientBoostingRegressor(n_estimators=10, category_encoding=encoding).fit(frame, y)
    assert model.n_features_in_ == len(model.feature_importances_) == 2
    some = frame[:40]
    raw = model.predict(some)
    explained = model.shap_values(some)
    np.testing.assert_allclose(explained.sum(axis=1) + model.expected_value(), raw)
    for name in ("model.arb", "model.json"):
        model.save(tmp_path / name)
        np.testing.assert_array_equal(load(tmp_path / name).predict(some), raw)
    rows = some.to_dict("records")
    np.testing.assert_array_equal([model.predict(row)[0] for row in rows], raw)
    assert model.predict({"a": 0.0, "user": "new"}) == model.predict({"a": 0.0, "user": None})
    shown = model.partial_dependence(frame[:100], "user").grid[0]
    assert set(shown) <= set(frame["user"].dropna())


def test_encodings_of_a_dataset_and_of_a_model_to_continue(table):
    model, X, y, *_ = task_of("numbers", table)
    for encoding in ENCODINGS:
        other = ENCODINGS[1 - ENCODINGS.index(encoding)]
        data = Dataset(X, y, category_encoding=encoding)
        model.set_params(category_encoding="auto").fit(data)
        schema = model.model_.schema
        assert (schema.levels_of(1).groups is not None) == (encoding == "groups")
        assert model.fit(X, y, init_model=model.model_).model_.schema == schema
        model.set_params(category_encoding=other)
        for source, kwargs in ((data, {}), (X, {"init_model": model.model_})):
            with pytest.raises(ValueError, match=f"category_encoding='{other}' is not allowed"):
                model.fit(source, y, **kwargs)
    with pytest.raises(ValueError, match="category_encoding is 'sets', but it must be one of"):
        Dataset(X, y, category_encoding="sets")
    with pytest.raises(ValueError, match="category_encoding"):
        model.set_params(category_encoding="sets").fit(X, y)


def test_held_out_targets_do_not_order_the_groups():
    """Scores of folds are not better than those of new rows, though levels have 20 rows each."""
    rng = np.random.default_rng(6)
    code = rng.permutation(np.repeat(np.arange(200), 30))
    frame = pandas.DataFrame({"user": [f"u{c}" for c in code]})
    y = rng.normal(size=len(code))
    model = GradientBoostingRegressor(n_estimators=30, category_encoding="groups")
    result = cv(model, frame, y, folds=3, metrics="rmse")
    assert result.scores["rmse"][:, -1].mean() > y.std()
    model.set_params(n_estimators=200, n_iter_no_change=5, validation_fraction=0.3).fit(frame, y)
    assert model.n_iter_ < 20
