"""Models as JSON: readable, and not one bit is lost."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import arboost
from arboost.data.levels import Levels
from arboost.data.schema import Schema
from arboost.models.files import model_file
from arboost.models.files.json_model import from_json, to_json
from arboost.models.predictor import Predictor
from arboost.trees.forest import Forest
from support.hostile_models import FILES
from support.mean_models import mean_of
from support.model_files import CLASSES, median_of, model_with_sets, small_model
from support.random_models import make_model, random_forest
from support.scrambled_models import MODELS, scrambled

ODD = [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1 / 3, 2.0**53 + 2, -1e-300]


def assert_all_comes_back(model):
    text = to_json(model)
    again = from_json(text)
    assert model_file.to_bytes(again) == model_file.to_bytes(model)
    assert to_json(again) == text
    assert text.isascii()
    return text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_kept_models(path):
    assert_all_comes_back(arboost.load(path))


@pytest.mark.parametrize("classes", [None, *CLASSES], ids=str)
def test_classes(classes):
    assert_all_comes_back(small_model(classes))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_means(model):
    assert_all_comes_back(model)


def test_medians_sets_and_nothing():
    assert_all_comes_back(median_of(small_model()))
    assert_all_comes_back(model_with_sets())
    assert_all_comes_back(small_model(forest=Forest.empty()))
    assert_all_comes_back(mean_of(make_model(Forest.empty(3), 2, 3)))


@pytest.mark.parametrize("names", [None, ("\n", "\ud800"), ('[<:"{', "\U0001f333")], ids=repr)
def test_names(names):
    assert_all_comes_back(small_model(names=names))


@pytest.mark.parametrize("seed", range(5))
def test_odd_numbers(seed):
    """Nonfinite numbers and -0, also in unused entries: of leaves, and thresholds of sets."""
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, 9, 5, 3, 3, n_splits=12, categories=[1, 3])
    forest = scrambled(rng, forest)
    n = forest.n_nodes
    forest = replace(
        forest,
        threshold=rng.choice([*ODD, np.inf, -np.inf], n),
        value=rng.choice(ODD, (n, 3)),
        gain=rng.choice(ODD, n),
        cover=np.abs(rng.choice(ODD, n)),
        feature=np.where(forest.is_split, forest.feature, rng.integers(-5, 9, n)),
        default_left=rng.random(n) < 0.5,
    )
    assert_all_comes_back(make_model(forest, 5, 3, categories=[1, 3]))


def test_levels_of_all_kinds():
    texts = [b"", b"\x80 no text", "ä".encode(), b"\xff"]
    texts.sort()
    strings = Levels(
        "string",
        np.frombuffer(b"".join(texts), np.uint8),
        np.cumsum([0, *map(len, texts)]),
    )
    numbers = Levels("number", np.array([-np.inf, -1.5, 0.0, np.inf]))
    many = Levels("number", np.arange(4.0), statistic=np.array([np.nan, 1 / 3, -0.0, 7.0]))
    schema = Schema(None, 4, (strings, numbers, many, None), -9.5, ("", "", "", "datetime"))
    forest = replace(
        small_model().forest,
        feature=np.array([1, -1, -1, -1]),
        level_set=np.array([0, -1, -1, -1]),
        level_sets=np.array([[0b1010, 0, 0, 1 << 62]], np.uint64),
    )
    model = small_model(schema=schema, forest=forest)
    node = json.loads(assert_all_comes_back(model))["trees"][0]["nodes"][0]
    assert node["levels"] == [-1.5, "inf", {"code": 254}]


def test_it_is_readable():
    model = small_model(np.array(["no", "yes"]))
    document = json.loads(to_json(model))
    assert document["format"] == "arboost model"
    assert document["features"] == [{"name": "a"}, {"name": "b"}]
    assert document["classes"] == {"dtype": "<U3", "values": ["no", "yes"]}
    assert document["params"] == model.params
    assert document["trees"][0]["nodes"] == [
        {
            "feature": "b",
            "at_most": 0.5,
            "missing": "left",
            "left": 1,
            "right": 2,
            "value": 0.0,
            "cover": 5.0,
            "gain": 4.0,
        },
        {"value": 1 / 3, "cover": 2.0},
        {"value": -2.5, "cover": 3.0},
    ]


def test_files(tmp_path):
    model = Predictor(**small_model().fields())
    path = tmp_path / "model.json"
    assert model.to_json(path) is None
    assert path.read_text() == model.to_json()
    assert model_file.to_bytes(arboost.load(path)) == model_file.to_bytes(model)
    assert model_file.to_bytes(Predictor.from_json(path.read_bytes())) == model_file.to_bytes(model)
    path.write_text("\n\t " + path.read_text())
    assert arboost.load(path).n_trees == 2
    with pytest.raises(arboost.ModelFormatError, match="it is not an arboost model"):
        arboost.load(path, mmap=True)
    path.write_text("{")
    with pytest.raises(arboost.ModelFormatError, match=r"cannot read the model file .*not JSON"):
        arboost.load(path)


def test_edited_by_hand():
    """Integers are valid where doubles are expected."""
    text = to_json(small_model()).replace('"at_most": 0.5', '"at_most": 2')
    assert from_json(text).forest.threshold[0] == 2.0


WRONG = {
    "unknown feature": ('"feature": "b"', '"feature": "z"'),
    "number of a feature": ('"feature": "b"', '"feature": 1'),
    "missing": ('"missing": "left"', '"missing": "up"'),
    "right": ('"right": 2', '"right": 1'),
    "left": ('"left": 1', '"left": 0'),
    "far": ('"left": 1, "right": 2', '"left": 8, "right": 9'),
    "huge": ('"left": 1, "right": 2', '"left": 4294967297, "right": 4294967298'),
    "threshold": ('"at_most": 0.5', '"at_most": "nan"'),
    "threshold as truth": ('"at_most": 0.5', '"at_most": true'),
    "large": ('"value": -2.5', '"value": 1e999'),
    "wide": ('"value": -2.5', '"value": [1.0, 2.0]'),
    "width": ('"width": 1', '"width": 2'),
    "base score": ('"base_score": [0.1]', '"base_score": []'),
    "kind": ('"kind": "regressor"', '"kind": "oracle"'),
    "name": ('"name": "a"', '"name": "b"'),
    "output": ('"output": 0', '"output": 1'),
    "version": ('"version": 4', '"version": "4"'),
}


@pytest.mark.parametrize(("old", "new"), WRONG.values(), ids=WRONG)
def test_wrong_values(old, new):
    text = to_json(small_model())
    assert old in text
    with pytest.raises(arboost.ModelFormatError, match=r"^cannot read it: "):
        from_json(text.replace(old, new), "it")
