"""Every extra without one of its packages: one typed error that names the package and the extra."""

import pickle
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import arboost
from arboost.errors import MissingCompilerError, MissingPackageError
from support.command_line import run, run_failing

ROOT = Path(__file__).parents[2]
_DEVELOPMENT = {"test", "bench", "demo", "docs", "dev"}  # of the repository


@pytest.fixture(scope="module")
def model():
    X = np.arange(20.0).reshape(-1, 1)
    estimator = arboost.GradientBoostingRegressor(n_estimators=2)
    return estimator.fit(X, X[:, 0], eval_set=[(X, X[:, 0])])


def _imports(name):
    def enter(_model, _path, monkeypatch):
        for loaded in [one for one in sys.modules if one == name or one.startswith(f"{name}.")]:
            monkeypatch.delitem(sys.modules, loaded)
        import_module(name)

    return enter


def _tune(_model, _path, _monkeypatch):
    X = np.arange(20.0).reshape(-1, 1)
    arboost.tune(arboost.DecisionTreeRegressor(), X, X[:, 0])


# Extra -> its packages, and entry points that need them.
ENTRIES = {
    "tune": (["optuna"], {"tune": _tune}),
    "plots": (
        ["matplotlib"],
        {
            "curves": lambda model, *_: arboost.plots.plot_learning_curves(model),
            "importances": lambda model, *_: arboost.plots.plot_importances(model),
            "tree": lambda model, *_: arboost.plots.plot_shap_waterfall(model, [[1.0]]),
            "dependence": lambda model, *_: arboost.plots.plot_partial_dependence(
                model.partial_dependence([[1.0], [2.0]], 0)
            ),
        },
    ),
    "files": (
        ["pyarrow"],
        {
            "fit": lambda _model, path, _: arboost.DecisionTreeRegressor().fit(str(path), "y"),
            "predict": lambda model, path, _: model.predict_files(str(path), str(path) + ".out"),
        },
    ),
    "onnx": (["onnx"], {"to_onnx": lambda model, *_: model.to_onnx()}),
    "shap": (["shap"], {"explanation": lambda model, *_: model.shap_explanation([[1.0]])}),
    "dask": (["distributed", "dask"], {"module": _imports("arboost.dask")}),
    "ray": (["ray"], {"module": _imports("arboost.ray")}),
    "spark": (["distributed", "pyarrow", "pandas"], {"module": _imports("arboost.spark")}),
}
CASES = [
    pytest.param(extra, package, enter, id=f"{extra}-{package}-{name}")
    for extra, (packages, entries) in ENTRIES.items()
    for package in packages
    for name, enter in entries.items()
]


@pytest.mark.parametrize(("extra", "package", "enter"), CASES)
def test_missing_package(extra, package, enter, model, tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("a,y\n1,2\n3,4\n")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"'arboost\[{extra}\]'\.") as caught:
        enter(model, path, monkeypatch)
    assert (caught.value.package, caught.value.extra) == (package, extra)
    assert caught.value.name == package
    assert f"needs the package {package}, which is not installed" in str(caught.value)


def test_every_extra_has_an_entry():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"]) - _DEVELOPMENT
    assert extras == {*ENTRIES, "cli", "cuda"}


@pytest.mark.parametrize(
    ("package", "extra", "line"),
    [
        ("click", "cli", ["train", "rows.csv", "-t", "y"]),
        ("rich", "cli", ["train", "rows.csv", "-t", "y"]),
        ("rich", "cli", ["inspect", "rows.csv"]),
        ("pyarrow", "cli", ["train", "rows.csv", "-t", "y"]),
        ("pyarrow", "cli", ["train", "rows.csv", "-t", "y", "--memory-limit", "1GB"]),
        ("pyarrow", "cli", ["predict", "model.arb", "rows.csv", "-o", "out.csv"]),
        ("optuna", "tune", ["tune", "rows.csv", "-t", "y"]),
        ("onnx", "onnx", ["convert", "model.arb", "model.onnx"]),
    ],
)
def test_command_line(package, extra, line, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("a,y\n1,2\n3,4\n")
    model.save("model.arb")
    monkeypatch.setitem(sys.modules, package, None)
    code, text = run_failing(*line)
    assert code == 2
    assert f"needs the package {package}, which is not installed" in text
    assert f"pip install 'arboost[{extra}]'" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.arb", "rows.csv"]


@pytest.mark.parametrize("package", ["rich", "pyarrow", "optuna", "onnx"])
def test_help_needs_no_extra_but_click(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    assert run("train", "--help").code == 0


def test_without_the_compiler_of_cuda():
    program = """
from arboost.backend import core
from arboost.errors import DeviceError, MissingPackageError
core.set_cuda_places([], "")
try:
    core.compile_cuda_program("shap", 80)
except MissingPackageError as error:
    assert isinstance(error, DeviceError)
    print(error.extra, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    if not done.stdout:
        pytest.skip("the compiler is installed system-wide")
    assert done.stdout.strip() == (
        'cuda device="cuda" needs the package nvidia-cuda-nvrtc-cu12, which is not installed. '
        "Install it with pip install 'arboost[cuda]'."
    )


@pytest.mark.parametrize("kind", [MissingPackageError, MissingCompilerError])
def test_errors_travel_between_processes(kind):
    error = kind("a function", "somepackage", "extra")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), type(again), again.package) == (str(error), kind, "somepackage")
