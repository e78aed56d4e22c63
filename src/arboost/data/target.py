"""Any y -> float64 target and classes; sample weights and class weights."""

from __future__ import annotations

import decimal
import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.cuda import CudaArray, device_array, is_device_array
from arboost.data.levels import Floats
from arboost.data.raw_table import N_DIMENSIONS, is_missing, is_sparse
from arboost.errors import InputTypeError, ParameterError, listing, warn_caller

# Labels in a range of up to this width are counted instead of sorted.
_COUNTED_LABELS = 1 << 16

_FLOAT32 = np.finfo(np.float32)
_MOST_WEIGHT = float(np.finfo(np.float64).max) / core.most_rows
_TWO_CLASSES = 2


def target(y: object, n_rows: int, *, several: bool = False) -> NDArray[Any]:
    """Target as a 1-D array of n_rows values, none of them missing or infinite.

    Labels keep their type. If ``several`` targets are allowed, y may be 2-D, with a column for
    each, and stays 2-D.
    """
    if y is None:
        raise ValueError(
            "fit requires y to be passed, but the target y is None. Pass one value for each row."
        )
    if isinstance(y, str):
        raise InputTypeError(
            f"y is the string {y!r}, but it must be one value for each row; a column's name is for "
            "tables with named columns, such as data frames.",
            "Pass the values of the column.",
        )
    array = as_vector(y)
    if array.shape[1:] == (1,):
        from sklearn.exceptions import DataConversionWarning

        warn_caller(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of "
            "y to (n_samples,), for example using ravel().",
            DataConversionWarning,
        )
        array = array.ravel()
    if array.ndim != 1 and not (several and array.ndim == N_DIMENSIONS and array.shape[1]):
        raise ValueError(
            f"y should be a 1d array, got an array of shape {array.shape} instead. Pass one value "
            "for each row."
        )
    _check_length("y", len(array), n_rows)
    _check_target_values(array)
    return array


def weights(sample_weight: object, n_rows: int) -> Floats | None:
    """Finite weights of n_rows rows, at least 0 and not all 0; None stays None."""
    if sample_weight is None:
        return None
    array = batch_weights(sample_weight, n_rows)
    check_any_weight(array)
    return array


def batch_weights(sample_weight: object, n_rows: int) -> Floats:
    """Finite weights of n_rows rows, at least 0."""
    try:
        array = np.asarray(as_vector(sample_weight), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"sample_weight must be numbers, one for each row, but {error}. Pass floats."
        ) from error
    if array.ndim == 0:
        array = np.full(n_rows, float(array))
    if array.ndim != 1:
        raise ValueError(
            f"sample_weight has the shape {array.shape}, but it must be 1-D: one weight for each "
            "row. Pass a 1-D array."
        )
    _check_length("sample_weight", len(array), n_rows)
    bad = ~((array >= 0) & np.isfinite(array))
    if bad.any():
        first = int(bad.argmax())
        raise ValueError(
            f"sample_weight has {int(bad.sum())} values that are negative, NaN or infinite, the "
            f"first {array[first]} in row {first}. Weights must be finite and at least 0; give a "
            "row the weight 0 to leave it out."
        )
    if array.max(initial=0.0) > _MOST_WEIGHT:
        first = int(array.argmax())
        raise ValueError(
            f"sample_weight is {array[first]:g} in row {first}, but at most {_MOST_WEIGHT:.0e} is "
            "allowed: sums of larger weights do not fit float64. Only ratios of weights matter "
            "much: scale them down."
        )
    return np.ascontiguousarray(array)


def check_any_weight(weight: Floats | None) -> None:
    """Raise ValueError where all weights are 0."""
    if weight is not None and not weight.any():
        raise ValueError(
            "All values of sample_weight are zero, so there is nothing to learn from. At least one "
            "weight must be above 0."
        )


def varying_weights(weight: Floats | None) -> Floats | None:
    """Weights, None where all are equal: no result then depends on the rounding of their sums."""
    return None if weight is None or (weight == weight[0]).all() else weight


