"""What forests share beyond single trees: draws, scores out of bag, warm starts, their trees."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from arboost.algorithms.averages import (
    Averaged,
    AveragedClassifier,
    AveragedRegressor,
    Floats,
    Seen,
    with_numbers,
)
from arboost.backend import core, threads
from arboost.binning import Dataset
from arboost.bootstrap import Bags, Draws, Unseen, draw_size
from arboost.errors import DataWarning
from arboost.goals import Targets, balanced_by_sample
from arboost.inputs import Rows, training_rows
from arboost.model import Forest
from arboost.predict import answer, probabilities
from arboost.serve import Predictor

__all__ = ["ForestOfClasses", "ForestOfNumbers", "Forests"]


class Forests(Averaged):
    """Many trees, each on draws of its own or on all rows."""

    _TREE: ClassVar[type[Averaged]]  # the estimator of one tree
    _SPLITTER: ClassVar[str] = "best"  # of those trees
    _OUT_OF_BAG: ClassVar[str]  # the attribute that holds what trees say of rows out of their bag

    warm_start: bool
    _bags: Bags

    def fit(  # type: ignore[override]
        self, X: object, y: object = None, sample_weight: object = None
    ) -> Self:
        """Train on a table and a target.

        Parameters
        ----------
        X : table of shape (n_rows, n_features), or arboost.Dataset
            NumPy array, pandas, Polars or PyArrow table, anything with an Arrow C stream, matrix of
            scipy.sparse, or list of lists. Columns are numbers, booleans, decimals, dates and
            times, or categories. NaN and None are missing values. A Dataset brings its own y and
            weights.
        y : array of shape (n_rows,) or (n_rows, n_targets)
        sample_weight : array of shape (n_rows,), optional
            Rows of weight 0 count as absent. With ``bootstrap=True`` rows are drawn in proportion
            to their weights.

        Returns
        -------
        self
        """
        params = self._params()
        old = self._old_model()
        schema = None if old is None or isinstance(X, Dataset) else old.schema
        rows = training_rows(X, y, sample_weight, schema, self._reading(params), several=True)
        return self._fit_rows(params, rows)

    @property
    def estimators_(self) -> list[Any]:
        """The trees, each as a fitted estimator of one tree."""
        return [self._one_tree(tree) for tree in range(self._fitted_model().n_trees)]

    @property
    def estimators_samples_(self) -> list[NDArray[np.int64]]:
        """The rows that each tree has drawn, ascending; drawn again when they are asked for."""
        self._fitted_model()
        return self._bags.samples()

    def _fit_rows(self, params: dict[str, Any], rows: Rows) -> Self:
        old = self._old_model()
        targets = self._targets(rows.y, old)
        rows = with_numbers(rows, targets, None if old is None else old.schema)
        seen = self._seen(params, targets, rows.weight)
        bags = Bags() if old is None else self._bags
        n_more = self._n_more(params, old)
        if old is not None and params["oob_score"]:
            _check_same_rows(bags, rows)
        forest = Forest.empty(sum(targets.n_outputs)) if old is None else old.forest
        # Trees that grow know the leaves of all rows by their bins; others have to see the values.
        unseen = None
        if params["oob_score"]:
            unseen = Unseen(len(rows.y), forest.width)
            asks_later = params["ccp_alpha"] > 0.0
            _ask(forest, bags, rows, unseen, threads(params["n_jobs"]))
        if n_more:
            first, asked = forest.n_trees, None if asks_later else unseen
            new = self._grow(
                params, rows, targets, seen, n_trees=n_more, first_tree=first, unseen=asked
            )
            forest = new if old is None else old.forest.joined(new)
        self._keep_forest(params, rows.schema, targets, forest)
        self._bags = Bags((*bags.draws, *[seen.draws] * n_more), len(rows.y), rows.kept)
        for name in ("oob_score_", self._OUT_OF_BAG):
            self.__dict__.pop(name, None)
        if unseen is not None:
            self._keep_unseen(params["oob_score"], unseen.means(), rows)
        return self

    def _cuts_at_random(self, params: dict[str, Any]) -> bool:
        return self._SPLITTER == "random"

    def _old_model(self) -> Predictor | None:
        """Return the model whose trees are kept, or None."""
        return self.model_ if self.warm_start and hasattr(self, "model_") else None

    def _n_more(self, params: dict[str, Any], old: Predictor | None) -> int:
        """Return how many trees are to be grown."""
        wanted: int = params["n_estimators"]
        if old is None:
            return wanted
        if wanted < old.n_trees:
            raise ValueError(
                f"n_estimators={wanted} is not allowed: warm_start=True keeps the {old.n_trees} "
                "trees there are. Use a larger number, or warm_start=False to start anew."
            )
        if wanted == old.n_trees:
            warnings.warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.",
                stacklevel=4,
            )
        return wanted - old.n_trees

    def _seen(self, params: dict[str, Any], targets: Targets, weight: Floats | None) -> Seen:
        if not params["bootstrap"]:
            return Seen(weight=self._row_weights(params, targets, weight))
        by_sample = params.get("class_weight") == "balanced_subsample"
        if not by_sample:
            weight = self._row_weights(params, targets, weight)
        n_rows = len(targets.tasks[0].y)
        draws = Draws(
            n_rows=n_rows,
            n_draws=draw_size(params["max_samples"], n_rows),
            seed=params["random_state"],
            weight=weight,
        )
        return Seen(draws=draws, weigh=balanced_by_sample(targets.tasks) if by_sample else None)

    def _ask_old(self, old: Predictor, rows: Rows, unseen: Unseen, n_threads: int) -> None:
        """Add what trees of an earlier fit say of the rows they have not seen."""
        if isinstance(rows.source, Dataset):
            raise ValueError(
                "oob_score is not allowed where warm_start goes on with a Dataset: it holds bins "
                "instead of values, which the trees there are have to score. Pass the table it was "
                "made from."
            )
        if self._bags.n_rows != len(rows.y):
            raise ValueError(
                f"X has {len(rows.y)} rows that count, but the trees that warm_start keeps were "
                f"grown on {self._bags.n_rows}, so that it is not known which of these rows they "
                "have seen. Pass the rows of the first fit, or use oob_score=False."
            )
        table = rows.source
        for tree, draws in enumerate(self._bags.draws):
            values = np.zeros((table.n_rows, old.n_outputs))
            core.traverse(
                columns=table.columns,
                forest=old.forest,
                out=values,
                tree_begin=tree,
                tree_end=tree + 1,
                n_threads=n_threads,
            )
            values = values if rows.kept is None else values[rows.kept]
            out = np.empty(0, np.uint32)
            if draws is not None:
                out = draws.unseen(draws.sample(tree, n_threads))
            unseen.add(tree, out, values[out])

    def _keep_unseen(self, scoring: Any, means: Floats, rows: Rows) -> None:
        """Set what is known out of bag."""
        heard = ~np.isnan(means[:, 0])
        if not heard.all():
            warnings.warn(
                f"{np.count_nonzero(~heard)} of {len(heard)} rows were drawn for every tree, so "
                "that no tree can score them out of bag: their values are NaN, and they do not "
                "count in oob_score_. Use more trees.",
                DataWarning,
                stacklevel=4,
            )
        all_means = means
        if rows.kept is not None:
            all_means = np.full((rows.source.n_rows, means.shape[1]), np.nan)
            all_means[rows.kept] = means
        setattr(self, self._OUT_OF_BAG, self._meaning(all_means))
        self.oob_score_ = np.nan
        if heard.any():
            predicted = answer(self.model_, means[heard])
            y = rows.y[heard]
            if callable(scoring):
                self.oob_score_ = scoring(y, predicted)
            else:
                weight = None if rows.weight is None else rows.weight[heard]
                self.oob_score_ = self._rated(y, predicted, weight)

    def _one_tree(self, tree: int) -> Averaged:
        """Return a tree as an estimator."""
        model = self._fitted_model()
        table = self._TREE._TABLE
        given = {name: value for name, value in self.get_params().items() if name in table}
        if given.get("class_weight") == "balanced_subsample":
            given["class_weight"] = "balanced"
        given["splitter"] = self._SPLITTER
        given["random_state"] = model.params["random_state"]
        one = self._TREE(**given)
        known = {name: value for name, value in vars(self).items() if name.endswith("_")}
        for name in ("model_", "oob_score_", self._OUT_OF_BAG):
            known.pop(name, None)
        one.__dict__.update(known)
        one.model_ = Predictor(**model.fields() | {"forest": model.forest.only(tree)})
        return one

    def _check_together(self, params: dict[str, Any]) -> None:
        if params["bootstrap"]:
            return
        if params["oob_score"]:
            raise ValueError(
                "oob_score is not allowed with bootstrap=False: Out of bag estimation only "
                "available if bootstrap=True, as otherwise every tree sees all rows. Use "
                "bootstrap=True."
            )
        if params["max_samples"] is not None:
            raise ValueError(
                f"max_samples={params['max_samples']!r} is not allowed with bootstrap=False, which "
                "draws nothing. Use bootstrap=True, or max_samples=None."
            )

    def _meaning(self, means: Floats) -> Floats:
        """Return means out of bag as users meet them."""
        raise NotImplementedError

    def _rated(self, y: NDArray[Any], predicted: NDArray[Any], weight: Floats | None) -> float:
        """Return how good predictions are: accuracy, or R^2."""
        raise NotImplementedError


class ForestOfNumbers(Forests, AveragedRegressor):
    """Forests that predict numbers."""

    _OUT_OF_BAG = "oob_prediction_"

    def _meaning(self, means: Floats) -> Floats:
        return means[:, 0] if means.shape[1] == 1 else means

    def _rated(self, y: NDArray[Any], predicted: NDArray[Any], weight: Floats | None) -> float:
        return float(r2_score(y, predicted, sample_weight=weight))


class ForestOfClasses(Forests, AveragedClassifier):
    """Forests that predict classes."""

    _OUT_OF_BAG = "oob_decision_function_"

    def _meaning(self, means: Floats) -> Floats:
        found = probabilities(self.model_, means)
        if not isinstance(found, list):
            return found
        # A class that another target has, and this one has not, has no probability here.
        most = max(one.shape[1] for one in found)
        wide = [np.pad(one, ((0, 0), (0, most - one.shape[1]))) for one in found]
        return np.stack(wide, axis=2)

    def _rated(self, y: NDArray[Any], predicted: NDArray[Any], weight: Floats | None) -> float:
        right = (y == predicted).reshape(len(y), -1).all(axis=1)
        return float(np.average(right, weights=weight))
