// Rows -> the leaves they end in, over codes instead of values: for rows that were not in a tree's
// sample, rows kept for validation, and trees that are dropped. About 1 ns a step of a row.
//
// Included by kernels_table.h inside each instruction set's variant.
#pragma once

#include "kernels.h"

namespace arboost::ARBOOST_ISA {
namespace {

constexpr std::size_t walk_lanes = 16;  // rows that walk together: their loads overlap

template <class Code, class RowAt>
void walk_rows(const WalkArgs& args, std::size_t begin, std::size_t end, RowAt row_at,
               double* scores) {
  const Code* columns = args.codes.column<Code>(0);
  const std::size_t n_rows = args.codes.n_rows;
  const WalkNode* ARBOOST_RESTRICT nodes = args.nodes;
  const auto finish = [&](std::size_t i, std::uint32_t node) {
    double* score = scores + i * args.score_stride;
    for (std::size_t k = 0; k < args.width; ++k)
      score[k] += args.factor * args.values[node * args.width + k];
  };
  const auto next = [=](std::uint32_t node, RowId row) {
    const WalkNode at = nodes[node];
    const std::uint32_t code = columns[at.feature * n_rows + row];
    const bool goes_left = (code <= at.bin) | (code == at.missing_left);
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
    for (std::size_t j = 0; j < walk_lanes; ++j) finish(i + j, node[j]);
  }
  for (; i < end; ++i) {
    std::uint32_t node = 0;
    for (int step = 0; step < args.depth; ++step) node = next(node, row_at(i));
    finish(i, node);
  }
}

template <class Code>
void walk_codes(const WalkArgs& args, std::size_t begin, std::size_t end, double* scores) {
  const TreeRows rows = args.rows;
  if (rows.is_all())
    walk_rows<Code>(args, begin, end, [](std::size_t i) { return static_cast<RowId>(i); }, scores);
  else
    walk_rows<Code>(args, begin, end, [rows](std::size_t i) { return rows.row(i); }, scores);
}

void walk(const WalkArgs& args, std::size_t begin, std::size_t end, double* scores) {
  if (args.codes.width == 1)
    walk_codes<std::uint8_t>(args, begin, end, scores);
  else if (args.codes.width == 2)
    walk_codes<std::uint16_t>(args, begin, end, scores);
  else
    walk_codes<std::uint32_t>(args, begin, end, scores);
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
