// Ranks and hessians -> the bins of a round, for split candidates that are proposed anew each round
// (Chen and Guestrin 2016, section 3.3, the global variant). The binned table is rewritten in
// place, with the largest rank of each bin.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/parallel.h"
#include "bin/rank.h"
#include "table/codes.h"

namespace arboost {

class Proposal {
 public:
  // Within a bin, all values but the largest weigh at most `eps` of the feature's total hessian.
  // Features with no more values than bins have one bin a value, which never changes.
  Proposal(const Ranks& ranks, double eps);
  ~Proposal();

  // Not before the first update.
  const Codes& codes() const { return codes_; }
  bool is_ready() const { return started_; }

  // Proposes bins for the given hessians: one for each row of the ranks, 0 for rows of zero weight.
  void update(std::span<const std::uint32_t> hessians, Team& team);

  // The largest rank in a bin; bins behind the last one in use end where that does.
  std::uint32_t last_rank(std::size_t feature, std::size_t bin) const {
    const auto& ranks = last_ranks_[feature];
    return ranks[std::min(bin, ranks.size() - 1)];
  }

 private:
  struct Scratch;
  template <class Code>
  void encode(std::span<const std::uint32_t> hessians, Team& team);
  template <class Code>
  const Code* spread(std::size_t feature, Scratch& scratch) const;
  void summarise(std::size_t feature, std::span<const std::uint32_t> hessians,
                 Scratch& scratch) const;
  void propose(std::size_t feature, std::span<const std::uint32_t> hessians, Scratch& scratch);
  bool changes(std::size_t feature) const;

  const Ranks& ranks_;
  double eps_;
  Codes codes_;
  bool started_ = false;  // the features that never change are encoded
  std::vector<std::vector<std::uint32_t>> last_ranks_;
  std::vector<std::unique_ptr<Scratch>> scratch_;  // [member]
};

}  // namespace arboost
