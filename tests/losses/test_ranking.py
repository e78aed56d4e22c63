"""Ranking losses and metrics: all pairs and all orders by brute force, and refusals."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

import arboost
from arboost.backend import core
from arboost.losses.base import Target
from arboost.losses.ranking import RankingLoss, RankMetric, gains_of, query_codes

SIZES = (1, 2, 7, 40, 300)


def queries(sizes=SIZES, seed=0, grades=4):
    """Relevances, scores and queries of rows in random order."""
    rng = np.random.default_rng(seed)
    query = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    y = rng.integers(0, grades, len(query)).astype(float)
    return y, rng.normal(size=(len(query), 1)), query


def derivatives(loss, target, scores, n_threads=1):
    out = core.Gradients(len(scores), n_outputs=1, by_row=False)
    loss.gradients_of_round(target, scores, out, n_threads, least_squares=False, round_number=3)
    pairs = out.to_numpy()[:, 0].astype(float)
    return pairs[:, 0] * 2.0**-out.g_exponent, pairs[:, 1] * 2.0**-out.h_exponent


def metric_of(kind, relevance, gains, k):
    """A metric of documents in their order."""
    hits = relevance > 0
    discounts = 1 / np.log2(2 + np.arange(len(gains)))
    if kind == "ndcg":
        best = (np.sort(gains)[::-1] * discounts)[:k].sum()
        return (gains * discounts).sum() / best if best > 0 else 0.0
    ranks = np.arange(1, len(gains) + 1)
    if kind == "map":
        return (np.cumsum(hits) / ranks)[hits].mean() if hits.any() else 0.0
    return 1 / (1 + hits.argmax()) if hits.any() else 0.0


def pair_reference(loss, y, scores, query, weight):
    """Gradients and hessians by a loop over all pairs of documents."""
    g, h = np.zeros(len(y)), np.zeros(len(y))
    level = loss.truncation_level or len(y)
    for name in np.unique(query):
        rows = np.flatnonzero(query == name)
        rows = rows[np.argsort(-scores[rows], kind="stable")]
        s, gains = scores[rows], gains_of(y[rows], loss.gain)
        here_g, here_h, total = np.zeros(len(rows)), np.zeros(len(rows)), 0.0
        for i, j in itertools.combinations(range(len(rows)), 2):
            if gains[i] == gains[j] or i >= level:
                continue
            swapped = np.arange(len(rows))
            swapped[[i, j]] = j, i
            size = 1.0
            if loss.loss == "lambdamart":
                values = [
                    metric_of(loss.target_metric, y[rows][order], gains[order], level)
                    for order in (np.arange(len(rows)), swapped)
                ]
                size = abs(values[0] - values[1])
            if loss.score_normalization and s[0] != s[-1]:
                size /= 0.01 + abs(s[i] - s[j])
            good, bad = (i, j) if gains[i] > gains[j] else (j, i)
            wrong = 1 / (1 + np.exp(s[good] - s[bad]))
            here_g[good] -= size * wrong
            here_g[bad] += size * wrong
            here_h[[i, j]] += size * wrong * (1 - wrong)
            total += 2 * size * wrong
        if loss.score_normalization and total > 0:
            factor = np.log2(1 + total) / total
            here_g, here_h = factor * here_g, factor * here_h
        w = 1.0 if weight is None else weight[rows[0]]
        g[rows], h[rows] = w * here_g, w * here_h
    return g, h


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("level", [3, None])
@pytest.mark.parametrize("gain", ["exponential", "linear"])
@pytest.mark.parametrize("kind", ["ndcg", "map", "mrr", "pairwise"])
def test_gradients_of_all_pairs(kind, gain, level, normalized):
    y, scores, query = queries((1, 2, 5, 20), seed=1)
    rng = np.random.default_rng(2)
    weight = rng.uniform(0.5, 2.0, 4)[query] if gain == "linear" else None
    lambdamart = kind != "pairwise"
    loss = RankingLoss(
        "lambdamart" if lambdamart else "pairwise",
        kind if lambdamart else "ndcg",
        gain,
        level,
        normalized,
    )
    g, h = derivatives(loss, Target(y, weight, query), scores)
    expected = pair_reference(loss, y, scores[:, 0], query, weight)
    np.testing.assert_allclose(g, expected[0], rtol=0, atol=3e-8)
    np.testing.assert_allclose(h, expected[1], rtol=0, atol=3e-8)
    assert np.abs(g).max() > 0.05


def test_pairwise_gradients_are_derivatives_of_the_loss():
    y, scores, query = queries((2, 6, 9), seed=3)
    loss = RankingLoss("pairwise", score_normalization=False)

    def value(s):
        pairs = itertools.permutations(range(len(y)), 2)
        terms = [
            np.log1p(np.exp(s[j] - s[i])) for i, j in pairs if query[i] == query[j] and y[i] > y[j]
        ]
        return sum(terms)

    g, h = derivatives(loss, Target(y, None, query), scores)
    step, s = 1e-4, scores[:, 0]
    for row in range(len(y)):
        move = step * (np.arange(len(y)) == row)
        low, here, high = value(s - move), value(s), value(s + move)
        assert g[row] == pytest.approx((high - low) / (2 * step), abs=1e-6)
        assert h[row] == pytest.approx((high - 2 * here + low) / step**2, abs=1e-5)


@pytest.mark.parametrize("gain", ["exponential", "linear"])
def test_listwise_gradients(gain):
    y, scores, query = queries((1, 2, 7, 30), seed=4)
    bits = core.counter_hash("relevance_noise", 5, 3, len(y))
    noise = (bits >> np.uint64(11)) * 2.0**-53
    expected = np.zeros((2, len(y)))
    for name in (1, 2, 3):
        rows = np.flatnonzero(query == name)
        p = np.exp(scores[rows, 0]) / np.exp(scores[rows, 0]).sum()
        relevance = gains_of(y[rows], gain) + 1 - noise[rows]
        g = first = p - relevance / relevance.sum()
        others = first / (1 - p)
        second = p * (others.sum() - others)
        others = second / (1 - p)
        g = first + second + p * (others.sum() - others)
        expected[:, rows] = g, p * (1 - p)
    loss = RankingLoss("listwise", gain=gain, seed=5)
    result = derivatives(loss, Target(y, None, query), scores)
    np.testing.assert_allclose(result, expected, rtol=0, atol=3e-8)
    other = derivatives(RankingLoss("listwise", gain=gain, seed=6), Target(y, None, query), scores)
    assert not np.array_equal(result[0], other[0])


@pytest.mark.parametrize("kind", ["lambdamart", "pairwise", "listwise"])
def test_threads_and_order_of_queries_do_not_matter(kind):
    y, scores, query = queries(np.full(900, 60), seed=5)
    loss = RankingLoss(kind, truncation_level=20)
    target = Target(y, None, query)
    first = derivatives(loss, target, scores)
    for n_threads in (2, 4):
        again = derivatives(loss, target, scores, n_threads)
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    renamed = Target(y, None, 899 - query)
    again = derivatives(loss, renamed, scores)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


DIGESTS = """
import hashlib
import numpy as np
from arboost.backend import core
from arboost.losses.base import Target
from arboost.losses.ranking import RankingLoss
rng = np.random.default_rng(9)
query = np.repeat(np.arange(40), rng.integers(1, 600, 40))
y, scores = rng.integers(0, 5, len(query)).astype(float), rng.normal(size=(len(query), 1))
for loss in ("lambdamart", "pairwise", "listwise"):
    for normalized in (True, False):
        out = core.Gradients(len(query), 1, False)
        kind = RankingLoss(loss, truncation_level=60, score_normalization=normalized)
        kind.gradients(Target(y, None, query), scores, out, 2)
        print(hashlib.sha256(out.to_numpy().tobytes()).hexdigest(), out.g_exponent, out.h_exponent)
