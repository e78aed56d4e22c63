// Target encoding: levels of a categorical feature -> numbers, by the mean target of each level.
//
// For features with too many levels for splits by sets of levels. A row's own target is part of the
// mean of its level; in a small level that leaks the target, and trees overfit. So a training row
// of a small level is encoded from the rows of its level that precede it in a random order (ordered
// target statistics, Prokhorenkova et al. 2018, "CatBoost", section 3); new rows are encoded from
// all of them:
//
//   row i:    m + sum over earlier rows j of i's level of w_j (t_j - m) / (their weight + a)
//   level l:  m + sum over all rows j of the level of      w_j (t_j - m) / (their weight + a)
//
// with m the mean of the target, and a the smoothing: the weight of the prior m, in rows.
//
// In a large level a row's own share of the mean is below 1 %, so all rows get the level's number:
// one number a level lets trees separate levels, which on real tables outweighs that leak. The
// numbers of small levels are mostly noise, so they are rounded to a few quantiles, which limits
// overfitting. (Both choices, and a, by held-out log loss: docs/developers/target_encoding.md.)
//
// Linear in rows and levels; 16 bytes a level of temporary memory. Single-threaded, in an order
// that depends only on the number of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace arboost {

// The level of rows without one.
constexpr std::uint32_t no_level = ~std::uint32_t{0};

struct LevelRows {
  std::span<const std::uint32_t> level;  // of each row: a number below n_levels, or no_level
  std::size_t n_levels;
  std::span<const double> target;
  const double* weight;  // above 0; null: all 1

  double weight_of(std::size_t i) const { return weight == nullptr ? 1.0 : weight[i]; }
};

struct Statistics {
  std::vector<double> of_rows;    // NaN where a row has no level
  std::vector<double> of_levels;  // NaN where a level has no rows
};

Statistics level_statistics(const LevelRows& rows);

// Ordered means of all rows and means of all levels, for groups of levels: neither rounded, nor
// with an exception for large levels.
Statistics ordered_means(const LevelRows& rows, double smoothing);

// Scores of the classes 0 to n_classes - 1, of mean 0 and variance 1 over the rows, whose means
// differ most between levels: the leading eigenvector of the co-occurrence of classes within levels
// (reciprocal averaging, Hill 1973, without pairs of a row with itself, which carry no information
// on the level), after a fixed number of power iterations.
std::vector<double> class_scores(const LevelRows& rows, std::size_t n_classes);

}  // namespace arboost
