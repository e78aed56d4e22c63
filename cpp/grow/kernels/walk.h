// Rows of codes -> their leaves: for rows outside a tree's sample, validation rows, and trees
// dropped by DART. About 1 ns a step of a row. With AVX2, one-byte codes and up to 256 leaves,
// 512 rows of the table walk together (grow/kernels/walk_together.h) where most of them, or enough,
// are wanted. Single-threaded; callers split the rows.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include <algorithm>  // fill_n

#include "grow/kernels/grow_kernels.h"
#include "grow/kernels/walk_together.h"

namespace arboost::ARBOOST_ISA {
namespace {

// Rows that walk side by side: their loads overlap. Those that have reached a leaf leave the others
// every few steps, because the paths of a deep tree differ in length.
constexpr std::size_t walk_block = 256;
constexpr int first_steps = 8, more_steps = 4;

struct WalkingRow {
  std::uint32_t node, number;
  std::size_t offset;  // of its codes from those of row 0
};

template <class Code, bool has_sets, class RowAt>
void walk_rows(const WalkArgs& args, std::size_t begin, std::size_t end, RowAt row_at,
               std::uint32_t* leaves) {
  const WalkNode* ARBOOST_RESTRICT nodes = args.nodes;
  const CodeSet* sets = args.sets;
  const auto next = [=](std::uint32_t node, std::size_t offset) {
    const WalkNode at = nodes[node];
    const std::uint32_t code = *reinterpret_cast<const Code*>(at.column + offset);
    bool goes_left = (code <= at.bin) | (code == at.missing_left);
    if constexpr (has_sets)
      if (at.set != no_set) goes_left = holds(sets[at.set], code);
    return at.left + (goes_left ? 0u : 1u);
  };
  if (nodes[0].left == 0) {  // one leaf, whose codes are nowhere
    std::fill_n(leaves, end - begin, 0u);
    return;
  }
  WalkingRow rows[walk_block];
  for (std::size_t first = begin; first < end; first += walk_block) {
    std::size_t n = end - first < walk_block ? end - first : walk_block;
    for (std::size_t j = 0; j < n; ++j)
      rows[j] = {0, static_cast<std::uint32_t>(j), row_at(first + j) * args.stride};
    for (int steps = first_steps; n > 0; steps = more_steps) {
      for (int step = 0; step < steps; ++step)
        for (std::size_t j = 0; j < n; ++j) rows[j].node = next(rows[j].node, rows[j].offset);
      std::size_t n_walking = 0;
      for (std::size_t j = 0; j < n; ++j) {
        const WalkingRow row = rows[j];
        leaves[first - begin + row.number] = row.node;
        rows[n_walking] = row;
        n_walking += nodes[row.node].left != row.node ? 1 : 0;
      }
      n = n_walking;
    }
  }
}

// use(row_at) with the function from the numbers of rows to rows of the table: one for each kind,
// without conditions, which compilers turn into masked gathers.
template <class Use>
void with_rows(const TreeRows& rows, Use use) {
  const std::uint32_t* positions = rows.positions;
  const RowId* table_rows = rows.table_rows;
  if (rows.is_all())
    use([](std::size_t i) { return static_cast<RowId>(i); });
  else if (positions == nullptr)
    use([table_rows](std::size_t i) { return table_rows[i]; });
  else if (table_rows == nullptr)
    use([positions](std::size_t i) { return RowId{positions[i]}; });
  else
    use([positions, table_rows](std::size_t i) { return table_rows[positions[i]]; });
}

template <class Code, bool has_sets>
void walk_codes(const WalkArgs& args, std::size_t begin, std::size_t end, std::uint32_t* leaves) {
  with_rows(args.rows,
            [&](auto row_at) { walk_rows<Code, has_sets>(args, begin, end, row_at, leaves); });
}

void walk(const WalkArgs& args, std::size_t begin, std::size_t end, std::uint32_t* leaves) {
#if defined(ARBOOST_WALK_TOGETHER)
  if (args.program != nullptr && !args.rows.is_all())
    return with_rows(args.rows,
                     [&](auto row_at) { walk_some_together(args, begin, end, row_at, leaves); });
  if (args.program != nullptr) {
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
