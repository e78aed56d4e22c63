import pytest

from arboost.backend import core
from arboost.data.stream.memory import MemoryPlan
from support.shared import Shared


@pytest.fixture(params=["kept", "read again", "stored"])
def place(request, monkeypatch):
    """Have batches kept in memory, read twice, or their codes in a file."""
    if request.param != "kept":
        monkeypatch.setattr(MemoryPlan, "keeps", lambda *of: False)
    if request.param == "stored":
        monkeypatch.setattr(MemoryPlan, "stores", lambda *of: True)
        monkeypatch.setattr(MemoryPlan, "block_rows", 192)


@pytest.fixture
def shared_codes(monkeypatch):
    """Have the codes of the workers without the reductions of the core."""
    monkeypatch.setattr(core, "SharedCodes", Shared, raising=False)
    monkeypatch.setattr(core, "Workers", lambda *given: given, raising=False)
