// Thread teams: one call of the core borrows a Team from a pool, runs its loops and returns it.
//
//   Team team(n_threads, poll);
//   team.for_chunks(0, n, grain, [&](size_t begin, size_t end, int member) { ... });
//
// Idle members sleep; a loop of one chunk wakes no thread. Loops may be nested: idle members help
// with any open loop of their team. Results must not depend on which member runs which chunk.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

namespace arboost {

// Number of CPUs that this process may use, by its affinity mask and container quota (cgroup v1 and
// v2).
int available_threads();

// Prepares the calling thread for exceptions. Throwing needs thread-local data of the C++ runtime.
// glibc allocates them when a thread throws for the first time, and where memory has run out, which
// is when std::bad_alloc is thrown, it ends the process. So they are allocated in advance; false:
// there is not even memory for them. Every Team prepares its owner and its members. 0.1 us.
bool prepare_exceptions();

// A reference to something callable; unlike std::function it owns nothing and allocates nothing.
// The callable must outlive the call that takes the reference.
template <class Signature>
class FunctionRef;

template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& f)  // NOLINT: implicit, so that lambdas can be passed as they are
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(args...);
        }) {}
  Result operator()(Args... args) const { return call_(object_, args...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

class Team {
 public:
  // Called by the owner of the team (member 0) about every 50 ms; throws to stop the work.
  using Poll = std::function<void()>;
  using Body = FunctionRef<void(std::size_t begin, std::size_t end, int member)>;
  using Ready = FunctionRef<bool()>;

  explicit Team(int n_threads, Poll poll = {});
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return size_; }

  // Runs body over [0, n) in chunks of at most `grain` items and returns when all are done.
  // `self` is the calling member. The first exception of a chunk cancels the rest and is rethrown.
  void for_chunks(int self, std::size_t n, std::size_t grain, Body body);

  // Returns when ready() is true; meanwhile helps with the team's open loops. The member that makes
  // ready() true must then call notify().
  void help_until(int self, Ready ready);
  void notify();

  // Polls if `self` is the owner and 50 ms have passed since the last time. Loops poll by
  // themselves; long work of one member must call it, about every millisecond.
  void poll_if_due(int self);

 private:
  struct Loop;   // one for_chunks in progress
  struct State;  // shared with the borrowed workers, so that a late one finds a closed team

  int size_;
  int borrowed_ = 0;
  Poll poll_;
  std::chrono::steady_clock::time_point next_poll_;
  unsigned waits_ = 0;  // of the owner
  std::shared_ptr<State> state_;
};

}  // namespace arboost
