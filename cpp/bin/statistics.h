// Levels of a category -> numbers: what the target was for rows of the same level.
//
// For columns of too many levels to split by sets of them. The mean of a level's target tells a
// tree where the level belongs, but a row whose own target is a large part of that mean is given
// away by it: trees learn to read the answer, and fail on new rows. So rows of levels with few rows
// see only those rows of their level that come before them in a random order (ordered target
// statistics, Prokhorenkova et al. 2018, "CatBoost", section 3); new rows see all of them:
//
//   row i:    m + sum over earlier rows j of i's level of w_j (t_j - m) / (their weight + a)
//   level l:  m + sum over all rows j of the level of      w_j (t_j - m) / (their weight + a)
//
// with m the mean of the target; a counts as so many rows that say nothing but m.
//
// In a level of many rows each is a small part of the mean, and all of them see the level's own
// number: one number for a level lets trees tell levels apart, which on real tables is worth more
// than what a row's share of less than 1 % costs. The numbers of small levels are noise for the
// most part, so they are rounded to the nearest of a few: finer steps are but chances to learn rows
// by heart. (Both choices, and a, by held-out log loss: docs/categories.md.)
//
// Linear in rows and levels; 16 bytes a level beside the results. Rows are taken one after the
// other by one thread, in an order that depends on their number alone.
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

// Numbers for the classes 0 to n_classes - 1 that the target names, of mean 0 and variance 1 over
// the rows: those whose means differ most between levels. They are the leading vector of the pairs
// of classes that different rows of one level have (reciprocal averaging, Hill 1973, without pairs
// of a row with itself, which say nothing of the level), after a fixed number of power iterations.
std::vector<double> class_scores(const LevelRows& rows, std::size_t n_classes);

}  // namespace arboost
