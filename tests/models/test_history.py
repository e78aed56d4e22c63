"""History of a fit: its record, its checks, and its place in model files."""

import copy
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arboost
from arboost.models.files import model_file
from arboost.models.files.container import pack, unpack
from arboost.models.files.json_model import from_json, to_json
from arboost.models.metadata import (
    check_history,
    history_of,
    out_of_bag_history,
    out_of_bag_trees,
    round_significant,
    run_history,
    thinned_indices,
    votes_history,
    with_history,
    without_history,
)
from support.histories import DAMAGES, GOOD, damaged
from support.paths import ROOT

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = X[:, 0] * X[:, 1] + RNG.normal(size=300)


@given(st.integers(1, 3000), st.integers(3, 200), st.data())
def test_thinned_indices(length, most, data):
    best = data.draw(st.none() | st.integers(0, length - 1))
    places = thinned_indices(length, most, best)
    assert len(places) <= most
    assert len(places) >= min(length, most - 1)
    assert places == sorted(set(places))
    assert {0, length - 1} <= set(places)
    assert best is None or best in places
    if length > most:
        even = (length - 1) / (most - 1 - (best is not None))
        assert max(np.diff(places)) <= math.ceil(even)


def test_significant_digits():
    given_values = [1 / 3, -123456789.0, 1e-300, 0.0, 5e-324, np.float64(2.5)]
    actual = round_significant(given_values)
    assert actual[:4] == [0.333333, -123457000.0, 1e-300, 0.0]
    assert all(type(value) is float for value in actual)
    assert round_significant([math.inf, -math.inf, math.nan]) == [None] * 3


def test_one_or_two_curves_have_200_points_and_many_have_fewer():
    curve = (1 / (1 + np.arange(500))).tolist()
    for n_sets, n_points in ((1, 200), (2, 200), (4, 100), (100, 20)):
        run = run_history({f"set {i}": {"rmse": curve} for i in range(n_sets)}, 251)
        assert len(run["rounds"]) == n_points
        assert {1, 252, 500} <= set(run["rounds"])
        assert run["best"] == 252
        assert len(run["curves"]) == n_sets
        for one in run["curves"]:
            assert one["values"] == round_significant(curve[k - 1] for k in run["rounds"])


def test_no_curves_are_no_history():
    assert run_history({}, None) is None
    assert votes_history(np.empty(0), np.empty(0), np.empty(0), 0.0) is None
    assert history_of([None], adaboost=None) == {}
    assert with_history({"rows": 3}, {}) == {"rows": 3}


def test_parts_are_joined_and_left_out():
    provenance = with_history({"rows": 3}, {"runs": [1]})
    both = with_history(provenance, {"out_of_bag": 2})
    assert both == {"rows": 3, "history": {"runs": [1], "out_of_bag": 2}}
    assert without_history(both) == {"rows": 3}


def booster(**options):
    params = {"n_estimators": 30, "verbose": 0, "learning_rate": 0.3}
    return arboost.GradientBoostingRegressor(**params | options)


def test_curves_of_a_booster():
    model = booster(eval_metric=["rmse", "mae"]).fit(
        X[:200], Y[:200], eval_set=[(X[:200], Y[:200]), (X[200:], Y[200:])]
    )
    (run,) = model.model_.provenance["history"]["runs"]
    names = [(curve["set"], curve["metric"]) for curve in run["curves"]]
    assert names == [(of, name) for of in ("train", "validation") for name in ("rmse", "mae")]
    assert run["kind"] == "fit"
    assert run["rounds"] == list(range(1, 31))
    assert run["best"] == model.best_iteration_ + 1
    for curve in run["curves"]:
        recorded = model.evals_result_[curve["set"]][curve["metric"]]
        assert curve["values"] == pytest.approx(recorded, rel=1e-5)


def test_a_fit_that_measures_nothing_has_no_history():
    provenance = booster().fit(X, Y).model_.provenance
    assert set(provenance) == {"version", "rows"}
    forest = arboost.RandomForestRegressor(3).fit(X, Y)
    assert "history" not in forest.model_.provenance


