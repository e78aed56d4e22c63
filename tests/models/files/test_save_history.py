"""History of a fit in model files: round trips, damages, and files of earlier versions."""

import json
from dataclasses import replace

import numpy as np
import pytest

import arboost
from arboost.models.files import model_file
from arboost.models.files.container import pack, unpack
from arboost.models.files.json_model import from_json, to_json
from arboost.models.metadata import without_history
from support.histories import DAMAGES, GOOD, damaged
from support.paths import ROOT

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = X[:, 0] + RNG.normal(size=200)
OLD_FILES = sorted((ROOT / "tests" / "models").glob("*.arb"))


def with_good():
    model = arboost.GradientBoostingRegressor(n_estimators=2, verbose=0).fit(X, Y).model_
    return replace(model, provenance={**model.provenance, "history": GOOD})


FITS = {
    "booster": arboost.GradientBoostingRegressor(n_estimators=30, n_iter_no_change=3),
    "automatic booster": arboost.GradientBoostingRegressor(),
    "AdaBoost": arboost.AdaBoostClassifier(n_estimators=20, n_iter_no_change=10),
    "forest": arboost.RandomForestRegressor(60, oob_score=True),
}
IN_FILES = [(path, value) for path, value in DAMAGES if "NaN" not in json.dumps(value)]


@pytest.mark.parametrize("layout", model_file.LAYOUTS)
@pytest.mark.parametrize("name", FITS)
def test_round_trip(name, layout, tmp_path):
    model = FITS[name].fit(X, Y > 0 if name == "AdaBoost" else Y).model_
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
