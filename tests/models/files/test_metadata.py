"""Metadata of the user: kept by every form of a model, and refused where it is no JSON."""

import copy
import json
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest

import arboost
from arboost.models.files.container import pack, unpack
from arboost.models.files.model_file import ENSEMBLE, FORMAT, LAYOUTS
from support.command_line import run

X = np.arange(20.0).reshape(10, 2)
Y = X[:, 0]
METADATA = {
    "trained_by": "ci",
    "größe\n\x1b[31m": 'a "quoted" \\ text */ #error /* model_ MODEL_ ??/ // $what \\',
    "*/ int x; /*": [None, True, False, -(2**63), 2**64 - 1, 0.1, -0.0, "", [], {}],
    "nested": {"a": {"b": ["nan", "inf", "𝄞"]}},
}
FITS = {
    "booster": arboost.GradientBoostingRegressor(n_estimators=3),
    "forest": arboost.RandomForestRegressor(3, warm_start=True),
    "AdaBoost": arboost.AdaBoostRegressor(n_estimators=3),
    "tree": arboost.DecisionTreeRegressor(),
}


def fitted(name="booster", metadata=METADATA):
    model = copy.deepcopy(FITS[name]).fit(X, Y)
    assert model.metadata == {}
    model.metadata.update(metadata)
    return model


def vote():
    members = [("tree", FITS["tree"]), ("forest", FITS["forest"])]
    return arboost.VotingRegressor(members).fit(X, Y)


@pytest.mark.parametrize("name", FITS)
def test_files_keep_metadata(name, tmp_path):
    model = fitted(name)
    for file in ("model.arb", "model.json"):
        model.save(tmp_path / file)
        loaded = arboost.load(tmp_path / file)
        assert repr(loaded.metadata) == repr(type(model).load(tmp_path / file).metadata)
        assert loaded.metadata == METADATA
        assert str(loaded.metadata["*/ int x; /*"]) == str(METADATA["*/ int x; /*"])  # -0.0
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        loaded.metadata["more"] = 1
        loaded.save(tmp_path / file)
        assert arboost.load(tmp_path / file).metadata == METADATA | {"more": 1}
    assert arboost.Predictor.from_json(model.to_json()).metadata == METADATA
    assert pickle.loads(pickle.dumps(model)).metadata == METADATA
    assert pickle.loads(pickle.dumps(model.model_)).metadata == METADATA


@pytest.mark.parametrize("layout", LAYOUTS)
def test_both_layouts_keep_metadata(layout, tmp_path):
    fitted().model_.save(tmp_path / "model.arb", layout=layout)
    assert arboost.load(tmp_path / "model.arb", mmap=layout == "arrays").metadata == METADATA


@pytest.mark.parametrize("name", FITS)
def test_a_fit_begins_with_no_metadata(name):
    model = fitted(name)
    if "n_estimators" in model.get_params():
        model.set_params(n_estimators=5)
    assert model.fit(X, Y).metadata == {}


def test_before_a_fit_there_is_no_metadata():
    for model in (arboost.RandomForestRegressor(), arboost.VotingRegressor([])):
        with pytest.raises(AttributeError, match="not fitted"):
            _ = model.metadata


def test_models_of_a_model_have_dicts_of_their_own():
    model = fitted().model_
    for made in (model.truncated(2), model.with_provenance({"a": 1}), copy.deepcopy(model)):
        assert made.metadata == METADATA
        made.metadata["more"] = 1
        assert model.metadata == METADATA
    deep = copy.deepcopy(model)
    deep.metadata["nested"]["a"] = 0
    assert model.metadata == METADATA
    assert deep.forest is model.forest


@pytest.mark.parametrize("name", FITS)
def test_no_metadata_changes_no_byte(name, tmp_path):
    model = fitted(name, {"a": 1})
    model.save(tmp_path / "with.arb")
    texts = [model.to_json(), model.to_c()]
    model.metadata.clear()
    model.save(tmp_path / "without.arb")
    header, arrays = unpack(FORMAT, (tmp_path / "without.arb").read_bytes())
    assert "metadata" not in header
    assert "metadata" not in json.loads(model.to_json())
    assert "Metadata" not in model.to_c()
    # And nothing else changes.
    header["metadata"] = {"a": 1}
    other, other_arrays = unpack(FORMAT, (tmp_path / "with.arb").read_bytes())
    assert other == header
    assert list(map(bytes, other_arrays.values())) == list(map(bytes, arrays.values()))
    assert texts[0].replace('"metadata": {"a": 1},\n', "") == model.to_json()
    comment = '/* Metadata of the model, as JSON:\n * {\n *   "a": 1\n * }\n */\n'
    assert texts[1].replace(comment, "") == model.to_c()