def test_search_for_rounds():
    model = booster(n_estimators="auto").fit(X, Y, eval_set=[(X, Y)])
    fit, search = model.model_.provenance["history"]["runs"]
    assert (fit["kind"], search["kind"]) == ("fit", "search")
    assert [curve["set"] for curve in fit["curves"]] == ["train"]
    assert fit["rounds"][-1] == model.n_iter_
    assert len(search["curves"]) == 1
    curve = model.evals_result_[search["curves"][0]["set"]]
    assert search["rounds"][-1] == len(next(iter(curve.values())))
    assert next(iter(curve.values()))[search["best"] - 1] == model.best_score_


def test_rounds_of_continued_training_have_their_own_numbers():
    first = booster().fit(X[:200], Y[:200], X_val=X[200:], y_val=Y[200:])
    more = booster(n_estimators=12).fit(
        X[:200], Y[:200], init_model=first, X_val=X[200:], y_val=Y[200:]
    )
    (run,) = more.model_.provenance["history"]["runs"]
    assert run["rounds"] == list(range(31, 43))
    assert run["best"] == more.best_iteration_ + 1
    unwatched = booster(n_estimators=3).fit(X[:200], Y[:200], init_model=first)
    assert "history" not in unwatched.model_.provenance


@pytest.mark.parametrize("estimator", [None, arboost.DecisionTreeClassifier(max_depth=1)])
def test_adaboost(estimator):
    labels = Y > 0
    model = arboost.AdaBoostClassifier(estimator, n_estimators=20, verbose=0)
    model.fit(X[:200], labels[:200], X_val=X[200:], y_val=labels[200:])
    history = model.model_.provenance["history"]
    votes = history["adaboost"]
    assert votes["rounds"] == list(range(1, model.n_iter_ + 1))
    assert votes["training_error"] == pytest.approx(model.training_error_, rel=1e-5)
    assert votes["bound"] == pytest.approx(model.training_error_bound_, rel=1e-5)
    assert votes["edge_bound"] == pytest.approx(model.edge_bound_, rel=1e-5)
    assert votes["vote_range"] == model.vote_range_.sum()
    more = arboost.AdaBoostClassifier(estimator, n_estimators=5, verbose=0)
    more.fit(X[:200], labels[:200], init_model=model, X_val=X[200:], y_val=labels[200:])
    longer = more.model_.provenance["history"]
    assert longer["adaboost"]["training_error"][:20] == votes["training_error"]
    assert longer["adaboost"]["rounds"][-1] == 25
    assert longer["runs"][0]["rounds"] == list(range(21, 26))


def test_bounds_that_theory_does_not_have_are_none():
    model = arboost.AdaBoostClassifier(n_estimators=4, algorithm="real", verbose=0)
    votes = model.fit(X, np.digitize(Y, [-1, 1])).model_.provenance["history"]["adaboost"]
    assert votes["bound"] is None
    assert votes["edge_bound"] is None
    assert len(votes["training_error"]) == 4


def test_models_of_one_tree_have_no_history_of_all():
    for model in (
        arboost.AdaBoostClassifier(n_estimators=3, verbose=0).fit(X, Y > 0),
        arboost.RandomForestRegressor(40, oob_score=True).fit(X, Y),
    ):
        assert "history" in model.model_.provenance
        one = model.estimators_[0]
        assert "history" not in getattr(one, "model_", one).provenance


def test_numbers_that_are_not_finite_are_null(tmp_path):
    def odd(y, predicted, weight):
        return math.inf if np.abs(predicted).max() < 1 else 0.123456789

    model = booster(eval_metric=odd, learning_rate=0.2)
    model.fit(X[:200], Y[:200], X_val=X[200:], y_val=Y[200:])
    (curve,) = model.model_.provenance["history"]["runs"][0]["curves"]
    assert curve["metric"] == "odd"
    assert curve["values"][0] is None
    assert curve["values"][-1] == 0.123457
    path = tmp_path / "model.arb"
    model.save(path)
    assert arboost.load(path).provenance == model.model_.provenance


def test_files_of_500_rounds_grow_by_about_5_kilobytes_at_most():
    noisy = RNG.normal(size=500).tolist()
    sets = {name: {"squared_error": noisy} for name in ("train", "validation")}
    run = run_history(sets, 123)
    of_booster = len(json.dumps(history_of([run]), separators=(",", ":")))
    assert of_booster < 4600
    decreasing = np.exp(-np.arange(500.0) / 60)
    votes = votes_history(decreasing, decreasing, decreasing, 1 / 3)
    one = run_history({"validation": {"error": noisy}}, 123)
    both = history_of([one], adaboost=votes)
    assert len(json.dumps(both, separators=(",", ":"))) < 5600
    curve = out_of_bag_history(out_of_bag_trees(500), "rmse", [noisy[:50]])
    assert len(json.dumps(curve)) < 1000


