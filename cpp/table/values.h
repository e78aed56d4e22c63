// Types of values in memory, and the double that a value reads as. The kernels of devices read
// values by this header, too.
#pragma once

#include <bit>
#include <cstdint>

namespace arboost {

enum class Type : std::uint8_t {
  boolean,  // one byte, 0 or not
  bit,      // Arrow's boolean: one bit
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  float32,
  float64,
  null,  // no values: all rows are missing
};

// Value types in memory that have no C++ number type of their own.
struct Half {
  std::uint16_t bits;
};
struct Truth {
  std::uint8_t byte;
};

inline double to_double(Half half) {
  const unsigned exponent = (half.bits >> 10) & 31, fraction = half.bits & 1023;
  std::uint64_t bits = std::uint64_t{exponent + 1008} << 52 | std::uint64_t{fraction} << 42;
  if (exponent == 31) bits = std::uint64_t{0x7ff} << 52 | std::uint64_t{fraction} << 42;
  const double magnitude = exponent == 0 ? fraction * 0x1p-24 : std::bit_cast<double>(bits);
  return half.bits >> 15 ? -magnitude : magnitude;
}
inline double to_double(Truth truth) {
  return truth.byte != 0 ? 1.0 : 0.0;
}
template <class Number>
double to_double(Number number) {
  return static_cast<double>(number);
}

// Calls visitor<T>() with the type's C++ number type; false for bit and null, which have none.
template <class Visitor>
bool with_number(Type type, Visitor&& visitor) {
  switch (type) {
    case Type::boolean:
      return visitor.template operator()<Truth>(), true;
    case Type::int8:
      return visitor.template operator()<std::int8_t>(), true;
    case Type::int16:
      return visitor.template operator()<std::int16_t>(), true;
    case Type::int32:
      return visitor.template operator()<std::int32_t>(), true;
    case Type::int64:
      return visitor.template operator()<std::int64_t>(), true;
    case Type::uint8:
      return visitor.template operator()<std::uint8_t>(), true;
    case Type::uint16:
      return visitor.template operator()<std::uint16_t>(), true;
    case Type::uint32:
      return visitor.template operator()<std::uint32_t>(), true;
    case Type::uint64:
      return visitor.template operator()<std::uint64_t>(), true;
    case Type::float16:
      return visitor.template operator()<Half>(), true;
    case Type::float32:
      return visitor.template operator()<float>(), true;
    case Type::float64:
      return visitor.template operator()<double>(), true;
    case Type::bit:
    case Type::null:
      break;
  }
  return false;
}

// Bytes of one value; 0 for bit and null.
inline std::uint32_t item_size(Type type) {
  std::uint32_t size = 0;
  with_number(type, [&]<class T>() { size = sizeof(T); });
  return size;
}

}  // namespace arboost
