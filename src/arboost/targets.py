"""Targets: what is to be learnt, as numbers that losses read, and how much each class weighs."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.errors import listing

__all__ = ["class_factors", "codes_of", "encode_labels", "numbers_of"]

# Labels in a range up to this wide are counted instead of sorted.
_COUNTED_LABELS = 1 << 16

_TWO_CLASSES = 2


def numbers_of(y: NDArray[Any], name: str = "y") -> NDArray[np.float64]:
    """Return the target of a regressor, which errors call `name`, as contiguous float64."""
    if y.dtype.kind == "O":
        strange = [value for value in y if not isinstance(value, numbers.Real)]
    else:
        strange = y[:1].tolist() if y.dtype.kind not in "biuf" else []
    if strange:
        raise TypeError(
            f"{name} holds {strange[0]!r} ({type(strange[0]).__name__}), but a regressor needs "
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
    return values


def encode_labels(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the classes, sorted, and the index of each label among them."""
    _check_labels(y)
    if y.dtype.kind == "f" and y.dtype.itemsize > np.dtype(np.float64).itemsize:
        y = y.astype(np.float64)  # long doubles differ from machine to machine
    y = y.astype(y.dtype.newbyteorder("="), copy=False)
    if y.dtype.kind not in "OU":
        # The difference of two labels of few bits may not fit into as many.
        wide = y.astype({"f": np.float64, "i": np.int64}.get(y.dtype.kind, np.uint64), copy=False)
        low, high = wide.min(), wide.max()
        if float(high) - float(low) < _COUNTED_LABELS:
            return _count_labels(y, (wide - low).astype(np.intp))
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes.astype(np.float64)


def codes_of(y: NDArray[Any], classes: NDArray[Any], name: str, origin: str) -> NDArray[np.float64]:
    """Return the index of each label among classes that are known already.

    Parameters
    ----------
    y : array of shape (n_rows,)
    classes : array of shape (n_classes,)
        Sorted, as `encode_labels` returns them.
    name, origin : str
        What errors call the labels, and who knows the classes.
    """
    present, codes = encode_labels(y)
    known = {label: place for place, label in enumerate(classes.tolist())}
    unknown = [label for label in present.tolist() if label not in known]
    if unknown:
        raise ValueError(
            f"{name} holds labels that {origin} does not have: {listing(map(repr, unknown))}; "
            f"those that it has are {listing(map(repr, classes.tolist()))}. Drop such rows, or "
            "train a new model on all labels."
        )
    place = np.array([known[label] for label in present.tolist()], dtype=np.float64)
    return place[codes.astype(np.intp)]


def class_factors(
    params: dict[str, Any],
    classes: NDArray[Any],
    codes: NDArray[np.float64],
    weight: NDArray[np.float64] | None,
) -> NDArray[np.float64] | None:
    """Return the factor on the weights of each class's rows; None where all are 1.

    "balanced" is scikit-learn's n_rows / (n_classes * rows of the class), in weights of rows.
    """
    n_classes = len(classes)
    factors = np.ones(n_classes)
    given, positive = params["class_weight"], params["scale_pos_weight"]
    if positive != 1.0:
        if n_classes != _TWO_CLASSES:
            raise ValueError(
                f"scale_pos_weight={positive!r} is not allowed: it is for two classes, and y has "
                f"{n_classes}. Use class_weight."
            )
        factors[1] = positive
    elif given == "balanced":
        totals = np.bincount(codes.astype(np.intp), weight, minlength=n_classes)
        # A class of which a continued training sees no row keeps its factor.
        present = totals > 0
        factors[present] = totals.sum() / (np.count_nonzero(present) * totals[present])
    elif given is not None:
        known = {label: place for place, label in enumerate(classes.tolist())}
        unknown = [label for label in given if label not in known]
        if unknown:
            raise ValueError(
                f"class_weight names labels that y does not have: {listing(map(repr, unknown))}; "
                f"y has {listing(map(repr, known))}. Use those labels, or leave out the others."
            )
        for label, factor in given.items():
            factors[known[label]] = factor
    return None if (factors == 1.0).all() else factors


def _count_labels(
    y: NDArray[Any], place: NDArray[np.intp]
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Do the same from the places of the labels in a short range, without sorting."""
    present = np.flatnonzero(np.bincount(place))
    size = present[-1] + 1
    label = np.empty(size, y.dtype)
    label[place] = y
    index = np.empty(size)
    index[present] = np.arange(len(present))
    return label[present], index[place]


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
