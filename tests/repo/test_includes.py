"""The order of the C++ folders, as tools/check_includes.py checks it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "check_includes.py"

pytestmark = pytest.mark.skipif(not TOOL.is_file(), reason="needs a checkout")


def check(folder: Path) -> tuple[int, str]:
    """Return the tool's exit status and what it prints."""
    done = subprocess.run(
        [sys.executable, TOOL, folder], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def write(root: Path, files: dict[str, str]) -> None:
    """Write small C++ files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_the_core_passes():
    status, text = check(ROOT / "cpp")
    assert status == 0, text


def test_includes_down_and_beside_pass(tmp_path):
    write(
        tmp_path,
        {
            "base/types.h": "#include <vector>\n",
            "loss/losses.h": '#include "base/types.h"\n',
            "loss/apply.cpp": '#include "loss/losses.h"\n',
            "grow/rows/sums.h": '#include "loss/losses.h"\n',
            "grow/grower.h": '#include "grow/rows/sums.h"\n',
        },
    )
    status, text = check(tmp_path)
    assert status == 0, text


def test_an_include_from_a_later_folder_fails(tmp_path):
    write(tmp_path, {"base/types.h": '// Types.\n#include "loss/losses.h"\n', "loss/losses.h": ""})
    status, text = check(tmp_path)
    assert status == 1
    assert text == 'base/types.h:2: #include "loss/losses.h": loss comes after base\n'


def test_an_include_that_is_no_path_from_the_root_fails(tmp_path):
    write(tmp_path, {"loss/losses.h": "", "loss/apply.cpp": '#include "losses.h"\n'})
    status, text = check(tmp_path)
    assert status == 1
    assert text.startswith('loss/apply.cpp:1: #include "losses.h": not the path')


@pytest.mark.parametrize("suffix", [".h", ".cpp", ".cu", ".cuh"])
def test_every_kind_of_file_is_checked(tmp_path, suffix):
    write(tmp_path, {f"base/types{suffix}": '#include "loss/losses.h"\n', "loss/losses.h": ""})
    assert check(tmp_path)[0] == 1


def test_two_headers_of_one_name_fail(tmp_path):
    write(tmp_path, {"table/levels.h": "", "grow/levels.h": ""})
    status, text = check(tmp_path)
    assert status == 1
    assert "grow/levels.h, table/levels.h" in text


def test_an_unknown_folder_fails(tmp_path):
    write(tmp_path, {"cellar/types.h": ""})
    status, text = check(tmp_path)
    assert status == 1
    assert "cellar is not in FOLDERS" in text