def test_the_order_of_keys_changes_no_byte(tmp_path):
    for name, keys in (("a", "xy"), ("b", "yx")):
        fitted(metadata=dict.fromkeys(keys, 1)).save(tmp_path / f"{name}.arb")
    assert (tmp_path / "a.arb").read_bytes() == (tmp_path / "b.arb").read_bytes()


def test_ensembles_keep_metadata(tmp_path):
    bagging = arboost.BaggingRegressor(FITS["tree"], n_estimators=2).fit(X, Y)
    stack = arboost.StackingRegressor([("tree", FITS["tree"])], cv=2).fit(X, Y)
    for model in (vote(), bagging, stack):
        assert model.metadata == {}
        model.save(tmp_path / "plain.arb")
        assert "metadata" not in unpack(ENSEMBLE, (tmp_path / "plain.arb").read_bytes())[0]
        model.metadata.update(METADATA)
        model.save(tmp_path / "model.arb")
        loaded = arboost.load(tmp_path / "model.arb")
        again = pickle.loads(pickle.dumps(model)).to_predictor()
        for one in (loaded, again, loaded.to("cpu"), loaded.with_provenance({"a": 1})):
            assert one.metadata == METADATA
        assert pickle.loads(pickle.dumps(loaded)).metadata == METADATA
        loaded.to("cpu").metadata["more"] = 1
        assert loaded.metadata == METADATA
        assert model.fit(X, Y).metadata == {}


def test_ensembles_of_other_learners_keep_metadata_in_pickles():
    linear = pytest.importorskip("sklearn.linear_model")
    model = arboost.AdaBoostRegressor(linear.LinearRegression(), n_estimators=2).fit(X, Y)
    model.metadata["a"] = 1
    assert pickle.loads(pickle.dumps(model)).metadata == {"a": 1}


