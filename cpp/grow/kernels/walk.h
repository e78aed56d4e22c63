// Rows of codes -> their leaves: for rows outside a tree's sample, validation rows, and trees
// dropped by DART. About 1 ns a step of a row. With AVX-512 and one-byte codes, all splits of the
// tree are evaluated for 64 rows at once, at about 6 instructions a split: cheaper up to 256
// leaves. Single-threaded; callers split the rows.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#if defined(__AVX512BW__)
#include <immintrin.h>  // masks of 64 rows
#endif

#include "grow/kernels/grow_kernels.h"

namespace arboost::ARBOOST_ISA {
namespace {

constexpr std::size_t walk_lanes = 16;  // rows that walk together: their loads overlap

template <class Code, bool has_sets, class RowAt>
void walk_rows(const WalkArgs& args, std::size_t begin, std::size_t end, RowAt row_at,
               std::uint32_t* leaves) {
  const WalkNode* ARBOOST_RESTRICT nodes = args.nodes;
  const CodeSet* sets = args.sets;
  const auto next = [=](std::uint32_t node, RowId row) {
    const WalkNode at = nodes[node];
    const std::uint32_t code = reinterpret_cast<const Code*>(at.column)[row];
    bool goes_left = (code <= at.bin) | (code == at.missing_left);
    if constexpr (has_sets)
      if (at.set != no_set) goes_left = holds(sets[at.set], code);
    return at.left + (goes_left ? 0u : 1u);
  };
  std::size_t i = begin;
  for (; i + walk_lanes <= end; i += walk_lanes) {
    std::uint32_t node[walk_lanes] = {};
    RowId row[walk_lanes];
    for (std::size_t j = 0; j < walk_lanes; ++j) row[j] = row_at(i + j);
    for (int step = 0; step < args.depth; ++step) {
      std::uint32_t moved = 0;
      for (std::size_t j = 0; j < walk_lanes; ++j) {
        const std::uint32_t to = next(node[j], row[j]);
        moved |= to ^ node[j];
        node[j] = to;
      }
      if (moved == 0) break;
    }
    for (std::size_t j = 0; j < walk_lanes; ++j) leaves[i - begin + j] = node[j];
  }
  for (; i < end; ++i) {
    std::uint32_t node = 0;
    for (int step = 0; step < args.depth; ++step) node = next(node, row_at(i));
    leaves[i - begin] = node;
  }
}

template <class Code, bool has_sets>
void walk_codes(const WalkArgs& args, std::size_t begin, std::size_t end, std::uint32_t* leaves) {
  const TreeRows rows = args.rows;
  const auto all = [](std::size_t i) { return static_cast<RowId>(i); };
  const auto some = [rows](std::size_t i) { return rows.row(i); };
  if (rows.is_all())
    walk_rows<Code, has_sets>(args, begin, end, all, leaves);
  else
    walk_rows<Code, has_sets>(args, begin, end, some, leaves);
}

#if defined(__AVX512BW__)

constexpr std::size_t most_leaves = 256;  // their numbers take one byte

// A tree as a list of comparisons. The leaves are numbered from left to right, so a row's leaf is
// the sum, over the comparisons that send it right, of the leaves on their left.
struct Program {
  struct Comparison {
    const std::uint8_t* column;
    const CodeSet* set;  // null: by bin
    std::uint16_t node, left;
    std::uint8_t bin;
    std::uint8_t missing;  // the missing code where that goes left, or the bin once more
    std::uint8_t leaves_left;
    bool left_splits, right_splits;  // children that are no leaves
  };
  Comparison comparisons[most_leaves];
  std::uint32_t nodes[most_leaves];          // the leaves, by number
  const std::uint8_t* columns[most_leaves];  // that are compared
  std::size_t n_comparisons = 0, n_columns = 0;
  bool has_missing = false;

  explicit Program(const WalkArgs& args) {
    std::uint16_t n_leaves[2 * most_leaves], first_leaf[2 * most_leaves];
    for (std::size_t i = args.n_nodes; i-- > 0;) {
      const std::uint32_t left = args.nodes[i].left;
      n_leaves[i] = left == i ? 1 : static_cast<std::uint16_t>(n_leaves[left] + n_leaves[left + 1]);
    }
    // Level by level: a comparison right after its parent's would wait for its result.
    std::uint16_t order[2 * most_leaves];
    std::size_t n_order = 0;
    order[n_order++] = first_leaf[0] = 0;
    for (std::size_t at = 0; at < n_order; ++at) {
      const std::size_t i = order[at];
      const WalkNode& node = args.nodes[i];
      if (node.left == i) {
        nodes[first_leaf[i]] = static_cast<std::uint32_t>(i);
        continue;
      }
      order[n_order++] = static_cast<std::uint16_t>(node.left);
      order[n_order++] = static_cast<std::uint16_t>(node.left + 1);
      first_leaf[node.left] = first_leaf[i];
      first_leaf[node.left + 1] = static_cast<std::uint16_t>(first_leaf[i] + n_leaves[node.left]);
      std::size_t known = 0;
      while (known < n_columns && columns[known] != node.column) ++known;
      if (known == n_columns) columns[n_columns++] = node.column;
      const auto bin = static_cast<std::uint8_t>(node.bin);
      const bool missing_left = node.missing_left <= 255;
      has_missing |= missing_left;
      comparisons[n_comparisons++] = {
          .column = node.column,
          .set = node.set == no_set ? nullptr : args.sets + node.set,
          .node = static_cast<std::uint16_t>(i),
          .left = static_cast<std::uint16_t>(node.left),
          .bin = bin,
          .missing = missing_left ? static_cast<std::uint8_t>(node.missing_left) : bin,
          .leaves_left = static_cast<std::uint8_t>(n_leaves[node.left]),
          .left_splits = n_leaves[node.left] > 1,
          .right_splits = n_leaves[node.left + 1] > 1};
    }
  }
};

// Mask of the codes, of 64, that are in a set: the highest bit of code c selects a half of the
// set's 32 bytes, a shuffle looks up byte c / 8, and bit c % 8 is tested.
inline __mmask64 in_set(__m512i codes, const CodeSet& set) {
  const auto half = [&](int which) {
    return _mm512_maskz_broadcast_i32x4(
        0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(set.words + 2 * which)));
  };
  const __m512i bits = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201u));
  const __m512i byte = _mm512_and_si512(_mm512_srli_epi16(codes, 3), _mm512_set1_epi8(15));
  const __m512i bit = _mm512_shuffle_epi8(bits, _mm512_and_si512(codes, _mm512_set1_epi8(7)));
  const __m512i found = _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(half(0), byte),
                                                 _mm512_movepi8_mask(codes), half(1), byte);
  return _mm512_test_epi8_mask(found, bit);
}

