#include "loss/ranking.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/buffer.h"
#include "base/random.h"
#include "base/require.h"
#include "loss/loss_kernels.h"

namespace arboost {
namespace {

constexpr std::size_t queries_per_chunk = 16;

// A number as an integer of the same order; both zeros are equal, and NaN has a place, too.
std::int64_t order_of(double number) {
  const auto bits = std::bit_cast<std::int64_t>(number + 0.0);
  return bits < 0 ? bits ^ 0x7fffffffffffffff : bits;
}

double log2_of(double x) {
  return loss_kernels().logarithm(x) / loss_kernels().logarithm(2.0);
}

// e^x of all numbers, times a factor that keeps them within the range of a double: those of
// documents 700 above or below the middle of a query are as if they were at this distance.
void centred_exponentials(const std::vector<double>& scores, std::size_t n, double middle,
                          std::vector<double>& out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = std::clamp(scores[i] - middle, -700.0, 700.0);
  loss_kernels().exponentials(out.data(), n);
}

}  // namespace

// The documents of a query in the order of their scores, and buffers of the same length.
struct Queries::Ranking {
  struct Document {
    std::int64_t order;
    RowId position;
  };

  explicit Ranking(std::size_t most)
      : documents(most),
        scores(most),
        exponentials(most),
        gains(most),
        hits(most),
        reciprocals(most),
        weights(most),
        g(most),
        h(most) {}

  std::size_t n = 0;
  std::vector<Document> documents;
  std::vector<double> scores, exponentials, gains;
  // Up to each rank: the number of relevant documents, and the sum of 1 / rank of these, from 1.
  std::vector<double> hits, reciprocals;
  std::vector<double> weights, g, h;
};

Queries::Queries(std::span<const RowId> rows, std::span<const RowId> starts,
                 std::span<const double> gains, std::span<const double> weights)
    : rows_(rows.begin(), rows.end()),
      starts_(starts.begin(), starts.end()),
      weights_(weights.begin(), weights.end()) {
  require(!starts_.empty() && starts_.front() == 0 && starts_.back() == rows_.size() &&
              std::is_sorted(starts_.begin(), starts_.end()),
          "these are not the first rows of queries");
  require(gains.size() == rows_.size(), "gains and rows differ in number");
  require(weights_.empty() || weights_.size() == size(), "weights and queries differ in number");
  for (const RowId row : rows_) require(row < rows_.size(), "a row lies beyond the table");
  gains_.reserve(rows_.size());
  for (const RowId row : rows_) gains_.push_back(gains[row]);
  best_ = gains_;
  std::size_t most = 0;
  for (std::size_t query = 0; query < size(); ++query) {
    const auto first = best_.begin() + static_cast<std::ptrdiff_t>(begin(query));
    std::sort(first, first + static_cast<std::ptrdiff_t>(n(query)), std::greater<>());
    most = std::max(most, n(query));
  }
  for (std::size_t rank = 0; rank < most; ++rank)
    discounts_.push_back(1.0 / log2_of(2.0 + static_cast<double>(rank)));
}

void Queries::sort(std::size_t query, const double* scores, Ranking& ranking) const {
  const std::size_t first = begin(query);
  ranking.n = n(query);
  for (std::size_t i = 0; i < ranking.n; ++i)
    ranking.documents[i] = {order_of(scores[rows_[first + i]]), static_cast<RowId>(first + i)};
  using Document = Ranking::Document;
  std::sort(ranking.documents.begin(),
            ranking.documents.begin() + static_cast<std::ptrdiff_t>(ranking.n),
            [](const Document& a, const Document& b) {
              return a.order != b.order ? a.order > b.order : a.position < b.position;
            });
  for (std::size_t i = 0; i < ranking.n; ++i) {
    const RowId position = ranking.documents[i].position;
    ranking.scores[i] = scores[rows_[position]];
    ranking.gains[i] = gains_[position];
  }
}

double Queries::ideal(std::size_t query, std::size_t k) const {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(k, n(query)); ++i)
    sum += best_[begin(query) + i] * discounts_[i];
  return sum;
}

void Queries::gradients(const RankSpec& spec, const double* scores, Gradients& out,
                        Team& team) const {
  Buffer<double> g(n_rows()), h(n_rows());
  std::vector<Ranking> rankings(static_cast<std::size_t>(team.size()), Ranking(discounts_.size()));
  team.for_chunks(0, size(), queries_per_chunk,
                  [&](std::size_t first, std::size_t last, int member) {
                    Ranking& ranking = rankings[static_cast<std::size_t>(member)];
                    for (std::size_t query = first; query < last; ++query) {
                      sort(query, scores, ranking);
                      if (spec.loss == RankLoss::listwise)
                        of_list(spec, ranking);
                      else
                        of_pairs(spec, query, ranking);
                      const double weight = weights_.empty() ? 1.0 : weights_[query];
                      for (std::size_t i = 0; i < ranking.n; ++i) {
                        const RowId row = rows_[ranking.documents[i].position];
                        g[row] = weight * ranking.g[i];
                        h[row] = spec.least_squares ? weight : weight * ranking.h[i];
                      }
                    }
                  });
  apply_loss({Loss::given}, {g.data(), h.data(), nullptr, n_rows(), 1}, 1.0, out, team);
}

