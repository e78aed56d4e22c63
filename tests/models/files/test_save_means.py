"""Model files of means: nothing is lost, and invalid content is refused."""

from __future__ import annotations

import pickle
import struct

import numpy as np
import pytest

from arboost import ModelFormatError
from arboost.models.files import model_file
from arboost.models.predictor import Predictor
from arboost.trees.forest import Forest
from support.mean_models import mean_of, votes_model
from support.model_files import assert_same, small_model, with_header
from support.random_models import make_model, random_forest, random_table

LABELS = (np.array(["no", "yes"]), np.array([1.5, 2.5, 3.5]), np.array([7]))


def several_targets():
    values = np.random.default_rng(0).random((3, 5))
    return votes_model(values, classes=LABELS, targets=(1, 3, 1))


def assert_kept(model):
    data = model_file.to_bytes(model)
    assert struct.unpack_from("<II", data, 8) == (4, 4)
    again = model_file.from_bytes(data)
    assert_same(mean_of(model), mean_of(again))  # all but link, classes and targets
    for name in ("combine", "targets", "link", "kind"):
        assert getattr(again, name) == getattr(model, name)
    assert type(again.classes) is type(model.classes)
    assert model_file.to_bytes(again) == data
    assert pickle.loads(pickle.dumps(model)).params == model.params
    return again


def test_round_trip(rng):
    for width in (1, 3):
        forest = random_forest(rng, 12, 5, 3, width, categories=[1, 3])
        model = mean_of(make_model(forest, 5, 3, trees_per_round=3, categories=[1, 3]))
        again = assert_kept(model)
        X = random_table(rng, 50, 5)
        scores = Predictor(**again.fields()).predict_raw(X)
        assert scores.tobytes() == model.predict_raw(X).tobytes()
    assert_kept(mean_of(small_model()))
    assert_kept(mean_of(small_model(forest=Forest.empty())))


def test_targets_round_trip():
    again = assert_kept(several_targets())
    for labels, expected in zip(again.classes, LABELS, strict=True):
        assert labels.dtype == expected.dtype
        np.testing.assert_array_equal(labels, expected)


HOSTILE = {
    "sum": lambda header: header.update(combine="sum"),
    "median": lambda header: header.update(combine="median"),
    "targets of nobody": lambda header: header.update(targets=[1, 3]),
    "no targets": lambda header: header.pop("targets"),
    "target": lambda header: header.update(targets=5),
    "truth as target": lambda header: header.update(targets=[True, 3, 1]),
    "negative target": lambda header: header.update(targets=[-1, 3, 3]),
    "huge target": lambda header: header.update(targets=[2**70, 3, 1]),
    "other targets": lambda header: header.update(targets=[3, 1, 1]),
    "classes of one": lambda header: header["classes"].pop(),
    "classes": lambda header: header.update(classes={}),
    "nested classes": lambda header: header.update(classes=[[{}]]),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_headers(change):
    data = with_header(model_file.to_bytes(several_targets()), change)
    with pytest.raises(ModelFormatError, match=r"^cannot read it: "):
        model_file.from_bytes(data, "it")
