"""Values of the parameters that are "auto", and the search for the number of rounds.

No number of rounds fits all tables: the best one is 60 for some and 2,000 for others of the same
size. With ``n_estimators="auto"`` a search trains until the score on held-out rows stops improving;
a second fit to all rows then has the best number of rounds. Every tree sees a sample of the rows
and columns: the best setting in benchmarks on many tables. With a given number of rounds the other
parameters have their textbook values.

``preset`` says how much an automatic fit may spend. Its work is estimated from counts, never from a
clock: the same data and parameters give the same model on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

AUTO = "auto"

_MIN_SEARCH_ROWS = 50  # below, held-out rows are too few for a search
_ROUNDS_WITHOUT_SEARCH = 100
_MIN_SPLIT_ROWS = 5_000  # below, one split is too noisy: the search cross-validates
_FIRST_STEPS = 0.5  # sum of the learning rates of the first rounds
SEARCH_FOLDS = 5  # of the cross-validation; a search trains some or all of them
_MIN_RATE, _MIN_RATE_ROWS = 0.025, 10_000
_MAX_RATE = 0.1
_TEXTBOOK_RATE = 0.1

_SEARCHED = {
    "max_depth": None,
    "grow_policy": "leafwise",
    "sampling_method": "gradient_based",
    "subsample": 0.5,
    "colsample_bynode": 0.7,
    "min_child_weight": 0.1,
    "min_samples_leaf": 1,
}
_SEARCHED_LEAVES = 31  # of trees without another limit
_SEARCHED_LAMBDA, _VECTOR_LAMBDA = 3.0, 1.0  # the latter for leaves with a value for each class
# A tree for all classes is as accurate as one for each and faster, but not for small tables, and
# not for rare classes, as it spends its leaves on the frequent ones.
_MIN_VECTOR_SECONDS = 8e-4  # of a round of one tree per class
_MIN_BALANCE = 0.25
_VECTOR, _SCALAR = "multi_output_tree", "one_output_per_tree"
_MIN_TREE_SHARE, _ROOT_SHARE = 0.1, 6.0  # share of the features of a tree: 6 / sqrt(n_features)
_EQUAL_GRADIENT_LOSSES = ("absolute_error", "quantile")  # whose gradients differ in sign only
# With loss="quantile" a leaf must hold several rows on the rare side of its quantile. The factor
# was chosen on four tables of 400 to 12,000 rows, for quantiles from 0.01 to 0.99, and confirmed
# on eight others (docs/tasks/intervals.md). For medians it gains nothing there.
_RARE_ROWS, _LARGEST_LEAF_SHARE = 5.0, 0.1
_TEXTBOOK = {
    "max_depth": 6,
    "grow_policy": "depthwise",
    "sampling_method": "uniform",
    "subsample": 1.0,
    "colsample_bytree": 1.0,
    "colsample_bynode": 1.0,
    "min_child_weight": 1.0,
    "min_samples_leaf": 1,
}


class TableSize(NamedTuple):
    """Counts that the work of a fit depends on.

    `class_balance` is the number of rows of the rarest class over the mean of all classes.
    """

    n_rows: int
    n_features: int
    n_outputs: int = 1
    class_balance: float = 1.0


@dataclass(frozen=True, kw_only=True)
class _Preset:
    """Limits of an automatic fit.

    Attributes
    ----------
    search_rate : float or None
        Learning rate of the search; None: that of the fit, which depends on the number of rows.
    max_rate_rounds : float
        Largest product of learning rate and rounds.
    rate_patience : float
        Product of learning rate and rounds without a better score that end the search.
    patience : tuple of int
        Least and largest number of such rounds.
    fold_seconds : float
        Estimated seconds that all folds of a search may take together; one fold always runs.
    fine_seconds : float
        Estimated seconds of a fit at half of the search's learning rate, above which it keeps the
        rate of the search.
    """

    search_rate: float | None
    max_rate_rounds: float
    rate_patience: float
    patience: tuple[int, int]
    fold_seconds: float
    fine_seconds: float


PRESETS = {
    "fast": _Preset(
        search_rate=0.1,
        max_rate_rounds=15.0,
        rate_patience=1.0,
        patience=(5, 50),
        fold_seconds=0.0,
        fine_seconds=0.0,
    ),
    "good": _Preset(
        search_rate=0.1,
        max_rate_rounds=30.0,
        rate_patience=2.5,
        patience=(10, 50),
        fold_seconds=0.3,
        fine_seconds=1.0,
    ),
    "best": _Preset(
        search_rate=None,
        max_rate_rounds=100.0,
        rate_patience=2.5,
        patience=(50, 50),
        fold_seconds=math.inf,
        fine_seconds=math.inf,
    ),
}


@dataclass(frozen=True, kw_only=True)
class RoundSearch:
    """Plan of a search for the number of rounds on held-out rows.

    Attributes
    ----------
    learning_rate : float
    n_rounds : int
        Largest number of rounds.
    n_iter_no_change : int
        Rounds without a better score that end the search.
    n_folds : int or None
        Number of folds that are trained, of those of a cross-validation; None: one split.
    fit_factor : int
        Rounds of the fit for each round of the search: the ratio of their learning rates.
    """

    learning_rate: float
    n_rounds: int
    n_iter_no_change: int
    n_folds: int | None
    fit_factor: int

    def fit_rounds(self, best_index: int | None) -> int:
        """Number of rounds of the fit, by the best round of the search, from 0."""
        return self.fit_factor * (1 + (best_index or 0))

    def is_early(self, best_index: int | None) -> bool:
        """Whether the best round of a search is one of the first, which chance can choose."""
        return (1 + (best_index or 0)) * self.learning_rate <= _FIRST_STEPS


def resolve(params: dict[str, Any], size: TableSize, *, has_validation: bool) -> dict[str, Any]:
    """The parameters of a fit to a table of this size, with values in place of "auto".

    Examples
    --------
    >>> params = {"n_estimators": "auto", "learning_rate": "auto", "n_iter_no_change": None}
    >>> params |= {"preset": "good"}
    >>> resolve(params, TableSize(10_000, 8), has_validation=False)
    {'n_estimators': 600, 'learning_rate': 0.05, 'n_iter_no_change': 50, 'preset': 'good'}
    >>> resolve(params | {"n_estimators": 200}, TableSize(10_000, 8), has_validation=False)
    {'n_estimators': 200, 'learning_rate': 0.1, 'n_iter_no_change': None, 'preset': 'good'}
    """
    rounds, rate = params["n_estimators"], params["learning_rate"]
    patience = params["n_iter_no_change"]
    if rounds == AUTO and size.n_rows < _MIN_SEARCH_ROWS and not has_validation:
        rounds = _ROUNDS_WITHOUT_SEARCH if patience is None else rounds
    if rate == AUTO:
        rate = _fit_rate(params, size) if rounds == AUTO else _TEXTBOOK_RATE
    chosen = _tree_values(params, size, searched=rounds == AUTO)
    if rounds == AUTO:
        preset = PRESETS[params["preset"]]
        rounds = _most_rounds(preset, rate)
        patience = _patience(preset, rate) if patience is None else patience
    steps = {"n_estimators": rounds, "learning_rate": rate, "n_iter_no_change": patience}
    return params | chosen | steps


def round_search(checked: dict[str, Any], size: TableSize, *, has_groups: bool) -> RoundSearch:
    """The search on held-out rows that comes before the fit to all rows.

    Parameters
    ----------
    checked : dict
        Checked parameters, before `resolve`; n_estimators is "auto".
    size : TableSize
    has_groups : bool
        Whether ``fit`` has groups of rows.
    """
    params = resolve(checked, size, has_validation=False)
    preset, rate = PRESETS[checked["preset"]], params["learning_rate"]
    if checked["learning_rate"] == AUTO and preset.search_rate is not None:
        rate = preset.search_rate
    rounds = _most_rounds(preset, rate)
    is_plain = checked["validation_split"] == "random" and not has_groups
    n_folds = None
    if is_plain and size.n_rows < _MIN_SPLIT_ROWS:
        fold_seconds = rounds * _round_seconds(params, size)
        n_folds = int(max(1, min(SEARCH_FOLDS, size.n_rows, preset.fold_seconds / fold_seconds)))
    return RoundSearch(
        learning_rate=rate,
        n_rounds=rounds,
        n_iter_no_change=checked["n_iter_no_change"] or _patience(preset, rate),
        n_folds=n_folds,
        fit_factor=round(rate / params["learning_rate"]),
    )


def limit_reason(preset: str) -> str:
    """The reason of an end at the largest number of rounds of a preset."""
    larger = list(PRESETS)[list(PRESETS).index(preset) + 1 :]
    advice = f'preset="{larger[0]}"' if larger else "n_estimators and n_iter_no_change"
    return f'most rounds of preset="{preset}": set {advice} for more'


def _tree_values(params: dict[str, Any], size: TableSize, *, searched: bool) -> dict[str, Any]:
    """The values of "auto" of the parameters of trees and samples."""
    values = _SEARCHED if searched else _TEXTBOOK
    if searched:
        values = values | {"colsample_bytree": _tree_share(size.n_features)}
        if params.get("loss") == "quantile":
            leaf = _quantile_leaf(params["alpha"], size.n_rows)
            values = values | {"subsample": 1.0, "min_samples_leaf": leaf}
    chosen = {name: value for name, value in values.items() if params.get(name) == AUTO}
    # Gradients of one size rank no rows, and leaf values of least-squares trees use no hessians.
    has_equal_gradients = params.get("loss") in _EQUAL_GRADIENT_LOSSES
    is_uniform = has_equal_gradients or params.get("boosting") == "gradient"
    if "sampling_method" in chosen and is_uniform:
        chosen["sampling_method"] = "uniform"
    if params.get("sampling_method") == "goss" and "subsample" in chosen:
        chosen["subsample"] = 1.0  # GOSS has top_rate and other_rate
    if searched:
        if "max_depth" in chosen and params["max_leaves"] is None:
            chosen["max_leaves"] = _SEARCHED_LEAVES
        if params.get("reg_lambda", 0.0) is None and params["boosting"] == "newton":
            has_vectors = size.n_outputs > 1 and _has_vector_leaves(params, size)
            chosen["reg_lambda"] = _VECTOR_LAMBDA if has_vectors else _SEARCHED_LAMBDA
    if params.get("multi_strategy") == AUTO:
        has_vectors = searched and _has_vector_leaves(params, size)
        chosen["multi_strategy"] = _VECTOR if has_vectors else _SCALAR
    return chosen


def _has_vector_leaves(params: dict[str, Any], size: TableSize) -> bool:
    """Whether an automatic fit has one tree for all classes in each round."""
    strategy = params.get("multi_strategy", _SCALAR)
    if strategy != AUTO:
        return bool(strategy == _VECTOR)
    seconds = size.n_outputs * _tree_seconds(size)
    is_slow = size.n_outputs > 1 and seconds >= _MIN_VECTOR_SECONDS
    return is_slow and size.class_balance >= _MIN_BALANCE


def _quantile_leaf(alpha: float | list[float], n_rows: int) -> int:
    """The smallest leaf of trees whose leaf values are quantiles.

    Examples
    --------
    >>> _quantile_leaf([0.05, 0.95], 10_000)
    100
    >>> _quantile_leaf(0.5, 10_000)
    10
    """
    alphas = alpha if isinstance(alpha, list) else [alpha]
    rare = math.prod(min(level, 1.0 - level) for level in alphas) ** (1.0 / len(alphas))
    return max(1, min(round(_RARE_ROWS / rare), int(_LARGEST_LEAF_SHARE * n_rows)))


def _tree_share(n_features: int) -> float:
    """The share of the features that each tree may use: all of up to 36.

    On wide tables a smaller share is better as well as faster: trees differ more.
    """
    share = _ROOT_SHARE / math.sqrt(max(n_features, 1))
    return round(min(max(share, _MIN_TREE_SHARE), 1.0), 2)


def _most_rounds(preset: _Preset, rate: float) -> int:
    return math.ceil(round(preset.max_rate_rounds / rate, 6))


def _patience(preset: _Preset, rate: float) -> int:
    least, most = preset.patience
    return min(max(math.ceil(round(preset.rate_patience / rate, 6)), least), most)


def _fit_rate(params: dict[str, Any], size: TableSize) -> float:
    """The learning rate of an automatic fit: a lower one is better and slower."""
    preset = PRESETS[params["preset"]]
    if preset.search_rate is None:
        # The lowest rate for small tables, which are fast; it grows with the cube root.
        rate: float = _MIN_RATE * (size.n_rows / _MIN_RATE_ROWS) ** (1 / 3)
        return round(min(max(rate, _MIN_RATE), _MAX_RATE), 4)
    fine = preset.search_rate / 2
    seconds = _most_rounds(preset, fine) * _round_seconds(params, size)
    # A time limit halves between search and fit: as many rounds fit into each half.
    is_timed = params.get("max_time") is not None
    return preset.search_rate if is_timed or seconds > preset.fine_seconds else fine


def _tree_seconds(size: TableSize) -> float:
    """The estimated seconds of one tree on two cores.

    A tree costs a constant, its rows, their codes, and the bins of its leaves. The factors come
    from the times of 12 tables of 112 to 10,000 rows and 4 to 16,763 features, and are right within
    a factor of two or three.
    """
    features = size.n_features * _tree_share(size.n_features)
    row_seconds = size.n_rows * (4e-8 + 5e-10 * features)
    leaf_seconds = _SEARCHED_LEAVES * features * 4e-8
    return 2e-5 + row_seconds + leaf_seconds


def _round_seconds(params: dict[str, Any], size: TableSize) -> float:
    """The estimated seconds of one round on two cores."""
    alpha = params.get("alpha")
    n_quantiles = len(alpha) if isinstance(alpha, list) else 1
    n_outputs = size.n_outputs * n_quantiles
    # A tree of vector leaves takes the time of half as many trees as it has outputs.
    n_trees = (n_outputs + 1) / 2 if _has_vector_leaves(params, size) else n_outputs
    n_parallel: int = params.get("num_parallel_tree", 1)
    return n_parallel * n_trees * _tree_seconds(size)
