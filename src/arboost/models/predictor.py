"""Fitted models without training code or scikit-learn: prediction, explanation, files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, Never, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from arboost.data.cuda import is_device_array
from arboost.errors import InputTypeError
from arboost.losses import links
from arboost.models import prediction
from arboost.models.files import model_file
from arboost.models.files.container import read_file
from arboost.models.methods import ModelMethods
from arboost.models.model import Model
from arboost.models.single_row import row_predictions, row_probabilities, row_scores
from arboost.params.records import check
from arboost.params.suggestions import public_name, refuse_arguments
from arboost.text import counted
from arboost.trees.forest import Floats
from arboost.write import remove_orphans

if TYPE_CHECKING:
    from arboost.models.ensemble import EnsemblePredictor

ModelSource: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[Any]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Predictor(ModelMethods):
    """A fitted model: the result of `load`, and the attribute ``model_`` of estimators.

    Columns are matched by name as in ``fit``; NaN and None are missing values. Predictions are
    float64, or class labels as in ``fit``. `n_jobs` is the number of threads (None for all that
    this process may use); predictions do not depend on it. `rounds` takes the first rounds of the
    model only, trees in forests. `offset` is added to the raw scores of a model that was fitted
    with one: an array, a number for all rows, or names of columns of X; None takes the columns that
    the fit named, and is refused after a fit with an array. `metadata` is a dict for values of the
    user, which files keep as JSON.

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

    @public_name
    def predict(
        self,
        X: object,
        *,
        rounds: int | None = None,
        offset: object = None,
        n_jobs: int | None = None,
        **unknown: Never,
    ) -> NDArray[Any]:
        """Predicted values or class labels of the rows of X.

        The shape is (n_rows,), with several outputs or targets (n_rows, n_targets).

        Examples
        --------
        >>> import arboost
        >>> model = arboost.GradientBoostingRegressor(n_estimators=50, learning_rate=0.5)
        >>> model = model.fit([[0], [1]], [0, 1]).model_
        >>> model.predict([[1]], rounds=0), model.predict([[1]]).round(3)
        (array([0.5]), array([1.]))
        """
        if unknown:
            refuse_arguments(self.predict, unknown)
        if rounds is not None:
            return self.truncated(rounds).predict(X, offset=offset, n_jobs=n_jobs)
        if offset is None:
            values = row_predictions(self, X, n_jobs)
            if values is not None:
                return values
        if is_device_array(X):
            return prediction.device_predictions(self, X, offset)
        return links.predictions(self, self._raw(X, n_jobs, offset))

    @public_name
    def predict_proba(
        self,
        X: object,
        *,
        rounds: int | None = None,
        offset: object = None,
        n_jobs: int | None = None,
        **unknown: Never,
    ) -> links.Probabilities:
        """Class probabilities of the rows of X.

        The shape is (n_rows, n_classes); several targets give a list of arrays.
        """
        if unknown:
            refuse_arguments(self.predict_proba, unknown)
        if rounds is not None:
            return self.truncated(rounds).predict_proba(X, offset=offset, n_jobs=n_jobs)
        if offset is None:
            shares = row_probabilities(self, X, n_jobs)
            if shares is not None:
                return shares
        if is_device_array(X):
            return prediction.device_probabilities(self, X, offset)
        return links.probabilities(self, self._raw(X, n_jobs, offset))

    def predict_raw(
        self,
        X: object,
        *,
        rounds: int | None = None,
        offset: object = None,
        n_jobs: int | None = None,
    ) -> Floats:
        """Raw scores, before the link, shape (n_rows, n_outputs), with the offset."""
        if rounds is not None:
            return self.truncated(rounds).predict_raw(X, offset=offset, n_jobs=n_jobs)
        if offset is None:
            scores = row_scores(self, X, n_jobs)
            if scores is not None:
                return scores
        if is_device_array(X):
            return prediction.device_raw_scores(self, X, offset)
        return self._raw(X, n_jobs, offset)

    def staged_raw(
        self, X: object, *, offset: object = None, n_jobs: int | None = None
    ) -> Iterator[Floats]:
        """Yield the raw scores after each round."""
        return prediction.staged_raw_scores(self, X, offset, n_threads=_threads(n_jobs))

    def staged_predict(
        self, X: object, *, offset: object = None, n_jobs: int | None = None
    ) -> Iterator[NDArray[Any]]:
        """Yield the result of `predict` after each round."""
        staged = self.staged_raw(X, offset=offset, n_jobs=n_jobs)
        return (links.predictions(self, raw) for raw in staged)

    def staged_predict_proba(
        self, X: object, *, offset: object = None, n_jobs: int | None = None
    ) -> Iterator[links.Probabilities]:
        """Yield the result of `predict_proba` after each round."""
        staged = self.staged_raw(X, offset=offset, n_jobs=n_jobs)
        return (links.probabilities(self, raw) for raw in staged)

    def apply(self, X: object, *, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Index of the leaf of each row in each tree, shape (n_rows, n_trees).

        Node 0 is the root of a tree.

        Examples
        --------
        >>> import arboost
        >>> model = arboost.GradientBoostingRegressor(n_estimators=2, max_depth=1)
        >>> model.fit([[0], [1]], [0, 1]).model_.apply([[0], [1]]).tolist()
        [[1, 1], [2, 2]]
        """
        if is_device_array(X):
            return prediction.device_leaves(self, X)
        table = prediction.read_table(self, X)
        return prediction.leaf_ids(self, table, n_threads=_threads(n_jobs))

    def predict_quantiles(
        self, X: object, quantiles: float | Sequence[float] = 0.5, *, n_jobs: int | None = None
    ) -> Floats:
        """Quantiles of y for the rows of X, by regression forests with ``quantiles=True``.

        Each tree gives the training rows in the leaf of a row equal shares, or shares in proportion
        to their weights; the quantile q is the smallest y at which the shares of all trees,
        averaged, reach q (Meinshausen 2006).

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        quantiles : float or sequence of float, default=0.5
            Probabilities between 0 and 1.
        n_jobs : int or None
            Number of threads.

        Returns
        -------
        float64 array of shape (n_rows, n_quantiles), or (n_rows,) for one float

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from arboost import RandomForestRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> forest = RandomForestRegressor(quantiles=True, min_samples_leaf=10).fit(X, y)
        >>> low, high = forest.predict_quantiles(X, [0.05, 0.95]).T
        >>> bool(((low <= y) & (y <= high)).mean() > 0.9)
        True
        """
        table = prediction.read_table(self, X)
        return prediction.predict_quantiles(self, table, quantiles, n_threads=_threads(n_jobs))

    def save(self, path: str | os.PathLike[str], *, layout: str = "compact") -> None:
        """Write the model to a file; after a failure the previous file is intact.

        Scratch files of killed writers of this path are deleted.

        Parameters
        ----------
        path : str or path-like
            A name that ends in ".json" gets the readable form of `to_json`.
        layout : {"compact", "arrays"}, default="compact"
            "compact": a small file. "arrays": a larger file that `load` can map into memory, so
            that several processes share its pages.
        """
        if not os.fsdecode(path).lower().endswith(".json"):
            model_file.write_model(self, path, layout)
            return
        if layout != "compact":
            raise ValueError(
                f"layout={layout!r} is not allowed with {os.fsdecode(path)!r}: JSON has one layout "
                "only. Leave it out, or use a name that ends in .arb."
            )
        remove_orphans(path)
        self.to_json(path)

    def with_provenance(self, entries: Mapping[str, Any]) -> Self:
        """Model with more metadata of the fit, which files keep as JSON."""
        return replace(self, provenance={**self.provenance, **entries})

    @classmethod
    def from_model(cls, model: Model) -> Self:
        """Model with the methods of this class."""
        return cls(**model.fields())

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Model that `to_json` wrote; raise ModelFormatError for any other text.

        Examples
        --------
        >>> import arboost
        >>> model = arboost.DecisionTreeRegressor().fit([[0], [1]], [5, 7]).model_
        >>> arboost.Predictor.from_json(model.to_json()).predict([[1]])
        array([7.])
        """
        from arboost.models.files.json_model import from_json

        return cls.from_model(from_json(text))

    def _raw(self, X: object, n_jobs: int | None, offset: object) -> Floats:
        return prediction.raw_scores(self, X, offset, n_threads=_threads(n_jobs))

    def __repr__(self) -> str:
        features = counted(self.schema.n_features, "feature")
        combine = "" if self.combine == "sum" else f"{self.combine} of "
        device = "" if self.device == "cpu" else f", on {self.device}"
        return (
            f"Predictor({self.kind}, {features}, {combine}{counted(self.n_trees, 'tree')}{device})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # Unlike pickled arrays, the bytes of a model file are checked when they are read.
        device = () if self.device == "cpu" else (self.device,)
        return _from_bytes, (model_file.to_bytes(self), *device)

    def __copy__(self) -> Self:
        return self  # frozen, but for its metadata

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = object.__new__(type(self))  # with the same trees and caches
        vars(copied).update(vars(self), metadata=deepcopy(self.metadata, memo))
        return copied


def load(
    path: ModelSource, *, mmap: bool = False, device: str = "cpu"
) -> Predictor | EnsemblePredictor:
    """Load a model from a file, or from its content, that ``save`` or ``to_json`` wrote.

    Memory is counted before it is allocated: a file takes at most 64 MB plus 1,024 times its size,
    regardless of its content. Real models take 2 to 200 times their size.

    Parameters
    ----------
    path : str, path-like, bytes or file object
        Path of a file; or its content, as bytes or as an open file to read from.
    mmap : bool, default=False
        Whether to map the file into memory, so that processes share the pages of its arrays. It
        must be saved with ``layout="arrays"``, and not be changed in place while it is in use;
        ``save`` never changes a file in place.
    device : str, default="cpu"
        Device of the predictions: "cpu", "cuda", or "cuda:1" and so on; see `Predictor.to`.

    Returns
    -------
    Predictor, or EnsemblePredictor for a file of a bagging, voting or stacking ensemble

    Raises
    ------
    arboost.ModelFormatError
        The file holds no model, is damaged, would take more memory than that, or needs a newer
        version.
    arboost.DeviceError
        There is no such device.

    Examples
    --------
    >>> import arboost, tempfile
    >>> model = arboost.GradientBoostingRegressor(n_estimators=2).fit([[0], [1]], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.arb")
    ...     arboost.load(f"{folder}/model.arb")
    ...     with open(f"{folder}/model.arb", "rb") as file:
    ...         arboost.load(file)
    Predictor(regressor, 1 feature, 2 trees)
    Predictor(regressor, 1 feature, 2 trees)
    """
    if not isinstance(mmap, bool):
        raise InputTypeError(f"mmap={mmap!r} is not allowed: it must be True or False.")
    if isinstance(path, str | os.PathLike):
        if mmap:
            return Predictor.from_model(model_file.map_model(path)).to(device)
        name = f"the model file {os.fsdecode(path)!r}"
        data = read_file(model_file.FORMAT, path, other_starts=(b"{", model_file.ENSEMBLE.magic))
    elif mmap:
        raise InputTypeError(
            f"mmap=True is not allowed with a {type(path).__name__}: only a file on disk can be "
            "mapped. Pass its path."
        )
    else:
        name, data = "the data", _content(path)
    return _from_content(data, name).to(device)


def _content(source: object) -> bytes:
    """Content of a model file, given as bytes or as an open file."""
    data = source.read() if hasattr(source, "read") else source
    if isinstance(data, str):  # JSON, from a file in text mode
        return data.encode()
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InputTypeError(
            f"load takes a path, bytes or an open file, but got a {type(source).__name__}. Pass "
            "the path of a file that `save` wrote."
        )
    return bytes(data)


def _from_content(data: bytes, name: str) -> Predictor | EnsemblePredictor:
    if data.startswith(model_file.ENSEMBLE.magic):
        from arboost.models.ensemble import read_ensemble

        return read_ensemble(data, name).map_models(Predictor.from_model)
    if data.startswith(model_file.FORMAT.magic) or not data.lstrip().startswith(b"{"):
        return Predictor.from_model(model_file.from_bytes(data, name))
    from arboost.models.files.json_model import from_json

    return Predictor.from_model(from_json(data, name))


def _from_bytes(data: bytes, device: str = "cpu") -> Predictor:
    model = model_file.from_bytes(data, "the pickled model")
    # A device that is not there is an error of the first prediction: the model can still be moved.
    return Predictor.from_model(replace(model, device=device))


def _threads(n_jobs: object) -> int:
    """Number of threads for the core, which reads 0 as: as many as the work pays."""
    count: int | None = check({"n_jobs": n_jobs})["n_jobs"]
    return 0 if count is None or count == -1 else count
