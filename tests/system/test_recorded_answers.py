"""Fits give the recorded models: a change of models must be intended.

After an intended change ``python tools/record_answers.py`` writes the new digests, and the
changelog gives the reason.
"""

import json
from pathlib import Path

import pytest

from support.recorded_fits import all_fits, digests_of

RECORDED = json.loads(Path(__file__).with_name("recorded_answers.json").read_text("utf-8"))


def test_every_fit_is_recorded():
    assert list(all_fits()) == list(RECORDED)


@pytest.mark.filterwarnings("ignore::arboost.DataWarning")
@pytest.mark.parametrize("name", list(RECORDED))
def test_answers_are_those_recorded(name, tmp_path):
    found = digests_of(all_fits()[name](), tmp_path)
    recorded = RECORDED[name]
    assert found.get("trees") == recorded.get("trees"), "the trees have changed"
    assert found == recorded, "the trees are the same, but the files or scores have changed"
