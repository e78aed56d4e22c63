"""Arguments of fit: validation data, class weights, continued training."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from sklearn.metrics import log_loss

import arboost
from arboost import (
    CustomLoss,
    Dataset,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    Metric,
    SchemaError,
)
from arboost.errors import DataWarning
from arboost.models.files import model_file
from arboost.models.files.model_file import to_bytes
from arboost.models.metadata import without_history
from arboost.training import fit as fits
from support.command_line import run

N_ROWS = 400


@pytest.fixture
def X(rng):
    X = rng.normal(size=(N_ROWS, 4))
    X[rng.random(X.shape) < 0.05] = np.nan
    return X


@pytest.fixture
def y(X, rng):
    return np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2 + rng.normal(size=N_ROWS) / 2


def file_of(model):
    return model_file.to_bytes(model.model_)


# ---- validation ----


def test_curves_are_those_of_the_stages(X, y):
    model = GradientBoostingRegressor(n_estimators=20, eval_metric=["rmse", "mae"])
    model.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    curves = model.evals_result_["validation"]
    errors = [stage - y[300:] for stage in model.staged_predict(X[300:])]
    np.testing.assert_allclose(curves["rmse"], [np.sqrt(np.mean(e**2)) for e in errors])
    np.testing.assert_allclose(curves["mae"], [np.mean(np.abs(e)) for e in errors])
    assert model.n_iter_ == 20
    assert model.best_iteration_ == int(np.argmin(curves["rmse"]))
    assert model.best_score_ == min(curves["rmse"])
    assert model.stop_reason_ == "n_estimators"


def test_validation_data_change_nothing_without_early_stopping(X, y):
    plain = GradientBoostingRegressor(n_estimators=20).fit(X, y)
    assert plain.evals_result_ == {}
    assert plain.best_iteration_ is None
    watched = GradientBoostingRegressor(n_estimators=20).fit(X, y, X_val=X[:50], y_val=y[:50])
    assert len(watched.model_.provenance["history"]["runs"][0]["rounds"]) == 20
    unwatched = without_history(watched.model_.provenance)
    assert model_file.to_bytes(replace(watched.model_, provenance=unwatched)) == file_of(plain)


def test_early_stopping_keeps_the_best_round(X, y):
    data = {"X_val": X[300:], "y_val": y[300:]}
    stopped = GradientBoostingRegressor(n_estimators=100, n_iter_no_change=5, learning_rate=0.5)
    stopped.fit(X[:300], y[:300], **data)
    best = stopped.best_iteration_
    assert stopped.stop_reason_ == "n_iter_no_change"
    assert len(stopped.evals_result_["validation"]["squared_error"]) == best + 6
    assert stopped.n_iter_ == best + 1
    short = GradientBoostingRegressor(n_estimators=best + 1, learning_rate=0.5)
    short.fit(X[:300], y[:300])
    np.testing.assert_array_equal(stopped.predict(X), short.predict(X))


def test_weights_of_validation_rows(X, y):
    weight = np.arange(50) % 3  # a third of the rows has weight 0
    model = GradientBoostingRegressor(n_estimators=3)
    model.fit(X, y, X_val=X[:50], y_val=y[:50], sample_weight_val=weight)
    expected = np.average((model.predict(X[:50]) - y[:50]) ** 2, weights=weight)
    np.testing.assert_allclose(model.evals_result_["validation"]["squared_error"][-1], expected)


def test_messages_name_the_validation_set(X, y):
    model = GradientBoostingRegressor(n_estimators=2)
    with pytest.raises(SchemaError, match=r"^X_val: X has 1 features, but Model is expecting"):
        model.fit(X, y, X_val=X[:, :1], y_val=y)
    with pytest.raises(ValueError, match=r"^X_val: Expected 2D array"):
        model.fit(X, y, X_val=y, y_val=y)


def test_split_by_time_takes_the_last_rows(X, y):
    split = GradientBoostingRegressor(
        n_estimators=30, n_iter_no_change=3, validation_split="time", validation_fraction=0.25
    )
    by_hand = GradientBoostingRegressor(n_estimators=30, n_iter_no_change=3)
    by_hand.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    assert split.fit(X, y).evals_result_ == by_hand.evals_result_
    np.testing.assert_array_equal(split.predict(X), by_hand.predict(X))


def test_split_leaves_out_rows_of_weight_zero(X, y):
    weight = (np.arange(N_ROWS) % 4 > 0).astype(float)
    kept = weight > 0
    groups = np.arange(N_ROWS) // 20
    model = GradientBoostingRegressor(
        n_estimators=20, n_iter_no_change=3, validation_split="group", validation_fraction=0.3
    )
    expected = file_of(model.fit(X[kept], y[kept], groups=groups[kept]))
    odd = np.where(kept, y, 1e6)
    assert file_of(model.fit(X, odd, sample_weight=weight, groups=groups)) == expected
    with pytest.raises(ValueError, match="groups have the shape"):
        model.fit(X, odd, sample_weight=weight, groups=groups[1:])


@pytest.mark.parametrize("how", ["random", "time"])
def test_split_of_a_dataset(X, y, how):
    """A Dataset's bins come from all rows, so the model differs from one split before binning."""
    model = GradientBoostingRegressor(
        n_estimators=50, learning_rate=0.5, n_iter_no_change=3, validation_split=how
    )
    model.fit(Dataset(X, y))
    assert 0 < model.n_iter_ < 50
    assert model.score(X, y) > 0.5


