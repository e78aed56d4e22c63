"""Arrays of other packages in device memory: recognised, described, and made again."""

import sys
from types import ModuleType

import numpy as np
import pytest

from arboost.backend import core
from arboost.data.cuda import CudaArray, as_kind_of, device_array, is_device_array
from arboost.data.cuda import refuse_device_array as refuse
from support.cuda import has_device

VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)
needs_device = pytest.mark.skipif(not has_device(), reason="no CUDA device")


class WithInterface:
    """Array that claims to be on a device, by its interface; the memory is the host's."""

    def __init__(self, values, **others):
        self.values, self.others = values, others

    @property
    def __cuda_array_interface__(self):
        known = self.values.__array_interface__
        keys = ("shape", "typestr", "data", "strides")
        return {key: known[key] for key in keys} | {"version": 3, "stream": None} | self.others


class WithDlpack:
    """The same by DLPack."""

    def __init__(self, values, device_type=2, device=1):
        self.values, self.device, self.streams = values, (device_type, device), []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        values = self.values
        return core.dlpack_capsule(
            address=values.ctypes.data,
            shape=list(values.shape),
            strides=list(values.strides),
            kind=values.dtype.kind,
            bytes=values.dtype.itemsize,
            device=self.device[1],
            owner=values,
        )


@pytest.fixture
def first_device(monkeypatch):
    """Answer the question for the device of an address, which needs a driver."""
    monkeypatch.setattr(core, "cuda_device_of", lambda address: 0)


@pytest.mark.parametrize(
    "values",
    [VALUES, np.asfortranarray(VALUES), VALUES[::2, 1:], VALUES[::-1], VALUES[:, 1]],
    ids=["C", "F", "strided", "backwards", "1-d"],
)
@pytest.mark.parametrize("make", [WithInterface, WithDlpack])
@pytest.mark.usefixtures("first_device")
def test_record_of_an_array(make, values):
    array = device_array(make(values))
    assert array.address == values.ctypes.data
    assert (array.shape, array.strides) == (values.shape, values.strides)
    assert array.dtype == values.dtype
    assert array.size == values.size
    assert is_device_array(make(values))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i8", "u2", "u8", "?"])
@pytest.mark.parametrize("make", [WithInterface, WithDlpack])
@pytest.mark.usefixtures("first_device")
def test_types_of_numbers(make, dtype):
    assert device_array(make(np.zeros((2, 2), dtype))).dtype == np.dtype(dtype)


@pytest.mark.usefixtures("first_device")
def test_work_of_other_packages_is_waited_for():
    given = WithDlpack(VALUES)
    array = device_array(given)
    assert (array.device, array.stream, given.streams) == (1, 1, [1])
    assert device_array(WithInterface(VALUES, stream=7)).stream == 7
    assert device_array(WithInterface(VALUES)).stream is None
    assert device_array(WithInterface(VALUES, version=2)).stream == 1  # the agreement before


@pytest.mark.usefixtures("first_device")
def test_interface_where_dlpack_lacks_a_type():
    class Both(WithInterface, WithDlpack):
        device = (2, 0)

        def __dlpack__(self, *, stream=None):
            raise BufferError("no bool here")

    assert device_array(Both(VALUES > 3)).dtype == np.bool_
    Both.__cuda_array_interface__ = None
    with pytest.raises(BufferError, match="no bool here"):
        device_array(Both(VALUES > 3))


@pytest.mark.usefixtures("first_device")
def test_unusable_arrays_are_refused():
    with pytest.raises(ValueError, match=r"X is an array .* with a mask .*fillna"):
        device_array(WithInterface(VALUES, mask=WithInterface(VALUES)))
    with pytest.raises(ValueError, match="y is an array of 3 dimensions"):
        device_array(WithDlpack(VALUES[None]), "y")
    with pytest.raises(TypeError, match="array of float16 on a CUDA device"):
        device_array(WithInterface(VALUES.astype("f2")))
    with pytest.raises(TypeError, match="array of complex64"):
        device_array(WithInterface(VALUES.astype("c8")))


def test_memory_of_the_host_is_none_of_these():
    for X in (VALUES, [[1.0]], WithDlpack(VALUES, 1), {"a": [1]}, None, "file.csv"):
        assert not is_device_array(X)
        assert device_array(X) is None


def package(monkeypatch, name, **members):
    """Register a module, and return a class of arrays from it."""
    module = ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)
    return type("ndarray", (WithDlpack,), {"__module__": f"{name}.core"})


def test_results_are_of_the_package_that_came_in(monkeypatch):
    result = CudaArray(1, (1,), (8,), np.dtype(float), 0, None)
    of_cupy = package(monkeypatch, "cupy", asarray=lambda x: ("cupy", x))
    of_torch = package(monkeypatch, "torch", from_dlpack=lambda x: ("torch", x))
    of_cudf = package(monkeypatch, "cudf")
    assert as_kind_of(result, of_cupy(VALUES)) == ("cupy", result)
    assert as_kind_of(result, of_torch(VALUES)) == ("torch", result)
    assert as_kind_of(result, of_cudf(VALUES)) == ("cupy", result)
    assert as_kind_of(result, WithDlpack(VALUES)) is result


def test_frames_of_cudf(monkeypatch):
    of_cudf = package(monkeypatch, "cudf")

    class Frame(of_cudf):
        __module__ = "cudf.core"

        def to_cupy(self, na_value=None):
            if na_value is None and self.values.dtype.kind == "i":
                raise ValueError("missing values")
            return WithDlpack(self.values)

        def astype(self, dtype):
            return Frame(self.values.astype(dtype))

    assert is_device_array(Frame(VALUES))
    assert device_array(Frame(VALUES)).dtype == np.float32
    assert device_array(Frame(VALUES.astype(int))).dtype == np.float64


def test_host_only_entry_points_say_how_to_copy(monkeypatch):
    of_torch = package(monkeypatch, "torch")
    with pytest.raises(TypeError, match=r"Use a GPU, or pass a copy: X.cpu\(\).numpy\(\)"):
        refuse(of_torch(VALUES), "X", "Use a GPU")
    refuse(VALUES, "X", "Use a GPU")


def test_capsule_of_an_array_keeps_its_memory():
    array = CudaArray(VALUES.ctypes.data, (3, 4), (16, 4), VALUES.dtype, 3, VALUES)
    assert array.__dlpack_device__() == (2, 3)
    again = core.DlpackArray(array.__dlpack__(stream=2, max_version=(1, 0)))
    assert (again.address, again.shape, again.strides) == (array.address, [3, 4], [16, 4])
    assert (again.dtype, again.device_type, again.device) == ("f4", 2, 3)
    with pytest.raises(BufferError, match="without a copy"):
        array.__dlpack__(copy=True)
    assert array.__cuda_array_interface__["data"] == (VALUES.ctypes.data, False)
    assert repr(array) == 'CudaArray(shape=(3, 4), dtype=float32, device="cuda:3")'


@needs_device
def test_memory_of_a_device_can_be_read():
    array = CudaArray.empty((5, 2), np.int32, 0)
    assert core.cuda_device_of(array.address) == 0
    assert array.to_numpy().shape == np.asarray(array).shape == (5, 2)
    assert CudaArray.empty((0, 2), np.int32, 0).to_numpy().shape == (0, 2)
