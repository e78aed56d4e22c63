// Ticks of any clock -> seconds as doubles. The same instant gives the same number in any unit: it
// is split into whole seconds and a rest in exact integers first.
#pragma once

#include <cstdint>
#include <limits>

namespace arboost {

// Length of a tick: `seconds` whole ones, or a second has `per_second`; the other of the two is 1.
struct Tick {
  std::int64_t seconds = 1, per_second = 1;
};

class Clock {
 public:
  explicit Clock(Tick tick) : tick_(tick), step_(tick.per_second) {}

  // Seconds of a number of ticks; the smallest number is NumPy's "not a time".
  double seconds(std::int64_t ticks);

  // Whether some of the instants so far are closer to each other than neighbouring doubles.
  bool is_inexact() const;

 private:
  Tick tick_;
  std::int64_t step_;      // ticks that all instants are multiples of, in steps of 1000
  double farthest_ = 0.0;  // from the origin, in seconds
};

}  // namespace arboost
