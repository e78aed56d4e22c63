"""Load and run a saved model: no training code, no scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arboost.answers import Probabilities
from arboost.backend import threads
from arboost.model import Model
from arboost.params import check
from arboost.predict import answer, probabilities, raw_scores, staged_raw_scores
from arboost.save import from_bytes, read_model, to_bytes, write_model
from arboost.verify import MonotoneProof, verify_monotone

__all__ = ["Predictor", "load"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Predictor(Model):
    """A fitted model, ready to run. `load` returns it, and estimators hold it as ``model_``.

    Tables are matched by column name as in ``fit``; NaN and None are missing values. Answers are
    float64, or class labels as ``fit`` saw them. `n_jobs` is the number of threads (None for all
    that this process may use); answers do not depend on it.

    Examples
    --------
    >>> import arboost
    >>> model = arboost.GradientBoostingClassifier().fit([[0], [1]], ["no", "yes"]).model_
    >>> model
    Predictor(classifier, 1 feature, 100 trees)
    >>> model.predict_raw([[0], [1]])
    array([[0.],
           [0.]])
    """

    def predict(self, X: object, *, n_jobs: int | None = None) -> NDArray[Any]:
        """Return the values or labels of the rows of X.

        Their shape is (n_rows,), with several outputs or targets (n_rows, n_targets).
        """
        return answer(self, self.predict_raw(X, n_jobs=n_jobs))

    def predict_proba(self, X: object, *, n_jobs: int | None = None) -> Probabilities:
        """Return the probabilities of the classes.

        Their shape is (n_rows, n_classes); for several targets there is a list of them.
        """
        return probabilities(self, self.predict_raw(X, n_jobs=n_jobs))

    def predict_raw(self, X: object, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return the raw scores, before the link, shape (n_rows, n_outputs)."""
        return raw_scores(self, X, n_threads=_threads(n_jobs))

    def staged_raw(self, X: object, *, n_jobs: int | None = None) -> Iterator[NDArray[np.float64]]:
        """Yield the raw scores after each round."""
        return staged_raw_scores(self, X, n_threads=_threads(n_jobs))

    def verify_monotone(
        self, features: object = None, *, n_jobs: int | None = None
    ) -> tuple[MonotoneProof, ...]:
        """Prove that the raw scores are monotone, or find rows for which they are not.

        Parameters
        ----------
        features : dict, sequence or None
            What to prove, in the form of ``monotone_constraints``; None takes those of the fit.
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
        return verify_monotone(self, features, n_threads=_threads(n_jobs))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file; a failure leaves the file that was there before."""
        write_model(self, path)

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
        from arboost.shap import shap_values

        return shap_values(self, X, background, n_threads=_threads(n_jobs))

    def shap_interactions(self, X: object, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return what pairs of features add to the raw scores of the rows of X.

        Returns
        -------
        float64 array of shape (n_rows, n_features, n_features)
            Symmetric; on the diagonal is what a feature adds by itself, and each row sums to the
            SHAP value of its feature. With several outputs there is one more axis.
        """
        from arboost.shap import shap_interactions

        return shap_interactions(self, X, n_threads=_threads(n_jobs))

    def shap_explanation(
        self, X: object, *, background: object = None, n_jobs: int | None = None
    ) -> Any:
        """Return the SHAP values as a ``shap.Explanation``, for the plots of that package."""
        from arboost.shap import shap_explanation

        return shap_explanation(self, X, background, n_threads=_threads(n_jobs))

    def expected_value(
        self, *, background: object = None, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Return the raw scores of a row of which nothing is known, shape (n_outputs,).

        They are the mean over the training rows by the covers of the leaves, or with a `background`
        the mean raw scores of its rows: what SHAP values are counted from.
        """
        from arboost.shap import expected_value

        return expected_value(self, background, n_threads=_threads(n_jobs))

    def __repr__(self) -> str:
        features, trees = (
            _counted(self.schema.n_features, "feature"),
            _counted(self.n_trees, "tree"),
        )
        how = "" if self.combine == "sum" else f"{self.combine} of "
        return f"Predictor({self.kind}, {features}, {how}{trees})"

    def __reduce__(self) -> tuple[Any, ...]:
        # The bytes of the model file are checked when they are read, unlike pickled arrays.
        return _from_bytes, (to_bytes(self),)

    def __copy__(self) -> Self:
        return self  # frozen

    def __deepcopy__(self, memo: object) -> Self:
        return self


def load(path: str | os.PathLike[str]) -> Predictor:
    """Return the model in a file that ``save`` wrote.

    Raises
    ------
    arboost.ModelFileError
        The file holds no model, is damaged, or needs a newer version.

    Examples
    --------
    >>> import arboost, tempfile
    >>> model = arboost.GradientBoostingRegressor(n_estimators=2).fit([[0], [1]], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.arb")
    ...     arboost.load(f"{folder}/model.arb")
    Predictor(regressor, 1 feature, 2 trees)
    """
    return Predictor(**read_model(path).fields())


def _from_bytes(data: bytes) -> Predictor:
    return Predictor(**from_bytes(data, "the pickled model").fields())


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")


def _threads(n_jobs: object) -> int:
    return threads(check({"n_jobs": n_jobs})["n_jobs"])
