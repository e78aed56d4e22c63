// The types that all stages share, and macros for the compiler.
#pragma once

#include <cstdint>

// The pointer that it qualifies is the only way to its memory in the function: loops may vectorise.
#if defined(_MSC_VER)
#define ARBOOST_RESTRICT __restrict
#else
#define ARBOOST_RESTRICT __restrict__
#endif

// Functions on registers, which must not become calls.
#if defined(_MSC_VER) && !defined(__clang__)
#define ARBOOST_INLINE __forceinline
#else
#define ARBOOST_INLINE inline __attribute__((always_inline))
#endif

namespace arboost {

using RowId = std::uint32_t;  // index of a training row; a fit holds at most 2^32 - 1 rows

// Asks for memory that will be read soon. (Each file has a copy of its own.)
static inline void prefetch([[maybe_unused]] const void* address) {
#if !defined(_MSC_VER)
  __builtin_prefetch(address);
#endif
}

// One row's gradient and hessian as fixed-point integers: value = integer * 2^-exponent, with one
// exponent for all gradients and one for all hessians of a round (DESIGN: integer gradients).
struct FixedPair {
  std::int32_t g;
  std::int32_t h;
};

}  // namespace arboost
