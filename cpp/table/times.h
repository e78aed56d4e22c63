// Ticks of any unit -> seconds as doubles. The same instant gives the same double in any unit:
// exact integers split it into whole seconds and a remainder first. Cost: one integer and one
// floating-point division a value.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace arboost {

// Length of a tick: `seconds` / `per_second` seconds, one of which is 1.
struct Tick {
  std::int64_t seconds = 1, per_second = 1;
};

class Clock {
 public:
  explicit Clock(Tick tick) : tick_(tick), step_(tick.per_second) {}

  // Seconds of a number of ticks; the smallest int64 is NumPy's "not a time" (NaT).
  double seconds(std::int64_t ticks);

  // True if two of the instants so far may be closer than neighbouring doubles.
  bool is_inexact() const;

 private:
  Tick tick_;
  std::int64_t step_;      // ticks that all instants are multiples of, in steps of 1000
  double farthest_ = 0.0;  // from the origin, in seconds
};

inline double Clock::seconds(std::int64_t ticks) {
  if (ticks == std::numeric_limits<std::int64_t>::min())
    return std::numeric_limits<double>::quiet_NaN();
  const std::int64_t whole = ticks / tick_.per_second, rest = ticks % tick_.per_second;
  while (rest % step_ != 0) step_ /= 1000;
  const double second = static_cast<double>(whole) * static_cast<double>(tick_.seconds);
  farthest_ = std::max(farthest_, std::abs(second));
  constexpr std::int64_t finest = 1'000'000'000'000'000'000;  // attoseconds of a second
  const std::int64_t fraction = rest * (finest / tick_.per_second);
  return second + static_cast<double>(fraction) / static_cast<double>(finest);
}

inline bool Clock::is_inexact() const {
  const double gap =
      std::nextafter(farthest_ + 1.0, std::numeric_limits<double>::infinity()) - (farthest_ + 1.0);
  return gap * static_cast<double>(tick_.per_second) >
         static_cast<double>(step_) * static_cast<double>(tick_.seconds);
}

}  // namespace arboost
