// Cost: about 5 ns a cell and round. The rows are already sorted by each feature, so no sort is
// needed. Parallel over features, then over rows.
#include "bin/propose.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "bin/edges/sketch.h"

namespace arboost {
namespace {

constexpr std::size_t piece_rows = 65536;

// Prefetch distance in rows: rows sorted by value are scattered in the table.
constexpr std::size_t ahead = 32;

// Entries of a feature's summary before it is cut: enough that the cuts are hardly more than those
// of an exact one, which for the usual eps is what keeps them within a byte.
double n_entries(double eps) {
  return std::max(16384.0, 16 / eps);
}

// No piece has less than its share of the entries, so that between two of them lies at most one
// part in n_entries of the weight. The entries themselves are exact: pieces are pruned once, and do
// not overlap. So each part but the last weighs more than eps less that (see Summary::cuts).
double most_bins(double eps) {
  return 1 + std::floor(1 / (eps - 1 / n_entries(eps) - 1e-8));
}

}  // namespace

// Memory of one thread, kept from one feature to the next.
struct Proposal::Scratch {
  std::vector<std::int64_t> sums;  // running sums over the values of a piece
  Summary piece, summary;
  std::vector<std::uint32_t> bin_of_rank;
};

// The summary of one feature's ranks, weighted by the rows' hessians, from pieces of the rows in
// the order of the values.
void Proposal::summarise(std::size_t feature, std::span<const std::uint32_t> hessians,
                         Scratch& scratch) const {
  constexpr std::uint32_t row_bits = Ranks::begins - 1;
  const std::uint32_t* order = ranks_.order(feature);
  const std::size_t n = ranks_.n_present[feature];
  std::int64_t total = 0;
  for (const std::uint32_t h : hessians) total += h;
  for (std::size_t i = n; i < ranks_.n_rows; ++i) total -= hessians[order[i]];
  const double entries_per_unit =
      n_entries(eps_) / static_cast<double>(std::max<std::int64_t>(1, total));
  scratch.summary.clear();
  double first = 0;  // rank that the piece begins with
  for (std::size_t begin = 0, end; begin < n; begin = end) {
    for (end = std::min(begin + piece_rows, n); end < n && order[end] < Ranks::begins;) ++end;
    if (scratch.sums.size() < end - begin) scratch.sums.resize(end - begin);
    std::int64_t* sums = scratch.sums.data();
    std::int64_t sum = 0;
    std::size_t n_values = 0;  // so far; the sum up to the last one is written until it ends
    for (std::size_t i = begin; i < end; ++i) {
      prefetch(&hessians[order[i + ahead < n ? i + ahead : i] & row_bits]);
      n_values += order[i] >> 31;
      sum += hessians[order[i] & row_bits];
      sums[n_values - 1] = sum;
    }
    const double share = static_cast<double>(sum) * entries_per_unit;
    scratch.piece.assign(first, {sums, n_values}, static_cast<std::size_t>(std::ceil(share)) + 2);
    scratch.summary.merge(scratch.piece);
    first += static_cast<double>(n_values);
  }
}

Proposal::Proposal(const Ranks& ranks, double eps) : ranks_(ranks), eps_(eps) {
  if (!(eps > 1e-6 && eps < 1))
    throw std::invalid_argument("sketch_eps is " + std::to_string(eps) +
                                ", but it must be above 0.000001 and below 1.");
  const double most = most_bins(eps);
  codes_.n_rows = ranks.n_rows;
  codes_.n_features = ranks.n_features;
  codes_.has_missing = ranks.has_missing;
  codes_.give_own_places();
  codes_.is_category = ranks.is_category;
  std::uint32_t widest = 1;
  for (std::size_t f = 0; f < ranks.n_features; ++f) {
    const double room = ranks.has_levels(f) ? 255 : most;  // categories keep their levels
    codes_.n_bins.push_back(
        static_cast<std::uint32_t>(std::min(room, static_cast<double>(ranks.n_bins[f]))));
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
  codes_.edges.resize(ranks.n_features);
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
    const Code* bin_of_rank = spread<Code>(f, scratch);
    const std::uint32_t* ranks = ranks_.column<std::uint32_t>(f);
    Code* codes = codes_.column<Code>(f);
    for (std::size_t row = 0; row < codes_.n_rows; ++row) codes[row] = bin_of_rank[ranks[row]];
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

// Fills last_ranks_ and the edges.
void Proposal::propose(std::size_t feature, std::span<const std::uint32_t> hessians,
                       Scratch& scratch) {
  const std::uint32_t n_values = ranks_.n_bins[feature];
  auto& last_ranks = last_ranks_[feature];
  last_ranks.clear();
  if (!changes(feature)) {
    for (std::uint32_t rank = 0; rank + 1 < n_values; ++rank) last_ranks.push_back(rank);
  } else {
    summarise(feature, hessians, scratch);
    const Summary& summary = scratch.summary;
    std::vector<std::size_t> cuts = summary.cuts(eps_);
    // Where nearly all hessians vanish, rounding may ask for a few cuts more than there is room
    // for.
    for (double eps = eps_; cuts.size() >= codes_.n_bins[feature];) cuts = summary.cuts(eps *= 1.1);
    for (const std::size_t i : cuts)
      last_ranks.push_back(static_cast<std::uint32_t>(summary.entries()[i].value));
  }
  auto& edges = codes_.edges[feature];
  edges.clear();
  for (const std::uint32_t rank : last_ranks) edges.push_back(ranks_.edges[feature][rank]);
  last_ranks.push_back(n_values - 1);
}

// The bin of every rank, and of missing values.
template <class Code>
const Code* Proposal::spread(std::size_t feature, Scratch& scratch) const {
  const std::size_t n_values = ranks_.n_bins[feature];
  if (scratch.bin_of_rank.size() < n_values + 1) scratch.bin_of_rank.resize(n_values + 1);
  auto* bin_of_rank = reinterpret_cast<Code*>(scratch.bin_of_rank.data());
  Code* at = bin_of_rank;
  const auto& last_ranks = last_ranks_[feature];
  for (std::size_t bin = 0; bin < last_ranks.size(); ++bin) {
    Code* end = bin_of_rank + last_ranks[bin] + 1;
    std::fill(at, end, static_cast<Code>(bin));
    at = end;
  }
  *at = static_cast<Code>(codes_.n_bins[feature]);
  return bin_of_rank;
}

}  // namespace arboost
