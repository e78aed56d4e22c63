"""Boosters with an offset: the start of the raw scores, an array or named columns."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import arboost
from arboost import Dataset, GradientBoostingClassifier, GradientBoostingRegressor
from arboost.models.files.model_file import to_bytes

N = 1200
NAMES = ["a", "b", "c"]


def make_table():
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=NAMES)
    exposure = rng.uniform(0.1, 2.0, N)
    counts = rng.poisson(exposure * np.exp(0.5 * X["a"].to_numpy()))
    return X, np.log(exposure), counts.astype(float)


X, OFFSET, COUNTS = make_table()
NAMED = X.assign(log_exposure=OFFSET)
LABELS = np.array(["low", "mid", "top"])[np.digitize(X["a"] + OFFSET, [-1.0, 0.5])]
OFFSETS = np.stack([-OFFSET, 0 * OFFSET, OFFSET], axis=1)


def poisson(**params):
    return GradientBoostingRegressor(loss="poisson", **{"n_estimators": 8, **params})


def trees(model):
    forest = model.model_.forest
    return [forest.feature, forest.threshold, forest.value]


def assert_same_trees(one, other):
    for a, b in zip(trees(one), trees(other), strict=True):
        np.testing.assert_array_equal(a, b)


def test_offset_is_an_array_or_a_column():
    by_array = poisson().fit(X, COUNTS, offset=OFFSET)
    by_name = poisson().fit(NAMED, COUNTS, offset="log_exposure")
    assert_same_trees(by_array, by_name)
    assert by_name.feature_names_in_.tolist() == NAMES  # the column is no feature
    raw = by_array.predict_raw(X, offset=OFFSET)
    np.testing.assert_array_equal(by_name.predict_raw(NAMED), raw)
    np.testing.assert_array_equal(by_name.predict_raw(X, offset=OFFSET), raw)
    np.testing.assert_array_equal(by_array.predict_raw(NAMED[NAMES], offset=OFFSET), raw)
    np.testing.assert_array_equal(by_array.predict_raw(NAMED, offset="log_exposure"), raw)
    staged = list(by_array.model_.staged_raw(NAMED, offset="log_exposure"))
    np.testing.assert_array_equal(staged[-1], raw)
    without = by_array.predict_raw(X, offset=0)
    np.testing.assert_array_equal(without + OFFSET[:, np.newaxis], raw)


@pytest.mark.parametrize("kind", ["dict", "records", "polars", "arrow"])
def test_column_of_other_tables(kind):
    tables = {
        "dict": lambda: {name: NAMED[name].to_numpy() for name in NAMED},
        "records": lambda: NAMED.to_dict("records"),
        "polars": lambda: pytest.importorskip("polars").from_pandas(NAMED),
        "arrow": lambda: pytest.importorskip("pyarrow").Table.from_pandas(NAMED),
    }
    table, known = tables[kind](), poisson().fit(NAMED, COUNTS, offset="log_exposure")
    model = poisson().fit(table, COUNTS, offset="log_exposure")
    assert to_bytes(model.model_) == to_bytes(known.model_)
    np.testing.assert_array_equal(model.predict(table), known.predict(NAMED))


def test_single_rows_have_an_offset():
    model = poisson().fit(NAMED, COUNTS, offset="log_exposure")
    expected = model.predict(NAMED)[:1]
    row = NAMED.iloc[0]
    for one in (row, row.to_dict(), [row.to_dict()], NAMED.iloc[:1]):
        np.testing.assert_array_equal(model.predict(one), expected)
    by_array = poisson().fit(X.to_numpy(), COUNTS, offset=OFFSET)
    one = by_array.predict(X.to_numpy()[:1], offset=OFFSET[:1])
    np.testing.assert_array_equal(one, by_array.predict(X.to_numpy(), offset=OFFSET)[:1])


def test_squared_error_is_a_fit_to_the_residuals():
    params = {"n_estimators": 10, "base_score": 0.0, "learning_rate": 0.3}
    y = COUNTS + OFFSET
    model = GradientBoostingRegressor(**params).fit(X, y, offset=OFFSET)
    residual = GradientBoostingRegressor(**params).fit(X, y - OFFSET)
    assert_same_trees(model, residual)
    np.testing.assert_array_equal(model.predict(X, offset=OFFSET), residual.predict(X) + OFFSET)


def test_scores_of_a_first_model_continue_its_training():
    first = poisson().fit(X, COUNTS)
    raw = first.predict_raw(X)
    second = poisson(base_score=1.0).fit(X, COUNTS, offset=raw)  # log(1) = 0 on top of the offset
    continued = poisson().fit(X, COUNTS, init_model=first).model_
    n_first = first.model_.forest.tree_start[-1]
    np.testing.assert_array_equal(continued.forest.value[n_first:], second.model_.forest.value)
    np.testing.assert_allclose(second.predict_raw(X, offset=raw), continued.predict_raw(X))


@pytest.mark.parametrize("loss", ["poisson", "squared_error", "log_loss"])
def test_constant_offset_changes_no_prediction(loss):
    cls = GradientBoostingClassifier if loss == "log_loss" else GradientBoostingRegressor
    y = COUNTS > 0 if loss == "log_loss" else COUNTS
    plain = cls(loss=loss, n_estimators=8).fit(X, y).predict_raw(X)
    model = cls(loss=loss, n_estimators=8).fit(X, y, offset=0.5)
    np.testing.assert_allclose(model.predict_raw(X, offset=0.5), plain, rtol=1e-9, atol=1e-12)


def test_base_score_is_on_top_of_the_offset():
    model = poisson(n_estimators=1, base_score=2.0).fit(X, COUNTS, offset=OFFSET)
    start = model.predict(X, rounds=0, offset=OFFSET)
    np.testing.assert_allclose(start, 2.0 * np.exp(OFFSET))


def test_predictions_of_each_kind():
    model = poisson().fit(NAMED, COUNTS, offset="log_exposure")
    for rounds, staged in enumerate(model.staged_predict(NAMED), start=1):
        np.testing.assert_array_equal(staged, model.predict(NAMED, rounds=rounds))
    assert model.score(NAMED, COUNTS) == model.score(X, COUNTS, offset=OFFSET)
    assert model.score(NAMED, COUNTS) > poisson().fit(X, COUNTS).score(X, COUNTS)


def test_classes_have_a_column_each():
    model = GradientBoostingClassifier(n_estimators=5).fit(X, LABELS, offset=OFFSETS)
    raw = model.decision_function(X, offset=OFFSETS)
    np.testing.assert_array_equal(raw, model.decision_function(X, offset=0) + OFFSETS)
    p = model.predict_proba(X, offset=OFFSETS)
    np.testing.assert_array_equal(
        model.predict(X, offset=OFFSETS), model.classes_[p.argmax(axis=1)]
    )
    np.testing.assert_allclose(model.predict_log_proba(X, offset=OFFSETS), np.log(p))
    staged = list(model.staged_predict_proba(X, offset=OFFSETS))
    np.testing.assert_array_equal(staged[-1], p)
    last = list(model.staged_decision_function(X, offset=OFFSETS))[-1]
    np.testing.assert_array_equal(last, raw)
    named = X.assign(low=OFFSETS[:, 0], mid=OFFSETS[:, 1], top=OFFSETS[:, 2])
    by_name = GradientBoostingClassifier(n_estimators=5)
    by_name.fit(named, LABELS, offset=["low", "mid", "top"])
    np.testing.assert_array_equal(by_name.predict_proba(named), p)
    assert by_name.score(named, LABELS) == model.score(X, LABELS, offset=OFFSETS)


def test_one_offset_is_that_of_all_quantiles():
    params = {"loss": "quantile", "alpha": [0.1, 0.9], "n_estimators": 4}
    one = GradientBoostingRegressor(**params).fit(X, COUNTS, offset=OFFSET)
    both = np.stack([OFFSET, OFFSET], axis=1)
    each = GradientBoostingRegressor(**params).fit(X, COUNTS, offset=both)
    assert_same_trees(one, each)
    np.testing.assert_array_equal(one.predict(X, offset=OFFSET), each.predict(X, offset=both))


@pytest.mark.parametrize(
    "params",
    [
        {"boosting": "gradient"},
        {"rate_drop": 0.3},
        {"num_parallel_tree": 2, "subsample": 0.5},
        {"tree_method": "exact"},
        {"tree_method": "approx"},
        {"sampling_method": "gradient_based", "subsample": 0.3},
    ],
    ids=str,
)
def test_threads_do_not_matter(params):
    files = {
        to_bytes(poisson(n_jobs=n_jobs, **params).fit(X, COUNTS, offset=OFFSET).model_)
        for n_jobs in (1, 2, 4)
    }
    assert len(files) == 1
    assert files != {to_bytes(poisson(**params).fit(X, COUNTS).model_)}


def test_validation_sets_have_their_offset():
    val = {"X_val": NAMED[:300], "y_val": COUNTS[:300]}
    model = poisson().fit(NAMED[300:], COUNTS[300:], offset="log_exposure", **val)
    rest, start = X[300:], OFFSET[300:]
    val = {"X_val": X[:300], "y_val": COUNTS[:300], "offset_val": OFFSET[:300]}
    by_array = poisson().fit(rest, COUNTS[300:], offset=start, **val)
    sets = [(rest, COUNTS[300:]), (X[:300], COUNTS[:300], None, OFFSET[:300])]
    by_set = poisson().fit(rest, COUNTS[300:], offset=start, eval_set=sets)
    curve = model.evals_result_["validation"]["poisson"]
    assert curve == by_array.evals_result_["validation"]["poisson"]
    assert curve == by_set.evals_result_["validation"]["poisson"]
    raw, y = model.predict_raw(NAMED[:300])[:, 0], COUNTS[:300]
    log_y = np.log(np.where(y > 0, y, 1.0))
    deviance = np.mean(y * (log_y - raw) - y + np.exp(raw))
    assert curve[-1] == pytest.approx(deviance)
    trained = by_set.evals_result_["train"]["poisson"]
    assert trained[-1] < trained[0]


@pytest.mark.parametrize("params", [{"n_estimators": 200, "n_iter_no_change": 5}, {}], ids=str)
def test_held_out_rows_have_their_offset(params):
    start = 3 * OFFSET
    y = np.random.default_rng(0).poisson(np.exp(3.0 + start)).astype(float)
    params = {"n_estimators": "auto", "preset": "fast", **params}
    model = poisson(**params).fit(X, y, offset=start)
    # The offset explains all: without it held-out rows would score far worse.
    assert model.best_score_ < 0.7


def test_rows_of_weight_zero_are_left_out():
    weight = (np.arange(N) % 3 > 0).astype(float)
    kept = weight > 0
    offset = np.where(kept, OFFSET, 1e6)
    model = poisson().fit(X, COUNTS, weight, offset=offset)
    part = poisson().fit(X[kept], COUNTS[kept], weight[kept], offset=OFFSET[kept])
    assert_same_trees(model, part)


def test_dataset_has_an_offset():
    data = Dataset(NAMED, COUNTS, offset="log_exposure")
    known = poisson().fit(NAMED, COUNTS, offset="log_exposure")
    model = poisson().fit(data)
    np.testing.assert_array_equal(model.predict(NAMED), known.predict(NAMED))
    by_array = poisson().fit(Dataset(X, COUNTS), offset=OFFSET)
    assert_same_trees(by_array, known)
    assert by_array.model_.schema.offset == ()
    with pytest.raises(ValueError, match="the Dataset has an offset"):
        poisson().fit(data, offset=OFFSET)
    with pytest.raises(ValueError, match=r"Name the column in Dataset\(X, y, offset"):
        poisson().fit(Dataset(NAMED, COUNTS), offset="log_exposure")
    with pytest.raises(ValueError, match="only gradient boosting starts from"):
        arboost.RandomForestRegressor(n_estimators=2).fit(data)
    with pytest.raises(ValueError, match="only gradient boosting starts from"):
        arboost.AdaBoostRegressor(n_estimators=2).fit(data)


@pytest.mark.parametrize("suffix", [".arb", ".json"])
def test_files_keep_the_offset(tmp_path, suffix):
    named = poisson().fit(NAMED, COUNTS, offset="log_exposure")
    array = poisson().fit(X, COUNTS, offset=OFFSET)
    for model, offset in ((named, None), (array, OFFSET)):
        path = tmp_path / f"model{suffix}"
        model.save(path)
        expected = model.predict(
            NAMED[[*NAMES, "log_exposure"][: 3 + (offset is None)]], offset=offset
        )
        for loaded in (arboost.load(path), GradientBoostingRegressor.load(path)):
            table = NAMED if offset is None else X
            np.testing.assert_array_equal(loaded.predict(table, offset=offset), expected)
            if offset is not None:
                with pytest.raises(ValueError, match="offset is None, but the model was fitted"):
                    loaded.predict(X)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(named)).predict(NAMED), named.predict(NAMED)
    )


def test_older_readers_refuse_the_file():
    data = to_bytes(poisson().fit(X, COUNTS, offset=OFFSET).model_)
    assert int.from_bytes(data[8:12], "little") == int.from_bytes(data[12:16], "little") == 6
    data = to_bytes(poisson().fit(X, COUNTS).model_)
    assert int.from_bytes(data[8:12], "little") == 4


def test_continued_training_needs_the_offset():
    first = poisson(n_estimators=4).fit(NAMED, COUNTS, offset="log_exposure")
    continued = poisson(n_estimators=4).fit(NAMED, COUNTS, offset="log_exposure", init_model=first)
    whole = poisson(n_estimators=8).fit(NAMED, COUNTS, offset="log_exposure")
    np.testing.assert_allclose(continued.predict(NAMED), whole.predict(NAMED))
    with pytest.raises(ValueError, match="was fitted with an offset"):
        poisson().fit(X, COUNTS, init_model=first)
    warm = poisson(n_estimators=4, warm_start=True).fit(NAMED, COUNTS, offset="log_exposure")
    warm.set_params(n_estimators=8).fit(NAMED, COUNTS, offset="log_exposure")
    np.testing.assert_array_equal(warm.predict(NAMED), continued.predict(NAMED))


def test_checkpoint_knows_the_offset(tmp_path):
    path = arboost.Checkpoint(tmp_path / "fit.checkpoint", every=1)

    class KilledError(Exception):
        pass

    def kill(done):
        if done.index == 3:
            raise KilledError

    with pytest.raises(KilledError):
        poisson().fit(X, COUNTS, offset=OFFSET, checkpoint=path, callbacks=[kill])
    with pytest.raises(ValueError, match="offset"):
        poisson().fit(X, COUNTS, offset=OFFSET + 1, checkpoint=path)
    resumed = poisson().fit(X, COUNTS, offset=OFFSET, checkpoint=path)
    assert_same_trees(resumed, poisson().fit(X, COUNTS, offset=OFFSET))


REFUSED = {
    "not finite": ({"offset": np.where(np.arange(N) == 7, np.nan, 0.0)}, "in row 7"),
    "infinite": ({"offset": np.where(np.arange(N) == 9, np.inf, 0.0)}, "in row 9"),
    "masked": ({"offset": np.ma.masked_array(OFFSET, np.arange(N) == 5)}, "in row 5"),
    "complex": ({"offset": OFFSET + 1j}, "complex numbers are not allowed"),
    "huge": ({"offset": np.where(np.arange(N) == 3, 1e300, 0.0)}, "beyond 1e.100 in size"),
    "too short": ({"offset": OFFSET[:-1]}, rf"shape \({N - 1}, 1\), but X has {N} rows"),
    "too wide": ({"offset": OFFSETS}, "3 values a row, but there are 1 raw scores"),
    "strings": ({"offset": np.array(["x"] * N)}, "offset must be numbers"),
    "no column": ({"offset": "exposure"}, "offset='exposure' names no column of X"),
    "only of the validation set": (
        {"X_val": X, "y_val": COUNTS, "offset_val": OFFSET},
        "an offset came without that of the training rows",
    ),
    "only of the training rows": (
        {"offset": OFFSET, "X_val": X, "y_val": COUNTS},
        "offset is an array, which says nothing about these rows. Pass offset_val",
    ),
    "none of an evaluation set": (
        {"offset": OFFSET, "eval_set": [(X[:9], COUNTS[:9])]},
        r"Pass a fourth entry, \(X, y, w, offset\)",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_offsets_are_refused(case):
    arguments, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        poisson().fit(X, COUNTS, **arguments)


def test_names_need_columns():
    with pytest.raises(ValueError, match="a ndarray, has no columns"):
        poisson().fit(X.to_numpy(), COUNTS, offset="c")
    model = poisson().fit(NAMED, COUNTS, offset="log_exposure")
    with pytest.raises(ValueError, match="names no column of X"):
        model.predict(X)


def test_predictions_are_never_without_their_offset():
    model = poisson().fit(X, COUNTS, offset=OFFSET)
    for method in ("predict", "predict_raw", "staged_predict"):
        with pytest.raises(ValueError, match="offset=0 for predictions without it"):
            list(getattr(model, method)(X))
    with pytest.raises(ValueError, match="in row 3"):
        model.predict(X, offset=np.where(np.arange(N) == 3, np.nan, 0.0))
    plain = poisson().fit(X, COUNTS)
    with pytest.raises(ValueError, match="the model was fitted without an offset"):
        plain.predict(X, offset=OFFSET)
    with pytest.raises(ValueError, match="which would shift the raw scores of all 3 classes"):
        GradientBoostingClassifier(n_estimators=2).fit(X, LABELS, offset=OFFSET)


@pytest.mark.parametrize("method", ["predict", "fit"])
def test_other_algorithms_have_no_offset(method):
    for cls in (arboost.AdaBoostRegressor, arboost.RandomForestRegressor):
        model = cls(n_estimators=2).fit(X, COUNTS)
        arguments = (X, COUNTS) if method == "fit" else (X,)
        with pytest.raises(TypeError, match="offset"):
            getattr(model, method)(*arguments, offset=OFFSET)


@pytest.mark.parametrize("task", ["squared_error", "poisson", "log_loss"])
def test_xgboost_starts_from_its_base_margin(task):
    xgboost = pytest.importorskip("xgboost")
    y = (COUNTS > 0).astype(float) if task == "log_loss" else COUNTS
    base, objective = {
        "squared_error": (0.0, "reg:squarederror"),
        "poisson": (1.0, "count:poisson"),
        "log_loss": (0.5, "binary:logistic"),
    }[task]
    cls = GradientBoostingClassifier if task == "log_loss" else GradientBoostingRegressor
    values = X.to_numpy().astype(np.float32)
    model = cls(
        loss=task,
        n_estimators=5,
        learning_rate=0.3,
        max_depth=3,
        tree_method="exact",
        reg_lambda=1.0,
        min_child_weight=1.0,
        base_score=base,
    )
    raw = model.fit(values, y, offset=OFFSET).predict_raw(values, offset=OFFSET)[:, 0]
    params = {
        "objective": objective,
        "eta": 0.3,
        "max_depth": 3,
        "tree_method": "exact",
        "nthread": 1,
        "max_delta_step": 0.0,
    }
    rows = xgboost.DMatrix(values, label=y, base_margin=OFFSET)
    theirs = xgboost.train(params, rows, 5).predict(rows, output_margin=True)
    np.testing.assert_allclose(raw, theirs, rtol=2e-4, atol=2e-4)


def test_trees_are_models_without_offset():
    model = poisson(n_estimators=2).fit(NAMED, COUNTS, offset="log_exposure")
    parts = sum(tree.predict(X) for tree in model.estimators_.ravel())
    base = model.model_.base_score
    np.testing.assert_allclose(base + parts + OFFSET, model.predict_raw(NAMED)[:, 0])


def test_validation_sets_use_the_columns_of_a_dataset():
    data = Dataset(NAMED[300:], COUNTS[300:], offset="log_exposure")
    val = {"X_val": NAMED[:300], "y_val": COUNTS[:300]}
    known = poisson().fit(NAMED[300:], COUNTS[300:], offset="log_exposure", **val)
    assert poisson().fit(data, **val).evals_result_ == known.evals_result_


def test_members_of_ensembles_have_no_offset():
    """A fitted member of a stack may have a named offset; files of ensembles would lose it."""
    booster = poisson(n_estimators=2).fit(NAMED, COUNTS, offset="log_exposure")
    stack = arboost.StackingRegressor([("booster", booster)], cv="prefit").fit(NAMED, COUNTS)
    np.testing.assert_allclose(stack.transform(NAMED)[:, 0], booster.predict(NAMED))
    for call in (stack.to_predictor, lambda: stack.shap_values(NAMED)):
        with pytest.raises(TypeError, match="fitted with an offset, and an ensemble passes none"):
            call()
    by_array = poisson(n_estimators=2).fit(X, COUNTS, offset=OFFSET)
    with pytest.raises(ValueError, match="fitted with an array of offsets"):
        arboost.StackingRegressor([("booster", by_array)], cv="prefit").fit(X, COUNTS)
    data = Dataset(NAMED, COUNTS, offset="log_exposure")
    for cls in (arboost.BaggingRegressor, arboost.DecisionTreeRegressor):
        with pytest.raises((TypeError, ValueError)):
            cls().fit(data)


def test_one_class_is_predicted_whatever_the_offset():
    with pytest.warns(UserWarning, match="one class only"):
        model = GradientBoostingClassifier().fit(X, ["yes"] * N, offset=OFFSET)
    assert set(model.predict(X, offset=OFFSET)) == {"yes"}
    np.testing.assert_array_equal(model.predict_proba(X, offset=OFFSET), np.ones((N, 1)))


def test_scikit_learn_passes_columns_and_arrays():
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    scores = cross_val_score(poisson(), NAMED, COUNTS, cv=3, params={"offset": "log_exposure"})
    assert np.isfinite(scores).all()
    pipeline = make_pipeline(FunctionTransformer(), poisson())
    pipeline.fit(X, COUNTS, gradientboostingregressor__offset=OFFSET)
    known = poisson().fit(X, COUNTS, offset=OFFSET)
    np.testing.assert_array_equal(
        pipeline.predict(X, offset=OFFSET), known.predict(X, offset=OFFSET)
    )


def test_offset_in_another_order_than_the_rows_is_refused():
    start = pd.Series(OFFSET, index=X.index)
    turned = start.iloc[::-1]
    model = poisson(n_estimators=2).fit(X, COUNTS, offset=start)
    for call in (
        lambda: poisson().fit(X, COUNTS, offset=turned),
        lambda: model.predict(X, offset=turned),
        lambda: arboost.cv(poisson(), X, COUNTS, offset=turned),
        lambda: Dataset(X, COUNTS, offset=turned),
    ):
        with pytest.raises(ValueError, match="X and offset have the same index in different"):
            call()
    expected = model.predict(X, offset=OFFSET)
    np.testing.assert_array_equal(model.predict(X, offset=start), expected)
