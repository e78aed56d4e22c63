"""Late imports, in fresh processes, because this one has imported everything."""

from __future__ import annotations

import tomllib

import pytest

import arboost
from support.paths import ROOT
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
    assert dir(arboost) == sorted(arboost.__all__)  # no module, no helper
    for name in arboost.__all__:
        assert getattr(arboost, name) is not None
    assert arboost.__version__.count(".") >= 2


def test_unknown_names_can_be_suggested():
    """Tracebacks suggest a name where the error has the module and the unknown name."""
    with pytest.raises(AttributeError, match="has no attribute 'GradientBoosting'") as caught:
        arboost.GradientBoosting  # noqa: B018  # an access is all it takes
    assert (caught.value.name, caught.value.obj) == ("GradientBoosting", arboost)


def test_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert arboost.__version__ == project["version"]


def test_no_package_metadata_is_needed(tmp_path):
    """A frozen or vendored application has none."""
    printed = run(
        """
        import sys
        import importlib.metadata

        def refuse(*arguments, **options):
            raise importlib.metadata.PackageNotFoundError("arboost")

        importlib.metadata.version = importlib.metadata.distribution = refuse
        import arboost
        path = sys.argv[1] + "/model.arb"
        X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
        checkpoint = arboost.Checkpoint(sys.argv[1] + "/fit.state")
        for kind in (arboost.GradientBoostingClassifier, arboost.RandomForestClassifier):
            model = kind(n_estimators=2).fit(X, y)
            model.save(path)
            assert (arboost.load(path).predict(X) == model.predict(X)).all()
        arboost.GradientBoostingClassifier(n_estimators=2).fit(X, y, checkpoint=checkpoint)
        print(arboost.__version__, arboost.load(path).provenance["version"])
        """,
        str(tmp_path),
    )
    assert printed == f"{arboost.__version__} {arboost.__version__}"


def test_unknown_name():
    with pytest.raises(AttributeError, match="has no attribute 'GradientBoosting'"):
        _ = arboost.GradientBoosting


def test_star_import():
    assert run("from arboost import *; print(load.__name__)") == "load"


def test_an_unknown_instruction_set_is_refused(monkeypatch):
    code = """
        try:
            import arboost.backend
            print(arboost.backend.core.instruction_set())
        except ImportError as error:
            print(error)
    """
    monkeypatch.setenv("ARBOOST_ISA", "baseline")
    assert run(code) == "baseline"
    monkeypatch.setenv("ARBOOST_ISA", "bogus")
    assert "ARBOOST_ISA is 'bogus', but must be baseline, avx2 or avx512" in run(code)
