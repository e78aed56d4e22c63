"""Late imports, in fresh processes, because this one has imported everything."""

from __future__ import annotations

import pytest

import arboost
from support.processes import HEAVY, run


def test_import_is_light():
    loaded = run(
        f"""
        import sys
        import arboost
        print([name for name in {HEAVY} if name in sys.modules])
        """
    )
    assert loaded == "[]"


def test_load_and_predict_without_scikit_learn(tmp_path):
    path = tmp_path / "model.arb"
    model = arboost.GradientBoostingClassifier(n_estimators=5)
    model.fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    model.save(path)
    printed = run(
        f"""
        import sys

        class Absent:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in {HEAVY}:
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, Absent())
        import arboost
        model = arboost.load(sys.argv[1])
        print(*model.predict([[0.0], [3.0]]), model.predict_proba([[0.0]]).shape)
        print([name for name in {HEAVY} if name in sys.modules])
        """,
        str(path),
    )
    labels = model.predict([[0.0], [3.0]])
    assert printed.splitlines() == [f"{labels[0]} {labels[1]} (1, 2)", "[]"]


def test_names():
    assert set(arboost.__all__) <= set(dir(arboost))
    for name in arboost.__all__:
        assert getattr(arboost, name) is not None
    assert arboost.__version__.count(".") >= 2


def test_unknown_name():
    with pytest.raises(AttributeError, match="has no attribute 'GradientBoosting'"):
        _ = arboost.GradientBoosting


def test_star_import():
    assert run("from arboost import *; print(load.__name__)") == "load"