void Queries::of_pairs(const RankSpec& spec, std::size_t query, Ranking& ranking) const {
  const std::size_t n = ranking.n;
  std::fill_n(ranking.g.begin(), n, 0.0);
  std::fill_n(ranking.h.begin(), n, 0.0);
  if (n < 2 || best_[begin(query)] == best_[begin(query) + n - 1]) return;  // no pair differs
  const double highest = ranking.scores[0], lowest = ranking.scores[n - 1];
  centred_exponentials(ranking.scores, n, lowest + (highest - lowest) / 2, ranking.exponentials);
  double hits = 0, reciprocals = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (ranking.gains[i] > 0) {
      hits += 1;
      reciprocals += 1 / static_cast<double>(i + 1);
    }
    ranking.hits[i] = hits;
    ranking.reciprocals[i] = reciprocals;
  }
  const double best = ideal(query, spec.truncation);
  const bool divided = spec.normalized && highest != lowest;
  double size = 0;
  for (std::size_t i = 0; i < std::min(spec.truncation, n - 1); ++i) {
    weigh_pairs(spec, i, best, ranking);
    const std::size_t next = i + 1;
    const PairSums sums =
        loss_kernels().rank_pairs({.score = ranking.scores[i],
                                   .exponential = ranking.exponentials[i],
                                   .scores = ranking.scores.data() + next,
                                   .exponentials = ranking.exponentials.data() + next,
                                   .weights = ranking.weights.data() + next,
                                   .g = ranking.g.data() + next,
                                   .h = ranking.h.data() + next,
                                   .n = n - next,
                                   .divided = divided});
    ranking.g[i] -= sums.slope;
    ranking.h[i] += sums.curve;
    size += 2 * sums.size;
  }
  if (!spec.normalized || size == 0) return;
  const double factor = log2_of(1 + size) / size;
  for (std::size_t i = 0; i < n; ++i) {
    ranking.g[i] *= factor;
    ranking.h[i] *= factor;
  }
}

// Weights of the pairs of a document with those below it: the change of the metric if the two
// changed places, below 0 where the lower document is the more relevant one.
void Queries::weigh_pairs(const RankSpec& spec, std::size_t upper, double ideal,
                          Ranking& ranking) const {
  const std::size_t n = ranking.n;
  const double gain = ranking.gains[upper];
  const auto is_relevant = [&](std::size_t rank) { return ranking.gains[rank] > 0; };
  const auto set = [&](auto change) {
    for (std::size_t lower = upper + 1; lower < n; ++lower) ranking.weights[lower] = change(lower);
  };
  // The sign of a pair of a relevant and another document.
  const auto sign = [&](std::size_t lower) {
    return static_cast<double>(is_relevant(upper)) - static_cast<double>(is_relevant(lower));
  };
  if (spec.loss == RankLoss::ndcg) {
    const double discount = discounts_[upper], inverse = 1 / ideal;
    set([&](std::size_t lower) {
      return (gain - ranking.gains[lower]) * (discount - discounts_[lower]) * inverse;
    });
  } else if (spec.loss == RankLoss::pairwise) {
    set([&](std::size_t lower) {
      const double other = ranking.gains[lower];
      return static_cast<double>(gain > other) - static_cast<double>(gain < other);
    });
  } else if (spec.loss == RankLoss::map) {
    // One relevant document more or less changes the precision here, there, and at the relevant
    // documents between.
    const double here = (ranking.hits[upper] + static_cast<double>(!is_relevant(upper))) /
                        static_cast<double>(upper + 1);
    const double relevant = ranking.hits[n - 1];
    set([&](std::size_t lower) {
      const double between = ranking.reciprocals[lower - 1] - ranking.reciprocals[upper];
      const double there = ranking.hits[lower] / static_cast<double>(lower + 1);
      return sign(lower) * (here + between - there) / relevant;
    });
  } else {
    // Ranks of the first two relevant documents.
    const auto rank_of = [&](double number) {
      const auto end = ranking.hits.begin() + static_cast<std::ptrdiff_t>(n);
      return static_cast<std::size_t>(std::lower_bound(ranking.hits.begin(), end, number) -
                                      ranking.hits.begin());
    };
    const std::size_t first = rank_of(1), second = rank_of(2);
    const auto reciprocal = [](std::size_t rank) { return 1 / static_cast<double>(rank + 1); };
    set([&](std::size_t lower) {
      if (upper > first) return 0.0;
      const std::size_t below = upper == first ? std::min(lower, second) : first;
      return sign(lower) * (reciprocal(upper) - reciprocal(below));
    });
  }
}

