"""Model: a fitted ensemble, frozen, with everything that predictions need."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, cast

import numpy as np

from arboost.backend import core, lazy_property
from arboost.data.cuda import check_device
from arboost.data.schema import Schema
from arboost.losses.links import require, validate_names, validate_outputs
from arboost.models.metadata import check_history, check_metadata
from arboost.params.kinds import is_number
from arboost.params.records import check
from arboost.trees.forest import Floats, Forest, frozen_array
from arboost.trees.leaf_distributions import LeafDistributions

COMBINATIONS = ("sum", "median", "mean")
_WEIGHT_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, kw_only=True)
class Model:
    """A fitted ensemble: raw score = base_score + sum, median or mean of the trees, then a link.

    Attributes
    ----------
    forest : Forest
    schema : arboost.data.schema.Schema
        Names and number of the columns.
    base_score : float64 array of shape (n_outputs,)
    link : str
        Name of a link in ``links.py`` that fits the kind.
    classes : array of shape (n_classes,), tuple of them, or None
        Labels in the order of the probabilities, one array for each of several targets; None for
        regression.
    trees_per_round : int
    params : dict
        Parameters of the fit that can change the model. A custom loss or metric is stored by name
        only, as ``{"custom": name}``.
    kind : {"regressor", "classifier", "ranker"}
    combine : {"sum", "median", "mean"}
        The mean is the sum divided by the number of rounds; where trees have weights, their mean is
        1, and leaf values are multiplied by them. With "median" the trees of a regressor
        of one output vote with weights: the score is the smallest of their values at which the
        weights, cumulated in the order of the values, reach half of their total.
    tree_weights : float64 array of shape (n_trees,)
        Weights of the trees in the median, or in a weighted mean; else empty.
    targets : tuple of int
        Number of outputs of each target, in order; empty for a single target. Targets of a
        classifier have the link that `target_link` returns, and the model's is "shares".
    distributions : arboost.trees.leaf_distributions.LeafDistributions or None
        The y of the training rows in each leaf, if the fit had ``quantiles=True``.
    provenance : dict
        Metadata of the fit: "version" of the library, "rows", where held-out rows chose the last
        round "metric" and "best_score", and "history" (`arboost.models.metadata`): learning
        curves, AdaBoost's training error with its bounds, the out-of-bag curve of a forest. Empty
        if unknown.
    metadata : dict
        JSON values of the user, by name; each model has a dict that no other model shares.
    device : str
        Device of the predictions: "cpu", "cuda" or "cuda:1". It is not part of model files.
    """

    forest: Forest
    schema: Schema
    base_score: Floats
    link: str
    classes: Any
    trees_per_round: int
    params: dict[str, Any]
    kind: str
    combine: str = "sum"
    tree_weights: Floats = field(default_factory=lambda: np.empty(0))
    targets: tuple[int, ...] = ()
    distributions: LeafDistributions | None = None
    provenance: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    device: str = "cpu"

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", dict(self.metadata))
        for name in ("base_score", "tree_weights"):
            object.__setattr__(self, name, frozen_array(getattr(self, name), np.float64))
        if isinstance(self.classes, tuple):
            frozen = tuple(frozen_array(labels, labels.dtype) for labels in self.classes)
            object.__setattr__(self, "classes", frozen)
        elif self.classes is not None:
            object.__setattr__(self, "classes", frozen_array(self.classes, self.classes.dtype))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features; x0, x1 and so on where the table had none."""
        return self.schema.shown_names

    @property
    def n_outputs(self) -> int:
        """Number of raw scores of a row."""
        return len(self.base_score)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self.forest.n_trees

    @property
    def n_rounds(self) -> int:
        """Number of boosting rounds."""
        return self.n_trees // self.trees_per_round

    @lazy_property
    def packed(self) -> core.PackedForest:
        """The forest in the layout of the core; built on first use."""
        return core.PackedForest(self.forest, self.schema.n_features, self.n_outputs)

    @lazy_property
    def on_devices(self) -> dict[int, core.CudaForest]:
        """The forest in the memory of devices, by their numbers; filled on first use."""
        return {}

    @lazy_property
    def row(self) -> core.RowModel | None:
        """Predictor of single rows of numbers; None where columns have names or levels."""
        columns_are_numbers = self.schema.names is None and not self.schema.special
        return self._row_model(self.schema.missing) if columns_are_numbers else None

    @lazy_property
    def encoded_row(self) -> core.RowModel | None:
        """Predictor of single rows of numbers and level codes, with NaN for missing values."""
        return self._row_model(math.nan)

    def _row_model(self, missing: float) -> core.RowModel | None:
        if self.combine == "median" or self.link == "ordered" or self.schema.offset is not None:
            return None
        mean_of = max(self.n_rounds, 1) if self.combine == "mean" else 0
        return core.RowModel(self.packed, self.base_score, self.link, mean_of, missing)

    def __getstate__(self) -> dict[str, Any]:
        return self.fields()  # without cached properties

    def truncated(self, rounds: int) -> Self:
        """Model of the first rounds.

        Examples
        --------
        >>> import arboost
        >>> model = arboost.GradientBoostingRegressor().fit([[0], [1]], [0, 1]).model_
        >>> model.truncated(10).n_rounds
        10
        """
        n_trees = checked_rounds(rounds, self.n_rounds) * self.trees_per_round
        distributions = self.distributions
        forest, weights = self.forest.first(n_trees), self.tree_weights[:n_trees]
        if self.combine == "mean" and 0 < len(weights) < self.n_trees:
            factor = n_trees / total_weight(self, rounds)
            forest, weights = replace(forest, value=factor * forest.value), factor * weights
        return replace(
            self,
            forest=forest,
            tree_weights=weights,
            distributions=None if distributions is None else distributions.first(n_trees),
        )

    def to(self, device: str) -> Self:
        """Model on another device: predictions and SHAP values are computed there.

        They are the same, byte for byte. Tables of the host are copied to the device, a part at a
        time, and results back. Arrays of CuPy, PyTorch, cuDF and others in device memory are read
        where they are, by a model on any device, and results are arrays of the same kind there.

        Parameters
        ----------
        device : str
            "cpu", "cuda", or "cuda:1" and so on.

        Raises
        ------
        arboost.DeviceError
            There is no such device. The same is raised by methods that do not run on it.

        Examples
        --------
        >>> import arboost
        >>> model = arboost.GradientBoostingRegressor().fit([[0], [1]], [0, 1]).model_
        >>> model.to("cpu").device
        'cpu'
        """
        name: str = check({"device": device})["device"]
        check_device(name, "hist")
        return self if name == self.device else replace(self, device=name)

    def fields(self) -> dict[str, Any]:
        """Fields by name, as the constructor takes them."""
        return {field.name: getattr(self, field.name) for field in fields(Model)}

    def validate(self) -> None:
        """Raise ValueError unless the parts fit together; a valid model cannot crash the core."""
        require(self.base_score.ndim == 1 and self.n_outputs >= 1, "no base score")
        require(np.all(np.isfinite(self.base_score)), "a base score that is not finite")
        # Without levels a file can claim any number of features: no array of that length is made.
        levels = self.schema.levels
        categorical = np.array(self.schema.categorical, np.bool_) if levels else None
        self.forest.validate(self.schema.n_features, self.n_outputs, categorical)
        require(levels or not self.forest.has_sets, "sets for splits of no category")
        require(self.trees_per_round >= 1, f"{self.trees_per_round} trees per round")
        require(self.n_trees % self.trees_per_round == 0, "an unfinished round")
        validate_names(self.schema)
        validate_outputs(self)
        self._validate_combination()
        check_history(self.provenance.get("history"))
        check_metadata(self.metadata)
        if self.distributions is not None:
            require(self.kind == "regressor" and not self.targets, "distributions of no numbers")
            self.distributions.validate(self.forest.tree_start, self.forest.is_split)

    def _validate_combination(self) -> None:
        require(self.combine in COMBINATIONS, f"the combination {self.combine!r}")
        is_share = self.link in ("share_of_two", "shares")
        require(self.combine == "mean" or not is_share, f"shares by {self.combine}")
        require(self.combine == "mean" or not self.targets, f"several targets by {self.combine}")
        weights = self.tree_weights
        has_weights = self.combine == "median" or (self.combine == "mean" and weights.size)
        expected = self.n_trees if has_weights else 0
        require(weights.shape == (expected,), f"tree weights of shape {weights.shape}")
        if has_weights:
            require(self.link == "identity", f"a {self.combine} with the link {self.link!r}")
            require(self.n_outputs == 1, f"a {self.combine} of {self.n_outputs} outputs")
            require(self.trees_per_round == 1, f"a {self.combine} with several trees per round")
            require(np.all(np.isfinite(weights)), "a tree weight that is not finite")
            require(np.all(weights >= 0), "a negative tree weight")
            # Then every truncated model has a tree of nonzero weight, too.
            require(np.all(weights[:1] > 0), "a first tree without weight")
        if has_weights and self.combine == "mean":
            require(abs(weights.mean() - 1.0) < _WEIGHT_ROUNDING, "weights whose mean is not 1")


def total_weight(model: Model, rounds: int) -> float:
    """Total weight of the first rounds of a mean, the divisor of their sum."""
    if rounds in (0, model.n_rounds) or not len(model.tree_weights):
        return float(max(rounds, 1))
    return float(np.add.accumulate(model.tree_weights[:rounds])[-1])


def checked_rounds(rounds: object, n_rounds: int) -> int:
    """Number of rounds; raise ValueError unless a model of `n_rounds` has as many."""
    if not is_number(rounds, numbers.Integral) or not 0 <= int(cast(int, rounds)) <= n_rounds:
        raise ValueError(
            f"rounds={rounds!r} is not allowed: the model has {n_rounds} rounds. Use a number from "
            f"0 to {n_rounds}."
        )
    return int(cast(int, rounds))