def numeric_target(y: NDArray[Any], name: str = "y") -> Floats:
    """Target of a regressor as contiguous float64; `name` is its name in messages."""
    if y.dtype.kind == "O":
        not_numbers = [
            value for value in y if not isinstance(value, numbers.Real | decimal.Decimal)
        ]
    else:
        not_numbers = y[:1].tolist() if y.dtype.kind not in "biuf" else []
    if not_numbers:
        first = not_numbers[0]
        raise InputTypeError(
            f"{name} holds {first!r} ({type(first).__name__}), but a regressor needs "
            f"numbers. Convert {name} to float, or use a classifier for labels."
        )
    try:
        values = np.ascontiguousarray(y, dtype=np.float64)
    except OverflowError as error:
        raise ValueError(
            f"{name} does not fit float64: {error}. Bring {name} to a smaller scale."
        ) from None
    low, high = float(values.min()), float(values.max())
    if not math.isfinite(high - low):
        raise ValueError(
            f"{name} goes from {low} to {high}, and the difference does not fit float64. Bring "
            f"{name} to a smaller scale."
        )
    largest = max(abs(low), abs(high))
    if largest > float(_FLOAT32.max):
        warn_caller(
            f"{name} reaches {largest:g} in size, beyond the range of float32: squared errors may "
            "overflow, and predictions are infinite where they become float32, as in ONNX. Bring "
            f"{name} to a smaller scale."
        )
    return values


def encode_labels(y: NDArray[Any], n_threads: int = 1) -> tuple[NDArray[Any], Floats]:
    """Sorted classes, and the class index of each label."""
    if y.dtype.kind in "biuf" and y.dtype.itemsize <= np.dtype(np.float64).itemsize:
        indexed = _indexed_labels(y, n_threads)
        if indexed is not None:
            return indexed
    _check_labels(y)
    if y.dtype.kind == "f" and y.dtype.itemsize > np.dtype(np.float64).itemsize:
        y = y.astype(np.float64)  # long doubles depend on the platform
    y = y.astype(y.dtype.newbyteorder("="), copy=False)
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.astype(np.float64)


def _indexed_labels(y: NDArray[Any], n_threads: int) -> tuple[NDArray[Any], Floats] | None:
    """Result of `encode_labels` for whole numbers in a narrow range; None for others."""
    name = f"{y.dtype.kind}{y.dtype.itemsize}"
    dtype = "?" if name == "b1" else name
    labels = np.ascontiguousarray(y, dtype={"b1": "u1", "f2": "f4"}.get(name, name))
    codes = np.empty(len(y))
    classes: Any = core.index_labels(labels, _COUNTED_LABELS, codes, n_threads)
    if classes is None:
        return None
    return classes.astype(dtype, copy=False), codes


def encode_known_labels(y: NDArray[Any], classes: NDArray[Any], name: str, origin: str) -> Floats:
    """Class index of each label among given classes.

    Parameters
    ----------
    y : array of shape (n_rows,)
    classes : array of shape (n_classes,)
        Sorted, from `encode_labels`.
    name, origin : str
        In messages: the name of the labels, and the owner of the classes.
    """
    present, codes = encode_labels(y)
    class_index = {label: index for index, label in enumerate(classes.tolist())}
    unknown = [label for label in present.tolist() if label not in class_index]
    if unknown:
        raise ValueError(
            f"{name} holds labels that {origin} does not have: {listing(map(repr, unknown))}; "
            f"those that it has are {listing(map(repr, classes.tolist()))}. Drop such rows, or "
            "train a new model on all labels."
        )
    indices = np.array([class_index[label] for label in present.tolist()], dtype=np.float64)
    return indices[codes.astype(np.intp)]


def class_factors(
    class_weight: Mapping[Any, float] | str | None,
    classes: NDArray[Any],
    codes: Floats,
    weight: Floats | None,
    *,
    scale_pos_weight: float = 1.0,
) -> Floats | None:
    """Factor on the weights of each class's rows; None where all are 1.

    "balanced" is scikit-learn's n_rows / (n_classes * rows of the class), in weights of rows.
    """
    n_classes = len(classes)
    factors = np.ones(n_classes)
    if scale_pos_weight != 1.0:
        if n_classes != _TWO_CLASSES:
            raise ParameterError(
                f"scale_pos_weight={scale_pos_weight!r} is not allowed: it is for two classes, and "
                f"y has {n_classes}. Use class_weight.",
                parameter="scale_pos_weight",
            )
        factors[1] = scale_pos_weight
    elif isinstance(class_weight, str):
        totals = np.bincount(codes.astype(np.intp), weight, minlength=n_classes)
        # A class without rows, possible in continued training, keeps the factor 1.
        present = totals > 0
        factors[present] = totals.sum() / (np.count_nonzero(present) * totals[present])
    elif class_weight is not None:
        class_index = {label: index for index, label in enumerate(classes.tolist())}
        unknown = [label for label in class_weight if label not in class_index]
        if unknown:
            raise ParameterError(
                f"class_weight names labels that y does not have: {listing(map(repr, unknown))}; "
                f"y has {listing(map(repr, class_index))}. Use those labels, or leave out the "
                "others.",
                parameter="class_weight",
            )
        for label, factor in class_weight.items():
            factors[class_index[label]] = factor
    return None if (factors == 1.0).all() else factors


