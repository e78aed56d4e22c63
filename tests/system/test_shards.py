"""Rows that workers share give the recorded models.

Every recorded fit on bins runs again in 1, 2 and 5 workers at once, threads of this process, with
parts of equal and unequal sizes, some of them empty. The workers share nothing but messages.
"""

import json
import threading
from pathlib import Path

import pytest

from arboost.backend import core
from support.local_workers import run_workers
from support.recorded_fits import all_fits, digests_of, grows_on_bins
from support.shared_codes import shared

RECORDED = json.loads(Path(__file__).with_name("recorded_answers.json").read_text("utf-8"))
PARTS = {
    "one": [1.0],
    "two": [1.0, 1.0],
    "five, unequal, some empty": [0.0, 5.0, 1.0, 0.0, 11.0],
}
ON_BINS = [name for name in RECORDED if grows_on_bins(name)]


@pytest.fixture(params=PARTS.values(), ids=PARTS.keys())
def parts(request, monkeypatch):
    """Divide the codes of all tables among the workers; return their parts."""
    encode = core.encode

    def encode_own(*args, **kwargs):
        codes = encode(*args, **kwargs)
        workers = getattr(own, "workers", None)
        return codes if workers is None else shared(codes, workers, request.param)

    monkeypatch.setattr(core, "encode", encode_own)
    return request.param


own = threading.local()


@pytest.mark.filterwarnings("ignore::arboost.DataWarning")
@pytest.mark.parametrize("name", ON_BINS)
def test_models_are_those_in_memory(name, parts, tmp_path):
    def program(workers):
        own.workers = workers
        folder = tmp_path / str(workers.rank)
        folder.mkdir()
        return digests_of(all_fits()[name](), folder)

    for found in run_workers(len(parts), program):
        assert found == RECORDED[name]
