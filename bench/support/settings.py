"""Settings of gradient boosting for arboost and LightGBM, with the table that each needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from support.data import higgs_like

FEATURES = 28
LEAVES = 255
SHAPE = {"max_leaves": LEAVES, "max_depth": None, "grow_policy": "leafwise"}
BY_LEVEL = {"max_leaves": None, "max_depth": 8, "grow_policy": "depthwise"}


@dataclass(frozen=True)
class Setting:
    """Parameters that differ from the plain fit."""

    ours: Mapping[str, Any] = field(default_factory=dict)
    peers: Mapping[str, Any] = field(default_factory=dict)
    table: str = "numbers"
    target: str = "two classes"
    shape: Mapping[str, Any] = field(default_factory=lambda: SHAPE)


def _signs() -> list[int]:
    """Constraints on every third feature."""
    return [(1, 0, 0)[j % 3] for j in range(FEATURES)]


GROUPS = [list(range(0, 14)), list(range(14, FEATURES))]

SETTINGS = {
    "plain": Setting(),
    "depth 8": Setting(peers={"num_leaves": 256, "max_depth": 8}, shape=BY_LEVEL),
    "31 leaves": Setting({"max_leaves": 31}, {"num_leaves": 31}),
    "1,023 leaves": Setting({"max_leaves": 1023}, {"num_leaves": 1023}),
    "min_samples_leaf=20": Setting({"min_samples_leaf": 20}, {"min_data_in_leaf": 20}),
    "min_samples_leaf=200": Setting({"min_samples_leaf": 200}, {"min_data_in_leaf": 200}),
    "min_child_weight=50": Setting({"min_child_weight": 50.0}, {"min_sum_hessian_in_leaf": 50.0}),
    "reg_lambda=20": Setting({"reg_lambda": 20.0}, {"lambda_l2": 20.0}),
    "reg_alpha=1": Setting({"reg_alpha": 1.0}, {"lambda_l1": 1.0}),
    "gamma=1": Setting({"gamma": 1.0}, {"min_gain_to_split": 1.0}),
    "max_delta_step=0.5": Setting({"max_delta_step": 0.5}, {"max_delta_step": 0.5}),
    "subsample=0.5": Setting({"subsample": 0.5}, {"bagging_fraction": 0.5, "bagging_freq": 1}),
    "GOSS": Setting({"sampling_method": "goss"}, {"data_sample_strategy": "goss"}),
    "colsample_bytree=0.5": Setting({"colsample_bytree": 0.5}, {"feature_fraction": 0.5}),
    "colsample_bynode=0.5": Setting({"colsample_bynode": 0.5}, {"feature_fraction_bynode": 0.5}),
    "monotone constraints": Setting(
        {"monotone_constraints": _signs()}, {"monotone_constraints": _signs()}
    ),
    "interaction constraints": Setting(
        {"interaction_constraints": GROUPS}, {"interaction_constraints": GROUPS}
    ),
    "weights": Setting(table="weights"),
    "missing values": Setting(table="missing"),
    "categories": Setting(table="categories"),
    "five classes": Setting(
        peers={"objective": "multiclass", "num_class": 5}, target="five classes"
    ),
    "squared error": Setting(peers={"objective": "regression"}, target="number"),
    "absolute error": Setting(
        {"loss": "absolute_error"}, {"objective": "regression_l1"}, target="number"
    ),
    "Huber": Setting({"loss": "huber"}, {"objective": "huber"}, target="number"),
    "quantile": Setting(
        {"loss": "quantile", "alpha": 0.9}, {"objective": "quantile", "alpha": 0.9}, target="number"
    ),
    "Poisson": Setting({"loss": "poisson"}, {"objective": "poisson"}, target="count"),
    "DART": Setting({"rate_drop": 0.1}, {"boosting": "dart", "drop_rate": 0.1, "skip_drop": 0.0}),
    "63 bins": Setting({"max_bins": 63}, {"max_bin": 63}),
    "1,023 bins": Setting({"max_bins": 1023}, {"max_bin": 1023}),
    "sparse": Setting(table="sparse"),
}


@dataclass(frozen=True)
class Table:
    """Features, target and weights of a setting."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    categories: tuple[int, ...] = ()


def table_of(setting: Setting, rows: int) -> Table:
    """Return the generated table of a setting."""
    X, y = higgs_like(rows, FEATURES)
    rng = np.random.default_rng(1)
    match setting.target:
        case "five classes":
            y = np.digitize(X[:, 0] + y, np.quantile(X[:, 0] + y, [0.2, 0.4, 0.6, 0.8]))
        case "number":
            y = X[:, 0] * (1.0 + y) + rng.normal(0.0, 0.3, rows)
        case "count":
            y = rng.poisson(np.exp(0.3 * X[:, 0] + y - 0.5))
    weight = rng.uniform(0.5, 2.0, rows) if setting.table == "weights" else None
    categories: tuple[int, ...] = ()
    match setting.table:
        case "missing":
            X[rng.random(X.shape) < 0.2] = np.nan
        case "categories":
            categories = tuple(range(0, FEATURES, 4))
            for j in categories:
                edges = np.quantile(X[:, j], np.linspace(0.02, 0.98, 49))
                X[:, j] = rng.permutation(50)[np.digitize(X[:, j], edges)]
        case "sparse":
            from scipy import sparse

            X[rng.random(X.shape) < 0.8] = 0.0
            X = sparse.csr_matrix(X)
    return Table(X, y, weight, categories)
