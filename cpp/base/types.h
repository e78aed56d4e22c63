// Types and compiler macros that all stages share.
#pragma once

#include <bit>  // endian
#include <cstdint>

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>  // prefetch
#endif

// No other pointer of the function aliases the qualified one, so that loops vectorise.
#if defined(_MSC_VER)
#define ARBOOST_RESTRICT __restrict
#else
#define ARBOOST_RESTRICT __restrict__
#endif

// Forced inlining, for functions on vector registers.
#if defined(_MSC_VER) && !defined(__clang__)
#define ARBOOST_INLINE __forceinline
#else
#define ARBOOST_INLINE inline __attribute__((always_inline))
#endif

namespace arboost {

// Elements, packed sums and model files are read in parts, by byte.
static_assert(std::endian::native == std::endian::little,
              "arboost needs a processor with little-endian numbers");

using RowId = std::uint32_t;  // index of a row, below most_rows (base/require.h)

// Prefetches a cache line. (Static: each file has a copy of its own.)
static inline void prefetch([[maybe_unused]] const void* address) {
#if defined(__CUDACC_RTC__)  // threads of a device hide the wait
#elif !defined(_MSC_VER) || defined(__clang__)
  __builtin_prefetch(address);
#elif defined(_M_ARM64)
  __prefetch(address);
#else
  _mm_prefetch(static_cast<const char*>(address), _MM_HINT_T0);
#endif
}

// One row's gradient and hessian as fixed-point integers: value = integer * 2^-exponent, with one
// exponent for all gradients and one for all hessians of a round (ARCHITECTURE.md, "Integer
// gradients").
struct FixedPair {
  std::int32_t g;
  std::int32_t h;
};

}  // namespace arboost
