"""Ranking: queries of rows -> losses and metrics of the order of their documents.

A row is a document of a query, and y its relevance. A score has a meaning only next to the scores
of the same query. The core sorts the documents of each query once, and computes gradients and
metrics query by query (cpp/loss/ranking.h).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.raw_table import is_missing
from arboost.data.target import as_vector, numeric_target, target, weights
from arboost.errors import InputTypeError
from arboost.losses.base import Codes, Floats, Loss, Target
from arboost.params.suggestions import rank_metric_name

LARGEST_RELEVANCE = 31  # of exponential gains, as in XGBoost and LightGBM: 2^31 - 1
DEFAULT_METRIC = "ndcg@10"
_ALL = 2**63  # documents of a query
_LOG_2 = 0.6931471805599453


# ---- queries ----


def query_codes(qid: object, n_rows: int, argument: str = "qid") -> Codes:
    """The query of each row as 0 .. Q-1, in the order of the sorted names.

    Parameters
    ----------
    qid : array of shape (n_rows,)
        Numbers or strings.
    n_rows : int
    argument : str
        Name of the array in messages.
    """
    array = as_vector(qid)
    if array.shape != (n_rows,):
        _refuse_shape(array, n_rows, argument)
    missing = _missing(array)
    if missing.any():
        raise ValueError(
            f"{argument} has {int(missing.sum())} missing values (NaN, None), the first in row "
            f"{int(missing.argmax())}. Give every row a query, or leave the row out."
        )
    if array.dtype.kind in "iu" and (array[1:] >= array[:-1]).all():  # sorted already
        return np.cumsum(np.concatenate([[False], array[1:] > array[:-1]]), dtype=np.int64)
    try:
        _, codes = np.unique(array, return_inverse=True)
    except TypeError as error:
        raise InputTypeError(
            f"{argument} has values of several types: {error}. Pass integers or strings."
        ) from None
    return codes.astype(np.int64)


def _missing(array: NDArray[Any]) -> NDArray[np.bool_]:
    if array.dtype.kind == "f":
        is_nan: NDArray[np.bool_] = np.isnan(array)
        return is_nan
    if array.dtype.kind != "O":
        return np.zeros(len(array), np.bool_)
    return np.fromiter(map(is_missing, array), np.bool_, len(array))


def _refuse_shape(array: NDArray[Any], n_rows: int, argument: str) -> None:
    """Raise ValueError for queries of another shape; sizes of groups get the remedy."""
    if array.ndim == 1 and array.dtype.kind in "iu" and int(array.sum()) == n_rows:
        raise ValueError(
            f"{argument} has {len(array)} values whose sum is the number of rows, {n_rows}: they "
            "look like the sizes of groups that XGBoost and LightGBM take, but here each row has "
            f"its query. Use {argument}=np.repeat(np.arange({len(array)}), sizes)."
        )
    raise ValueError(
        f"{argument} has the shape {array.shape}, but there are {n_rows} rows. Pass the query of "
        "each row, such as a number or a name, or the name of a column."
    )


def check_query_weights(query: Codes, weight: Floats | None) -> None:
    """Raise ValueError where rows of one query have different weights."""
    if weight is None:
        return
    first = np.full(int(query.max()) + 1, -1)
    first[query[::-1]] = np.arange(len(query))[::-1]
    differs = weight != weight[first[query]]
    if differs.any():
        row = int(differs.argmax())
        raise ValueError(
            f"sample_weight is {weight[row]:g} in row {row}, but {weight[first[query[row]]]:g} in "
            f"row {first[query[row]]} of the same query: a query has one weight, since pairs of "
            "its documents are weighed. Give all its rows the same weight."
        )


def check_relevance(y: Floats, gain: str) -> None:
    """Raise ValueError where a value of y is not a relevance."""
    if float(y.min()) < 0:
        row = int(y.argmin())
        raise ValueError(
            f"y has the value {float(y[row])!r} in row {row}, but relevances must be 0 or more. "
            "Shift them so that documents without any relevance have 0."
        )
    if gain == "exponential" and float(y.max()) > LARGEST_RELEVANCE:
        row = int(y.argmax())
        raise ValueError(
            f"y has the value {float(y[row])!r} in row {row}, but with gain='exponential' a "
            f"relevance is at most {LARGEST_RELEVANCE}: the gain of a document is 2^y - 1. Use "
            "gain='linear', or grades from 0 to 4."
        )


def check_comparable(y: Floats, query: Codes) -> None:
    """Raise ValueError where no query has documents of different relevances."""
    order = np.lexsort((y, query))
    is_same = query[order][1:] == query[order][:-1]
    if not is_same.any():
        raise ValueError(
            f"each of the {len(query)} rows is the only document of its query, so there is no "
            "order to learn. Pass by qid the query that documents share, not a number of the row."
        )
    if not (is_same & (y[order][1:] != y[order][:-1])).any():
        raise ValueError(
            "no query has documents of different relevance, so there is no order to learn. "
            "Pass queries of documents of several relevances, such as 0 and 1."
        )


def gains_of(y: Floats, gain: str) -> Floats:
    """The gains of relevances: y, or 2^y - 1, exact for whole numbers.

    Examples
    --------
    >>> gains_of(np.array([0.0, 1.0, 3.0]), "exponential")
    array([0., 1., 7.])
    """
    if gain == "linear":
        return y
    whole = np.floor(y)
    gains: Floats = np.ldexp(core.exp((y - whole) * _LOG_2), whole.astype(np.int32)) - 1.0
    return gains


def ranked(target: Target, gain: str) -> core.Queries:
    """The documents of the queries of a target in the core, made once for each kind of gain."""
    known: dict[str, core.Queries] = target.queries
    if gain not in known:
        assert target.query is not None  # of every ranking
        # Documents of equal scores have a random order: that of the rows may be that of y.
        ties = core.counter_hash("tied_rows", 0, 0, len(target.y))
        order = np.lexsort((ties, target.query)).astype(np.uint32)
        counts = np.bincount(target.query)
        starts = np.concatenate([[0], np.cumsum(counts[counts > 0])]).astype(np.uint32)
        weights = None if target.weight is None else target.weight[order[starts[:-1]]]
        known[gain] = core.Queries(order, starts, gains_of(target.y, gain), weights)
    return known[gain]


# ---- losses ----


@dataclass(frozen=True)
class RankingLoss(Loss):
    """A loss of the order of the documents of queries; see `cpp/loss/ranking.h`.

    Attributes
    ----------
    loss : {"lambdamart", "pairwise", "listwise"}
    target_metric : {"ndcg", "map", "mrr"}
        Metric whose change weighs the pairs of LambdaMART.
    gain : {"exponential", "linear"}
    truncation_level : int or None
    score_normalization : bool
    seed : int
    """

    loss: str
    target_metric: str = "ndcg"
    gain: str = "exponential"
    truncation_level: int | None = None
    score_normalization: bool = True
    seed: int = 0

    in_core = False

    @property
    def name(self) -> str:
        """Public name."""
        return self.loss

    def check_target(self, y: Floats) -> None:
        """Raise ValueError where a value of y is not a relevance."""
        check_relevance(y, self.gain)

    def start(self, target: Target) -> Floats:
        """0: only differences of scores count."""
        return np.zeros(1)

    def start_from(self, target: Target, offset: Floats) -> Floats:
        """0."""
        return np.zeros(1)

    def gradients(
        self,
        target: Target,
        scores: Floats,
        out: core.Gradients,
        n_threads: int,
        *,
        least_squares: bool = False,
    ) -> None:
        """Write the gradients and hessians of the first round into ``out``."""
        self.gradients_of_round(
            target, scores, out, n_threads, least_squares=least_squares, round_number=0
        )

    def gradients_of_round(
        self,
        target: Target,
        scores: Floats,
        out: core.Gradients,
        n_threads: int,
        *,
        least_squares: bool,
        round_number: int,
    ) -> None:
        """Write the gradients and hessians of all queries into ``out``."""
        ranked(target, self.gain).gradients(
            self.target_metric if self.loss == "lambdamart" else self.loss,
            scores[:, 0],
            out,
            truncation=_ALL if self.truncation_level is None else self.truncation_level,
            normalized=self.score_normalization,
            least_squares=least_squares,
            seed=self.seed,
            round=round_number,
            n_threads=n_threads,
        )


# ---- metrics ----


@dataclass(frozen=True)
class RankMetric:
    """A metric of rankings: the mean over queries, by their weights.

    Attributes
    ----------
    kind : {"ndcg", "map", "mrr", "precision"}
    k : int or None
        Number of documents from the top that count; None for all.
    gain : {"exponential", "linear"}
    """

    kind: str
    k: int | None = None
    gain: str = "exponential"

    @classmethod
    def of_name(cls, name: str, gain: str = "exponential") -> Self:
        """The metric of a name that `arboost.params.suggestions.rank_metric_name` returns."""
        kind, _, k = name.partition("@")
        return cls(kind, int(k) if k else None, gain)

    @property
    def name(self) -> str:
        """Name in results."""
        return self.kind if self.k is None else f"{self.kind}@{self.k}"

    def by_query(self, target: Target, scores: Floats, n_threads: int) -> Floats:
        """The metric of each query."""
        k = _ALL if self.k is None else self.k
        flat = scores.reshape(len(target.y))
        values: Floats = ranked(target, self.gain).metric(self.kind, k, flat, n_threads)
        return values

    def of_target(self, target: Target, scores: Floats, n_threads: int) -> float:
        """The mean over the queries."""
        return float(
            np.average(self.by_query(target, scores, n_threads), weights=query_weights(target))
        )


def query_weights(target: Target) -> Floats | None:
    """The weight of each query, in the order of `RankMetric.by_query`; None for 1."""
    if target.weight is None:
        return None
    assert target.query is not None  # of every ranking
    _, first = np.unique(target.query, return_index=True)
    weight: Floats = target.weight[first]
    return weight


def rank_metrics(
    y: object,
    score: object,
    qid: object,
    metrics: str | Sequence[str] = ("ndcg@10", "map@10", "mrr", "precision@10"),
    *,
    sample_weight: object = None,
    gain: str = "exponential",
) -> dict[str, float]:
    """Return metrics of rankings: means over queries.

    Documents of equal scores are in random order: a metric is the mean over all orders. NDCG and
    MAP of a query without relevant documents are 1, since every order is right, as in XGBoost and
    LightGBM; MRR and precision are 0.

    Parameters
    ----------
    y : array of shape (n_rows,)
        Relevances, 0 or more. MAP, MRR and precision take every value above 0 for relevant.
    score : array of shape (n_rows,)
        Scores of any model; the best document has the highest.
    qid : array of shape (n_rows,)
        Query of each row, in any order.
    metrics : str or list of str
        "ndcg", "map", "mrr" or "precision", or the same of the first k documents, as "ndcg@5". The
        average precision of a query is the mean over its relevant documents, at most k of them.
    sample_weight : array of shape (n_rows,), optional
        Weights of the queries, for each of their rows.
    gain : {"exponential", "linear"}, default="exponential"
        Gain of a relevance y in NDCG: 2^y - 1 or y.

    Returns
    -------
    dict of str to float

    Examples
    --------
    >>> import arboost
    >>> y, score, query = [1, 0, 2, 0, 1], [0.1, 0.9, 0.8, 0.3, 0.2], [0, 0, 0, 1, 1]
    >>> metrics = arboost.rank_metrics(y, score, query, ["ndcg", "mrr"])
    >>> {name: round(value, 3) for name, value in metrics.items()}
    {'ndcg': 0.645, 'mrr': 0.5}
    """
    if gain not in ("exponential", "linear"):
        raise ValueError(f"gain={gain!r} is not allowed. Use 'exponential' or 'linear'.")
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    kinds = [RankMetric.of_name(checked_rank_metric(name), gain) for name in names]
    scores = numeric_target(as_vector(score), "score")
    rows, scores = ranked_target(y, scores, qid, sample_weight, gain)
    return {name: kind.of_target(rows, scores, 1) for name, kind in zip(names, kinds, strict=True)}


def ranked_target(
    y: object, scores: Floats, qid: object, sample_weight: object, gain: str
) -> tuple[Target, Floats]:
    """The checked rows of weights above 0, and their scores."""
    relevance = numeric_target(target(y, len(scores)))
    check_relevance(relevance, gain)
    query = query_codes(qid, len(scores))
    weight = weights(sample_weight, len(scores))
    if weight is None:
        return Target(relevance, None, query), scores
    check_query_weights(query, weight)
    kept = weight > 0
    return Target(relevance[kept], weight[kept], query[kept]), scores[kept]


def checked_rank_metric(name: object) -> str:
    """The name here of a metric of rankings; raise ValueError for any other."""
    found = rank_metric_name(name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(
            f"metrics holds {name!r}, which is not a metric of rankings. Use 'ndcg', 'map', 'mrr' "
            "or 'precision', each also for the first k documents, as in 'ndcg@10'."
        )
    return found


def refuse_ranker(model: Any, caller: str) -> None:
    """Raise TypeError where a model or estimator is a ranker, which `caller` knows nothing of."""
    if getattr(model, "kind", getattr(model, "_KIND", None)) == "ranker":
        raise InputTypeError(
            f"{caller} is not available for rankers: it takes predictions for values of y, but "
            "scores of a ranker only order the documents of a query. Use arboost.rank_metrics(y, "
            "model.predict(X), qid)."
        )
