// Reductions over the workers of a fit, each of which holds some of the rows.
//
// All workers run the same program on the same numbers outside of their rows, and meet in the same
// calls in the same order; sums and extremes are of integers, so all leave a call with the same
// bits. A collective is an argument, never a global: one process may train several models.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace arboost {

class Collective {
 public:
  virtual ~Collective() = default;

  virtual std::size_t size() const = 0;  // workers
  virtual std::size_t rank() const = 0;  // of this one: its rows follow those of lower ranks

  // Replaces the numbers of several arrays by their sums over the workers, in one exchange.
  using Arrays = std::span<const std::span<std::int64_t>>;
  virtual void sum(Arrays arrays) = 0;
  void sum(std::span<std::int64_t> numbers) { sum(Arrays(&numbers, 1)); }

  // Replaces the numbers by the largest ones over the workers.
  virtual void max(std::span<std::int64_t> numbers) = 0;

  // The numbers of all workers, by rank; lengths may differ.
  virtual std::vector<std::vector<std::int64_t>> gather(std::span<const std::int64_t> numbers) = 0;
};

// The only worker.
class Alone final : public Collective {
 public:
  std::size_t size() const override { return 1; }
  std::size_t rank() const override { return 0; }
  using Collective::sum;
  void sum(Arrays) override {}
  void max(std::span<std::int64_t>) override {}
  std::vector<std::vector<std::int64_t>> gather(std::span<const std::int64_t> numbers) override {
    return {{numbers.begin(), numbers.end()}};
  }
};

}  // namespace arboost
