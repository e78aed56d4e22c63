"""Rows in parts that workers hold, one sum at a time, give the recorded models.

Every recorded fit on bins is grown again on 1, 2 and 7 parts of the rows, of equal and unequal
sizes and some empty. The parts share nothing but the numbers that they reduce.
"""

import json
from pathlib import Path

import pytest

from arboost.backend import core
from support.recorded_fits import all_fits, digests_of, grows_on_bins

RECORDED = json.loads(Path(__file__).with_name("recorded_answers.json").read_text("utf-8"))
SHARDS = {
    "one": [1.0],
    "two": [1.0, 1.0],
    "seven, unequal, some empty": [0.0, 5.0, 1.0, 0.0, 0.0, 2.0, 11.0],
}
ON_BINS = [name for name in RECORDED if grows_on_bins(name)]


@pytest.fixture(params=SHARDS.values(), ids=SHARDS.keys())
def sharded(request, monkeypatch):
    """Grow all trees on parts of the rows; count them."""
    made = []
    params = core.TreeParams

    def with_shards():
        made.append(params())
        made[-1].shards = request.param
        return made[-1]

    monkeypatch.setattr(core, "TreeParams", with_shards)
    return made


@pytest.mark.filterwarnings("ignore::arboost.DataWarning")
@pytest.mark.parametrize("name", ON_BINS)
def test_models_are_those_in_memory(name, sharded, tmp_path):
    assert digests_of(all_fits()[name](), tmp_path) == RECORDED[name]
    assert sharded
