"""Codes in a file give the recorded models.

Every recorded fit on full columns of bins is grown again with its codes in a file, read in windows
of three sizes; samples of rows are streamed, or copied to memory.
"""

import json
from pathlib import Path

import pytest

from support.recorded_fits import all_fits, digests_of
from support.stored_codes import codes_in_files

RECORDED = json.loads(Path(__file__).with_name("recorded_answers.json").read_text("utf-8"))
# Ranks and medians need all rows in memory; the last two grow no tree of the engine.
OTHERS = (
    "exact",
    "approx",
    "absolute error",
    "tree of medians",
    "one class",
    "AdaBoost, estimator",
)
ON_BINS = [name for name in RECORDED if not any(word in name for word in OTHERS)]


@pytest.fixture(params=[(64, 0), (999, 1 << 20), (1 << 20, 0)], ids=str)
def stored(request):
    with codes_in_files(*request.param) as made:
        yield made


@pytest.mark.filterwarnings("ignore::arboost.DataWarning")
@pytest.mark.parametrize("name", ON_BINS)
def test_models_are_those_in_memory(name, stored, tmp_path):
    assert digests_of(all_fits()[name](), tmp_path) == RECORDED[name]
    assert stored or "sparse" in name or "bundle" in name, name