def as_vector(values: Any) -> NDArray[Any]:
    """Values of y or weights of any container as an array of the host."""
    if is_device_array(values):
        values = cast(CudaArray, device_array(values, "y or sample_weight")).to_numpy()
    dtype = getattr(getattr(values, "dtype", None), "numpy_dtype", None)
    if dtype is not None and hasattr(values, "isna") and not values.isna().any():
        return np.asarray(values.to_numpy(dtype=dtype))  # a nullable pandas column without NA
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.getmaskarray(values).any():
            raise ValueError("y and sample_weight must be complete, but some values are masked.")
        return np.asarray(values.data)
    if is_sparse(values):
        raise InputTypeError(
            "Sparse data was passed for y or sample_weight, but dense data is required. Use "
            "'.toarray()' to convert it to a dense numpy array."
        )
    array = np.asarray(values)
    if (
        array.dtype.kind in "US"
        and isinstance(values, list | tuple)
        and not all(isinstance(value, str) for value in values)
    ):
        # NumPy turns a NaN among strings into the string "nan", and numbers into their digits.
        array = np.array(values, dtype=object)
    return array


def _check_target_values(y: NDArray[Any]) -> None:
    kind = y.dtype.kind
    if kind == "c":
        raise ValueError("Complex data not supported: y must be real numbers or labels.")
    if kind in "mMV":
        raise InputTypeError(f"y is an array of {y.dtype}, but it must be numbers or labels.")
    if kind == "f":
        bad = ~np.isfinite(y)
    elif kind == "O":
        flat = y.ravel()
        bad = np.array([is_missing(value) or _is_infinite(value) for value in flat], dtype=bool)
        bad = bad.reshape(y.shape)
    else:
        return
    if bad.any():
        first = int(bad.reshape(len(bad), -1).any(axis=1).argmax())
        raise ValueError(
            f"Input y contains {int(bad.sum())} missing or infinite values (NaN, None, inf), the "
            f"first in row {first}. y must be complete: drop those rows from X and y."
        )


def _check_length(name: str, length: int, n_rows: int) -> None:
    if length != n_rows:
        raise ValueError(
            f"X has {n_rows} rows, but {name} has {length} values. Pass one value for each row."
        )


def _check_labels(y: NDArray[Any]) -> None:
    advice = "A classifier takes whole numbers, truth values or strings. "
    if y.dtype.kind == "f" and not np.array_equal(y, np.floor(y)):
        example = y[y != np.floor(y)][0]
        raise ValueError(
            f"Unknown label type: continuous. y holds {example}. {advice}"
            "Use a regressor, or turn y into classes."
        )
    if y.dtype.kind == "O" and not all(isinstance(label, str) for label in y):
        example = next(label for label in y if not isinstance(label, str))
        raise ValueError(
            f"Unknown label type: unknown. y is of objects, one of them {example!r} "
            f"({type(example).__name__}). {advice}"
            "Convert y to one of them."
        )
    if y.dtype.kind not in "biufOU":
        raise ValueError(f"Unknown label type: {y.dtype}. {advice}Convert y to one of them.")


def _is_infinite(value: object) -> bool:
    if isinstance(value, decimal.Decimal):
        return not value.is_finite()
    return isinstance(value, float | np.floating) and bool(np.isinf(value))


