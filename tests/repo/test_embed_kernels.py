"""The sources of CUDA kernels in the core, as tools/embed_kernels.py writes them."""

import importlib.util
import re

import pytest

from arboost import _core as core
from support.paths import ROOT

TOOL = ROOT / "tools" / "embed_kernels.py"
PROGRAMS = ROOT / "cpp" / "cuda" / "programs"
pytestmark = pytest.mark.skipif(not TOOL.is_file(), reason="needs a checkout")


@pytest.fixture
def tool():
    spec = importlib.util.spec_from_file_location("embed_kernels", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write(root, files):
    for name in ("bit", "cstddef", "cstdint", "cstring", "limits"):
        files[f"cuda/kernels/std/{name}"] = f"// {name}\n"
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_programs_headers_and_kernels(tool, tmp_path):
    write(
        tmp_path,
        {
            "cuda/programs/all.cu": '#include "cuda/programs/rows.cu"\n',
            "cuda/programs/rows.cu": '#include "tree/walk.cu"\n#include "tree/steps.cu"\n',
            "tree/steps.cu": "__global__ void step_all(int n) {}\n",
            "tree/walk.cu": (
                '#include <cstdint>\n#include "tree/rows.cuh"\n'
                "__global__ void walk(int n) {}\n"
                "__global__ void\n__launch_bounds__(256, 2) walk_far(int n) {}\n"
            ),
            "tree/rows.cuh": '#pragma once\n#include "tree/walk.cu"\n__device__ void step() {}\n',
        },
    )
    text = tool.embedded(tmp_path)
    assert 'walk_kernels[] = {"walk", "walk_far", }' in text
    assert 'steps_kernels[] = {"step_all", }' in text
    assert '{"walk", "rows", R"arboost(#include "tree/walk.cu"\n)arboost", walk_kernels}' in text
    assert '{"steps", "rows", R"arboost(#include "tree/steps.cu"\n)arboost"' in text
    assert text.count('{"tree/rows.cuh", ') == text.count('{"tree/walk.cu", ') == 1
    assert '{"cstdint", R"arboost(// cstdint\n)arboost"}' in text
    assert '{"all"' not in text


def test_long_sources_are_divided(tool):
    text = "".join(f"// line {i}\n" for i in range(5_000))
    parts = re.findall(r'R"arboost\((.*?)\)arboost"', tool.literal(text), re.DOTALL)
    assert "".join(parts) == text
    assert max(map(len, parts)) <= tool.LONGEST_LITERAL


def test_a_file_that_is_the_same_is_not_written(tool, tmp_path):
    write(tmp_path, {"cuda/programs/walk.cu": ""})
    output = tmp_path / "kernel_sources.cpp"
    tool.main(tmp_path, output)
    before = output.stat().st_mtime_ns
    tool.main(tmp_path, output)
    assert output.stat().st_mtime_ns == before


def test_the_core_carries_every_kernel():
    """Each kernel of the checkout belongs to exactly one program."""
    written = re.compile(r"__global__[^{;]*?(\w+)\s*\(")
    sources = {
        name
        for path in (ROOT / "cpp").rglob("*.cu")
        for name in written.findall(re.sub(r"__launch_bounds__\([^)]*\)", "", path.read_text()))
    }
    carried = [name for kernels in core.cuda_programs().values() for name in kernels]
    assert sorted(carried) == sorted(sources)


def test_the_emulator_has_every_program():
    everything = (PROGRAMS / "all.cu").read_text(encoding="utf-8")
    programs = {path.name for path in PROGRAMS.glob("*.cu")} - {"all.cu"}
    assert set(re.findall(r'#include "cuda/programs/(\w+\.cu)"', everything)) == programs
