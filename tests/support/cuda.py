"""Whether this machine has a CUDA device, or its run-time compiler."""

from functools import cache

import arboost
from arboost.backend import core
from arboost.cuda.devices import device_number


@cache
def has_device():
    device_number("cuda")  # sets the places of the compiler
    try:
        return len(core.cuda_devices()) > 0
    except arboost.DeviceError:
        return False


@cache
def has_compiler():
    device_number("cuda")
    try:
        return len(core.compile_cuda_kernels(80)) > 0
    except arboost.DeviceError as error:
        if "was not found" in str(error):
            return False
        raise
