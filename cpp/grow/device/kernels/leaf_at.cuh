// Walk of a row through a tree.
#pragma once

#include "grow/device/kernels/rows.cuh"

// The leaf of a row in a tree.
inline std::uint32_t leaf_at(const DeviceCodes& codes, const WalkNode* tree, const NodeTest* tests,
                             RowId row) {
  const std::uint8_t* row_codes = codes.by_row + static_cast<std::uint64_t>(row) * codes.row_stride;
  std::uint32_t at = 0;
  for (;;) {
    const uint4 loaded = *reinterpret_cast<const uint4*>(tree + at);
    const WalkNode node{loaded.x, loaded.y, loaded.z, loaded.w};
    if (node.left == 0) return at;
    bool left;
    if (node.store & is_unusual) {
      left = goes_left(tests[at].rule, code_at(codes, tests[at], row, true));
    } else {
      const std::uint32_t code = row_codes[node.store];
      left = code <= node.bin || code == node.missing_left;
    }
    at = node.left + (left ? 0 : 1);
  }
}
