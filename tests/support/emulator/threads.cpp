#include "threads.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <numeric>
#include <random>
#include <vector>

namespace emulator {
namespace {

enum class State { ready, at_barrier, at_exchange, ended };

struct Fiber {
  Thread thread;
  State state = State::ended;
  std::uint32_t mask = 0;
  Word word{};
  std::uint64_t answer = 0;
  bool is_new = true;
  ucontext_t start{};
  jmp_buf place{};
  std::vector<char> stack;
};

constexpr std::size_t stack_bytes = (64 << 10) + 832;  // stacks in different sets of a cache
std::mutex one_launch;
std::vector<Fiber> fibers;
std::size_t n_threads = 0;
Fiber* current = nullptr;
Launch current_launch;
std::vector<std::uint64_t> shared;
const std::function<void()>* current_kernel = nullptr;
jmp_buf scheduler;
bool is_shuffled = false;
std::minstd_rand random_order;

// The numbers below n: in order, or shuffled.
void take_order(std::size_t n, std::vector<std::uint32_t>& order) {
  order.resize(n);
  std::iota(order.begin(), order.end(), 0u);
  if (is_shuffled) std::shuffle(order.begin(), order.end(), random_order);
}

// _setjmp and _longjmp leave the mask of signals alone: no call of the system for a switch.
void leave() {
  if (_setjmp(current->place) == 0) _longjmp(scheduler, 1);
}

// A fiber serves a thread of one block after another.
void fiber_main() {
  for (;;) {
    (*current_kernel)();
    current->state = State::ended;
    leave();
  }
}

void resume(Fiber& fiber) {
  current = &fiber;
  if (_setjmp(scheduler) != 0) return;
  if (!fiber.is_new) _longjmp(fiber.place, 1);
  fiber.is_new = false;
  setcontext(&fiber.start);
}

void prepare(Fiber& fiber, std::uint32_t number, Three size) {
  fiber.thread.index = {number % size.x, number / size.x % size.y, number / size.x / size.y};
  fiber.state = State::ready;
  if (!fiber.stack.empty()) return;
  fiber.stack.resize(stack_bytes);
  getcontext(&fiber.start);
  fiber.start.uc_stack.ss_sp = fiber.stack.data();
  fiber.start.uc_stack.ss_size = stack_bytes;
  fiber.start.uc_link = nullptr;
  makecontext(&fiber.start, fiber_main, 0);
}

std::uint64_t answer_of(const Fiber* lanes, std::uint32_t mask, const Fiber& own) {
  std::uint64_t answer = 0;
  switch (own.word.kind) {
    case Word::none:
      return 0;
    case Word::shuffle:
      // An undefined word, where the lane takes no part.
      return mask >> own.word.lane & 1 ? lanes[own.word.lane].word.bits : 0xbadbadbadbadbadb;
    case Word::ballot:
      for (int i = 0; i < 32; ++i)
        if (mask >> i & 1 && lanes[i].word.bits != 0) answer |= 1u << i;
      return answer;
    case Word::match:
      for (int i = 0; i < 32; ++i)
        if (mask >> i & 1 && lanes[i].word.bits == own.word.bits) answer |= 1u << i;
      return answer;
  }
  return 0;
}

// Ends an exchange of a warp once all lanes that its mask names are there.
bool meet(Fiber* lanes, std::size_t n, const Fiber& own) {
  const std::uint32_t mask = n < 32 ? own.mask & ((1u << n) - 1) : own.mask;
  for (std::size_t i = 0; i < n; ++i) {
    if (!(mask >> i & 1)) continue;
    if (lanes[i].state != State::at_exchange || lanes[i].mask != own.mask ||
        lanes[i].word.kind != own.word.kind)
      return false;
  }
  for (std::size_t i = 0; i < n; ++i)
    if (mask >> i & 1) lanes[i].answer = answer_of(lanes, mask, lanes[i]);
  for (std::size_t i = 0; i < n; ++i)
    if (mask >> i & 1) lanes[i].state = State::ready;
  return true;
}

// Runs each thread of a warp that can; false if none can.
bool move_warp(Fiber* lanes, std::size_t n) {
  static std::vector<std::uint32_t> order;
  take_order(n, order);
  bool moved = false;
  for (const std::uint32_t i : order) {
    if (lanes[i].state == State::at_exchange) moved |= meet(lanes, n, lanes[i]);
    if (lanes[i].state != State::ready) continue;
    resume(lanes[i]);
    moved = true;
  }
  return moved;
}

// Runs a block until all its threads have ended or wait for it; false if it hangs. A warp runs as
// far as it can, or shuffled a step at a time.
bool run_warps() {
  static std::vector<std::uint32_t> order;
  for (bool moved = true; moved;) {
    moved = false;
    take_order((n_threads + 31) / 32, order);
    for (const std::uint32_t w : order) {
      Fiber* lanes = &fibers[32 * w];
      const std::size_t n = std::min<std::size_t>(32, n_threads - 32 * w);
      if (is_shuffled)
        moved |= move_warp(lanes, n);
      else
        while (move_warp(lanes, n)) {
        }
    }
  }
  return std::none_of(fibers.begin(), fibers.begin() + static_cast<std::ptrdiff_t>(n_threads),
                      [](const Fiber& fiber) { return fiber.state == State::at_exchange; });
}

bool run_block() {
  for (std::size_t i = 0; i < n_threads; ++i)
    prepare(fibers[i], static_cast<std::uint32_t>(i), current_launch.block_size);
  for (bool waiting = true; waiting;) {
    waiting = false;
    if (!run_warps()) return false;
    for (std::size_t i = 0; i < n_threads; ++i) {
      if (fibers[i].state != State::at_barrier) continue;
      fibers[i].state = State::ready;
      waiting = true;
    }
  }
  return true;
}

}  // namespace

const Launch& launch() {
  return current_launch;
}
const Thread& thread() {
  return current->thread;
}
void* shared_memory() {
  return shared.data();
}

void shuffle(std::uint32_t seed) {
  std::lock_guard lock(one_launch);
  is_shuffled = seed != 0;
  random_order.seed(seed);
}

void pause() {
  if (is_shuffled && random_order() % 8 == 0) leave();
}

void wait_for_block() {
  current->state = State::at_barrier;
  leave();
}

std::uint64_t exchange(std::uint32_t mask, Word word) {
  Fiber& own = *current;
  own.mask = mask;
  own.word = word;
  own.state = State::at_exchange;
  leave();
  return own.answer;
}

bool run(Three grid, Three block, std::size_t shared_bytes, const std::function<void()>& kernel) {
  std::lock_guard lock(one_launch);
  n_threads = std::size_t{block.x} * block.y * block.z;
  if (fibers.size() < n_threads) fibers = std::vector<Fiber>(n_threads);
  current_launch = {grid, block, {}};
  current_kernel = &kernel;
  shared.assign(shared_bytes / 8 + 1, 0);
  std::vector<std::uint32_t> blocks;
  take_order(std::size_t{grid.x} * grid.y * grid.z, blocks);
  for (const std::uint32_t b : blocks) {
    current_launch.block = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
    std::memset(shared.data(), 0xab, shared.size() * 8);  // never relied on
    if (run_block()) continue;
    fibers.clear();  // in the middle of a kernel
    std::fprintf(stderr, "emulator: threads of a block wait for each other for ever\n");
    return false;
  }
  return true;
}

}  // namespace emulator
