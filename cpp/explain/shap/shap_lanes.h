// Vectors of eight doubles, one a row, in the registers of the instruction set; and masks of eight
// Booleans. Operations round like those of single doubles.
//
// Included inside each instruction set's variant.
#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>  // memcpy
#include <utility>  // index_sequence

#include "base/types.h"             // ARBOOST_INLINE
#include "explain/shap/shap_run.h"  // shap_lanes

namespace arboost::ARBOOST_ISA {
namespace {

#if defined(__AVX512F__)

using LaneMask = std::uint8_t;
struct Lanes {
  __m512d v;
};

ARBOOST_INLINE Lanes load(const double* from) {
  return {_mm512_loadu_pd(from)};
}
ARBOOST_INLINE void store(double* to, Lanes x) {
  _mm512_storeu_pd(to, x.v);
}
ARBOOST_INLINE Lanes fill(double x) {
  return {_mm512_set1_pd(x)};
}
ARBOOST_INLINE Lanes operator+(Lanes a, Lanes b) {
  return {_mm512_add_pd(a.v, b.v)};
}
ARBOOST_INLINE Lanes operator*(Lanes a, Lanes b) {
  return {_mm512_mul_pd(a.v, b.v)};
}
ARBOOST_INLINE Lanes choose(LaneMask mask, double yes, double no) {
  return {_mm512_mask_blend_pd(mask, _mm512_set1_pd(no), _mm512_set1_pd(yes))};
}
ARBOOST_INLINE Lanes choose(LaneMask mask, double yes, Lanes no) {
  return {_mm512_mask_mov_pd(no.v, mask, _mm512_set1_pd(yes))};
}
ARBOOST_INLINE LaneMask at_most(Lanes x, double limit) {  // no for NaN
  return _mm512_cmp_pd_mask(x.v, _mm512_set1_pd(limit), _CMP_LE_OQ);
}
ARBOOST_INLINE LaneMask not_above(Lanes x, double limit) {  // yes for NaN
  return _mm512_cmp_pd_mask(x.v, _mm512_set1_pd(limit), _CMP_NGT_UQ);
}
ARBOOST_INLINE LaneMask copy(LaneMask a) {
  return a;
}
ARBOOST_INLINE void store(LaneMask& to, LaneMask a) {
  to = a;
}
ARBOOST_INLINE LaneMask both(LaneMask a, LaneMask b) {
  return static_cast<LaneMask>(a & b);
}
ARBOOST_INLINE LaneMask opposite(LaneMask a) {
  return static_cast<LaneMask>(~a);
}
ARBOOST_INLINE LaneMask mask_of_lanes(const bool* yes) {
  unsigned mask = 0;
  for (std::size_t l = 0; l < shap_lanes; ++l) mask |= static_cast<unsigned>(yes[l]) << l;
  return static_cast<LaneMask>(mask);
}

#else

#if defined(__GNUC__)
#if defined(__AVX2__)
constexpr std::size_t part_size = 4;
#else
constexpr std::size_t part_size = 2;
#endif
typedef double Part __attribute__((vector_size(8 * part_size)));
typedef std::int64_t PartMask __attribute__((vector_size(8 * part_size)));
ARBOOST_INLINE Part select(PartMask mask, Part yes, Part no) {
  return (Part)((mask & (PartMask)yes) | (~mask & (PartMask)no));
}
ARBOOST_INLINE PartMask mask_of(PartMask comparison) {
  return comparison;
}
#else
constexpr std::size_t part_size = 1;
using Part = double;
using PartMask = std::int64_t;
ARBOOST_INLINE Part select(PartMask mask, Part yes, Part no) {
  return mask ? yes : no;
}
ARBOOST_INLINE PartMask mask_of(bool comparison) {
  return comparison ? -1 : 0;
}
#endif

constexpr std::size_t n_parts = shap_lanes / part_size;

struct LaneMask {
  PartMask v[n_parts];
};
struct Lanes {
  Part v[n_parts];
};

// With a compile-time index, so that all parts stay in registers.
template <class Result, class Function, std::size_t... parts>
ARBOOST_INLINE Result by_part(const Function& function, std::index_sequence<parts...>) {
  return Result{{function(parts)...}};
}
template <class Result, class Function>
ARBOOST_INLINE Result by_part(const Function& function) {
  return by_part<Result>(function, std::make_index_sequence<n_parts>());
}
ARBOOST_INLINE Part fill_part(double x) {
#if defined(__AVX2__) && defined(__GNUC__)
  return Part{x, x, x, x};
#elif defined(__GNUC__)
  return Part{x, x};
#else
  return x;
#endif
}
ARBOOST_INLINE Lanes load(const double* from) {
  return by_part<Lanes>([&](std::size_t i) {
    Part part;
    std::memcpy(&part, from + i * part_size, sizeof part);
    return part;
  });
}
ARBOOST_INLINE void store(double* to, const Lanes& x) {
  for (std::size_t i = 0; i < n_parts; ++i) std::memcpy(to + i * part_size, &x.v[i], sizeof x.v[i]);
}
ARBOOST_INLINE Lanes fill(double x) {
  return by_part<Lanes>([&](std::size_t) { return fill_part(x); });
}
ARBOOST_INLINE Lanes operator+(const Lanes& a, const Lanes& b) {
  return by_part<Lanes>([&](std::size_t i) { return a.v[i] + b.v[i]; });
}
ARBOOST_INLINE Lanes operator*(const Lanes& a, const Lanes& b) {
  return by_part<Lanes>([&](std::size_t i) { return a.v[i] * b.v[i]; });
}
ARBOOST_INLINE Lanes choose(const LaneMask& mask, double yes, double no) {
  return by_part<Lanes>(
      [&](std::size_t i) { return select(mask.v[i], fill_part(yes), fill_part(no)); });
}
ARBOOST_INLINE Lanes choose(const LaneMask& mask, double yes, const Lanes& no) {
  return by_part<Lanes>([&](std::size_t i) { return select(mask.v[i], fill_part(yes), no.v[i]); });
}
ARBOOST_INLINE LaneMask at_most(const Lanes& x, double limit) {  // no for NaN
  return by_part<LaneMask>([&](std::size_t i) { return mask_of(x.v[i] <= fill_part(limit)); });
}
// A copy of the whole struct would use smaller stores than the following loads, which stalls store
// forwarding.
ARBOOST_INLINE LaneMask copy(const LaneMask& a) {
  return by_part<LaneMask>([&](std::size_t i) { return a.v[i]; });
}
ARBOOST_INLINE void store(LaneMask& to, const LaneMask& a) {
  for (std::size_t i = 0; i < n_parts; ++i) to.v[i] = a.v[i];
}
ARBOOST_INLINE LaneMask opposite(const LaneMask& a) {
  return by_part<LaneMask>([&](std::size_t i) { return ~a.v[i]; });
}
ARBOOST_INLINE LaneMask not_above(const Lanes& x, double limit) {  // yes for NaN
  return opposite(
      by_part<LaneMask>([&](std::size_t i) { return mask_of(x.v[i] > fill_part(limit)); }));
}
ARBOOST_INLINE LaneMask both(const LaneMask& a, const LaneMask& b) {
  return by_part<LaneMask>([&](std::size_t i) { return a.v[i] & b.v[i]; });
}
ARBOOST_INLINE LaneMask mask_of_lanes(const bool* yes) {
  std::int64_t all[shap_lanes];
  for (std::size_t l = 0; l < shap_lanes; ++l) all[l] = yes[l] ? -1 : 0;
  LaneMask mask;
  std::memcpy(&mask, all, sizeof mask);
  return mask;
}

#endif

}  // namespace
}  // namespace arboost::ARBOOST_ISA
