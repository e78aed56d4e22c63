// Process-wide pool of sleeping threads -> teams. A parallel loop costs a few microseconds.
#include "base/parallel.h"

#include <algorithm>
#include <cstdlib>  // malloc
#include <new>      // bad_alloc
#include <thread>

#if !defined(_WIN32)
#include <pthread.h>  // fork handler
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>  // pause
#elif defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>  // isb
#endif
#if defined(__GLIBC__)
#include <cxxabi.h>  // data of exceptions
#endif

namespace arboost {

bool prepare_exceptions() {
#if defined(__GLIBC__)
  // Some more than the runtime needs: its data, and the thread's table of such data.
  // Volatile, because compilers leave out allocations that nobody uses.
  void* volatile data = std::malloc(64);
  void* volatile table = std::malloc(8192);
  const bool has_memory = data != nullptr && table != nullptr;
  std::free(table);
  std::free(data);
  // By a volatile pointer, because the function counts as one without effects.
  auto* volatile get_data = &abi::__cxa_get_globals;
  if (has_memory) get_data();
  return has_memory;
#else
  return true;
#endif
}

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto poll_interval = std::chrono::milliseconds(50);
// As long as the part of a small tree that one thread does alone, so that the others stay awake.
constexpr auto spin_time = std::chrono::microseconds(50);

// Hints to the processor that the thread spins. On ARM, `yield` does nothing on most processors;
// `isb` waits about as long as the pause of x86.
void pause_cpu() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#elif defined(_M_ARM64)
  __isb(_ARM64_BARRIER_SY);
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#else
  std::this_thread::yield();
#endif
}

// Threads that outlive the teams. A team borrows workers and returns them. The pool starts a new
// thread whenever none is idle, so teams of several Python threads never wait for each other. A
// returned worker may still be leaving its old team.
class Pool {
 public:
  // Throws std::system_error or std::bad_alloc where the system has no thread or no memory left.
  void lend(std::function<void()> task) {
    std::unique_lock lock(mutex_);
    if (lent_ == threads_) {
      start(std::move(task), lock);
      ++threads_;
    } else {
      tasks_.push_back(std::move(task));
      wake_.notify_one();
    }
    ++lent_;
  }

  void give_back(int workers) {
    std::lock_guard lock(mutex_);
    lent_ -= workers;
  }

 private:
  void start(std::function<void()> task, std::unique_lock<std::mutex>& lock) {
    enum class Start { pending, failed, done } state = Start::pending;
    std::thread([this, &state, first = std::move(task)]() mutable {
      const bool ready = prepare_exceptions();
      {
        std::lock_guard guard(mutex_);
        state = ready ? Start::done : Start::failed;
        started_.notify_all();
      }
      if (ready) serve(std::move(first));
    }).detach();
    started_.wait(lock, [&] { return state != Start::pending; });
    if (state == Start::failed) throw std::bad_alloc();
  }

  void serve(std::function<void()> task) {
    for (;;) {
      task();
      task = nullptr;  // release what the task holds before sleeping
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return !tasks_.empty(); });
      task = std::move(tasks_.front());
      tasks_.erase(tasks_.begin());
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, started_;
  std::vector<std::function<void()>> tasks_;
  int threads_ = 0, lent_ = 0;
};

// Never destroyed: its threads may still sleep when the process ends. A forked child has none of
// the parent's threads, so it starts with a pool of its own and never touches the old one's locks.
std::atomic<Pool*> the_pool{nullptr};

Pool& pool() {
  Pool* current = the_pool.load();
  if (current == nullptr) {
    auto* fresh = new Pool;
    if (the_pool.compare_exchange_strong(current, fresh)) return *fresh;
    delete fresh;
  }
  return *current;
}

#if !defined(_WIN32)
const int fork_handler = pthread_atfork(nullptr, nullptr, [] { the_pool.store(nullptr); });
#endif

}  // namespace

struct Team::Loop {
  const Body* body;
  std::size_t n, grain;
  std::atomic<std::size_t> next{0};  // first item that no member has taken
  int helpers = 0;                   // members inside run(); guarded by State::mutex
  std::exception_ptr error{};        // first failure; guarded by State::mutex

  bool open() const { return next.load(std::memory_order_relaxed) < n; }
  void cancel() { next.store(n); }
};

