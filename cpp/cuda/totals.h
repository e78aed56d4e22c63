// Sums that kernels add up in device memory, and give to the host.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/answer.h"
#include "cuda/device.h"

namespace arboost::cuda {

class Totals {
 public:
  // n sums of 0, for a kernel that adds to them and ends with give_totals.
  GivenTotals start(std::size_t n, Queue& queue) {
    make_room(sums_, n + 1);
    queue.fill_zero(sums_.address(), (n + 1) * sizeof(std::int64_t));
    auto* given = reinterpret_cast<std::int64_t*>(given_.buffer(n * sizeof(std::int64_t)));
    last_ = {.sums = sums_.data(),
             .n_done = reinterpret_cast<std::uint32_t*>(sums_.data() + n),
             .given = given,
             .n = static_cast<std::uint32_t>(n),
             .answer = queue.ask()};
    return last_;
  }
  // The sums of that kernel.
  std::vector<std::int64_t> wait(Queue& queue) const {
    queue.await(last_.answer);
    return {last_.given, last_.given + last_.n};
  }

 private:
  DeviceArray<std::int64_t> sums_;
  PinnedBytes given_;
  GivenTotals last_{};
};

}  // namespace arboost::cuda
