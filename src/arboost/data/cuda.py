"""CUDA devices by name, and arrays and data frames in their memory, in and out."""

from __future__ import annotations

import math
import os
import re
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.errors import DeviceError, InputTypeError

# ---- devices ----

_NAME = re.compile(r"cuda(?::(\d{1,4}))?")
_COMPILERS = ("libnvrtc.so.*", "nvrtc64_*.dll")


def device_number(device: str) -> int:
    """Number of a device for the core; -1 for "cpu".

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
    """Files of NVRTC that are installed as Python packages, newest first."""
    roots = [Path(folder) / "nvidia" for folder in sys.path if folder]
    files = {
        path
        for root in roots
        if root.is_dir()
        for pattern in _COMPILERS
        for path in root.glob(f"*/*/{pattern}")
        if "builtins" not in path.name and ".alt." not in path.name
    }
    return sorted(files, key=lambda path: path.name, reverse=True)


def _cache_folder() -> Path:
    """Folder of compiled kernels; ARBOOST_CACHE names another one."""
    from platformdirs import user_cache_path

    chosen = os.environ.get("ARBOOST_CACHE")
    return Path(chosen) if chosen else user_cache_path("arboost", appauthor=False)


# ---- arrays in the memory of a device ----

# Types of memory that a device reads, by their numbers in DLPack: its own, and managed memory.
_DLPACK_TYPES = (2, 13)
_DEFAULT_STREAM = 1
_FIRST_WITH_STREAM = 3  # version of the array interface
_KINDS, _NARROWEST_FLOAT = "fiub", 4


@dataclass(frozen=True, eq=False)
class CudaArray:
    """An array in the memory of a device.

    Attributes
    ----------
    address : int
        Address of the first element.
    shape : tuple of int
        One or two lengths.
    strides : tuple of int
        Bytes from one element to the next, for each dimension; may be negative.
    dtype : numpy.dtype
        float32, float64, an integer or bool.
    device : int
        Number of the device.
    owner : object
        The object that the memory belongs to.
    stream : int or None
        Stream of the work that writes the array: a handle of the driver, 1 for the default stream,
        None where no work is left.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    device: int
    owner: object
    stream: int | None = None

    @classmethod
    def empty(cls, shape: tuple[int, ...], dtype: Any, device: int) -> Self:
        """A new array in C order, of any content."""
        kind = np.dtype(dtype)
        memory = core.CudaMemory(math.prod(shape) * kind.itemsize, device)
        return cls(memory.address, shape, _c_strides(shape, kind.itemsize), kind, device, memory)

    @classmethod
    def of(cls, values: NDArray[Any], device: int = 0) -> Self:
        """A copy of an array on a device: in Fortran order if it is so, else in C order."""
        if values.flags.f_contiguous and not values.flags.c_contiguous:
            turned = cls.of(values.T, device)
            return replace(turned, shape=values.shape, strides=turned.strides[::-1])
        array = cls.empty(values.shape, values.dtype, device)
        flat = np.ascontiguousarray(values).reshape(-1)
        core.copy_to_cuda(flat.view(np.uint8), array.address, device)
        return array

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def ravel(self) -> CudaArray:
        """An array in C order as one of one dimension, without a copy."""
        if self.strides != _c_strides(self.shape, self.dtype.itemsize):
            raise ValueError("an array on a CUDA device is flattened in C order only")
        return replace(self, shape=(self.size,), strides=(self.dtype.itemsize,))

    def wait(self) -> None:
        """Wait for the work that writes the array."""
        if self.stream is not None:
            core.wait_for_cuda_stream(self.stream, self.device)

    def to_numpy(self) -> NDArray[Any]:
        """A copy in the memory of the host."""
        if self.size == 0:
            return np.empty(self.shape, self.dtype)
        self.wait()
        steps = [(n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)]
        below = sum(min(step, 0) for step in steps)
        buffer = np.empty(sum(map(abs, steps)) + self.dtype.itemsize, np.uint8)
        core.copy_from_cuda(self.address + below, self.device, buffer)
        view = np.ndarray(self.shape, self.dtype, buffer, -below, self.strides)
        return np.ascontiguousarray(view)

    def __array__(self, dtype: Any = None, copy: object = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("an array on a CUDA device is copied to become a NumPy array")
        return np.asarray(self.to_numpy(), dtype)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": self.strides,
            "stream": self.stream,
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DLPACK_TYPES[0], self.device

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: object = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("the array is exported without a copy, on its own device only")
        self.wait()  # whatever stream goes on with it
        return core.dlpack_capsule(
            address=self.address,
            shape=list(self.shape),
            strides=list(self.strides),
            kind=self.dtype.kind,
            bytes=self.dtype.itemsize,
            device=self.device,
            owner=self,
        )

    def __repr__(self) -> str:
        return f'CudaArray(shape={self.shape}, dtype={self.dtype}, device="cuda:{self.device}")'


def is_device_array(X: object) -> bool:
    """Whether X is an array or a data frame in the memory of a CUDA device.

    Examples
    --------
    >>> is_device_array(np.zeros(3)), is_device_array([1, 2])
    (False, False)
    """
    if isinstance(X, np.ndarray | list | tuple):
        return False
    return _is_cudf_frame(X) or _dlpack_device(X) is not None or _interface(X) is not None


def device_array(X: Any, name: str = "X") -> CudaArray | None:
    """An array or a data frame of numbers on a device, without a copy; None for others.

    Parameters
    ----------
    X : object
        Array with ``__dlpack__`` or ``__cuda_array_interface__``; or a data frame of cuDF, whose
        columns are gathered in one array, NaN for missing values.
    name : str
        Name of X in messages.

    Raises
    ------
    TypeError, ValueError
        X is on a device, but has more than two dimensions, a mask, or no numbers.
    """
    if isinstance(X, np.ndarray | list | tuple):
        return None
    if _is_cudf_frame(X):
        X = _cudf_values(X, name)
    if _dlpack_device(X) is not None:
        try:
            return _checked(_from_dlpack(X), name)
        except (BufferError, RuntimeError):  # bool has come to DLPack late
            if _interface(X) is None:
                raise
    interface = _interface(X)
    return None if interface is None else _checked(_from_interface(X, interface, name), name)


def as_kind_of(array: CudaArray, X: object) -> Any:
    """An array as one of the package that X is from, without a copy.

    CuPy and PyTorch have theirs; frames of cuDF give arrays of CuPy. For all others the array
    itself is returned, which NumPy, CuPy, Numba, PyTorch and JAX can read.
    """
    package = _package(X)
    if package == "torch":
        return sys.modules["torch"].from_dlpack(array)
    if package in ("cupy", "cudf") and "cupy" in sys.modules:
        return sys.modules["cupy"].asarray(array)
    return array


def refuse_device_array(X: object, name: str, advice: str) -> None:
    """Raise TypeError where X is on a device, but only the host's memory is read.

    `advice` says what to do, apart from a copy.
    """
    if is_device_array(X):
        ways = {"torch": ".cpu().numpy()", "cupy": ".get()", "cudf": ".to_pandas()"}
        ways |= {"numba": ".copy_to_host()", "arboost": ".to_numpy()"}
        way = ways.get(_package(X))
        copy = f"numpy.asarray({name})" if way is None else name + way
        raise InputTypeError(
            f"{name} is a {type(X).__module__}.{type(X).__name__} in the memory of a CUDA device, "
            f"but the CPU needs it in its own. {advice}, or pass a copy: {copy}."
        )


def refuse_logarithms(X: object) -> None:
    """Raise DeviceError where X, whose log probabilities are asked for, is in device memory."""
    refuse_device_array(X, "X", "Take the logarithm of predict_proba, which runs there")


def _package(X: object) -> str:
    return type(X).__module__.partition(".")[0]


def _is_cudf_frame(X: object) -> bool:
    return _package(X) == "cudf" and hasattr(X, "to_cupy")


def _cudf_values(frame: Any, name: str) -> Any:
    """Columns or the series of cuDF as one array of CuPy."""
    try:
        return frame.to_cupy()
    except ValueError:  # missing values
        return frame.astype("float64").to_cupy(na_value=math.nan)
    except TypeError as error:
        raise InputTypeError(
            f"{name} has columns that are not numeric: {error}. Pass {name}.to_pandas(), or encode "
            "them."
        ) from error


def _dlpack_device(X: Any) -> int | None:
    """Number of the device of an array with DLPack; None for all other objects."""
    if not (hasattr(X, "__dlpack__") and hasattr(X, "__dlpack_device__")):
        return None
    kind, number = X.__dlpack_device__()
    return int(number) if int(kind) in _DLPACK_TYPES else None


def _interface(X: object) -> dict[str, Any] | None:
    """Array interface of an object on a device; None for all other objects."""
    interface: dict[str, Any] | None = getattr(X, "__cuda_array_interface__", None)
    return interface


def _from_dlpack(X: Any) -> CudaArray:
    if isinstance(X, CudaArray):
        return X
    # By the protocol, work of the default stream that starts now sees the values.
    array = core.DlpackArray(X.__dlpack__(stream=_DEFAULT_STREAM))
    return CudaArray(
        array.address,
        tuple(array.shape),
        tuple(array.strides),
        np.dtype(array.dtype),
        array.device,
        array,
        _DEFAULT_STREAM,
    )


def _from_interface(X: object, interface: dict[str, Any], name: str) -> CudaArray:
    if interface.get("mask") is not None:
        raise ValueError(
            f"{name} is an array on a CUDA device with a mask of missing values, which is not read "
            f"there. Pass floats with NaN for missing values: {name}.fillna(float('nan')) in cuDF."
        )
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    strides = interface.get("strides")
    address = int(interface["data"][0] or 0)
    return CudaArray(
        address,
        shape,
        _c_strides(shape, dtype.itemsize) if strides is None else tuple(strides),
        dtype,
        core.cuda_device_of(address) if address else 0,
        X,
        # Before, the default stream was the agreement.
        interface.get("stream")
        if interface.get("version", 0) >= _FIRST_WITH_STREAM
        else _DEFAULT_STREAM,
    )


def _checked(array: CudaArray, name: str) -> CudaArray:
    dtype = array.dtype
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{name} is an array of {array.ndim} dimensions on a CUDA device: pass one or two."
        )
    is_narrow = dtype.kind == "f" and dtype.itemsize < _NARROWEST_FLOAT
    if dtype.kind not in _KINDS or not dtype.isnative or is_narrow:
        raise InputTypeError(
            f"{name} is an array of {dtype} on a CUDA device. Allowed are float32, float64, "
            "integers and bool: convert it first."
        )
    return array


