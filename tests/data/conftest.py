import pytest

from arboost.data.memory import MemoryPlan


@pytest.fixture(params=["kept", "read again", "stored"])
def place(request, monkeypatch):
    """Have batches kept in memory, read twice, or their codes in a file."""
    if request.param != "kept":
        monkeypatch.setattr(MemoryPlan, "keeps", lambda *of: False)
    if request.param == "stored":
        monkeypatch.setattr(MemoryPlan, "stores", lambda *of: True)
        monkeypatch.setattr(MemoryPlan, "block_rows", 192)
