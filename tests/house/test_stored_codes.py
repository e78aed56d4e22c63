"""Codes in a file give the recorded models.

Every recorded fit on full columns of bins is grown again with its codes in a file, read in windows
of three sizes; samples of rows are streamed, or copied to memory.
"""

import json
import tempfile
from pathlib import Path

import pytest

from arboost.backend import core
from support.recorded_fits import all_fits, digests_of

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
def stored(request, monkeypatch):
    """Write the codes of all tables to files; list them."""
    made = []
    encode, params = core.encode, core.TreeParams
    window_rows, sample_bytes = request.param

    def with_memory():
        made_params = params()
        made_params.sample_bytes = sample_bytes
        return made_params

    def encode_to_file(*args, **kwargs):
        codes = encode(*args, **kwargs)
        if codes.sparse_features:
            return codes
        with tempfile.TemporaryFile() as file:
            writer = core.CodesWriter(file.fileno(), window_rows)
            writer.append(codes)
            made.append(writer.finish())
        return made[-1]

    monkeypatch.setattr(core, "encode", encode_to_file)
    monkeypatch.setattr(core, "TreeParams", with_memory)
    return made


@pytest.mark.filterwarnings("ignore::arboost.DataWarning")
@pytest.mark.parametrize("name", ON_BINS)
def test_models_are_those_in_memory(name, stored, tmp_path):
    assert digests_of(all_fits()[name](), tmp_path) == RECORDED[name]
    assert stored or "sparse" in name or "bundle" in name, name
