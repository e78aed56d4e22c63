// Fine codes and hessians -> the bins of a round, for split candidates that are proposed anew each
// round (Chen and Guestrin 2016, section 3.3, the global variant).
//
//   codes of a feature   0 0 1 2 2 2 3 4 5 5     of many bins, the same in all rounds
//   hessian by code      sums of integers: of windows, threads and workers in any order
//   last codes           1 3 5                   quantiles of the sums
//   proposed bins        0 0 0 1 1 1 1 2 2 2
//
// Sums are merged exactly, unlike the quantile summaries of the paper, whose pruning depends on
// where the rows are: the bins do not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/collective.h"
#include "base/parallel.h"
#include "table/codes.h"

namespace arboost {

class Proposal {
 public:
  // Within a proposed bin, all codes of the table but the largest weigh at most `eps` of the
  // feature's total hessian. Features with no more codes than bins keep them. The table has a
  // stored column for each feature, in memory or in a file, and is that of one of the workers.
  // With `elsewhere`, sums and proposed codes are made in other memory than the host's.
  Proposal(const Codes& table, double eps, Collective& workers, bool elsewhere = false);
  ~Proposal();
  Proposal(const Proposal&) = delete;
  Proposal& operator=(const Proposal&) = delete;

  // The proposed codes of the table's rows, in memory or read from its file in windows; not before
  // the first update. The table itself where all features keep their codes.
  const Codes& codes() const { return keeps_all_ ? table_ : codes_; }
  bool is_ready() const { return started_; }

  // Proposes bins for the given hessians: one for each row of the table, 0 for rows of zero weight.
  // All workers call it at once.
  void update(std::span<const std::uint32_t> hessians, Team& team);
  // The same, where `add` adds up the hessians of a few features, the sum of a code at first_sum of
  // the feature + code.
  using Add = FunctionRef<void(std::span<const std::size_t>, std::span<std::int64_t>)>;
  void update(Team& team, Add add);
  std::uint32_t first_sum(std::size_t feature) const { return first_sum_[feature]; }
  // The bin of each code of a feature, missing values included.
  std::span<const std::uint16_t> bin_of_code(std::size_t feature) const {
    return bin_of_code_[feature];
  }

  // The largest code of the table in a bin; bins behind the last one in use end where that does.
  std::uint32_t last_code(std::size_t feature, std::size_t bin) const {
    const auto& codes = last_codes_[feature];
    return codes[std::min(bin, codes.size() - 1)];
  }

 private:
  class Windows;
  bool changes(std::size_t feature) const;
  void sum_hessians(std::span<const std::size_t> features, std::span<const std::uint32_t> hessians,
                    std::span<std::int64_t> all, Team& team) const;
  void propose(std::size_t feature, std::span<std::int64_t> sums);
  void spread(std::size_t feature);
  void encode(Team& team);

  const Codes& table_;
  double eps_;
  Collective& workers_;
  Codes codes_;
  bool keeps_all_ = false, started_ = false;
  bool encoded_ = false;                          // the features that never change
  int n_threads_ = 1;                             // of the last update
  std::vector<std::vector<std::size_t>> groups_;  // of features that change, summed together
  std::vector<std::int64_t> sums_;                // of a group: [feature][code]
  std::vector<std::uint32_t> first_sum_;          // by feature: its index there
  std::vector<std::vector<std::uint32_t>> last_codes_;
  std::vector<std::vector<std::uint16_t>> bin_of_code_;  // missing included
};

}  // namespace arboost
