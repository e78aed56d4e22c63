// Residuals -> leaf values that are quantiles, and quantiles of all residuals.
//
// A residual is y - score of one output. One pass groups the rows by leaf, then leaves are
// processed in parallel, each by selection. Throws std::invalid_argument when a residual is not
// finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/buffer.h"
#include "base/parallel.h"
#include "loss/losses.h"

namespace arboost {

// leaf[row] of rows that belong to no leaf.
constexpr std::uint32_t no_leaf = 0xffffffff;

struct LeafRule {
  double alpha;                 // quantile of the leaf's residuals
  std::optional<double> delta;  // with it, to the quantile m is added mean of r - m cut to +-delta
};

// The unit of fixed-point weights of n_rows rows, the largest given: their sum is below 2^62.
double weight_scale(double largest, std::size_t n_rows);
double weight_scale(const LossRows& rows, Team& team);

// The value of every node; 0 for nodes without rows of positive weight. `space` keeps the memory of
// the residuals from tree to tree.
std::vector<double> refit_leaves(const LossRows& rows, std::size_t output,
                                 const std::uint32_t* leaf, std::size_t n_nodes,
                                 const LeafRule& rule, Buffer<std::uint8_t>& space, Team& team);

// The quantile of the residuals of output 0, or of their absolute values; 0 if no row has a
// positive weight. With rows.scores null, the quantile of y.
double residual_quantile(const LossRows& rows, double alpha, bool absolute, Team& team);

}  // namespace arboost
