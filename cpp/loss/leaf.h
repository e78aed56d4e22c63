// Residuals -> leaf values that are order statistics, and quantiles of all residuals.
//
// A residual is y - score of one output. Rows are grouped by leaf in one pass, then the leaves are
// done in parallel, each by selection. Throws std::invalid_argument when a residual is not finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/parallel.h"
#include "loss/losses.h"

namespace arboost {

// leaf[row] of rows that count in no leaf.
constexpr std::uint32_t no_leaf = 0xffffffff;

struct LeafRule {
  double alpha;                 // quantile of the leaf's residuals
  std::optional<double> delta;  // with it, to the quantile m is added mean of r - m cut to +-delta
};

// The value of every node: of those without rows (of weight above 0), 0.
std::vector<double> refit_leaves(const LossRows& rows, std::size_t output,
                                 const std::uint32_t* leaf, std::size_t n_nodes,
                                 const LeafRule& rule, Team& team);

// The quantile of the residuals of output 0, or of their absolute values; 0 where no row has a
// weight. Where rows.scores is null, of y itself.
double residual_quantile(const LossRows& rows, double alpha, bool absolute, Team& team);

}  // namespace arboost
