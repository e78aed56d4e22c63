// Dropout of rounds: DART of Rashmi and Gilad-Bachrach (2015), "DART: Dropouts meet Multiple
// Additive Regression Trees". Draws are hashes of the seed, the round and the dropped round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace arboost {

// For the meaning of the fields see estimators/boosting_rounds.py.
struct Dropout {
  double rate_drop = 0, skip_drop = 0;
  bool one_drop = false;
  bool by_weight = false;  // sample_type "weighted"
  bool as_forest = false;  // normalize_type "forest"

  // The rounds that the next one drops, ascending, given the weights of all before it.
  std::vector<std::size_t> draw(std::span<const double> weights, std::uint64_t seed) const;

  // The factors of the new round, and of the dropped ones. A new tree was fitted to what the k
  // dropped ones had explained together. With the learning rate eta already in its leaves it gets
  // 1 / (k + eta), and each dropped one k / (k + eta), so that their sum stays about what it was;
  // as one forest, both get 1 / (1 + eta).
  struct Factors {
    double new_round, dropped;
  };
  Factors factors(std::size_t n_dropped, double learning_rate) const;
};

}  // namespace arboost
