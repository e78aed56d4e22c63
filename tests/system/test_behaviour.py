"""Boosters on real tables: one test for each known failure of another library."""

import multiprocessing
import warnings

import numpy as np
import pytest

import arboost
from arboost import GradientBoostingClassifier, GradientBoostingRegressor
from arboost.models.files.model_file import to_bytes

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
sparse = pytest.importorskip("scipy.sparse")

N_ROWS = 400
CITIES = ["Bonn", "Oslo", "Rom", "Wien"]


@pytest.fixture
def table():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "city": rng.choice(CITIES, N_ROWS),
            "age": rng.integers(18, 90, N_ROWS),
            "income": rng.lognormal(size=N_ROWS),
        }
    )


@pytest.fixture
def y(table):
    return table.age / 20 + (table.city == "Rom") * 5 + np.log(table.income)


def fitted(X, y, **params):
    return GradientBoostingRegressor(n_estimators=40, **params).fit(X, y)


def share_explained(model, X, y):
    return 1 - np.mean((model.predict(X) - y) ** 2) / np.var(y)


def test_raw_strings_are_learnt_from(table, y):
    model = fitted(table, y)
    assert share_explained(model, table, y) > 0.95
    assert model.feature_importances_[0] > 0.1


def test_unseen_categories_count_as_missing(table, y):
    holed = table.assign(city=table.city.where(table.index % 7 > 0, None))
    model = fitted(holed, y)
    unseen = holed.assign(city=holed.city.replace("Rom", "Paris"))
    missing = holed.assign(city=holed.city.replace({"Rom": None}))
    np.testing.assert_array_equal(model.predict(unseen), model.predict(missing))


@pytest.mark.parametrize("dtype", ["category", object, "string", "str"])
def test_missing_values_in_a_category(table, y, dtype):
    holed = table.assign(city=table.city.where(table.index % 3 > 0, None).astype(dtype))
    model = fitted(holed, y + (table.index % 3 == 0) * 9)
    assert share_explained(model, holed, y + (table.index % 3 == 0) * 9) > 0.9


def test_datetimes_are_numbers(table, y):
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(table.age, unit="D")
    model = fitted(table.assign(age=days), y)
    expected = fitted(table, y)
    assert share_explained(model, table.assign(age=days), y) == pytest.approx(
        share_explained(expected, table, y), abs=1e-3
    )
    naive, utc = days, days.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    np.testing.assert_array_equal(
        model.predict(table.assign(age=naive)), model.predict(table.assign(age=utc))
    )


@pytest.mark.parametrize(
    "make", ["csr_matrix", "csc_matrix", "coo_matrix", "csr_array", "csc_array"]
)
def test_sparse_tables(make):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 6)) < 0.2, rng.normal(size=(300, 6)), 0)
    y = X[:, 0] - X[:, 1]
    model = fitted(getattr(sparse, make)(X), y)
    assert to_bytes(model.model_) == to_bytes(fitted(X, y).model_)
    np.testing.assert_array_equal(model.predict(getattr(sparse, make)(X)), model.predict(X))


def test_every_dataframe_library(table, y):
    numeric = table.drop(columns="city")
    expected = to_bytes(fitted(numeric, y).model_)
    for other in (pl.from_pandas(numeric), pa.Table.from_pandas(numeric)):
        assert to_bytes(fitted(other, y.to_numpy()).model_) == expected


def test_polars_categories(table, y):
    polars = pl.from_pandas(table).with_columns(pl.col("city").cast(pl.Categorical))
    model = fitted(polars, y)
    assert to_bytes(model.model_) == to_bytes(fitted(table, y).model_)
    np.testing.assert_array_equal(model.predict(polars[::-1])[::-1], model.predict(table))


def test_categories_are_matched_by_value_and_not_by_code(table, y):
    model = fitted(table.astype({"city": "category"}), y)
    part = table[table.city != "Bonn"].astype({"city": "category"})  # other codes for all levels
    np.testing.assert_array_equal(model.predict(part), model.predict(table[table.city != "Bonn"]))
    turned = table.city.astype(pd.CategoricalDtype(CITIES[::-1]))
    np.testing.assert_array_equal(model.predict(table.assign(city=turned)), model.predict(table))


def test_any_name_of_a_column(table, y, tmp_path):
    names = ['[a]<b>,"c"{d}:\\\n', "🌳 \t\x00é", ""]
    renamed = table.set_axis(names, axis=1)
    model = fitted(renamed, y, monotone_constraints={names[1]: 1})
    assert model.feature_names_in_.tolist() == names
    model.save(tmp_path / "model.arb")
    loaded = arboost.load(tmp_path / "model.arb")
    assert list(loaded.schema.names) == names
    np.testing.assert_array_equal(loaded.predict(renamed), model.predict(renamed))
    np.testing.assert_array_equal(loaded.predict(renamed[names[::-1]]), model.predict(renamed))
    assert model.feature_importances_.shape == (3,)


def test_columns_in_another_order(table, y):
    model = fitted(table, y)
    for other in (table, pl.from_pandas(table), pa.Table.from_pandas(table)):
        turned = (
            other[["income", "city", "age"]]
            if other is table
            else other.select(["income", "city", "age"])
        )
        np.testing.assert_array_equal(model.predict(turned), model.predict(table))