def test_split_keeps_the_shares_of_the_classes(X, y):
    counts = []

    def count(y, score, weight):
        counts.append(np.bincount(y.astype(int)).tolist())
        return 0.0

    labels = (np.arange(N_ROWS) % 10 == 0).astype(int)
    model = GradientBoostingClassifier(n_estimators=1, n_iter_no_change=1, eval_metric=count)
    model.fit(X, labels)
    assert counts == [[36, 4]]


def test_metric_that_grows(X, y):
    model = GradientBoostingClassifier(
        n_estimators=30, eval_metric=[Metric("half_auc", _half_auc, greater_is_better=True), "auc"]
    )
    model.fit(X[:300], y[:300] > 1, X_val=X[300:], y_val=y[300:] > 1)
    curves = model.evals_result_["validation"]
    np.testing.assert_allclose(curves["half_auc"], np.array(curves["auc"]) / 2)
    assert model.best_iteration_ == int(np.argmax(curves["half_auc"]))


def _half_auc(y, score, weight):
    metrics = pytest.importorskip("sklearn.metrics")
    return metrics.roc_auc_score(y, score, sample_weight=weight) / 2


def test_callbacks_see_every_round(X, y):
    seen = []

    def stop_after_five(done):
        seen.append(done)
        return done.index == 4

    model = GradientBoostingRegressor(n_estimators=50)
    model.fit(X, y, X_val=X, y_val=y, callbacks=[stop_after_five])
    assert [done.index for done in seen] == [0, 1, 2, 3, 4]
    assert seen[-1].total == 50
    assert seen[-1].results["validation"] == {
        name: values[-1] for name, values in model.evals_result_["validation"].items()
    }
    assert model.n_iter_ == 5
    assert model.stop_reason_ == "callback stop_after_five"


def test_max_time(X, y):
    model = GradientBoostingRegressor(n_estimators=10**6, max_time=0.2).fit(X, y)
    assert 0 < model.n_iter_ < 10**6
    assert model.stop_reason_ == "max_time"


# ---- class weights ----


@pytest.mark.parametrize(
    ("params", "factors"),
    [
        ({"scale_pos_weight": 3}, [1, 3]),
        ({"class_weight": {"rare": 4.5}}, [1, 4.5]),
        ({"class_weight": {"rare": 4.5, "common": 2}}, [2, 4.5]),
        ({"class_weight": "balanced"}, [400 / (2 * 300), 400 / (2 * 100)]),
    ],
)
def test_class_weights_are_sample_weights(X, params, factors):
    labels = np.where(np.arange(N_ROWS) % 4 == 0, "rare", "common")
    weight = np.where(labels == "rare", factors[1], factors[0])
    expected = GradientBoostingClassifier(n_estimators=5).fit(X, labels, sample_weight=weight)
    model = GradientBoostingClassifier(n_estimators=5, **params).fit(X, labels)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_balanced_counts_weights(X):
    labels = np.arange(N_ROWS) % 3
    own = 1.0 + np.arange(N_ROWS) % 2
    totals = np.bincount(labels, own)
    weight = own * (totals.sum() / (3 * totals))[labels]
    expected = GradientBoostingClassifier(n_estimators=5).fit(X, labels, sample_weight=weight)
    model = GradientBoostingClassifier(n_estimators=5, class_weight="balanced")
    model.fit(X, labels, sample_weight=own)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


