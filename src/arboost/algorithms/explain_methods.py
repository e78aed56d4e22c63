"""Explanations that every estimator with trees of the engine has: the methods of its model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.explain.monotone import MonotoneProof
from arboost.predictor import Predictor

__all__ = ["Explained"]


class Explained:
    """Adds SHAP values and proofs to an estimator that keeps a `Predictor`."""

    n_jobs: int | None

    def shap_values(self, X: object, *, background: object = None) -> NDArray[np.float64]:
        """Return what each feature adds to the raw scores of the rows of X.

        With ``expected_value``, the values of a row sum to its raw score: to the prediction of a
        regressor without a link, to the log-odds of a booster of two classes, to the mean
        probability of a forest, to the vote of AdaBoost.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        background : table of shape (n_others, n_features), optional
            Rows from which the features that are not known are taken. Without it they are averaged
            over the training rows of each node.

        Returns
        -------
        float64 array of shape (n_rows, n_features)
            With several outputs (n_rows, n_features, n_outputs).
        """
        return self._explained("shap_values").shap_values(
            X, background=background, n_jobs=self.n_jobs
        )

    def shap_interactions(self, X: object) -> NDArray[np.float64]:
        """Return what pairs of features add to the raw scores of the rows of X.

        Returns
        -------
        float64 array of shape (n_rows, n_features, n_features)
            Symmetric, and each row of it sums to the SHAP value of its feature. With several
            outputs there is one more axis.
        """
        return self._explained("shap_interactions").shap_interactions(X, n_jobs=self.n_jobs)

    def shap_explanation(self, X: object, *, background: object = None) -> Any:
        """Return the SHAP values as a ``shap.Explanation``, for the plots of that package."""
        return self._explained("shap_explanation").shap_explanation(
            X, background=background, n_jobs=self.n_jobs
        )

    def expected_value(self, *, background: object = None) -> NDArray[np.float64]:
        """Return the raw scores of a row of which nothing is known, shape (n_outputs,)."""
        return self._explained("expected_value").expected_value(
            background=background, n_jobs=self.n_jobs
        )

    def verify_monotone(self, features: object = None) -> tuple[MonotoneProof, ...]:
        """Prove that the fitted model is monotone, or find rows for which it is not.

        Parameters
        ----------
        features : dict, sequence or None
            What to prove, in the form of ``monotone_constraints``; None takes those of the fit.

        Returns
        -------
        tuple of arboost.MonotoneProof
            One for each constrained feature and output.
        """
        return self._explained("verify_monotone").verify_monotone(features, n_jobs=self.n_jobs)

    def _explained(self, asked: str) -> Predictor:
        model = self._fitted_model()
        if not isinstance(model, Predictor):
            raise TypeError(
                f"{asked} was asked of an ensemble of {type(model.members[0]).__name__}: it is for "
                "trees of arboost. Leave `estimator` at None, or explain the members yourself."
            )
        return model

    def _fitted_model(self) -> Any:
        raise NotImplementedError
