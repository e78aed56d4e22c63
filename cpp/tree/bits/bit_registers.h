// Vectors of bits, as wide as a register, and their operations; shifts are those of 64-bit words.
//
// Included by isa/variant.h inside each instruction set's variant.
#pragma once

#if defined(__SSE2__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>  // memcpy

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
ARBOOST_INLINE Bits shifted_right(Bits a, int n) {
  return {_mm512_maskz_srli_epi64(0xff, a.v, static_cast<unsigned>(n))};
}
ARBOOST_INLINE Bits shifted_left(Bits a, int n) {
  return {_mm512_maskz_slli_epi64(0xff, a.v, static_cast<unsigned>(n))};
}
ARBOOST_INLINE Bits of_bytes(std::uint8_t byte) {
  return {_mm512_set1_epi8(static_cast<char>(byte))};
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
ARBOOST_INLINE Bits shifted_right(Bits a, int n) {
  return {_mm256_srli_epi64(a.v, n)};
}
ARBOOST_INLINE Bits shifted_left(Bits a, int n) {
  return {_mm256_slli_epi64(a.v, n)};
}
ARBOOST_INLINE Bits of_bytes(std::uint8_t byte) {
  return {_mm256_set1_epi8(static_cast<char>(byte))};
}
ARBOOST_INLINE Bits without(Bits a, Bits b) {
  return {_mm256_andnot_si256(b.v, a.v)};
}
ARBOOST_INLINE Bits choose(Bits which, Bits yes, Bits no) {
  return no ^ (which & (yes ^ no));
}
#else
#if defined(__GNUC__)  // two words, in a register of any processor
typedef std::uint64_t Word __attribute__((vector_size(16)));
#else
using Word = std::uint64_t;
#endif
struct Bits {
  Word v;
};
ARBOOST_INLINE Bits load(const std::uint64_t* p) {
  Bits a;
  std::memcpy(&a, p, sizeof a);
  return a;
}
ARBOOST_INLINE void store(Bits a, std::uint64_t* p) {
  std::memcpy(p, &a, sizeof a);
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
ARBOOST_INLINE Bits shifted_right(Bits a, int n) {
  return {a.v >> n};
}
ARBOOST_INLINE Bits shifted_left(Bits a, int n) {
  return {a.v << n};
}
ARBOOST_INLINE Bits of_bytes(std::uint8_t byte) {
  return {Word{} + byte * 0x0101010101010101u};
}
ARBOOST_INLINE Bits without(Bits a, Bits b) {
  return {a.v & ~b.v};
}
ARBOOST_INLINE Bits choose(Bits which, Bits yes, Bits no) {
  return no ^ (which & (yes ^ no));
}
#endif

constexpr std::size_t register_words = sizeof(Bits) / sizeof(std::uint64_t);

// Two doubles.
#if defined(__SSE2__) || defined(__AVX2__)
struct Pair {
  __m128d v;
};
ARBOOST_INLINE Pair load_pair(const double* p) {
  return {_mm_loadu_pd(p)};
}
ARBOOST_INLINE void store(Pair a, double* p) {
  _mm_storeu_pd(p, a.v);
}
ARBOOST_INLINE Pair pair_of(const double* first, const double* second) {
  return {_mm_loadh_pd(_mm_load_sd(first), second)};
}
ARBOOST_INLINE Pair operator+(Pair a, Pair b) {
  return {_mm_add_pd(a.v, b.v)};
}
#else
struct Pair {
  double first, second;
};
ARBOOST_INLINE Pair load_pair(const double* p) {
  return {p[0], p[1]};
}
ARBOOST_INLINE void store(Pair a, double* p) {
  p[0] = a.first;
  p[1] = a.second;
}
ARBOOST_INLINE Pair pair_of(const double* first, const double* second) {
  return {*first, *second};
}
ARBOOST_INLINE Pair operator+(Pair a, Pair b) {
  return {a.first + b.first, a.second + b.second};
}
#endif

}  // namespace
}  // namespace arboost::ARBOOST_ISA
