"""Arrays and data frames in the memory of a device -> columns of the core, without a copy."""

from __future__ import annotations

from typing import Any

from arboost.backend import core
from arboost.cuda.arrays import CudaArray, device_array, refuse_device_array
from arboost.cuda.devices import device_number
from arboost.errors import DeviceError

__all__ = ["columns_of", "host_columns", "table_array"]


def table_array(X: Any, device: str | None) -> CudaArray:
    """Return the array of a table on a device.

    Parameters
    ----------
    X : array or data frame in device memory
    device : str or None
        Device that reads it; None: any.

    Raises
    ------
    TypeError
        The processor cannot read it.
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
    """Return the columns of a matrix; all work that writes it is done by then."""
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
    """Return the columns in the memory of the host: a copy of those of a device."""
    return columns.to_host() if isinstance(columns, core.DeviceColumns) else columns
