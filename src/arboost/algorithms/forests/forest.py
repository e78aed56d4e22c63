"""What forests share beyond single trees: draws, scores out of bag, warm starts, their trees."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from arboost.algorithms.forests.base import (
    Averaged,
    AveragedClassifier,
    AveragedRegressor,
    Floats,
    Seen,
    with_numbers,
)
from arboost.algorithms.forests.targets import Targets, balanced_by_sample
from arboost.backend import core, threads
from arboost.data.dataset import Dataset
from arboost.data.table import Table
from arboost.data.target import numbers_of
from arboost.errors import DataWarning
from arboost.grow.bootstrap import Origin, RowDraws, Unseen, draw_size, others
from arboost.model.forest import Forest
from arboost.model.predict import predictions, probabilities
from arboost.model.quantiles import (
    LeafDistributions,
    distributions_of,
    leaf_distributions,
    table_quantiles,
)
from arboost.predictor import Predictor
from arboost.training.inputs import Rows
from arboost.training.warm_start import n_to_add

__all__ = ["ForestOfClasses", "ForestOfNumbers", "Forests"]

_FEWEST = 2  # rows that R^2 is defined for


class Forests(Averaged):
    """Many trees, each on draws of its own or on all rows."""

    _TREE: ClassVar[type[Averaged]]  # the estimator of one tree
    _SPLITTER: ClassVar[str] = "best"  # of those trees
    _OUT_OF_BAG: ClassVar[str]  # the attribute that holds what trees say of rows out of their bag

    warm_start: bool
    _origins: list[Origin]

    @property
    def estimators_(self) -> list[Any]:
        """The trees, each as a fitted estimator of one tree."""
        return [self._one_tree(tree) for tree in range(self._fitted_model().n_trees)]

    def __len__(self) -> int:
        """Return the number of trees."""
        return self._fitted_model().n_trees

    def __getitem__(self, tree: int | slice) -> Any:
        """Return a tree as a fitted estimator; of a slice, a list of them."""
        if isinstance(tree, slice):
            return [self._one_tree(one) for one in range(len(self))[tree]]
        return self._one_tree(range(len(self))[tree])

    def __iter__(self) -> Iterator[Any]:
        """Go through the trees."""
        return iter(self.estimators_)

    @property
    def estimators_samples_(self) -> list[NDArray[np.intp]]:
        """The rows that each tree has drawn, ascending; drawn again when they are asked for."""
        self._fitted_model()
        return [origin.rows() for origin in self._origins]

    def _fit_rows(self, params: dict[str, Any], rows: Rows) -> Self:
        old = self._old_model()
        self._check_rows(params, rows)
        targets = self._targets(params, rows.y, old)
        rows = with_numbers(rows, targets, None if old is None else old.schema)
        seen = self._seen(params, targets, rows.weight)
        wanted = params["n_estimators"]
        n_more = wanted if old is None else n_to_add(wanted, old.n_trees, "trees", stacklevel=4)
        n_outputs, n_threads = sum(targets.n_outputs), threads(params["n_jobs"])
        if old is not None and n_outputs != old.n_outputs:
            raise ValueError(
                f"criterion={params['criterion']!r} is not allowed: warm_start=True keeps trees of "
                f"{old.params['criterion']!r}, and for several targets the two are not alike. Use "
                "the same, or warm_start=False to start anew."
            )
        forest, origins = Forest.empty(n_outputs), []
        unseen = Unseen(len(rows.y), n_outputs) if params["oob_score"] else None
        if old is not None:
            forest, origins = old.forest, self._origins
            if unseen is not None:
                _check_same_rows(origins, rows)
                _ask(forest, origins, rows, unseen, n_threads)
        first = forest.n_trees
        draws = _all_rows(len(rows.y)) if seen.draws is None else seen.draws
        new_origins = [Origin(draws, number, rows.kept) for number in range(first, wanted)]
        if n_more:
            # Trees that grow find leaves by bins. Those that are pruned then have others.
            prunes = params["ccp_alpha"] > 0.0
            asked = None if prunes else unseen
            new = self._grow(
                params, rows, targets, seen, n_trees=n_more, first_tree=first, unseen=asked
            )
            if prunes and unseen is not None:
                _ask(new, new_origins, rows, unseen, n_threads)
            forest = new if old is None else forest.joined(new)
        self._keep_forest(params, rows, targets, forest)
        self._origins = [*origins, *new_origins]
        self._keep_values(params, rows)
        for name in ("oob_score_", self._OUT_OF_BAG):
            self.__dict__.pop(name, None)
        if unseen is not None:
            self._keep_unseen(params["oob_score"], unseen, rows)
        return self

    def _check_rows(self, params: dict[str, Any], rows: Rows) -> None:
        """Raise ValueError for rows that the parameters ask too much of."""

    def _keep_values(self, params: dict[str, Any], rows: Rows) -> None:
        """Set what is known of the y of the training rows in each leaf."""

    def _cuts_at_random(self, params: dict[str, Any]) -> bool:
        return self._SPLITTER == "random"

    def _old_model(self) -> Predictor | None:
        return self.model_ if self.warm_start and hasattr(self, "model_") else None

    def _seen(self, params: dict[str, Any], targets: Targets, weight: Floats | None) -> Seen:
        if not params["bootstrap"]:
            return Seen(weight=self._row_weights(params, targets, weight))
        by_sample = params.get("class_weight") == "balanced_subsample"
        if not by_sample:
            weight = self._row_weights(params, targets, weight)
        n_rows = len(targets.tasks[0].y)
        draws = RowDraws(
            n_rows=n_rows,
            n_draws=draw_size(params["max_samples"], n_rows),
            seed=params["random_state"],
            weight=weight,
        )
        return Seen(draws=draws, weigh=balanced_by_sample(targets.tasks) if by_sample else None)

    def _keep_unseen(self, scoring: Any, unseen: Unseen, rows: Rows) -> None:
        """Set what is known out of bag."""
        means, heard = unseen.means(), unseen.heard()
        if not heard.all():
            warnings.warn(
                f"{np.count_nonzero(~heard)} of {len(heard)} rows were drawn for every tree: their "
                "values out of bag are NaN, and do not count in oob_score_. Use more trees.",
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
            predicted = predictions(self.model_, means[heard])
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
        one.model_ = Predictor(
            **model.fields() | {"forest": model.forest.only(tree), "distributions": None}
        )
        return one

    def _check_together(self, params: dict[str, Any]) -> None:
        if params["bootstrap"]:
            return
        if params["oob_score"]:
            raise ValueError(
                f"oob_score={params['oob_score']!r} is not allowed with bootstrap=False: every "
                "tree sees all rows, and none is out of bag. Use bootstrap=True, or "
                "oob_score=False."
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
        model, table = self._fitted_model(), self._table(X)
        return table_quantiles(
            model, table, distributions_of(model), quantiles, n_threads=threads(self.n_jobs)
        )

    def _check_rows(self, params: dict[str, Any], rows: Rows) -> None:
        if not params["quantiles"]:
            return
        if rows.y.ndim > 1:
            raise ValueError(
                f"quantiles=True is not allowed with {rows.y.shape[1]} targets. Fit a model for "
                "each target, or use quantiles=False."
            )
        _values_of(rows, "quantiles=True")

    def _keep_values(self, params: dict[str, Any], rows: Rows) -> None:
        if params["quantiles"]:
            known = _distributions(self.model_, rows, threads(params["n_jobs"]))
            self.model_ = replace(self.model_, distributions=known)

    def _meaning(self, means: Floats) -> Floats:
        return means[:, 0] if means.shape[1] == 1 else means

    def _rated(self, y: NDArray[Any], predicted: NDArray[Any], weight: Floats | None) -> float:
        if len(y) < _FEWEST:
            return float("nan")
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


def _all_rows(n_rows: int) -> RowDraws:
    return RowDraws(n_rows=n_rows, n_draws=n_rows, seed=0, repeats=False)


def _check_same_rows(origins: Sequence[Origin], rows: Rows) -> None:
    """Raise ValueError where it cannot be known which rows earlier trees have seen."""
    for origin in origins:
        n_rows = origin.draws.n_rows
        if n_rows != len(rows.y) or not _are_equal(origin.kept, rows.kept):
            raise ValueError(
                f"X has {len(rows.y)} rows that count, but trees that warm_start keeps were grown "
                f"on {n_rows} others, so that it is not known which of these rows they have seen. "
                "Pass the rows of the first fit, or use oob_score=False."
            )


def _are_equal(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def _ask(
    forest: Forest, origins: Sequence[Origin], rows: Rows, unseen: Unseen, n_threads: int
) -> None:
    """Add what trees say, by the values of the table, of the rows that they have not seen."""
    table = _values_of(rows, "oob_score with warm_start or ccp_alpha")
    for tree, origin in enumerate(origins):
        out = others(origin.draws.drawn(origin.number).rows, origin.draws.n_rows)
        values = np.zeros((table.n_rows, forest.width))
        core.traverse(
            columns=table.columns,
            forest=forest,
            out=values,
            tree_begin=tree,
            tree_end=tree + 1,
            n_threads=n_threads,
        )
        of_table = out if rows.kept is None else rows.kept[out]
        unseen.add(origin.number, out, values[of_table])


def _distributions(model: Predictor, rows: Rows, n_threads: int) -> LeafDistributions:
    """Return the values of y by leaf; rows that do not count have no weight there."""
    table = _values_of(rows, "quantiles=True")
    y, weight = numbers_of(rows.y), rows.weight
    if rows.kept is not None:
        weight = np.zeros(table.n_rows)
        weight[rows.kept] = 1.0 if rows.weight is None else rows.weight
        y = np.zeros(table.n_rows)
        y[rows.kept] = rows.y
    return leaf_distributions(model, table, y, weight, n_threads=n_threads)


def _values_of(rows: Rows, what: str) -> Table:
    if isinstance(rows.source, Dataset):
        raise ValueError(
            f"{what} is not allowed with a Dataset, which holds bins instead of the values that "
            "trees look at. Pass the table it was made from."
        )
    return rows.source