struct Team::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::atomic<unsigned> epoch{0};  // incremented by every change that a member may wait for
  std::atomic<int> sleepers{0};
  std::vector<Loop*> loops;  // guarded by mutex
  bool closed = false;       // guarded by mutex
  Pool* lender = &pool();

  void notify() {
    epoch.fetch_add(1);
    if (sleepers.load() > 0) {
      {
        std::lock_guard lock(mutex);
      }
      changed.notify_all();
    }
  }

  // Waits until the epoch differs from `seen`: spins shortly, then sleeps for at most `limit`.
  void wait(unsigned seen, Clock::duration limit) {
    const auto start = Clock::now();
    while (epoch.load() == seen) {
      for (int i = 0; i < 4; ++i) pause_cpu();
      if (Clock::now() - start < spin_time) continue;
      sleepers.fetch_add(1);
      {
        std::unique_lock lock(mutex);
        changed.wait_for(lock, limit, [&] { return epoch.load() != seen; });
      }
      sleepers.fetch_sub(1);
      return;
    }
  }

  // Takes chunks of one loop until none is left. Returns false when no loop was open.
  bool help(int member) {
    Loop* loop = nullptr;
    {
      std::lock_guard lock(mutex);
      // The newest loop first: its owner is the one that others wait for.
      for (auto it = loops.rbegin(); it != loops.rend() && loop == nullptr; ++it)
        if ((*it)->open()) loop = *it;
      if (loop == nullptr) return false;
      ++loop->helpers;
    }
    run_chunks(*loop, member);
    bool last;
    {
      std::lock_guard lock(mutex);
      last = --loop->helpers == 0;
    }
    if (last) notify();
    return true;
  }

  void run_chunks(Loop& loop, int member) {
    try {
      for (;;) {
        const std::size_t begin = loop.next.fetch_add(loop.grain);
        if (begin >= loop.n) return;
        (*loop.body)(begin, std::min(begin + loop.grain, loop.n), member);
      }
    } catch (...) {
      fail(loop);
    }
  }

  void fail(Loop& loop) {
    loop.cancel();
    std::lock_guard lock(mutex);
    if (!loop.error) loop.error = std::current_exception();
  }

  void serve(int member) {
    for (;;) {
      const unsigned seen = epoch.load();
      {
        std::lock_guard lock(mutex);
        if (closed) return;
      }
      if (!help(member)) wait(seen, std::chrono::hours(1));
    }
  }
};

Team::Team(int n_threads, Poll poll)
    : size_(std::max(1, n_threads)),
      poll_(std::move(poll)),
      next_poll_(Clock::now() + poll_interval) {
  prepare_exceptions();
  if (size_ == 1) return;
  state_ = std::make_shared<State>();
  for (int member = 1; member < size_; ++member) {
    try {
      state_->lender->lend([state = state_, member] { state->serve(member); });
      ++borrowed_;
    } catch (const std::exception&) {
      break;  // no more threads, or no memory for one: a smaller team gives the same result
    }
  }
}

Team::~Team() {
  if (!state_) return;
  {
    std::lock_guard lock(state_->mutex);
    state_->closed = true;
  }
  state_->notify();
  // A child that was forked since has another pool, from which nothing was borrowed.
  if (state_->lender == &pool()) state_->lender->give_back(borrowed_);
}

void Team::notify() {
  if (state_) state_->notify();
}

void Team::poll_if_due(int self) {
  if (self != 0 || !poll_) return;
  const auto now = Clock::now();
  if (now < next_poll_) return;
  next_poll_ = now + poll_interval;
  poll_();
}

void Team::for_chunks(int self, std::size_t n, std::size_t grain, Body body) {
  grain = std::max<std::size_t>(1, grain);
  if (n <= grain) {
    if (n > 0) body(0, n, self);
    return;
  }
  if (size_ == 1) {
    for (std::size_t begin = 0; begin < n; begin += grain) {
      body(begin, std::min(begin + grain, n), self);
      poll_if_due(self);
    }
    return;
  }
  Loop loop{&body, n, grain};
  {
    std::lock_guard lock(state_->mutex);
    state_->loops.push_back(&loop);
  }
  state_->notify();
  try {
    while (loop.open()) {
      const std::size_t begin = loop.next.fetch_add(grain);
      if (begin < n) body(begin, std::min(begin + grain, n), self);
      poll_if_due(self);
    }
  } catch (...) {
    state_->fail(loop);
  }
  for (;;) {
    const unsigned seen = state_->epoch.load();
    {
      std::lock_guard lock(state_->mutex);
      if (loop.helpers == 0) {
        std::erase(state_->loops, &loop);
        break;
      }
    }
    state_->wait(seen, poll_interval);
  }
  if (loop.error) std::rethrow_exception(loop.error);
}

void Team::help_until(int self, Ready ready) {
  // Reading the clock costs too much for tasks of a microsecond; long tasks run loops, which poll
  // by themselves.
  if (self == 0 && ++waits_ % 32 == 0) poll_if_due(self);
  for (;;) {
    const unsigned seen = state_ ? state_->epoch.load() : 0;
    if (ready()) return;
    poll_if_due(self);
    if (state_ && !state_->help(self)) state_->wait(seen, poll_interval);
  }
}

}  // namespace arboost
