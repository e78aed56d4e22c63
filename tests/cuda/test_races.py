"""The order of blocks, warps and lanes changes nothing."""

import ctypes

import numpy as np
import pytest

from support import device_fits
from support.cuda import emulated, has_device
from support.emulator import shuffled

if not has_device() or emulated() is None:
    pytest.skip("no emulator: the order of threads is not shuffled", allow_module_level=True)


def launch(kernel, n_blocks, n_threads):
    library = emulated()
    function, out = ctypes.c_void_p(), (ctypes.c_uint32 * (2 * n_threads))()
    assert library.cuModuleGetFunction(ctypes.byref(function), None, kernel.encode()) == 0
    address = ctypes.c_void_p(ctypes.addressof(out))
    args = (ctypes.c_void_p * 1)(ctypes.addressof(address))
    sizes = (ctypes.c_uint(n) for n in (n_blocks, 1, 1, n_threads, 1, 1, 0))
    assert library.cuLaunchKernel(function, *sizes, None, args, None) == 0
    return tuple(out)


@pytest.mark.parametrize(
    ("kernel", "n_blocks"), [("race_of_blocks", 4), ("race_of_threads", 1), ("race_of_counts", 1)]
)
def test_shuffled_launches_show_races(kernel, n_blocks):
    in_order = {launch(kernel, n_blocks, 64) for _ in range(3)}
    assert len(in_order) == 1
    results = set()
    for seed in range(1, 6):
        with shuffled(seed):
            results.add(launch(kernel, n_blocks, 64))
    assert len(results) > 1


@pytest.mark.parametrize("name", list(device_fits.FITS))
def test_fits_do_not_depend_on_the_order_of_threads(name):
    expected = device_fits.outputs(name, "cpu")
    for seed in (1, 2):
        with shuffled(seed):
            actual = device_fits.outputs(name, "cuda")
        for one, other in zip(actual, expected, strict=True):
            np.testing.assert_array_equal(one, other)