@dataclass(frozen=True)
class Task:
    """Regression or classification: the target as losses read it, and its labels.

    Attributes
    ----------
    kind : {"regressor", "classifier", "ranker"}
    y : float64 array of shape (n_rows,)
        Values, or class codes from 0.
    classes : array of shape (n_classes,), or None
        Labels of the codes, sorted; None for regression.
    """

    kind: str
    y: Floats
    classes: NDArray[Any] | None = None

    @classmethod
    def of(
        cls,
        kind: str,
        y: NDArray[Any],
        known: NDArray[Any] | None = None,
        origin: str = "init_model",
        n_threads: int = 1,
    ) -> Self:
        """Task of a target.

        Parameters
        ----------
        kind : {"regressor", "classifier", "ranker"}
        y : array of shape (n_rows,)
        known : array of shape (n_classes,), optional
            Classes of the model whose training is continued.
        origin : str
            The owner of the known classes, in messages.
        n_threads : int
            The result does not depend on it.

        Examples
        --------
        >>> Task.of("classifier", np.array(["b", "a", "b"])).y
        array([1., 0., 1.])
        """
        if kind != "classifier":
            return cls(kind, numeric_target(y))
        if known is not None:
            return cls(kind, encode_known_labels(y, known, "y", origin), known)
        classes, codes = encode_labels(y, n_threads)
        return cls(kind, codes, classes)

    def encode(self, y: NDArray[Any], name: str) -> Floats:
        """Another target in the codes of this one; errors call it by the name."""
        if self.classes is None:
            return numeric_target(y, name)
        return encode_known_labels(y, self.classes, name, "y")

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None for regression."""
        return None if self.classes is None else len(self.classes)

    def class_counts(self, n_threads: int = 1) -> NDArray[np.int64]:
        """Number of rows of each class."""
        return core.class_counts(self.y, len(cast(Any, self.classes)), n_threads)

    @property
    def n_outputs(self) -> int:
        """Number of raw scores per row: one per class; 1 for two classes and for regression."""
        n_classes = self.n_classes
        return 1 if n_classes is None or n_classes == _TWO_CLASSES else n_classes

    @property
    def is_constant(self) -> bool:
        """Whether y has one class only."""
        return self.classes is not None and len(self.classes) == 1


# ---- checks and warnings ----


def check_pairing(X: Any, y: Any, **values: Any) -> None:
    """Check that y and other values of the rows are in the order of X, where pandas tells it.

    Warn where y is a column of X too, or has the index of X in another order: it may have been
    shuffled on purpose. Raise ValueError where other values, by their names, are in another order.
    """
    if not hasattr(X, "iloc") or X.ndim != N_DIMENSIONS:
        return
    if hasattr(y, "iloc") and y.ndim == 1:
        if y.name is not None and list(X.columns).count(y.name) == 1 and y.equals(X[y.name]):
            by_name = f", or pass y={y.name!r}, which takes it out" * isinstance(y.name, str)
            warn_caller(
                f"X has the column {y.name!r}, which equals y: the model learns to copy it. Drop "
                f"it from X{by_name}."
            )
        if _is_other_order(X, y):
            warn_caller(
                "X and y have the same index in different orders, but rows are matched by "
                "position. Pass y.loc[X.index], or arrays where the order is right."
            )
    for name, row_values in values.items():
        if hasattr(row_values, "iloc") and _is_other_order(X, row_values):
            raise ValueError(
                f"X and {name} have the same index in different orders, but rows are matched by "
                f"position. Pass {name}.loc[X.index], or {name}.to_numpy() where the order is "
                "right."
            )


def _is_other_order(X: Any, values: Any) -> bool:
    """Whether values have the labels of the rows of X in another order."""
    index, rows = values.index, X.index
    if len(index) != len(rows) or index.equals(rows):
        return False
    return bool(rows.is_unique and index.is_unique and index.isin(rows).all())


def warn_weight_scale(weight: Floats | None, min_child_weight: float, *, grew: bool) -> None:
    """Warn where weights are too small for a booster, to which their scale matters.

    Parameters
    ----------
    weight : float64 array of shape (n_rows,), or None
    min_child_weight : float
    grew : bool
        Whether any tree has a split.
    """
    if weight is None:
        return
    total, largest = float(weight.sum()), float(weight.max())
    if not grew and total < 2 * min_child_weight:
        warn_caller(
            f"no tree has a split: sample_weight adds up to {total:g}, and each leaf needs "
            f"min_child_weight={min_child_weight:g}. Scale the weights to a mean of 1, or lower "
            "min_child_weight."
        )
    elif largest < float(_FLOAT32.tiny):
        warn_caller(
            f"sample_weight is at most {largest:g}, so small that reg_lambda outweighs all rows, "
            "and that sums lose digits. Scale the weights to a mean of 1."
        )
