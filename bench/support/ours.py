"""Adapters of arboost, one for each setting that a benchmark needs."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from support.shape import LEARNING_RATE, MAX_BINS, Shape, Work


class Arboost:
    """arboost from a binned `Dataset`."""

    package = "arboost"
    distributions = ("arboost",)
    variants = ("default",)
    extra: Mapping[str, Any] = MappingProxyType({})

    def supports(self, shape: Shape) -> bool:
        return True

    def bin(self, X: np.ndarray, y: np.ndarray, work: Work) -> Any:
        from arboost import Dataset

        return Dataset(X, y, max_bins=MAX_BINS, n_jobs=work.threads)

    def estimator(self, work: Work) -> Any:
        from arboost import GradientBoostingClassifier

        return GradientBoostingClassifier(
            n_estimators=work.rounds,
            learning_rate=LEARNING_RATE,
            max_depth=work.shape.max_depth,
            max_leaves=work.shape.max_leaves,
            grow_policy="leafwise" if work.shape.leafwise else "depthwise",
            min_child_weight=1.0,
            min_samples_leaf=1,
            reg_lambda=1.0,
            max_bins=MAX_BINS,
            n_jobs=work.threads,
            random_state=0,
            verbose=0,
            **self.extra,
        )

    def train(self, data: Any, work: Work) -> Any:
        return self.estimator(work).fit(data)

    def predict(self, model: Any, X: np.ndarray) -> np.ndarray:
        return model.predict_proba(X)[:, 1]


class ArboostGradientBased(Arboost):
    """Gradient-based sampling of a tenth of the rows for each tree."""

    extra = MappingProxyType({"subsample": 0.1, "sampling_method": "gradient_based"})


class ArboostOneSide(Arboost):
    """GOSS: the fifth of the rows with the largest gradients, plus a random tenth of all rows."""

    extra = MappingProxyType({"sampling_method": "goss"})


class ArboostUniform(Arboost):
    """Uniform sampling of a tenth of the rows for each tree."""

    extra = MappingProxyType({"subsample": 0.1})


class ArboostCustomLoss(Arboost):
    """The logistic loss as a custom loss in NumPy."""

    def estimator(self, work: Work) -> Any:
        from arboost import CustomLoss

        def gradients(y: np.ndarray, score: np.ndarray, weight: Any) -> Any:
            p = 1.0 / (1.0 + np.exp(-score))
            return p - y, p * (1.0 - p)

        def start(y: np.ndarray, weight: Any) -> float:
            p = y.mean()
            return float(np.log(p / (1.0 - p)))

        loss = CustomLoss(name="numpy_logistic", gradients=gradients, start=start, link="logistic")
        return super().estimator(work).set_params(loss=loss)


class ArboostUnbinned(Arboost):
    """arboost from the raw table, for methods that take no binned `Dataset`."""

    def bin(self, X: np.ndarray, y: np.ndarray, work: Work) -> Any:
        return X, y

    def train(self, data: Any, work: Work) -> Any:
        return self.estimator(work).fit(*data)


class ArboostExact(ArboostUnbinned):
    """Exact trees: every value of every feature is a candidate threshold."""

    extra = MappingProxyType({"tree_method": "exact"})


class ArboostApprox(ArboostUnbinned):
    """About 255 candidates from a hessian-weighted quantile sketch, renewed in each round."""

    extra = MappingProxyType({"tree_method": "approx", "sketch_eps": 1.0 / MAX_BINS})


class ArboostCV(ArboostUnbinned):
    """Cross-validation over five folds; `predict` is not available."""

    def train(self, data: Any, work: Work) -> Any:
        import arboost

        return arboost.cv(self.estimator(work), *data, folds=5)
