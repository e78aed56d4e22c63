// Split candidates of a node -> those that are about sketch_eps of its hessian apart. Linear in the
// entries: prefix sums up to each value or bin that occurs in the node, and its code.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include <cstddef>
#include <cstdint>

#include "grow/search/gain.h"
#include "grow/search/search_data.h"
#include "tree/tree_rows.h"  // sum_h

namespace arboost::ARBOOST_ISA {
namespace {

// State between blocks of entries: the hessian up to the last kept entry, and up to the last one.
struct Thinning {
  std::int64_t kept_h = 0, seen_h = 0;
  bool seen_kept = true;  // or that value's entry waits in slot 0 of the next block
};

void copy_entry(std::size_t from, std::size_t to, std::size_t channels, SplitScratch& scratch) {
  scratch.bins[to] = scratch.bins[from];
  for (std::size_t c = 0; c < channels; ++c)
    scratch.prefix[c * scratch.stride + to] = scratch.prefix[c * scratch.stride + from];
}

// Keeps only entries that are more than p.apart of the hessian apart, and those on both sides of a
// value of at least twice that: the rule of proposals for a round (bin/propose.cpp). The node's
// last entry is kept. Returns the number of kept entries; the block's last entry follows them if it
// was not kept.
template <bool single>
std::size_t thin(const GainParams& p, std::size_t m, bool is_last, Thinning& state,
                 SplitScratch& scratch) {
  const std::size_t channels = single ? 1 : static_cast<std::size_t>(p.channels);
  const std::size_t outputs = single ? 1 : static_cast<std::size_t>(p.outputs);
  const std::int64_t* prefix = scratch.prefix.data();
  Thinning now = state;
  std::size_t kept = 0;
  // An entry that waits in slot 0 was seen before.
  for (std::size_t i = now.seen_kept ? 0 : 1; i < m; ++i) {
    std::int64_t h = 0;
    for (std::size_t k = 0; k < outputs; ++k) h += sum_h(prefix[k * scratch.stride + i]);
    if (!now.seen_kept && h - now.seen_h >= 2 * p.apart) {
      copy_entry(i - 1, kept++, channels, scratch);
      now.kept_h = now.seen_h;
    }
    now.seen_kept = h - now.kept_h > p.apart || (is_last && i + 1 == m);
    now.seen_h = h;
    if (!now.seen_kept) continue;
    copy_entry(i, kept++, channels, scratch);
    now.kept_h = h;
  }
  if (!now.seen_kept) copy_entry(m - 1, kept, channels, scratch);
  state = now;
  return kept;
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
