// Ticks -> seconds. Cost: one integer and one floating-point division a value.
#include "table/times.h"

#include <algorithm>
#include <cmath>

namespace arboost {
namespace {

constexpr std::int64_t finest = 1'000'000'000'000'000'000;  // attoseconds of a second

}  // namespace

double Clock::seconds(std::int64_t ticks) {
  if (ticks == std::numeric_limits<std::int64_t>::min())
    return std::numeric_limits<double>::quiet_NaN();
  const std::int64_t whole = ticks / tick_.per_second, rest = ticks % tick_.per_second;
  while (rest % step_ != 0) step_ /= 1000;
  const double second = static_cast<double>(whole) * static_cast<double>(tick_.seconds);
  farthest_ = std::max(farthest_, std::abs(second));
  const std::int64_t fraction = rest * (finest / tick_.per_second);
  return second + static_cast<double>(fraction) / static_cast<double>(finest);
}

bool Clock::is_inexact() const {
  const double gap =
      std::nextafter(farthest_ + 1.0, std::numeric_limits<double>::infinity()) - (farthest_ + 1.0);
  return gap * static_cast<double>(tick_.per_second) >
         static_cast<double>(step_) * static_cast<double>(tick_.seconds);
}

}  // namespace arboost
