"""Scores of a HistGradientBoosting fit after each iteration, and its early stopping."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing, resample

from arboost.compat.sklearn.boosting.engine import WatchedRounds
from arboost.compat.sklearn.boosting.rows import FitRows
from arboost.model.outputs import Probabilities
from arboost.model.predict import predictions, probabilities

__all__ = ["IterationScores", "should_stop"]

Floats = NDArray[np.float64]

_SCORED_ROWS = 10_000  # most training rows that a scorer sees


@dataclass(frozen=True)
class _Live:
    """A model in training: the raw scores of the tables that a scorer asks for."""

    kind: str
    link: str
    classes: Any
    n_outputs: int
    tables: list[tuple[Any, Floats]]
    targets: tuple[int, ...] = ()

    def predict_raw(self, X: object, **_: Any) -> Floats:
        """Return the raw scores of one of the tables."""
        for table, raw in self.tables:
            if table is X:
                return raw
        raise ValueError(
            "scoring asked for predictions of other rows than those it was given. Score the rows "
            "that the scorer gets, or use a scorer of scikit-learn."
        )

    def predict(self, X: object, **_: Any) -> NDArray[Any]:
        """Return the predictions of one of the tables."""
        return predictions(self, self.predict_raw(X))

    def predict_proba(self, X: object, **_: Any) -> Probabilities:
        """Return the class probabilities of one of the tables."""
        return probabilities(self, self.predict_raw(X))


@dataclass
class IterationScores:
    """Scores before the first iteration and after each; higher is better.

    Attributes
    ----------
    estimator : estimator
        Copied for scorers.
    params : mapping
        Checked parameters of scikit-learn's estimator.
    rows : FitRows
    seed : int
        Of the sample of training rows that a scorer sees.
    is_continued : bool
        Whether the scores of an earlier fit come first.
    train, validation : list of float
    """

    estimator: Any
    params: Mapping[str, Any]
    rows: FitRows
    seed: int
    is_continued: bool
    train: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    _scorer: Callable[..., float] | None = field(default=None, init=False)
    _sample: Any = field(default=None, init=False)

    def before_first(self, rounds: WatchedRounds) -> None:
        """Score the model without trees."""
        if self.params["scoring"] != "loss":
            self._scorer = check_scoring(self.estimator, self.params["scoring"])
            self._sample = self._training_sample(rounds)
        if not self.is_continued:
            self._score(rounds)

    def after_round(self, rounds: WatchedRounds) -> str | None:
        """Score an iteration; return the reason to stop, or None."""
        self._score(rounds)
        watched = self.validation if rounds.evaluations else self.train
        stop = should_stop(watched, self.params["n_iter_no_change"], self.params["tol"])
        return "n_iter_no_change" if stop else None

    def _score(self, rounds: WatchedRounds) -> None:
        if self._scorer is None:
            loss, n_threads = rounds.recipe.loss, rounds.n_threads
            self.train.append(-loss.value(rounds.data.target, rounds.scores, n_threads))
            for part, raw in zip(rounds.evaluations, rounds.evaluation_scores, strict=True):
                self.validation.append(-loss.value(part.target, raw, n_threads))
            return
        index, X, y, weight = self._sample
        self.train.append(self._scored(rounds, X, y, weight, rounds.scores[index]))
        for raw in rounds.evaluation_scores:
            held_out = self.rows
            X, y, weight = held_out.X_val, held_out.y_val, held_out.sample_weight_val
            self.validation.append(self._scored(rounds, X, y, weight, raw))

    def _scored(self, rounds: WatchedRounds, X: Any, y: Any, weight: Any, raw: Floats) -> float:
        loss = rounds.recipe.loss
        is_classifier = hasattr(self.estimator, "predict_proba")
        live = copy.copy(self.estimator)
        live.model_ = _Live(
            "classifier" if is_classifier else "regressor",
            loss.link,
            np.unique(self.rows.y) if is_classifier else None,
            loss.n_outputs,
            [(X, raw)],
        )
        live.classes_ = live.model_.classes
        assert self._scorer is not None
        weights = {} if weight is None else {"sample_weight": weight}
        return float(self._scorer(live, X, y, **weights))

    def _training_sample(self, rounds: WatchedRounds) -> tuple[Any, Any, Any, Any]:
        """Return positions, X, y and weights of the training rows that a scorer sees."""
        rows = self.rows
        kept = np.flatnonzero(rows.counted())
        index = np.arange(len(kept))
        if len(index) > _SCORED_ROWS:
            stratify = rows.y[kept] if hasattr(self.estimator, "predict_proba") else None
            index = resample(
                index,
                n_samples=_SCORED_ROWS,
                replace=False,
                random_state=self.seed,
                stratify=stratify,
            )
        chosen = kept[index]
        weight = None if rows.sample_weight is None else rows.sample_weight[chosen]
        X = rows.X if len(chosen) == len(rows.y) else _safe_indexing(rows.X, chosen)
        return index, X, rows.y[chosen], weight


def should_stop(scores: list[float], n_iter_no_change: int, tol: float) -> bool:
    """Whether none of the last scores is better, by more than tol, than the one before them.

    Examples
    --------
    >>> should_stop([1, 2, 3], 2, 0.0), should_stop([3, 2, 3], 2, 0.0)
    (False, True)
    """
    if len(scores) <= n_iter_no_change:
        return False
    before, recent = scores[-n_iter_no_change - 1], scores[-n_iter_no_change:]
    return not any(score > before + tol for score in recent)
