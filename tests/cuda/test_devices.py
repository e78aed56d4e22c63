"""Names of devices, their errors, and the places of compiler and kernels."""

import re
import sys
import textwrap

import numpy as np
import pytest

import arboost
from arboost.backend import core
from arboost.data import cuda
from support.cuda import compiler_report, emulated, has_compiler, has_device
from support.paths import ROOT
from support.processes import run

needs_emulator = pytest.mark.skipif(emulated() is None, reason="compiles for the emulator")

X = np.arange(60.0).reshape(30, 2)
y = np.arange(30.0)


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "CPU", ""])
def test_unknown_name_is_refused(device):
    with pytest.raises(ValueError, match='device must be "cpu", "cuda"'):
        arboost.GradientBoostingRegressor(device=device).fit(X, y)


def test_gpu_is_answered_with_the_name_here():
    with pytest.raises(ValueError, match='The name is "cuda"'):
        arboost.GradientBoostingClassifier(device="GPU").fit(X, y > 3)


def test_method_that_needs_the_processor_names_itself():
    model = arboost.GradientBoostingRegressor(device="cuda", tree_method="exact")
    with pytest.raises(arboost.DeviceError, match='tree_method="exact" does not run'):
        model.fit(X, y)


@pytest.mark.skipif(has_device() and emulated() is None, reason="there is a CUDA device")
def test_no_device_is_an_error_and_never_a_silent_fit():
    run("""
        import arboost
        model = arboost.GradientBoostingRegressor(device="cuda")
        try:
            model.fit([[0.0], [1.0]], [0.0, 1.0])
        except arboost.DeviceError as error:
            assert 'use device="cpu"' in str(error)
            assert not hasattr(model, "model_")
        else:
            raise AssertionError("no error")
    """)


@pytest.mark.skipif(not has_device(), reason="no CUDA device")
def test_number_beyond_the_last_device():
    with pytest.raises(arboost.DeviceError, match="is not there"):
        arboost.GradientBoostingRegressor(device="cuda:999").fit(X, y)


def test_model_does_not_know_its_device():
    model = arboost.GradientBoostingRegressor(n_estimators=2, device="cpu").fit(X, y)
    assert "device" not in model.model_.params


def test_compilers_of_packages_newest_first(tmp_path, monkeypatch):
    names = ("cuda_nvrtc/lib/libnvrtc.so.12", "cu13/lib/libnvrtc.so.13")
    others = ("cuda_nvrtc/lib/libnvrtc-builtins.so.12.9", "cuda_nvrtc/lib/libnvrtc.alt.so.12")
    for name in names + others:
        path = tmp_path / "nvidia" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), ""])
    found = [path.relative_to(tmp_path / "nvidia").as_posix() for path in cuda._compilers()]
    assert found == [names[1], names[0]]


def test_cache_folder_can_be_set(tmp_path, monkeypatch):
    monkeypatch.setenv("ARBOOST_CACHE", str(tmp_path))
    assert cuda._cache_folder() == tmp_path
    monkeypatch.delenv("ARBOOST_CACHE")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name, appauthor: tmp_path / name)
    assert cuda._cache_folder() == tmp_path / "arboost"


FIT = """
    import ctypes, sys
    emulator = ctypes.CDLL(sys.argv[1])
    from arboost.backend import core
    from arboost.data import cuda
    cuda._set_places = lambda: core.set_cuda_places([sys.argv[1]], sys.argv[2])
    import arboost
    X = [[float(i)] for i in range(40)]
    model = arboost.GradientBoostingRegressor(n_estimators=2, verbose=0, device="cuda")
    model.fit(X, [x[0] % 7 for x in X])
    print(emulator.emulator_compilations(), model.predict(X)[:3])
"""


def emulated_fit(cache, **environment):
    """Return the number of compiled programs of a fit in a new process, and its predictions."""
    program = f"import os\nos.environ.update({environment})\n" + textwrap.dedent(FIT)
    n_compiled, predictions = run(program, emulated()._name, str(cache)).split(" ", 1)
    return int(n_compiled), predictions


@needs_emulator
def test_kernels_are_compiled_once_and_only_those_in_use(tmp_path):
    n_compiled, predictions = emulated_fit(tmp_path)
    assert 0 < n_compiled < len(core.cuda_programs()) / 2
    assert emulated_fit(tmp_path) == (0, predictions)
    assert n_compiled == len(list(tmp_path.iterdir()))


@needs_emulator
@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[:-1], lambda b: b"C" + b[1:]])
def test_damaged_kernels_are_compiled_again(tmp_path, damage):
    first = emulated_fit(tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(damage(path.read_bytes()))
    assert emulated_fit(tmp_path) == first
    assert emulated_fit(tmp_path) == (0, first[1])


@needs_emulator
def test_another_compiler_compiles_again(tmp_path):
    first = emulated_fit(tmp_path)
    assert emulated_fit(tmp_path, EMULATOR_COMPILER="12090") == first


@needs_emulator
def test_compiler_older_than_the_device_leaves_the_translation_to_the_driver(tmp_path):
    assert emulated_fit(tmp_path, EMULATOR_ARCHITECTURE="80")[0] > 0
    assert all(b"code for compute_80" in path.read_bytes() for path in tmp_path.iterdir())


KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(")


def test_each_kernel_is_in_one_program():
    names = [name for kernels in core.cuda_programs().values() for name in kernels]
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "cpp").rglob("*.cu")]
    assert sorted(names) == sorted(name for text in sources for name in KERNEL.findall(text))
    asked_for = [
        name
        for path in (ROOT / "cpp").rglob("*.cpp")
        for name in re.findall(r'kernel\("(\w+)"', path.read_text(encoding="utf-8"))
    ]
    assert set(asked_for) <= set(names)
    assert len(asked_for) > 20


@pytest.mark.skipif(not has_compiler(), reason="no run-time compiler of CUDA")
@pytest.mark.parametrize("architecture", [75, 90])
@pytest.mark.parametrize("program", list(core.cuda_programs()))
def test_kernels_compile(program, architecture):
    assert compiler_report(program, architecture) == "compiled"
