// Elements of a node -> elements of its two children, without branches: the next cut of a tree is
// as hard to foresee for the CPU as the data. About 1 ns a row. Single-threaded; callers split the
// node into chunks. The order inside a child may change: sums of integers do not depend on it.
//
// Included by kernels_table.h inside each instruction set's variant.
#pragma once

#include "kernels.h"

namespace arboost::ARBOOST_ISA {
namespace {

// goes_left(code) is 0 or 1. After i elements, n_left of them are on the left and i - n_left on the
// right; both places are written and the one that was meant is kept.
template <class Code, class GoesLeft>
std::size_t partition_by(const Code* column, GoesLeft goes_left, const Element* elements,
                         std::size_t n, Element* left, Element* right_end) {
  Element* right = right_end - 1;
  std::size_t n_left = 0;
  const auto place = [&](std::size_t i, Element e, std::size_t is_left) {
    left[n_left] = e;
    *(right - (i - n_left)) = e;
    n_left += is_left;
  };
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const Element e[4] = {elements[i], elements[i + 1], elements[i + 2], elements[i + 3]};
    std::size_t is_left[4];
    for (int j = 0; j < 4; ++j) is_left[j] = goes_left(column[row_of(e[j])]);
    for (std::size_t j = 0; j < 4; ++j) place(i + j, e[j], is_left[j]);
  }
  for (; i < n; ++i) place(i, elements[i], goes_left(column[row_of(elements[i])]));
  return n_left;
}

std::size_t partition(const std::uint8_t* column, int width, const SplitRule& rule,
                      const Element* elements, std::size_t n, Element* left_begin,
                      Element* right_end) {
  const std::uint32_t bin = rule.bin, missing_left = rule.missing_left;
  const auto run = [&]<class Code>(auto goes_left) {
    return partition_by(reinterpret_cast<const Code*>(column), goes_left, elements, n, left_begin,
                        right_end);
  };
  if (width == 1) {
    std::uint8_t table[256];  // one look-up is shorter than two comparisons
    for (std::uint32_t code = 0; code < 256; ++code)
      table[code] = rule.by_set ? holds(rule.left, code) : (code <= bin) | (code == missing_left);
    return run.template operator()<std::uint8_t>([&](std::uint8_t code) { return table[code]; });
  }
  const auto in_set = [set = rule.left](std::uint32_t code) -> std::uint8_t {
    return holds(set, code);
  };
  const auto follows = [=](std::uint32_t code) -> std::uint8_t {
    return (code <= bin) | (code == missing_left);
  };
  if (width == 2)
    return rule.by_set ? run.template operator()<std::uint16_t>(in_set)
                       : run.template operator()<std::uint16_t>(follows);
  return rule.by_set ? run.template operator()<std::uint32_t>(in_set)
                     : run.template operator()<std::uint32_t>(follows);
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
