"""One adapter per library, for the same data and the same shape of tree.

Each adapter has three steps. `bin` and `train` are timed, `predict` is not:

    bin(X, y, work) -> data      the library's own binned container, if it has one
    train(data, work) -> model
    predict(model, X) -> probability of class 1

Settings of every contestant: logistic loss, base score from the data, lambda 1, minimum hessian
sum 1, minimum rows in a leaf 1, 255 bins, no sampling of rows or columns. The class of a library
names the settings that the library lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

import numpy as np

from support.ours import (
    Arboost,
    ArboostApprox,
    ArboostCustomLoss,
    ArboostCV,
    ArboostExact,
    ArboostGradientBased,
    ArboostOneSide,
    ArboostUniform,
)
from support.shape import LEARNING_RATE, MAX_BINS, Peer, Shape, Work


class LightGBM:
    """LightGBM by `Dataset` and `train`.

    LightGBM always grows best-first; with 2**depth leaves only the depth limits the tree, which
    then equals the depthwise tree. Histograms are built row-wise or column-wise; `auto` times both
    at the start of each fit.
    """

    package = "lightgbm"
    distributions = ("lightgbm",)
    variants = ("auto", "row_wise", "col_wise")
    extra: Mapping[str, Any] = MappingProxyType({})

    def supports(self, shape: Shape) -> bool:
        return True

    def params(self, work: Work) -> dict[str, Any]:
        shape = work.shape
        params = {
            "objective": "binary",
            "learning_rate": LEARNING_RATE,
            "num_leaves": shape.max_leaves or 2**shape.max_depth,
            "max_depth": shape.max_depth or -1,
            "min_data_in_leaf": 1,
            "min_sum_hessian_in_leaf": 1.0,
            "lambda_l2": 1.0,
            "max_bin": MAX_BINS,
            "feature_pre_filter": False,
            "num_threads": work.threads,
            "seed": 0,
            "verbosity": -1,
        }
        if work.variant != "auto":
            params[f"force_{work.variant}"] = True
        return {**params, **self.extra}

    def bin(self, X: np.ndarray, y: np.ndarray, work: Work) -> Any:
        import lightgbm

        return lightgbm.Dataset(X, y, params=self.params(work)).construct()

    def train(self, data: Any, work: Work) -> Any:
        import lightgbm

        return lightgbm.train(self.params(work), data, work.rounds)

    def predict(self, model: Any, X: np.ndarray) -> np.ndarray:
        return model.predict(X)


class LightGBMQuantised(LightGBM):
    """LightGBM with two-bit gradients and leaf values from full-precision gradients."""

    extra = MappingProxyType(
        {"use_quantized_grad": True, "num_grad_quant_bins": 4, "quant_train_renew_leaf": True}
    )


class XGBoost:
    """XGBoost hist by `QuantileDMatrix` and `train`; lossguide when best-first."""

    package = "xgboost"
    distributions = ("xgboost-cpu", "xgboost")
    variants = ("default",)
    tree_method = "hist"

    def supports(self, shape: Shape) -> bool:
        return True

    def bin(self, X: np.ndarray, y: np.ndarray, work: Work) -> Any:
        import xgboost

        return xgboost.QuantileDMatrix(X, y, max_bin=MAX_BINS, nthread=work.threads)

    def params(self, work: Work) -> dict[str, Any]:
        return {
            "objective": "binary:logistic",
            "tree_method": self.tree_method,
            "grow_policy": "lossguide" if work.shape.leafwise else "depthwise",
            "max_leaves": work.shape.max_leaves or 0,
            "max_depth": work.shape.max_depth or 0,
            "learning_rate": LEARNING_RATE,
            "min_child_weight": 1.0,
            "reg_lambda": 1.0,
            "max_bin": MAX_BINS,
            "nthread": work.threads,
            "verbosity": 0,
        }

    def train(self, data: Any, work: Work) -> Any:
        import xgboost

        return xgboost.train(self.params(work), data, work.rounds)

    def predict(self, model: Any, X: np.ndarray) -> np.ndarray:
        return model.inplace_predict(X)


class XGBoostExact(XGBoost):
    """XGBoost's exact method, which cannot grow best-first."""

    tree_method = "exact"

    def supports(self, shape: Shape) -> bool:
        return not shape.leafwise

    def bin(self, X: np.ndarray, y: np.ndarray, work: Work) -> Any:
        import xgboost

        return xgboost.DMatrix(X, y, nthread=work.threads)


class XGBoostApprox(XGBoostExact):
    """XGBoost's approx method: a new sketch of 255 bins in each round."""

    tree_method = "approx"

    def supports(self, shape: Shape) -> bool:
        return True


