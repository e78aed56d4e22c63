"""Quantiles of y by forests of regression trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arboost.algorithms.forests.fit_forest import Floats
from arboost.backend import threads
from arboost.model.predict import read_table
from arboost.model.quantiles import distributions_of, table_quantiles

__all__ = ["QuantileMethods"]


class QuantileMethods:
    """Quantiles of y from the training rows in the leaves, for forests of regression trees."""

    n_jobs: int | None
    _fitted_model: Any

    def predict_quantiles(self, X: object, quantiles: float | Sequence[float] = 0.5) -> Floats:
        """Return quantiles of y for the rows of X; needs ``quantiles=True``.

        Each tree gives the training rows in the leaf of a row equal shares, or such as their
        weights say; the quantile q is the smallest y at which the shares of all trees, averaged,
        reach q (Meinshausen 2006).

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        quantiles : float or sequence of float, default=0.5
            Between 0 and 1.

        Returns
        -------
        float64 array of shape (n_rows, n_quantiles), or (n_rows,) for one float

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from arboost import RandomForestRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = RandomForestRegressor(quantiles=True, min_samples_leaf=10).fit(X, y)
        >>> low, high = model.predict_quantiles(X, [0.05, 0.95]).T
        >>> bool(((low <= y) & (y <= high)).mean() > 0.9)
        True
        """
        model = self._fitted_model()
        table = read_table(model, X)
        return table_quantiles(
            model, table, distributions_of(model), quantiles, n_threads=threads(self.n_jobs)
        )
