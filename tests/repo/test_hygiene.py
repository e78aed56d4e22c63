"""The compiled core as it is shipped: hardened, with the notices of the libraries in it."""

from __future__ import annotations

import struct
import sys
import tomllib

import pytest

from arboost import _core
from support.paths import ROOT

# Of the ELF format.
PT_DYNAMIC, PT_GNU_RELRO = 2, 0x6474E552
DT_FLAGS, DF_BIND_NOW = 30, 8


def program_headers(elf):
    """Return (type, offset, size in the file) of the segments of a 64-bit ELF file."""
    assert elf[:6] == b"\x7fELF\x02\x01"
    (start,) = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    for at in range(start, start + size * count, size):
        kind, _, offset, _, _, in_file = struct.unpack_from("<IIQQQQ", elf, at)
        yield kind, offset, in_file


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no ELF files")
def test_the_core_is_hardened():
    with open(_core.__file__, "rb") as file:
        elf = file.read()
    segments = {kind: (offset, size) for kind, offset, size in program_headers(elf)}
    assert PT_GNU_RELRO in segments
    offset, size = segments[PT_DYNAMIC]
    dynamic = dict(struct.iter_unpack("<QQ", elf[offset : offset + size]))
    assert dynamic[DT_FLAGS] & DF_BIND_NOW
    assert b"__stack_chk_fail" in elf


def test_wheels_carry_the_notices_of_what_they_contain():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    notices = [path for glob in project["license-files"] for path in sorted(ROOT.glob(glob))]
    texts = {path.name: " ".join(path.read_text("utf-8").split()) for path in notices}
    assert texts.keys() == {
        "LICENSE",
        "d3-LICENSE",
        "plot-LICENSE",
        "nanobind-LICENSE",
        "robin_map-LICENSE",
    }
    assert "Redistributions in binary form must reproduce" in texts["nanobind-LICENSE"]
    assert "above copyright notice and this permission notice" in texts["robin_map-LICENSE"]
    assert set(project["license"].split(" AND ")) == {"Apache-2.0", "BSD-3-Clause", "ISC", "MIT"}
