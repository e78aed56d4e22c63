"""Methods of a Predictor that explain it.

Each method imports its implementation when it is called, so that loading and running a model stays
light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import checked_threads
from arboost.model.model import Model

if TYPE_CHECKING:
    from arboost.explain.grids import Grid
    from arboost.explain.partial_dependence import PartialDependence

__all__ = ["ExplainMethods"]


class ExplainMethods(Model):
    """A model with importances, partial dependence and SHAP values."""

    def importances(
        self,
        kind: str = "gain",
        X: object = None,
        y: object = None,
        *,
        metric: object = None,
        sample_weight: object = None,
        n_repeats: int = 5,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> NDArray[np.float64]:
        """Return how much the model needs each feature, in the order of ``feature_names``.

        Parameters
        ----------
        kind : {"gain", "cover", "split", "permutation", "shap"}, default="gain"
            Total gain of all splits on the feature; total of the hessians (of rows, in forests)
            that reach them; their number; how much worse `metric` gets when the values of the
            feature are shuffled among the rows of X; or the mean over these rows of what the
            feature adds to the raw scores or takes from them, summed over the outputs.
        X : table of shape (n_rows, n_features)
            For "permutation" and "shap" only. Rows that the model was not fitted on tell what it
            needs for new ones.
        y : array of shape (n_rows,) or (n_rows, n_targets)
            True values or labels; for "permutation" only, as are all others but the weights.
        metric : str, callable, arboost.Metric or None
            A name that ``eval_metric`` takes, a function of (y, raw scores, weight) of which less
            is better, or an `arboost.Metric`; None is "rmse" or "log_loss".
        sample_weight : array of shape (n_rows,), optional
        n_repeats : int, default=5
            Shuffles of each feature, whose mean is returned; `arboost.permutation_importances`
            returns each of them.
        random_state : int, default=0
            Seed of the shuffles.
        n_jobs : int or None
            Number of threads; the importances do not depend on it.

        Returns
        -------
        float64 array of shape (n_features,)

        Examples
        --------
        >>> import arboost
        >>> X, y = [[0, 1], [1, 0], [2, 1], [3, 0]], [0, 1, 2, 3]
        >>> model = arboost.GradientBoostingRegressor(n_estimators=20).fit(X, y).model_
        >>> dict(zip(model.feature_names, model.importances("split").tolist()))
        {'x0': 54.0, 'x1': 0.0}
        """
        from arboost.explain.importances import importances
        from arboost.explain.permutation import Shuffles

        return importances(
            self,
            kind,
            X,
            y,
            Shuffles(metric, n_repeats, random_state),
            sample_weight=sample_weight,
            n_threads=checked_threads(n_jobs),
        )

    def partial_dependence(
        self,
        X: object,
        features: object,
        *,
        kind: str = "average",
        method: str = "brute",
        response: str = "answer",
        grid: int | Grid = 100,
        sample_weight: object = None,
        n_jobs: int | None = None,
    ) -> PartialDependence:
        """Return how the answer depends on one or two features, all others as they are.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Rows to average over; the grid is made of their values.
        features : str, int, or a pair of them
            Names or numbers.
        kind : {"average", "individual", "both"}, default="average"
            The mean over the rows, or a curve for each row (individual conditional expectation).
        method : {"brute", "recursion"}, default="brute"
            "brute" puts the values of the grid into every row, exactly. "recursion" needs no rows:
            splits on other features count on both sides, by their cover in training. It is faster,
            for raw scores and answers that are linear in them, and assumes that the features of the
            grid do not depend on the others.
        response : {"answer", "raw"}, default="answer"
            Values and probabilities (of two classes that of the second), or raw scores.
        grid : int or arboost.Grid, default=100
            Points of a column of numbers, or a Grid for all else. Categories have a point for each
            level.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows in the mean.
        n_jobs : int or None
            Number of threads; the answers do not depend on it.

        Returns
        -------
        PartialDependence
            With ``grid``, ``average`` and ``individual``.

        Examples
        --------
        >>> import arboost
        >>> model = arboost.GradientBoostingRegressor(n_estimators=50, learning_rate=0.5)
        >>> model = model.fit([[0, 0], [1, 0], [2, 1], [3, 1]], [0, 1, 2, 3]).model_
        >>> found = model.partial_dependence([[0, 0], [3, 1]], 0)
        >>> found.grid[0], found.average.round(2)
        (array([0., 3.]), array([0., 3.]))
        """
        from arboost.explain.partial_dependence import Way, partial_dependence

        return partial_dependence(
            self,
            X,
            features,
            way=Way(kind, method, response),
            grid=grid,
            sample_weight=sample_weight,
            n_threads=checked_threads(n_jobs),
        )

    def shap_values(
        self, X: object, *, background: object = None, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Return what each feature adds to the raw scores of the rows of X.

        With `expected_value`, the values of a row sum to its raw score, before the link.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        background : table of shape (n_others, n_features), optional
            Rows from which the features that are not known are taken, each with the same chance.
            Without it they are averaged over the training rows of each node, by its cover.
        n_jobs : int or None
            Number of threads.

        Returns
        -------
        float64 array of shape (n_rows, n_features)
            With several outputs (n_rows, n_features, n_outputs).

        Raises
        ------
        TypeError
            Where the trees are combined by a weighted median, which is no sum.

        Examples
        --------
        >>> import arboost
        >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]]
        >>> model = arboost.DecisionTreeRegressor().fit(X, [0, 0, 2, 6]).model_
        >>> model.shap_values([[1, 1]]), model.expected_value()
        (array([[2.5, 1.5]]), array([2.]))
        """
        from arboost.explain.shap import shap_values

        return shap_values(self, X, background, n_threads=checked_threads(n_jobs))

    def shap_interactions(self, X: object, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return what pairs of features add to the raw scores of the rows of X.

        Returns
        -------
        float64 array of shape (n_rows, n_features, n_features)
            Symmetric; on the diagonal is what a feature adds by itself, and each row sums to the
            SHAP value of its feature. With several outputs there is one more axis.
        """
        from arboost.explain.shap import shap_interactions

        return shap_interactions(self, X, n_threads=checked_threads(n_jobs))

    def shap_explanation(
        self, X: object, *, background: object = None, n_jobs: int | None = None
    ) -> Any:
        """Return the SHAP values as a ``shap.Explanation``, for the plots of that package."""
        from arboost.explain.shap import shap_explanation

        return shap_explanation(self, X, background, n_threads=checked_threads(n_jobs))

    def expected_value(
        self, *, background: object = None, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Return the raw scores of a row of which nothing is known, shape (n_outputs,).

        They are the mean over the training rows by the covers of the leaves, or with a `background`
        the mean raw scores of its rows: what SHAP values are counted from.
        """
        from arboost.explain.shap import expected_value

        return expected_value(self, background, n_threads=checked_threads(n_jobs))
