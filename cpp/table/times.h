// Ticks of any unit -> seconds as doubles. The same instant gives the same double in any unit:
// exact integers split it into whole seconds and a remainder first.
#pragma once

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

}  // namespace arboost