LABELS = {
    "strings": lambda k: np.array(["no", "yes", "maybe"])[k],
    "objects": lambda k: np.array(["no", "yes", "maybe"], dtype=object)[k],
    "one and two": lambda k: k + 1,
    "booleans": lambda k: k > 0,
    "floats": lambda k: k * 2.0 - 1,
    "small integers": lambda k: (k - 1).astype(np.int8),
    "pandas categories": lambda k: pd.Categorical(np.array(["no", "yes", "maybe"])[k]),
    "pandas strings": lambda k: pd.Series(np.array(["no", "yes", "maybe"])[k]),
    "pandas booleans": lambda k: pd.Series(k > 0, dtype="boolean"),
    "polars categories": lambda k: pl.Series(
        np.array(["no", "yes", "maybe"])[k].tolist(), dtype=pl.Categorical
    ),
    "polars integers": lambda k: pl.Series(k + 1),
    "arrow strings": lambda k: pa.array(np.array(["no", "yes", "maybe"])[k]),
    "arrow dictionary": lambda k: pa.chunked_array(
        [pa.array(np.array(["no", "yes", "maybe"])[k]).dictionary_encode()]
    ),
    "list": lambda k: np.array(["no", "yes", "maybe"])[k].tolist(),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind_come_back(table, kind, tmp_path):
    k = np.digitize(table.age, [35, 70])
    labels = LABELS[kind](k)
    model = GradientBoostingClassifier(n_estimators=10).fit(table, labels)
    expected = np.unique(np.array(labels))
    assert model.classes_.tolist() == expected.tolist()
    assert model.classes_.dtype.kind == expected.dtype.kind
    answers = model.predict(table)
    assert np.mean(answers == np.array(labels)) > 0.95
    model.save(tmp_path / "model.arb")
    loaded = arboost.load(tmp_path / "model.arb").predict(table)
    np.testing.assert_array_equal(loaded, answers)
    assert loaded.dtype == answers.dtype


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (["a", 1] * (N_ROWS // 2), "Unknown label type"),
        ([b"a", b"b"] * (N_ROWS // 2), "Unknown label type"),
        ([0.5, 1.5] * (N_ROWS // 2), "continuous"),
        (np.array(["2024-01-01", "2024-01-02"] * (N_ROWS // 2), "M8[D]"), "datetime64"),
    ],
)
def test_labels_that_are_no_classes(table, labels, text):
    given = np.array(labels, dtype=object) if isinstance(labels[0], str) else np.array(labels)
    with pytest.raises((ValueError, TypeError), match=text):
        GradientBoostingClassifier().fit(table, given)


def test_infinite_values_are_the_largest_and_smallest(table, y):
    wild = table.assign(income=table.income.mask(table.index % 5 == 0, np.inf))
    wild.loc[wild.index % 5 == 1, "income"] = -np.inf
    target = y.to_numpy() + np.isposinf(wild.income) * 20 - np.isneginf(wild.income) * 20
    model = fitted(wild, target)
    assert share_explained(model, wild, target) > 0.99


def test_several_labels_a_row_are_refused(table):
    with pytest.raises(ValueError, match=r"y should be a 1d array, got .* shape \(400, 2\)"):
        GradientBoostingClassifier().fit(table, np.zeros((N_ROWS, 2), int))


def _predict(model, X, queue):
    queue.put(model.predict(X))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # Python's, on fork in a process with threads
def test_fork_after_a_fit_with_threads(table, y):
    wide = pd.concat([table] * 30, ignore_index=True)
    model = fitted(wide, np.tile(y, 30), n_jobs=2)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_predict, args=(model, wide, queue))
    child.start()
    answers = queue.get(timeout=60)
    child.join(60)
    np.testing.assert_array_equal(answers, model.predict(wide))


def test_any_number_of_threads_gives_the_same_bytes(table, y):
    wide = pd.concat([table] * 50, ignore_index=True)
    models = [fitted(wide, np.tile(y, 50), n_jobs=n) for n in (1, 2, 3)]
    assert len({to_bytes(model.model_) for model in models}) == 1


def test_the_order_of_rows_does_not_matter(table, y):
    order = np.random.default_rng(1).permutation(N_ROWS)
    model, other = fitted(table, y), fitted(table.iloc[order], y.iloc[order])
    np.testing.assert_allclose(other.predict(table), model.predict(table), rtol=1e-6)
    assert other.model_.schema == model.model_.schema


def test_weights_count_as_repeated_rows(table, y):
    times = np.random.default_rng(2).integers(1, 4, N_ROWS)
    weighted = GradientBoostingRegressor(n_estimators=40).fit(table, y, sample_weight=times)
    repeated = fitted(table.loc[table.index.repeat(times)], y.repeat(times))
    np.testing.assert_allclose(weighted.predict(table), repeated.predict(table), rtol=1e-6)


def test_nothing_of_this_warns(table, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(table.assign(day=pd.Timestamp("2024-01-01")), y).predict(
            table.assign(day=pd.Timestamp("2024-01-02"))
        )
