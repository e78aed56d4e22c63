"""Training and held-out rows: splits and folds, each a pure function of seed and row index.

The side of a row depends on a hash of its index: it is the same for any number of threads, and a
resumed fit has no generator state to restore. Row indices are returned ascending, as uint32.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.target import encode_labels
from arboost.errors import InputTypeError, ParameterError, listing

Index = NDArray[np.uint32]
Mask = NDArray[np.bool_]
Split = tuple[Index, Index]  # training rows, held-out rows

_SPLIT, _FOLDS = 0, 1  # rounds of the hash: splits and folds never see the same numbers
_FEWEST = 2  # one row to train on and one to hold out


def split(
    y: NDArray[Any],
    *,
    how: str = "random",
    fraction: float,
    seed: int,
    stratify: bool = False,
    groups: object = None,
) -> Split:
    """The training rows and the held-out rows.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Target; classes where `stratify`.
    how : {"random", "group", "time"}
        Rows at random; whole groups at random; or the last rows.
    fraction : float
        Share of held-out rows, above 0 and below 1; rounded up to whole rows, with groups to the
        nearest share of whole groups.
    seed : int
    stratify : bool
        Keep the shares of the classes, and every class on both sides; only with "random".
    groups : array of shape (n_rows,)
        Group of each row; only, and always, with "group".

    Raises
    ------
    ValueError
        Where no such split exists.
    """
    n_rows = len(y)
    if groups is not None and how != "group":
        raise ParameterError(
            f"groups are given, but validation_split={how!r} does not look at them. Use "
            'validation_split="group", or leave out groups.',
            parameter="validation_split",
        )
    if groups is None and how == "group":
        raise ParameterError(
            'validation_split="group" needs groups, but there are none. Pass groups=..., one for '
            "each row, to fit.",
            parameter="validation_split",
        )
    check_divisible(n_rows)
    # Products such as 0.07 * 100 = 7.000000000000001 are whole numbers to their users.
    exact = round(fraction * n_rows, 6)
    n_held_out = min(max(math.ceil(exact), 1), n_rows - 1)
    if how == "time":
        held_out = np.arange(n_rows) >= n_rows - n_held_out
    elif how == "group":
        held_out = _choose_groups(_group_index(groups, n_rows), n_held_out, seed)
    elif stratify:
        held_out = _choose_in_classes(y, n_held_out, seed)
    else:
        hashes = _hashes(n_rows, seed, _SPLIT)
        held_out = hashes <= np.partition(hashes, n_held_out - 1)[n_held_out - 1]
    return _rows(~held_out), _rows(held_out)


def check_divisible(n_rows: int) -> None:
    """Raise ValueError where rows are too few to hold some of them out."""
    if n_rows < _FEWEST:
        raise ValueError(
            f"the data have {n_rows} row(s), but early stopping holds some rows out, and needs at "
            f"least {_FEWEST}. Pass more rows, or X_val and y_val, or set n_iter_no_change=None."
        )


def folds(
    y: NDArray[Any],
    how: object,
    *,
    seed: int = 0,
    stratify: bool = False,
    groups: object = None,
    name: str = "folds",
) -> list[Split]:
    """Pairs of training rows and held-out rows.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Target; classes where `stratify`.
    how : int, scikit-learn splitter, or iterable of pairs of row numbers or masks
        A number of folds; something with ``split(X, y, groups)``; or the folds themselves.
    seed : int
        For a number of folds only, as `stratify`.
    stratify : bool
        Spread every class evenly over the folds.
    groups : array of shape (n_rows,), optional
        Group of each row, never divided; for a number of folds, or a splitter that reads groups.
    name : str
        Name of `how` in messages.
    """
    n_rows = len(y)
    if isinstance(how, numbers.Integral) and not isinstance(how, bool):
        return _numbered_folds(y, int(how), seed, stratify=stratify, groups=groups, name=name)
    is_text = isinstance(how, str | bytes)  # which has a method split of its own
    if hasattr(how, "split") and not is_text:
        # Splitters look at the length of X only; one column is enough.
        pairs = how.split(np.zeros((n_rows, 1)), y, None if groups is None else np.asarray(groups))
    elif isinstance(how, Iterable) and not is_text:
        if groups is not None:
            raise ParameterError(
                f"groups are given, but {name} lists its rows already. Leave out groups, or pass a "
                "number of folds.",
                parameter=name,
            )
        pairs = how
    else:
        raise InputTypeError(
            f"{name}={how!r} ({type(how).__name__}) is not allowed: it must be a number of at "
            "least 2, a scikit-learn splitter, or a list of pairs (rows to train on, rows to "
            f"validate on). Use {name}=5."
        )
    splits = [_checked_pair(pair, f"{name}[{index}]", n_rows) for index, pair in enumerate(pairs)]
    if not splits:
        raise ParameterError(
            f"{name} holds no fold. Pass at least one pair of row numbers.", parameter=name
        )
    return splits


def _hashes(count: int, seed: int, number: int) -> NDArray[np.uint64]:
    """Random numbers, all of them different."""
    bits: NDArray[np.uint64] = core.counter_hash("validation", seed, number, count)
    return bits


def _hash_order(count: int, seed: int, number: int) -> NDArray[np.intp]:
    """0 .. count - 1 in random order."""
    return np.argsort(_hashes(count, seed, number), kind="stable")


def _rows(mask: Mask) -> Index:
    return np.flatnonzero(mask).astype(np.uint32)


def _class_index(y: NDArray[Any]) -> tuple[NDArray[np.unsignedinteger], NDArray[np.intp]]:
    """The class of each row as 0 .. K-1, and the number of rows of each class, at least 2."""
    labels, codes = encode_labels(y)
    index = codes.astype(np.min_scalar_type(len(labels)))  # a sort of short integers is linear
    counts = np.bincount(index)
    if counts.min() < _FEWEST:
        single = labels[counts < _FEWEST]
        raise ValueError(
            f"y has classes of one row, which cannot be both trained and validated on: "
            f"{listing(single.tolist())}. Drop or merge these classes, or choose the validation "
            "rows yourself."
        )
    return index, counts


def _choose_in_classes(y: NDArray[Any], n_rows: int, seed: int) -> Mask:
    index, counts = _class_index(y)
    hashes = _hashes(len(y), seed, _SPLIT)
    by_class = np.split(hashes[np.argsort(index, kind="stable")], np.cumsum(counts)[:-1])
    quotas = _quotas(counts, n_rows)
    pairs = zip(by_class, quotas, strict=True)
    highest = [np.partition(part, quota - 1)[quota - 1] for part, quota in pairs]
    held_out: Mask = hashes <= np.array(highest)[index]
    return held_out


def _quotas(counts: NDArray[np.intp], n_rows: int) -> NDArray[np.intp]:
    """Rows to hold out of each class: in proportion, at least one, and one left to train on."""
    exact = counts * (n_rows / counts.sum())
    quotas: NDArray[np.intp] = np.floor(exact).astype(np.intp).clip(1, counts - 1)
    # Largest remainders first; the least quotas together may be more than wanted.
    for k in np.argsort(quotas - exact, kind="stable")[: max(n_rows - int(quotas.sum()), 0)]:
        quotas[k] += quotas[k] < counts[k] - 1
    return quotas


def _group_index(groups: object, n_rows: int) -> NDArray[np.intp]:
    """The group of each row as 0 .. G-1; at least two groups."""
    array = np.asarray(groups)
    if array.shape != (n_rows,):
        raise ValueError(
            f"groups have the shape {array.shape}, but the data have {n_rows} rows. Pass one group "
            "for each row."
        )
    missing = _missing(array)
    if missing.any():
        raise ValueError(
            f"groups hold {int(missing.sum())} missing values (NaN, None), the first in row "
            f"{int(missing.argmax())}. Give every row a group."
        )
    try:
        labels, index = np.unique(array, return_inverse=True)
    except TypeError as error:
        raise InputTypeError(
            f"groups are of several types: {error}. Pass strings or integers."
        ) from None
    if len(labels) < _FEWEST:
        raise ValueError(
            f"all rows are of one group, {labels[0]!r}, but groups stay whole and both sides of a "
            'split need one. Pass more groups, or use validation_split="random".'
        )
    return index


def _missing(array: NDArray[Any]) -> Mask:
    if array.dtype.kind == "f":
        is_nan: Mask = np.isnan(array)
        return is_nan
    if array.dtype.kind != "O":
        return np.zeros(len(array), np.bool_)
    return np.array(
        [
            value is None
            or type(value).__name__ in ("NAType", "NaTType")
            or (isinstance(value, float) and math.isnan(value))
            for value in array
        ],
        np.bool_,
    )


def _choose_groups(index: NDArray[np.intp], n_rows: int, seed: int) -> Mask:
    """Take groups in random order, as many as come nearest to the wanted number of rows."""
    sizes = np.bincount(index)
    order = _hash_order(len(sizes), seed, _SPLIT)
    totals = np.cumsum(sizes[order])[:-1]  # one group at least is left to train on
    n_held_out = int(np.abs(totals - n_rows).argmin()) + 1
    held_out = np.zeros(len(sizes), np.bool_)
    held_out[order[:n_held_out]] = True
    return held_out[index]


def _numbered_folds(
    y: NDArray[Any], n_folds: int, seed: int, *, stratify: bool, groups: object, name: str
) -> list[Split]:
    n_rows = len(y)
    if n_rows < _FEWEST:
        raise ParameterError(
            f"{name}={n_folds} is not allowed: the data have {n_rows} row(s), and folds need at "
            f"least {_FEWEST}. Pass more rows.",
            parameter=name,
        )
    if not _FEWEST <= n_folds <= n_rows:
        raise ParameterError(
            f"{name}={n_folds} is not allowed: with {n_rows} rows it must be from {_FEWEST} to "
            f"{n_rows}. Use {name}={min(5, n_rows)}.",
            parameter=name,
        )
    if groups is not None:
        fold = _fold_of_group(_group_index(groups, n_rows), n_folds, seed, name)
    else:
        order = _hash_order(n_rows, seed, _FOLDS)
        if stratify:
            # Class after class, dealt out like cards: every fold gets its share of each.
            order = order[np.argsort(_class_index(y)[0][order], kind="stable")]
        fold = np.empty(n_rows, np.intp)
        fold[order] = np.arange(n_rows) % n_folds
    return [(_rows(fold != k), _rows(fold == k)) for k in range(n_folds)]


def _fold_of_group(index: NDArray[np.intp], n_folds: int, seed: int, name: str) -> NDArray[np.intp]:
    """Put groups, the largest first, into the fold that has the fewest rows."""
    sizes = np.bincount(index)
    if len(sizes) < n_folds:
        raise ParameterError(
            f"{name}={n_folds} is not allowed: groups stay whole, and there are {len(sizes)}. Use "
            f"{name}={len(sizes)} or fewer.",
            parameter=name,
        )
    order = _hash_order(len(sizes), seed, _FOLDS)
    order = order[np.argsort(-sizes[order], kind="stable")]
    filled = np.zeros(n_folds, np.intp)
    fold = np.empty(len(sizes), np.intp)
    for group in order:
        fold[group] = filled.argmin()
        filled[fold[group]] += sizes[group]
    return fold[index]


def _checked_pair(pair: Any, name: str, n_rows: int) -> Split:
    if not isinstance(pair, list | tuple) or len(pair) != 2:  # noqa: PLR2004
        raise InputTypeError(
            f"{name} is {type(pair).__name__}, but it must be a pair (rows to train on, "
            "rows to validate on)."
        )
    train, held_out = (_mask(rows, f"{name}[{side}]", n_rows) for side, rows in enumerate(pair))
    shared_rows = _rows(train & held_out)
    if len(shared_rows):
        raise ValueError(
            f"{name} has rows on both sides: {listing(shared_rows.tolist())}. A row that is "
            "trained on cannot validate: take it out of one."
        )
    return _rows(train), _rows(held_out)


def _mask(rows: Any, name: str, n_rows: int) -> Mask:
    array = np.asarray(rows)
    if array.dtype == np.bool_ and array.shape == (n_rows,):
        mask = array.copy()
    elif array.ndim == 1 and array.dtype.kind in "iu":
        outside = array[(array < 0) | (array >= n_rows)]
        if len(outside):
            raise ValueError(
                f"{name} holds the row {outside[0]}, but rows go from 0 to {n_rows - 1}."
            )
        mask = np.zeros(n_rows, np.bool_)
        mask[array] = True
        if np.count_nonzero(mask) < len(array):
            raise ValueError(f"{name} holds a row twice. Use sample_weight to count a row twice.")
    else:
        raise InputTypeError(
            f"{name} is an array of {array.dtype} and shape {array.shape}, but it must be a list "
            f"of row numbers, or a mask of {n_rows} truth values."
        )
    if not mask.any():
        raise ValueError(f"{name} is empty. Give both sides of a fold at least one row.")
    return mask