void Queries::of_list(const RankSpec& spec, Ranking& ranking) const {
  const std::size_t n = ranking.n;
  std::vector<double>&shares = ranking.exponentials, &terms = ranking.weights;
  std::fill_n(ranking.g.begin(), n, 0.0);
  std::fill_n(ranking.h.begin(), n, 0.0);
  if (n < 2) return;
  centred_exponentials(ranking.scores, n, ranking.scores[0], shares);
  double total = 0, relevance = 0;
  for (std::size_t i = 0; i < n; ++i) total += shares[i];
  for (std::size_t i = 0; i < n; ++i) {
    const RowId row = rows_[ranking.documents[i].position];
    const std::uint64_t bits = counter_hash(spec.seed, Purpose::relevance_noise, spec.round, row);
    shares[i] /= total;
    terms[i] = ranking.gains[i] + 1 - static_cast<double>(bits >> 11) * 0x1p-53;
    relevance += terms[i];
  }
  // Newton's method on the whole list: the terms of first, second and third order.
  const auto others = [&](std::size_t i) { return std::max(1 - shares[i], 1e-15); };
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    ranking.g[i] = shares[i] - terms[i] / relevance;
    terms[i] = ranking.g[i] / others(i);
    sum += terms[i];
  }
  double next_sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double term = shares[i] * (sum - terms[i]);
    ranking.g[i] += term;
    terms[i] = term / others(i);
    next_sum += terms[i];
  }
  for (std::size_t i = 0; i < n; ++i) {
    ranking.g[i] += shares[i] * (next_sum - terms[i]);
    ranking.h[i] = shares[i] * (1 - shares[i]);
  }
}

std::vector<double> Queries::metric(RankMetric metric, std::size_t k, const double* scores,
                                    Team& team) const {
  std::vector<double> values(size());
  std::vector<Ranking> rankings(static_cast<std::size_t>(team.size()), Ranking(discounts_.size()));
  team.for_chunks(0, size(), queries_per_chunk,
                  [&](std::size_t first, std::size_t last, int member) {
                    Ranking& ranking = rankings[static_cast<std::size_t>(member)];
                    for (std::size_t query = first; query < last; ++query) {
                      sort(query, scores, ranking);
                      values[query] = value(metric, k, query, ranking);
                    }
                  });
  return values;
}

// Group by group of equal scores, from the top: any of its documents is at any of its ranks.
double Queries::value(RankMetric metric, std::size_t k, std::size_t query,
                      const Ranking& ranking) const {
  const std::size_t n = ranking.n, most = std::min(k, n);
  double sum = 0, hits = 0;
  double none = 1;  // chance that no relevant document has come so far
  for (std::size_t begin = 0, end; begin < most; begin = end) {
    double gain = 0, relevant = 0;
    for (end = begin; end < n && ranking.documents[end].order == ranking.documents[begin].order;
         ++end) {
      gain += ranking.gains[end];
      relevant += ranking.gains[end] > 0 ? 1 : 0;
    }
    const auto size = static_cast<double>(end - begin);
    const double share = relevant / size;
    // Of the other documents of the group, given one that is relevant.
    const double share_of_others = size > 1 ? (relevant - 1) / (size - 1) : 0;
    for (std::size_t rank = begin; rank < std::min(end, most); ++rank) {
      const auto before = static_cast<double>(rank - begin), number = static_cast<double>(rank + 1);
      if (metric == RankMetric::ndcg) sum += gain / size * discounts_[rank];
      if (metric == RankMetric::precision) sum += share;
      if (metric == RankMetric::map) sum += share * (hits + 1 + before * share_of_others) / number;
      if (metric == RankMetric::mrr) {
        const double chance = relevant / (size - before);
        sum += none * std::min(chance, 1.0) / number;
        none *= std::max(1 - chance, 0.0);
      }
    }
    hits += relevant;
  }
  if (metric == RankMetric::mrr) return sum;
  if (metric == RankMetric::precision) return sum / static_cast<double>(std::min(k, n));
  const auto first = best_.begin() + static_cast<std::ptrdiff_t>(begin(query));
  const auto last = first + static_cast<std::ptrdiff_t>(n);
  const auto n_relevant = static_cast<std::size_t>(
      std::partition_point(first, last, [](double gain) { return gain > 0; }) - first);
  if (n_relevant == 0) return 1;
  return metric == RankMetric::map ? sum / static_cast<double>(std::min(k, n_relevant))
                                   : sum / ideal(query, k);
}

}  // namespace arboost
