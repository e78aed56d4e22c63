"""Memory-mapped files: the arrays are pages of the file, and all checks are made."""

from __future__ import annotations

import mmap
import re
import sys

import numpy as np
import pytest

import arboost
from arboost.models.files import model_file
from arboost.models.predictor import Predictor
from arboost.trees.forest import ALL_DTYPES
from support.hostile_models import FILES
from support.model_files import assert_same, sealed, small_model
from support.random_models import make_model, random_forest, random_table


def owner(array):
    """The owner of an array's memory."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


@pytest.fixture
def large(rng):
    forest = random_forest(rng, 300, 5, 1, 1, n_splits=80)
    return Predictor(**make_model(forest, 5, 1).fields())


def test_arrays_are_pages_of_the_file(large, tmp_path, rng):
    path = tmp_path / "model.arb"
    large.save(path, layout="arrays")
    mapped = arboost.load(path, mmap=True)
    for name in ALL_DTYPES:
        array = getattr(mapped.forest, name)
        if array.size:
            assert isinstance(owner(array), mmap.mmap), name
            assert not array.flags.writeable
    assert_same(large, mapped)
    X = random_table(rng, 50, 5)
    assert mapped.predict_raw(X).tobytes() == large.predict_raw(X).tobytes()
    assert model_file.to_bytes(mapped) == model_file.to_bytes(large)


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")
def test_pages_are_shared(large, tmp_path, rng):
    """Not one page of the file is copied, even by predictions."""
    path = tmp_path / "model.arb"
    large.save(path, layout="arrays")
    mapped = arboost.load(path, mmap=True)
    mapped.predict_raw(random_table(rng, 50, 5))
    with open("/proc/self/smaps") as file:
        regions = re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", file.read())
    (region,) = [one for one in regions if one.splitlines()[0].endswith(str(path))]
    sizes = dict(re.findall(r"^(\w+): +(\d+) kB$", region, re.MULTILINE))
    assert int(sizes["Rss"]) >= large.forest.value.nbytes // 1024
    assert sizes["Private_Dirty"] == sizes["Anonymous"] == "0"


def test_distributions_are_mapped(tmp_path):
    (path,) = (path for path in FILES if "forest_quantiles" in path.stem)
    model = arboost.load(path)
    model.save(tmp_path / "model.arb", layout="arrays")
    mapped = arboost.load(tmp_path / "model.arb", mmap=True)
    assert isinstance(owner(mapped.distributions.rank), mmap.mmap)
    X = np.zeros((2, 4))
    np.testing.assert_array_equal(mapped.predict_quantiles(X), model.predict_quantiles(X))


def test_packed_files_cannot_be_mapped(tmp_path):
    path = tmp_path / "model.arb"
    model_file.write_model(small_model(), path)
    with pytest.raises(ValueError, match=r"mmap=True is not allowed .* layout='arrays'"):
        arboost.load(path, mmap=True)
    with pytest.raises(TypeError, match="mmap=1 is not allowed"):
        arboost.load(path, mmap=1)


def test_damage_is_noticed(tmp_path):
    path = tmp_path / "model.arb"
    data = model_file.to_bytes(small_model(), "arrays")
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(arboost.ModelFormatError):
            arboost.load(path, mmap=True)
    for position in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        path.write_bytes(bytes(damaged))
        with pytest.raises(arboost.ModelFormatError):
            arboost.load(path, mmap=True)


def test_hostile_links_are_found(tmp_path):
    model = small_model()
    data = bytearray(model_file.to_bytes(model, "arrays"))
    place = data.index(model.forest.left.tobytes())
    data[place] = 3
    path = tmp_path / "model.arb"
    path.write_bytes(sealed(bytes(data)))
    with pytest.raises(arboost.ModelFormatError, match="a child outside its tree"):
        arboost.load(path, mmap=True)


def test_a_mapped_file_can_be_saved_over(large, tmp_path):
    """The new file takes the name; the old file lives as long as it is mapped."""
    path = tmp_path / "model.arb"
    large.save(path, layout="arrays")
    mapped = arboost.load(path, mmap=True)
    model_file.write_model(small_model(), path)
    assert_same(large, mapped)
    assert arboost.load(path).n_trees == 2
