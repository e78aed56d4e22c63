// Scores of the documents of queries -> gradients of ranking losses, and metrics of rankings, query
// by query. Parallel over queries; every sum is of one query, in one order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "base/types.h"
#include "loss/apply.h"

namespace arboost {

// A loss of pairs weighs each by the change of a metric if its two documents changed places
// (LambdaMART: Burges, "From RankNet to LambdaRank to LambdaMART", 2010), or not at all (pairwise).
// listwise: the cross entropy of Bruch, "An Alternative Cross Entropy Loss for Learning-to-Rank",
// 2021, with its two further Newton terms.
enum class RankLoss { ndcg, map, mrr, pairwise, listwise };
enum class RankMetric { ndcg, map, mrr, precision };

struct RankSpec {
  RankLoss loss;
  // Pairs have one of the first `truncation` documents; the metric counts no others.
  std::size_t truncation;
  // Weights of pairs are divided by the difference of the scores, and the gradients of a query
  // grow like the logarithm of their sum, as in LightGBM.
  bool normalized;
  bool least_squares;  // the weights replace the hessians
  std::uint64_t seed, round;
};

// The documents of all queries. Documents of equal scores keep the order of `rows` in gradients.
class Queries {
 public:
  // Rows query by query, and the first of each query and their number; the gain of each row, at
  // least 0, and above 0 where it is relevant; the weight of each query, or nothing for 1.
  Queries(std::span<const RowId> rows, std::span<const RowId> starts, std::span<const double> gains,
          std::span<const double> weights);

  std::size_t n_rows() const { return rows_.size(); }
  std::size_t size() const { return starts_.size() - 1; }

  // Fills `out` from the scores of the rows.
  void gradients(const RankSpec& spec, const double* scores, Gradients& out, Team& team) const;

  // The metric of each query at the first k documents. Documents of equal scores are in random
  // order: the result is the mean over all orders. NDCG and MAP are 1 without a relevant document.
  std::vector<double> metric(RankMetric metric, std::size_t k, const double* scores,
                             Team& team) const;

 private:
  struct Query;
  struct Ranking;

  std::size_t begin(std::size_t query) const { return starts_[query]; }
  std::size_t n(std::size_t query) const { return starts_[query + 1] - starts_[query]; }
  void sort(std::size_t query, const double* scores, Ranking& ranking) const;
  double ideal(std::size_t query, std::size_t k) const;
  void of_pairs(const RankSpec& spec, std::size_t query, Ranking& ranking) const;
  void of_list(const RankSpec& spec, Ranking& ranking) const;
  void weigh_pairs(const RankSpec& spec, std::size_t upper, double ideal, Ranking& ranking) const;
  double value(RankMetric metric, std::size_t k, std::size_t query, const Ranking& ranking) const;

  std::vector<RowId> rows_, starts_;
  std::vector<double> gains_;      // in the order of rows_
  std::vector<double> best_;       // the gains of each query, descending
  std::vector<double> weights_;    // of queries
  std::vector<double> discounts_;  // 1 / log2(2 + rank)
};

}  // namespace arboost