// The leaf numbers of `groups` times 64 rows, from row `first` of the table on.
// masks[i] has a bit for each row that reaches node i: comparisons share them out to children.
template <std::size_t groups, bool has_missing, bool has_sets>
void run(const Program& program, std::size_t first, std::uint8_t* leaves) {
  __mmask64 masks[2 * most_leaves][groups];
  __m512i found[groups];
  for (std::size_t k = 0; k < groups; ++k) {
    masks[0][k] = ~__mmask64{0};
    found[k] = _mm512_setzero_si512();
  }
  for (std::size_t c = 0; c < program.n_comparisons; ++c) {
    const Program::Comparison& step = program.comparisons[c];
    const __m512i bin = _mm512_set1_epi8(static_cast<char>(step.bin));
    const __m512i passed = _mm512_set1_epi8(static_cast<char>(step.leaves_left));
    __mmask64 reached[groups], right[groups];
    for (std::size_t k = 0; k < groups; ++k) {
      const __m512i codes = _mm512_loadu_si512(step.column + first + 64 * k);
      reached[k] = _load_mask64(&masks[step.node][k]);
      right[k] = _mm512_mask_cmpgt_epu8_mask(reached[k], codes, bin);
      if constexpr (has_missing)
        right[k] = _mm512_mask_cmpneq_epu8_mask(right[k], codes,
                                                _mm512_set1_epi8(static_cast<char>(step.missing)));
      if constexpr (has_sets)
        if (step.set != nullptr) right[k] = _kandn_mask64(in_set(codes, *step.set), reached[k]);
      found[k] = _mm512_mask_add_epi8(found[k], right[k], found[k], passed);
    }
    if (step.left_splits)
      for (std::size_t k = 0; k < groups; ++k) masks[step.left][k] = masks[step.node][k] ^ right[k];
    if (step.right_splits)
      for (std::size_t k = 0; k < groups; ++k) _store_mask64(&masks[step.left + 1][k], right[k]);
  }
  for (std::size_t k = 0; k < groups; ++k) _mm512_storeu_si512(leaves + 64 * k, found[k]);
}

// All rows of the table in order, as far as whole groups go; returns where they end.
std::size_t walk_together(const WalkArgs& args, std::size_t begin, std::size_t end,
                          std::uint32_t* leaves) {
  constexpr std::size_t groups = 2, ahead = 2 * 64 * groups;
  const Program program(args);
  std::uint8_t numbers[64 * groups];
  std::size_t i = begin;
  for (; i + sizeof numbers <= end; i += sizeof numbers) {
    // Too many columns for the hardware prefetcher.
    for (std::size_t c = 0; c < program.n_columns; ++c)
      for (std::size_t k = 0; k < groups; ++k)
        _mm_prefetch(reinterpret_cast<const char*>(program.columns[c] + i + ahead + 64 * k),
                     _MM_HINT_T0);
    if (args.sets != nullptr)
      run<groups, true, true>(program, i, numbers);
    else
      program.has_missing ? run<groups, true, false>(program, i, numbers)
                          : run<groups, false, false>(program, i, numbers);
    for (std::size_t j = 0; j < sizeof numbers; ++j)
      leaves[i - begin + j] = program.nodes[numbers[j]];
  }
  return i;
}

#endif

void walk(const WalkArgs& args, std::size_t begin, std::size_t end, std::uint32_t* leaves) {
#if defined(__AVX512BW__)
  if (args.width == 1 && args.rows.is_all() && args.n_nodes < 2 * most_leaves) {
    const std::size_t done = walk_together(args, begin, end, leaves);
    leaves += done - begin;
    begin = done;
  }
#endif
  const auto run_codes = [&]<class Code>() {
    args.sets == nullptr ? walk_codes<Code, false>(args, begin, end, leaves)
                         : walk_codes<Code, true>(args, begin, end, leaves);
  };
  if (args.width == 1)
    run_codes.template operator()<std::uint8_t>();
  else if (args.width == 2)
    run_codes.template operator()<std::uint16_t>();
  else
    run_codes.template operator()<std::uint32_t>();
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
