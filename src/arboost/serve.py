"""Load and run a saved model: no training code, no scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arboost.answers import Probabilities
from arboost.backend import threads
from arboost.container import read_file, write_file
from arboost.inspected import Inspected
from arboost.params import check
from arboost.predict import answer, probabilities, raw_scores, staged_raw_scores
from arboost.save import FORMAT, from_bytes, read_model, to_bytes, write_model
from arboost.verify import MonotoneProof, verify_monotone

__all__ = ["Predictor", "load"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Predictor(Inspected):
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

    def save(self, path: str | os.PathLike[str], *, layout: str = "compact") -> None:
        """Write the model to a file; a failure leaves the file that was there before.

        Parameters
        ----------
        path : str or path-like
        layout : {"compact", "arrays"}, default="compact"
            "compact" makes a small file; "arrays" a larger one that `load` can map, so that
            several processes share its pages.
        """
        write_model(self, path, layout)

    def to_c(
        self, path: str | os.PathLike[str] | None = None, *, name: str = "model"
    ) -> str | None:
        """Write the model as one C99 header that needs nothing but the standard library.

        Raw scores of the compiled code are those of `predict_raw` to the last bit. The head of the
        file says how it is used, and how categories and missing values are passed.

        Parameters
        ----------
        path : path or None
            None returns the source instead.
        name : str
            What functions and macros of the header begin with. Characters that no name in C may
            have become underscores.

        Examples
        --------
        >>> import arboost
        >>> model = arboost.GradientBoostingRegressor().fit([[0], [1]], [0, 1]).model_
        >>> "void price_predict(const double *row, double *answer);" in model.to_c(name="price")
        True
        """
        from arboost.export_c import c_header

        text = c_header(self, name)
        if path is None:
            return text
        write_file(path, text.encode("ascii"))
        return None

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Write the model as ONNX; needs the package onnx (``pip install arboost[onnx]``).

        onnxruntime takes the same way through every tree, and adds in an order of its own: answers
        differ from those of `predict` and `predict_proba` by rounding only. A model without
        categories has one input "X" of doubles, shape (n_rows, n_features). With categories there
        is one input for each column, called as the column is, shape (n_rows, 1): strings for
        categories of strings, doubles for all others. Unknown levels and NaN are missing, and
        times are seconds.

        The output of a regressor is "variable", those of a classifier are "label" and
        "probabilities"; with several targets "label_0", "probabilities_0", "label_1", ...

        Parameters
        ----------
        path : path or None
            None returns the ``onnx.ModelProto`` instead.
        """
        from arboost.export_onnx import onnx_model

        model = onnx_model(self)
        if path is None:
            return model
        write_file(path, model.SerializeToString())
        return None

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

    def predict_quantiles(
        self, X: object, quantiles: float | Sequence[float] = 0.5, *, n_jobs: int | None = None
    ) -> NDArray[np.float64]:
        """Return quantiles of y for the rows of X.

        Only forests of numbers that were fitted with ``quantiles=True`` can: they know the y of the
        training rows in each leaf. The estimators' method of the same name tells what quantiles of
        forests are.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        quantiles : float or sequence of float, default=0.5
            Between 0 and 1.
        n_jobs : int or None
            Number of threads.

        Returns
        -------
        float64 array of shape (n_rows, n_quantiles), or (n_rows,) for one float

        Examples
        --------
        >>> from arboost import RandomForestRegressor
        >>> X, y = [[0], [1], [2], [3]], [5, 5, 7, 9]
        >>> forest = RandomForestRegressor(quantiles=True, min_samples_leaf=2, random_state=0)
        >>> forest.fit(X, y).model_.predict_quantiles([[0]], [0.1, 0.9]).shape
        (1, 2)
        """
        from arboost.ingest import ingest
        from arboost.leaf_values import distributions_of, table_quantiles

        known = distributions_of(self)
        table = ingest(X, self.schema)
        return table_quantiles(self, table, known, quantiles, n_threads=_threads(n_jobs))

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Return the model as JSON for people, or write it to a file where a path is given.

        Trees are lists of nodes with the names of features, thresholds and levels. `from_json` and
        `load` read it, and give the same model, bit for bit.

        Parameters
        ----------
        path : str or path-like, optional
            A file to write instead; a failure leaves the one that was there before.

        Examples
        --------
        >>> import arboost, json
        >>> model = arboost.DecisionTreeRegressor().fit([[0], [1]], [5, 7]).model_
        >>> split, left, right = json.loads(model.to_json())["trees"][0]["nodes"]
        >>> split["feature"], split["at_most"], split["left"]
        (0, 0.5, 1)
        >>> left
        {'value': 5.0, 'cover': 1.0}
        """
        from arboost.container import write_file
        from arboost.readable import to_json

        text = to_json(self)
        if path is None:
            return text
        write_file(path, text.encode("ascii"))
        return None

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the model that `to_json` wrote; raise ModelFormatError where it is none.

        Examples
        --------
        >>> import arboost
        >>> model = arboost.DecisionTreeRegressor().fit([[0], [1]], [5, 7]).model_
        >>> arboost.Predictor.from_json(model.to_json()).predict([[1]])
        array([7.])
        """
        from arboost.readable import from_json

        return cls(**from_json(text).fields())


def load(path: str | os.PathLike[str], *, mmap: bool = False) -> Predictor:
    """Return the model in a file that ``save`` or ``to_json`` wrote.

    Parameters
    ----------
    path : str or path-like
    mmap : bool, default=False
        Whether to map the file, so that processes share the pages of its arrays. Needs a file that
        was saved with ``layout="arrays"``, and that nobody changes in place while it is in use:
        ``save`` never does.

    Raises
    ------
    arboost.ModelFormatError
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
    if not isinstance(mmap, bool):
        raise TypeError(f"mmap={mmap!r} is not allowed: it must be True or False.")
    if mmap:
        return Predictor(**read_model(path, mapped=True).fields())
    data, name = read_file(FORMAT, path, other=b"{"), f"the model file {os.fsdecode(path)!r}"
    if data.startswith(FORMAT.magic) or not data.lstrip().startswith(b"{"):
        return Predictor(**from_bytes(data, name).fields())
    from arboost.readable import from_json

    return Predictor(**from_json(data, name).fields())


def _from_bytes(data: bytes) -> Predictor:
    return Predictor(**from_bytes(data, "the pickled model").fields())


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")


def _threads(n_jobs: object) -> int:
    return threads(check({"n_jobs": n_jobs})["n_jobs"])