# ---- continued training ----


KINDS = {
    "regressor": (GradientBoostingRegressor, {}),
    "forests": (GradientBoostingRegressor, {"num_parallel_tree": 3, "subsample": 0.5}),
    "quantiles": (GradientBoostingRegressor, {"loss": "quantile", "alpha": [0.1, 0.9]}),
    "two classes": (GradientBoostingClassifier, {}),
    "exponential": (GradientBoostingClassifier, {"loss": "exponential"}),
    "classes": (GradientBoostingClassifier, {}),
    "vector leaves": (GradientBoostingClassifier, {"multi_strategy": "multi_output_tree"}),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["estimator", "predictor", "path"])
def test_continued_training(X, y, kind, how, tmp_path):
    """Without random sampling, 6 rounds and 4 more equal 10 rounds on the same bins."""
    estimator, params = KINDS[kind]
    target = y
    if estimator is GradientBoostingClassifier:
        edges = [0] if kind in ("two classes", "exponential") else [0, 1]
        target = np.array(["low", "middle", "high"])[np.digitize(y, edges)]
    old = estimator(n_estimators=6, **params).fit(X, target)
    given = {"estimator": old, "predictor": old.model_, "path": tmp_path / "old.arb"}
    old.save(tmp_path / "old.arb")
    new = estimator(n_estimators=4, **params).fit(X, target, init_model=given[how])
    new.model_.validate()
    assert new.n_iter_ == 10
    np.testing.assert_array_equal(new.model_.truncated(6).predict_raw(X), old.model_.predict_raw(X))
    if "subsample" not in params:
        whole = estimator(n_estimators=10, **params).fit(X, target)
        np.testing.assert_array_equal(new.model_.predict_raw(X), whole.model_.predict_raw(X))


def test_continued_training_with_other_parameters(X, y):
    """Further rounds draw new samples; they do not repeat those of the first rounds."""
    model = GradientBoostingRegressor(n_estimators=1, subsample=0.5, learning_rate=1e-9)
    first = model.fit(X, y).model_
    forest = model.fit(X, y, init_model=first).model_.forest
    second = forest.tree_start[1]  # first node of the second tree
    assert not np.array_equal(forest.threshold[:second], forest.threshold[second:])


def test_continued_training_on_other_data(X, y):
    labels = np.digitize(y, [0, 1])
    old = GradientBoostingClassifier(n_estimators=3).fit(X, labels)
    some = labels < 2  # no row of the last class
    new = GradientBoostingClassifier(n_estimators=3).fit(X[some], labels[some], init_model=old)
    np.testing.assert_array_equal(new.classes_, [0, 1, 2])
    assert new.predict_proba(X).shape == (N_ROWS, 3)
    assert new.n_iter_ == 6


def test_early_stopping_of_continued_training(X, y):
    old = GradientBoostingRegressor(n_estimators=5).fit(X[:300], y[:300])
    new = GradientBoostingRegressor(n_iter_no_change=3, learning_rate=0.5)
    new.fit(X[:300], y[:300], init_model=old, X_val=X[300:], y_val=y[300:])
    assert new.n_iter_ == new.best_iteration_ + 1
    curve = new.evals_result_["validation"]["squared_error"]
    assert new.best_score_ == curve[new.best_iteration_ - 5]
    expected = np.mean((new.predict(X[300:]) - y[300:]) ** 2)
    np.testing.assert_allclose(new.best_score_, expected)


@pytest.mark.filterwarnings("ignore:y has one class only")
def test_continued_training_of_one_class(X):
    old = GradientBoostingClassifier().fit(X, ["only"] * N_ROWS)
    new = GradientBoostingClassifier().fit(X, ["only"] * N_ROWS, init_model=old)
    np.testing.assert_array_equal(new.predict_proba(X), np.ones((N_ROWS, 1)))


