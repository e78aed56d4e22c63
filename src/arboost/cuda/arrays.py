"""Arrays in the memory of CUDA devices: in from any package, and back in the same kind.

    CuPy, Numba, PyTorch, cuDF, JAX --> `device_array` --> CudaArray --> `as_kind_of` --> the same

Arrays are recognised by their protocols, ``__dlpack__`` and ``__cuda_array_interface__``. None of
these packages is imported here: a user who passes an array has imported its package already.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core

__all__ = [
    "CudaArray",
    "as_kind_of",
    "device_array",
    "is_device_array",
    "refuse_device_array",
    "refuse_logarithms",
]

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
        """Return a new array in C order, of any content."""
        kind = np.dtype(dtype)
        memory = core.CudaMemory(math.prod(shape) * kind.itemsize, device)
        return cls(memory.address, shape, _c_strides(shape, kind.itemsize), kind, device, memory)

    @classmethod
    def of(cls, values: NDArray[Any], device: int = 0) -> Self:
        """Return a copy of an array on a device: in Fortran order if it is so, else in C order."""
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
        """Return an array in C order as one of one dimension, without a copy."""
        if self.strides != _c_strides(self.shape, self.dtype.itemsize):
            raise ValueError("an array on a CUDA device is flattened in C order only")
        return replace(self, shape=(self.size,), strides=(self.dtype.itemsize,))

    def wait(self) -> None:
        """Wait for the work that writes the array."""
        if self.stream is not None:
            core.wait_for_cuda_stream(self.stream, self.device)

    def to_numpy(self) -> NDArray[Any]:
        """Return a copy in the memory of the host."""
        if self.size == 0:
            return np.empty(self.shape, self.dtype)
        self.wait()
        steps = [(n - 1) * step for n, step in zip(self.shape, self.strides, strict=True)]
        below = sum(min(step, 0) for step in steps)
        room = np.empty(sum(map(abs, steps)) + self.dtype.itemsize, np.uint8)
        core.copy_from_cuda(self.address + below, self.device, room)
        view = np.ndarray(self.shape, self.dtype, room, -below, self.strides)
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
    """Return an array or a data frame of numbers on a device, without a copy; None for others.

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
    """Return an array as one of the package that X is from, without a copy.

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
        raise TypeError(
            f"{name} is a {type(X).__module__}.{type(X).__name__} in the memory of a CUDA device, "
            f"but the processor needs it in its own. {advice}, or pass a copy: {_copy_of(X, name)}."
        )


def refuse_logarithms(X: object) -> None:
    """Raise DeviceError where X, whose log probabilities are asked for, is in device memory."""
    refuse_device_array(X, "X", "Take the logarithm of predict_proba, which runs there")


def _copy_of(X: object, name: str) -> str:
    """Return the expression of a NumPy copy of X."""
    ways = {"torch": ".cpu().numpy()", "cupy": ".get()", "cudf": ".to_pandas()"}
    ways |= {"numba": ".copy_to_host()", "arboost": ".to_numpy()"}
    way = ways.get(_package(X))
    return f"numpy.asarray({name})" if way is None else name + way


def _package(X: object) -> str:
    return type(X).__module__.partition(".")[0]


def _is_cudf_frame(X: object) -> bool:
    return _package(X) == "cudf" and hasattr(X, "to_cupy")


def _cudf_values(frame: Any, name: str) -> Any:
    """Return the columns or the series of cuDF as one array of CuPy."""
    try:
        return frame.to_cupy()
    except ValueError:  # missing values
        return frame.astype("float64").to_cupy(na_value=math.nan)
    except TypeError as error:
        raise TypeError(
            f"{name} has columns that are no numbers: {error}. Pass {name}.to_pandas(), or encode "
            "them."
        ) from error


def _dlpack_device(X: Any) -> int | None:
    """Return the number of the device of an array with DLPack; None for all other objects."""
    if not (hasattr(X, "__dlpack__") and hasattr(X, "__dlpack_device__")):
        return None
    kind, number = X.__dlpack_device__()
    return int(number) if int(kind) in _DLPACK_TYPES else None


def _interface(X: object) -> dict[str, Any] | None:
    """Return the array interface of an object on a device; None for all other objects."""
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
        interface.get("stream") if _names_stream(interface) else _DEFAULT_STREAM,
    )


def _names_stream(interface: dict[str, Any]) -> bool:
    """Whether an interface names its stream; before, the default stream was the agreement."""
    return bool(interface.get("version", 0) >= _FIRST_WITH_STREAM)


def _checked(array: CudaArray, name: str) -> CudaArray:
    dtype = array.dtype
    if array.ndim not in (1, 2):
        raise ValueError(
            f"{name} is an array of {array.ndim} dimensions on a CUDA device: pass one or two."
        )
    is_narrow = dtype.kind == "f" and dtype.itemsize < _NARROWEST_FLOAT
    if dtype.kind not in _KINDS or not dtype.isnative or is_narrow:
        raise TypeError(
            f"{name} is an array of {dtype} on a CUDA device. Allowed are float32, float64, "
            "integers and bool: convert it first."
        )
    return array


def _c_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple(math.prod(shape[i + 1 :]) * itemsize for i in range(len(shape)))
