// The rows of a small node -> its subtree of random thresholds, with the draws and scores of
// grow/search/few_cuts.h. About 0.3 us a split. Single-threaded.
//
// Codes lie column by column, all rows of a column in a register, and a node is a mask of its rows:
// no row moves, and sums of values of two kinds, as those of two classes, are counts of bits.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include <bit>  // countr_zero, popcount
#if defined(__AVX2__)
#include <immintrin.h>  // 32 rows at once
#elif defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>  // 16 x 16 bytes
#endif

#include "grow/kernels/draw.h"
#include "grow/kernels/grow_kernels.h"
#include "grow/search/few_cuts.h"
#include "grow/search/gain.h"
#include "grow/search/node_score.h"
#include "grow/search/random_cut.h"

namespace arboost::ARBOOST_ISA {
namespace {

using RowMask = std::uint32_t;
static_assert(masked_rows == 32 && masked_rows <= padded_rows);

// 16 rows of 16 codes -> 16 columns.
inline void transpose_tile(const std::uint8_t* rows, std::size_t stride, std::uint8_t* columns) {
  constexpr std::size_t n = 16;
#if defined(__SSE2__) || defined(_M_X64)
  __m128i from[n], to[n];
  for (std::size_t i = 0; i < n; ++i)
    from[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + i * stride));
  for (int bit = 0; bit < 4; ++bit) {  // of the row number, into that of the column
    for (std::size_t i = 0; i < n / 2; ++i) {
      to[2 * i] = _mm_unpacklo_epi8(from[i], from[i + n / 2]);
      to[2 * i + 1] = _mm_unpackhi_epi8(from[i], from[i + n / 2]);
    }
    for (std::size_t i = 0; i < n; ++i) from[i] = to[i];
  }
  for (std::size_t j = 0; j < n; ++j)
    _mm_store_si128(reinterpret_cast<__m128i*>(columns + j * masked_rows), to[j]);
#else
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) columns[j * masked_rows + i] = rows[i * stride + j];
#endif
}

// The rows of code up to `last` in a column.
inline RowMask rows_up_to(const std::uint8_t* codes, std::uint32_t last) {
#if defined(__AVX2__)
  const __m256i code = _mm256_load_si256(reinterpret_cast<const __m256i*>(codes));
  const __m256i limit = _mm256_set1_epi8(static_cast<char>(last));
  return static_cast<RowMask>(
      _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(code, limit), limit)));
#else
  RowMask rows = 0;
  for (std::size_t i = 0; i < masked_rows; ++i) rows |= RowMask{codes[i] <= last} << i;
  return rows;
#endif
}

struct CodeEnds {
  std::uint32_t low, high;
};

// The lowest and the highest code of some rows.
inline CodeEnds ends_of(const std::uint8_t* codes, RowMask rows) {
#if defined(__AVX2__)
  const __m256i code = _mm256_load_si256(reinterpret_cast<const __m256i*>(codes));
  const __m256i octet =
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit = _mm256_set1_epi64x(static_cast<std::int64_t>(0x8040201008040201u));
  const __m256i mask = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(rows)), octet);
  const __m256i is_out = _mm256_cmpeq_epi8(_mm256_and_si256(mask, bit), _mm256_setzero_si256());
  const auto lowest = [](__m256i lanes) {
    const __m128i half =
        _mm_min_epu8(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
    const __m128i pairs = _mm_min_epu8(half, _mm_srli_epi16(half, 8));  // 0 in the high bytes
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_minpos_epu16(pairs))) & 255;
  };
  const __m256i inverse = _mm256_xor_si256(code, _mm256_set1_epi8(-1));
  return {lowest(_mm256_or_si256(code, is_out)), 255 - lowest(_mm256_or_si256(inverse, is_out))};
#else
  std::uint8_t low = 255, high = 0;
  for (std::size_t i = 0; i < masked_rows; ++i) {
    const auto is_in = static_cast<std::uint8_t>(-(rows >> i & 1));
    const auto code = static_cast<std::uint8_t>(codes[i] & is_in);
    const auto padded = static_cast<std::uint8_t>(codes[i] | ~is_in);
    low = padded < low ? padded : low;
    high = code > high ? code : high;
  }
  return {low, high};
#endif
}

// True if two rows have the same ratio g / h; hessians are above 0.
inline bool have_one_ratio(std::int64_t a, std::int64_t b) {
  return std::int64_t{sum_g(a)} * sum_h(b) == std::int64_t{sum_g(b)} * sum_h(a);
}