"""


def test_instruction_sets_do_not_matter(instruction_sets):
    seen = {instruction_sets.run(isa, DIGESTS) for isa in ("baseline", "avx2", "avx512", None)}
    assert len(seen) == 1
    assert len(set(seen.pop().splitlines())) == 5  # normalisation is nothing to lists


def test_far_scores_have_finite_gradients():
    y, scores, query = queries((30,), seed=6)
    for kind in ("lambdamart", "pairwise", "listwise"):
        g, h = derivatives(RankingLoss(kind), Target(y, None, query), scores * 1e4)
        assert np.isfinite([g, h]).all()
        assert (h >= 0).all()


def mean_over_orders(kind, y, score, k):
    """The mean of a metric over all orders of documents of equal scores."""
    gains, values = gains_of(y, "exponential"), []
    for order in itertools.permutations(range(len(y))):
        if (np.diff(score[list(order)]) > 0).any():
            continue
        relevant = y[list(order)] > 0
        top = relevant[:k]
        discounts = 1 / np.log2(2 + np.arange(len(y)))[:k]
        if kind == "ndcg":
            best = (np.sort(gains)[::-1][:k] * discounts).sum()
            values.append((gains[list(order)][:k] * discounts).sum() / best if best else 1.0)
        elif kind == "map":
            precisions = (np.cumsum(top) / np.arange(1, len(top) + 1))[top]
            n_relevant = min(k, int(relevant.sum()))
            values.append(precisions.sum() / n_relevant if n_relevant else 1.0)
        elif kind == "mrr":
            values.append(1 / (1 + top.argmax()) if top.any() else 0.0)
        else:
            values.append(top.mean())
    return np.mean(values)


@pytest.mark.parametrize("k", [1, 3, 6, 99])
@pytest.mark.parametrize("kind", ["ndcg", "map", "mrr", "precision"])
def test_metrics_are_means_over_the_orders_of_ties(kind, k):
    rng = np.random.default_rng(k)
    query = np.repeat(np.arange(12), 6)
    y = rng.integers(0, 3, 72).astype(float) * (query != 3)
    score = rng.integers(0, 3, 72).astype(float)
    metric = RankMetric.of_name(f"{kind}@{k}")
    values = metric.by_query(Target(y, None, query), score, 2)
    expected = [mean_over_orders(kind, y[query == q], score[query == q], k) for q in range(12)]
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_ndcg_is_that_of_scikit_learn():
    y, _, query = queries((50,), seed=7)
    score = np.random.default_rng(8).integers(0, 10, 50).astype(float)
    for k in (None, 5, 20):
        name = "ndcg" if k is None else f"ndcg@{k}"
        ours = arboost.rank_metrics(y, score, query, name, gain="linear")[name]
        assert ours == pytest.approx(ndcg_score([y], [score], k=k), rel=1e-12)


def test_rank_metrics_weigh_queries():
    y, score, query = np.array([1, 0, 0, 1, 1, 0]), np.array([2, 1, 2, 1, 1, 2]), list("aabbcc")
    assert arboost.rank_metrics(y, score, query, "mrr") == {"mrr": pytest.approx(2 / 3)}
    weight = np.array([4, 4, 1, 1, 0, 0])
    weighted = arboost.rank_metrics(y, score, query, ["mrr", "NDCG@1"], sample_weight=weight)
    assert weighted == {"mrr": pytest.approx(0.9), "NDCG@1": pytest.approx(0.8)}


def test_relevances_of_any_fraction_have_exact_gains():
    y = np.array([0.0, 1.0, 5.0, 31.0, 0.5])
    assert gains_of(y, "exponential").tolist()[:4] == [0, 1, 31, 2**31 - 1]
    assert gains_of(y, "exponential")[4] == pytest.approx(np.sqrt(2) - 1)


@pytest.mark.parametrize(
    ("qid", "message"),
    [
        ([2, 3], r"np.repeat\(np.arange\(2\), sizes\)"),
        ([1, 2, 3], r"shape \(3,\), but there are 5 rows"),
        ([1.0, np.nan, 2.0, 2.0, 1.0], "missing values .* the first in row 1"),
        (["a", None, "b", "a", "b"], "row 1"),
        ([1, "a", 2, "b", 1], "several types"),
    ],
)
def test_bad_queries_are_refused(qid, message):
    values = np.array(qid, dtype=object) if "a" in qid else qid
    with pytest.raises((ValueError, TypeError), match=message):
        query_codes(values, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [-1, 0, 1]}, "-1.0 in row 0"),
        ({"y": [0, 40, 1]}, "40.0 in row 1.*gain='linear'"),
        ({"metrics": "rmse"}, "not a metric of rankings"),
        ({"metrics": "ndcg@0"}, "not a metric of rankings"),
        ({"gain": "log"}, "'exponential' or 'linear'"),
        ({"sample_weight": [1, 2, 1]}, "2 in row 1, but 1 in row 0 of the same query"),
        ({"score": [1, np.nan, 2]}, "score"),
    ],
)
def test_rank_metrics_refuse(arguments, message):
    rows = {"y": [0, 1, 1], "score": [0.1, 0.2, 0.3], "qid": [0, 0, 1], "metrics": "ndcg"}
    with pytest.raises(ValueError, match=message):
        arboost.rank_metrics(**(rows | arguments))
