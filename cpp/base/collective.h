// Reductions over the workers of a fit, each of which holds some of the rows.
//
// All workers run the same program on the same numbers outside of their rows, and meet in the same
// calls in the same order; sums and extremes are of integers, so all leave a call with the same
// bits. A collective is an argument, never a global: one process may train several models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/parallel.h"  // FunctionRef

namespace arboost {

class Collective {
 public:
  using Bytes = std::vector<std::uint8_t>;
  using View = std::span<const std::uint8_t>;
  using Numbers = std::span<std::int64_t>;
  using Arrays = std::span<const Numbers>;

  virtual ~Collective() = default;

  virtual std::size_t size() const = 0;  // workers
  virtual std::size_t rank() const = 0;  // of this one: its rows follow those of lower ranks

  // Sends messages[r] to worker r, and returns the message of each worker to this one, by rank,
  // until the next call. That of the worker to itself is left out.
  virtual const std::vector<Bytes>& exchange(std::span<const View> messages) = 0;
  // The same message to all.
  const std::vector<Bytes>& exchange(View message);

  // Replaces the numbers of several arrays by their sums over the workers. Few bytes are sent to
  // all workers at once; of many, each worker adds up a part and returns its sums to the others.
  void sum(Arrays arrays);
  void sum(Numbers numbers) { sum(Arrays(&numbers, 1)); }

  // The same by one message of all numbers to every other worker.
  void sum_everywhere(Arrays arrays);

  // Adds up part r of each array, the numbers [bounds[r], bounds[r + 1]), in worker r. Others are
  // left as they are. `numbers` are few, and summed in all workers.
  void sum_parts(Arrays arrays, std::span<const std::size_t> bounds, Numbers numbers);

  // Replaces the numbers by the largest ones over the workers.
  void max(Numbers numbers);

  // The numbers of all workers, by rank; lengths may differ.
  std::vector<std::vector<std::int64_t>> gather(std::span<const std::int64_t> numbers);

 private:
  using PartOf = FunctionRef<Numbers(const Numbers&, std::size_t)>;
  void add_parts(Arrays arrays, PartOf part, Numbers numbers);
  void share_parts(Arrays arrays, PartOf part);

  std::vector<Bytes> messages_;  // that were sent last; their memory is used again
};

// The only worker.
class Alone final : public Collective {
 public:
  std::size_t size() const override { return 1; }
  std::size_t rank() const override { return 0; }
  using Collective::exchange;
  const std::vector<Bytes>& exchange(std::span<const View>) override { return nothing_; }

 private:
  const std::vector<Bytes> nothing_ = std::vector<Bytes>(1);
};

}  // namespace arboost