class MaskedSubtree {
 public:
  MaskedSubtree(const CutTree& tree, const FewRows& rows, SplitScratch& scratch)
      : tree_(tree), rows_(rows), scratch_(scratch), first_(rows.values[0]), second_(first_) {
    constexpr std::size_t tile = 16;
    for (std::size_t i = 0; i < rows.n; i += tile)
      for (std::size_t j = 0; j < rows.dense.lanes; j += tile)
        transpose_tile(rows.dense.first + i * rows.dense.stride + j, rows.dense.stride,
                       codes_[j] + i);
    for (std::size_t i = 1; i < rows.n; ++i) {
      const std::int64_t value = value_of(i);
      if (value == first_) continue;
      if (others_ == 0) second_ = value;
      others_ |= RowMask{1} << i;
      has_two_kinds_ &= value == second_;
    }
    kinds_agree_ = has_two_kinds_ && have_one_ratio(first_, second_);
  }

  std::size_t grow(std::int64_t depth, std::uint64_t path, SubtreeNode* nodes,
                   std::uint8_t* order) {
    std::size_t n_nodes = 1, n_open = 1;
    Open open[masked_rows];
    open[0] = {~RowMask{0} >> (masked_rows - rows_.n), 0, rows_.totals[0], depth, path};
    nodes[0] = {.begin = 0, .end = static_cast<std::uint32_t>(rows_.n)};
    while (n_open > 0) {
      const Open at = open[--n_open];
      SubtreeNode& node = nodes[at.node];
      const RowMask left_rows = find(at, node);
      if (left_rows == 0) {
        for (RowMask rest = at.rows, k = node.begin; rest != 0; rest &= rest - 1)
          order[k++] = static_cast<std::uint8_t>(std::countr_zero(rest));
        continue;
      }
      const auto left = static_cast<std::uint32_t>(n_nodes);
      const std::uint32_t middle = node.begin + count(left_rows);
      const std::int64_t left_sum = sum_of(left_rows);
      node.left = left - at.node;
      nodes[n_nodes++] = {.begin = node.begin, .end = middle};
      nodes[n_nodes++] = {.begin = middle, .end = node.end};
      open[n_open++] = {at.rows & ~left_rows, left + 1, at.sum - left_sum, at.depth + 1,
                        mix_bits(2 * at.path + 1)};
      open[n_open++] = {left_rows, left, left_sum, at.depth + 1, mix_bits(2 * at.path)};
    }
    return n_nodes;
  }

 private:
  struct Open {
    RowMask rows;
    std::uint32_t node;
    std::int64_t sum, depth;
    std::uint64_t path;
  };

  static std::uint32_t count(RowMask rows) {
    return static_cast<std::uint32_t>(std::popcount(rows));
  }
  std::int64_t value_of(std::size_t row) const { return rows_.values[row * rows_.value_stride]; }
  std::int64_t first_value(RowMask rows) const {
    return value_of(static_cast<std::size_t>(std::countr_zero(rows)));
  }

  std::int64_t sum_of(RowMask rows) const {
    if (has_two_kinds_) return count(rows & ~others_) * first_ + count(rows & others_) * second_;
    std::int64_t sum = 0;
    for (; rows != 0; rows &= rows - 1) sum += first_value(rows);
    return sum;
  }

  bool is_pure(RowMask rows) const {
    if (has_two_kinds_) return kinds_agree_ || (rows & others_) == 0 || (rows & ~others_) == 0;
    const std::int64_t value = first_value(rows);
    while ((rows &= rows - 1) != 0)
      if (!have_one_ratio(value, first_value(rows))) return false;
    return true;
  }

