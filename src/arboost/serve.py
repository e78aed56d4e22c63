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
from arboost.container import write_file
from arboost.inspected import Inspected
from arboost.params import check
from arboost.paths import leaf_ids
from arboost.predict import (
    answer,
    answer_of_row,
    probabilities,
    probabilities_of_row,
    raw_scores,
    read_table,
    staged_raw_scores,
)
from arboost.save import from_bytes, read_model, to_bytes, write_model
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
        found = answer_of_row(self, X) if _is_count(n_jobs) else None
        return answer(self, self._raw(X, n_jobs)) if found is None else found

    def predict_proba(self, X: object, *, n_jobs: int | None = None) -> Probabilities:
        """Return the probabilities of the classes.

        Their shape is (n_rows, n_classes); for several targets there is a list of them.
        """
        found = probabilities_of_row(self, X) if _is_count(n_jobs) else None
        return probabilities(self, self._raw(X, n_jobs)) if found is None else found

    def predict_raw(self, X: object, *, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Return the raw scores, before the link, shape (n_rows, n_outputs)."""
        found = self.row.raw(X) if self.row is not None and _is_count(n_jobs) else None
        return self._raw(X, n_jobs) if found is None else found

    def staged_raw(self, X: object, *, n_jobs: int | None = None) -> Iterator[NDArray[np.float64]]:
        """Yield the raw scores after each round."""
        return staged_raw_scores(self, X, n_threads=_threads(n_jobs))

    def staged_predict(self, X: object, *, n_jobs: int | None = None) -> Iterator[NDArray[Any]]:
        """Yield what `predict` would return after each round."""
        return (answer(self, raw) for raw in self.staged_raw(X, n_jobs=n_jobs))

    def staged_predict_proba(
        self, X: object, *, n_jobs: int | None = None
    ) -> Iterator[Probabilities]:
        """Yield what `predict_proba` would return after each round."""
        return (probabilities(self, raw) for raw in self.staged_raw(X, n_jobs=n_jobs))

    def apply(self, X: object, *, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Return the leaf that each row reaches in each tree, shape (n_rows, n_trees).

        Nodes of a tree are numbered from 0, its root, on.

        Examples
        --------
        >>> import arboost
        >>> model = arboost.GradientBoostingRegressor(n_estimators=2, max_depth=1)
        >>> model.fit([[0], [1]], [0, 1]).model_.apply([[0], [1]]).tolist()
        [[1, 1], [2, 2]]
        """
        return leaf_ids(self, read_table(self, X), n_threads=_threads(n_jobs))

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
        return verify_monotone(self, features, n_threads=threads(_checked(n_jobs)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file; a failure leaves the file that was there before."""
        write_model(self, path)

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

    def _raw(self, X: object, n_jobs: int | None) -> NDArray[np.float64]:
        return raw_scores(self, X, n_threads=_threads(n_jobs))

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


def _is_count(n_jobs: object) -> bool:
    """Whether a number of threads needs no further look."""
    return n_jobs is None or (n_jobs.__class__ is int and n_jobs > 0)


def _threads(n_jobs: object) -> int:
    """Return the number of threads as the core takes it: 0 for all, if they are worth it."""
    count = _checked(n_jobs)
    return 0 if count is None or count == -1 else count


def _checked(n_jobs: object) -> int | None:
    count: int | None = check({"n_jobs": n_jobs})["n_jobs"]
    return count
