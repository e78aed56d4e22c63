// Elements of a node -> elements of its two children, without branches: the next cut of a tree is
// as hard to foresee for the CPU as the data. About 1 ns a row. Single-threaded; callers split the
// node into chunks. The order inside a child may change: sums of integers do not depend on it.
//
// Included by kernels_table.h inside each instruction set's variant.
#pragma once

#include "kernels.h"

namespace arboost::ARBOOST_ISA {
namespace {

template <class Code>
std::size_t partition_code(const Code* column, const SplitRule& rule, const Element* elements,
                           std::size_t n, Element* left_begin, Element* right_end) {
  const std::uint32_t bin = rule.bin;
  const std::uint32_t missing_left = rule.missing_left;
  Element* left = left_begin;
  Element* right = right_end - 1;
  for (std::size_t i = 0; i < n; ++i) {
    const Element e = elements[i];
    const std::uint32_t code = column[row_of(e)];
    const std::size_t goes_left = (code <= bin) | (code == missing_left);
    *left = e;
    *right = e;
    left += goes_left;
    right -= 1 - goes_left;
  }
  return static_cast<std::size_t>(left - left_begin);
}

std::size_t partition(const Codes& codes, std::size_t feature, const SplitRule& rule,
                      const Element* elements, std::size_t n, Element* left_begin,
                      Element* right_end) {
  if (codes.width == 1)
    return partition_code(codes.column<std::uint8_t>(feature), rule, elements, n, left_begin,
                          right_end);
  return partition_code(codes.column<std::uint16_t>(feature), rule, elements, n, left_begin,
                        right_end);
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
