#include "grow/rounds/dropout.h"

#include <algorithm>
#include <numeric>  // accumulate, partial_sum

#include "base/random.h"

namespace arboost {

std::vector<std::size_t> Dropout::draw(std::span<const double> weights, std::uint64_t seed) const {
  const std::size_t n_rounds = weights.size();
  const auto uniform = [&](std::size_t i) {  // in [0, 1)
    return static_cast<double>(counter_hash(seed, Purpose::dropout, n_rounds, i) >> 11) * 0x1p-53;
  };
  if (n_rounds == 0 || uniform(n_rounds + 1) < skip_drop) return {};
  std::vector<double> shares(n_rounds, 1.0);
  if (by_weight) {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (std::size_t i = 0; i < n_rounds; ++i)
      shares[i] = weights[i] * static_cast<double>(n_rounds) / total;
  }
  std::vector<std::size_t> dropped;
  for (std::size_t i = 0; i < n_rounds; ++i)
    if (uniform(i) < rate_drop * shares[i]) dropped.push_back(i);
  if (dropped.empty() && one_drop) {
    // One round by the same shares: the first whose cumulative share passes a random point.
    std::partial_sum(shares.begin(), shares.end(), shares.begin());
    const auto passed =
        std::upper_bound(shares.begin(), shares.end(), uniform(n_rounds) * shares.back());
    dropped.push_back(std::min(static_cast<std::size_t>(passed - shares.begin()), n_rounds - 1));
  }
  return dropped;
}

Dropout::Factors Dropout::factors(std::size_t n_dropped, double learning_rate) const {
  if (n_dropped == 0) return {1, 1};
  if (as_forest) return {1 / (1 + learning_rate), 1 / (1 + learning_rate)};
  const double total = static_cast<double>(n_dropped) + learning_rate;
  return {1 / total, static_cast<double>(n_dropped) / total};
}

}  // namespace arboost