# ---- saved losses, links and constraints ----


def test_custom_loss_predicts_after_loading(X, y, tmp_path):
    loss = CustomLoss(
        name="square", gradients=lambda y, score, weight: (weight * (score - y), weight)
    )
    model = GradientBoostingRegressor(n_estimators=5, loss=loss).fit(X, y)
    model.save(tmp_path / "model.arb")
    loaded = arboost.load(tmp_path / "model.arb")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.params["loss"] == {"custom": "square"}


@pytest.mark.parametrize(
    ("params", "link", "outputs"),
    [
        ({"loss": "poisson"}, "exp", 1),
        ({"loss": "quantile", "alpha": [0.1, 0.5, 0.9]}, "ordered", 3),
        ({"loss": "quantile", "alpha": [0.5]}, "identity", 1),
    ],
)
def test_links(X, y, params, link, outputs, tmp_path):
    model = GradientBoostingRegressor(n_estimators=5, **params).fit(X, np.abs(y))
    model.save(tmp_path / "model.arb")
    loaded = arboost.load(tmp_path / "model.arb")
    assert loaded.link == link
    answers = loaded.predict(X)
    assert answers.shape == ((N_ROWS,) if outputs == 1 else (N_ROWS, outputs))
    np.testing.assert_array_equal(answers, model.predict(X))
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], answers)


def test_constraints_are_kept_and_proved(X, y, tmp_path):
    model = GradientBoostingRegressor(n_estimators=30, monotone_constraints={0: 1, 2: -1})
    model.fit(X, y).save(tmp_path / "model.arb")
    proofs = arboost.load(tmp_path / "model.arb").verify_monotone()
    assert [(proof.feature, proof.direction) for proof in proofs] == [(0, 1), (2, -1)]
    assert all(proof.holds for proof in proofs)
    free = GradientBoostingRegressor(n_estimators=30).fit(X, y)
    assert not all(proof.holds for proof in free.verify_monotone({0: 1, 2: -1}))


def test_monotone_in_all_that_a_model_can_be(X, y):
    """Dropout, parallel trees, row and column sampling keep a constrained model monotone."""
    model = GradientBoostingClassifier(
        n_estimators=30,
        monotone_constraints={0: 1},
        rate_drop=0.2,
        num_parallel_tree=2,
        subsample=0.7,
        colsample_bynode=0.7,
        max_leaves=12,
        grow_policy="leafwise",
    )
    (proof,) = model.fit(X, y > 1).verify_monotone()
    assert proof.holds


def _table(seed=4, n_rows=6000):
    """Return rows of few uneven groups and very unequal weights, whose target is learnable."""
    rng = np.random.default_rng(seed)
    group = rng.choice(40, n_rows, p=rng.dirichlet(np.full(40, 0.5)))
    X = rng.normal(size=(n_rows, 6))
    X[:, 5] += rng.normal(size=40)[group]
    effect = 0.6 * rng.normal(size=40)
    score = -2.5 + 1.2 * X[:, 0] + 0.8 * X[:, 1] * (X[:, 2] > 0) + effect[group]
    y = (rng.random(n_rows) < 1 / (1 + np.exp(-score))).astype(int)
    return X, y, np.exp(2.5 * rng.normal(size=n_rows)), group


def _classifier(**params):
    return arboost.GradientBoostingClassifier(validation_split="group", **params)


def _fit(X, y, weight, group, **params):
    with pytest.warns(DataWarning) as warned:
        model = _classifier(**params).fit(X, y, weight, groups=group)
    assert len(warned) == 1
    return model, str(warned[0].message)


def test_noisy_held_out_rows():
    model, text = _fit(*_table())
    assert "scored best after 2 rounds, and those of 5 other splits after 34, which the" in text
    assert model.model_.n_rounds == model.n_iter_ == 34
    X, y, _, _ = _table(seed=1004, n_rows=20_000)
    first, actual = (log_loss(y, model.predict_proba(X, rounds=rounds)) for rounds in (2, None))
    assert actual < first - 0.02
    runs = model.model_.provenance["history"]["runs"]
    assert runs[-1]["kind"] == "search"
    assert 2 * runs[-1]["best"] == 34