def _c_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) * itemsize for i in range(len(shape)))


# ---- tables in the memory of a device ----


def table_array(X: Any, device: str | None) -> CudaArray:
    """Array of a table on a device.

    Parameters
    ----------
    X : array or data frame in device memory
    device : str or None
        Device that reads it; None: any.

    Raises
    ------
    TypeError
        X is on a device, but the CPU reads it.
    DeviceError
        X is on another device.
    """
    number = -1 if device is None else device_number(device)
    if device is not None and number < 0:
        refuse_device_array(X, "X", 'Use device="cuda"')
    array = device_array(X)
    assert array is not None
    if device is not None and array.device != number:
        raise DeviceError(
            f'X is in the memory of the device "cuda:{array.device}", but device="{device}". Use '
            f'device="cuda:{array.device}", or copy X.'
        )
    device_number(f"cuda:{array.device}")  # kernels read it
    return array


def columns_of(array: CudaArray) -> core.DeviceColumns:
    """Columns of a matrix; all work that writes it is done by then."""
    array.wait()
    columns = core.DeviceColumns(array.shape[0], array.device)
    columns.add_matrix(
        address=array.address,
        n_columns=array.shape[1],
        row_stride=array.strides[0],
        column_stride=array.strides[1],
        kind=array.dtype.kind,
        itemsize=array.dtype.itemsize,
        owner=array.owner,
    )
    return columns


def host_columns(columns: core.Columns | core.DeviceColumns) -> core.Columns:
    """Columns in the memory of the host: a copy of those of a device."""
    return columns.to_host() if isinstance(columns, core.DeviceColumns) else columns
