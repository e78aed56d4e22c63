// Vectors of bits, as wide as a register, and their operations.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#if defined(__SSE2__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>

#include "base/types.h"  // ARBOOST_INLINE

namespace arboost::ARBOOST_ISA {
namespace {

#if defined(__AVX512F__)
struct Bits {
  __m512i v;
};
ARBOOST_INLINE Bits load(const std::uint64_t* p) {
  return {_mm512_loadu_si512(p)};
}
ARBOOST_INLINE void store(Bits a, std::uint64_t* p) {
  _mm512_storeu_si512(p, a.v);
}
ARBOOST_INLINE Bits operator&(Bits a, Bits b) {
  return {_mm512_and_si512(a.v, b.v)};
}
ARBOOST_INLINE Bits operator|(Bits a, Bits b) {
  return {_mm512_or_si512(a.v, b.v)};
}
ARBOOST_INLINE Bits operator^(Bits a, Bits b) {
  return {_mm512_xor_si512(a.v, b.v)};
}
ARBOOST_INLINE Bits without(Bits a, Bits b) {
  return {_mm512_ternarylogic_epi64(a.v, b.v, b.v, 0x30)};
}
ARBOOST_INLINE Bits choose(Bits which, Bits yes, Bits no) {
  return {_mm512_ternarylogic_epi64(which.v, yes.v, no.v, 0xCA)};
}
#elif defined(__AVX2__)
struct Bits {
  __m256i v;
};
ARBOOST_INLINE Bits load(const std::uint64_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
}
ARBOOST_INLINE void store(Bits a, std::uint64_t* p) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.v);
}
ARBOOST_INLINE Bits operator&(Bits a, Bits b) {
  return {_mm256_and_si256(a.v, b.v)};
}
ARBOOST_INLINE Bits operator|(Bits a, Bits b) {
  return {_mm256_or_si256(a.v, b.v)};
}
ARBOOST_INLINE Bits operator^(Bits a, Bits b) {
  return {_mm256_xor_si256(a.v, b.v)};
}
ARBOOST_INLINE Bits without(Bits a, Bits b) {
  return {_mm256_andnot_si256(b.v, a.v)};
}
ARBOOST_INLINE Bits choose(Bits which, Bits yes, Bits no) {
  return no ^ (which & (yes ^ no));
}
#elif defined(__SSE2__)
struct Bits {
  __m128i v;
};
ARBOOST_INLINE Bits load(const std::uint64_t* p) {
  return {_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))};
}
ARBOOST_INLINE void store(Bits a, std::uint64_t* p) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), a.v);
}
ARBOOST_INLINE Bits operator&(Bits a, Bits b) {
  return {_mm_and_si128(a.v, b.v)};
}
ARBOOST_INLINE Bits operator|(Bits a, Bits b) {
  return {_mm_or_si128(a.v, b.v)};
}
ARBOOST_INLINE Bits operator^(Bits a, Bits b) {
  return {_mm_xor_si128(a.v, b.v)};
}
ARBOOST_INLINE Bits without(Bits a, Bits b) {
  return {_mm_andnot_si128(b.v, a.v)};
}
ARBOOST_INLINE Bits choose(Bits which, Bits yes, Bits no) {
  return no ^ (which & (yes ^ no));
}
#else
struct Bits {
  std::uint64_t v;
};
ARBOOST_INLINE Bits load(const std::uint64_t* p) {
  return {*p};
}
ARBOOST_INLINE void store(Bits a, std::uint64_t* p) {
  *p = a.v;
}
ARBOOST_INLINE Bits operator&(Bits a, Bits b) {
  return {a.v & b.v};
}
ARBOOST_INLINE Bits operator|(Bits a, Bits b) {
  return {a.v | b.v};
}
ARBOOST_INLINE Bits operator^(Bits a, Bits b) {
  return {a.v ^ b.v};
}
ARBOOST_INLINE Bits without(Bits a, Bits b) {
  return {a.v & ~b.v};
}
ARBOOST_INLINE Bits choose(Bits which, Bits yes, Bits no) {
  return no ^ (which & (yes ^ no));
}
#endif

constexpr std::size_t register_words = sizeof(Bits) / sizeof(std::uint64_t);

}  // namespace
}  // namespace arboost::ARBOOST_ISA
