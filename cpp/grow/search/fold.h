// Histogram slots of a shared column -> slots of each of its features; and the search among splits
// of many features with few codes in one call. Linear in slots; single-threaded.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#include "grow/search/gain.h"
#include "grow/search/search_data.h"
#include "grow/search/split.h"

namespace arboost::ARBOOST_ISA {
namespace {

// Marginal sums, one digit after the other: the sums of a digit are over all slots with that digit;
// the remaining digits continue with the slots summed over it.
//
//   slots   00 10 20 01 11 21        digits of radix 3 and 2, the first one first
//   digit 0    00+01 10+11 20+21     rest   00+10+20  01+11+21  = digit 1
template <bool single>
void fold_digits(const std::int64_t* slots, const std::uint32_t* radices, std::size_t n_digits,
                 std::size_t any_channels, std::int64_t* rest, std::int64_t* digits) {
  const std::size_t channels = single ? 1 : any_channels;
  std::size_t n_rest = 1;
  for (std::size_t d = 0; d < n_digits; ++d) n_rest *= radices[d];
  for (std::size_t d = 0; d < n_digits; ++d) {
    const std::size_t radix = radices[d], wide = radix * channels;
    n_rest /= radix;
    for (std::size_t j = 0; j < wide; ++j) digits[j] = 0;
    for (std::size_t r = 0; r < n_rest; ++r) {
      const std::int64_t* from = slots + r * wide;
      if constexpr (single) {
        std::int64_t sum = 0;
        for (std::size_t j = 0; j < radix; ++j) sum += from[j];
        for (std::size_t j = 0; j < radix; ++j) digits[j] += from[j];
        rest[r] = sum;
      } else {
        // Reads never trail writes: r * wide >= r * channels.
        for (std::size_t j = 0; j < wide; ++j) digits[j] += from[j];
        for (std::size_t c = 0; c < channels; ++c) {
          std::int64_t sum = 0;
          for (std::size_t j = c; j < wide; j += channels) sum += from[j];
          rest[r * channels + c] = sum;
        }
      }
    }
    slots = rest;
    digits += wide;
  }
}

void fold(const std::int64_t* slots, const std::uint32_t* radices, std::size_t n_digits,
          std::size_t channels, std::int64_t* rest, std::int64_t* digits) {
  channels == 1 ? fold_digits<true>(slots, radices, n_digits, channels, rest, digits)
                : fold_digits<false>(slots, radices, n_digits, channels, rest, digits);
}

std::size_t find_candidate(const GainParams& p, std::size_t n, const std::int64_t* totals,
                           double floor, SplitScratch& scratch) {
  return find_best(p, {n, totals, nullptr}, floor, scratch);
}

}  // namespace
}  // namespace arboost::ARBOOST_ISA