def nested(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


def cyclic():
    value = {}
    value["again"] = value
    return value


REFUSED = {
    "object": (object(), r"metadata\['key'\]=<object"),
    "bytes": (b"x", r"metadata\['key'\]=b'x'"),
    "tuple": ((1, 2), r"metadata\['key'\]=\(1, 2\)"),
    "NumPy integer": (np.int64(1), r"metadata\['key'\]="),
    "NaN": (float("nan"), r"metadata\['key'\]=nan"),
    "infinity": ({"a": [1, float("inf")]}, r"metadata\['key'\]\['a'\]\[1\]=inf"),
    "integer": (2**64, r"metadata\['key'\]=18446744073709551616"),
    "long integer": (10**5000, r"metadata\['key'\]=a long int is"),
    "keys": ({1: 2}, r"the key 1 in metadata\['key'\]"),
    "surrogate": (["\ud800"], r"metadata\['key'\]\[0\] is not allowed: .*surrogate"),
    "surrogate key": ({"\ud800": 1}, r"a key in metadata\['key'\]"),
    "depth": (nested(21), r"metadata\['key'\]\[0\].*at most 20 levels"),
    "cycle": (cyclic(), r"metadata\['key'\]\['again'\].*at most 20 levels"),
    "long text": ("x" * 2**20, r"metadata\['key'\] is not allowed: .* 1,048,576 characters"),
    "many values": ([0] * 2**20, r"metadata\['key'\] is not allowed: .* 1,048,576 characters"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_are_no_json_are_refused(name, tmp_path):
    value, message = REFUSED[name]
    model, ensemble = fitted(metadata={"good": 1, "key": value}), vote()
    ensemble.metadata["key"] = value
    saves = [
        lambda: model.save(tmp_path / "model.arb"),
        lambda: model.save(tmp_path / "model.json"),
        model.to_json,
        model.to_c,
        lambda: pickle.dumps(model),
        lambda: ensemble.save(tmp_path / "model.arb"),
    ]
    for save in saves:
        with pytest.raises((TypeError, ValueError), match=message) as caught:
            save()
        assert len(str(caught.value)) < 1000
    assert list(tmp_path.iterdir()) == []


def test_the_deepest_and_the_longest():
    model = fitted(metadata={"key": nested(20)})
    assert arboost.Predictor.from_json(model.to_json()).metadata == {"key": nested(20)}
    text = "x" * (2**20 - 1 - len("key"))  # with the number of keys
    model = fitted(metadata={"key": text})
    assert arboost.Predictor.from_json(model.to_json()).metadata == {"key": text}


def test_keys_are_strings():
    with pytest.raises(TypeError, match="the key 3 in metadata is not allowed"):
        fitted(metadata={3: "x"}).to_json()


@pytest.mark.parametrize(
    "forged", [[], "x", None, {"a": 2**64}, {"a": nested(21)}, {"a": "\ud800"}]
)
def test_forged_files_are_refused(forged, tmp_path):
    for model, kind in ((fitted(), FORMAT), (vote(), ENSEMBLE)):
        model.save(tmp_path / "model.arb")
        header, arrays = unpack(kind, (tmp_path / "model.arb").read_bytes())
        data = pack(kind, header | {"metadata": forged}, arrays)
        with pytest.raises(arboost.ModelFormatError, match="metadata"):
            arboost.load(data)
    document = json.loads(fitted().to_json()) | {"metadata": forged}
    with pytest.raises(arboost.ModelFormatError, match="metadata"):
        arboost.load(json.dumps(document).encode())


def test_json_with_nan_is_refused():
    text = fitted(metadata={"a": 1.5}).to_json().replace('{"a": 1.5}', '{"a": NaN}')
    with pytest.raises(arboost.ModelFormatError, match=r"metadata\['a'\]=nan"):
        arboost.load(text.encode())


def test_the_comment_of_a_header_has_all_and_ends_once():
    text = fitted().to_c()
    head, _, rest = text.partition("/* Metadata of the model, as JSON:\n")
    comment, _, code = rest.partition("\n */\n")
    lines = comment.split("\n")
    assert all(line.startswith(" * ") and not line.endswith("\\") for line in lines)
    assert json.loads("\n".join(line.removeprefix(" * ") for line in lines)) == METADATA
    assert comment.isascii()
    assert "*/" not in comment
    assert "/*" not in comment
    plain = fitted(metadata={}).to_c()
    assert head + code == plain


@pytest.mark.skipif(shutil.which("cc") is None or sys.platform == "win32", reason="no C compiler")
@pytest.mark.parametrize("flags", [["-std=c99"], ["-std=c99", "-trigraphs"]])
def test_the_header_compiles_without_a_warning(flags, tmp_path):
    (tmp_path / "model.h").write_text(fitted().to_c(), "ascii")
    (tmp_path / "use.c").write_text('#define MODEL_IMPLEMENTATION\n#include "model.h"\n', "ascii")
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
    subprocess.run(["cc", *flags, *strict, tmp_path / "use.c"], check=True)


def test_onnx_has_one_entry():
    pytest.importorskip("onnx")
    entries = {one.key: one.value for one in fitted().to_onnx().metadata_props}
    assert json.loads(entries["metadata"]) == METADATA
    assert not fitted(metadata={}).to_onnx().metadata_props


def test_commands_keep_and_show_metadata(tmp_path):
    path, copied = tmp_path / "model.arb", tmp_path / "copy.json"
    fitted().save(path)
    assert run("convert", path, copied).code == 0
    assert arboost.load(copied).metadata == METADATA
    shown = run("inspect", copied).out
    assert 'trained_by = "ci"' in shown
    assert r"größe\n\x1b[31m = " in shown
    assert "\x1b" not in shown
    assert json.loads(run("inspect", copied, "--json").out)["metadata"] == METADATA
    ensemble = vote()
    assert "\nmetadata\n" not in run("inspect", saved(ensemble, path)).out
    ensemble.metadata["a"] = "\x1b[0m" + "x" * 10_000
    shown = run("inspect", saved(ensemble, path)).out
    assert r'a = "\u001b[0mxxx' in shown
    assert len(shown) < 1000


def saved(model, path):
    model.save(path)
    return path