  // Completes a node that is split, and returns the rows on the left; 0 if it stays a leaf.
  RowMask find(const Open& at, SubtreeNode& node) {
    if (at.depth >= tree_.max_depth || count(at.rows) < tree_.min_rows ||
        sum_h(at.sum) < tree_.min_h || is_pure(at.rows))
      return 0;
    const std::uint64_t draw_key = counter_hash(tree_.draw_state, at.path);
    const std::uint64_t node_key = mix_bits(tree_.cut_key + at.path);
    const FeatureList& all = tree_.features;
    // All cuts between two rows are one split.
    const std::size_t most = count(at.rows) == 2 ? 1 : 2 * few_features;
    std::uint64_t drawn = draw_bits(draw_key, all.first, all.n, tree_.n_drawn);
    n_cuts_ = 0;
    for (; drawn != 0 && n_cuts_ < most; drawn &= drawn - 1)
      add_cuts(at, all.first[std::countr_zero(drawn)], node_key);
    if (n_cuts_ == 0 && tree_.allow_zero_gain) add_further_cuts(at, draw_key, node_key);
    if (n_cuts_ == 0) return 0;
    const double score = side_score<true>(tree_.gain, sum_g(at.sum), sum_h(at.sum));
    const double floor =
        score_floor(tree_.gain, &at.sum, score, tree_.min_gain, tree_.allow_zero_gain);
    const std::size_t best =
        find_best_cut(tree_.gain, {n_cuts_, &at.sum, nullptr}, floor, scratch_);
    if (best == n_cuts_) return 0;
    const Cut& cut = cuts_[best];
    node.feature = static_cast<std::int32_t>(cut.feature);
    node.bin = cut.bin;
    const double gain = scratch_.scores[best] - score;
    node.gain = gain < 0 ? 0.0 : gain;
    node.missing_left = cut.missing_seen
                            ? cut.missing_left
                            : 2 * std::int64_t{sum_h(scratch_.prefix[best])} >= sum_h(at.sum);
    return left_rows_[best];
  }

  // The cut of a feature; two where missing values may go both ways, and none of a constant one.
  void add_cuts(const Open& at, std::uint32_t feature, std::uint64_t node_key) {
    const std::uint8_t* codes = codes_[rows_.dense.columns[feature]];
    const std::uint32_t n_bins = rows_.codes->n_bins[feature];
    RowMask missing = 0;
    if (rows_.codes->has_missing[feature] != 0) missing = at.rows & ~rows_up_to(codes, n_bins - 1);
    if (missing == at.rows) return;
    const auto [low, high] = ends_of(codes, at.rows & ~missing);
    if (low == high && missing != 0)  // missing values go right
      return add_cut({feature, n_bins - 1, true, false, codes}, at.rows & ~missing);
    const std::uint32_t bin =
        draw_cut(cut_key(node_key, feature), tree_.cut_values[feature], low, high);
    const RowMask left = at.rows & rows_up_to(codes, bin);
    add_cut({feature, bin, missing != 0, false, codes}, left);
    n_cuts_ -= low == high ? 1 : 0;  // not a branch, which would be unpredictable
    if (missing != 0) add_cut({feature, bin, true, true, codes}, left | missing);
  }

  void add_cut(const Cut& cut, RowMask left_rows) {
    cuts_[n_cuts_] = cut;
    left_rows_[n_cuts_] = left_rows;
    scratch_.prefix[n_cuts_++] = sum_of(left_rows);
  }

  // Where all drawn features are constant: of the next one in the order of draws that is not.
  void add_further_cuts(const Open& at, std::uint64_t draw_key, std::uint64_t node_key) {
    std::uint64_t lowest = ~std::uint64_t{0};
    std::uint32_t next = 0;
    for (std::size_t j = 0; j < tree_.features.n; ++j) {
      const std::uint32_t feature = tree_.features.first[j];
      const std::uint64_t rank = mix_bits(mix_bits(draw_key + feature));
      add_cuts(at, feature, node_key);
      const bool is_next = n_cuts_ > 0 && rank <= lowest;
      n_cuts_ = 0;
      lowest = is_next ? rank : lowest;
      next = is_next ? feature : next;
    }
    add_cuts(at, next, node_key);
  }

  const CutTree& tree_;
  const FewRows& rows_;
  SplitScratch& scratch_;
  // Values of rows are of two kinds, that of the others is the second.
  std::int64_t first_, second_;
  RowMask others_ = 0;
  bool has_two_kinds_ = true, kinds_agree_ = false;
  std::size_t n_cuts_ = 0;  // of the node; their left sums are in scratch.prefix
  Cut cuts_[2 * few_features];
  RowMask left_rows_[2 * few_features];
  alignas(32) std::uint8_t codes_[most_lanes][masked_rows];
};

std::size_t grow_masked(const CutTree& tree, const FewRows& rows, std::int64_t depth,
                        std::uint64_t path, SplitScratch& scratch, SubtreeNode* nodes,
                        std::uint8_t* order) {
  return MaskedSubtree(tree, rows, scratch).grow(depth, path, nodes, order);
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
