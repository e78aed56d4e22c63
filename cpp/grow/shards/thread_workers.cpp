// Two meetings a reduction: all numbers are shown, then all are read.
#include "grow/shards/thread_workers.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <thread>

namespace arboost {
namespace {

struct OtherFailed : std::exception {};  // in another worker

}  // namespace

ThreadWorkers::ThreadWorkers(std::size_t n_workers) {
  seats_.reserve(n_workers);
  for (std::size_t rank = 0; rank < n_workers; ++rank) seats_.emplace_back(*this, rank);
}

void ThreadWorkers::run(FunctionRef<void(std::size_t)> body) {
  failed_ = false;
  waiting_ = 0;
  std::vector<std::exception_ptr> errors(size());
  const auto work = [&](std::size_t rank) {
    try {
      body(rank);
    } catch (const OtherFailed&) {
    } catch (...) {
      errors[rank] = std::current_exception();
      fail();
    }
  };
  std::vector<std::thread> threads;
  try {
    for (std::size_t rank = 1; rank < size(); ++rank) threads.emplace_back(work, rank);
    work(0);
  } catch (...) {  // a thread could not start
    fail();
    for (std::thread& thread : threads) thread.join();
    throw;
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

void ThreadWorkers::meet() {
  std::unique_lock lock(mutex_);
  const std::uint64_t meeting = meetings_;
  if (++waiting_ == size()) {
    waiting_ = 0;
    ++meetings_;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return meetings_ != meeting || failed_; });
  if (meetings_ == meeting) throw OtherFailed();
}

void ThreadWorkers::fail() {
  std::lock_guard lock(mutex_);
  failed_ = true;
  changed_.notify_all();
}

// Replaces the arrays by fold(own number, another worker's number), over all other workers.
template <class Fold>
void ThreadWorkers::Seat::reduce(Arrays arrays, Fold fold) {
  shown_ = arrays;
  all_.meet();
  std::vector<std::vector<std::int64_t>> results;
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    std::vector<std::int64_t>& result = results.emplace_back(arrays[a].begin(), arrays[a].end());
    for (const Seat& other : all_.seats_) {
      if (other.rank_ == rank_) continue;
      if (other.shown_.size() != arrays.size() || other.shown_[a].size() != result.size())
        throw std::logic_error("workers disagree about the numbers that they reduce");
      for (std::size_t i = 0; i < result.size(); ++i)
        result[i] = fold(result[i], other.shown_[a][i]);
    }
  }
  all_.meet();
  for (std::size_t a = 0; a < arrays.size(); ++a)
    std::copy(results[a].begin(), results[a].end(), arrays[a].begin());
}

void ThreadWorkers::Seat::sum(Arrays arrays) {
  reduce(arrays, [](std::int64_t a, std::int64_t b) { return a + b; });
}

void ThreadWorkers::Seat::max(std::span<std::int64_t> numbers) {
  reduce(Arrays(&numbers, 1), [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
}

std::vector<std::vector<std::int64_t>> ThreadWorkers::Seat::gather(
    std::span<const std::int64_t> numbers) {
  std::vector<std::int64_t> own(numbers.begin(), numbers.end());
  const std::span<std::int64_t> shown(own);
  shown_ = Arrays(&shown, 1);
  all_.meet();
  std::vector<std::vector<std::int64_t>> all;
  for (const Seat& seat : all_.seats_)
    all.emplace_back(seat.shown_.front().begin(), seat.shown_.front().end());
  all_.meet();
  return all;
}

}  // namespace arboost
