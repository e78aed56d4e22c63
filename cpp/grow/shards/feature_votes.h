// Voting for features (Meng et al. 2016, "A communication-efficient parallel algorithm for decision
// tree"): each worker proposes the features of the best splits of its own rows, and only the sums
// of those with most votes are added up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/collective.h"
#include "grow/rows/feature_sums.h"
#include "grow/rows/histograms.h"
#include "table/codes.h"

namespace arboost {

class FeatureVotes {
 public:
  // Each worker proposes `n_votes` features of a node.
  FeatureVotes(const Codes& codes, std::size_t n_votes, std::size_t most_channels);

  // The features among `allowed` whose splits of a node are best by this worker's rows.
  std::vector<std::uint32_t> propose(const std::int64_t* histogram, const Histograms& histograms,
                                     std::span<const std::uint32_t> allowed, double reg_lambda,
                                     std::size_t outputs);

  // Of proposals by worker, features that are proposed most often, twice as many as each proposes;
  // of equals the first ones. In the order of the table.
  std::vector<std::uint32_t> elect(std::span<const std::vector<std::int64_t>> proposals) const;

 private:
  double best_score(const std::int64_t* sums, std::size_t n_codes, std::size_t channels,
                    std::size_t outputs, double reg_lambda) const;

  const Codes& codes_;
  std::size_t n_votes_;
  FeatureSums sums_;
  std::vector<std::int64_t> buffer_, totals_;
};

}  // namespace arboost
