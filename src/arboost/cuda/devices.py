"""Name of a device -> its number in the core, ready for work.

Kernels are compiled at first use by NVRTC, CUDA's run-time compiler, and kept in a folder of the
user's cache: later processes load them in milliseconds. The driver and NVRTC are loaded by the
core itself; no other package is needed.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from pathlib import Path

from arboost.backend import core
from arboost.errors import DeviceError

__all__ = ["check_device", "device_number"]

_NAME = re.compile(r"cuda(?::(\d{1,4}))?")
_COMPILERS = ("libnvrtc.so.*", "nvrtc64_*.dll")


def device_number(device: str) -> int:
    """Return the number of a device for the core; -1 for "cpu".

    Examples
    --------
    >>> device_number("cpu")
    -1
    """
    name = _NAME.fullmatch(device)
    if name is None:
        return -1
    _set_places()
    return int(name[1] or 0)


def check_device(device: str, tree_method: str, criterion: str | None = None) -> None:
    """Raise DeviceError where a device is not there, or cannot grow trees of this kind."""
    number = device_number(device)
    if number < 0:
        return
    if tree_method == "exact":
        raise DeviceError(
            f'tree_method="{tree_method}" does not run on device="{device}": it sorts all values. '
            'Use tree_method="hist" or tree_method="approx", or device="cpu".'
        )
    if criterion == "absolute_error":
        raise DeviceError(
            f'criterion="absolute_error" does not run on device="{device}": medians need all rows '
            'of a node in order. Use criterion="squared_error", or device="cpu".'
        )
    names = core.cuda_devices()
    if number >= len(names):
        raise DeviceError(
            f'device="{device}" is not there: the CUDA driver shows {len(names)} devices. Look at '
            'nvidia-smi and CUDA_VISIBLE_DEVICES, or use device="cpu".'
        )


@cache
def _set_places() -> None:
    """Tell the core where the run-time compiler and compiled kernels are."""
    core.set_cuda_places([str(path) for path in _compilers()], str(_cache_folder()))


def _compilers() -> list[Path]:
    """Return the files of NVRTC that are installed as Python packages, newest first."""
    roots = [Path(folder) / "nvidia" for folder in sys.path if folder]
    found = {
        path
        for root in roots
        if root.is_dir()
        for pattern in _COMPILERS
        for path in root.glob(f"*/*/{pattern}")
        if "builtins" not in path.name and ".alt." not in path.name
    }
    return sorted(found, key=lambda path: path.name, reverse=True)


def _cache_folder() -> Path:
    """Return the folder of compiled kernels; ARBOOST_CACHE names another one."""
    given = os.environ.get("ARBOOST_CACHE")
    if given:
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "arboost" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "arboost"
