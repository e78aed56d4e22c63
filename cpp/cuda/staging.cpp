// Two queues with a buffer each; a chunk waits for the one before the last.
#include "cuda/staging.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

namespace arboost::cuda {
namespace {

constexpr std::size_t grain_bytes = 1 << 20;  // of one thread
constexpr std::size_t small_bytes = 256 << 10;

struct Staging {
  std::mutex mutex;
  Queue queues[2];
  PinnedBytes buffers[2];

  // A buffer that the device has read.
  std::byte* free_buffer(int side) {
    queues[side].wait();
    return buffers[side].buffer(staged_bytes);
  }
};

// Never destroyed: at the end of the process the driver may be gone.
Staging& staging_of(const Device& device) {
  static std::mutex mutex;
  static auto& all = *new std::map<const Device*, std::unique_ptr<Staging>>();
  std::lock_guard lock(mutex);
  std::unique_ptr<Staging>& staging = all[&device];
  if (!staging) staging = std::make_unique<Staging>();
  return *staging;
}

// The team of a caller, or a new one.
class CopyingTeam {
 public:
  explicit CopyingTeam(Team* given) : given_(given) {
    static const int n = std::min(8, available_threads());  // more do not copy faster
    if (given == nullptr) own_.emplace(n);
  }
  Team& team() { return given_ == nullptr ? *own_ : *given_; }

 private:
  Team* given_;
  std::optional<Team> own_;
};

}  // namespace

void copy_by_threads(const void* from, std::size_t bytes, void* to, Team& team) {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  team.for_chunks(0, bytes, grain_bytes, [&](std::size_t begin, std::size_t end, int) {
    std::memcpy(target + begin, source + begin, end - begin);
  });
}

void upload_staged(const Device& device, const void* from, std::size_t bytes, Address to,
                   Team* team) {
  Staging& staging = staging_of(device);
  std::lock_guard lock(staging.mutex);
  const auto* source = static_cast<const std::byte*>(from);
  if (bytes <= small_bytes) {
    staging.queues[0].copy_in(from, bytes, to);
    return staging.queues[0].wait();
  }
  CopyingTeam copying(team);
  int side = 0;
  for (std::size_t begin = 0; begin < bytes; begin += staged_bytes, side ^= 1) {
    const std::size_t n = std::min(staged_bytes, bytes - begin);
    std::byte* buffer = staging.free_buffer(side);
    copy_by_threads(source + begin, n, buffer, copying.team());
    staging.queues[side].copy_in(buffer, n, to + begin);
  }
  for (Queue& queue : staging.queues) queue.wait();
}

void send_chunks(const Device& device, std::size_t n_chunks, const Address (&to)[2],
                 FunctionRef<std::size_t(std::size_t chunk, std::byte* buffer)> fill,
                 FunctionRef<void(std::size_t chunk, int side, Queue& queue)> use) {
  Staging& staging = staging_of(device);
  std::lock_guard lock(staging.mutex);
  for (std::size_t chunk = 0; chunk < n_chunks; ++chunk) {
    const int side = static_cast<int>(chunk % 2);
    std::byte* buffer = staging.free_buffer(side);
    const std::size_t bytes = fill(chunk, buffer);
    staging.queues[side].copy_in(buffer, bytes, to[side]);
    use(chunk, side, staging.queues[side]);
  }
  for (Queue& queue : staging.queues) queue.wait();
}

void download_staged(const Device& device, Address from, std::size_t bytes, void* to, Team* team) {
  Staging& staging = staging_of(device);
  std::lock_guard lock(staging.mutex);
  auto* target = static_cast<std::byte*>(to);
  if (bytes <= small_bytes) {
    staging.queues[0].copy_out(from, bytes, to);
    return staging.queues[0].wait();
  }
  CopyingTeam copying(team);
  const auto size_at = [&](std::size_t begin) { return std::min(staged_bytes, bytes - begin); };
  const auto ask = [&](std::size_t begin, int side) {
    if (begin < bytes)
      staging.queues[side].copy_out(from + begin, size_at(begin),
                                    staging.buffers[side].buffer(staged_bytes));
  };
  for (Queue& queue : staging.queues) queue.wait();
  ask(0, 0);
  int side = 0;
  for (std::size_t begin = 0; begin < bytes; begin += staged_bytes, side ^= 1) {
    ask(begin + staged_bytes, side ^ 1);
    staging.queues[side].wait();
    copy_by_threads(staging.buffers[side].buffer(staged_bytes), size_at(begin), target + begin,
                    copying.team());
  }
}

}  // namespace arboost::cuda
