// CPU features -> the variant of the kernels, chosen once, at the first call. Thread-safe.
#include "isa/dispatch.h"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#if defined(ARBOOST_X86_64) && defined(_MSC_VER)
#include <intrin.h>  // cpuid
#endif

namespace arboost {

namespace baseline {
extern const Variant variant;
}  // namespace baseline
#if defined(ARBOOST_X86_64)
namespace avx2 {
extern const Variant variant;
}  // namespace avx2
namespace avx512 {
extern const Variant variant;
#if defined(__GNUC__)
extern const BitKernels bit_lookups;  // where there is VBMI, too
#endif
}  // namespace avx512

namespace {

#if defined(_MSC_VER)
bool has_bit(const int* registers, int which, int bit) {
  return (registers[which] >> bit) & 1;
}

struct CpuFlags {
  bool avx2 = false, avx512 = false;
  CpuFlags() {
    int leaf1[4], leaf7[4];
    __cpuidex(leaf1, 1, 0);
    __cpuidex(leaf7, 7, 0);
    if (!has_bit(leaf1, 2, 27)) return;  // the system does not save wide registers
    const auto saved = _xgetbv(0);
    avx2 = (saved & 6) == 6 && has_bit(leaf7, 1, 5) && has_bit(leaf7, 1, 8);
    avx512 = avx2 && (saved & 0xe6) == 0xe6 && has_bit(leaf7, 1, 16) && has_bit(leaf7, 1, 17) &&
             has_bit(leaf7, 1, 30) && has_bit(leaf7, 1, 31) && has_bit(leaf7, 1, 28);
  }
};
bool cpu_has_avx2() {
  return CpuFlags().avx2;
}
bool cpu_has_avx512() {
  return CpuFlags().avx512;
}
#else
bool cpu_has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}
bool cpu_has_avx512() {
  return cpu_has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
}
#endif

}  // namespace
#endif

namespace {

// The environment variable ARBOOST_ISA=baseline, avx2 or avx512 (without VBMI) limits the
// choice; tests use it to show that all variants give the same bytes.
std::string_view limit() {
  const char* given = std::getenv("ARBOOST_ISA");
  const std::string_view name = given == nullptr ? "" : given;
  if (name.empty() || name == "baseline" || name == "avx2" || name == "avx512") return name;
  throw std::invalid_argument("The environment variable ARBOOST_ISA is '" + std::string(name) +
                              "', but must be baseline, avx2 or avx512. Correct it, or remove it "
                              "for the fastest instruction set of this CPU.");
}

const Variant& choose() {
  const std::string_view name = limit();
#if defined(ARBOOST_X86_64)
  if ((name.empty() || name == "avx512") && cpu_has_avx512()) return avx512::variant;
  if (name != "baseline" && cpu_has_avx2()) return avx2::variant;
#endif
  return baseline::variant;
}

const BitKernels& choose_bits() {
#if defined(ARBOOST_X86_64)
  if (&variant() == &avx512::variant) {
#if defined(__GNUC__)
    if (limit().empty() && __builtin_cpu_supports("avx512vbmi")) return avx512::bit_lookups;
#endif
    return avx512::variant.bits;
  }
  if (&variant() == &avx2::variant) return avx2::variant.bits;
#endif
  return baseline::variant.bits;
}

}  // namespace

const Variant& variant() {
  static const Variant& chosen = choose();
  return chosen;
}

const LossKernels& loss_kernels() {
  return variant().loss;
}
const GrowKernels& grow_kernels() {
  return variant().grow;
}
const ReweightKernels& reweight_kernels() {
  return variant().reweight;
}
const ShapKernels& shap_kernels() {
  return variant().shap;
}

const BitKernels& bit_kernels() {
  static const BitKernels& chosen = choose_bits();
  return chosen;
}

}  // namespace arboost
