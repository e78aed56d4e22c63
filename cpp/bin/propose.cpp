// Cost: about 5 ns a cell and round: the hessians are read in the order of each feature's values,
// which is known, so nothing is sorted. Parallel over features, then over rows.
#include "bin/propose.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "bin/sketch.h"

namespace arboost {
namespace {

constexpr std::size_t piece_rows = 65536;

// Entries of a feature's summary before it is cut: enough that the cuts are hardly more than those
// of an exact one, which for the usual eps is what keeps them within a byte.
double n_entries(double eps) {
  return std::max(65536.0, 16 / eps);
}

// Pieces are summarised apart and none holds more than its share of the entries, so that the error
// is at most one in n_entries: see Summary::cuts for the number of parts.
double most_bins(double eps) {
  return 1 + std::floor(1 / (eps - 2.0 / n_entries(eps) - 1e-8));
}

// The summary of one feature's ranks, weighted by the rows' hessians, from pieces in the order of
// the values. `sums` is scratch memory.
Summary summarise(const Ranks& ranks, std::size_t feature, std::span<const std::uint32_t> hessians,
                  double entries, std::vector<std::int64_t>& sums) {
  constexpr std::uint32_t row_bits = Ranks::begins - 1;
  const std::uint32_t* order = ranks.order(feature);
  const std::size_t n = ranks.n_present[feature];
  std::int64_t total = 0;
  for (const std::uint32_t h : hessians) total += h;
  for (std::size_t i = n; i < ranks.n_rows; ++i) total -= hessians[order[i]];
  Summary summary;
  double first = 0;  // rank that the piece begins with
  for (std::size_t begin = 0, end; begin < n; begin = end) {
    for (end = std::min(begin + piece_rows, n); end < n && order[end] < Ranks::begins;) ++end;
    if (sums.size() < end - begin) sums.resize(end - begin);
    std::int64_t sum = 0;
    std::size_t n_values = 0;  // so far; the sums of the last one are written until it ends
    for (std::size_t i = begin; i < end; ++i) {
      n_values += order[i] >> 31;
      sum += hessians[order[i] & row_bits];
      sums[n_values - 1] = sum;
    }
    const double share =
        static_cast<double>(sum) / static_cast<double>(std::max<std::int64_t>(1, total));
    const auto size = static_cast<std::size_t>(std::ceil(share * entries)) + 2;
    summary.merge(Summary(first, {sums.data(), n_values}, size));
    first += static_cast<double>(n_values);
  }
  return summary;
}

}  // namespace

struct Proposal::Scratch {
  std::vector<std::int64_t> sums;  // running sums over the values of a piece
  std::vector<std::uint16_t> bin_of_rank;
};

Proposal::Proposal(const Ranks& ranks, double eps) : ranks_(ranks), eps_(eps) {
  if (!(eps > 1e-6 && eps < 1))
    throw std::invalid_argument("sketch_eps is " + std::to_string(eps) +
                                ", but it must be above 0.000001 and below 1.");
  const double most = most_bins(eps);
  codes_.n_rows = ranks.n_rows;
  codes_.n_features = ranks.n_features;
  codes_.has_missing = ranks.has_missing;
  std::uint32_t widest = 1;
  for (std::size_t f = 0; f < ranks.n_features; ++f) {
    codes_.n_bins.push_back(
        static_cast<std::uint32_t>(std::min(most, static_cast<double>(ranks.n_bins[f]))));
    widest = std::max(widest, codes_.n_bins[f]);
  }
  if (widest > 65535)
    throw std::invalid_argument("sketch_eps is " + std::to_string(eps) + ", which makes " +
                                std::to_string(widest) +
                                " candidates, but at most 65535 are allowed. Use a larger "
                                "sketch_eps, or tree_method=\"exact\".");
  codes_.width = widest <= 255 ? 1 : 2;
  const std::size_t row_bytes = codes_.n_features * static_cast<std::size_t>(codes_.width);
  codes_.row_stride = (row_bytes + 7) / 8 * 8;
  codes_.by_row = Buffer<std::uint8_t>(codes_.n_rows * codes_.row_stride);
  codes_.by_column = Buffer<std::uint8_t>(codes_.n_rows * row_bytes);
  std::memset(codes_.by_row.data(), 0, codes_.by_row.size());
  codes_.number_slots();
  last_ranks_.resize(ranks.n_features);
}

Proposal::~Proposal() = default;

bool Proposal::changes(std::size_t feature) const {
  return codes_.n_bins[feature] < ranks_.n_bins[feature];
}

void Proposal::update(std::span<const std::uint32_t> hessians, Team& team) {
  while (scratch_.size() < static_cast<std::size_t>(team.size()))
    scratch_.push_back(std::make_unique<Scratch>());
  codes_.width == 1 ? encode<std::uint8_t>(hessians, team) : encode<std::uint16_t>(hessians, team);
  started_ = true;
}

template <class Code>
void Proposal::encode(std::span<const std::uint32_t> hessians, Team& team) {
  std::vector<std::size_t> features;
  for (std::size_t f = 0; f < ranks_.n_features; ++f)
    if (!started_ || changes(f)) features.push_back(f);
  team.for_chunks(0, features.size(), 1, [&](std::size_t i, std::size_t, int member) {
    const std::size_t f = features[i];
    Scratch& scratch = *scratch_[static_cast<std::size_t>(member)];
    propose(f, hessians, scratch);
    const std::uint32_t* ranks = ranks_.column<std::uint32_t>(f);
    const std::uint16_t* bin_of_rank = scratch.bin_of_rank.data();
    Code* codes = codes_.column<Code>(f);
    for (std::size_t row = 0; row < codes_.n_rows; ++row)
      codes[row] = static_cast<Code>(bin_of_rank[ranks[row]]);
  });
  team.for_chunks(0, codes_.n_rows, 16 * block_rows, [&](std::size_t first, std::size_t last, int) {
    const std::size_t stride = codes_.row_stride;
    for (std::size_t begin = first; begin < last; begin += block_rows) {
      const std::size_t end = std::min(begin + block_rows, last);
      for (const std::size_t f : features) {
        const Code* codes = codes_.column<Code>(f);
        std::uint8_t* cell = codes_.by_row.data() + begin * stride + f * sizeof(Code);
        for (std::size_t row = begin; row < end; ++row, cell += stride)
          *reinterpret_cast<Code*>(cell) = codes[row];
      }
    }
  });
}

// Fills last_ranks_ and the scratch's bin_of_rank. The summary is put together from pieces of the
// rows in the order of values.
void Proposal::propose(std::size_t feature, std::span<const std::uint32_t> hessians,
                       Scratch& scratch) {
  const std::uint32_t n_values = ranks_.n_bins[feature];
  auto& last_ranks = last_ranks_[feature];
  last_ranks.clear();
  if (!changes(feature)) {
    for (std::uint32_t rank = 0; rank + 1 < n_values; ++rank) last_ranks.push_back(rank);
  } else {
    const Summary summary = summarise(ranks_, feature, hessians, n_entries(eps_), scratch.sums);
    std::vector<std::size_t> cuts = summary.cuts(eps_);
    // Where nearly all hessians vanish, rounding may ask for a few cuts more than there is room
    // for.
    for (double eps = eps_; cuts.size() >= codes_.n_bins[feature];) cuts = summary.cuts(eps *= 1.1);
    for (const std::size_t i : cuts)
      last_ranks.push_back(static_cast<std::uint32_t>(summary.entries()[i].value));
  }
  last_ranks.push_back(n_values - 1);
  scratch.bin_of_rank.resize(std::size_t{n_values} + 1);
  std::size_t rank = 0;
  for (std::size_t bin = 0; bin < last_ranks.size(); ++bin)
    for (; rank <= last_ranks[bin]; ++rank)
      scratch.bin_of_rank[rank] = static_cast<std::uint16_t>(bin);
  scratch.bin_of_rank[n_values] = static_cast<std::uint16_t>(codes_.n_bins[feature]);
}

}  // namespace arboost