class CatBoost:
    """CatBoost by `Pool`: Lossguide or Depthwise, one Newton step a leaf, no randomness.

    CatBoost has no minimum hessian sum, and its trees have at most 16 levels.
    """

    package = "catboost"
    distributions = ("catboost",)
    variants = ("default",)

    def supports(self, shape: Shape) -> bool:
        return True

    def growth(self, shape: Shape) -> dict[str, Any]:
        if shape.leafwise:
            return {"grow_policy": "Lossguide", "max_leaves": shape.max_leaves, "depth": 16}
        return {"grow_policy": "Depthwise", "depth": shape.max_depth}

    def bin(self, X: np.ndarray, y: np.ndarray, work: Work) -> Any:
        import catboost

        return catboost.Pool(X, y, thread_count=work.threads)

    def train(self, data: Any, work: Work) -> Any:
        import catboost

        model = catboost.CatBoostClassifier(
            iterations=work.rounds,
            learning_rate=LEARNING_RATE,
            l2_leaf_reg=1.0,
            border_count=MAX_BINS - 1,
            boosting_type="Plain",
            bootstrap_type="No",
            random_strength=0,
            leaf_estimation_method="Newton",
            leaf_estimation_iterations=1,
            boost_from_average=True,
            thread_count=work.threads,
            random_seed=0,
            logging_level="Silent",
            allow_writing_files=False,
            **self.growth(work.shape),
        )
        return model.fit(data)

    def predict(self, model: Any, X: np.ndarray) -> np.ndarray:
        return model.predict_proba(X)[:, 1]


class CatBoostSymmetric(CatBoost):
    """CatBoost with its default symmetric trees: one split for a whole level."""

    def supports(self, shape: Shape) -> bool:
        return not shape.leafwise

    def growth(self, shape: Shape) -> dict[str, Any]:
        return {"grow_policy": "SymmetricTree", "depth": shape.max_depth}


class HistGradientBoosting:
    """scikit-learn's booster; bins inside `fit`, threads from OMP_NUM_THREADS.

    The minimum hessian sum is fixed at 0.001.
    """

    package = "sklearn"
    distributions = ("scikit-learn",)
    variants = ("default",)

    def supports(self, shape: Shape) -> bool:
        return True

    def bin(self, X: np.ndarray, y: np.ndarray, work: Work) -> Any:
        return X, y

    def train(self, data: Any, work: Work) -> Any:
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            max_iter=work.rounds,
            learning_rate=LEARNING_RATE,
            max_leaf_nodes=work.shape.max_leaves,
            max_depth=work.shape.max_depth,
            min_samples_leaf=1,
            l2_regularization=1.0,
            max_bins=MAX_BINS,
            early_stopping=False,
            random_state=0,
        ).fit(*data)

    def predict(self, model: Any, X: np.ndarray) -> np.ndarray:
        return model.predict_proba(X)[:, 1]


class GradientBoosting(HistGradientBoosting):
    """scikit-learn's exact booster: one thread, no lambda and no minimum hessian sum."""

    def supports(self, shape: Shape) -> bool:
        return not shape.leafwise

    def train(self, data: Any, work: Work) -> Any:
        from sklearn.ensemble import GradientBoostingClassifier

        return GradientBoostingClassifier(
            n_estimators=work.rounds,
            learning_rate=LEARNING_RATE,
            max_depth=work.shape.max_depth,
            random_state=0,
        ).fit(*data)


# The contestants of the training benchmarks.
STANDARD: dict[str, Peer] = {
    "arboost": Arboost(),
    "lightgbm": LightGBM(),
    "lightgbm-quantised": LightGBMQuantised(),
    "xgboost": XGBoost(),
    "catboost": CatBoost(),
    "catboost-symmetric": CatBoostSymmetric(),
    "scikit-learn-hgb": HistGradientBoosting(),
}
# With the contestants of single benchmarks.
PEERS: dict[str, Peer] = STANDARD | {
    "arboost-exact": ArboostExact(),
    "xgboost-exact": XGBoostExact(),
    "scikit-learn-gb": GradientBoosting(),
    "arboost-approx": ArboostApprox(),
    "xgboost-approx": XGBoostApprox(),
    "arboost-gradient-based": ArboostGradientBased(),
    "arboost-goss": ArboostOneSide(),
    "arboost-uniform": ArboostUniform(),
    "arboost-custom-loss": ArboostCustomLoss(),
    "arboost-cv": ArboostCV(),
}


def installed(name: str) -> bool:
    """Whether the library of contestant `name` can be imported."""
    return find_spec(PEERS[name].package) is not None
