"""A CUDA device for tests: a real one, or the emulator; and the run-time compiler."""

import subprocess
import sys
from functools import cache

import arboost
from arboost.backend import core
from arboost.data.cuda import device_number
from support import emulator


@cache
def has_device():
    """Whether there is a device; the emulator counts."""
    return _has_real_device() or _start_emulator()


@cache
def emulated():
    """Return the emulator where it stands for the device, else None."""
    return None if not has_device() or _has_real_device() else emulator.load()


@cache
def _has_real_device():
    device_number("cuda")  # sets the places of the compiler
    try:
        return len(core.cuda_devices()) > 0
    except arboost.DeviceError:
        return False


def _start_emulator():
    library = emulator.load()
    if library is None:
        return False
    core.set_cuda_places([library._name], "")
    return True


@cache
def has_compiler():
    """Whether CUDA's run-time compiler is installed."""
    report = compiler_report("shap", 80)
    return report != "" and "which is not installed" not in report


def compiler_report(program, architecture):
    """Return the message of the real compiler for a program; "compiled" if all is well.

    In a process of its own: the compiler looks for a driver, and must not find the emulator.
    """
    program = (
        "from arboost.backend import core\nfrom arboost.data.cuda import device_number\n"
        "device_number('cuda')\n"
        f"assert core.compile_cuda_program('{program}', {architecture})[:4] == b'\\x7fELF'"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    return "compiled" if done.returncode == 0 else done.stderr
