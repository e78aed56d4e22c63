"""Packed doubles, leaf distributions and metadata of the fit in model files."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import arboost
from arboost.backend import core
from arboost.models.files import model_file
from arboost.models.files.container import pack, unpack
from arboost.models.files.packed_trees import pack_distributions

DOUBLES = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(2**40), 2**40).map(float),
    st.integers(-1000, 1000).map(lambda k: k * 2.0**-30),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.0**1023, -(2.0**971), 1.7976931348623157e308]),
)


@given(st.lists(DOUBLES, max_size=200))
def test_scaled_doubles_come_back(numbers):
    array = np.array(numbers, np.float64)
    packed = core.pack_scaled(array)
    again = core.unpack_scaled(packed, len(array))
    np.testing.assert_array_equal(again.view(np.uint64), array.view(np.uint64))
    with pytest.raises(ValueError, match="fewer bytes than blocks"):
        core.unpack_scaled(packed, len(array) + 2**60)
    with pytest.raises(ValueError, match="bytes"):
        core.unpack_scaled(np.append(packed, np.uint8(0)), len(array))


def test_scaled_doubles_are_small():
    """Multiples of a unit take the bits of the multiples."""
    array = np.arange(6400.0) * 2.0**-200
    assert len(core.pack_scaled(array)) < 6400 * 14 / 8 + 400


def test_units_that_there_are_not():
    for exponent in (-1075, 972, 32766):
        packed = np.append(
            np.array([exponent], "<i2").view(np.uint8), core.pack_bits(np.array([2], np.uint64))
        )
        with pytest.raises(ValueError, match="a unit that doubles do not have"):
            core.unpack_scaled(packed.astype(np.uint8), 1)


X = np.random.default_rng(3).normal(size=(150, 3))
Y = X[:, 0] + np.round(X[:, 1])
WEIGHTS = np.random.default_rng(4).integers(0, 4, 150)
QUANTILES = [0.0, 0.25, 0.9, 1.0]


def quantile_forest(weight=None, cls=arboost.RandomForestRegressor):
    forest = cls(n_estimators=4, quantiles=True, min_samples_leaf=3, random_state=0)
    return forest.fit(X, Y, weight)


@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["equal", "weights"])
@pytest.mark.parametrize("cls", [arboost.RandomForestRegressor, arboost.ExtraTreesRegressor])
def test_quantiles_of_a_loaded_model(cls, weight, tmp_path):
    forest = quantile_forest(weight, cls)
    expected = forest.predict_quantiles(X, QUANTILES)
    forest.save(tmp_path / "packed.arb")
    forest.model_.save(tmp_path / "arrays.arb", layout="arrays")
    forest.model_.to_json(tmp_path / "model.json")
    for name in ("packed.arb", "arrays.arb", "model.json"):
        model = arboost.load(tmp_path / name)
        found = model.predict_quantiles(X, QUANTILES)
        assert found.tobytes() == expected.tobytes()
        np.testing.assert_array_equal(model.predict_quantiles(X, 0.25), expected[:, 1])
        assert model_file.to_bytes(model) == (tmp_path / "packed.arb").read_bytes()
    assert pickle.loads(pickle.dumps(forest)).predict_quantiles(X, QUANTILES).tobytes() == (
        expected.tobytes()
    )


def test_quantiles_of_fewer_trees():
    model = quantile_forest().model_
    short = model.truncated(2)
    short.validate()
    again = model_file.from_bytes(model_file.to_bytes(short))
    assert again.distributions.n_trees == 2
    with pytest.raises(ValueError, match="Fit with quantiles=True"):
        arboost.GradientBoostingRegressor().fit(X, Y).model_.predict_quantiles(X)
    tree = quantile_forest().estimators_[0].model_
    assert tree.distributions is None
    tree.validate()


def with_distributions(**changes):
    model = quantile_forest(WEIGHTS).model_
    header, arrays = unpack(model_file.FORMAT, model_file.to_bytes(model))
    header.pop("sections")
    distributions = replace(model.distributions)
    for name, change in changes.items():
        array = getattr(distributions, name).copy()
        change(array)
        distributions = replace(distributions, **{name: array})
    return pack(model_file.FORMAT, header, arrays | pack_distributions(distributions))


def put(place, value):
    def change(array):
        array[place] = value

    return change


HOSTILE = {
    "rank": {"rank": put(0, 10**6)},
    "order of ranks": {"rank": put(0, 149)},
    "value": {"values": put(0, np.nan)},
    "order of values": {"values": put(0, 1e9)},
    "share": {"upto": put(0, 2**44 + 1)},
    "less than all": {"upto": lambda upto: upto.__ifloordiv__(2)},
    "shares": {"upto": put(slice(None), 0)},
}


@pytest.mark.parametrize("changes", HOSTILE.values(), ids=HOSTILE)
def test_hostile_distributions(changes):
    with pytest.raises(arboost.ModelFormatError, match=r"^cannot read it: "):
        model_file.from_bytes(with_distributions(**changes), "it")


def test_unchanged_distributions_are_read():
    assert model_file.from_bytes(with_distributions()).distributions is not None


LABELS = np.digitize(Y, [-0.5, 0.5])
ESTIMATORS = [
    (arboost.GradientBoostingRegressor(n_estimators=3), Y),
    (arboost.GradientBoostingClassifier(n_estimators=3), LABELS),
    (arboost.AdaBoostClassifier(n_estimators=3), LABELS),
    (arboost.AdaBoostClassifier(n_estimators=3, algorithm="real"), LABELS > 0),
    (arboost.AdaBoostRegressor(n_estimators=3, random_state=0), Y),
    (arboost.AdaBoostRegressor(n_estimators=3, aggregation="mean"), Y),
    (arboost.DecisionTreeRegressor(max_depth=3), Y),
    (arboost.DecisionTreeClassifier(max_depth=3), LABELS),
    (arboost.RandomForestRegressor(n_estimators=3, quantiles=True, random_state=0), Y),
    (arboost.RandomForestClassifier(n_estimators=3, random_state=0), LABELS),
    (arboost.ExtraTreesRegressor(n_estimators=3, random_state=0), np.c_[Y, Y]),
    (arboost.ExtraTreesClassifier(n_estimators=3, random_state=0), np.c_[LABELS, LABELS > 0]),
    (arboost.BaggingRegressor(n_estimators=3, random_state=0), Y),
]


@pytest.mark.parametrize(("estimator", "y"), ESTIMATORS, ids=lambda one: type(one).__name__)
def test_pickles_hold_the_bytes_of_files(estimator, y, tmp_path):
    """Also pickles of joblib: their content is checked on reading."""
    fitted = clone(estimator).fit(X, y)
    joblib.dump(fitted, tmp_path / "model.joblib")
    others = [
        pickle.loads(pickle.dumps(fitted)),
        joblib.load(tmp_path / "model.joblib"),
        copy.deepcopy(fitted),
    ]
    for other in others:
        np.testing.assert_array_equal(other.predict(X), fitted.predict(X))
    if hasattr(fitted, "model_"):
        data = pickle.dumps(fitted)
        place = data.index(model_file.FORMAT.magic)
        damaged = bytearray(data)
        damaged[place + 100] ^= 1
        with pytest.raises(arboost.ModelFormatError, match="the pickled model"):
            pickle.loads(bytes(damaged))
        assert model_file.to_bytes(others[0].model_) == model_file.to_bytes(fitted.model_)


def test_provenance():
    model = arboost.GradientBoostingRegressor(
        n_estimators=20, n_iter_no_change=2, validation_fraction=0.3
    ).fit(X, Y)
    metadata = model.model_.provenance
    assert metadata["version"] == arboost.__version__
    assert metadata["rows"] <= 150
    assert metadata["best_score"] == model.best_score_
    assert isinstance(metadata["metric"], str)
    assert model_file.from_bytes(model_file.to_bytes(model.model_)).provenance == metadata
    forest = arboost.RandomForestRegressor(n_estimators=2).fit(X, Y)
    assert forest.model_.provenance == {"version": arboost.__version__, "rows": 150}


def test_provenance_that_is_none():
    model = arboost.GradientBoostingRegressor(n_estimators=2).fit(X, Y).model_
    header, arrays = unpack(model_file.FORMAT, model_file.to_bytes(model))
    header.pop("sections")
    header["provenance"] = [1]
    with pytest.raises(arboost.ModelFormatError, match="provenance="):
        model_file.from_bytes(pack(model_file.FORMAT, header, arrays))


def test_sums_take_few_bytes():
    """A booster's node takes at most a third of its size in arrays."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(5000, 8))
    y = table[:, 0] * table[:, 1] + rng.normal(size=5000)
    for estimator in (
        arboost.GradientBoostingRegressor(n_estimators=40, max_depth=6, learning_rate=0.07),
        arboost.GradientBoostingClassifier(n_estimators=40, max_depth=6, reg_lambda=3.0),
    ):
        target = y if isinstance(estimator, arboost.GradientBoostingRegressor) else y > 0
        model = estimator.fit(table, target).model_
        packed, arrays = (len(model_file.to_bytes(model, layout)) for layout in model_file.LAYOUTS)
        assert packed < arrays / 2.8
        header, sections = unpack(model_file.FORMAT, model_file.to_bytes(model))
        assert header["width"] == 1
        rate = 1 / np.sqrt(sections["shrinkage"][1])
        assert abs(rate / model.params["learning_rate"] - 1) < 0.01