def test_same_bytes(tmp_path):
    X, y, weight, group = _table()
    first = to_bytes(_fit(X, y, weight, group)[0].model_)
    for n_jobs in (1, 2, 4):
        model, _ = _fit(X, y, weight, group, n_jobs=n_jobs)
        assert to_bytes(model.model_) == first
    columns = {f"x{i}": column for i, column in enumerate(X.T)}
    table = pyarrow.table(columns | {"y": y, "w": weight, "g": group})
    named, _ = _fit(table.select([*columns, "y"]), "y", weight, group)
    path = tmp_path / "rows.parquet"
    parquet.write_table(table, path, row_group_size=700)
    with pytest.warns(DataWarning, match="of 5 other splits"):
        streamed = _classifier().fit(path, "y", "w", groups="g", memory_limit="200MB")
    assert to_bytes(streamed.model_) == to_bytes(named.model_)


def test_few_rounds_of_a_target_without_signal():
    rng = np.random.default_rng(0)
    X, y, _, group = _table()
    noise = rng.permutation(y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # plain rows of a target without signal are no fault
        plain = arboost.GradientBoostingClassifier().fit(X, noise)
    assert plain.n_iter_ < 30
    model, text = _fit(X, noise, None, group)
    assert "stopped at 2, among the first ones" in text
    assert model.model_.n_rounds == 2


def test_few_rounds_of_several_splits():
    """A search on five splits is not repeated; with weights it warns like a second search."""
    X, y, weight, _ = _table(n_rows=1000)
    noise = np.random.default_rng(0).permutation(y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        arboost.GradientBoostingClassifier().fit(X, noise)
    with pytest.warns(DataWarning) as warned:
        model = arboost.GradientBoostingClassifier().fit(X, noise, weight)
    (text,) = [str(warning.message) for warning in warned]
    assert f"stopped at {model.n_iter_}, among the first ones, on 5 splits: on held-out" in text


@pytest.mark.parametrize("kind", ["time", "random"])
def test_other_splits(kind, monkeypatch):
    looked = []
    search = fits._search_rounds

    def early(job, plan, binned, splits, started):
        looked.append(splits)
        actual = search(job, plan, binned, splits, started)
        if len(looked) == 1:
            actual.best_index = 0
        return actual

    monkeypatch.setattr(fits, "_search_rounds", early)
    X, y, _, _ = _table()
    weight = None if kind == "time" else np.ones(len(y))
    with pytest.warns(DataWarning, match=f"of {2 if kind == 'time' else 5} other splits after"):
        arboost.GradientBoostingClassifier(validation_split=kind).fit(X, y, weight)
    (first,), others = looked
    if kind == "time":
        last, before = others
        assert [part.tolist() for part in last] == [part.tolist() for part in first]
        assert before[1][-1] == last[1][0] - 1
        assert before[0][-1] == before[1][0] - 1
        assert len(before[1]) == len(last[1])
    else:
        assert sorted(np.concatenate([split[1] for split in others])) == list(range(len(y)))
        shares = [y[split[1]].mean() for split in others]
        assert max(shares) - min(shares) < 0.01  # classes keep their shares


def test_ordinary_fits_search_once(monkeypatch):
    def refused(*_):
        raise AssertionError("a second search")

    monkeypatch.setattr(fits, "_second_search", refused)
    X, y, _, group = _table()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = _classifier().fit(X, y, groups=group)
    assert model.n_iter_ > 10


def test_members_warn_once():
    X, y, weight, _ = _table()
    noise = np.random.default_rng(0).permutation(y)
    bagging = arboost.BaggingClassifier(arboost.GradientBoostingClassifier(), n_estimators=3)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        bagging.fit(X, noise, weight)
    assert len(warned) <= 1


def test_command_line_shows_the_warning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, weight, group = _table()
    columns = {f"x{i}": column for i, column in enumerate(X.T)}
    parquet.write_table(pyarrow.table(columns | {"y": y, "w": weight, "g": group}), "t.parquet")
    line = ["train", "t.parquet", "-t", "y", "--weight", "w", "--groups", "g", "--holdout", "0"]
    result = run(*line, "--json")
    assert json.loads(result.out)["trees"] == 34
    assert "warning: The held-out rows of the search for the number of rounds" in result.err