def test_good_histories_pass():
    check_history(None)
    check_history({})
    check_history(GOOD)
    check_history(GOOD | {"of a later version": 1})


@pytest.mark.parametrize(("path", "value"), DAMAGES)
def test_damaged_histories_are_refused(path, value):
    with pytest.raises((TypeError, ValueError, LookupError, ArithmeticError)):
        check_history(damaged(path, value))


@pytest.mark.parametrize("missing", ["kind", "rounds", "best", "curves"])
def test_runs_without_a_field_are_refused(missing):
    history = copy.deepcopy(GOOD)
    del history["runs"][0][missing]
    with pytest.raises(LookupError):
        check_history(history)


OLD_FILES = sorted((ROOT / "tests" / "models").glob("*.arb"))


def with_good():
    model = arboost.GradientBoostingRegressor(n_estimators=2, verbose=0).fit(X, Y).model_
    return replace(model, provenance={**model.provenance, "history": GOOD})


SAVED_FITS = {
    "booster": arboost.GradientBoostingRegressor(n_estimators=30, n_iter_no_change=3),
    "automatic booster": arboost.GradientBoostingRegressor(),
    "AdaBoost": arboost.AdaBoostClassifier(n_estimators=20, n_iter_no_change=10),
    "forest": arboost.RandomForestRegressor(60, oob_score=True),
}
IN_FILES = [(path, value) for path, value in DAMAGES if "NaN" not in json.dumps(value)]


@pytest.mark.parametrize("layout", model_file.LAYOUTS)
@pytest.mark.parametrize("name", SAVED_FITS)
def test_history_in_files(name, layout, tmp_path):
    model = SAVED_FITS[name].fit(X, Y > 0 if name == "AdaBoost" else Y).model_
    assert model.provenance["history"]
    path = tmp_path / "model.arb"
    model.save(path, layout=layout)
    loaded = arboost.load(path)
    # Equal as text: the types of the numbers are the same, too.
    texts = [json.dumps(one.provenance, sort_keys=True) for one in (model, loaded)]
    assert texts[0] == texts[1]
    assert model_file.to_bytes(loaded) == model_file.to_bytes(model)
    assert from_json(to_json(model)).provenance == model.provenance


def test_format_version_is_the_same():
    """Earlier readers take any provenance that is a table, so that the version need not change."""
    data = model_file.to_bytes(with_good())
    assert int.from_bytes(data[8:12], "little") == int.from_bytes(data[12:16], "little") == 4


@pytest.mark.parametrize(("path", "value"), IN_FILES)
def test_damaged_files(path, value):
    header, arrays = unpack(model_file.FORMAT, model_file.to_bytes(with_good()))
    header.pop("sections")
    assert header["provenance"]["history"] == GOOD
    header["provenance"]["history"] = damaged(path, value)
    with pytest.raises(arboost.ModelFormatError, match="its content is not"):
        model_file.from_bytes(pack(model_file.FORMAT, header, arrays))


@pytest.mark.parametrize(("path", "value"), DAMAGES)
def test_damaged_json(path, value):
    document = json.loads(to_json(with_good()))
    assert from_json(json.dumps(document)).provenance["history"] == GOOD
    document["provenance"]["history"] = damaged(path, value)
    with pytest.raises(arboost.ModelFormatError, match="its content is not"):
        from_json(json.dumps(document))


@pytest.mark.parametrize(("path", "value"), DAMAGES)
def test_damaged_models_are_not_saved(path, value, tmp_path):
    model = with_good()
    model = replace(model, provenance={**model.provenance, "history": damaged(path, value)})
    with pytest.raises((TypeError, ValueError, LookupError, ArithmeticError)):
        model.save(tmp_path / "model.arb")
    assert not list(tmp_path.iterdir())


def test_earlier_files_have_no_history():
    assert len(OLD_FILES) > 30
    for path in OLD_FILES:
        assert "history" not in arboost.load(path).provenance


def test_summary_does_not_show_the_history():
    model = with_good()
    plain = replace(model, provenance=without_history(model.provenance))
    assert str(model.summary()) == str(plain.summary())
