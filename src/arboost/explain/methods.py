"""Explanations as methods of a Predictor.

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
    from arboost.explain.monotone import MonotoneProof
    from arboost.explain.partial_dependence import PartialDependence

__all__ = ["ExplainMethods"]


class ExplainMethods(Model):
    """A model with importances, partial dependence and SHAP values."""

    def importances(  # noqa: PLR0913 - most are for one kind only
        self,
        kind: str = "gain",
        X: object = None,
        y: object = None,
        *,
        metric: object = None,
        sample_weight: object = None,
        offset: object = None,
        n_repeats: int = 5,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> NDArray[np.float64]:
        """Return the importance of each feature, in the order of ``feature_names``.

        Parameters
        ----------
        kind : {"gain", "cover", "split", "permutation", "shap"}, default="gain"
            "gain": total gain of all splits on the feature. "cover": total cover of these splits,
            the hessian sum of their rows (the weight of the rows, in forests). "split": their
            number. "permutation": increase of `metric` when the values of the feature are shuffled
            among the rows of X. "shap": mean of the absolute SHAP values of the feature over the
            rows of X, summed over the outputs.
        X : table of shape (n_rows, n_features)
            For "permutation" and "shap" only, best held-out rows: importances on training rows
            overrate features that were overfitted.
        y : array of shape (n_rows,) or (n_rows, n_targets), or the name of a column of X
            True values or labels. Like all parameters below except `sample_weight` and `n_jobs`,
            for "permutation" only.
        metric : str, callable, arboost.Metric or None
            A name that ``eval_metric`` takes, a function of (y, raw scores, weight), lower is
            better, or an `arboost.Metric`; None is "rmse" or "log_loss".
        sample_weight : array of shape (n_rows,), optional
            For "permutation" and "shap" only.
        offset : array, str or list of str, optional
            Offset of the rows, for a model that was fitted with one, as `predict` takes it.
        n_repeats : int, default=5
            Shuffles of each feature; the importance is their mean.
            `arboost.permutation_importances` returns each of them.
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
            offset=offset,
            n_threads=checked_threads(n_jobs),
        )

    def partial_dependence(  # noqa: PLR0913 - all but X and features have defaults
        self,
        X: object,
        features: object,
        *,
        kind: str = "average",
        method: str = "brute",
        response: str = "answer",
        grid: int | Grid = 100,
        sample_weight: object = None,
        offset: object = None,
        n_jobs: int | None = None,
    ) -> PartialDependence:
        """Return the partial dependence of the predictions on one or two features.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Rows to average over; the grid is made of their values.
        features : str, int, or a pair of them
            Names or indices.
        kind : {"average", "individual", "both"}, default="average"
            The mean over the rows, or a curve for each row (individual conditional expectation).
        method : {"brute", "recursion"}, default="brute"
            "brute" puts each point of the grid into every row, exactly. "recursion" averages over
            the training rows instead: at a split on another feature both children count, weighted
            by their cover. It is faster, needs predictions that are linear in the raw scores, and
            assumes that the features of the grid are independent of the others.
        response : {"answer", "raw"}, default="answer"
            "answer": predicted values, or class probabilities (with two classes that of the
            second). "raw": raw scores.
        grid : int or arboost.Grid, default=100
            Number of points of a numeric feature, or a Grid for other settings. Categories have a
            point for each level.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows in the mean.
        offset : array, str or list of str, optional
            Offset of the rows, for a model that was fitted with one, as `predict` takes it. "brute"
            adds it to the raw scores of each row; "recursion" is without it.
        n_jobs : int or None
            Number of threads; the result does not depend on it.

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
        from arboost.explain.partial_dependence import DependenceOptions, partial_dependence

        return partial_dependence(
            self,
            X,
            features,
            options=DependenceOptions(kind, method, response),
            grid=grid,
            sample_weight=sample_weight,
            offset=offset,
            n_threads=checked_threads(n_jobs),
        )

    def shap_values(
        self, X: object, *, background: object = None, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Return the SHAP values of the rows of X: feature contributions to the scores.

        The SHAP values of a row and `expected_value` sum to its raw score, before the link; of
        trees and forests with two classes, to the probability of the second class. An offset is no
        feature: it is the rest of the raw score.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        background : table of shape (n_others, n_features), optional
            Rows that supply the values of absent features, each with the same probability.
            Without it absent features are averaged over the training rows of each node, by cover.
        n_jobs : int or None
            Number of threads.

        Returns
        -------
        float64 array of shape (n_rows, n_features)
            With several outputs (n_rows, n_features, n_outputs).

        Raises
        ------
        TypeError
            The trees are combined by a weighted median, which is no sum.

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
        """Return the SHAP interaction values of the rows of X.

        Returns
        -------
        float64 array of shape (n_rows, n_features, n_features)
            Symmetric; the diagonal holds the main effects, and each row of a matrix sums to the
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
        """Return the base value of the SHAP values, shape (n_outputs,).

        It is the mean score of the training rows, by the covers of the leaves, or with a
        `background` the mean score of its rows.
        """
        from arboost.explain.shap import expected_value

        return expected_value(self, background, n_threads=checked_threads(n_jobs))

    def verify_monotone(
        self, features: object = None, *, n_jobs: int | None = None
    ) -> tuple[MonotoneProof, ...]:
        """Return a proof that the raw scores are monotone, or a counter-example.

        Parameters
        ----------
        features : dict, sequence or None
            Directions to prove, in the form of ``monotone_constraints``; None takes those of the
            fit.
        n_jobs : int or None
            Number of threads.

        Returns
        -------
        tuple of arboost.MonotoneProof
            One for each constrained feature and output.

        Examples
        --------
        >>> import arboost
        >>> model = arboost.GradientBoostingRegressor().fit([[0], [1], [2]], [0, 5, 1]).model_
        >>> (proof,) = model.verify_monotone({0: 1})
        >>> proof.holds, proof.counter_example.rows.tolist()
        (False, [[1.5], [2.5]])
        """
        from arboost.explain.monotone import verify_monotone

        return verify_monotone(self, features, n_threads=checked_threads(n_jobs))
