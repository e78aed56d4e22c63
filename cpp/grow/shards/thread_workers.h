// Workers as threads of one process, with a collective between them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/collective.h"
#include "base/parallel.h"  // FunctionRef

namespace arboost {

class ThreadWorkers {
 public:
  explicit ThreadWorkers(std::size_t n_workers);
  ThreadWorkers(const ThreadWorkers&) = delete;
  ThreadWorkers& operator=(const ThreadWorkers&) = delete;

  std::size_t size() const { return seats_.size(); }
  Collective& collective(std::size_t rank) { return seats_[rank]; }

  // Runs body(rank) for all ranks at once, rank 0 on the calling thread. An exception of one worker
  // ends the waits of all others, and is rethrown.
  void run(FunctionRef<void(std::size_t)> body);

 private:
  // A worker's place at the table.
  class Seat final : public Collective {
   public:
    Seat(ThreadWorkers& all, std::size_t rank) : all_(all), rank_(rank) {}
    std::size_t size() const override { return all_.size(); }
    std::size_t rank() const override { return rank_; }
    using Collective::sum;
    void sum(Arrays arrays) override;
    void max(std::span<std::int64_t> numbers) override;
    std::vector<std::vector<std::int64_t>> gather(std::span<const std::int64_t> numbers) override;

   private:
    template <class Fold>
    void reduce(Arrays arrays, Fold fold);

    ThreadWorkers& all_;
    std::size_t rank_;
    Arrays shown_;  // to the other workers, between two meetings
    friend class ThreadWorkers;
  };

  void meet();  // waits for all workers
  void fail();

  std::vector<Seat> seats_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t waiting_ = 0;
  std::uint64_t meetings_ = 0;
  bool failed_ = false;
};

}  // namespace arboost
